# SPDX-License-Identifier: Apache-2.0
"""run_async() and spawn_async(): the same for asyncio, trio and anyio.

They use only what _loops.py has: no signal handlers, no child watchers, no threads. A coroutine reads the channel of its own
run; when it is cancelled it ends the run, waits until nothing is left of it, and only then lets the cancellation go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import warnings
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Generator, Literal, Optional, Union, overload

from . import _engine, _loops
from ._async_streams import open_reader, open_writer
from ._closing import AsyncClosing
from ._collect import Collector
from ._errors import EngineError, public
from ._request import Args, Request, shows_options
from ._result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import RunOptions, SpawnOptions

# So many reads in a row without waiting; then the others in the loop have their turn.
READS_IN_A_ROW = 16

AsyncOpener = Callable[[Request], Awaitable[_engine.Channel]]


async def open_channel_async(request: bytes, fds: Any = ()) -> _engine.Channel:
    """As _engine.open_channel, without holding up the loop."""
    opening = _engine.Opening(request, fds)
    channel = opening.hand_over(is_patient=False)
    try:
        while channel is None:
            await _loops.sleep(_engine.RETRY_SECONDS)
            channel = opening.hand_over(is_patient=False)
    except BaseException:
        opening.abandon()
        raise
    rest = opening.rest
    if rest:
        channel.socket.setblocking(False)
        try:
            while rest:
                try:
                    rest = rest[channel.socket.send(rest) :]
                except BlockingIOError:
                    await _loops.wait_writable(channel.socket.fileno())
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
        self._in_a_row = 0

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        self._in_a_row += 1
        if self._in_a_row > READS_IN_A_ROW:
            self._in_a_row = 0
            await _loops.sleep(0)
        while True:
            try:
                return self._socket.recv(_engine.READ_BYTES)
            except (BlockingIOError, InterruptedError):
                self._in_a_row = 0
            except OSError:
                return b""
            await _loops.wait_readable(self._socket.fileno())


async def read_out(reader: Reader, channel: _engine.Channel) -> None:
    """Cancel the run and wait until nothing is left of it. If the task is cancelled again, the run is killed."""
    channel.cancel()
    with _loops.shield():
        while True:
            try:
                while await reader.read():
                    pass
                return
            except asyncio.CancelledError:
                channel.cancel()


async def read_some(
    reader: Reader, channel: _engine.Channel, collector: Collector, on_start: Optional[Callable[[], None]] = None
) -> None:
    """Take in what comes next. The caller's functions may be coroutine functions. on_start: called once the command runs."""
    had_started = collector.has_started
    data = await reader.read()
    if not data:
        raise channel.lost()
    news = collector.feed(data)
    if on_start is not None and collector.has_started and not had_started:
        on_start()
    for function, told in news:
        answer: Any = function(*told)
        if hasattr(answer, "__await__"):
            await answer


async def read_to_end(
    reader: Reader, channel: _engine.Channel, collector: Collector, on_start: Optional[Callable[[], None]] = None
) -> None:
    """Read until the run is over."""
    while not collector.is_over:
        await read_some(reader, channel, collector, on_start)


async def result_of(channel: _engine.Channel, request: Request, on_start: Optional[Callable[[], None]] = None) -> Result[Any]:
    """Read a run to its end. Whatever comes in between ends the run first."""
    collector = Collector.of(request, channel, may_await=True)
    reader = Reader(channel)
    try:
        await read_to_end(reader, channel, collector, on_start)
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


async def finish_async(request: Request, opener: AsyncOpener, check: bool) -> Result[Any]:
    """Start, read to the end, give the result."""
    with request:
        channel = await opener(request)
    result = await result_of(channel, request)
    return result.check() if check else result


@overload
async def run_async(
    args: Union[Args, str], *, text: Literal[True] = ..., check: bool = ..., **options: Unpack[RunOptions]
) -> Result[str]: ...


@overload
async def run_async(
    args: Union[Args, str], *, text: Literal[False], check: bool = ..., **options: Unpack[RunOptions]
) -> Result[bytes]: ...


@overload
async def run_async(
    args: Union[Args, str], *, text: bool, check: bool = ..., **options: Unpack[RunOptions]
) -> Result[Any]: ...


@shows_options
async def run_async(args: Union[Args, str], *, check: bool = False, **options: Any) -> Any:
    """run() for asyncio, trio and anyio. on_output is called in the loop and may be a coroutine function.

    Cancelling the task ends the run, and the cancellation goes on when nothing of the run is left.
    """
    return await finish_async(Request(args, options), open_run_async, check)


