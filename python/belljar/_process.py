# SPDX-License-Identifier: Apache-2.0
"""spawn(): a command whose streams can be used while it runs.

No thread reads in the background: poll() and wait() read the channel of the run in the thread that calls them.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import threading
import time
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, List, Optional, Union

from . import _engine
from ._closing import Closing
from ._collect import Collector, News
from ._errors import EngineError, public
from ._request import Args, Request, shows_options
from ._result import Result
from ._run import Opener, open_run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import SpawnOptions


# One read of a pipe that is full.
BUFFER_BYTES = 64 << 10


class End(io.FileIO):
    """Our end of a pipe. A forked child will not keep it open, and it can be let go of while threads use it."""

    def __init__(self, fd: int, mode: str) -> None:
        self._guard = threading.Lock()
        super().__init__(fd, mode)
        _engine._held.add(self)

    def let_go(self) -> None:
        """Leave the pipe, though a thread may be about to read or write. Closing the number would have that thread use what is
        opened next: so the number stays, and stands for a pipe whose other end is closed."""
        with self._guard, contextlib.suppress(OSError):
            if self.closed:
                return
            is_writer = self.writable()
            pair = os.pipe()
            try:
                os.close(pair[not is_writer])
                os.dup2(pair[is_writer], self.fileno(), inheritable=False)
            finally:
                os.close(pair[is_writer])

    def close(self) -> None:
        _engine._held.discard(self)
        # In a forked child, a thread that is not there any more may have it.
        is_ours = self._guard.acquire(timeout=1)
        try:
            super().close()
        finally:
            if is_ours:
                self._guard.release()


def close_file(file: Optional[io.IOBase]) -> None:
    """Close it, whatever state it is in."""
    with contextlib.suppress(OSError, ValueError):
        if file is not None:
            file.close()


class PromptWriter(io.BufferedWriter):
    """Writes all it is given at once: a command that waits for input gets it, also where nobody calls flush()."""

    def write(self, data: Any) -> int:
        count = super().write(data)
        self.flush()
        return count


@public
class Process(Closing):
    """A run that goes on. A context manager: leaving it cancels the run and waits until it is gone.

    stdout and stderr are buffered readers, unless on_output was given, which is then called by poll() and wait(). Read them, or
    the command waits once they are full; a limit that ends a stream gives its end of file. stdin is there with stdin=PIPE:
    what is written reaches the command at once. published has, for each port of `publish`, the one of this host's 127.0.0.1 that leads
    to it. All of it may be used from any thread.
    """

    stdin: Optional[io.BufferedWriter]
    stdout: Optional[io.BufferedReader]
    stderr: Optional[io.BufferedReader]

    def __init__(self, request: Request, opener: Opener) -> None:
        self.args = request.args
        self.published = request.published
        self._channel: Optional[_engine.Channel] = None
        self._ends: List[End] = []
        self._pid = _engine.owner_pid()
        with request:
            channel = opener(request)
        self._channel = channel
        self.stdin = None if request.stdin is None else PromptWriter(self._end(request.stdin, "w"))
        self.stdout, self.stderr = self._reader(request.stdout), self._reader(request.stderr)
        self._collector = Collector.of(request, channel)
        self._news: Deque[News] = deque()
        self._lock = threading.Lock()
        self._result: Optional[Result[Any]] = None
        self._failure: Optional[BaseException] = None
        self._is_torn = False
        try:
            while not self._collector.has_started and not self._collector.is_over:
                self._receive(None)
            if self._collector.is_over and not self._collector.has_started:
                self._settle()
        except BaseException:
            self.close()
            raise

    def _end(self, fd: int, mode: str) -> End:
        self._ends.append(End(fd, mode))
        return self._ends[-1]

    def _reader(self, fd: Optional[int]) -> Optional[io.BufferedReader]:
        return None if fd is None else io.BufferedReader(self._end(fd, "r"), BUFFER_BYTES)

    # --- reading the channel; with the lock held, but for the constructor ---

    def _receive(self, seconds: Optional[float]) -> bool:
        """Read what there is, waiting at most so long for it. False: nothing came.

        Waiting and reading are separate: an exception of a signal handler, such as KeyboardInterrupt, is raised while we wait,
        when nothing can be lost. If one is raised while we read, the rest of the channel cannot be understood any more.
        """
        channel = self._channel
        assert channel is not None
        if self._is_torn:
            channel.cancel()
            channel.cancel()
            raise EngineError("a signal handler raised while the engine's answer was read; the run was killed")
        poll = select.poll()
        poll.register(channel.socket.fileno(), select.POLLIN)
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            look_up = _engine.LOOK_UP_SECONDS
            left = look_up if deadline is None else min(look_up, max(deadline - time.monotonic(), 0))
            if poll.poll(left * 1000):
                break
            if deadline is not None and time.monotonic() >= deadline:
                return False
        self._is_torn = True
        try:
            data = channel.socket.recv(_engine.READ_BYTES)
        except ConnectionResetError:
            data = b""
        if data:
            self._news.extend(self._collector.feed(data))
        self._is_torn = False
        if not data and not self._collector.is_over:
            raise channel.lost()
        return True

    def _settle(self) -> Result[Any]:
        """All is read: the result is known, or why there is none."""
        self._result = self._collector.result()
        return self._result

    def _give_out(self) -> None:
        while self._news:
            function, told = self._news.popleft()
            function(*told)

    def _advance(self, deadline: Optional[float]) -> Optional[Result[Any]]:
        """Read until the run is over or the time is up."""
        if self._failure is not None:
            raise self._failure
        if self._result is not None:
            return self._result
        try:
            while True:
                try:
                    self._give_out()
                except BaseException:
                    # The callback's own: the run ends, and is gone when the exception leaves.
                    self._own().cancel()
                    self._read_out()
                    raise
                if self._collector.is_over:
                    return self._settle()
                if not self._receive(None if deadline is None else deadline - time.monotonic()):
                    return None
        except EngineError as error:
            self._failure = error
            raise

    def _read_out(self) -> None:
        """Read to the end of a run that was cancelled. Ctrl-C has it killed."""
        while not self._collector.is_over:
            try:
                self._receive(None)
            except KeyboardInterrupt:
                self._own().cancel()
            self._news.clear()
        self._settle()

    def _own(self) -> _engine.Channel:
        _engine.check_owner(self._pid)
        assert self._channel is not None
        return self._channel

    # --- what callers use ---

    def poll(self) -> Optional[Result[Any]]:
        """The result if the run is over, else None. Never waits."""
        self._own()
        if not self._lock.acquire(blocking=False):
            return self._result
        try:
            return self._advance(time.monotonic())
        finally:
            self._lock.release()

    def wait(self, timeout: Optional[float] = None) -> Result[Any]:
        """Wait for the end. TimeoutError after `timeout` seconds; the run goes on then."""
        self._own()
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            raise TimeoutError(f"the run has not ended after {timeout} seconds")
        try:
            result = self._advance(deadline)
        finally:
            self._lock.release()
        if result is None:
            raise TimeoutError(f"the run has not ended after {timeout} seconds")
        return result

    @property
    def returncode(self) -> Optional[int]:
        """The result's returncode once poll() or wait() has seen the end."""
        return None if self._result is None else self._result.returncode

    def send_signal(self, sig: int) -> None:
        """Send a signal to every process of the run; nothing if it is over."""
        self._own().signal(sig)

    def terminate(self) -> None:
        """SIGTERM to every process of the run."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to every process of the run."""
        self.send_signal(signal.SIGKILL)

    def cancel(self) -> Result[Any]:
        """End the run: SIGTERM, after the policy's grace SIGKILL. Returns when nothing of it is left."""
        self._own().cancel()
        while True:
            try:
                return self.wait()
            except KeyboardInterrupt:
                self._own().cancel()

    def resize(self, rows: int, cols: int) -> None:
        """Tell the command's terminal its new size."""
        self._own().resize(rows, cols)

    def fileno(self) -> int:
        """A descriptor that is readable when poll() would have news."""
        return self._own().socket.fileno()

    def close(self) -> None:
        """Cancel what still runs, wait until it is gone, close the streams."""
        channel = self._own()
        # Ours first: nobody will read what the command still writes.
        for end in self._ends:
            end.let_go()
        if self._result is None and self._failure is None:
            channel.cancel()
            with self._lock:
                if self._result is None and self._failure is None:
                    try:
                        self._read_out()
                    except BaseException as error:
                        self._failure = error
                        channel.drain()
        channel.close()
        # A thread that was waiting in one of them has seen its end by now.
        for file in (self.stdin, self.stdout, self.stderr, *self._ends):
            close_file(file)

    def __del__(self) -> None:
        channel = getattr(self, "_channel", None)
        if channel is None or channel.socket.fileno() < 0 or not _engine.is_ours(self._pid):
            return
        if self._result is None and self._failure is None:
            warnings.warn(f"{self!r} was never waited for; its run is killed", ResourceWarning, source=self)
        for end in self._ends:
            close_file(end)
        channel.kill()

    def __repr__(self) -> str:
        state = "running" if self._result is None else self._result.outcome
        return f"<belljar.Process {self.args!r} {state}>"


@shows_options
def spawn(args: Union[Args, str], **options: Unpack[SpawnOptions]) -> Process:
    """Start a command in a fresh jar and return once it runs. Arguments as for run(); stdin=PIPE gives a stream to write to.

    Unless the policy or a keyword says otherwise, the run has no time limit, its output no cap, and the result has no output
    (capture=True keeps it, up to `output`, by default 100K). Memory is limited to 512M, as for run().

    A command that cannot be started raises here, as it does in run().
    """
    return Process(Request(args, options, is_spawn=True), open_run)
