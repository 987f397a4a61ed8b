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
import resource
import sys
import types
from typing import Any, Awaitable, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from .._async import run_async
from .._errors import StartError
from .._result import Result

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


class SandboxConfig:
    """Limits of one command. Which of them were given is remembered, for resolve_sandbox_config; a timeout of 0 is none."""

    timeout_seconds: int = 120
    max_memory_mb: int = 512
    max_output_bytes: int = 5_242_880
    allow_network: bool = True

    def __init__(self, **fields: Any) -> None:
        unknown = sorted(set(fields) - set(_SETTING_OF_FIELD))
        if unknown:
            raise TypeError(f"SandboxConfig has no field '{unknown[0]}'")
        for name, value in fields.items():
            self._check(name, value)
            setattr(self, name, value)
        self.model_fields_set: FrozenSet[str] = frozenset(fields)

    @staticmethod
    def _check(name: str, value: Any) -> None:
        if name == "allow_network":
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false, not {value!r}")
            return
        least = 1 if name == "max_memory_mb" else 0
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < least:
            raise ValueError(f"{name} must be a number of at least {least}, not {value!r}")

    def _values(self) -> Tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _SETTING_OF_FIELD)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, SandboxConfig) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "SandboxConfig(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in _SETTING_OF_FIELD) + ")"


def _settings() -> Any:
    """The application's settings if it has loaded them; nothing is imported for it."""
    module = sys.modules.get(_APPLICATION_SETTINGS)
    return getattr(module, "settings", settings)


def _given(config: Any) -> Mapping[str, Any]:
    """The fields that were given, whatever holds them: our class, a mapping, a model of the application's."""
    if config is None:
        return {}
    if not isinstance(config, Mapping) and hasattr(config, "sandbox"):
        return _given(config.sandbox)
    if isinstance(config, Mapping):
        if isinstance(config.get("sandbox"), Mapping):
            return _given(config["sandbox"])
        return {name: config[name] for name in _SETTING_OF_FIELD if name in config}
    names = getattr(config, "model_fields_set", None)
    if names is None:
        names = getattr(config, "__fields_set__", _SETTING_OF_FIELD)
    return {name: getattr(config, name) for name in _SETTING_OF_FIELD if name in names and hasattr(config, name)}


def resolve_sandbox_config(plugin: Any = None) -> SandboxConfig:
    """The limits for a plugin: each field that it gives, and the global setting for each that it does not."""
    given = _given(plugin)
    current = _settings()
    fields = {}
    for name, setting in _SETTING_OF_FIELD.items():
        fields[name] = given[name] if name in given else getattr(current, setting, getattr(settings, setting))
    return SandboxConfig(**fields)


def classify_memory_violation(exit_code: int, stderr_text: str, rss_bytes: int, limit_bytes: int) -> bool:
    """A guess from the outside, kept for its callers. The verdict of sandbox_execute rests on what the kernel says."""
    if exit_code in (-11, 139):
        return True
    if "MemoryError" in stderr_text or "Cannot allocate memory" in stderr_text:
        return True
    return exit_code != 0 and limit_bytes > 0 and rss_bytes >= int(limit_bytes * MEMORY_SHARE)


async def _terminate_process(process: Any) -> None:
    """Ask a process of asyncio's to end, wait for the grace, kill it, wait."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
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
    stream: Any, stream_name: str, max_bytes: int, broadcast_callback: Optional[Broadcast] = None
) -> bytes:
    """Read a stream of asyncio's to its end; the first max_bytes are delivered and returned, the rest is dropped."""
    kept: List[bytes] = []
    room = max_bytes
    while True:
        chunk = await stream.read(CHUNK_SIZE)
        if not chunk:
            return b"".join(kept)
        chunk = chunk[:room]
        room -= len(chunk)
        if chunk:
            kept.append(chunk)
            if broadcast_callback is not None:
                await broadcast_callback(chunk, stream_name)


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
        # As asyncio's own functions do, so that callers see FileNotFoundError and its like.
        raise OSError(error.errno, str(error), error.filename) from error
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
    if it can be, with each chunk. A timeout of None is the global one."""
    config = resolve_sandbox_config(plugin)
    if timeout is not None:
        config.timeout_seconds = timeout
    decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}

    async def deliver(chunk: bytes, stream_name: str) -> None:
        text = decoders[stream_name].decode(chunk)
        if broadcast is not None and text:
            answer = broadcast(task_id, text)
            if inspect.isawaitable(answer):
                await answer

    stdout, stderr, exit_code, violation = await sandbox_execute(command, config, deliver)
    output = f"{stdout}\n{stderr}" if stdout and stderr else stdout or stderr
    return output, exit_code, violation
