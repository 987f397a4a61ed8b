# SPDX-License-Identifier: Apache-2.0
"""In place of backend.secuscan.sandbox_executor: scanner commands for asyncio, with limits and live output.

    from belljar.adapters.secuscan import sandbox_execute

Each command runs in a jar of its own. Secrets of known shapes are replaced by [REDACTED] before output is delivered live and
before it is returned. `POLICY` holds further policy keys for all commands, such as {"ro": ["/srv/wordlists"]}.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import inspect
import os
import re
import resource
import sys
import types
from typing import Any, Awaitable, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from belljar._async import run_async
from belljar._errors import StartError
from belljar._result import Result

__all__ = [
    "CHUNK_SIZE",
    "IS_LINUX",
    "SIGTERM_GRACE",
    "SandboxConfig",
    "SandboxViolation",
    "classify_memory_violation",
    "resolve_sandbox_config",
    "sandbox_execute",
]

POLICY: Dict[str, Any] = {}

CHUNK_SIZE = 65536
SIGTERM_GRACE = 3.0
IS_LINUX = sys.platform.startswith("linux")
MEMORY_SHARE = 0.95

# What a caller keeps as the state of a task.
TASK_STATES = {
    "timeout": "terminated:timeout",
    "memory_limit": "terminated:memory_limit",
    "output_limit": "terminated:output_limit",
}

# Used where the application's own are not loaded; see _settings.
settings = types.SimpleNamespace(
    sandbox_timeout=600, sandbox_memory_mb=512, sandbox_max_output_bytes=5_242_880, sandbox_allow_network=True
)
_APPLICATION_SETTINGS = "backend.secuscan.config"
_SETTING_OF_FIELD = {
    "timeout_seconds": "sandbox_timeout",
    "max_memory_mb": "sandbox_memory_mb",
    "max_output_bytes": "sandbox_max_output_bytes",
    "allow_network": "sandbox_allow_network",
}

Broadcast = Callable[[bytes, str], Awaitable[Any]]


class SandboxViolation(Exception):
    """A limit ended a task."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# As the application's own model reads them.
_ZERO_FRACTION = re.compile(r"\.0+(?=\s*\Z)")
_TRUE, _FALSE = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")


def _read_bool(name: str, value: Any) -> bool:
    word = value.lower() if isinstance(value, str) else value
    if isinstance(word, bool) or (isinstance(word, (int, float)) and word in (0, 1)):
        return bool(word)
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"{name} must be true or false, not {value!r}")


def _read_number(name: str, value: Any) -> int:
    least = 1 if name == "max_memory_mb" else 0
    try:
        if isinstance(value, (str, bytes)):
            number: Optional[int] = int(_ZERO_FRACTION.sub("", value if isinstance(value, str) else value.decode("ascii")))
        else:
            number = int(value) if value == int(value) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return number


class SandboxConfig:
    """Limits of one command. Which of them were given is remembered, for resolve_sandbox_config; a timeout of 0 is none.

    It has the methods of a pydantic model that callers use, and takes what such a model takes: "5" for a number, "no" for
    false; fields that it does not know are ignored. ValueError for what makes no sense.
    """

    timeout_seconds: int = 120
    max_memory_mb: int = 512
    max_output_bytes: int = 5_242_880
    allow_network: bool = True

    def __init__(self, **fields: Any) -> None:
        self.model_fields_set: FrozenSet[str] = frozenset()
        for name, value in fields.items():
            if name in _SETTING_OF_FIELD:
                setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SETTING_OF_FIELD:
            value = _read_bool(name, value) if name == "allow_network" else _read_number(name, value)
            self.model_fields_set |= {name}
        super().__setattr__(name, value)

    @classmethod
    def model_validate(cls, obj: Any) -> SandboxConfig:
        """From a mapping, or from another model, whichever class it is of."""
        if isinstance(obj, Mapping):
            return cls(**obj)
        return cls(**{name: getattr(obj, name) for name in _SETTING_OF_FIELD if hasattr(obj, name)})

    def model_dump(self, **options: Any) -> Dict[str, Any]:
        """The fields as a dict; exclude_unset, include and exclude are heeded, and no field is ever None."""
        names = [name for name in _SETTING_OF_FIELD if not options.get("exclude_unset") or name in self.model_fields_set]
        include, exclude = options.get("include"), options.get("exclude") or ()
        return {name: getattr(self, name) for name in names if (include is None or name in include) and name not in exclude}

    def model_copy(self, *, update: Optional[Mapping[str, Any]] = None, deep: bool = False) -> SandboxConfig:
        """Another one, with some fields changed."""
        return type(self)(**{**self.model_dump(exclude_unset=True), **(update or {})})

    def __eq__(self, other: object) -> bool:
        return self.model_dump() == other.model_dump() if isinstance(other, SandboxConfig) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "SandboxConfig(" + ", ".join(f"{name}={value!r}" for name, value in self.model_dump().items()) + ")"


def _settings() -> Any:
    """The application's settings if it has loaded them; nothing is imported for it."""
    module = sys.modules.get(_APPLICATION_SETTINGS)
    return getattr(module, "settings", settings)


def _given(config: Any) -> Mapping[str, Any]:
    """The fields that were given, whatever holds them: our class, a mapping, a model of the application's."""
    if config is None:
        return {}
    if not isinstance(config, Mapping) and not hasattr(config, "timeout_seconds") and hasattr(config, "sandbox"):
        return _given(config.sandbox)
    if isinstance(config, Mapping):
        if isinstance(config.get("sandbox"), Mapping):
            return _given(config["sandbox"])
        return {name: config[name] for name in _SETTING_OF_FIELD if name in config}
    names = getattr(config, "model_fields_set", None)
    if names is None:
        names = getattr(config, "__fields_set__", _SETTING_OF_FIELD)
    return {name: getattr(config, name) for name in _SETTING_OF_FIELD if name in names and hasattr(config, name)}


