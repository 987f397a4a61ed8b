# SPDX-License-Identifier: Apache-2.0
"""run_async() and spawn_async(): the same for asyncio.

They use only what every event loop offers: add_reader, sock_sendall, connect_read_pipe, connect_write_pipe. No signal
handlers, no child watchers, no threads. A coroutine reads the channel of its own run; when it is cancelled it ends the
run, waits until nothing is left of it, and only then raises CancelledError.
"""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Deque, Generator, Optional, Union

from . import _engine
from ._closing import AsyncClosing
from ._collect import Collector
from ._errors import EngineError
from ._keys import OnOutput
from ._request import Args, Request, shows_options
from ._result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import RunOptions

AsyncOpener = Callable[[Request], Awaitable[_engine.Channel]]


async def open_channel_async(request: bytes, fds: Any = ()) -> _engine.Channel:
    """As _engine.open_channel, without holding up the loop."""
    opening = _engine.Opening(request, fds)
    channel = opening.hand_over(is_patient=False)
    try:
        while channel is None:
            await asyncio.sleep(_engine.RETRY_SECONDS)
            channel = opening.hand_over(is_patient=False)
    except asyncio.CancelledError:
        opening.abandon()
        raise
    if opening.rest:
        channel.socket.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_sendall(channel.socket, opening.rest)
        except ConnectionError:
            pass  # the engine refused it before it had read all of it: the answer says why
        except BaseException:
            channel.kill()
            raise
    return channel


async def open_run_async(request: Request) -> _engine.Channel:
    """Run it in a jar of its own."""
    return await open_channel_async(request.run_frame(), request.fds)


class Reader:
    """Awaits the bytes of a channel. It loses nothing when it is cancelled, and reads nothing ahead."""

    def __init__(self, channel: _engine.Channel) -> None:
        self._socket = channel.socket
        self._socket.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._chunks: Deque[bytes] = deque()

    def _take(self) -> bool:
        try:
            self._chunks.append(self._socket.recv(_engine.READ_BYTES))
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self._chunks.append(b"")
        return True

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        if not self._chunks and not self._take():
            news: asyncio.Future[None] = self._loop.create_future()

            def on_readable() -> None:
                if not news.done() and self._take():
                    news.set_result(None)

            fd = self._socket.fileno()
            self._loop.add_reader(fd, on_readable)
            try:
                await news
            finally:
                if not self._loop.is_closed():
                    self._loop.remove_reader(fd)
        return self._chunks.popleft()


async def read_out(reader: Reader, channel: _engine.Channel) -> None:
    """Cancel the run and wait until nothing is left of it. If the task is cancelled again, the run is killed."""
    channel.cancel()
    while True:
        try:
            while await reader.read():
                pass
            return
        except asyncio.CancelledError:
            channel.cancel()


async def read_to_end(
    reader: Reader,
    channel: _engine.Channel,
    collector: Collector,
    on_output: Optional[OnOutput],
    on_start: Optional[Callable[[], None]] = None,
) -> None:
    """Read until the run is over. on_output may be a coroutine function."""
    while not collector.is_over:
        data = await reader.read()
        if not data:
            raise channel.lost()
        pieces = collector.feed(data)
        if on_start is not None and collector.has_started:
            on_start()
            on_start = None
        for stream, piece in pieces:
            if on_output is not None:
                answer = on_output(stream, piece)
                if hasattr(answer, "__await__"):
                    await answer


async def result_of(channel: _engine.Channel, request: Request, on_start: Optional[Callable[[], None]] = None) -> Result:
    """Read a run to its end. Whatever comes in between ends the run first."""
    collector = Collector(request.args, request.text, request.errors)
    reader = Reader(channel)
    try:
        await read_to_end(reader, channel, collector, request.on_output, on_start)
    except EngineError:
        raise
    except GeneratorExit:
        # Thrown away with its loop: nothing can be awaited any more.
        channel.kill()
        raise
    except BaseException:
        await read_out(reader, channel)
        raise
    finally:
        channel.close()
    return collector.result()


async def finish_async(request: Request, opener: AsyncOpener, check: bool) -> Result:
    """Start, read to the end, give the result."""
    with request:
        channel = await opener(request)
    result = await result_of(channel, request)
    return result.check() if check else result


@shows_options
async def run_async(args: Union[Args, str], *, check: bool = False, **options: Unpack[RunOptions]) -> Result:
    """run() for asyncio. on_output is called in the loop and may be a coroutine function.

    Cancelling the task ends the run, and CancelledError leaves when nothing of it is left.
    """
    return await finish_async(Request(args, options), open_run_async, check)