class _Done:
    """Awaiting it returns at once: what it stands for is done."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield  # a generator that gives nothing


async def _until_end(channel: _engine.Channel, request: Request, started: _loops.Signal, starts: list[bool]) -> Result[Any]:
    """The run of an AsyncProcess, in the background. started: it runs, or it will not any more; starts: whether it did."""

    def tell(has_started: bool = True) -> None:
        starts.append(has_started)
        with contextlib.suppress(RuntimeError):
            started.set()  # RuntimeError: the loop has ended

    try:
        return await result_of(channel, request, tell)
    finally:
        tell(False)


@public
class AsyncProcess(AsyncClosing):
    """A run that goes on, for asyncio, trio and anyio: the methods of Process, awaitable. Use it in the loop that started it.

    stdout and stderr are asyncio.StreamReader, whose lines may have 1 MiB, unless on_output was given, which the loop then calls as
    output comes. published is as in Process. stdin is an asyncio.StreamWriter with stdin=PIPE. Under trio they are objects with the same methods. An async context manager:
    leaving it cancels the run and waits until it is gone. The end of the loop does so too.
    """

    stdin: Optional[asyncio.StreamWriter] = None
    stdout: Optional[asyncio.StreamReader] = None
    stderr: Optional[asyncio.StreamReader] = None

    def __init__(self, args: list[str], channel: _engine.Channel) -> None:
        self.args = args
        self.published: dict[int, int] = {}
        self._channel = channel
        self._pid = _engine.owner_pid()
        self._closers: list[Callable[[], Any]] = []
        self._task: Optional[_loops.Background] = None

    async def _begin(self, request: Request) -> None:
        """Wait until the command runs; connect the streams."""
        started, starts = _loops.Signal(), []  # type: ignore[var-annotated]
        self.published = request.published
        task = self._task = _loops.Background(_until_end(self._channel, request, started, starts))
        try:
            await started.wait()
            if not starts[0]:
                await task.wait()
                task.result()
            await self._connect(request)
        except BaseException:
            request.abandon()
            await self.close()
            raise

    async def _connect(self, request: Request) -> None:
        for name, connect in (("stdin", open_writer), ("stdout", open_reader), ("stderr", open_reader)):
            fd = getattr(request, name)
            if fd is not None:
                setattr(request, name, None)
                stream, close = await connect(fd)
                setattr(self, name, stream)
                self._closers.append(close)

    def _own(self) -> _loops.Background:
        _engine.check_owner(self._pid)
        assert self._task is not None
        return self._task

    async def poll(self) -> Optional[Result[Any]]:
        """The result if the run is over, else None."""
        task = self._own()
        await _loops.sleep(0)
        return task.result() if task.is_done else None

    async def wait(self, timeout: Optional[float] = None) -> Result[Any]:
        """Wait for the end. TimeoutError after `timeout` seconds; the run goes on then, as it does if this is cancelled."""
        task = self._own()
        if not await task.wait(timeout):
            raise TimeoutError(f"the run has not ended after {timeout} seconds")
        return task.result()  # type: ignore[no-any-return]

    @property
    def returncode(self) -> Optional[int]:
        """The result's returncode once the run is over."""
        task = self._task
        if task is None or not task.is_done or task.error() is not None:
            return None
        return int(task.result().returncode)

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

    async def cancel(self) -> Result[Any]:
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

    async def close(self) -> None:
        """Cancel what still runs, wait until it is gone, close the streams."""
        task = self._own()
        while self._closers:
            self._closers.pop()()
        if not task.is_done:
            self._channel.cancel()
        is_cancelled = False
        with _loops.shield():
            while not task.is_done:
                try:
                    await task.wait()
                except asyncio.CancelledError:
                    is_cancelled = True
                    self._channel.cancel()
        task.error()  # seen
        if is_cancelled:
            raise asyncio.CancelledError

    async def _close_async(self) -> None:
        await self.close()

    def __del__(self) -> None:
        task = self._task
        if task is None or not _engine.is_ours(self._pid):
            return
        if not task.is_done:
            warnings.warn(f"{self!r} was never waited for; its run is killed", ResourceWarning, source=self)
            self._channel.cancel()
            self._channel.cancel()
        for close in self._closers:
            task.soon(close)

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
async def spawn_async(args: Union[Args, str], **options: Unpack[SpawnOptions]) -> AsyncProcess:
    """spawn() for asyncio, trio and anyio: the same limits and options."""
    return await begin_async(Request(args, options, is_spawn=True), open_run_async)
