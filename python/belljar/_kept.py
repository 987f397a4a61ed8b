# SPDX-License-Identifier: Apache-2.0
"""What a kept interpreter and a kept shell have in common: a run that goes on, streams that belong to one cell each, and waiting.

Output goes through two pipes that lead from the jar straight to your program. Whoever ends a cell says so on a descriptor of its
own, after everything was written; so when that word is here, the pipes hold the rest of the cell's output, and what they hold is
counted before it is read: something that goes on writing in the background cannot keep the reader.

What is to be done is written once, as a generator that yields what it waits for; drive() waits in a thread, drive_async() in
a loop.
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import contextvars
import fcntl
import io
import os
import select
import socket
import struct
import termios
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, Callable, Collection, Deque, Dict, Generator, List, Mapping, Optional, Sequence, Tuple

from . import _engine, _loops, _wire
from ._ask import Answerer
from ._closing import AsyncClosing, Closing
from ._collect import Collector
from ._errors import BelljarError, CallEnded, EngineError, PolicyError, shortage_is_engine_error
from ._keys import parse_duration, parse_size
from ._request import json_frame
from ._result import Result
from ._steps import close_channel

if TYPE_CHECKING:
    from ._jar import Jar
    from ._keys import OnAsk

# A Poll and how many seconds to wait at most; or something to await.
Wait = Any
Steps = Generator[Wait, Any, Any]

READ_BYTES = 64 << 10
# What the end of a process may take to reach the engine, after its link has ended.
END_SECONDS = 1.0
LOCK_POLL_SECONDS = 0.002
DEFAULT_TIMEOUT, DEFAULT_GRACE, DEFAULT_OUTPUT = 30.0, 3.0, 100 << 10
# Output does not pass through the engine, which would do these.
NOT_HERE: Dict[str, Any] = {"overflow": ("truncate",), "keep": ("head",), "redact": ([], ()), "redact_secrets": (False,), "redact_env": (False,)}


# --- waiting ---


class Poll:
    """Descriptors to wait for, again and again. For one thread at a time.

    The system looks at them in their order: if the first is readable, what was written to the others before that is seen too.
    """

    def __init__(self, fds: Sequence[int]) -> None:
        self.fds = list(fds)
        self._poll = select.poll()
        for fd in fds:
            self._poll.register(fd, select.POLLIN)

    def remove(self, fd: int) -> None:
        """It has come to its end."""
        if fd in self.fds:
            self.fds.remove(fd)
            self._poll.unregister(fd)

    def wait(self, seconds: Optional[float]) -> List[int]:
        """Those that are readable."""
        look_up = _engine.LOOK_UP_SECONDS
        left = look_up if seconds is None or seconds > look_up else seconds if seconds > 0 else 0
        return [fd for fd, _ in self._poll.poll(left * 1000)]


def drive(steps: Steps) -> Any:
    """Carry the steps out in this thread. What a signal handler raises meanwhile is theirs to deal with."""
    try:
        wait = next(steps)
        while True:
            if not isinstance(wait, tuple):
                if hasattr(wait, "close"):
                    wait.close()
                wait = steps.throw(TypeError("a coroutine function can only be called back from the _async methods"))
                continue
            try:
                ready = wait[0].wait(wait[1])
            except BaseException as error:
                wait = steps.throw(error)
            else:
                wait = steps.send(ready)
    except StopIteration as stop:
        return stop.value


async def _wait_async(poll: Poll, seconds: Optional[float]) -> List[int]:
    with contextlib.closing(select.epoll()) as both:
        for fd in poll.fds:
            both.register(fd, select.EPOLLIN)
        await _loops.wait_readable(both.fileno(), seconds)
        _loops.before_close(both.fileno())
    return poll.wait(0)


async def drive_async(steps: Steps) -> Any:
    """Carry the steps out in a loop. When the task is cancelled, the steps come to their end first."""
    with contextlib.ExitStack() as shields:
        is_shielded = False
        try:
            wait = next(steps)
            while True:
                try:
                    ready = await (_wait_async(*wait) if isinstance(wait, tuple) else wait)
                except GeneratorExit:
                    steps.close()  # thrown away with its loop: nothing can be awaited any more
                    raise
                except BaseException as error:
                    if not is_shielded:
                        shields.enter_context(_loops.shield())
                        is_shielded = True
                    wait = steps.throw(error)
                else:
                    wait = steps.send(ready)
        except StopIteration as stop:
            return stop.value


# Who has whose turn, in this thread or task.
_turns: "contextvars.ContextVar[frozenset[int]]" = contextvars.ContextVar("belljar_turns", default=frozenset())


class Turns:
    """One thread or task at a time; the others wait. Whoever has the turn and asks again would wait for ever, and is told so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token: Any = None

    def check(self) -> None:
        """RuntimeError for whoever has the turn already."""
        if id(self) in _turns.get() and self._lock.locked():
            raise RuntimeError("it waits for the answer to input(), or a signal handler was called meanwhile: nothing else can run")

    def _take(self) -> None:
        self._token = _turns.set(_turns.get() | {id(self)})

    def _leave(self) -> None:
        token, self._token = self._token, None
        self._lock.release()
        with contextlib.suppress(ValueError):  # thrown away in another context
            _turns.reset(token)

    def __enter__(self) -> None:
        self.check()
        self._lock.acquire()
        self._take()

    def __exit__(self, *_: object) -> None:
        self._leave()

    async def __aenter__(self) -> None:
        self.check()
        while not self._lock.acquire(blocking=False):
            await _loops.sleep(LOCK_POLL_SECONDS)
        self._take()

    async def __aexit__(self, *_: object) -> None:
        self._leave()


