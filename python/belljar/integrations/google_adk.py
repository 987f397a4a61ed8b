# SPDX-License-Identifier: Apache-2.0
"""Google ADK: a jar as an agent's environment, and code blocks in jars.

    Agent(model=model, name="coder", tools=[EnvironmentToolset(environment=JarEnvironment(workdir="project"))])
    Agent(model=model, name="analyst", code_executor=JarCodeExecutor(memory="1G"))
"""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Union

from .._errors import PolicyError
from .._jar import Jar
from .._policy import PolicyLike
from ._common import checked_keys, interpreter_of, jar_keys, missing, note

try:
    from google.adk.code_executors.base_code_executor import BaseCodeExecutor
    from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
    from google.adk.environment import BaseEnvironment, ExecutionResult
    from pydantic import Field
except ImportError as error:
    raise missing(__name__, "google-adk>=2.13", error) from error

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext


class JarEnvironment(BaseEnvironment):  # type: ignore[misc]
    """Commands and files of one jar, from initialize() to close(). JarEnvironment(policy, **keys): the jar's policy.

    The work directory is private and empty unless the policy names one.
    """

    def __init__(self, policy: PolicyLike = None, **keys: Any) -> None:
        self._policy, self._keys = policy, checked_keys(policy, keys)
        self._jar: Optional[Jar] = None

    @property
    def jar(self) -> Jar:
        """The open jar."""
        if self._jar is None:
            raise RuntimeError("the jar is not open; call initialize() first")
        return self._jar

    async def initialize(self) -> None:
        """Open the jar, if it is not open."""
        if self._jar is None:
            self._jar = await Jar.open_async(self._policy, **jar_keys(self._policy, self._keys))
        self.is_initialized = True

    async def close(self) -> None:
        """Close the jar, with all that still runs in it."""
        jar, self._jar = self._jar, None
        self.is_initialized = False
        if jar is not None:
            await jar.close_async()

    @property
    def working_dir(self) -> Path:
        """Where commands start, as seen in the jar."""
        return Path(str(self.jar.workdir))

    async def execute(self, command: str, *, timeout: Optional[float] = None) -> ExecutionResult:
        """Run a shell command; what it leaves in the background goes on."""
        result = await self.jar.run_async(command, shell=True, timeout=timeout, detach=True)
        stderr = result.stderr + note(result)
        return ExecutionResult(result.shell_status, result.stdout, stderr, timed_out=result.timed_out)

    async def read_file(self, path: Union[str, Path]) -> bytes:
        """The bytes of a file."""
        return await self.jar.read_file_async(path)

    async def write_file(self, path: Union[str, Path], content: Union[str, bytes]) -> None:
        """Write a file, with the directories above it."""
        await self.jar.write_file_async(path, content, parents=True)


class JarCodeExecutor(BaseCodeExecutor):  # type: ignore[misc]
    """Runs each block of Python in a jar of its own, with the input files in its private work directory.

    JarCodeExecutor(policy, **keys): the jar's policy; keys={...} is another way to give keys. Files that the code makes or changes in the work directory come back as output files.
    """

    stateful: bool = Field(default=False, frozen=True, exclude=True)
    timeout_seconds: Optional[int] = 300
    policy: Any = None
    keys: Dict[str, Any] = Field(default_factory=dict)

    def __init__(self, policy: PolicyLike = None, *, keys: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
        own = {name: more.pop(name) for name in list(more) if name not in type(self).model_fields}
        if {"workdir", "cwd"} & {*(keys or {}), *own}:
            raise PolicyError("workdir: the work directory is private here, because all that the code leaves in it is its output")
        super().__init__(policy=policy, keys=checked_keys(policy, {**(keys or {}), **own}), **more)

    def execute_code(
        self, invocation_context: Optional[InvocationContext], code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code. The framework takes anything in stderr for a failure, so it is empty where the code succeeded."""
        inputs = {file.name: _bytes(file) for file in code_execution_input.input_files}
        with Jar(self.policy, **{**self.keys, "workdir": None}) as jar:
            for name, data in inputs.items():
                jar.write_file(name, data, parents=True)
            result = jar.run([interpreter_of(jar), "-"], input=code_execution_input.code, timeout=self.timeout_seconds)
            status = result.shell_status
            stderr = (result.stderr + note(result) or f"exit status {status}") if status != 0 else ""
            files, remarks = _output_files(jar, inputs)
            return CodeExecutionResult(result.stdout + remarks, stderr, files, status)


def _bytes(file: File) -> bytes:
    """Text stands for bytes in base64."""
    return base64.b64decode(file.content) if isinstance(file.content, str) else file.content


def _output_files(jar: Jar, inputs: Mapping[str, bytes]) -> Tuple[List[File], str]:
    """What the code left that it was not given, and a remark for each file that is too big or cannot be read."""
    found, remarks = [], ""
    try:
        names = [info.name for info in jar.list_files(recursive=True) if info.type == "file" and "__pycache__" not in info.name]
    except OSError as error:
        return [], f"\n[output files cannot be listed: {error}]\n"
    for name in names:
        try:
            data = jar.read_file(name)
        except OSError as error:
            remarks += f"\n[an output file cannot be read: {error}]\n"
            continue
        if inputs.get(name) != data:
            kind = mimetypes.guess_type(name)[0]
            found.append(File(name=name, content=data, mime_type=kind or "application/octet-stream"))
    return found, remarks
