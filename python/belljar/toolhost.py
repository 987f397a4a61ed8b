# SPDX-License-Identifier: Apache-2.0
"""Tool hosts: every tool of an agent in a jar with its own policy, behind three methods that any framework can wrap.

    from belljar.toolhost import JarToolHost

    host = JarToolHost()
    host.add(search, timeout=5)
    host.add(read_report, ro=["~/reports"], memory="1G")
    result = await host.call("search", {"query": "bell jars"}, call_id="17")
    result.ok, result.output

A tool host is whatever has `list_tools`, `call` and `watch` as below. `FilesystemSandbox` is one that stands before another
and denies calls whose paths lead outside; `CodeToolHost` has one tool that runs programs: files in, artifacts out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
from collections import deque
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Deque, Dict, Iterable, List, Mapping, Optional, Protocol, Set, Tuple, Union

from . import _loops
from ._call import Options
from ._code_runner import CodeRunner as CodeRunner
from ._code_runner import ExecResult as ExecResult
from ._errors import BelljarError, CallEnded, CallError, CallTimeout, PolicyError
from ._path_rules import PathRules
from ._keys import CALL_OPTIONS
from ._policy import PolicyLike, encode, normal_keys, wire_form
from ._pool import Pool, hidden_pool

__all__ = [
    "CodeRunner",
    "CodeToolHost",
    "ExecResult",
    "FilesystemSandbox",
    "JarToolHost",
    "Tool",
    "ToolEvent",
    "ToolHost",
    "ToolResult",
    "Watch",
]

# Events that a watcher has not taken; the oldest go first.
MAX_EVENTS = 1000

# The names of JSON Schema for annotations that have one.
_SCHEMA_TYPES: Dict[Any, Dict[str, str]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    list: {"type": "array"},
    dict: {"type": "object"},
    type(None): {"type": "null"},
}


@dataclasses.dataclass(frozen=True)
class Tool:
    """What a tool host tells about a tool. `parameters` is a JSON Schema of the arguments, as far as the annotations say."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ToolResult:
    """What came of a call. `kind`: ok, error (it raised, or could not be called), timeout, ended (its process died), denied."""

    call_id: str
    kind: str
    output: Any = None
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is an output."""
        return self.kind == "ok"


@dataclasses.dataclass(frozen=True)
class ToolEvent:
    """What happens in a tool host: added, removed, started, finished, closed."""

    kind: str
    tool: str = ""
    call_id: str = ""
    result: Optional[ToolResult] = None


class ToolHost(Protocol):
    """The protocol."""

    async def list_tools(self, *, query: Optional[str] = None) -> List[Tool]:
        """The tools, or those whose name or description has the words of the query."""

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> ToolResult:
        """Call a tool. What goes wrong is a result that says so; only cancelling raises."""

    def watch(self) -> AsyncIterator[ToolEvent]:
        """What happens from now on, until the host is closed."""


def _schema(fn: Callable[..., Any]) -> Dict[str, Any]:
    """Parameters as JSON Schema. Annotations are not evaluated: text is taken for the name of a type."""
    names = {kind.__name__: shape for kind, shape in _SCHEMA_TYPES.items()}
    properties: Dict[str, Any] = {}
    required = []
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return {"type": "object"}
    is_open = False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            is_open = is_open or parameter.kind == parameter.VAR_KEYWORD
            continue
        note = parameter.annotation
        properties[parameter.name] = dict(names.get(note, {}) if isinstance(note, str) else _SCHEMA_TYPES.get(note, {}))
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": is_open}


def _words_of(error: Exception) -> str:
    """What an exception says, whatever its class does when it is asked."""
    try:
        said = str(error)
    except Exception:
        said = ""
    return said if isinstance(error, BelljarError) else f"{type(error).__name__}: {said}"


def _name_of(tool: Any) -> Optional[str]:
    """The name of a tool as plain text, whatever its class does when it is asked. None: it is no text."""
    return str.__str__(tool) if isinstance(tool, str) else None


def _unknown(tool: Any, call_id: str) -> ToolResult:
    name = _name_of(tool)
    return ToolResult(call_id, "error", message=f"unknown tool: {type(tool).__name__ if name is None else name}")


class Watch:
    """An async iterator of events; its queue does not grow without end. `aclose()` ends it."""

    def __init__(self, watchers: "Set[Watch]") -> None:
        self._watchers = watchers
        self._events: Deque[ToolEvent] = deque(maxlen=MAX_EVENTS)
        self._news: Optional[_loops.Signal] = None
        self._is_over = False
        watchers.add(self)

    def tell(self, event: ToolEvent) -> None:
        """In the loop in which the host is used. One whose own loop is closed hears nothing, and holds nobody up."""
        self._events.append(event)
        self._is_over = self._is_over or event.kind == "closed"
        if self._news is not None:
            with contextlib.suppress(RuntimeError):
                self._news.set()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> ToolEvent:
        while not self._events:
            if self._is_over:
                await self.aclose()
                raise StopAsyncIteration
            self._news = _loops.Signal()
            await self._news.wait()
        return self._events.popleft()

    async def aclose(self) -> None:
        """Hear of nothing more."""
        self._is_over = True
        self._watchers.discard(self)


@dataclasses.dataclass
class _Entry:
    tool: Tool
    fn: Callable[..., Any]
    pool: Optional[Pool]
    options: Options


class JarToolHost:
    """A tool host whose tools are functions, each called in a jar with the policy of that tool.

    concurrency: how many calls of tools with the same policy go on at once. policy and keys: for tools that say nothing else.
    Use it in one event loop; `async with`, or close() in the end.
    """

    def __init__(
        self,
        tools: Iterable[Callable[..., Any]] = (),
        *,
        concurrency: Optional[int] = None,
        policy: PolicyLike = None,
        **keys: Any,
    ) -> None:
        self._concurrency = concurrency
        self._policy, self._keys = policy, normal_keys(keys)
        self._entries: Dict[str, _Entry] = {}
        self._pools: Dict[str, Pool] = {}
        self._watchers: Set[Watch] = set()
        self._is_closed = False
        for fn in tools:
            self.add(fn)

    # --- which tools there are ---

    def add(
        self,
        fn: Callable[..., Any],
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        parameters: Optional[Mapping[str, Any]] = None,
        policy: PolicyLike = None,
        **keys: Any,
    ) -> Tool:
        """Add a tool. keys: policy keys of its jars and options of its calls; they win over the host's."""
        if self._is_closed:
            raise PolicyError("the tool host is closed")
        keys = {**self._keys, **normal_keys(keys)}
        options = Options({key: keys.pop(key) for key in list(keys) if key in CALL_OPTIONS})
        plain = inspect.unwrap(fn)
        told = Tool(
            str(name or getattr(plain, "__name__", type(fn).__name__)),
            inspect.getdoc(plain) or "" if description is None else description,
            _schema(plain) if parameters is None else dict(parameters),
        )
        if told.name in self._entries:
            raise ValueError(f"the tool host already has a tool {told.name!r}")
        pool = self._pool(policy if policy is not None else self._policy, keys)
        self._entries[told.name] = _Entry(told, fn, pool, options)
        self._tell(ToolEvent("added", told.name))
        return told

    def remove(self, name: str) -> None:
        """Take a tool away; calls of it that go on are not touched. KeyError if there is none."""
        del self._entries[name]
        self._tell(ToolEvent("removed", name))

    def _pool(self, policy: PolicyLike, keys: Dict[str, Any]) -> Optional[Pool]:
        """A pool for this policy; None: the one that belljar.call uses."""
        if policy is None and not keys and self._concurrency is None:
            return None
        mark = encode([*wire_form(policy, None), sorted((name, encode(value)) for name, value in keys.items())])
        if mark not in self._pools:
            self._pools[mark] = Pool(concurrency=self._concurrency, policy=policy, **keys)
        return self._pools[mark]

    async def list_tools(self, *, query: Optional[str] = None) -> List[Tool]:
        """The tools by name, or those whose name or description has all words of the query."""
        words = (query or "").lower().split()
        found = [entry.tool for _, entry in sorted(self._entries.items())]
        return [tool for tool in found if all(word in f"{tool.name} {tool.description}".lower() for word in words)]

    # --- calls ---

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> ToolResult:
        """Call a tool in its jar. What goes wrong is a result that says so; only cancelling raises."""
        name = _name_of(tool)
        entry = self._entries.get(name) if name is not None else None
        if entry is None:
            return _unknown(tool, call_id)
        self._tell(ToolEvent("started", tool, call_id))
        result = ToolResult(call_id, "error", message="cancelled")
        try:
            result = await self._result(entry, args, call_id)
            return result
        finally:
            self._tell(ToolEvent("finished", tool, call_id, result))

    async def _result(self, entry: _Entry, args: Mapping[str, Any], call_id: str) -> ToolResult:
        try:
            pool = entry.pool if entry.pool is not None else hidden_pool()
            output = await pool._call_async(entry.fn, (), dict(args), entry.options)
        except CallTimeout as error:
            return ToolResult(call_id, "timeout", message=str(error))
        except CallEnded as error:
            return ToolResult(call_id, "ended", message=str(error))
        except CallError as error:
            raised = f"{error.type_name}: {error.message}" if error.type_name else str(error)
            return ToolResult(call_id, "error", message=raised)
        except Exception as error:
            # Whatever it is, arguments that are no mapping or a loop that is closed: the caller gets a result that says so.
            return ToolResult(call_id, "error", message=_words_of(error))
        return ToolResult(call_id, "ok", output)

    # --- events ---

    def _tell(self, event: ToolEvent) -> None:
        for watcher in list(self._watchers):
            watcher.tell(event)

    def watch(self) -> Watch:
        """What happens from now on, until the host is closed."""
        return Watch(self._watchers)

    # --- the end ---

    def close(self) -> None:
        """End calls that go on, and let go of the jars. May be called again."""
        self._is_closed = True
        self._entries.clear()
        while self._pools:
            self._pools.popitem()[1].close()
        self._tell(ToolEvent("closed"))

    async def __aenter__(self) -> JarToolHost:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        self._is_closed = True
        self._entries.clear()
        while self._pools:
            await self._pools.popitem()[1]._close_async()
        self._tell(ToolEvent("closed"))