class _Done:
    """Awaiting it returns at once: what it stands for is done."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield  # a generator that gives nothing


async def _connect_reader(fd: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    loop = asyncio.get_running_loop()
    file = os.fdopen(fd, "rb", 0)
    reader = asyncio.StreamReader(loop=loop)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), file)
    return reader, transport


async def _connect_writer(fd: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    file = os.fdopen(fd, "wb", 0)
    protocol_reader = asyncio.StreamReader(loop=loop)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(protocol_reader, loop=loop), file
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


class AsyncProcess(AsyncClosing):
    """A run that goes on, for asyncio: the methods of Process, awaitable. Use it in the loop that started it.

    stdout and stderr are asyncio.StreamReader, unless on_output was given, which the loop then calls as output comes. stdin
    is an asyncio.StreamWriter with stdin=PIPE. An async context manager: leaving it cancels the run and waits until it is
    gone. The end of asyncio.run() does so too.
    """

    stdin: Optional[asyncio.StreamWriter] = None
    stdout: Optional[asyncio.StreamReader] = None
    stderr: Optional[asyncio.StreamReader] = None

    def __init__(self, args: list[str], channel: _engine.Channel) -> None:
        self.args = args
        self._channel = channel
        self._pid = _engine.owner_pid()
        self._transports: list[Any] = []
        self._task: Optional[asyncio.Task[Result]] = None

    async def _begin(self, request: Request) -> None:
        """Wait until the command runs; connect the streams."""
        loop = asyncio.get_running_loop()
        started = loop.create_future()

        def on_start() -> None:
            if not started.done():
                started.set_result(None)

        task = self._task = loop.create_task(result_of(self._channel, request, on_start))
        try:
            await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not started.done():
                task.result()
            await self._connect(request)
        except BaseException:
            request.abandon()
            await self.close()
            raise
        finally:
            started.cancel()

    async def _connect(self, request: Request) -> None:
        if request.stdin is not None:
            fd, request.stdin = request.stdin, None
            self.stdin = await _connect_writer(fd)
            self._transports.append(self.stdin.transport)
        for name in ("stdout", "stderr"):
            fd = getattr(request, name)
            if fd is not None:
                setattr(request, name, None)
                reader, transport = await _connect_reader(fd)
                setattr(self, name, reader)
                self._transports.append(transport)

    def _own(self) -> asyncio.Task[Result]:
        _engine.check_owner(self._pid)
        assert self._task is not None
        return self._task

    async def poll(self) -> Optional[Result]:
        """The result if the run is over, else None."""
        task = self._own()
        await asyncio.sleep(0)
        return task.result() if task.done() else None

    async def wait(self, timeout: Optional[float] = None) -> Result:
        """Wait for the end. TimeoutError after `timeout` seconds; the run goes on then, as it does if this is cancelled."""
        task = self._own()
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise TimeoutError(f"the run has not ended after {timeout} seconds")
        return task.result()

    @property
    def returncode(self) -> Optional[int]:
        """The result's returncode once the run is over."""
        task = self._task
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result().returncode

    def send_signal(self, sig: int) -> Awaitable[None]:
        """Send a signal to every process of the run; nothing if it is over."""
        self._own()
        self._channel.signal(sig)
        return _Done()

    def terminate(self) -> Awaitable[None]:
        """SIGTERM to every process of the run."""
        return self.send_signal(signal.SIGTERM)

    def kill(self) -> Awaitable[None]:
        """SIGKILL to every process of the run."""
        return self.send_signal(signal.SIGKILL)

    async def cancel(self) -> Result:
        """End the run: SIGTERM, after the policy's grace SIGKILL. Returns when nothing of it is left."""
        self._own()
        self._channel.cancel()
        return await self.wait()

    def resize(self, rows: int, cols: int) -> Awaitable[None]:
        """Tell the command's terminal its new size."""
        self._own()
        self._channel.resize(rows, cols)
        return _Done()

    def fileno(self) -> int:
        """The descriptor of the run's channel. The loop reads it."""
        self._own()
        return self._channel.socket.fileno()

    def _close_streams(self) -> None:
        """Without waiting for what was not written, or not read."""
        while self._transports:
            transport = self._transports.pop()
            if transport.is_closing():
                continue
            # Read transports of other loops have an abort() too, which only raises.
            if self.stdin is not None and transport is self.stdin.transport:
                transport.abort()
            else:
                transport.close()

    async def close(self) -> None:
        """Cancel what still runs, wait until it is gone, close the streams."""
        task = self._own()
        self._close_streams()
        if not task.done():
            self._channel.cancel()
        is_cancelled = False
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                is_cancelled = True
                self._channel.cancel()
        if not task.cancelled():
            task.exception()  # seen
        if is_cancelled:
            raise asyncio.CancelledError

    async def _close_async(self) -> None:
        await self.close()

    def __del__(self) -> None:
        task = self._task
        if task is None or not _engine.is_ours(self._pid):
            return
        if not task.done():
            warnings.warn(f"{self!r} was never waited for; its run is killed", ResourceWarning, source=self)
            self._channel.cancel()
            self._channel.cancel()
        loop = task.get_loop()
        if not loop.is_closed():
            for transport in self._transports:
                loop.call_soon_threadsafe(transport.close)

    def __repr__(self) -> str:
        return f"<belljar.AsyncProcess {self.args!r} {'running' if self.returncode is None else self.returncode}>"


async def begin_async(request: Request, opener: AsyncOpener) -> AsyncProcess:
    """Start a run and return once it runs."""
    with request:
        channel = await opener(request)
    process = AsyncProcess(request.args, channel)
    await process._begin(request)
    return process


@shows_options
async def spawn_async(args: Union[Args, str], **options: Unpack[RunOptions]) -> AsyncProcess:
    """spawn() for asyncio."""
    return await begin_async(Request(args, options, is_spawn=True), open_run_async)
