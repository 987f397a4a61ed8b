# SPDX-License-Identifier: Apache-2.0
"""How many calls may be under way at once, and who is next.

A caller that has its value leaves at once; the end of its run stays in its slot, and whoever gets the slot next waits for that
end, in its own thread or loop. So a slot is free only when nothing is left of its last run, no thread collects anything, and
a caller that finds all slots ended pays a system call each.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
import time
from collections import deque
from typing import Any, Deque, List, Optional, Union

from . import _engine
from ._async import Reader
from ._errors import EngineError

# What a run may take to end after its answer, before whoever waits for its slot has it killed.
LINGER_SECONDS = 0.1
CLOSED = "the pool is closed"


class Slot:
    """One place, and the run that ended there but may not be gone."""

    __slots__ = ("ending",)

    def __init__(self) -> None:
        self.ending: Optional[_engine.Channel] = None

    def is_ready(self) -> bool:
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

    def settle(self, linger: float = LINGER_SECONDS) -> None:
        """Wait until nothing is left; one that stays after its answer is killed."""
        channel = self.ending
        deadline = time.monotonic() + linger
        while channel is not None and not self.is_ready():
            poll = select.poll()
            poll.register(channel.socket, select.POLLIN)
            left = deadline - time.monotonic()
            if left <= 0:
                channel.hang_up()
                left = _engine.LOOK_UP_SECONDS
            poll.poll(left * 1000)

    async def settle_async(self) -> None:
        """The same in a loop."""
        channel = self.ending
        if channel is None or self.is_ready():
            return
        timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, channel.hang_up)
        reader = Reader(channel)
        try:
            while await reader.read():
                pass
        finally:
            timer.cancel()
        self._forget()


class _ThreadWaiter:
    """A thread in the queue."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.slot: Optional[Slot] = None

    def give(self, slot: Optional[Slot]) -> None:
        """A slot, or none: there will be none any more."""
        self.slot = slot
        self._lock.release()

    def wait(self) -> Optional[Slot]:
        """Looks up every now and then: Ctrl-C is not lost."""
        while not self._lock.acquire(timeout=_engine.LOOK_UP_SECONDS):
            pass
        return self.slot


class _TaskWaiter:
    """A task in the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.slot: Optional[Slot] = None
        self.news: "asyncio.Future[None]" = loop.create_future()

    def _tell(self) -> None:
        if not self.news.done():
            self.news.set_result(None)

    def give(self, slot: Optional[Slot]) -> None:
        """From any thread. RuntimeError if the loop is gone."""
        self.slot = slot
        self._loop.call_soon_threadsafe(self._tell)


class Slots:
    """Gives out slots in the order in which they were asked for."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._count = count
        self._all: List[Slot] = [Slot() for _ in range(count)]
        self._free: Deque[Slot] = deque(self._all)
        self._waiters: Deque[Union[_ThreadWaiter, _TaskWaiter]] = deque()
        self._is_closed = False

    def _pick(self) -> Optional[Slot]:
        """With the lock: a free slot, one with nothing left in it first; best one of which that is known already."""
        if self._is_closed:
            raise EngineError(CLOSED)
        for slot in self._free:
            if slot.ending is None:
                self._free.remove(slot)
                return slot
        for slot in self._free:
            if slot.is_ready():
                self._free.remove(slot)
                return slot
        return self._free.popleft() if self._free else None

    def try_take(self) -> Optional[Slot]:
        """A slot if one is free at once."""
        with self._lock:
            return None if self._waiters else self._pick()

    def take(self) -> Slot:
        """Wait for a slot."""
        waiter = None
        with self._lock:
            slot = None if self._waiters else self._pick()
            if slot is None:
                waiter = _ThreadWaiter()
                self._waiters.append(waiter)
        if waiter is not None:
            try:
                slot = waiter.wait()
            except BaseException:
                self._leave(waiter)
                raise
            if slot is None:
                raise EngineError(CLOSED)
        assert slot is not None
        try:
            slot.settle()
        except BaseException:
            self.put(slot)
            raise
        return slot

    async def take_async(self) -> Slot:
        """Wait for a slot."""
        waiter = None
        with self._lock:
            slot = None if self._waiters else self._pick()
            if slot is None:
                waiter = _TaskWaiter(asyncio.get_running_loop())
                self._waiters.append(waiter)
        if waiter is not None:
            try:
                await waiter.news
            except BaseException:
                self._leave(waiter)
                raise
            slot = waiter.slot
            if slot is None:
                raise EngineError(CLOSED)
        assert slot is not None
        try:
            await slot.settle_async()
        except BaseException:
            self.put(slot)
            raise
        return slot

    def sweep(self) -> None:
        """Look at one of the runs that have answered, while there is time: the next call shall find its slot empty."""
        with self._lock:
            for slot in self._free:
                if slot.ending is not None:
                    slot.is_ready()
                    return

    def _leave(self, waiter: Union[_ThreadWaiter, _TaskWaiter]) -> None:
        """Out of the queue; what was given meanwhile goes to the next."""
        with self._lock:
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)
            slot = waiter.slot
        if slot is not None:
            self.put(slot)

    def put(self, slot: Slot) -> None:
        """Give a slot back."""
        with self._lock:
            while self._waiters and not self._is_closed:
                waiter: Any = self._waiters.popleft()
                try:
                    waiter.give(slot)
                    return
                except RuntimeError:
                    waiter.slot = None  # its loop was closed
            self._free.append(slot)

    def close(self) -> bool:
        """No more; whoever waits is told so. False if that was so already."""
        with self._lock:
            if self._is_closed:
                return False
            self._is_closed = True
            waiters = list(self._waiters)
            self._waiters.clear()
        for waiter in waiters:
            with contextlib.suppress(RuntimeError):
                waiter.give(None)
        return True

    def collect(self) -> bool:
        """After close(): end what is left in slots that came back; whether all have."""
        with self._lock:
            free = list(self._free)
        for slot in free:
            slot.settle(0)
        return len(free) == self._count

    @property
    def is_closed(self) -> bool:
        """Whether close() was called."""
        return self._is_closed