class FilesystemSandbox:
    """A tool host before another that denies calls with paths outside its roots, links resolved, at any depth.

    It looks before the call, so it keeps honest tools in place; a hostile one is held by its jar. Arguments as for
    belljar.adapters.jeeves.FilesystemSandbox.
    """

    def __init__(
        self,
        inner: ToolHost,
        *,
        roots: Iterable[Union[str, "os.PathLike[str]"]],
        path_args: Optional[Iterable[str]] = None,
        auto_detect: bool = True,
    ) -> None:
        self._rules = PathRules(roots, path_args, auto_detect)
        self.inner = inner

    @property
    def roots(self) -> Tuple[Path, ...]:
        """Where paths may lead, links resolved."""
        return self._rules.roots

    async def list_tools(self, *, query: Optional[str] = None) -> List[Tool]:
        """As the host behind it."""
        return await self.inner.list_tools(query=query)

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> ToolResult:
        """The call, unless one of its paths leads outside."""
        try:
            reason = self._rules.refusal(args)
        except Exception as error:
            reason = f"cannot read the arguments: {_words_of(error)}"
        if reason is not None:
            return ToolResult(call_id, "denied", message=reason)
        return await self.inner.call(tool, args, call_id=call_id)

    def watch(self) -> AsyncIterator[ToolEvent]:
        """As the host behind it."""
        return self.inner.watch()