class Deadline:
    """When a cell must be over: first it is interrupted, after the grace it is killed."""

    def __init__(self, timeout: Optional[float], grace: float) -> None:
        self.stage = 0
        self._grace = grace
        self._at = None if timeout is None else time.monotonic() + timeout

    @property
    def left(self) -> Optional[float]:
        return None if self._at is None else self._at - time.monotonic()

    def is_over(self) -> bool:
        """Whether it is time for the next stage."""
        return self._at is not None and time.monotonic() >= self._at

    def next_stage(self) -> int:
        """1: interrupt; 2: kill; 3: kill everything around it, too."""
        self.stage += 1
        self._at = time.monotonic() + (self._grace if self.stage == 1 else END_SECONDS) if self.stage < 3 else None
        return self.stage

    def postpone(self, seconds: float) -> None:
        """So much time does not count."""
        if self._at is not None:
            self._at += seconds


# --- settings ---


class Settings:
    """Which keys of a jar are a cell's: its time, its grace and its output; the rest is for the engine.

    keys: what the cells are given, where they say nothing. jar_keys: what was given for the jar, which no cell goes beyond.
    """

    def __init__(self, keys: Dict[str, Any], jar_keys: Mapping[str, Any]) -> None:
        for name, harmless in NOT_HERE.items():
            value = keys.get(name, jar_keys.get(name))
            if value is not None and not any(value == fine for fine in harmless):
                raise PolicyError(f"{name}={value!r}: output of a kept interpreter or shell does not pass through the engine")

        def take(name: str, default: Any) -> Any:
            if name in keys:
                return keys.pop(name)
            value = jar_keys.get(name)
            return default if value is None else value

        self._most = parse_duration(jar_keys.get("timeout"), "timeout")
        self.timeout = self.within(take("timeout", DEFAULT_TIMEOUT))
        grace = parse_duration(take("grace", DEFAULT_GRACE), "grace")
        self.grace = DEFAULT_GRACE if grace is None else grace
        if jar_keys.get("grace") is not None or self._most is not None:
            self.grace = min(self.grace, parse_duration(jar_keys.get("grace", DEFAULT_GRACE), "grace") or 0.0)
        # The owner's limit of output holds what a cell answers too; without one, answers are held to the bound of all results.
        is_given = any(given.get("output") is not None for given in (keys, jar_keys))
        self.output = parse_size(take("output", DEFAULT_OUTPUT), "output")
        if jar_keys.get("output") is not None:
            self.output = min(self.output, parse_size(jar_keys["output"], "output"))
        self.answer: Optional[int] = self.output if is_given else None

    def within(self, timeout: Any) -> Optional[float]:
        """The seconds of a timeout that was asked for a cell, but no more than the jar's. None: no limit."""
        seconds = parse_duration(timeout, "timeout")
        if self._most is None or (seconds is not None and seconds < self._most):
            return seconds
        return self._most


# --- streams ---


