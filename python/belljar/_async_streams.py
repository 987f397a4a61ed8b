# SPDX-License-Identifier: Apache-2.0
"""The streams of an AsyncProcess: asyncio's own in its loop; elsewhere objects with the same methods."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Callable, Iterable, Optional, Tuple

from . import _engine, _loops
from ._process import End, close_file

# What may stand in one line; asyncio also reads twice as much ahead.
LINE_BYTES = 1 << 20

Closer = Callable[[], Any]


class StreamReader:
    """asyncio.StreamReader for other loops: one task reads, and nothing is read ahead of it but one piece."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._file = End(fd, "r")
        self._buffer = bytearray()
        self._is_over = False

    async def _fill(self) -> bool:
        """Wait for more; False: there is none."""
        while not self._is_over:
            try:
                data = b"" if self._file.closed else os.read(self._file.fileno(), _engine.READ_BYTES)
            except BlockingIOError:
                await _loops.wait_readable(self._file.fileno())
                continue
            self._buffer += data
            self._is_over = not data
            return not self._is_over
        return False

    def _take(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    async def read(self, n: int = -1) -> bytes:
        """All until the end; or what there is, at most n bytes, and none only at the end."""
        if n == 0:
            return b""
        while (n < 0 or not self._buffer) and await self._fill():
            pass
        return self._take(len(self._buffer) if n < 0 else n)

    async def readexactly(self, n: int) -> bytes:
        """n bytes, or asyncio.IncompleteReadError."""
        if n < 0:
            raise ValueError("readexactly size can not be less than zero")
        while len(self._buffer) < n and await self._fill():
            pass
        if len(self._buffer) < n:
            raise asyncio.IncompleteReadError(self._take(n), n)
        return self._take(n)

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        """Up to and with the separator. asyncio.IncompleteReadError at the end, LimitOverrunError after 1 MiB without one."""
        if not separator:
            raise ValueError("Separator should be at least one-byte string")
        searched = 0
        while True:
            found = self._buffer.find(separator, searched)
            if found >= 0 and found <= LINE_BYTES:
                return self._take(found + len(separator))
            searched = max(len(self._buffer) - len(separator) + 1, 0)
            if found >= 0 or searched > LINE_BYTES:
                raise asyncio.LimitOverrunError(f"a piece is longer than {LINE_BYTES} bytes", found if found >= 0 else searched)
            if not await self._fill():
                raise asyncio.IncompleteReadError(self._take(len(self._buffer)), None)

    async def readline(self) -> bytes:
        """One line; its end is missing only in the last one. ValueError, and it is dropped, if it is longer than 1 MiB."""
        try:
            return await self.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            self._take(error.consumed + (1 if self._buffer.startswith(b"\n", error.consumed) else 0))
            raise ValueError(error.args[0]) from None

    def at_eof(self) -> bool:
        """Whether nothing will come any more."""
        return self._is_over and not self._buffer

    def __aiter__(self) -> StreamReader:
        return self

    async def __anext__(self) -> bytes:
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    def close(self) -> None:
        """What has not been read is gone."""
        self._is_over = True
        _loops.before_close(self._file.fileno() if not self._file.closed else -1)
        close_file(self._file)

    def __del__(self) -> None:
        close_file(self.__dict__.get("_file"))


class StreamWriter:
    """asyncio.StreamWriter for other loops. What does not fit at once is written in the background."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._file = End(fd, "w")
        self._buffer = bytearray()
        self._flusher: Optional[_loops.Background] = None
        self._is_closing = False
        self._error: Optional[OSError] = None

    def _push(self) -> None:
        """As much as fits. Once nobody reads, all of it is dropped."""
        try:
            while self._buffer:
                del self._buffer[: os.write(self._file.fileno(), self._buffer)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._error = error
            self._buffer.clear()

    async def _flush(self) -> None:
        while self._buffer and not self._file.closed:
            await _loops.wait_writable(self._file.fileno())
            self._push()
        if self._is_closing:
            close_file(self._file)

    def write(self, data: Any) -> None:
        """Never waits; drain() does."""
        if self._is_closing:
            raise RuntimeError("the stream is closed")
        is_idle = not self._buffer
        self._buffer += data
        if is_idle:
            self._push()
            if self._buffer:
                self._flusher = _loops.Background(self._flush())

    def writelines(self, data: Iterable[Any]) -> None:
        """One after the other."""
        self.write(b"".join(data))

    async def drain(self) -> None:
        """Wait until all of it is written. BrokenPipeError if nobody reads any more."""
        if self._buffer and self._flusher is not None:
            await self._flusher.wait()
        if self._error is not None:
            raise self._error

    def can_write_eof(self) -> bool:
        """By closing it."""
        return True

    def write_eof(self) -> None:
        """The same as close()."""
        self.close()

    def close(self) -> None:
        """The command reads to the end of what was written."""
        self._is_closing = True
        if not self._buffer:
            self.abort()

    def abort(self) -> None:
        """What has not been written is gone."""
        self._is_closing = True
        self._buffer.clear()
        _loops.before_close(self._file.fileno() if not self._file.closed else -1)
        close_file(self._file)

    def is_closing(self) -> bool:
        """Whether close() was called."""
        return self._is_closing

    async def wait_closed(self) -> None:
        """After close(): until all of it is written."""
        if self._buffer and self._flusher is not None:
            await self._flusher.wait()

    def __del__(self) -> None:
        close_file(self.__dict__.get("_file"))


def _own_loop() -> Optional[asyncio.AbstractEventLoop]:
    return None if _loops.is_trio() else asyncio.get_running_loop()


async def open_reader(fd: int) -> Tuple[Any, Closer]:
    """A stream that reads, and what closes it without waiting."""
    loop = _own_loop()
    if loop is None:
        other = StreamReader(fd)
        return other, other.close
    file = os.fdopen(fd, "rb", 0)
    reader = asyncio.StreamReader(LINE_BYTES, loop=loop)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), file)
    # Read transports of other loops than asyncio's own have an abort() too, which only raises.
    return reader, lambda: transport.is_closing() or transport.close()  # type: ignore[func-returns-value]


async def open_writer(fd: int) -> Tuple[Any, Closer]:
    """A stream that writes, and what closes it without waiting for what was not written."""
    loop = _own_loop()
    if loop is None:
        other = StreamWriter(fd)
        return other, other.abort
    file = os.fdopen(fd, "wb", 0)
    nothing = asyncio.StreamReader(loop=loop)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.StreamReaderProtocol(nothing, loop=loop), file)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    return writer, lambda: transport.is_closing() or transport.abort()  # type: ignore[func-returns-value]
