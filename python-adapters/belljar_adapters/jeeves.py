# SPDX-License-Identifier: Apache-2.0
"""In place of the sandboxes of jeevesagent and LoomFlow: tool hosts that stand before another tool host.

    from belljar.adapters.jeeves import SubprocessSandbox, FilesystemSandbox, CodeRunner

`SubprocessSandbox` calls every tool of an InProcessToolHost in a jar. `FilesystemSandbox` refuses calls whose paths lead out
of its roots; it looks before the call, so it keeps honest tools in place, while a jar holds hostile ones. `CodeRunner` runs
programs: files go in, what they leave under ./out/ comes back.

The framework's own types are used, of loomflow or jeevesagent, whichever is installed; this module needs neither to be
imported. All of it works under asyncio, trio and anyio.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pickle
import sys
import types
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from belljar._code_runner import CodeRunner as CodeRunner
from belljar._code_runner import ExecResult as ExecResult
from belljar._code_runner import run as run
from belljar._errors import BelljarError, CallEnded, CallError, CallTimeout, ResultError, SendError
from belljar._path_rules import PathRules
from belljar._policy import PolicyLike
from belljar._tool import jar_and_options

__all__ = ["CodeRunner", "ExecResult", "FilesystemSandbox", "SubprocessSandbox", "run"]

FRAMEWORKS = ("loomflow", "jeevesagent")
# Where a framework keeps what is not offered by its top module.
_HOMES = {"InProcessToolHost": ("", ".tools"), "ToolResult": ("", ".core.types"), "ConfigError": ("", ".core.errors")}


# --- the framework ---


def _find(framework: str, name: str) -> Any:
    for home in _HOMES[name]:
        try:
            found = getattr(importlib.import_module(framework + home), name, None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def _frameworks() -> List[types.SimpleNamespace]:
    """The types of each framework that is installed."""
    found = []
    for framework in FRAMEWORKS:
        parts = {name: _find(framework, name) for name in _HOMES}
        if all(parts.values()):
            found.append(types.SimpleNamespace(**parts))
    if not found:
        raise ModuleNotFoundError(
            "belljar.adapters.jeeves needs the framework whose tools it holds: install loomflow, or jeevesagent"
        )
    return found


def _framework_of(inner: Any) -> Any:
    """The framework that the tool host belongs to; the first one if that cannot be told."""
    frameworks = _frameworks()
    for framework in frameworks:
        if isinstance(inner, framework.InProcessToolHost):
            return framework
    names = [type(inner).__module__.partition(".")[0], type(getattr(inner, "inner", None)).__module__.partition(".")[0]]
    for framework in frameworks:
        if framework.ToolResult.__module__.partition(".")[0] in names:
            return framework
    return frameworks[0]


# --- tools in jars ---


class _Behind:
    """A tool host that stands before another one."""

    _inner: Any

    @property
    def inner(self) -> Any:
        """The tool host behind it."""
        return self._inner

    def register(self, tool: Any) -> Any:
        """Add a tool to the host behind it."""
        return self._inner.register(tool)

    async def list_tools(self, *, query: Optional[str] = None) -> Any:
        """As the host behind it."""
        return await self._inner.list_tools(query=query)

    def watch(self) -> Any:
        """As the host behind it."""
        return self._inner.watch()


class SubprocessSandbox(_Behind):
    """A tool host whose tools run in jars: nothing of the host to see, limits that hold, and only data comes back.

    inner: an InProcessToolHost. policy and keys: what @belljar.tool takes: files and network for the jars (workdir=, ro=, rw=,
    net= ...), and options of each call, such as memory="1G" or types=[...].
    """

    def __init__(self, inner: Any, *, timeout_seconds: float = 30.0, policy: PolicyLike = None, **keys: Any) -> None:
        if timeout_seconds <= 0:
            raise ValueError("timeout_seconds must be positive")
        framework = _framework_of(inner)
        if not isinstance(inner, framework.InProcessToolHost):
            raise framework.ConfigError(
                "SubprocessSandbox wraps InProcessToolHost only (it needs access to the registered Tool.fn callable). "
                f"Got {type(inner).__name__}."
            )
        self._inner = inner
        self._timeout_seconds = timeout_seconds
        self._pool, self._options = jar_and_options(None, policy, {"on_output": _print, **keys, "timeout": timeout_seconds})
        self._result = framework.ToolResult

    @property
    def timeout_seconds(self) -> float:
        """How long a call may take."""
        return self._timeout_seconds

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        """The tool's function in a jar. Whatever goes wrong with it is a result that says so; only cancelling raises."""
        found = self._inner.get(tool)
        if found is None:
            return self._result.error_(call_id=call_id, message=f"unknown tool: {tool}")
        try:
            output = await self._run(tool, found.fn, dict(args))
        except CallTimeout:
            message = f"tool exceeded {self._timeout_seconds}s"
        except CallEnded as error:
            message = "subprocess exited without producing a result"
            if error.result is not None and error.result.outcome == "memory":
                message = f"tool was killed: it used more memory than it may ({error})"
        except ResultError as error:
            message = f"the tool's result is not data: {error}"
        except CallError as error:
            message = f"tool raised {(error.type_name or 'Exception').rpartition('.')[2]}: {error.message}"
        except _NotPicklable as error:
            message = str(error)
        except BelljarError as error:
            message = f"the tool was not run: {error}"
        else:
            return self._result.success(call_id=call_id, output=output)
        return self._result.error_(call_id=call_id, message=f"SubprocessSandbox: {message}")

    async def _run(self, tool: str, fn: Any, args: Dict[str, Any]) -> Any:
        is_behind = _is_behind_its_name(fn)
        try:
            # The contract is plain pickle, though closures could be sent by value.
            pickle.dumps((None if is_behind else fn, args))
        except Exception as error:
            raise _NotPicklable(tool, error) from error
        work = functools.partial(_call, fn, args)
        if is_behind and fn.__module__ != "__main__":
            work = functools.partial(_call_behind, fn.__module__, fn.__qualname__, args)
        try:
            with self._pool() as pool:
                return await pool._call_async(work, (), {}, self._options)
        except SendError as error:
            raise _NotPicklable(tool, error) from error