class Streams:
    """Our ends of the two pipes, and what the present cell has written to them."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._files: List[io.FileIO] = []
        self.theirs: List[int] = []
        with shortage_is_engine_error("make pipes for output"):
            for _ in range(2):
                reader, writer = os.pipe()
                os.set_blocking(reader, False)
                file = io.FileIO(reader, "r")
                _engine._held.add(file)
                self._files.append(file)
                self.theirs.append(writer)
        self._fds = [file.fileno() for file in self._files]
        self._open = list(self._fds)
        self._poll = Poll(self._fds)
        self._kept: List[List[bytes]] = [[], []]
        self._room = cap
        self.is_truncated = False

    def sent(self) -> None:
        """The other ends are in the jar."""
        _engine.close_all(self.theirs)
        self.theirs = []

    @property
    def fds(self) -> Sequence[int]:
        """Our ends."""
        return self._fds

    def begin(self) -> None:
        """A cell begins. What arrived since the last one belongs to it."""
        self._kept = [[], []]
        self._room = self._cap
        self.is_truncated = False

    def read(self, ready: Collection[int]) -> Sequence[int]:
        """Take what is there; those that have come to their end."""
        ended = []
        for index, fd in enumerate(self._fds):
            if fd in ready and fd in self._open:
                self._take(index, fd, READ_BYTES)
                if fd not in self._open:
                    ended.append(fd)
        return ended

    def read_rest(self, ready: Optional[Collection[int]] = None) -> None:
        """The cell is over: take what it has written, and nothing that comes while we read.

        ready: those that a Poll found readable, in which they came after the descriptor that says so.
        """
        if ready is None:
            ready = self._poll.wait(0)
        for index, fd in enumerate(self._fds):
            if fd in ready and fd in self._open:
                left = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]
                while left > 0:
                    count = self._take(index, fd, min(left, READ_BYTES))
                    left = left - count if count else 0

    def _take(self, index: int, fd: int, most: int) -> int:
        try:
            data = os.read(fd, most)
        except BlockingIOError:
            return 0
        if not data:
            self._open.remove(fd)  # the cell has closed its end
            self._poll.remove(fd)
        kept = data[: self._room]
        self._room -= len(kept)
        self.is_truncated |= len(kept) < len(data)
        if kept:
            self._kept[index].append(kept)
        return len(data)

    def text(self) -> Tuple[str, str]:
        """What the cell has written, as text. A character that the cap has cut is left out."""
        return self._text(0), self._text(1)

    def _text(self, index: int) -> str:
        data = b"".join(self._kept[index])
        return codecs.getincrementaldecoder("utf-8")("replace").decode(data, not self.is_truncated) if data else ""

    def close(self) -> None:
        """Close both sides."""
        self.sent()
        self._open = []
        for file in self._files:
            _engine._held.discard(file)
            file.close()


# --- the run ---


class KeptRun:
    """The run behind one interpreter and its forks, or behind a shell. The last one that leaves ends it."""

    def __init__(self, channel: _engine.Channel, name: str, release: Callable[[], None], on_ask: Optional[OnAsk] = None) -> None:
        self.channel = channel
        self.users = 1
        self._release = release
        self._lock = threading.Lock()
        self._collector = Collector([name], True, "replace")
        self._answerer: Optional[Answerer] = None
        self._questions: Deque[Any] = collections.deque()
        if on_ask is not None:
            self._collector.answer = self._questions.append
            self._answerer = Answerer(on_ask, channel, True)
        self._failure: Optional[BelljarError] = None
        self._is_released = False
        self.is_killed = False
        # Closed with the run.
        self.held: List[Any] = []

    @property
    def is_over(self) -> bool:
        return self._collector.is_over or self._failure is not None

    def kill(self) -> None:
        """End it at once. What it still answers is of no use."""
        self.is_killed = True
        self.channel.cancel()
        self.channel.cancel()

    def _read(self) -> None:
        with self._lock:
            while not self.is_over:
                try:
                    data = self.channel.socket.recv(READ_BYTES, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return
                except OSError:
                    data = b""
                if data:
                    for function, told in self._collector.feed(data):
                        function(*told)
                else:
                    self._failure = self.channel.lost()

    @property
    def question_fds(self) -> List[int]:
        """What to wait for beside the answer of a cell, and to tell answer_steps()."""
        return [] if self._answerer is None else [self.channel.socket.fileno()]

    def answer_steps(self, poll: Poll, ready: Collection[int], deadline: Deadline) -> Steps:
        """Ask the caller what the engine asks. That time is not the cell's."""
        if self._answerer is None or self.channel.socket.fileno() not in ready:
            return
        began = time.monotonic()
        self._read()
        if self.is_over:
            poll.remove(self.channel.socket.fileno())
        with contextlib.suppress(IndexError):  # forks have one run, and whoever is there first answers
            while True:
                event = self._questions.popleft()
                waiting = self._answerer(event)
                if waiting is not None:
                    try:
                        yield waiting
                    except TypeError:  # of drive(): it can await nothing
                        self._answerer.deny(event)
                        raise
        deadline.postpone(time.monotonic() - began)

    def end(self, patience: float, may_kill: bool) -> Steps:
        """Wait for the end of the run: its result. After so many seconds it is killed, or there is none."""
        deadline: Optional[float] = time.monotonic() + patience
        self._read()
        while not self.is_over:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                if not may_kill:
                    return None
                self.kill()
                deadline = None
                continue
            try:
                yield Poll([self.channel.socket.fileno()]), left
            except GeneratorExit:
                self.channel.kill()
                raise
            except BaseException:
                self.kill()
            self._read()
        return self.result()

    def result(self) -> Optional[Result]:
        """How the run ended. EngineError if the engine did."""
        if self._failure is not None:
            raise self._failure
        return self._collector.result() if self._collector.is_over else None

    def release(self) -> None:
        """Nothing of it is left, or wanted."""
        with self._lock:
            if self._is_released:
                return
            self._is_released = True
        self.channel.close()
        for file in self.held:
            _engine._held.discard(file)
            file.close()
        with contextlib.suppress(EngineError):
            self._release()


