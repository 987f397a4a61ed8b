# SPDX-License-Identifier: Apache-2.0
"""Await a coroutine of asyncio in a program with another event loop, such as trio's: a thread runs an asyncio loop for it."""

from __future__ import annotations

import asyncio
import importlib
import threading
from typing import Any, Awaitable, Callable, Optional


class LoopThread:
    """Runs a coroutine of asyncio in a loop of its own, in another thread."""

    def __init__(self, make: Callable[[], Awaitable[Any]]) -> None:
        self._make = make
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._task: Any = None
        self._is_cancelled = False
        self._lock = threading.Lock()
        self.done = threading.Event()

    async def _main(self) -> Any:
        with self._lock:
            if self._is_cancelled:
                raise asyncio.CancelledError
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await self._make()

    def run(self) -> Any:
        """In the other thread."""
        try:
            return asyncio.run(self._main())
        finally:
            with self._lock:
                self._loop = None
            self.done.set()

    def cancel(self) -> None:
        """From any thread. The coroutine is cancelled, or never begins."""
        with self._lock:
            self._is_cancelled = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)


async def await_anywhere(make: Callable[[], Awaitable[Any]]) -> Any:
    """The result of an asyncio coroutine, whatever the loop of the caller. Cancelling waits until the coroutine has ended."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return await make()
    anyio = importlib.import_module("anyio")
    work = LoopThread(make)
    try:
        return await anyio.to_thread.run_sync(work.run, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        work.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(work.done.wait)
        raise
