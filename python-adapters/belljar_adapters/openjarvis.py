# SPDX-License-Identifier: Apache-2.0
"""In place of openjarvis.security.subprocess_sandbox: shell commands with a clean environment, a timeout and capped output.

    from belljar.adapters.openjarvis import run_sandboxed

Every command runs in a jar of its own with the preset `agent`: no network, nothing of the home directory, 512 MB of memory.
`POLICY` holds further policy keys for all of them, such as {"net": "host", "memory": None}.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from typing import Any, Dict, Mapping, Optional, Sequence

from belljar._errors import BelljarError
from belljar._result import Result
from belljar._run import run
from belljar._tree import kill_tree

__all__ = ["SandboxResult", "build_safe_env", "kill_process_tree", "run_sandboxed"]

POLICY: Dict[str, Any] = {}

_SAFE_ENV_VARS = frozenset({"PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"})
_SHORTEST_TIMEOUT = 0.001

_logger = logging.getLogger(__name__)


@dataclasses.dataclass
class SandboxResult:
    """How a command ended."""

    stdout: str = ""
    stderr: str = ""
    returncode: int = -1
    timed_out: bool = False
    killed: bool = False


def build_safe_env(
    passthrough: Optional[Sequence[str]] = None, extra: Optional[Mapping[str, str]] = None
) -> Dict[str, str]:
    """The safe variables and those named in passthrough, as far as they are set; then extra, which wins."""
    names = [*sorted(_SAFE_ENV_VARS), *(passthrough or ())]
    env = {name: os.environ[name] for name in names if name in os.environ}
    env.update(extra or {})
    return env


def kill_process_tree(pid: int) -> None:
    """Kill a process and all below it; nothing happens if there is none. This process, and those it descends from, are never
    killed."""
    try:
        kill_tree(pid)
    except ValueError as error:
        _logger.warning("nothing was killed: %s", error)


def _with_notes(stderr: str, result: Result[Any]) -> str:
    """What the command wrote, and a line about a work directory that it did not get."""
    lines = [str(note["why"]) for note in result.notes if note.get("name") == "workdir"]
    if not lines:
        return stderr
    return stderr + ("\n" if stderr and not stderr.endswith("\n") else "") + "".join(f"{line}\n" for line in lines)


def run_sandboxed(
    command: str,
    *,
    timeout: float = 30.0,
    working_dir: Optional[str] = None,
    env_passthrough: Optional[Sequence[str]] = None,
    env_extra: Optional[Mapping[str, str]] = None,
    max_output_bytes: int = 102_400,
) -> SandboxResult:
    """Run a command line in a jar, and wait until it and all it started is gone. Never raises for what the command does.

    The cap holds for each stream by itself. What cannot be started, or held, has `returncode` -1 and a `stderr` that begins
    with "Execution error:". An empty working_dir is none; if the current directory will not do then, the command runs in a private
    one, and a last line of `stderr` says so.
    """
    keys: Dict[str, Any] = {"timeout": None if timeout is None else max(timeout, _SHORTEST_TIMEOUT)}
    keys.update(POLICY)
    keys["env"] = {**keys.get("env", {}), **(env_extra or {})}
    keys["output"] = dict.fromkeys(("stdout", "stderr"), max(max_output_bytes, 0))
    if working_dir:
        keys["workdir"] = working_dir
    names = sorted({*_SAFE_ENV_VARS, *(env_passthrough or ())})
    try:
        if working_dir and not os.path.isdir(working_dir):
            raise NotADirectoryError(f"the working directory '{os.fspath(working_dir)}' is not a directory")
        options: Dict[str, Any] = {**keys, "shell": True, "policy": {"pass_env": names}}
        result = run(command, **options)
    except (BelljarError, OSError, ValueError, TypeError) as error:
        return SandboxResult(stderr=f"Execution error: {error}")
    stdout, stderr = result.stdout, result.stderr
    if result.timed_out:
        if not stdout and not stderr:
            stdout = "(timed out)"
        return SandboxResult(stdout, _with_notes(stderr, result), -1, timed_out=True, killed=True)
    stderr = _with_notes(stderr, result)
    return SandboxResult(stdout, stderr, result.returncode, killed=result.killed)