def _answer_steps(channel: _engine.Channel) -> Steps:
    """The answer on a channel of its own: the type of the frame and its payload."""
    inbox, fds = _wire.Inbox(), []  # type: Tuple[_wire.Inbox, List[int]]
    channel.socket.setblocking(False)
    try:
        while True:
            try:
                frame = channel.receive(inbox, fds)
            except (BlockingIOError, InterruptedError):
                yield Poll([channel.socket.fileno()]), None
                continue
            if frame is not None:
                return frame
    finally:
        _engine.close_all(fds)


# --- what callers use ---


class Kept(Closing, AsyncClosing):
    """What is the same for callers of both: requests take turns, an interrupt comes from any thread, and the end is waited for."""

    # What it is in; None: nothing else can be asked there.
    _jar: Optional["Jar"] = None

    _is_closed = True  # until it stands

    def _init_kept(self) -> None:
        self._pid = _engine.owner_pid()
        self._turns = Turns()
        self._state = threading.Lock()  # of the two that follow
        self._is_busy = False
        self._was_interrupted = False
        self._number = 0
        self._why: Optional[CallEnded] = None
        self._run: Optional[KeptRun] = None

    def _signal_interrupt(self) -> None:
        """SIGINT to what runs now; with the lock held."""
        raise NotImplementedError

    def _kill_request(self) -> None:
        """Kill what runs now: nobody wants its answer any more."""
        raise NotImplementedError

    def _leave_steps(self) -> Steps:
        """Let go of the process and wait until nothing is left of it."""
        raise NotImplementedError

    def _look_steps(self) -> Steps:
        """What was changed since the last search that other programs execute or obey: asked at the end of each request."""
        jar = self._jar
        if jar is None or not jar._is_searched:
            return []
        try:
            channel = jar._ask(json_frame(_wire.LOOK, {}), ())
            try:
                return jar._take_new((yield from _answer_steps(channel)))
            finally:
                close_channel(channel)
        except EngineError as error:
            return [{"path": jar.workdir, "why": f"Belljar could not search it: {error}"}]

    async def _in_loop(self, steps: Callable[[], Steps]) -> Any:
        async with self._turns:
            return await drive_async(steps())

    def interrupt(self) -> None:
        """SIGINT to what runs, with all that it has started in the foreground; nothing if nothing runs. The state stays. From any
        thread."""
        _engine.check_owner(self._pid)
        with self._state:
            if self._is_busy and self._run is not None:
                self._was_interrupted = True
                self._signal_interrupt()

    async def interrupt_async(self) -> None:
        """interrupt() in a loop."""
        self.interrupt()

    def _begin_close(self) -> bool:
        _engine.check_owner(self._pid)
        is_first = not self._is_closed
        self._is_closed = True
        if is_first and self._is_busy:
            self._kill_request()
        return is_first

    def close(self) -> None:
        """End it, with all that it has started, and wait until nothing is left. May be called again."""
        if self._begin_close():
            with self._turns:
                drive(self._leave_steps())

    async def close_async(self) -> None:
        """close() in a loop."""
        if self._begin_close():
            await self._in_loop(self._leave_steps)

    async def _close_async(self) -> None:
        await self.close_async()

    def __del__(self) -> None:
        if self._is_closed or not _engine.is_ours(self._pid):
            return
        warnings.warn(f"{self!r} was never closed; it is closed now", ResourceWarning, source=self)
        self.close()
