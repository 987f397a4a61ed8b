# SPDX-License-Identifier: Apache-2.0
"""How many calls of a pool run at once, and who is next.

A caller that has its value leaves at once, though the process of its call may still be ending. The place of the call then keeps
the channel of that run, and whoever takes the place next waits for the end, in its own thread or loop. So a place is free
only when nothing is left of its last run, and no thread is needed to collect what has ended.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple, Union

from . import _engine, _loops
from ._errors import EngineError

# What a run may take to end after its answer, before whoever waits for its place has it killed.
LINGER_SECONDS = 0.1
CLOSED = "the pool is closed"


class _Place:
    """Room for one call, and the run that answered there but may not be gone."""

    __slots__ = ("ending",)

    def __init__(self, ending: Optional[_engine.Channel] = None) -> None:
        self.ending = ending

    def is_empty(self) -> bool:
        """Whether nothing is left of the last run. Never waits."""
        channel = self.ending
        if channel is None:
            return True
        try:
            while channel.socket.recv(_engine.READ_BYTES, socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            return False
        except OSError:
            pass
        self._forget()
        return True

    def _forget(self) -> None:
        channel, self.ending = self.ending, None
        if channel is not None:
            channel.close()

    def wait_empty(self, linger: float = LINGER_SECONDS) -> None:
        """Wait until nothing is left; a run that stays after its answer is killed."""
        channel = self.ending
        if channel is None:
            return
        deadline = time.monotonic() + linger
        while not self.is_empty():
            poll = select.poll()
            poll.register(channel.socket, select.POLLIN)
            left = deadline - time.monotonic()
            if left <= 0:
                channel.hang_up()
                left = _engine.LOOK_UP_SECONDS
            poll.poll(left * 1000)

    async def wait_empty_async(self) -> None:
        """The same in a loop."""
        channel = self.ending
        if channel is None or self.is_empty():
            return
        channel.socket.setblocking(False)
        deadline = time.monotonic() + LINGER_SECONDS
        is_late = False
        while not self.is_empty():
            left = None if is_late else max(deadline - time.monotonic(), 0)
            if not await _loops.wait_readable(channel.socket.fileno(), left):
                channel.hang_up()
                is_late = True


class _ThreadWaiter:
    """A thread in the queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.place: Optional[_Place] = None

    def give(self, place: Optional[_Place]) -> None:
        """A place, or None: there will be none any more."""
        self.place = place
        self._lock.release()

    def wait(self) -> None:
        """Looks up every now and then, so that Ctrl-C is not lost."""
        while not self._lock.acquire(timeout=_engine.LOOK_UP_SECONDS):
            pass


class _TaskWaiter:
    """A task in the queue."""

    def __init__(self) -> None:
        self.place: Optional[_Place] = None
        self.news = _loops.Signal()

    def give(self, place: Optional[_Place]) -> None:
        """From any thread. RuntimeError if the loop is closed."""
        self.place = place
        self.news.set()


class CallQueue:
    """Lets in so many calls at once, in the order in which they came. Every enter() is followed by a leave()."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._count = count
        self._free: Deque[_Place] = deque(_Place() for _ in range(count))
        self._waiters: Deque[Union[_ThreadWaiter, _TaskWaiter]] = deque()
        self._is_closed = False

    def _pick(self, make_waiter: Optional[Callable[[], Any]]) -> Tuple[Optional[_Place], Any]:
        """A free place; else somebody who waits for one, if that is wanted.

        A place with nothing left in it comes first; best one of which that is known already.
        """
        with self._lock:
            if self._is_closed:
                raise EngineError(CLOSED)
            if self._free and not self._waiters:
                free = next((place for place in self._free if place.ending is None), None)
                free = free or next((place for place in self._free if place.is_empty()), self._free[0])
                self._free.remove(free)
                return free, None
            waiter = None if make_waiter is None else make_waiter()
            if waiter is not None:
                self._waiters.append(waiter)
            return None, waiter

    def enter(self) -> None:
        """Wait for a place."""
        place, waiter = self._pick(_ThreadWaiter)
        if waiter is not None:
            try:
                waiter.wait()
            except BaseException:
                self._give_up(waiter)
                raise
            place = waiter.place
        self._fill(place)

    def try_enter(self) -> bool:
        """Take a place if one is free at once."""
        place, _ = self._pick(None)
        if place is not None:
            self._fill(place)
        return place is not None

    def _fill(self, place: Optional[_Place]) -> None:
        if place is None:
            raise EngineError(CLOSED)
        try:
            place.wait_empty()
        except BaseException:
            self._put(place)
            raise

    async def enter_async(self) -> None:
        """Wait for a place."""
        place, waiter = self._pick(_TaskWaiter)
        if waiter is not None:
            try:
                await waiter.news.wait()
            except BaseException:
                self._give_up(waiter)
                raise
            place = waiter.place
        if place is None:
            raise EngineError(CLOSED)
        try:
            await place.wait_empty_async()
        except BaseException:
            self._put(place)
            raise

    def leave(self, ending: Optional[_engine.Channel]) -> None:
        """Give the place back; ending: the channel of a run that may not be gone."""
        self._put(_Place(ending))

    def sweep(self) -> None:
        """Look at one of the runs that have answered, while there is time: the next call shall find its place empty."""
        with self._lock:
            for place in self._free:
                if place.ending is not None:
                    place.is_empty()
                    return

    def _give_up(self, waiter: Union[_ThreadWaiter, _TaskWaiter]) -> None:
        """Out of the queue; a place that was given meanwhile goes to the next."""
        with self._lock:
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)
            place = waiter.place
        if place is not None:
            self._put(place)

    def _put(self, place: _Place) -> None:
        with self._lock:
            while self._waiters and not self._is_closed:
                waiter: Any = self._waiters.popleft()
                try:
                    waiter.give(place)
                    return
                except RuntimeError:
                    waiter.place = None  # its loop was closed
            self._free.append(place)

    def close(self) -> None:
        """Let nobody in any more; whoever waits is told so."""
        with self._lock:
            self._is_closed = True
            waiters = list(self._waiters)
            self._waiters.clear()
        for waiter in waiters:
            with contextlib.suppress(RuntimeError):
                waiter.give(None)

    def is_empty(self) -> bool:
        """After close(): end what is left in places that came back; whether all have."""
        with self._lock:
            free = list(self._free)
        for place in free:
            place.wait_empty(0)
        return len(free) == self._count

    @property
    def is_closed(self) -> bool:
        """Whether close() was called."""
        return self._is_closed
