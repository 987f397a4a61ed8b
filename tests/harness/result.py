# SPDX-License-Identifier: Apache-2.0
"""What every test checks of a result object and of an event stream: members, types, and what goes together."""

from __future__ import annotations

import base64
import json
import signal
from typing import Any, Dict, List, Optional, Tuple

Result = Dict[str, Any]
Event = Dict[str, Any]

OUTCOMES = ("exited", "signaled", "timeout", "cpu", "memory", "disk", "output", "net", "cancelled", "failed")
KILLED = ("timeout", "cpu", "memory", "disk", "output", "net", "cancelled")
STAGES = ("usage", "policy", "host", "plan", "files", "limits", "isolate", "engine", "exec", "output")
LIMITS = ("timeout", "cpu_time", "memory", "pids", "disk", "file_size", "fds", "net_connections", "net_bytes", "output")
ENFORCED = ("rung", "filesystem", "network", "processes", "syscalls", "memory", "pids", "cpu_time", "disk")
USAGE = ("wall_ms", "user_ms", "system_ms", "peak_memory_bytes", "peak_processes", "memory_by", "peak_memory_is_lower_bound")
MEMORY_BY = ("cgroup2", "cgroup1", "meter", "maxrss")
RUNGS = ("namespace", "landlock", "process")
EVENTS = ("start", "output", "limit", "denied", "result")
DENIED = {"kind", "what", "access", "count", "process", "why", "cure", "certainty", "sentence", "warning"}
KINDS = ("file", "exec", "net", "name", "syscall", "http", "limit")
EVENT_BYTES_MAX = 65536


class ContractError(AssertionError):
    """What belljar wrote is not what the contract says."""


def require(condition: bool, message: str, subject: object) -> None:
    """Raise with the offending object in the message."""
    if not condition:
        raise ContractError(f"{message}: {subject!r:.2000}")


