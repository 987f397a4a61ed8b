# SPDX-License-Identifier: Apache-2.0
"""Result: how a run ended; and the exceptions for what the engine reports as failed."""

from __future__ import annotations

import base64
import dataclasses
import errno
import re
import signal as signals
from typing import TYPE_CHECKING, Any, Dict, Generic, List, Optional, Sequence, Union

from ._denied import Denial, make_denials
from ._errors import (
    BelljarError,
    EngineError,
    PolicyError,
    RunError,
    RunTimeout,
    StartError,
    UnavailableError,
    public,
)
from ._program import confined_hint

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Text = TypeVar("Text", str, bytes, default=str)
else:
    from typing import TypeVar

    Text = TypeVar("Text", str, bytes)

# The planner refuses paths that cannot be used, and policies that this host cannot enforce; its error number tells which.
CANNOT_HOLD = (errno.EOPNOTSUPP, errno.EPERM, errno.ENOSYS)
QUOTED = re.compile(r"'([^']+)'")
# The exit status that the command line gives for outcomes that have one of their own.
STATUS_OF_OUTCOME = {"timeout": 124, "cpu": 137, "memory": 137, "disk": 137, "output": 137, "net": 137}


@public
@dataclasses.dataclass(frozen=True)
class Result(Generic[Text]):
    """How a run ended, and why. Frozen, and only data: it can be pickled and compared.

    `outcome` is why it ended: exited, signaled, timeout, cpu, memory, disk, output, net or cancelled. `exit_code` is set only
    for exited. `stdout` and `stderr` are what was kept, up to the policy's `output`; text, or exact bytes with text=False; None
    where nothing was kept (capture=False).
    """

    args: List[str]
    version: int
    outcome: str
    exit_code: Optional[int]
    signal: Optional[str]
    timed_out: bool
    killed: bool
    stdout: Text
    stderr: Text
    encoding: str
    stdout_bytes: int
    stderr_bytes: int
    truncated: bool
    limits_hit: List[Dict[str, Any]]
    usage: Dict[str, Any]
    enforced: Dict[str, Optional[str]]
    missing: List[Dict[str, Any]]
    risky: List[Dict[str, Any]]
    error: Optional[Dict[str, Any]]
    workdir: Optional[str] = None
    notes: List[Any] = dataclasses.field(default_factory=list)
    network: Optional[Dict[str, Any]] = None
    workspace: Optional[Dict[str, Any]] = None
    elided_at: Optional[Dict[str, Any]] = None
    denied: List[Denial] = dataclasses.field(default_factory=list)
    denied_more: int = 0
    risky_search: Optional[Dict[str, Any]] = None

    @property
    def returncode(self) -> int:
        """The exit code; else -n for the signal n that ended the main process; else -15, for SIGTERM was sent."""
        if self.exit_code is not None:
            return self.exit_code
        return -signal_number(self.signal) if self.signal else -int(signals.SIGTERM)

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself, with exit status 0."""
        return self.outcome == "exited" and self.exit_code == 0

    @property
    def shell_status(self) -> int:
        """The exit status that `belljar run` would have, as a shell shows it: 128 + n for a signal n, 124 for a timeout, 137
        for other limits, 125 if nobody took the output; for what never started 127 (not found), 126 or 125."""
        if self.outcome == "exited" and self.exit_code is not None:
            return self.exit_code
        stage = (self.error or {}).get("stage")
        if self.outcome == "signaled" and self.signal:
            return 128 + signal_number(self.signal)
        if self.outcome == "cancelled" and stage != "output":
            return 128 + int(signals.SIGTERM)
        if self.outcome == "failed" and stage == "exec":
            return 127 if (self.error or {}).get("errno") == errno.ENOENT else 126
        return STATUS_OF_OUTCOME.get(self.outcome, 125)

    def check_returncode(self) -> None:
        """RunTimeout or RunError is raised, unless the command ended with exit status 0."""
        self.check()

    def check(self) -> Result[Text]:
        """Itself, if the command ended with exit status 0; else RunTimeout or RunError is raised."""
        if self.ok:
            return self
        kind = RunTimeout if self.outcome == "timeout" else RunError
        raise kind(_explain(self)).with_(result=self)

    def to_dict(self) -> Dict[str, Any]:
        """The result object as `belljar run --json` writes it, with args and returncode. Data for JSON only: bytes are
        given as text, and exactly in stdout_base64 and stderr_base64."""
        data = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        data["returncode"] = self.returncode
        data["denied"] = [entry.to_dict() for entry in self.denied]
        for name in ("elided_at", "risky_search"):
            if data[name] is None:
                del data[name]
        for name in ("stdout", "stderr"):
            value = data[name]
            if isinstance(value, bytes):
                data[name] = value.decode("utf-8", "replace")
                data[f"{name}_base64"] = base64.b64encode(value).decode("ascii")
        return data


FIELDS = tuple(field.name for field in dataclasses.fields(Result))


def signal_number(name: str) -> int:
    """15 for "SIGTERM"; real-time signals are counted from the first one that programs can use."""
    if name.startswith("SIGRTMIN+"):
        return int(signals.SIGRTMIN) + int(name[9:])
    if name.startswith("SIGRTMAX-"):
        return int(signals.SIGRTMAX) - int(name[9:])
    if name in signals.Signals.__members__:
        return int(signals.Signals[name])
    digits = name.lstrip("SIGRT")
    return int(digits) if digits.isdigit() else int(signals.SIGKILL)


def describe(result: Result[Any]) -> str:
    """Why a run was not a success, in a few words."""
    command = result.args[0] if result.args else "the command"
    if result.outcome == "exited":
        return f"'{command}' ended with exit status {result.exit_code}"
    if result.outcome == "signaled":
        return f"'{command}' was ended by {result.signal}"
    if result.outcome == "cancelled":
        return f"'{command}' was cancelled"
    name = {"cpu": "cpu_time", "net": "net_bytes"}.get(result.outcome, result.outcome)
    limit = next((hit.get("limit") for hit in result.limits_hit if hit.get("name") == name), None)
    return f"'{command}' was ended by the limit '{name}'" + (f" of {amount(name, limit)}" if limit is not None else "")


# From large to small, as the engine writes them: the largest unit that divides the number.
_DURATIONS = (("h", 3600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_SIZES = (("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1))
_COUNTS = (("", 1),)


def amount(name: str, number: int) -> str:
    """A limit of `limits_hit` as policies write it: "2s", "100M", "64"."""
    durations = name in ("timeout", "cpu_time")
    units = _DURATIONS if durations else _COUNTS if name in ("pids", "fds", "net_connections") else _SIZES
    return next(f"{number // factor}{unit}" for unit, factor in units if number % factor == 0 and (number or factor == 1))


def _explain(result: Result[Any]) -> str:
    """The same; and of a command that ended by itself the first thing that it was refused: it may have failed for that."""
    is_own_end = result.outcome in ("exited", "signaled")
    refused = next((entry.sentence for entry in result.denied if entry.sentence), "") if is_own_end else ""
    return f"{describe(result)}. {refused}" if refused else describe(result)


def make_result(data: Dict[str, Any], args: Sequence[str], stdout: Any, stderr: Any) -> Result[Any]:
    """From the engine's answer. Keys that this version does not know are left out."""
    known = {name: data[name] for name in FIELDS if name in data}
    known.update(args=list(args), stdout=stdout, stderr=stderr, denied=make_denials(data.get("denied")))
    try:
        return Result(**known)
    except TypeError as error:
        raise EngineError(f"the engine's result lacks a key: {error}") from None


def failure(error: Any, missing: Any = None, result: Optional[Result[Any]] = None, command: str = "") -> BelljarError:
    """The exception for {"stage", "errno", "message", "hint"}."""
    error = error if isinstance(error, dict) else {}
    stage, number = error.get("stage"), error.get("errno") or 0
    message = str(error.get("message") or "the engine gave no reason")
    made: BelljarError
    if stage in ("usage", "policy"):
        made = PolicyError(message)
    elif stage in ("exec", "files") or (stage == "plan" and number not in CANNOT_HOLD):
        quoted = QUOTED.search(message)
        filename = command if stage == "exec" and command else quoted.group(1) if quoted else None
        made = StartError(number, message, filename)
    elif stage in ("host", "plan", "limits", "isolate"):
        made = UnavailableError(message, missing if isinstance(missing, list) else [])
    else:
        made = EngineError(message)
    hint = error.get("hint")
    if isinstance(made, (UnavailableError, EngineError)):
        hint = "; ".join(filter(None, (confined_hint(), hint)))
    return made.with_(result=result, hint=hint)
