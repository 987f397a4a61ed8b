# SPDX-License-Identifier: Apache-2.0
"""What happens to the files in a directory of a jar, as the kernel tells it (inotify).

The jar's first process makes the descriptor behind its walls. Here it is only read, together with the jar's own channel, which
tells that the jar has ended.
"""

from __future__ import annotations

import dataclasses
import os
import select
import socket
import struct
import threading
from collections import deque
from typing import Any, Deque, List, Optional

from . import _engine
from ._errors import public

READ_BYTES = 64 << 10
HEADER = struct.Struct("iIII")
IS_DIRECTORY = 0x40000000
OVERFLOW = 0x4000
IGNORED = 0x8000
_TYPES = {
    0x2: "modified",
    0x4: "attributes",
    0x8: "closed",
    0x40: "moved_from",
    0x80: "moved_to",
    0x100: "created",
    0x200: "deleted",
    0x400: "deleted",
    0x800: "moved_from",
    OVERFLOW: "overflow",
}


@public
@dataclasses.dataclass(frozen=True)
class FileEvent:
    """Something has happened to a file.

    `type` is "created", "modified", "closed" (after it was written), "attributes", "deleted", "moved_from", "moved_to", or
    "overflow": so much has happened that some of it was lost. `name` is that in the watched directory; "" is what is watched
    itself.
    """

    name: str
    type: str
    is_dir: bool


@public
class Watch:
    """Iterates over FileEvents, also with `async for`. It ends with the jar, or when what is watched is removed.

    A context manager; close() ends the watching.
    """

    def __init__(self, fd: int, jar: socket.socket) -> None:
        self._fd = fd
        self._jar = jar
        self._pid = _engine.owner_pid()
        self._events: Deque[FileEvent] = deque()
        self._is_over = self._is_closed = False
        self._lock = threading.Lock()
        self._waiting = 0
        self._own: List[Any] = []
        try:
            # A pipe whose other end close() closes: whoever waits is woken.
            self._closed, self._closer = os.pipe()
            self._own += [os.fdopen(self._closed, "rb", 0), os.fdopen(self._closer, "wb", 0)]
            self._all = select.epoll()
            self._own.append(self._all)
            for watched in (fd, jar.fileno(), self._closed):
                self._all.register(watched, select.EPOLLIN)
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        while self._own:
            self._own.pop().close()
        os.close(self._fd)
        _engine.close_socket(self._jar)

    def fileno(self) -> int:
        """Readable when next() does not wait."""
        return self._all.fileno()

    def _feed(self, data: bytes) -> None:
        at = 0
        while at + HEADER.size <= len(data):
            _, mask, _, length = HEADER.unpack_from(data, at)
            name = data[at + HEADER.size : at + HEADER.size + length].rstrip(b"\0")
            at += HEADER.size + length
            self._is_over |= bool(mask & IGNORED)
            kind = next((word for bit, word in _TYPES.items() if mask & bit), None)
            if kind is not None:
                self._events.append(FileEvent(os.fsdecode(name), kind, bool(mask & IS_DIRECTORY)))

    def _take(self) -> Optional[FileEvent]:
        """The next event that is there; None: there is none yet. StopIteration at the end."""
        if not self._events and not self._is_over and not self._is_closed:
            _engine.check_owner(self._pid)
            # First whether the jar has ended: what happened before is read after.
            has_jar_ended = bool(select.select([self._jar], [], [], 0)[0])
            try:
                self._feed(os.read(self._fd, READ_BYTES))
            except BlockingIOError:
                self._is_over = has_jar_ended
        if self._events:
            return self._events.popleft()
        if self._is_over or self._is_closed:
            raise StopIteration
        return None

    def _enter(self) -> None:
        """What is open stays open until _leave()."""
        with self._lock:
            if self._is_closed:
                raise StopIteration
            self._waiting += 1

    def _leave(self) -> None:
        with self._lock:
            self._waiting -= 1
            is_last = self._is_closed and not self._waiting
        if is_last:
            self._release()

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> FileEvent:
        self._enter()
        try:
            while True:
                event = self._take()
                if event is not None:
                    return event
                self._all.poll()
        except StopIteration:
            self.close()
            raise
        finally:
            self._leave()

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> FileEvent:
        from . import _loops

        try:
            self._enter()
        except StopIteration:
            raise StopAsyncIteration from None
        try:
            while True:
                try:
                    event = self._take()
                except StopIteration:
                    self.close()
                    raise StopAsyncIteration from None
                if event is not None:
                    return event
                await _loops.wait_readable(self._all.fileno())
        finally:
            self._leave()

    def close(self) -> None:
        """Watch no more. Whoever waits for the next event hears that there is none."""
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
            is_last = not was_closed and not self._waiting
            if not was_closed and self._waiting:
                self._own[1].close()
        if is_last:
            self._release()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_all"):
            self.close()
