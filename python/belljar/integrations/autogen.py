# SPDX-License-Identifier: Apache-2.0
"""AutoGen: code blocks in a jar.

    async with JarCodeExecutor(workdir="project") as executor:
        agent = CodeExecutorAgent("coder", code_executor=executor)
"""

from __future__ import annotations

import asyncio
from typing import Any, List, Optional

from .._jar import Jar
from .._policy import PolicyLike
from .._result import Result
from ._common import checked_keys, interpreter_of, jar_keys, missing, note

try:
    from autogen_core import CancellationToken, Component
    from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
    from pydantic import BaseModel
except ImportError as error:
    raise missing(__name__, "autogen-core>=0.7", error) from error

_CANCELLED_STATUS = 125


class JarCodeExecutorConfig(BaseModel):  # type: ignore[misc]
    """What a saved executor keeps: a policy (a preset or a file), and policy keys."""

    policy: Optional[str] = None
    keys: dict[str, Any] = {}


class JarCodeExecutor(CodeExecutor, Component[JarCodeExecutorConfig]):  # type: ignore[misc]
    """Each block is a program of its own: Python, sh or bash. They share the jar's files until it stops or restarts.

    JarCodeExecutor(policy, **keys): the jar's policy; the work directory is private and empty unless it names one.
    """

    component_config_schema = JarCodeExecutorConfig
    component_provider_override = "belljar.integrations.autogen.JarCodeExecutor"

    def __init__(self, policy: PolicyLike = None, **keys: Any) -> None:
        self._policy, self._keys = policy, checked_keys(policy, keys)
        self._jar: Optional[Jar] = None

    async def start(self) -> None:
        """Open the jar, if it is not open."""
        if self._jar is None:
            self._jar = Jar(self._policy, **jar_keys(self._policy, self._keys))

    async def stop(self) -> None:
        """Close the jar, with all that still runs in it."""
        jar, self._jar = self._jar, None
        if jar is not None:
            await jar.close_async()

    async def restart(self) -> None:
        """A fresh jar."""
        await self.stop()
        await self.start()

    async def execute_code_blocks(self, code_blocks: List[CodeBlock], cancellation_token: CancellationToken) -> CodeResult:
        """Run the blocks in turn, up to the first that fails."""
        await self.start()
        output, status = "", 0
        for block in code_blocks:
            task = asyncio.ensure_future(self._run(block))
            cancellation_token.link_future(task)
            try:
                result = await task
            except asyncio.CancelledError:
                if not cancellation_token.is_cancelled():
                    raise
                return CodeResult(exit_code=_CANCELLED_STATUS, output=output + "\nCancelled")
            except ValueError as error:
                return CodeResult(exit_code=1, output=f"{output}\n{error}")
            output += result.stdout + note(result)
            status = result.shell_status
            if status != 0:
                break
        return CodeResult(exit_code=status, output=output)

    async def _run(self, block: CodeBlock) -> Result:
        assert self._jar is not None
        language = block.language.lower()
        if language in ("python", "py", "python3"):
            args = [interpreter_of(self._jar), "-"]
        elif language in ("sh", "shell", "bash"):
            args = ["bash" if language == "bash" else "sh", "-s"]
        else:
            raise ValueError(f"unknown language {block.language!r}")
        return await self._jar.run_async(args, input=block.code, stderr_to_stdout=True)

    def _to_config(self) -> JarCodeExecutorConfig:
        if self._policy is not None and not isinstance(self._policy, str):
            raise ValueError("only an executor whose policy is a preset or a file can be saved")
        return JarCodeExecutorConfig(policy=self._policy, keys=self._keys)

    @classmethod
    def _from_config(cls, config: JarCodeExecutorConfig) -> JarCodeExecutor:
        return cls(config.policy, **config.keys)
