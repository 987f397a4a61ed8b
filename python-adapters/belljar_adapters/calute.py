# SPDX-License-Identifier: Apache-2.0
"""In place of the sandbox modules of Calute and Xerxes: which tools run in a sandbox, and the back end that runs them.

    from belljar.adapters.calute import SandboxConfig, SandboxMode, SandboxRouter, SubprocessSandboxBackend

`SubprocessSandboxBackend` is the drop-in: what it says of itself is what its callers expect, and the truth is under the key
`belljar`. The back end registered as "belljar" is the same but says the truth everywhere.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import logging
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Set, Type

from belljar._errors import BelljarError, CallEnded, CallError, CallTimeout, ResultError, SendError

__all__ = [
    "BelljarSandboxBackend",
    "ExecutionContext",
    "ExecutionDecision",
    "SandboxBackend",
    "SandboxBackendConfig",
    "SandboxConfig",
    "SandboxExecutionUnavailableError",
    "SandboxMode",
    "SandboxRouter",
    "SubprocessSandboxBackend",
    "get_backend",
    "list_backends",
    "register_backend",
]

_logger = logging.getLogger(__name__)

_WARN_REASON = "Warn mode advisory: tool would run in sandbox, executing on host"


class SandboxMode(enum.Enum):
    """off: nothing is sandboxed; warn: what would be is only logged; strict: it is."""

    OFF = "off"
    WARN = "warn"
    STRICT = "strict"


class ExecutionContext(enum.Enum):
    """Where a tool runs."""

    HOST = "host"
    SANDBOX = "sandbox"


@dataclasses.dataclass
class SandboxBackendConfig:
    """What a back end may need. image and extra_args are for other back ends; there are no images here."""

    image: str = "python:3.12-slim"
    mount_paths: Dict[str, str] = dataclasses.field(default_factory=dict)
    mount_readonly: bool = True
    env_vars: Dict[str, str] = dataclasses.field(default_factory=dict)
    extra_args: Dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class SandboxConfig:
    """Which tools are sandboxed, and with which limits."""

    mode: SandboxMode = SandboxMode.OFF
    sandboxed_tools: Set[str] = dataclasses.field(default_factory=set)
    elevated_tools: Set[str] = dataclasses.field(default_factory=set)
    sandbox_timeout: float = 30.0
    sandbox_memory_limit_mb: int = 512
    sandbox_network_access: bool = False
    working_directory: Optional[str] = None
    backend_type: Optional[str] = None
    backend_config: SandboxBackendConfig = dataclasses.field(default_factory=SandboxBackendConfig)


@dataclasses.dataclass
class ExecutionDecision:
    """Where a tool is to run, and why."""

    context: ExecutionContext
    tool_name: str
    reason: str


class SandboxExecutionUnavailableError(RuntimeError):
    """A tool must be sandboxed, and there is nothing to do it."""

    def __init__(self, tool_name: str) -> None:
        super().__init__(f"Tool {tool_name!r} requires sandbox execution, but no sandbox backend is configured")
        self.tool_name = tool_name


class SandboxBackend(Protocol):
    """What a back end has."""

    def execute(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        """func(**arguments) in the sandbox; RuntimeError if that fails."""

    def is_available(self) -> bool:
        """Whether it can run here."""

    def get_capabilities(self) -> Dict[str, Any]:
        """What it is, and what it isolates."""


class SandboxRouter:
    """Decides for each tool where it runs."""

    def __init__(self, config: Optional[SandboxConfig] = None, backend: Any = None) -> None:
        self.config = config if config is not None else SandboxConfig()
        self.backend = backend

    def decide(self, tool_name: str) -> ExecutionDecision:
        """Where the tool is to run."""
        config = self.config
        is_listed = tool_name in config.sandboxed_tools
        if tool_name in config.elevated_tools:
            return ExecutionDecision(ExecutionContext.HOST, tool_name, "Tool is marked as elevated")
        if config.mode is SandboxMode.OFF:
            return ExecutionDecision(ExecutionContext.HOST, tool_name, "Sandbox mode is off")
        if is_listed and config.mode is SandboxMode.WARN:
            _logger.warning("Tool %r would run in sandbox; the mode is warn, so it runs on the host", tool_name)
            return ExecutionDecision(ExecutionContext.HOST, tool_name, _WARN_REASON)
        if is_listed:
            return ExecutionDecision(ExecutionContext.SANDBOX, tool_name, "Strict sandbox enforcement")
        return ExecutionDecision(ExecutionContext.HOST, tool_name, "Tool not designated for sandbox")

    def execute_in_sandbox(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        """func(**arguments) by the back end; there is no falling back to the host."""
        if self.backend is None:
            raise SandboxExecutionUnavailableError(tool_name)
        return self.backend.execute(tool_name, func, arguments)


class SubprocessSandboxBackend:
    """Calls tool functions in jars, each call in a process of its own. Only data comes back."""

    def __init__(self, sandbox_config: SandboxConfig) -> None:
        self._config = sandbox_config
        self._lock = threading.Lock()
        self._pool: Any = None
        self._enforced: Optional[Dict[str, Any]] = None

    # --- calling ---

    def _jar_keys(self) -> Dict[str, Any]:
        """The policy keys that are fixed for a jar."""
        config = self._config
        keys: Dict[str, Any] = {}
        if config.sandbox_network_access:
            keys["net"] = "host"
        if config.working_directory is not None:
            keys["workdir"] = config.working_directory
        mounts = [{"path": path, "dest": dest} for path, dest in config.backend_config.mount_paths.items()]
        if mounts:
            keys["ro" if config.backend_config.mount_readonly else "rw"] = mounts
        return keys

    def _run_keys(self) -> Dict[str, Any]:
        """The options of each call."""
        config = self._config
        keys: Dict[str, Any] = {"timeout": config.sandbox_timeout, "memory": f"{config.sandbox_memory_limit_mb}M"}
        if config.backend_config.env_vars:
            keys["env"] = dict(config.backend_config.env_vars)
        return keys

    def _caller(self) -> Callable[..., Any]:
        """belljar.call, or the same of a pool whose jars have what this configuration asks for."""
        import belljar

        keys = self._jar_keys()
        if not keys:
            return belljar.call
        with self._lock:
            if self._pool is None:
                self._pool = belljar.Pool(memory=f"{self._config.sandbox_memory_limit_mb}M", **keys)
            return self._pool.call  # type: ignore[no-any-return]

    def execute(self, tool_name: str, func: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """func(**arguments) in a jar; every failure is a RuntimeError."""
        head = f"Subprocess sandbox execution of tool {tool_name!r}"
        try:
            return self._caller()(functools.partial(func, **arguments), **self._run_keys())
        except CallTimeout as error:
            raise RuntimeError(f"{head} timed out after {self._config.sandbox_timeout}s") from error
        except CallEnded as error:
            result = error.result
            status, stderr = (result.returncode, str(result.stderr).strip()) if result is not None else (-1, str(error))
            if result is not None and result.outcome == "memory":
                stderr = f"{stderr}\n" if stderr else ""
                stderr += f"it used more than its memory of {self._config.sandbox_memory_limit_mb} MB, and was killed"
            raise RuntimeError(f"{head} failed (exit {status}): {stderr}") from error
        except ResultError as error:
            raise RuntimeError(f"Failed to deserialise subprocess sandbox result for tool {tool_name!r}: {error}") from error
        except CallError as error:
            name = (error.type_name or "Exception").rpartition(".")[2]
            raise RuntimeError(f"Tool {tool_name!r} raised {name} inside subprocess sandbox: {error.message}") from error
        except SendError as error:
            raise RuntimeError(f"Tool {tool_name!r} cannot be sent to the subprocess sandbox: {error}") from error
        except BelljarError as error:
            raise RuntimeError(f"{head} failed (exit -1): {error}") from error

    def close(self) -> None:
        """Let go of the jars of this back end, if it has any of its own."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    # --- what it is ---

    def _look(self) -> Optional[Dict[str, Any]]:
        """What really holds, seen in a jar of this configuration; None where there can be none."""
        from .._run import run

        if self._enforced is None:
            # Not the caller's current directory unless it is asked for: a look needs nothing.
            keys = {"workdir": None, **self._jar_keys(), **self._run_keys()}
            try:
                self._enforced = run(["/bin/true"], **keys).enforced
            except BelljarError as error:
                _logger.debug("no jar can be made: %s", error)
        return self._enforced

    def is_available(self) -> bool:
        """Whether the engine can run here."""
        return self._look() is not None

    def get_capabilities(self) -> Dict[str, Any]:
        """What callers of the replaced back end expect to read; `belljar` has what is really enforced."""
        return {
            "backend": "subprocess",
            "available": self.is_available(),
            "isolation_level": "process",
            "filesystem_isolation": False,
            "network_isolation": False,
            "memory_limit_mb": self._config.sandbox_memory_limit_mb,
            "timeout": self._config.sandbox_timeout,
            "belljar": {"enforced": self._look()},
        }


