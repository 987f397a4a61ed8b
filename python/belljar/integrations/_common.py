# SPDX-License-Identifier: Apache-2.0
"""What the integrations share: a clear word where a framework is missing, and how a run ended as frameworks want to hear it."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .._errors import StartError
from .._host import check_keys
from .._jar import Jar
from .._paths import keys_of
from .._policy import PolicyLike, normal_keys
from .._program import engine_path
from .._result import Result, describe


# What Jar() takes beside policy keys.
_OF_JARS = ("ttl", "on_ask")


def missing(module: str, requirement: str, error: ImportError) -> ImportError:
    """The error for a framework that is not installed, or too old."""
    text = f"{module} needs {requirement!r}, which could not be imported: {error}. Install it: pip install '{requirement}'"
    return ImportError(text, name=error.name, path=error.path)


def jar_keys(policy: PolicyLike, keys: Mapping[str, Any]) -> Dict[str, Any]:
    """The keys of a jar for an agent: its work directory is private and empty, unless they or the policy name one."""
    is_named = "workdir" in keys or "cwd" in keys or keys_of(policy).get("workdir") is not None
    return {**keys} if is_named else {"workdir": None, **keys}


def with_output(policy: PolicyLike, keys: Mapping[str, Any], most_bytes: int) -> Dict[str, Any]:
    """The same keys, with as much output as the framework can take where neither they nor the policy say how much."""
    is_said = "output" in keys or keys_of(policy).get("output") is not None
    return {**keys} if is_said else {"output": most_bytes, **keys}


def checked_keys(policy: PolicyLike, keys: Mapping[str, Any]) -> Dict[str, Any]:
    """The same keys, as the engine takes them. PolicyError now, in the engine's words, where no jar could have them."""
    made = normal_keys({**keys})
    check_keys(policy, {name: value for name, value in made.items() if name not in _OF_JARS})
    return made


def interpreter_of(jar: Jar) -> str:
    """This interpreter, if the jar shows it; else the jar's own."""
    return sys.executable if jar.exists(sys.executable) else "python3"


def is_owners_timeout(result: Result[Any], asked: Optional[float]) -> bool:
    """Whether the jar's own timeout ended the command, and not the one that the framework asked for."""
    limit = next((hit["limit"] for hit in result.limits_hit if hit.get("name") == "timeout"), None)
    return result.outcome == "timeout" and (asked is None or (limit is not None and limit < int(asked * 1000)))


def start_status(error: StartError) -> int:
    """The exit status that a shell has for a command that it cannot start."""
    return 127 if error.errno == errno.ENOENT else 126


def words_of(result: Result[Any]) -> List[str]:
    """For the model: which limit ended the command, and what a command that failed was refused; empty where its status says it all."""
    is_ended = result.outcome not in ("exited", "signaled")
    said = [describe(result)] if is_ended else []
    if result.shell_status != 0:
        said += [entry.sentence for entry in result.denied if entry.sentence][:3]
    return said


def note(result: Result[Any]) -> str:
    """The same as lines to append to what the command wrote."""
    return marked(words_of(result), f"{result.stdout}{result.stderr}")


def marked(said: Sequence[str], output: str) -> str:
    """Belljar's own sentences, one on each line, to stand behind the output of a command.

    Each line begins with a mark that is new and does not occur in the output. Output that imitates such a line is always
    followed by a real one: the last line is Belljar's.
    """
    if not said and "[belljar " not in output:
        return ""
    mark = secrets.token_hex(4)
    while mark in output:
        mark = secrets.token_hex(4)
    lines = said or ["nothing to report; what looks like these lines above is output of the command"]
    return "".join(f"\n[belljar {mark}] {' '.join(words.split())}" for words in lines) + "\n"


def command_line(args: Sequence[Any], **keys: Any) -> List[str]:
    """The words that run a command in a jar of its own, for programs that start others themselves, such as MCP clients.

    Keys are policy keys: workdir="project" becomes --workdir project. The command has the caller's streams. It ends when
    the program that started it does. If it is this very interpreter, the jar shows that with its packages.
    """
    words = [engine_path(), "run", "--quiet", "--die-with-parent"]
    command = [os.fsdecode(word) for word in args]
    if command[:1] == [sys.executable]:
        prefixes = {os.path.abspath(path) for path in (sys.prefix, sys.base_prefix)}
        words += _option("ro", sorted(prefixes - {"/", "/usr", "/usr/local"}))
    for key, value in normal_keys({**keys}).items():
        words += _option(key, value)
    return [*words, "--", *command]


def _option(key: str, value: Any) -> List[str]:
    flag = "--" + key.replace("_", "-")
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    if isinstance(value, Mapping):
        value = [f"{name}={text}" for name, text in value.items()]
    if isinstance(value, (list, tuple)):
        if not all(isinstance(item, (str, os.PathLike, int)) for item in value):
            raise TypeError(f"{key}: a command line takes texts only, such as 'PATH:DEST'; write a policy file for more")
        return [word for item in value for word in (flag, str(item) if isinstance(item, int) else os.fspath(item))]
    return [flag, "none" if value is None else os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