def resolve_sandbox_config(plugin_sandbox: Any = None) -> SandboxConfig:
    """The limits for a plugin: each field that it gives, and the global setting for each that it does not."""
    given = _given(plugin_sandbox)
    current = _settings()
    fields = {}
    for name, setting in _SETTING_OF_FIELD.items():
        fields[name] = given[name] if name in given else getattr(current, setting, getattr(settings, setting))
    return SandboxConfig(**fields)


def classify_memory_violation(exit_code: int, stderr_text: str, rss_bytes: int, limit_bytes: int) -> bool:
    """A guess from the outside, kept for its callers. The verdict of sandbox_execute rests on what the kernel says."""
    if exit_code in (-11, 139):
        return True
    words = stderr_text.lower()
    if "memoryerror" in words or "cannot allocate memory" in words:
        return True
    return exit_code != 0 and limit_bytes > 0 and rss_bytes >= int(limit_bytes * MEMORY_SHARE)


async def _terminate_process(process: Any) -> None:
    """Ask a process of asyncio's to end, wait for the grace, kill it, wait. Nothing happens if it is gone."""
    try:
        process.terminate()
    except ProcessLookupError:
        return
    try:
        await asyncio.wait_for(process.wait(), SIGTERM_GRACE)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _build_preexec_fn(config: Any) -> Callable[[], None]:
    """For a process that is started without a jar: a function that bounds its address space."""
    limit = int(config.max_memory_mb) << 20

    def set_limits() -> None:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))

    return set_limits


async def _read_stream(
    stream: Any,
    buffer: bytearray,
    state: Dict[str, Any],
    broadcast_callback: Optional[Broadcast] = None,
    stream_name: str = "",
) -> None:
    """Read a stream of asyncio's into a buffer until it ends, or the bytes of all streams that share the state have reached their
    cap: `state` has `max_bytes`, `total_bytes` and `limit_hit`. What is kept is delivered too."""
    while not state["limit_hit"]:
        chunk = await stream.read(CHUNK_SIZE)
        if not chunk or state["limit_hit"]:
            return
        kept = chunk[: max(state["max_bytes"] - state["total_bytes"], 0)]
        state["limit_hit"] = len(kept) < len(chunk)
        state["total_bytes"] += len(kept)
        buffer.extend(kept)
        if kept and broadcast_callback is not None:
            await broadcast_callback(kept, stream_name)


def _violation(result: Result) -> Optional[str]:
    if result.outcome == "timeout":
        return "timeout"
    if result.outcome == "output":
        return "output_limit"
    # Also where only a child of the command was killed for it: the kernel's word, not the command's.
    if result.outcome == "memory" or any(hit.get("name") == "memory" for hit in result.limits_hit):
        return "memory_limit"
    return None


async def sandbox_execute(
    cmd: Sequence[str], config: Any, broadcast_callback: Optional[Broadcast] = None
) -> Tuple[str, str, int, Optional[str]]:
    """Run a command: (stdout, stderr, exit_code, violation), the last of them None, "timeout", "memory_limit" or
    "output_limit".

    The output cap holds for both streams together, exact to the byte. broadcast_callback is awaited with every chunk as it
    arrives; no chunk cuts a character of UTF-8. Cancelling the task ends all that the command started, then raises
    CancelledError. OSError if the command cannot be started.
    """
    on_output: Any = None
    if broadcast_callback is not None:
        callback = broadcast_callback

        async def deliver(stream: str, data: bytes) -> None:
            await callback(data, stream)

        on_output = deliver
    config = SandboxConfig.model_validate(config)
    keys: Dict[str, Any] = {
        "timeout": config.timeout_seconds or None,
        "grace": SIGTERM_GRACE,
        "memory": int(config.max_memory_mb) << 20,
        "output": int(config.max_output_bytes),
        "overflow": "kill",
        "net": "host" if config.allow_network else "none",
        "redact_secrets": True,
        **POLICY,
    }
    try:
        result = await run_async(list(cmd), on_output=on_output, **keys)
    except StartError as error:
        # As asyncio's own functions do, so that callers see FileNotFoundError and its like, in one line.
        raise OSError(error.errno, os.strerror(error.errno or 0), error.filename) from error
    return str(result.stdout), str(result.stderr), result.returncode, _violation(result)


async def _execute_command(
    command: Sequence[str],
    task_id: str,
    timeout: Optional[int] = 600,
    *,
    plugin: Any = None,
    broadcast: Optional[Callable[[str, str], Any]] = None,
) -> Tuple[str, int, Optional[str]]:
    """A task's command: (output, exit_code, violation). stderr follows stdout; broadcast(task_id, text) is called, and awaited
    if it can be, with each chunk. A timeout of None is the global one. Nothing but cancelling raises: what goes wrong is
    ("Execution error: ...", -1, None)."""
    decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}

    async def deliver(chunk: bytes, stream_name: str) -> None:
        text = decoders[stream_name].decode(chunk)
        if broadcast is not None and text:
            answer = broadcast(task_id, text)
            if inspect.isawaitable(answer):
                await answer

    try:
        config = resolve_sandbox_config(plugin)
        if timeout is not None:
            config.timeout_seconds = timeout
        stdout, stderr, exit_code, violation = await sandbox_execute(command, config, deliver)
    except Exception as error:
        return f"Execution error: {error}", -1, None
    output = f"{stdout}\n{stderr}" if stdout and stderr else stdout or stderr
    return output, exit_code, violation