class BelljarSandboxBackend(SubprocessSandboxBackend):
    """The same back end, under its own name and with its own strength."""

    def get_capabilities(self) -> Dict[str, Any]:
        """The truth, in the keys themselves."""
        enforced = self._look() or {}

        def holds(name: str) -> bool:
            return enforced.get(name) not in (None, "none")

        return {
            **super().get_capabilities(),
            "backend": "belljar",
            "isolation_level": enforced.get("rung") or "none",
            "filesystem_isolation": holds("filesystem"),
            "network_isolation": holds("network"),
        }


# --- the registry ---

_backends: Dict[str, Type[Any]] = {}


def register_backend(name: str, cls: Type[Any]) -> None:
    """Make a back end known under a name; the last one wins."""
    _backends[name] = cls


def get_backend(name: str, sandbox_config: Optional[SandboxConfig] = None) -> Any:
    """A back end of that name for this configuration."""
    if name not in _backends:
        raise ValueError(f"Unknown sandbox backend {name!r}. Available backends: {', '.join(list_backends())}")
    return _backends[name](sandbox_config if sandbox_config is not None else SandboxConfig())


def list_backends() -> List[str]:
    """The names that are known."""
    return sorted(_backends)


register_backend("subprocess", SubprocessSandboxBackend)
register_backend("belljar", BelljarSandboxBackend)
