# SPDX-License-Identifier: Apache-2.0
"""What the package needs of an event loop, alike for asyncio and trio; anyio runs on one of these two.

All that is async in the package is built on the few functions here, and nothing else asks which loop it runs in. Neither
library is imported: whoever runs in trio's loop has imported trio.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import math
import sys
import threading
from typing import Any, Callable, ContextManager, Coroutine, Optional, TypeVar

from ._errors import EngineError

Value = TypeVar("Value")


def _trio() -> Any:
    """The module trio, if this runs in one of its tasks."""
    lowlevel = getattr(sys.modules.get("trio"), "lowlevel", None)
    if lowlevel is None:
        return None
    try:
        lowlevel.current_task()
    except RuntimeError:
        return None
    return sys.modules["trio"]


def is_trio() -> bool:
    """Whether this runs in trio's loop, not asyncio's."""
    return _trio() is not None


def before_close(fd: int) -> None:
    """Tasks that wait for a descriptor are told that it is about to be closed; asyncio has no such tasks."""
    trio = _trio()
    if trio is not None and fd >= 0:
        trio.lowlevel.notify_closing(fd)


# --- waiting ---


async def _wait_ready(fd: int, event: str, seconds: Optional[float]) -> bool:
    """event: reader or writer, as asyncio names them."""
    trio = _trio()
    if trio is not None:
        with trio.move_on_after(math.inf if seconds is None else seconds):
            await (trio.lowlevel.wait_readable(fd) if event == "reader" else trio.lowlevel.wait_writable(fd))
            return True
        return False
    loop = asyncio.get_running_loop()
    news: "asyncio.Future[bool]" = loop.create_future()

    def tell(answer: bool) -> None:
        if not news.done():
            news.set_result(answer)

    timer = None if seconds is None else loop.call_later(seconds, tell, False)
    getattr(loop, f"add_{event}")(fd, tell, True)
    try:
        return await news
    finally:
        if timer is not None:
            timer.cancel()
        if not loop.is_closed():
            getattr(loop, f"remove_{event}")(fd)


async def wait_readable(fd: int, seconds: Optional[float] = None) -> bool:
    """Wait until there is something to read, or the end; False after so many seconds. One task at a time for a descriptor."""
    return await _wait_ready(fd, "reader", seconds)


async def wait_writable(fd: int) -> None:
    """Wait until something can be written."""
    await _wait_ready(fd, "writer", None)


async def sleep(seconds: float) -> None:
    """Wait so long; 0: let the others run."""
    trio = _trio()
    await (asyncio if trio is None else trio).sleep(seconds)


def shield() -> ContextManager[Any]:
    """What is awaited in the block is not cancelled by a scope of trio's or anyio's, which would do so at every turn.

    A task of asyncio's can still be cancelled, once for each cancel().
    """
    library = _trio()
    if library is None and asyncio.current_task() is not None:
        library = sys.modules.get("anyio")
    scope = getattr(library, "CancelScope", None)
    return contextlib.nullcontext() if scope is None else scope(shield=True)


class Signal:
    """Set once, from any thread; awaited in the loop where it was made."""

    def __init__(self) -> None:
        trio = _trio()
        self._tell: Callable[[], Any]
        if trio is not None:
            event, token = trio.Event(), trio.lowlevel.current_trio_token()
            self._wait = event.wait
            self._tell = lambda: token.run_sync_soon(event.set)
            return
        loop = asyncio.get_running_loop()
        news = loop.create_future()

        def tell() -> None:
            if not news.done():
                news.set_result(None)

        self._wait = lambda: news
        self._tell = lambda: loop.call_soon_threadsafe(tell)

    def set(self) -> None:
        """RuntimeError if the loop has ended."""
        self._tell()

    async def wait(self) -> None:
        """Until it is set."""
        await self._wait()


# --- threads ---


class _Work:
    """A function in a thread, whose outcome somebody waits for, or not any more."""

    def __init__(self, function: Callable[[], Any], discard: Optional[Callable[[Any], Any]]) -> None:
        self._function, self._discard = function, discard
        self._lock = threading.Lock()
        self._is_done = self._is_abandoned = False
        self._value: Any = None
        self._error: Optional[BaseException] = None

    def run(self) -> None:
        """In the thread."""
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error
        with self._lock:
            self._is_done = True
            is_abandoned = self._is_abandoned
        if is_abandoned:
            self._throw_away()

    def abandon(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._is_abandoned = True
            is_done = self._is_done
        if is_done:
            self._throw_away()

    def _throw_away(self) -> None:
        if self._discard is not None and self._error is None:
            self._discard(self._value)

    def outcome(self) -> Any:
        """What the function returned or raised."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it refers to this very frame
        return self._value


async def run_blocking(function: Callable[[], Value], discard: Optional[Callable[[Value], object]] = None) -> Value:
    """function() in a thread, while the loop goes on.

    If this is cancelled, the function still runs to its end; what it returns then goes to `discard`, in the thread: what
    closes it. Nobody hears of what it raises then.
    """
    work = _Work(function, discard)
    trio = _trio()
    try:
        if trio is not None:
            # Without a limit: whoever waits for a thread may hold what the threads that run are waiting for.
            await trio.to_thread.run_sync(work.run, limiter=trio.CapacityLimiter(1), **_abandon_option(trio))
        else:
            await asyncio.get_running_loop().run_in_executor(None, work.run)
    except BaseException:
        work.abandon()
        raise
    return work.outcome()  # type: ignore[no-any-return]


def _abandon_option(trio: Any) -> "dict[str, bool]":
    """Trio 0.23 has given it a new name, and warns of the old one."""
    import inspect

    names = inspect.signature(trio.to_thread.run_sync).parameters
    return {"abandon_on_cancel" if "abandon_on_cancel" in names else "cancellable": True}


# --- tasks ---


class Background:
    """A coroutine that runs beside the task that starts it, until its end or that of the loop, which cancels it."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        trio = _trio()
        self._task: Optional[asyncio.Task[Any]] = None
        self._value: Any = None
        self._error: Optional[BaseException] = None
        if trio is None:
            loop = asyncio.get_running_loop()
            self._soon: Callable[[Callable[[], Any]], Any] = loop.call_soon_threadsafe
            self._task = loop.create_task(work)
            return
        self._soon = trio.lowlevel.current_trio_token().run_sync_soon
        self._done = trio.Event()
        self._move_on_after = trio.move_on_after
        trio.lowlevel.spawn_system_task(self._run, work, trio.Cancelled, context=contextvars.copy_context())

    async def _run(self, work: Coroutine[Any, Any, Any], cancelled: Any) -> None:
        """A task of trio's, of which nothing may be raised but that it was cancelled."""
        try:
            self._value = await work
        except cancelled:
            self._error = EngineError("the event loop has ended")
            raise
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return bool(self._done.is_set() if self._task is None else self._task.done())

    def error(self) -> Optional[BaseException]:
        """What it has raised."""
        if self._task is None:
            return self._error
        return asyncio.CancelledError() if self._task.cancelled() else self._task.exception()

    def result(self) -> Any:
        """What it has returned, or raised."""
        if self._task is not None:
            return self._task.result()
        if self._error is not None:
            raise self._error
        return self._value

    def soon(self, function: Callable[[], Any]) -> None:
        """Have the loop call a function, from any thread; not if the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self._soon(function)

    async def wait(self, seconds: Optional[float] = None) -> bool:
        """Until its end; False after so many seconds. It goes on if this is cancelled."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)
        else:
            with self._move_on_after(math.inf if seconds is None else seconds):
                await self._done.wait()
        return self.is_done
