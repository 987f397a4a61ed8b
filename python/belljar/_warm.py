# SPDX-License-Identifier: Apache-2.0
"""Calls by warm interpreters: a zygote waits in a jar with modules loaded, and each call is a fork of it.

`Zygotes` belongs to a pool. It makes a new zygote, in a thread that lives only for that, when the old one has had enough calls,
when a file that it loaded has changed, or when functions were called whose modules it has not loaded; calls meanwhile use the
old one. Only after a change of sys.path do they wait, for they could not import from there. On a host that has no such jars,
every call is a cold one.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from . import _answer, _boot, _engine, _paths, _wire
from ._answer import Answer
from ._call import Backend, Fork, Options
from ._codec import Codec
from ._cold import BootFile, ColdBackend
from ._discard import discard
from ._errors import BelljarError, CallError, EngineError, StartError, UnavailableError
from ._jar import Jar
from ._policy import PolicyLike
from ._queue import CLOSED
from ._request import environ_text, join_frame, open_frame
from ._result import failure
from ._send import is_importable, modules_of

# While there are calls, the files of a zygote are checked so often.
CHECK_SECONDS = 1.0
# Modules must be loaded by then.
LOAD_SECONDS = 120.0
# Whoever waits for that checks so often whether the pool was closed.
LOOK_UP_SECONDS = 0.1
# Modules that zygotes load because functions use them, and functions that were looked at for that.
MAX_USED_MODULES = 64
MAX_FUNCTIONS_SEEN = 1000
# What a zygote may report.
REPORT = Codec(max_bytes=8 << 20)
# Every zygote has these: no reason to make another.
ALWAYS_LOADED = frozenset(
    ["builtins", "__main__", *sys.builtin_module_names, "os", "sys", "posixpath", "typing", "functools", "operator"]
)


class CallJar(Jar):
    """A jar for calls; it runs no commands."""

    def __init__(self, request_frame: bytes, fds: Sequence[int]) -> None:
        self._policy, self._keys = None, {}
        self._open(request_frame, fds)

    def end(self) -> BelljarError:
        """Why the jar ended, though nobody closed it."""
        assert self._channel is not None
        kind, payload, fds = self._channel.answer()
        _engine.close_all(fds)
        answer = _wire.parse(payload)
        return failure(answer.get("error"), answer.get("missing")) if kind == _wire.FAILED else self._channel.lost()


LoadedFile = Tuple[str, int, int]  # name, time of change, length


def _check_files(report: Any) -> List[LoadedFile]:
    rows: List[Any] = report if isinstance(report, list) else [None]
    if not all(isinstance(row, list) and list(map(type, row)) == [str, int, int] for row in rows):
        raise EngineError("the report of a zygote is malformed")
    return [(name, mtime, size) for name, mtime, size in rows]


def _read_report(link: socket.socket, is_unwanted: Callable[[], bool]) -> Optional[List[LoadedFile]]:
    """The files that a zygote has loaded. CallError with its traceback if it could not; None if it ended without a word."""
    report = Answer(REPORT)
    deadline = time.monotonic() + LOAD_SECONDS
    poll = select.poll()
    poll.register(link, select.POLLIN)
    try:
        while not report.is_whole:
            if time.monotonic() > deadline:
                raise EngineError(f"loading modules ahead took more than {LOAD_SECONDS:g} seconds")
            if is_unwanted():
                raise EngineError(CLOSED)
            if poll.poll(LOOK_UP_SECONDS * 1000) and not report.receive(link):
                return None
        words = report.value()
        if report.kind == _answer.VALUE:
            return _check_files(words)
        words = words if isinstance(words, dict) else {}
        kind, message, trace = (str(words.get(name)) for name in ("type", "message", "traceback"))
        raise CallError(f"a module could not be loaded ahead: {kind}: {message}", kind, message, trace)
    finally:
        discard(report.take_files())


class Zygote(Backend):
    """One warm interpreter, and what it was made for."""

    def __init__(
        self,
        python: str,
        preload: Sequence[str],
        places: _paths.Places,
        policy: PolicyLike,
        keys: Dict[str, Any],
        is_unwanted: Callable[[], bool],
        asks: bool,
    ) -> None:
        self.sys_path = list(sys.path)
        self.users = 0
        self.calls = 0
        self.lacks_modules = False
        self.check_at = time.monotonic() + CHECK_SECONDS
        self.paths = places.paths
        self._environ = environ_text()
        keys = {**keys, "ro": [*(keys.get("ro") or ()), *_paths.ro_entries(places)]}
        frame = open_frame(policy, keys, self._environ, zygote=_boot.boot_words(python), extra=2)
        boot = BootFile(_boot.boot_file(python, places.paths, preload, places.writable, _boot.ZYGOTE))
        ours, theirs = _engine.pair()
        try:
            with theirs:
                try:
                    self.jar = CallJar(frame, [theirs.fileno(), boot.fd])
                except EngineError:
                    theirs.close()
                    _read_report(ours, is_unwanted)  # may know better why
                    raise
            try:
                files = _read_report(ours, is_unwanted)
                if files is None:
                    raise self.jar.end()
            except BaseException:
                self.jar.close()
                raise
        finally:
            _engine.close_socket(ours)
        self._files = files
        self._asks = asks
        self._plain_frame = self._frame(Options({}))
        self._fork_frame = join_frame({}, {"held": True, "started": False, "extra": 1, "ask": asks or None}, self._environ)
        # A list: taking from it and adding to it needs no lock.
        self._forks: List[Fork] = []

    def take_fork(self, options: Options) -> Optional[Fork]:
        """A fork that waits; it has the environment of the zygote, and no keys of its own."""
        if options.keys or options.on_output is not None or environ_text() != self._environ:
            return None
        if (options.on_ask is not None) != self._asks:
            return None
        try:
            return self._forks.pop()
        except IndexError:
            return None

    def order_fork(self) -> None:
        """Have a fork made, unless one waits already."""
        if self._forks:
            return
        link, theirs = _engine.pair()
        try:
            channel = self.jar._ask(self._fork_frame, [theirs.fileno()])
        except (BelljarError, OSError):
            _engine.close_socket(link)  # the next call is told why
        else:
            self._forks.append(Fork(channel, link))
        finally:
            theirs.close()

    def _frame(self, options: Options) -> bytes:
        return join_frame(options.keys, {**options.members, "started": False, "extra": 2}, self._environ)

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """A fork for this call alone."""
        is_plain = not options.keys and options.on_output is options.on_ask is None and environ_text() == self._environ
        return self.jar._ask(self._plain_frame if is_plain else self._frame(options), fds)

    def has_current_files(self) -> bool:
        """Whether the files that it has loaded are unchanged."""
        for name, mtime, size in self._files:
            try:
                facts = os.stat(name)
            except OSError:
                return False
            if (facts.st_mtime_ns, facts.st_size) != (mtime, size):
                return False
        return True

    def close(self) -> None:
        """No call will come any more."""
        while self._forks:
            self._forks.pop().close()
        self.jar.close()


class Zygotes:
    """The zygote of a pool, its predecessors that still have calls, and a cold backend where there can be no zygote.

    asks: calls have somebody who answers, so forks are made ahead for such.
    """

    def __init__(
        self,
        python: str,
        preload: Sequence[str],
        named: Sequence[Any],
        policy: PolicyLike,
        keys: Dict[str, Any],
        renew_after: int,
        asks: bool = False,
    ) -> None:
        self._asks = asks
        self._arguments = (python, list(preload), list(named), policy, keys)
        self._renew_after = renew_after
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._zygote: Optional[Zygote] = None
        self._cold: Optional[ColdBackend] = None
        self._retired: List[Zygote] = []
        self._risky: List[Dict[str, Any]] = []
        self._thread: Optional[threading.Thread] = None
        self._is_closed = False
        # A pool that names what to load gets just that.
        self._loads_used_modules = not preload
        self._used_modules: List[str] = []
        self._functions_seen: Set[Any] = set()

    # --- for calls ---

    @property
    def is_ready(self) -> bool:
        """Whether take() returns at once."""
        zygote = self._zygote
        return self._cold is not None or (zygote is not None and zygote.sys_path == sys.path)

    def take(self) -> Backend:
        """What one call uses; put() must follow."""
        zygote = self._zygote
        if zygote is None or zygote.sys_path != sys.path:
            if self._cold is not None:
                return self._cold
            try:
                zygote = self._current()
            except UnavailableError:
                self._cold = ColdBackend(*self._arguments)
                return self._cold
        with self._lock:
            zygote.users += 1
            zygote.calls += 1
        if zygote.calls >= self._renew_after or time.monotonic() >= zygote.check_at:
            self._maintain_soon()
        return zygote

    def put(self, backend: Backend) -> None:
        """A call has come to its end."""
        if not isinstance(backend, Zygote):
            return
        with self._lock:
            backend.users -= 1
            is_last = backend.users == 0 and backend in self._retired
        if is_last and self._is_closed:
            self._close_idle()
        elif is_last:
            self._maintain_soon()

    def drop(self, backend: Backend) -> None:
        """The engine or the zygote failed: the next call has another zygote."""
        with self._lock:
            self._retire(backend)

    def note_modules(self, fn: Any, paths: Sequence[str]) -> None:
        """Have the next zygote load the modules that a function needs, if the caller itself has loaded them."""
        if not self._loads_used_modules or self._cold is not None:
            return
        mark = getattr(fn, "__code__", None) or getattr(fn, "__module__", None)
        if mark is None or mark in self._functions_seen or len(self._functions_seen) >= MAX_FUNCTIONS_SEEN:
            return
        self._functions_seen.add(mark)
        known = {*self._used_modules, *ALWAYS_LOADED}
        found = [name for name in dict.fromkeys(modules_of(fn)) if name not in known and is_importable(name, paths)]
        if found:
            self._used_modules = (self._used_modules + found)[:MAX_USED_MODULES]
            zygote = self._zygote
            if zygote is not None:
                # Begun by the next call: a program that calls once shall not wait for it when it leaves.
                zygote.lacks_modules = True
                zygote.check_at = 0.0

    # --- zygotes come and go ---

    def _retire(self, zygote: Optional[Backend]) -> None:
        """With the lock."""
        if isinstance(zygote, Zygote) and self._zygote is zygote:
            self._zygote = None
            self._retired.append(zygote)

    def _make(self) -> Zygote:
        python, preload, named, policy, keys = self._arguments
        if not os.access(python, os.X_OK):
            number = errno.EACCES if os.path.exists(python) else errno.ENOENT
            raise StartError(number, f"cannot use the interpreter '{python}': {os.strerror(number)}", python)
        places = _paths.plan(python, named, policy, keys, _paths.caller_paths())
        wishes = [f"?{name}" for name in self._used_modules]
        arguments = (places, policy, keys, lambda: self._is_closed, self._asks)
        try:
            return Zygote(python, [*preload, *wishes], *arguments)
        except EngineError:
            if not wishes or self._is_closed:
                raise
            # One of those that nobody asked for hangs or crashes: without them, and never again.
            self._loads_used_modules, self._used_modules = False, []
            return Zygote(python, preload, *arguments)

    def _current(self) -> Zygote:
        """The zygote for the caller's sys.path; made here if there is none."""
        with self._opening:
            zygote = self._zygote
            if zygote is None or zygote.sys_path != sys.path:
                made = self._make()
                with self._lock:
                    self._retire(zygote)
                    self._zygote = made
                zygote = made
        return zygote

    def _maintain_soon(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closed:
                thread = threading.Thread(target=self._maintain, name="belljar-zygotes", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return  # no more threads just now: the next call tries again
                self._thread = thread

    def _maintain(self) -> None:
        """In a thread of its own: renew what is old, close what nobody uses any more."""
        try:
            zygote = self._zygote
            if zygote is not None:
                zygote.check_at = time.monotonic() + CHECK_SECONDS
                if zygote.calls >= self._renew_after or zygote.lacks_modules or not zygote.has_current_files():
                    self._renew(zygote)
            self._close_idle()
        finally:
            self._thread = None

    def _renew(self, old: Zygote) -> None:
        with self._opening:
            if self._zygote is not old:
                return
            try:
                made: Optional[Zygote] = self._make()
            except (BelljarError, OSError):
                made = None  # the next call tries again, and is told why it fails
            with self._lock:
                self._retire(old)
                self._zygote = made

    def _close_idle(self) -> None:
        with self._lock:
            idle = [zygote for zygote in self._retired if zygote.users == 0]
            self._retired = [zygote for zygote in self._retired if zygote.users]
        for zygote in idle:
            zygote.close()
            self._risky += zygote.jar.risky

    def risky(self, is_now: bool = False) -> List[Dict[str, Any]]:
        """What the jars of all zygotes have found. is_now: search those that are open."""
        with self._lock:
            found = [zygote.jar for zygote in (self._zygote, *self._retired) if isinstance(zygote, Zygote)]
        listed = list(self._risky)
        for jar in found:
            listed += jar.look() if is_now else jar.risky
        return listed

    def close(self) -> None:
        """No call begins any more: close what nobody uses; the last call of a zygote closes it."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        with self._lock:
            self._retire(self._zygote)
        self._close_idle()
        if self._cold is not None:
            self._cold.close()
