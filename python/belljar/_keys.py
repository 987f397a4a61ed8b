# SPDX-License-Identifier: Apache-2.0
"""The keywords of the package's functions: the policy keys, and what else a run or a call may be told.

One table for three uses. Type checkers read the classes (`**options: Unpack[RunOptions]`), so a keyword with a typing error, or
a value of the wrong type, is found before it runs. `call()` looks names up in them to tell its options from the function's
arguments. And tests compare them with `belljar policy schema`. What a policy key means, and which values are good, only the
engine knows.
"""

from __future__ import annotations

import functools
import os
import re
from typing import IO, TYPE_CHECKING, Any, Callable, Container, Iterable, Literal, Mapping, Optional, Sequence, TypedDict, Union

from ._errors import PolicyError, SendError
from ._policy import PolicyLike

if TYPE_CHECKING:
    from ._ask import Question

OnOutput = Callable[[str, bytes], object]
# What a question is answered with, or a coroutine that gives it: "once", "run" or "deny".
OnAsk = Callable[["Question"], object]
OnEvent = Callable[[Mapping[str, Any]], object]
Stdin = Union[int, IO[Any], None]

Duration = Union[float, str]  # seconds, or text such as "500ms"
Size = Union[int, str]  # bytes, or text such as "512M"
Path = Union[str, bytes, "os.PathLike[str]"]
# A list of paths, or one.
Paths = Union[Path, Sequence[Path]]
# PATH, PATH:DEST or {"path", "dest", "optional"}
Shown = Union[Path, Mapping[str, Any]]
# HOST[:PORTS], or {"host", "ports", "private", "deny", "reason"}
NetRule = Union[str, Mapping[str, Any]]
# NAME@HOST[:HEADER], or an object.
NetSecret = Union[str, Mapping[str, str]]
# A list of texts, or one.
Texts = Union[str, Sequence[str]]


class RunKeys(TypedDict, total=False):
    """Policy keys that may differ from run to run of one jar."""

    cd: Path
    pass_env: Texts
    env: Optional[Mapping[str, str]]
    timeout: Optional[Duration]
    grace: Optional[Duration]
    cpu_time: Optional[Duration]
    memory: Optional[Size]
    pids: Optional[int]
    disk: Optional[Size]
    file_size: Optional[Size]
    fds: Optional[int]
    core: Optional[Size]
    net_connections: Optional[int]
    net_bytes: Optional[Size]
    output: Union[None, Size, Mapping[str, Optional[Size]]]  # of both streams, or {"stdout": ..., "stderr": ...}
    overflow: Literal["truncate", "kill"]
    keep: Literal["head", "tail", "both"]
    ledger: Literal["basic", "files", "trace"]
    redact: Texts
    redact_secrets: bool
    redact_env: bool


class PolicyKeys(RunKeys, total=False):
    """All policy keys. `cwd` is another name for `workdir`."""

    version: int
    extends: str
    workdir: Optional[Path]
    cwd: Optional[Path]
    workdir_mode: Literal["rw", "ro"]
    workspace: Literal["direct", "cow"]
    workspace_name: Optional[str]
    cow_dirs: Paths
    ro: Union[Shown, Sequence[Shown]]
    rw: Union[Shown, Sequence[Shown]]
    hide: Paths
    hide_secrets: bool
    tmpfs: Paths
    system: bool
    toolchains: bool
    protect: bool
    exec: Literal["any", "trusted"]
    speculation: Literal["on", "off"]
    machine_facts: Literal["host", "few", "none"]
    net: Literal["none", "gate", "host"]
    allow_net: Union[str, Sequence[NetRule]]
    secrets: Union[str, Sequence[NetSecret]]
    ask: Literal["none", "net"]
    ask_timeout: Duration
    publish: Union[int, str, Sequence[Union[int, str]]]  # PORT, or "HOSTPORT:PORT"
    hostname: str
    rung: Literal["namespace", "landlock", "process"]
    optional: Texts


class CommandOptions(TypedDict, total=False):
    """What a command is told beside its policy; Request._read_options() has the defaults, and `text`, which decides the type of
    the result."""

    shell: bool
    input: Optional[Union[bytes, str]]
    stdin: Stdin
    errors: str
    stderr_to_stdout: bool
    pty: bool
    capture: Optional[bool]
    on_output: Optional[OnOutput]
    on_event: Optional[OnEvent]
    on_ask: Optional[OnAsk]


class RunInJarOptions(CommandOptions, RunKeys, total=False):
    """The keywords of Jar.run()."""