class CodeToolHost:
    """A tool host with one tool, `run_code`, which runs programs with a CodeRunner; its output is a dict."""

    def __init__(self, runner: Optional[CodeRunner] = None, *, max_timeout_s: float = 300.0) -> None:
        self._runner = runner if runner is not None else CodeRunner()
        self._max_timeout_s = max_timeout_s
        self._watchers: Set[Watch] = set()
        self._tool = Tool(
            "run_code",
            "Run a program in an empty directory. `files` are put there before; what it leaves under ./out/ is returned.",
            {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "language": {"type": "string", "enum": ["python", "bash", "sh"]},
                    "timeout_s": {"type": "number"},
                    "files": {"type": "object"},
                    "env": {"type": "object"},
                },
                "required": ["code"],
                "additionalProperties": False,
            },
        )

    async def list_tools(self, *, query: Optional[str] = None) -> List[Tool]:
        """The one tool."""
        text = f"{self._tool.name} {self._tool.description}".lower()
        return [self._tool] if all(word in text for word in (query or "").lower().split()) else []

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> ToolResult:
        """Run a program. One that fails has an output too: its returncode says so."""
        if _name_of(tool) != self._tool.name:
            return _unknown(tool, call_id)
        for watcher in list(self._watchers):
            watcher.tell(ToolEvent("started", tool, call_id))
        try:
            options = {**args, "timeout_s": min(float(args.get("timeout_s", 30.0)), self._max_timeout_s)}
            made = await self._runner.run(options.pop("code"), **options)
            result = ToolResult(call_id, "ok", dataclasses.asdict(made))
        except Exception as error:
            result = ToolResult(call_id, "error", message=_words_of(error))
        for watcher in list(self._watchers):
            watcher.tell(ToolEvent("finished", tool, call_id, result))
        return result

    def watch(self) -> Watch:
        """What happens from now on."""
        return Watch(self._watchers)
