# SPDX-License-Identifier: Apache-2.0
"""Pool: functions called in jars, many at once. call() and call_async() use a hidden one.

A call takes a zygote (_warm.py), packs the function (_send.py), waits for its turn (_queue.py), and then begins and finishes
by itself (_call.py).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from . import _engine, _inside, _loops, _paths
from ._call import Backend, Call, Options, split_options
from ._closing import AsyncClosing, Closing
from ._errors import EngineError, PolicyError, public
from ._host import check_keys
from ._keys import check_call_options
from ._policy import PolicyLike, encode, normal_keys, wire_form
from ._program import engine_path, refuse_inside
from ._queue import CLOSED, CallQueue
from ._request import current_directory
from ._warm import Zygotes

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import OnAsk, PolicyKeys

CLOSE_POLL_SECONDS = 0.005


@public
class Pool(Closing, AsyncClosing):
    """Calls functions in jars: each call in a process, with files and limits of its own; only data comes back.

    preload: modules that calls will find loaded. concurrency: how many calls at once; more wait in order. renew_after: so
    many calls may use one warm interpreter. python: the interpreter. import_paths: directories to import from beside the
    caller's sys.path, also such as the jar can write. policy and keys: those of the jars; without a workdir it is private
    and empty. on_ask: what answers for calls that have none of their own; implies ask="net". A context manager, also for `async with`; all of it may be used from any thread.
    """

    def __init__(
        self,
        preload: Iterable[str] = (),
        *,
        concurrency: Optional[int] = None,
        renew_after: int = 1000,
        python: str = sys.executable,
        import_paths: Iterable[_paths.PathLike] = (),
        policy: PolicyLike = None,
        on_ask: Optional[OnAsk] = None,
        **keys: Unpack[PolicyKeys],
    ) -> None:
        self._pid = 0
        if _inside.is_inside:
            # A module may have one for its tools, and is imported in their jars; there nobody can use it.
            refuse_inside(may_be_imported=True)
            return
        engine_path()  # raises if there can be no jars at all
        if isinstance(preload, str):
            raise TypeError("preload must be a list of names, not one string")
        count = os.cpu_count() or 1 if concurrency is None else concurrency
        for name, value in (("concurrency", count), ("renew_after", renew_after)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        named: List[_paths.PathLike] = []
        named += [import_paths] if isinstance(import_paths, (str, os.PathLike)) else import_paths
        cwd = current_directory()
        policy = _paths.loaded_policy(policy, cwd)
        policy_keys = _paths.keys_of(policy)
        jar_keys = _paths.anchored(normal_keys({**keys}), cwd)
        self._on_ask = on_ask
        if on_ask is not None:
            jar_keys.setdefault("ask", "net")
        if "workdir" not in jar_keys and "workdir" not in policy_keys:
            jar_keys["workdir"] = None
        check_keys(policy, jar_keys)  # now, not when the first call makes a jar
        self._must_wait = (jar_keys.get("overflow") or policy_keys.get("overflow")) == "kill"
        self._zygotes = Zygotes(os.fspath(python), list(preload), named, policy, jar_keys, renew_after, on_ask is not None)
        self._queue = CallQueue(count)
        self._active: Set[_engine.Channel] = set()
        self._pid = _engine.owner_pid()

    # --- what every call goes through ---

    def _own(self) -> None:
        refuse_inside()
        _engine.check_owner(self._pid)
        if self._queue.is_closed:
            raise EngineError(CLOSED)

    def _may_be_early(self, options: Options) -> bool:
        """Whether the caller may have its value before the run is over. Output beyond the cap may end a run that has answered,
        which only its result says."""
        return not self._must_wait and options.keys.get("overflow") != "kill"

    def _begun(self, call: Call) -> None:
        """close() can end the run from now on."""
        channel = call.channel
        assert channel is not None
        self._active.add(channel)
        if self._queue.is_closed:
            channel.cancel()
            channel.cancel()

    def _ended(self, call: Call) -> None:
        channel = call.channel
        if channel is not None:
            self._active.discard(channel)
        self._queue.leave(None if call.is_ended else channel)

    def _call(self, fn: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any], options: Options) -> Any:
        self._own()
        options = options.answered_by(self._on_ask)
        backend = self._zygotes.take()
        try:
            call = Call(fn, args, kwargs, options, backend.paths)
            self._queue.enter()
            try:
                call.begin(backend)
                self._begun(call)
                # The function runs: now there is time.
                self._queue.sweep()
                self._zygotes.note_modules(fn, backend.paths)
                return call.finish(self._may_be_early(options))
            finally:
                self._ended(call)
        except EngineError:
            self._zygotes.drop(backend)
            raise
        finally:
            self._zygotes.put(backend)

    async def _call_async(
        self, fn: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any], options: Options
    ) -> Any:
        self._own()
        options = options.answered_by(self._on_ask)
        if not self._zygotes.is_ready:
            # Another thread makes the zygote. If this task is cancelled meanwhile, the next call uses it.
            await _loops.run_blocking(lambda: self._zygotes.put(self._zygotes.take()))
        backend = self._zygotes.take()
        try:
            call = Call(fn, args, kwargs, options, backend.paths)
            await self._queue.enter_async()
            try:
                await call.begin_async(backend)
                self._begun(call)
                self._queue.sweep()
                self._zygotes.note_modules(fn, backend.paths)
                return await call.finish_async(self._may_be_early(options))
            finally:
                self._ended(call)
        except EngineError:
            self._zygotes.drop(backend)
            raise
        finally:
            self._zygotes.put(backend)

    # --- what callers use ---

    def call(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """fn(*args, **kwargs) in a jar. See belljar.call()."""
        options = split_options(fn, kwargs)
        return self._call(fn, args, kwargs, options)

    async def call_async(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """call() for asyncio, trio and anyio. Cancelling ends the run, and goes on when nothing of the run is left."""
        options = split_options(fn, kwargs)
        return await self._call_async(fn, args, kwargs, options)

    def map(self, fn: Callable[..., Any], items: Iterable[Any], **options: Any) -> Iterator[Any]:
        """The values of fn(item) in order, as many at once as the pool allows. The first exception ends it."""
        check_call_options("map", options)
        known = Options(options)
        self._own()
        return self._map(fn, iter(items), known.answered_by(self._on_ask))

    def _map(self, fn: Callable[..., Any], items: Iterator[Any], options: Options) -> Iterator[Any]:
        calls: Deque[Call] = deque()
        has_more = True
        backend = self._zygotes.take()
        self._zygotes.note_modules(fn, backend.paths)
        try:
            while True:
                while has_more and self._may_start(bool(calls)):
                    call = self._start_next(backend, fn, items, options)
                    if call is None:
                        has_more = False
                    else:
                        calls.append(call)
                if not calls:
                    return
                call = calls.popleft()
                try:
                    value = call.finish(self._may_be_early(options))
                finally:
                    self._ended(call)
                yield value
        except EngineError:
            self._zygotes.drop(backend)
            raise
        finally:
            self._zygotes.put(backend)
            for call in calls:
                assert call.channel is not None
                call.channel.hang_up()
                call.close()
                self._ended(call)

    def _may_start(self, has_calls: bool) -> bool:
        """Take a place for a call of map(). It waits for one only while it has no call whose end it could wait for."""
        if has_calls:
            return self._queue.try_enter()
        self._queue.enter()
        return True

    def _start_next(self, backend: Backend, fn: Callable[..., Any], items: Iterator[Any], options: Options) -> Optional[Call]:
        """The call of the next item, in a place that was taken; None, and the place is free again, if there is none."""
        try:
            for item in items:
                self._own()
                call = Call(fn, (item,), {}, options, backend.paths)
                call.begin(backend)
                self._begun(call)
                return call
        except BaseException:
            self._queue.leave(None)
            raise
        self._queue.leave(None)
        return None

    # --- the end ---

    @property
    def risky(self) -> List[Dict[str, Any]]:
        """What its calls changed that other programs execute or obey, as Result.risky: as far as the last look() saw, and all of it
        once it is closed."""
        return self._zygotes.risky()

    def look(self) -> List[Dict[str, Any]]:
        """Search now, and give `risky`. A call gives its value and has no place for this."""
        self._own()
        return self._zygotes.risky(True)

    def _stop(self) -> None:
        """No more calls; those that run are ended."""
        _engine.check_owner(self._pid)
        self._queue.close()
        for channel in list(self._active):
            channel.cancel()
            channel.cancel()

    def close(self) -> None:
        """End calls that run and wait until nothing of them is left. May be called again."""
        if _inside.is_inside:
            return
        self._stop()
        while not self._queue.is_empty():
            time.sleep(CLOSE_POLL_SECONDS)
        self._zygotes.close()

    async def _close_async(self) -> None:
        if _inside.is_inside:
            return
        # Calls in this very loop can only end while it runs; so somebody else waits for them.
        self._stop()
        await _loops.run_blocking(self.close)

    def __del__(self) -> None:
        if self._pid == 0 or self._queue.is_closed or not _engine.is_ours(self._pid):
            return
        warnings.warn(f"{self!r} was never closed; it is closed now", ResourceWarning, source=self)
        self.close()

    def __repr__(self) -> str:
        return f"<belljar.Pool {'in a jar' if self._pid == 0 else 'closed' if self._queue.is_closed else 'open'}>"


# --- hidden pools ---

# Policies of tools that have a pool at the same time; of more, those whose tools were called last.
MAX_HIDDEN = 8

_lock = threading.Lock()
_hidden: List[Pool] = []
_by_policy: Dict[str, _Shared] = {}


def hidden_pool() -> Pool:
    """That of call(): one per process; its end is the engine's."""
    for pool in _hidden:
        return pool
    with _lock:
        if not _hidden:
            _hidden.append(Pool())
        return _hidden[0]