class SpawnInJarOptions(RunInJarOptions, total=False):
    """The keywords of Jar.spawn()."""

    text: bool


class RunOptions(CommandOptions, PolicyKeys, total=False):
    """The keywords of run()."""

    policy: PolicyLike


class SpawnOptions(RunOptions, total=False):
    """The keywords of spawn()."""

    text: bool


class CallOptions(RunKeys, total=False):
    """The keywords of call() that are not the function's."""

    on_output: Optional[OnOutput]
    on_ask: Optional[OnAsk]
    types: Union[type, Iterable[type]]
    max_result: Size


class ToolOptions(PolicyKeys, total=False):
    """The keywords of tool()."""

    on_output: Optional[OnOutput]
    on_ask: Optional[OnAsk]
    types: Union[type, Iterable[type]]
    max_result: Size


RUN_KEYS = frozenset(RunKeys.__annotations__)
CALL_OPTIONS = frozenset(CallOptions.__annotations__)
# What holds for a jar, and so for all calls in it.
JAR_KEYS = frozenset({*PolicyKeys.__annotations__, "policy"}) - RUN_KEYS
# Given for a jar, each is a ceiling for its runs.
LIMITS = frozenset(
    ("timeout", "grace", "cpu_time", "memory", "pids", "disk", "file_size", "fds", "core", "net_connections", "net_bytes", "output")
)
# Those that hold a jar as a whole.
LIMITS_OF_A_JAR = ("memory", "pids", "disk")

_SIZE = re.compile(r"([0-9]+)(?:\.([0-9]+))?([KMGT]?)\Z", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(value: Any, name: str) -> int:
    """The bytes of a size as policies write it: a number, or text such as "64M" or "1.5G"."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = _SIZE.match(value) if isinstance(value, str) else None
    if match is not None:
        whole, fraction, unit = match.group(1), match.group(2) or "", match.group(3).upper()
        size, rest = divmod(int(whole + fraction) * _UNITS[unit], 10 ** len(fraction))
        if size > 0 and rest == 0:
            return int(size)
    raise PolicyError(f"{name}={value!r} is not a size; write a number of bytes, or text such as '64M'")


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|)\Z")
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(value: Any, name: str) -> Optional[float]:
    """The seconds of a duration as policies write it: a number, or text such as "500ms" or "5m". None: no limit."""
    if value is None or value == "none":
        return None
    match = _DURATION.match(value) if isinstance(value, str) else None
    if match is not None:
        seconds = float(match.group(1)) * _SECONDS[match.group(2)]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    else:
        seconds = -1.0
    if not 0 <= seconds < 1e10 or (seconds == 0 and name != "grace"):
        raise PolicyError(f"{name}={value!r} is not a duration; write seconds, or text such as '500ms'")
    return seconds


@functools.lru_cache(maxsize=256)
def _near(name: str, names: "frozenset[str]") -> Optional[str]:
    """The name that was meant, if one is so much alike."""
    import difflib

    return next(iter(difflib.get_close_matches(name, sorted(names), 1, 0.75)), None)


def _takes(fn: Any) -> Optional[Container[str]]:
    """The keywords that a function takes; None: any, or nobody knows."""
    import inspect

    try:
        parameters = inspect.signature(fn).parameters.values()
    except Exception:  # that of a class of the caller's, too
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}


def check_arguments(fn: Any, kwargs: Mapping[str, Any], owner: str) -> None:
    """SendError for a keyword of a call that the function does not take, and that was meant for its jar."""
    taken = None
    for name in kwargs:
        near = None if name in JAR_KEYS else _near(name, CALL_OPTIONS)
        if name not in JAR_KEYS and near is None:
            continue
        taken = _takes(fn) if taken is None else taken
        if taken is None or name in taken:
            continue
        if near is None:
            raise SendError(f"{name}= is fixed for a jar: use {owner}({name}=...) or @tool({name}=...)")
        raise SendError(f"the function takes no {name!r}, and neither does the call; did you mean {near!r}?")


def check_call_options(function: str, options: Iterable[str], more: Iterable[str] = ()) -> None:
    """TypeError for a keyword that is no option of a call, and none of `more`."""
    known = CALL_OPTIONS.union(more)
    for name in options:
        if name in known:
            continue
        if name in JAR_KEYS:
            raise TypeError(f"{name}= is fixed for a jar: use Pool({name}=...)")
        near = _near(name, known)
        hint = f"; did you mean {near!r}?" if near else "; pass arguments of the function with functools.partial"
        raise TypeError(f"{function}() takes the options of a call, not {name!r}{hint}")
