# SPDX-License-Identifier: Apache-2.0
"""The engine of this process: started at first use, shared by all threads, gone with the process.

The engine is a child made with posix_spawn, never fork: a program with gigabytes and many threads pays nothing for them. A
socket, the door socket, leads to it. Only channels ever cross it, one per run, each in a single atomic message:
threads need no lock, no thread sorts answers, and whoever started a run reads its channel by itself.

The kernel closes the door socket when this process ends, however it ends, and the engine then kills every jar. A forked child
would keep a copy of it open, and with it the jars of a dead parent: so what must not be inherited is listed in `_held`,
and is closed in the child. The child starts an engine of its own when it needs one.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import operator
import os
import resource
import select
import signal
import socket
import struct
import threading
import time
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set, Tuple

from . import _wire
from ._errors import EngineError, shortage_is_engine_error
from ._program import engine_environ, engine_path

ENGINE_FD = 3
READ_BYTES = 64 << 10
# A jar may say with its end what its processes left.
LAST_BYTES = 1 << 20
LEAVE_SECONDS = 10.0
MAX_SIGNAL = 64
MAX_WINDOW = 65535
# A signal that comes between two system calls interrupts neither, and its Python handler waits for the next chance: whoever
# waits looks up this often, so that Ctrl-C is never lost.
LOOK_UP_SECONDS = 0.5
LOOK_UP = struct.pack("ll", 0, int(LOOK_UP_SECONDS * 1_000_000))
RIGHTS_SPACE = socket.CMSG_SPACE(struct.calcsize("4i"))
# The queue of the door socket holds hundreds of channels; when it is full the engine needs a moment.
RETRY_SECONDS = 0.001
# How long the kernel may refuse to pass a descriptor because the user's programs have too many under way.
UNDER_WAY_SECONDS = 5.0
# A plain number: what is made of two members of an enumeration is looked up each time.
AT_ONCE = int(socket.MSG_NOSIGNAL) | int(socket.MSG_DONTWAIT)
BUSY = (errno.EAGAIN, errno.ETOOMANYREFS, errno.ENOBUFS)
GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ECONNREFUSED)

_lock = threading.Lock()
_engine: Optional[Engine] = None
_owner_pid = os.getpid()
_held: Set[Any] = set()
_closers: List[Callable[[], None]] = []
_limit_lock = threading.Lock()
# How many threads send with the limit lifted, and what it was before.
_lifted = [0, 0]


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors that nobody wants."""
    for fd in fds:
        os.close(fd)


def rights(fds: Sequence[int]) -> List[Tuple[int, int, bytes]]:
    """Ancillary data that carries descriptors."""
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []


@contextlib.contextmanager
def _lifted_limit() -> Iterator[None]:
    """With as many descriptors as this process may allow itself."""
    with _limit_lock:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if not _lifted[0]:
            _lifted[1] = soft
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        _lifted[0] += 1
    try:
        yield
    finally:
        with _limit_lock:
            _lifted[0] -= 1
            if not _lifted[0]:
                resource.setrlimit(resource.RLIMIT_NOFILE, (_lifted[1], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def send_rights(sock: socket.socket, data: bytes, ancillary: Any, flags: int) -> int:
    """As sendmsg(). The kernel passes no descriptor while the user's programs, jars among them, have more under way than the
    sender's soft limit, which is 1024 as a rule: one jar could keep all others from being reached."""
    try:
        return sock.sendmsg([data], ancillary, flags)
    except OSError as error:
        if error.errno != errno.ETOOMANYREFS:
            raise
    with _lifted_limit():
        return sock.sendmsg([data], ancillary, flags)


class Engine:
    """One engine process. Its descriptors are closed when nobody uses the object any more, never under a thread's hands."""

    __slots__ = ("door", "pid", "pidfd")

    def __init__(self, door: socket.socket, pid: int, pidfd: int) -> None:
        self.door = door
        self.pid = pid
        self.pidfd = pidfd

    def __del__(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Close the descriptors, without a word to the engine."""
        _held.discard(self.door)
        self.door.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def has_ended(self, seconds: float = 0.0) -> bool:
        """Wait at most so long for the end of the process."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def reap(self) -> str:
        """Collect the process, which must have ended or be about to; how it ended, in words."""
        try:
            info = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        except ChildProcessError:
            return "ended, and something else in this process has reaped it"
        if info is not None and info.si_code == os.CLD_EXITED:
            return f"ended with exit status {info.si_status}"
        return f"was ended by signal {info.si_status if info else '?'}"


def _spawn() -> Engine:
    """Start an engine with one end of a new door socket at descriptor 3, and nothing else of ours."""
    path = engine_path()
    with shortage_is_engine_error("make a socket for the engine"):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    _held.update((ours, theirs))
    try:
        # A descriptor that has the right number already would be closed at exec.
        source = os.dup(theirs.fileno()) if theirs.fileno() == ENGINE_FD else theirs.fileno()
        actions: List[Tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, source, ENGINE_FD)]
        actions += [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
        if hasattr(os, "POSIX_SPAWN_CLOSEFROM"):
            actions.append((os.POSIX_SPAWN_CLOSEFROM, ENGINE_FD + 1))
        try:
            # A session of its own: Ctrl-C at the terminal is for this process. No signal of ours stays ignored or blocked.
            pid = os.posix_spawn(
                path,
                ["belljar", "engine"],
                engine_environ(),
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )
        finally:
            if source != theirs.fileno():
                os.close(source)
        return Engine(ours, pid, os.pidfd_open(pid))
    except OSError as error:
        _held.discard(ours)
        ours.close()
        raise EngineError(f"cannot start the engine '{path}': {error}") from error
    finally:
        _held.discard(theirs)
        theirs.close()


def current() -> Engine:
    """The engine of this process, started if need be."""
    global _engine
    if _owner_pid != os.getpid():
        _after_fork()
    engine = _engine
    if engine is not None:
        return engine
    with _lock:
        if _engine is None:
            _engine = _spawn()
        return _engine


def retire(engine: Engine) -> str:
    """Give up an engine that has died or must; how it ended. The next use starts another."""
    global _engine
    with _lock:
        if _engine is engine:
            _engine = None
        with contextlib.suppress(OSError):
            engine.door.shutdown(socket.SHUT_RDWR)
        if not engine.has_ended(LEAVE_SECONDS):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(engine.pidfd, signal.SIGKILL)
        return engine.reap()


def is_ours(pid: int) -> bool:
    """False in a process that only inherited what belongs to the process `pid`."""
    if _owner_pid != os.getpid():
        _after_fork()
    return pid == _owner_pid


def check_owner(pid: int) -> None:
    """EngineError in a process that only inherited what belongs to the process `pid`."""
    if _owner_pid != os.getpid():
        _after_fork()
    if pid != _owner_pid:
        raise EngineError("this object belongs to another process: a forked child has to make its own")


def owner_pid() -> int:
    """The process that things made now belong to."""
    if _owner_pid != os.getpid():
        _after_fork()
    return _owner_pid


def _after_fork() -> None:
    """In a forked child: close what belongs to the parent, forget the parent's engine."""
    global _lock, _engine, _owner_pid
    _lock = threading.Lock()
    _owner_pid = os.getpid()
    engine, _engine = _engine, None
    if engine is not None:
        engine.drop()
    for item in list(_held):
        with contextlib.suppress(OSError):
            item.close()
    _held.clear()


def at_exit(close: Callable[[], None]) -> None:
    """Have something closed before the engine leaves."""
    _closers.append(close)


def _at_exit() -> None:
    """Everything ends, and the engine leaves no zombie behind."""
    for close in _closers:
        close()
    if _engine is not None and _owner_pid == os.getpid():
        retire(_engine)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


class Channel:
    """Our end of a channel: one run, one jar, or one question."""

    __slots__ = ("engine", "socket", "_jar")

    def __init__(self, engine: Engine, ours: socket.socket, jar: Optional[Channel] = None) -> None:
        """jar: the channel of the jar that this one is about something in."""
        self.engine = engine
        self.socket = ours
        self._jar = jar

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Send a short frame; whoever is not there any more needs none."""
        try:
            self.socket.send(_wire.frame(kind, payload), AT_ONCE)
        except OSError as error:
            if error.errno not in GONE and error.errno not in (errno.EAGAIN, errno.EBADF):
                raise

    def cancel(self, number: int = 0) -> None:
        """End the run as a timeout would; the second time, at once."""
        self.send(_wire.CANCEL, struct.pack("<i", number))

    def signal(self, number: int) -> None:
        """Send a signal to every process of the run; nothing happens if it is over, or for 0."""
        number = operator.index(number)
        if not 0 <= number <= MAX_SIGNAL:
            raise ValueError(f"no signal has the number {number}")
        if number:
            self.send(_wire.SIGNAL, struct.pack("<i", number))

    def resize(self, rows: int, cols: int) -> None:
        """Tell the command's terminal its new size."""
        if not (1 <= rows <= MAX_WINDOW and 1 <= cols <= MAX_WINDOW):
            raise ValueError(f"the window size must be between 1 and {MAX_WINDOW} rows and columns, not {rows!r}, {cols!r}")
        self.send(_wire.RESIZE, struct.pack("<HH", rows, cols))

    def hang_up(self) -> None:
        """What hangs on the channel is killed at once; the engine closes its end when nothing is left."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def look_up(self) -> None:
        """From now on receiving raises BlockingIOError every now and then."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, LOOK_UP)

    def drain(self, take: Callable[[bytes], Any] = bool) -> None:
        """Read to the end: then nothing of the run is left. take() gets what comes. More impatience makes it end sooner."""
        while True:
            try:
                while True:
                    data = self.socket.recv(READ_BYTES)
                    if not data:
                        return
                    take(data)
            except BlockingIOError:
                continue
            except OSError:
                return
            except KeyboardInterrupt:
                self.cancel()

    def receive(self, inbox: _wire.Inbox, fds: List[int]) -> Optional[_wire.Frame]:
        """Receive once: a frame that is complete by then, or None. Descriptors that came are added to `fds`, the caller's."""
        try:
            data, ancillary, _, _ = self.socket.recvmsg(READ_BYTES, RIGHTS_SPACE, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            data, ancillary = b"", []
        for level, kind, carried in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds += struct.unpack(f"{len(carried) // 4}i", carried[: len(carried) // 4 * 4])
        if not data:
            raise self.lost()
        for frame in inbox.feed(data):
            return frame
        return None

    def answer(self) -> Tuple[int, bytes, List[int]]:
        """Wait for one frame: its type, its payload, and the descriptors that came with it, which are the caller's."""
        inbox = _wire.Inbox()
        fds: List[int] = []
        self.look_up()
        try:
            while True:
                try:
                    frame = self.receive(inbox, fds)
                except BlockingIOError:
                    continue
                if frame is not None:
                    return frame[0], frame[1], fds
        except BaseException:
            close_all(fds)
            raise

    def last_words(self) -> Optional[EngineError]:
        """What the engine says on a jar's channel of its end, if it has ended. It stays to be read."""
        for _ in range(2):
            try:
                data = self.socket.recv(LAST_BYTES, socket.MSG_DONTWAIT | socket.MSG_PEEK)
            except ConnectionResetError:
                continue  # the kernel says so once, before what had been sent
            except OSError:
                return None
            for kind, payload in _wire.Inbox().feed(data):
                if kind == _wire.FAILED:
                    error = _wire.parse(payload).get("error") or {}
                    return EngineError(str(error.get("message"))).with_(hint=error.get("hint"))
            return None
        return None

    def lost(self) -> EngineError:
        """The channel ended too early: why."""
        said = (self._jar or self).last_words()
        if said is not None:
            return said
        if self.engine.has_ended(0.2):
            return EngineError(f"the engine {retire(self.engine)}; its jars have ended with it")
        return EngineError("the engine closed the channel without an answer")

    def kill(self) -> None:
        """Have what hangs on the channel killed at once, without waiting for its end. Also for copies that others hold."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.close()

    def close(self) -> None:
        """Let go of our end."""
        close_socket(self.socket)


def hold(ours: socket.socket) -> None:
    """Have a socket closed in a forked child, until close_socket()."""
    _held.add(ours)


def close_socket(ours: socket.socket) -> None:
    """Close an end that pair() gave. Discarded first: a number that is closed may be somebody else's a moment later."""
    _held.discard(ours)
    ours.close()


def pair() -> Tuple[socket.socket, socket.socket]:
    """The two ends of a new channel, ours first."""
    with shortage_is_engine_error("make a channel to the engine"):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    _held.add(ours)
    return ours, theirs


def _hand_over(theirs: socket.socket, is_patient: bool, give_up_at: float) -> Optional[Engine]:
    """Give the engine its end of a channel. None: it is busy, and we are not to wait."""
    ancillary = rights([theirs.fileno()])
    attempts = 0
    while True:
        engine = current()
        # A child that the engine was just making may have its door open for a moment longer, and answers nothing.
        if engine.has_ended():
            retire(engine)
            continue
        try:
            send_rights(engine.door, b"c", ancillary, AT_ONCE)
            return engine
        except OSError as error:
            # An engine that is busy takes it in the end. What others have under way may stay there.
            is_refused = error.errno == errno.ETOOMANYREFS and time.monotonic() >= give_up_at
            if error.errno in BUSY and not is_refused:
                if not is_patient:
                    return None
                time.sleep(RETRY_SECONDS)
                continue
            attempts += 1
            if error.errno not in GONE or attempts > 2:
                raise EngineError(f"cannot reach the engine: {error}") from error
        retire(engine)


def check_size(request: bytes) -> None:
    """What the engine takes in one frame."""
    if len(request) - _wire.HEADER_BYTES > _wire.SEND_MAX_BYTES:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))


class Opening:
    """A channel on its way to the engine, in steps, so that a thread can wait for them and an event loop need not.

    The request is written before the channel is handed over, as far as it fits, so that the engine wakes up once.
    """

    __slots__ = ("_ours", "_theirs", "_rest", "_give_up_at")

    def __init__(self, request: bytes, fds: Sequence[int]) -> None:
        check_size(request)
        self._give_up_at = time.monotonic() + UNDER_WAY_SECONDS
        self._ours, self._theirs = pair()
        try:
            with shortage_is_engine_error("send the request to the engine"):
                sent = send_rights(self._ours, request, rights(fds), AT_ONCE)
        except BaseException:
            self.abandon()
            raise
        self._rest = memoryview(request)[sent:]

    def hand_over(self, is_patient: bool) -> Optional[Channel]:
        """The channel; None if that would mean waiting."""
        try:
            engine = _hand_over(self._theirs, is_patient, self._give_up_at)
        except BaseException:
            self.abandon()
            raise
        if engine is None:
            return None
        self._theirs.close()
        return Channel(engine, self._ours)

    @property
    def rest(self) -> memoryview:
        """What did not fit, to be sent on the channel now."""
        return self._rest

    def abandon(self) -> None:
        """Nothing was started."""
        close_socket(self._ours)
        self._theirs.close()


def open_channel(request: bytes, fds: Sequence[int] = ()) -> Channel:
    """Make a channel whose first frame is the request."""
    opening = Opening(request, fds)
    channel = opening.hand_over(is_patient=True)
    assert channel is not None
    if opening.rest:
        try:
            channel.socket.sendall(opening.rest)
        except ConnectionError:
            pass  # refused before it was read to the end: the answer says why
        except BaseException:
            channel.hang_up()
            channel.drain()
            channel.close()
            raise
    return channel