class _Shared:
    """A hidden pool for one policy, and how many calls use it."""

    __slots__ = ("pool", "users")

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.users = 0


def _close_all(pools: Iterable[Pool]) -> None:
    for pool in pools:
        pool.close()


class JarPolicy:
    """A policy for the jars of tools, by which all tools with the same one find their pool."""

    __slots__ = ("_policy", "_keys", "_mark")

    def __init__(self, policy: PolicyLike, keys: Mapping[str, Any]) -> None:
        cwd = current_directory()
        self._policy = _paths.loaded_policy(policy, cwd)
        self._keys = _paths.anchored(normal_keys({**keys}), cwd)
        facts = sorted((name, encode(value)) for name, value in self._keys.items())
        self._mark = encode([*wire_form(self._policy, None), facts])

    @contextlib.contextmanager
    def pool(self) -> Iterator[Pool]:
        """The pool, for one call."""
        unused: List[Pool] = []
        with _lock:
            shared = _by_policy.pop(self._mark, None)
            if shared is None:
                shared = _Shared(Pool(policy=self._policy, **self._keys))
                idle = [mark for mark, other in _by_policy.items() if other.users == 0]
                unused = [_by_policy.pop(mark).pool for mark in idle[: max(len(_by_policy) + 1 - MAX_HIDDEN, 0)]]
            _by_policy[self._mark] = shared  # the last one now
            shared.users += 1
        if unused:
            threading.Thread(target=_close_all, args=(unused,), name="belljar-pools", daemon=True).start()
        try:
            yield shared.pool
        finally:
            with _lock:
                shared.users -= 1


