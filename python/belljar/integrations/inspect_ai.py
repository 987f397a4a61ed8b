# SPDX-License-Identifier: Apache-2.0
"""Inspect: every sample in a jar of its own. Inspect finds it by the entry point, so a task only names it.

    Task(dataset, sandbox="belljar")                                        # private and empty, no network
    Task(dataset, sandbox=("belljar", "policy.json"))                       # a policy file, or a preset
    Task(dataset, sandbox=SandboxEnvironmentSpec("belljar", JarConfig(memory="2G", ro=["/srv/data"])))
"""

from __future__ import annotations

import errno
import os
import pwd
from typing import Any, Dict, List, Optional, Union

from .._errors import EngineError, StartError
from .._jar import Jar
from ._common import checked_keys, is_owners_timeout, jar_keys, missing, note, start_status, words_of

try:
    from inspect_ai.util import (
        ExecResult,
        OutputLimitExceededError,
        SandboxEnvironment,
        SandboxEnvironmentConfigType,
        SandboxEnvironmentLimits,
        SandboxUnavailableError,
        SandboxUserUnsupportedError,
        sandboxenv,
    )
    from inspect_ai.util import concurrency as bounded
    from pydantic import BaseModel
except ImportError as error:
    raise missing(__name__, "inspect-ai>=0.3.285", error) from error


class JarConfig(BaseModel, extra="allow", frozen=True):  # type: ignore[misc, call-arg]
    """A policy, and policy keys on top of it: JarConfig(policy="strict", memory="2G")."""

    policy: Optional[str] = None

    def __init__(self, **keys: Any) -> None:
        super().__init__(**{**keys, **checked_keys(keys.get("policy"), {name: keys[name] for name in keys if name != "policy"})})


def _named_policy(path: str) -> str:
    """Inspect makes an absolute path of the text beside the sandbox's name, also of the name of a preset."""
    name = os.path.basename(path)
    return path if os.path.lexists(path) or name.endswith(".json") else name


def _is_own(user: str) -> bool:
    """A jar has one user, the caller's."""
    if user.isdecimal():
        return int(user) == os.getuid()
    try:
        return pwd.getpwnam(user).pw_uid == os.getuid()
    except KeyError:
        return False


@sandboxenv(name="belljar")
class JarSandboxEnvironment(SandboxEnvironment):  # type: ignore[misc]
    """One jar for each sample. The work directory is private and empty unless the policy names one."""

    def __init__(self, jar: Jar) -> None:
        super().__init__()
        self.jar = jar

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Optional[SandboxEnvironmentConfigType], metadata: Dict[str, str]
    ) -> Dict[str, SandboxEnvironment]:
        """Open the sample's jar."""
        keys = {"policy": _named_policy(config)} if isinstance(config, str) else config.model_dump() if config is not None else {}
        policy = keys.pop("policy", None)
        return {"default": cls(await Jar.open_async(policy, **jar_keys(policy, keys)))}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: Optional[SandboxEnvironmentConfigType],
        environments: Dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Close it, with all that still runs in it."""
        for environment in environments.values():
            await environment.as_type(cls).jar.close_async()

    @classmethod
    def config_deserialize(cls, config: Dict[str, Any]) -> BaseModel:
        """What a log has kept of a JarConfig."""
        return JarConfig(**config)

    def default_polling_interval(self) -> float:
        """A jar is on this machine."""
        return 0.2

    async def exec(
        self,
        cmd: List[str],
        input: Union[str, bytes, None] = None,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        timeout: Optional[int] = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a command. It is never tried again after a timeout: nothing on the way to a jar loses commands."""
        if user is not None and not _is_own(user):
            raise SandboxUserUnsupportedError(f"a jar has one user, and it is not {user!r}")
        options: Dict[str, Any] = {"input": input, "env": env or {}, "timeout": timeout, "detach": True}
        if cwd is not None:
            options["cd"] = cwd
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        options["output"] = {"stdout": limit, "stderr": limit}
        if concurrency:
            async with bounded("belljar", os.cpu_count() or 1):
                return await self._exec(cmd, options)
        return await self._exec(cmd, options)

    async def _exec(self, cmd: List[str], options: Dict[str, Any]) -> ExecResult[str]:
        try:
            result = await self.jar.run_async(cmd, **options)
        except StartError as error:
            if error.errno == errno.EACCES:
                raise PermissionError(error.errno, str(error), error.filename) from error
            return ExecResult(False, start_status(error), "", f"{error}\n")
        except EngineError as error:
            raise SandboxUnavailableError(str(error)) from error
        if result.outcome == "timeout" and not is_owners_timeout(result, options["timeout"]):
            raise TimeoutError(". ".join(words_of(result)))
        if result.truncated:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, result.stdout + result.stderr)
        status = result.shell_status
        return ExecResult(status == 0, status, result.stdout, result.stderr + note(result))

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        """Write a file, with the directories above it."""
        await self.jar.write_file_async(file, contents, parents=True)

    async def read_file(self, file: str, text: bool = True) -> Any:
        """The text of a file, as it is, or its bytes."""
        try:
            data = await self.jar.read_file_async(file, max_bytes=SandboxEnvironmentLimits.MAX_READ_FILE_SIZE)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None) from error
            raise
        return data.decode("utf-8") if text else data
