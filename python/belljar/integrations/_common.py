# SPDX-License-Identifier: Apache-2.0
"""What the integrations share: a clear word where a framework is missing, and how a run ended as frameworks want to hear it."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Sequence

from .._program import engine_path
from .._result import Result, describe, signal_number


def missing(module: str, requirement: str, error: ImportError) -> ImportError:
    """The error for a framework that is not installed, or too old."""
    text = f"{module} needs {requirement!r}, which could not be imported: {error}. Install it: pip install '{requirement}'"
    return ImportError(text, name=error.name, path=error.path)


def shell_status(result: Result) -> int:
    """The exit status as a shell has it: 124 after a timeout, 128+n for a signal, 137 for another limit."""
    if result.outcome == "exited":
        return int(result.exit_code or 0)
    if result.outcome == "timeout":
        return 124
    return 128 + signal_number(result.signal) if result.signal else 137


def note(result: Result) -> str:
    """A line for the model about a command that a limit ended; empty where its status says it all."""
    return "" if result.outcome in ("exited", "signaled") else f"\n[{describe(result)}]\n"


def command_line(args: Sequence[Any], **keys: Any) -> List[str]:
    """The words that run a command in a jar of its own, for programs that start others themselves, such as MCP clients.

    Keys are policy keys: workdir="project" becomes --workdir project. The command has the caller's streams. It ends when
    the program that started it does.
    """
    words = [engine_path(), "run", "--quiet", "--die-with-parent"]
    for key, value in keys.items():
        words += _option(key, value)
    return [*words, "--", *map(os.fsdecode, args)]


def _option(key: str, value: Any) -> List[str]:
    flag = "--" + key.replace("_", "-")
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    if isinstance(value, Mapping):
        value = [f"{name}={text}" for name, text in value.items()]
    if isinstance(value, (list, tuple)):
        if not all(isinstance(item, (str, os.PathLike)) for item in value):
            raise TypeError(f"{key}: a command line takes texts only, such as 'PATH:DEST'; write a policy file for more")
        return [word for item in value for word in (flag, os.fspath(item))]
    return [flag, "none" if value is None else os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