def _hidden_pools() -> List[Pool]:
    return [*_hidden, *(shared.pool for shared in _by_policy.values())]


def _forget() -> None:
    """The engine is gone, or this is a forked child: the next call makes another."""
    global _lock
    _lock = threading.Lock()
    for pool in _hidden_pools():
        pool._pid = 0
    _hidden.clear()
    _by_policy.clear()


def _at_exit() -> None:
    for pool in _hidden_pools():
        if _engine.is_ours(pool._pid):
            pool.close()
    _hidden.clear()
    _by_policy.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
_engine.at_exit(_at_exit)


def _pool_for(options: Options) -> ContextManager[Pool]:
    """The hidden pool of a call: jars in which something may be asked are others."""
    return contextlib.nullcontext(hidden_pool()) if options.on_ask is None else JarPolicy(None, {"ask": "net"}).pool()


def call(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """fn(*args, **kwargs) in a jar: a process of its own that sees little, and whose answer is data.

    Keywords that are options are not the function's: timeout=, memory=, env= and the other policy keys that may differ from
    run to run; on_output(stream, data) for what it prints, and on_ask(question) for hosts that it wants to reach, both in this
    thread; types=[...], the Enum, dataclass and namedtuple
    classes that may come back; max_result=, 64M. A parameter of that name is passed with functools.partial.

    Raises SendError if fn or an argument cannot be sent, CallError with the traceback as text if fn raised, CallTimeout,
    CallEnded if its process died, ResultError if what came back is not data.
    """
    options = split_options(fn, kwargs)
    with _pool_for(options) as pool:
        return pool._call(fn, args, kwargs, options)


async def call_async(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """call() for asyncio, trio and anyio. Cancelling ends the run, and goes on when nothing of the run is left."""
    options = split_options(fn, kwargs)
    with _pool_for(options) as pool:
        return await pool._call_async(fn, args, kwargs, options)