def _behind(module: str, qualname: str) -> Any:
    """The function of the framework's Tool that has that name."""
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found.fn


def _is_behind_its_name(fn: Any) -> bool:
    """Whether the name of a function leads to a Tool around it: so does the framework's decorator, and pickle gives up."""
    try:
        return _behind(fn.__module__, fn.__qualname__) is fn
    except (AttributeError, ImportError):
        return False


def _call(fn: Any, args: Mapping[str, Any]) -> Any:
    """In the jar: a SystemExit is one exception of many, and does not end the process."""
    try:
        value = fn(**args)
    except SystemExit as error:
        raise _relayed(error) from None
    return _finish(value) if isinstance(value, types.CoroutineType) else value


async def _finish(work: Any) -> Any:
    try:
        return await work
    except SystemExit as error:
        raise _relayed(error) from None


def _relayed(error: BaseException) -> Exception:
    """An exception with the same name and words, that is told like any other."""
    return type(type(error).__name__, (Exception,), {})(str(error))  # type: ignore[no-any-return]


def _call_behind(module: str, qualname: str, args: Mapping[str, Any]) -> Any:
    """In the jar."""
    return _call(_behind(module, qualname), args)


def _print(stream: str, data: bytes) -> None:
    """What a tool prints goes where its caller's prints go."""
    file = sys.stdout if stream == "stdout" else sys.stderr
    # A stream that is closed, or full, is no reason to end the call.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if hasattr(file, "buffer"):
            file.flush()
            file.buffer.write(data)
        else:
            file.write(data.decode("utf-8", "replace"))
        file.flush()


class _NotPicklable(Exception):
    def __init__(self, tool: str, error: BaseException) -> None:
        super().__init__(
            f"tool {tool!r} or its arguments are not picklable ({error}). Use a module-level function and primitive args."
        )


# --- paths that stay inside ---


class FilesystemSandbox(_Behind):
    """A tool host that denies calls with paths outside its roots, links resolved, however deep in the arguments they are.

    path_args: names of arguments that are paths. auto_detect: so are those with names like path, output_file or src_dir, and
    texts that begin like a path (/, ~, ./, ../). Relative paths start at the current directory.
    """

    def __init__(
        self,
        inner: Any,
        *,
        roots: Iterable[Union[str, "os.PathLike[str]"]],
        path_args: Optional[Iterable[str]] = None,
        auto_detect: bool = True,
    ) -> None:
        self._rules = PathRules(roots, path_args, auto_detect)
        self._inner = inner
        self._result = _framework_of(inner).ToolResult

    @property
    def roots(self) -> Tuple[Path, ...]:
        """Where paths may lead, links resolved."""
        return self._rules.roots

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        """The call, unless one of its paths leads outside."""
        reason = self._rules.refusal(args)
        if reason is not None:
            return self._result.denied_(call_id=call_id, reason=reason)
        return await self._inner.call(tool, args, call_id=call_id)