def _no_duplicates(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    keys = [key for key, _ in pairs]
    require(len(keys) == len(set(keys)), "a key stands twice in one object", keys)
    return dict(pairs)


def _no_constant(word: str) -> None:
    raise ContractError(f"not JSON: {word}")


def parse_json(text: bytes) -> Any:
    """Strict JSON: UTF-8, no repeated keys, no NaN, no lone surrogates."""
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except (UnicodeError, ValueError) as error:
        raise ContractError(f"not strict JSON ({error}): {text[:2000]!r}") from error


def parse_line(raw: bytes) -> Any:
    """Exactly one line with one JSON value."""
    require(raw.endswith(b"\n") and raw.count(b"\n") == 1, "not exactly one line", raw)
    require(b"\r" not in raw and b"\0" not in raw and b"\x1b" not in raw, "raw control bytes in JSON", raw)
    return parse_json(raw)


def is_int(value: object) -> bool:
    """An integer, bool left out."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """An integer or float, bool left out."""
    return is_int(value) or isinstance(value, float)


def signal_number(name: str) -> int:
    """15 for "SIGTERM", also for real-time signals."""
    if name.startswith("SIGRTMIN+"):
        return int(signal.SIGRTMIN) + int(name[9:])
    if name.startswith("SIGRTMAX-"):
        return int(signal.SIGRTMAX) - int(name[9:])
    if name.startswith("SIGRT"):
        return int(name[5:])
    return int(signal.Signals[name])


def check_denial(denial: Any) -> None:
    """One entry of denied."""
    require(isinstance(denial, dict) and set(denial) == DENIED, "a denial has other keys", denial)
    require(denial["kind"] in KINDS and denial["certainty"] in ("seen", "inferred"), "unknown kind or certainty", denial)
    require(all(isinstance(denial[key], str) and denial[key] for key in ("what", "access", "why", "sentence")), "not said", denial)
    require(all(denial[key] is None or isinstance(denial[key], str) for key in ("process", "warning")), "no text", denial)
    require(is_int(denial["count"]) and denial["count"] > 0, "nothing was refused", denial)
    cure = denial["cure"]
    require(cure is None or set(cure) == {"flag", "policy"}, "a cure has other keys", denial)
    require(cure is None or (cure["flag"].startswith("--") and isinstance(cure["policy"], dict)), "no cure", denial)


def check_limit(limit: Any) -> None:
    """One entry of limits_hit."""
    require(isinstance(limit, dict), "a limit is not an object", limit)
    require(set(limit) >= {"name", "limit", "peak", "enforced_by", "evidence"}, "a limit lacks keys", limit)
    require(limit["name"] in LIMITS, "unknown limit", limit)
    require(is_number(limit["limit"]), "limit is not a number", limit)
    require(limit["peak"] is None or is_number(limit["peak"]), "peak is not a number", limit)
    require(isinstance(limit["enforced_by"], str) and limit["enforced_by"] != "", "no enforced_by", limit)
    require(isinstance(limit["evidence"], str) and limit["evidence"] != "", "no evidence", limit)


def check_enforced(enforced: Any) -> None:
    """The object that says what held."""
    require(isinstance(enforced, dict), "enforced is not an object", enforced)
    require(set(enforced) >= set(ENFORCED), "enforced lacks keys", enforced)
    for key, value in enforced.items():
        require(value is None or (isinstance(value, str) and value != ""), f"enforced.{key}", enforced)


def check_missing(missing: Any) -> None:
    """The list of what could not be had."""
    require(isinstance(missing, list), "missing is not a list", missing)
    for entry in missing:
        require(isinstance(entry, dict) and set(entry) >= {"name", "why", "hint"}, "entry of missing", entry)
        require(isinstance(entry["name"], str) and isinstance(entry["why"], str), "entry of missing", entry)


def check_usage(usage: Any, has_started: bool) -> None:
    """What the tree used; all null where nothing ran."""
    require(isinstance(usage, dict) and set(usage) >= set(USAGE), "usage lacks keys", usage)
    if not has_started:
        require(all(value is None for value in usage.values()), "usage of a run that never started", usage)
        return
    for key in ("wall_ms", "user_ms", "system_ms"):
        require(is_number(usage[key]) and usage[key] >= 0, f"usage.{key}", usage)
    require(is_int(usage["peak_memory_bytes"]) and usage["peak_memory_bytes"] > 0, "usage.peak_memory_bytes", usage)
    require(usage["memory_by"] in MEMORY_BY, "usage.memory_by", usage)
    is_sampled = usage["memory_by"] in ("maxrss", "meter")
    require(usage["peak_memory_is_lower_bound"] is is_sampled, "usage.peak_memory_is_lower_bound", usage)
    peak = usage["peak_processes"]
    require(peak is None or (is_int(peak) and peak >= 1), "usage.peak_processes", usage)


def check_error(error: Any) -> None:
    """The error record."""
    require(isinstance(error, dict) and set(error) >= {"stage", "errno", "message", "hint"}, "error", error)
    require(error["stage"] in STAGES, "unknown stage", error)
    require(error["errno"] is None or isinstance(error["errno"], (int, str)), "errno", error)
    require(isinstance(error["message"], str) and error["message"] != "", "no message", error)
    require(error["hint"] is None or isinstance(error["hint"], str), "hint", error)


def _check_end(result: Result) -> None:
    outcome = result["outcome"]
    require(result["killed"] is (outcome in KILLED), "killed does not fit the outcome", result)
    require(result["timed_out"] is (outcome == "timeout"), "timed_out does not fit the outcome", result)
    if outcome == "exited":
        require(is_int(result["exit_code"]) and 0 <= result["exit_code"] <= 255, "exit_code", result)
    else:
        require(result["exit_code"] is None, "exit_code is set only for exited", result)
    if outcome in ("exited", "failed"):
        require(result["signal"] is None, "signal without one", result)
    elif outcome == "signaled":
        require(isinstance(result["signal"], str), "signaled without a signal", result)
    if result["signal"] is not None:
        require(signal_number(result["signal"]) > 0, "unknown signal", result)
    if outcome == "failed":
        check_error(result["error"])
    elif result["error"] is not None:
        check_error(result["error"])
        has_cause = outcome == "cancelled" and result["error"]["stage"] in ("output", "limits", "isolate")
        require(has_cause, "error of a run that began", result)


def _check_output(result: Result) -> None:
    for stream in ("stdout", "stderr"):
        text, count = result[stream], result[stream + "_bytes"]
        require(text is None or isinstance(text, str), stream, result)
        require(is_int(count) and count >= 0, f"{stream}_bytes", result)
        encoded = result.get(stream + "_base64")
        if encoded is not None:
            base64.b64decode(encoded, validate=True)
    is_captured = result["stdout"] is not None
    require((result["stderr"] is not None) is is_captured, "one stream captured and not the other", result)
    if is_captured:
        require(result["encoding"] in ("utf-8", "utf-8-lossy"), "encoding", result)
    else:
        require(result["encoding"] in ("utf-8", "utf-8-lossy", None), "encoding", result)
    require(isinstance(result["truncated"], bool), "truncated", result)


def _has_started(result: Result) -> bool:
    """Whether the command ran. A run whose jar takes too long to make may time out, or be cancelled, before that."""
    if result["outcome"] not in ("timeout", "cancelled"):
        return bool(result["outcome"] != "failed")
    was_seen = result["signal"] is not None or result["stdout_bytes"] > 0 or result["stderr_bytes"] > 0
    return was_seen or isinstance(result["usage"], dict) and result["usage"].get("wall_ms") is not None


RESULT_KEYS = (
    "version outcome exit_code signal timed_out killed stdout stderr encoding stdout_bytes stderr_bytes truncated "
    "limits_hit usage network denied denied_more enforced missing risky workspace error"
).split()


def check_result(value: Any) -> Result:
    """The whole object; returns it."""
    require(isinstance(value, dict), "the result is not an object", value)
    result: Result = value
    lacking = [key for key in RESULT_KEYS if key not in result]
    require(not lacking, f"the result lacks {lacking}", result)
    require(result["version"] == 1, "version", result)
    require(result["outcome"] in OUTCOMES, "outcome", result)
    _check_end(result)
    _check_output(result)
    require(isinstance(result["limits_hit"], list), "limits_hit", result)
    for limit in result["limits_hit"]:
        check_limit(limit)
    for denial in result["denied"]:
        check_denial(denial)
    require(is_int(result["denied_more"]), "denied_more", result)
    names = [limit["name"] for limit in result["limits_hit"]]
    require(len(names) == len(set(names)), "a limit is listed twice", result)
    told = [denial["what"] for denial in result["denied"] if denial["kind"] == "limit"]
    require(sorted(told) == sorted(names), "limits_hit and denied tell other limits", result)
    if result["outcome"] in ("timeout", "memory", "disk", "output"):
        require(result["outcome"] in names, "the limit that ended the run is not in limits_hit", result)
    if result["outcome"] == "net":
        require("net_bytes" in names, "the limit that ended the run is not in limits_hit", result)
    if result["outcome"] == "cpu":
        require("cpu_time" in names, "the limit that ended the run is not in limits_hit", result)
    check_usage(result["usage"], _has_started(result))
    check_enforced(result["enforced"])
    if result["outcome"] != "failed":
        require(result["enforced"]["rung"] in RUNGS, "rung", result)
    check_missing(result["missing"])
    require(isinstance(result["risky"], list), "risky", result)
    for entry in result["risky"]:
        require(isinstance(entry, dict) and set(entry) >= {"path", "why"}, "entry of risky", entry)
    return result


def expected_status(result: Result) -> Optional[int]:
    """The exit status that goes with a result; None where it depends on the signal to belljar."""
    outcome, error = result["outcome"], result["error"]
    if outcome == "exited":
        return int(result["exit_code"])
    if outcome == "signaled":
        return 128 + signal_number(result["signal"])
    if outcome == "timeout":
        return 124
    if outcome == "cancelled":
        return 125 if error else None
    if outcome == "failed":
        if error["stage"] != "exec":
            return 125
        return 127 if error["errno"] in ("ENOENT", 2) else 126
    return 137


def check_status(result: Result, status: int) -> None:
    """The exit status and the result tell the same story."""
    expected = expected_status(result)
    if expected is not None:
        require(status == expected, f"exit status {status} instead of {expected}", result)
    else:
        require(status in (129, 130, 131, 143), f"exit status {status} of a cancelled run", result)


def _check_event(event: Event, with_bytes: bool) -> None:
    kind = event["event"]
    if kind == "start":
        for key in ("argv", "workdir", "rung", "enforced", "missing", "limits"):
            require(key in event, f"start lacks {key}", event)
        require(all(isinstance(word, str) for word in event["argv"]) and event["argv"], "argv", event)
        require(isinstance(event["workdir"], str), "workdir", event)
        require(event["rung"] in RUNGS, "rung", event)
        check_enforced(event["enforced"])
        check_missing(event["missing"])
        require(isinstance(event["limits"], dict), "limits", event)
    elif kind == "output":
        require(event["stream"] in ("stdout", "stderr"), "stream", event)
        require(is_int(event["bytes"]) and 1 <= event["bytes"] <= EVENT_BYTES_MAX, "bytes", event)
        if with_bytes:
            require("text" not in event, "text beside base64", event)
            decoded = base64.b64decode(event["base64"], validate=True)
            require(len(decoded) == event["bytes"], "bytes is not the length", event)
        else:
            require(isinstance(event["text"], str) and event["text"] != "", "text", event)
    elif kind == "limit":
        check_limit(event["limit"])
    elif kind == "denied":
        check_denial(event["denied"])
    elif kind == "result":
        check_result(event["result"])


def check_events(raw: bytes, with_bytes: bool = False) -> List[Event]:
    """A whole event stream; returns the events."""
    require(raw.endswith(b"\n"), "the last event is not a whole line", raw[-2000:])
    events: List[Event] = []
    for line in raw.splitlines(keepends=True):
        event = parse_line(line)
        require(isinstance(event, dict), "an event is not an object", event)
        require(set(event) >= {"event", "seq", "t_ms"}, "an event lacks keys", event)
        require(event["seq"] == len(events), f"seq is not {len(events)}", event)
        require(is_number(event["t_ms"]) and event["t_ms"] >= 0, "t_ms", event)
        if events:
            require(event["t_ms"] >= events[-1]["t_ms"], "t_ms goes back", event)
        if event["event"] in EVENTS:
            _check_event(event, with_bytes)
        events.append(event)
    kinds = [event["event"] for event in events]
    require(kinds.count("result") == 1 and kinds[-1] == "result", "not exactly one result, last", kinds)
    result = events[-1]["result"]
    if result["outcome"] == "failed":
        require(len(events) == 1, "events of a run that never started", kinds)
    else:
        require(kinds.count("start") == 1 and kinds[0] == "start", "not exactly one start, first", kinds)
    names = [event["limit"]["name"] for event in events if event["event"] == "limit"]
    require(len(names) == len(set(names)), "a limit is told twice", names)
    told = [(event["denied"]["kind"], event["denied"]["what"], event["denied"]["why"]) for event in events if event["event"] == "denied"]
    require(len(told) == len(set(told)), "a refusal is told twice", told)
    require(set(names) == {limit["name"] for limit in result["limits_hit"]}, "limit events and limits_hit differ", raw)
    return events


def stream_text(events: List[Event], stream: str) -> str:
    """The text of one stream, put together."""
    return "".join(e["text"] for e in events if e["event"] == "output" and e["stream"] == stream)


def stream_bytes(events: List[Event], stream: str) -> bytes:
    """The bytes of one stream from base64 events, put together."""
    parts = (e["base64"] for e in events if e["event"] == "output" and e["stream"] == stream)
    return b"".join(base64.b64decode(part) for part in parts)


def limit_of(result: Result, name: str) -> Optional[Dict[str, Any]]:
    """The entry of limits_hit with this name."""
    for limit in result["limits_hit"]:
        if limit["name"] == name:
            return dict(limit)
    return None
