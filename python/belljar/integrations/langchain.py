# SPDX-License-Identifier: Apache-2.0
"""LangChain: ShellToolMiddleware with its shell in a jar.

    ShellToolMiddleware(workspace_root="project", execution_policy=JarExecutionPolicy(options={"memory": "1G"}))
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, List, Mapping, Optional, Sequence

from .._errors import BelljarError, PolicyError
from .._result import make_result
from ._common import checked_keys, command_line, marked, missing, words_of

try:
    from langchain.agents.middleware.shell_tool import BaseExecutionPolicy
except ImportError as error:
    raise missing(__name__, "langchain>=1.4", error) from error


# How the middleware learns that a command is over: it has the shell print this word and a status.
_MARKER = re.compile(r"printf '(\S+) %s\\n' \$\?\n")


class _Input:
    """The shell's input, which knows what the middleware waits for."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.marker: Optional[str] = None

    def write(self, text: str) -> int:
        found = _MARKER.fullmatch(text)
        if found is not None:
            self.marker = found.group(1)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Output:
    """The shell's output. At its end comes why the shell ended, and what the middleware waits for: else it would wait until its time
    is over, and call that a timeout."""

    def __init__(self, stream: IO[str], shell: "_Shell") -> None:
        self._stream, self._shell = stream, shell
        self._last: List[str] = []
        self._is_over = False

    def readline(self) -> str:
        line = self._stream.readline()
        if line or self._is_over:
            return line or (self._last.pop(0) if self._last else "")
        self._is_over = True
        self._last = self._shell.last_words()
        return self.readline()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Shell(subprocess.Popen):  # type: ignore[type-arg]
    """The shell's process. The result of the run can be read from a pipe when it has ended."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        ours, theirs = os.pipe()
        self._report = os.fdopen(ours, "rb")
        try:
            super().__init__(
                [*command[:2], "--status-fd", str(theirs), *command[2:]],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                bufsize=1,
                start_new_session=True,
                pass_fds=[theirs],
            )
        except BaseException:
            self._report.close()
            raise
        finally:
            os.close(theirs)
        assert self.stdin is not None and self.stdout is not None
        self._input = _Input(self.stdin)
        self.stdin = self._input  # type: ignore[assignment]
        self.stdout = _Output(self.stdout, self)  # type: ignore[assignment]

    def last_words(self) -> List[str]:
        """Lines that say how the shell ended, as the middleware reads them."""
        with self._report:
            data = json.loads(self._report.read() or b"null")
        if self._input.marker is None or not isinstance(data, dict):
            return []
        try:
            result = make_result(data, ["the shell"], "", "")
        except BelljarError:
            return []
        said = [*words_of(result), "The shell has ended, and its variables are gone. Restart it to go on."]
        lines = marked(said, "").lstrip("\n").splitlines(keepends=True)
        return [*lines, f"{self._input.marker} {result.shell_status}\n"]


@dataclass
class JarExecutionPolicy(BaseExecutionPolicy):  # type: ignore[misc]
    """Runs the middleware's shell in a jar whose work directory is the workspace.

    `options` are policy keys (memory, ro, net ...). The shell sees the variables that the middleware was given, and of the
    host's only those without secrets. The limits of single commands are those of the base class; `timeout` is the shell's.
    """

    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        keys = {**self.options}
        policy = keys.pop("policy", None)
        self.options = checked_keys(policy, keys)
        if policy is not None and not isinstance(policy, (str, os.PathLike)):
            raise PolicyError("policy: the shell is started by a command line, which takes the name of a preset or a file").with_(
                hint="give the keys of the policy as options of their own"
            )
        command_line([], **self.options)  # TypeError for what no command line can say
        if policy is not None:
            self.options["policy"] = policy

    def spawn(self, *, workspace: Path, env: Mapping[str, str], command: Sequence[str]) -> subprocess.Popen[str]:
        """Start the shell. Values of variables are not in the command line, where every user could read them."""
        options = {"workdir": workspace, **self.options}
        options["pass_env"] = [*options.get("pass_env", ()), *env]
        return _Shell(command_line(command, **options), {**os.environ, **env})
