# SPDX-License-Identifier: Apache-2.0
"""Pool: functions called in jars, many at once. call() and call_async() use one that nobody sees."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import warnings
from collections import deque
from typing import Any, Callable, Deque, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from . import _engine, _inside, _paths
from ._call import Flight, Options, split_options
from ._closing import AsyncClosing, Closing
from ._errors import EngineError, PolicyError, UnavailableError
from ._keys import LIMITS_OF_A_POOL, check_call_options, parse_size
from ._policy import PolicyLike, rename_cwd
from ._program import engine_path
from ._slots import CLOSED, Slot, Slots
from ._warm import WarmWay

CLOSE_LOOK_SECONDS = 0.005


class Pool(Closing, AsyncClosing):
    """Calls functions in jars: each call in a process, with files and limits of its own; only data comes back.

    preload: modules that calls will find loaded. concurrency: how many calls at once; more wait in order. renew_after: so
    many calls may use one warm interpreter. python: the interpreter. import_paths: directories to import from beside the
    caller's sys.path, also such as the jar can write. policy and keys: those of the jars; without a workdir it is private
    and empty. A context manager, also for `async with`; all of it may be used from any thread.
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
        **keys: Any,
    ) -> None:
        self._pid = 0
        engine_path()  # what is not to be had at all is said first
        if _inside.is_inside:
            raise UnavailableError("this is a jar, and there are no jars in jars: call the function itself")
        if isinstance(preload, str):
            raise TypeError("preload is a list of names, not one string")
        count = os.cpu_count() or 1 if concurrency is None else concurrency
        for name, value in (("concurrency", count), ("renew_after", renew_after)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive number, not {value!r}")
        named = [import_paths] if isinstance(import_paths, (str, os.PathLike)) else list(import_paths)
        said = _paths.said_by(policy)
        rename_cwd(keys)
        if "workdir" not in keys and "workdir" not in said:
            keys["workdir"] = None
        self._limits = {name: keys.get(name, said.get(name)) for name in LIMITS_OF_A_POOL}
        self._must_wait = (keys.get("overflow") or said.get("overflow")) == "kill"
        self._way = WarmWay(os.fspath(python), list(preload), named, policy, keys, renew_after)
        self._slots = Slots(count)
        self._active: Set[_engine.Channel] = set()
        self._pid = _engine.owner_pid()

    # --- what every call goes through ---

    def _own(self) -> None:
        _engine.check_owner(self._pid)
        if self._slots.is_closed:
            raise EngineError(CLOSED)

    def _check(self, options: Options) -> bool:
        """Refuse what is above the pool's own; whether the caller may leave before the run is over."""
        keys = options.keys
        if not keys:
            return not self._must_wait
        for name in LIMITS_OF_A_POOL:
            most = self._limits[name]
            if name in keys and most is not None:
                asked = keys[name]
                if asked is None or parse_size(asked, name) > parse_size(most, name):
                    raise PolicyError(f"{name}={asked!r} is more than the {most} of the pool")
        # Output beyond the cap may end a run that has answered: only its account says so.
        return not self._must_wait and keys.get("overflow") != "kill"

    def _end(self, slot: Slot, flight: Flight) -> None:
        channel = flight.channel
        if channel is not None:
            self._active.discard(channel)
            if not flight.is_ended:
                slot.ending = channel
        self._slots.put(slot)

    def _note(self, flight: Flight) -> None:
        """The run can be ended by close() from now on."""
        channel = flight.channel
        assert channel is not None
        self._active.add(channel)
        if self._slots.is_closed:
            channel.cancel()
            channel.cancel()

    def _call(self, fn: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any], options: Options) -> Any:
        self._own()
        may_be_early = self._check(options)
        lease = self._way.take()
        try:
            flight = Flight(fn, args, kwargs, options, lease.paths)
            try:
                slot = self._slots.take()
            except BaseException:
                flight.close()
                raise
            try:
                flight.begin(lease)
                # The call is on its way: now there is time.
                self._note(flight)
                self._slots.sweep()
                self._way.learn(fn, lease.paths)
                return flight.finish(may_be_early)
            finally:
                self._end(slot, flight)
        except EngineError:
            lease.failed()
            raise
        finally:
            lease.done()

    async def _call_async(
        self, fn: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any], options: Options
    ) -> Any:
        self._own()
        may_be_early = self._check(options)
        if not self._way.is_ready:
            # Another thread makes the zygote; who is cancelled meanwhile leaves it to the next.
            await asyncio.get_running_loop().run_in_executor(None, lambda: self._way.take().done())
        lease = self._way.take()
        try:
            flight = Flight(fn, args, kwargs, options, lease.paths)
            try:
                slot = await self._slots.take_async()
            except BaseException:
                flight.close()
                raise
            try:
                await flight.begin_async(lease)
                self._note(flight)
                self._slots.sweep()
                self._way.learn(fn, lease.paths)
                return await flight.finish_async(may_be_early)
            finally:
                self._end(slot, flight)
        except EngineError:
            lease.failed()
            raise
        finally:
            lease.done()

    # --- what callers use ---

    def call(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """fn(*args, **kwargs) in a jar. See belljar.call()."""
        options = split_options(kwargs)
        return self._call(fn, args, kwargs, options)

    async def call_async(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """call() for asyncio. Cancelling the task ends the run, and CancelledError leaves when nothing of it is left."""
        options = split_options(kwargs)
        return await self._call_async(fn, args, kwargs, options)

    def map(self, fn: Callable[..., Any], items: Iterable[Any], **options: Any) -> Iterator[Any]:
        """The values of fn(item) in order, as many at once as the pool allows. The first exception ends it."""
        check_call_options("map", options)
        told = split_options(options)
        self._own()
        return self._map(fn, iter(items), told, self._check(told))

    def _map(self, fn: Callable[..., Any], items: Iterator[Any], options: Options, may_be_early: bool) -> Iterator[Any]:
        flying: Deque[Tuple[Slot, Flight]] = deque()
        is_done = False
        lease = self._way.take()
        self._way.learn(fn, lease.paths)
        try:
            while True:
                while not is_done:
                    slot = self._slots.try_take() if flying else self._slots.take()
                    if slot is None:
                        break
                    started = self._start_next(slot, lease, fn, items, options)
                    if started is None:
                        is_done = True
                    else:
                        flying.append((slot, started))
                if not flying:
                    return
                slot, flight = flying.popleft()
                try:
                    value = flight.finish(may_be_early)
                finally:
                    self._end(slot, flight)
                yield value
        except EngineError:
            lease.failed()
            raise
        finally:
            lease.done()
            for slot, flight in flying:
                assert flight.channel is not None
                flight.channel.hang_up()
                flight.close()
                self._end(slot, flight)

    def _start_next(
        self, slot: Slot, lease: Any, fn: Callable[..., Any], items: Iterator[Any], options: Options
    ) -> Optional[Flight]:
        """The call of the next item; None, and the slot is free again, if there is none."""
        try:
            slot.settle()
            for item in items:
                self._own()
                flight = Flight(fn, (item,), {}, options, lease.paths)
                flight.begin(lease)
                self._note(flight)
                return flight
        except BaseException:
            self._slots.put(slot)
            raise
        self._slots.put(slot)
        return None

    # --- the end ---

    def _stop(self) -> None:
        """No more calls; those under way are ended."""
        _engine.check_owner(self._pid)
        self._slots.close()
        for channel in list(self._active):
            channel.cancel()
            channel.cancel()

    def close(self) -> None:
        """End what is under way and wait until nothing is left. May be called again."""
        self._stop()
        while not self._slots.collect():
            time.sleep(CLOSE_LOOK_SECONDS)
        self._way.close()

    async def _close_async(self) -> None:
        # Calls in this very loop can only end while it runs; so somebody else waits for them.
        self._stop()
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __del__(self) -> None:
        if self._pid == 0 or self._slots.is_closed or not _engine.is_ours(self._pid):
            return
        warnings.warn(f"{self!r} was not closed; it is closed now", ResourceWarning, source=self)
        self.close()

    def __repr__(self) -> str:
        return f"<belljar.Pool {'closed' if self._slots.is_closed else 'open'}>"


# --- the pool that nobody sees ---

_lock = threading.Lock()
_hidden: List[Pool] = []


def hidden_pool() -> Pool:
    """One per process; its end is the engine's."""
    for pool in _hidden:
        return pool
    with _lock:
        if not _hidden:
            _hidden.append(Pool())
        return _hidden[0]


def _forget() -> None:
    """The engine is gone, or this is a forked child: the next call makes another."""
    global _lock
    _lock = threading.Lock()
    for pool in _hidden:
        pool._pid = 0
    _hidden.clear()


def _at_exit() -> None:
    for pool in _hidden:
        if _engine.is_ours(pool._pid):
            pool.close()
    _hidden.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
_engine.at_exit(_at_exit)


def call(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """fn(*args, **kwargs) in a jar: a process of its own that sees little, and whose answer is data.

    Keywords that are options are not the function's: timeout=, memory=, env= and the other policy keys that may differ from
    run to run; on_output(stream, data) for what it prints, in this thread; types=[...], the Enum, dataclass and namedtuple
    classes that may come back; max_result=, 64M. A parameter of that name is passed with functools.partial.

    Raises SendError if fn or an argument cannot be sent, CallError with the traceback as text if fn raised, CallTimeout,
    CallEnded if its process died, ResultError if what came back is not data.
    """
    options = split_options(kwargs)
    return hidden_pool()._call(fn, args, kwargs, options)


async def call_async(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """call() for asyncio. Cancelling the task ends the run, and CancelledError leaves when nothing of it is left."""
    options = split_options(kwargs)
    return await hidden_pool()._call_async(fn, args, kwargs, options)
