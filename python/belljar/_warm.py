# SPDX-License-Identifier: Apache-2.0
"""Calls by warm interpreters: a zygote stands in a jar with everything loaded, and each call is a fork of it.

A zygote is renewed, in a thread that lives only for that, when it has had enough calls, when a file that it loaded is not
what it was, or when functions were called whose modules it has not loaded; who calls meanwhile uses the old one. Only a
change of sys.path is waited for, since what the caller imports from there could not be found inside. Where the host can
give no such jar, every call is a cold one.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

from . import _answer, _boot, _engine, _paths, _wire
from ._answer import Answer
from ._call import Held, Options
from ._codec import Codec
from ._cold import BootFile, ColdWay
from ._discard import discard
from ._errors import BelljarError, CallError, EngineError, StartError, UnavailableError
from ._jar import Jar
from ._policy import PolicyLike
from ._request import environ_text, join_frame, open_frame
from ._result import failure
from ._send import is_importable, modules_of
from ._slots import CLOSED

# While there are calls, the files of a zygote are looked at so often.
LOOK_SECONDS = 1.0
# A module that takes longer to load is not loaded ahead.
LOAD_SECONDS = 120.0
# How often somebody who waits for that looks whether it is still wanted.
LOOK_UP_SECONDS = 0.1
# Modules that were never asked for but are of use, and functions that were looked at.
MAX_LEARNED = 64
MAX_SEEN = 1000
# What a zygote may say of itself.
REPORT = Codec(max_bytes=8 << 20)


# What every zygote has: no reason to make another.
LOADED = frozenset(
    ["builtins", "__main__", *sys.builtin_module_names, "os", "sys", "posixpath", "typing", "functools", "operator"]
)


class CallJar(Jar):
    """A jar that has calls and no commands."""

    def __init__(self, request_frame: bytes, fds: Sequence[int]) -> None:
        self._policy, self._keys = None, {}
        self._open(request_frame, fds)

    def end(self) -> BelljarError:
        """Why it ended though nobody closed it."""
        assert self._channel is not None
        kind, payload, fds = self._channel.answer()
        _engine.close_all(fds)
        answer = _wire.parse(payload)
        return failure(answer.get("error"), answer.get("missing")) if kind == _wire.FAILED else self._channel.lost()


def _files_in(words: Any) -> List[Tuple[str, int, int]]:
    """The files that a zygote says it has loaded: name, time of change, length."""
    rows = words if isinstance(words, list) else [None]
    if not all(isinstance(row, list) and list(map(type, row)) == [str, int, int] for row in rows):
        raise EngineError("a zygote has said what none says")
    return [(name, mtime, size) for name, mtime, size in rows]


def _read_report(link: socket.socket, is_unwanted: Callable[[], bool]) -> Any:
    """What the zygote says when it has loaded everything: the files. CallError with its traceback if it could not."""
    report = Answer(REPORT)
    deadline = time.monotonic() + LOAD_SECONDS
    poll = select.poll()
    poll.register(link, select.POLLIN)
    try:
        while not report.is_whole:
            if time.monotonic() > deadline:
                raise EngineError(f"modules that were to be loaded ahead took more than {LOAD_SECONDS:g} seconds")
            if is_unwanted():
                raise EngineError(CLOSED)
            if poll.poll(LOOK_UP_SECONDS * 1000) and not report.receive(link):
                return None
        words = report.value()
        if report.kind == _answer.VALUE:
            return _files_in(words)
        words = words if isinstance(words, dict) else {}
        kind, message, trace = (str(words.get(name)) for name in ("type", "message", "traceback"))
        raise CallError(f"what was to be loaded ahead cannot be: {kind}: {message}", kind, message, trace)
    finally:
        discard(report.take_files())


class Zygote:
    """One warm interpreter, and what it was made for."""

    def __init__(
        self,
        python: str,
        preload: Sequence[str],
        places: _paths.Places,
        policy: PolicyLike,
        keys: Dict[str, Any],
        is_unwanted: Callable[[], bool],
    ) -> None:
        self.path = list(sys.path)
        self.paths = places.paths
        self.users = 0
        self.calls = 0
        self.is_lacking = False
        self.look_at = time.monotonic() + LOOK_SECONDS
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
                if not isinstance(files, list):
                    raise self.jar.end()
            except BaseException:
                self.jar.close()
                raise
        finally:
            _engine._held.discard(ours)
            ours.close()
        self._files: List[Tuple[str, int, int]] = files
        self._frames = {sink: self._frame(sink, {}) for sink in ("none", "frames")}
        self._held_frame = join_frame({}, {"capture": True, "held": True, "extra": 1}, self._environ)
        # A list: taking from it and adding to it needs no lock.
        self._held: List[Held] = []

    def take_held(self, options: Options) -> Optional[Held]:
        """A run that was begun ahead for a call without options."""
        if options.keys or options.on_output is not None or environ_text() != self._environ:
            return None
        try:
            return self._held.pop()
        except IndexError:
            return None

    def hold_next(self) -> None:
        """Begin one, unless one waits already."""
        if self._held:
            return
        link, theirs = _engine.pair()
        try:
            channel = self.jar._ask(self._held_frame, [theirs.fileno()])
        except (BelljarError, OSError):
            _engine._held.discard(link)
            link.close()  # the next call is told why
        else:
            self._held.append(Held(channel, link))
        finally:
            theirs.close()

    def let_go(self) -> None:
        """No call will come for what was begun ahead."""
        while self._held:
            self._held.pop().close()

    def _frame(self, sink: str, keys: Dict[str, Any]) -> bytes:
        return join_frame(keys, {"sink": sink, "capture": True, "extra": 2}, self._environ)

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """A call; one JOIN frame."""
        is_plain = not options.keys and environ_text() == self._environ
        return self.jar._ask(self._frames[options.sink] if is_plain else self._frame(options.sink, options.keys), fds)

    def is_fresh(self) -> bool:
        """Whether what it has loaded is what would be loaded now."""
        for name, mtime, size in self._files:
            try:
                facts = os.stat(name)
            except OSError:
                return False
            if (facts.st_mtime_ns, facts.st_size) != (mtime, size):
                return False
        return True


class WarmWay:
    """The zygote of a pool, and its successors."""

    def __init__(
        self,
        python: str,
        preload: Sequence[str],
        named: Sequence[Any],
        policy: PolicyLike,
        keys: Dict[str, Any],
        renew_after: int,
    ) -> None:
        self._arguments = (python, list(preload), list(named), policy, keys)
        self._renew_after = renew_after
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._zygote: Optional[Zygote] = None
        self._cold: Optional[ColdWay] = None
        self._retired: List[Zygote] = []
        self._tender: Optional[threading.Thread] = None
        self._is_closed = False
        self._learned: List[str] = []
        # Who says what to load has said it.
        self._is_learning = not preload
        self._seen: Set[Any] = set()

    # --- for calls ---

    @property
    def is_ready(self) -> bool:
        """Whether take() returns at once."""
        zygote = self._zygote
        return self._cold is not None or (zygote is not None and zygote.path == sys.path)

    def take(self) -> Union["Lease", ColdWay]:
        """The way for one call; its done() must follow."""
        zygote = self._zygote
        if zygote is None or zygote.path != sys.path:
            if self._cold is not None:
                return self._cold
            try:
                zygote = self._current()
            except UnavailableError:
                self._cold = ColdWay(*self._arguments)
                return self._cold
        with self._lock:
            zygote.users += 1
            zygote.calls += 1
        if zygote.calls >= self._renew_after or time.monotonic() >= zygote.look_at:
            self._tend_soon()
        return Lease(self, zygote)

    def put(self, zygote: Zygote) -> None:
        """A call has come to its end."""
        with self._lock:
            zygote.users -= 1
            is_last = zygote.users == 0 and zygote in self._retired
        if is_last and self._is_closed:
            self._close_idle()
        elif is_last:
            self._tend_soon()

    def drop(self, zygote: Zygote) -> None:
        """It did not do its work: the next call has another."""
        with self._lock:
            self._retire(zygote)

    # --- modules of functions that are called ---

    def learn(self, fn: Any, paths: Sequence[str]) -> None:
        """Have the next zygote load what a function needs. Only what the caller itself has loaded already."""
        if not self._is_learning or self._cold is not None:
            return
        mark = getattr(fn, "__code__", None) or getattr(fn, "__module__", None)
        if mark is None or mark in self._seen or len(self._seen) >= MAX_SEEN:
            return
        self._seen.add(mark)
        known = {*self._arguments[1], *self._learned, *LOADED}
        found = [name for name in dict.fromkeys(modules_of(fn)) if name not in known and is_importable(name, paths)]
        if found:
            self._learned = (self._learned + found)[:MAX_LEARNED]
            zygote = self._zygote
            if zygote is not None:
                # Begun by the next call: a program that calls once shall not wait for it when it leaves.
                zygote.is_lacking = True
                zygote.look_at = 0.0

    # --- zygotes come and go ---

    def _retire(self, zygote: Optional[Zygote]) -> None:
        """With the lock."""
        if zygote is not None and self._zygote is zygote:
            self._zygote = None
            self._retired.append(zygote)

    def _make(self) -> Zygote:
        python, preload, named, policy, keys = self._arguments
        if not os.access(python, os.X_OK):
            number = errno.EACCES if os.path.exists(python) else errno.ENOENT
            raise StartError(number, f"the interpreter '{python}' cannot be used: {os.strerror(number)}", python)
        places = _paths.plan(python, named, policy, keys, _paths.caller_paths())
        hints = [f"?{name}" for name in self._learned]
        arguments = (places, policy, keys, lambda: self._is_closed)
        try:
            return Zygote(python, [*preload, *hints], *arguments)
        except EngineError:
            if not hints or self._is_closed:
                raise
            # One of those that nobody asked for hangs or crashes: without them, and never again.
            self._is_learning, self._learned = False, []
            return Zygote(python, preload, *arguments)

    def _current(self) -> Zygote:
        """The zygote for the caller's sys.path; made here if there is none."""
        with self._opening:
            zygote = self._zygote
            if zygote is None or zygote.path != sys.path:
                made = self._make()
                with self._lock:
                    self._retire(zygote)
                    self._zygote = made
                zygote = made
        return zygote

    def _tend_soon(self) -> None:
        with self._lock:
            if self._tender is None and not self._is_closed:
                tender = threading.Thread(target=self._tend, name="belljar-zygotes", daemon=True)
                try:
                    tender.start()
                except RuntimeError:
                    return  # no more threads just now: the next call tries again
                self._tender = tender

    def _tend(self) -> None:
        """In a thread of its own: renew what is old, close what nobody uses any more."""
        try:
            zygote = self._zygote
            if zygote is not None:
                zygote.look_at = time.monotonic() + LOOK_SECONDS
                if zygote.calls >= self._renew_after or zygote.is_lacking or not zygote.is_fresh():
                    self._renew(zygote)
            self._close_idle()
        finally:
            self._tender = None

    def _renew(self, old: Zygote) -> None:
        with self._opening:
            if self._zygote is not old:
                return
            try:
                made: Optional[Zygote] = self._make()
            except (BelljarError, OSError):
                made = None  # the next call tries again, and is told why it cannot be
            with self._lock:
                self._retire(old)
                self._zygote = made

    def _close_idle(self) -> None:
        with self._lock:
            idle = [zygote for zygote in self._retired if zygote.users == 0]
            self._retired = [zygote for zygote in self._retired if zygote.users]
        for zygote in idle:
            zygote.let_go()
            zygote.jar.close()

    def close(self) -> None:
        """No call begins any more: let go of everything; the last call of a zygote takes it along."""
        with self._lock:
            self._is_closed = True
            tender = self._tender
        if tender is not None and tender is not threading.current_thread():
            tender.join()
        with self._lock:
            self._retire(self._zygote)
        self._close_idle()
        if self._cold is not None:
            self._cold.close()


class Lease:
    """A zygote for one call."""

    __slots__ = ("_way", "_zygote", "paths")

    def __init__(self, way: WarmWay, zygote: Zygote) -> None:
        self._way = way
        self._zygote = zygote
        self.paths = zygote.paths

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """One JOIN frame."""
        try:
            return self._zygote.open(options, fds)
        except EngineError:
            self._way.drop(self._zygote)
            raise

    async def open_async(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """The same: there is nothing to wait for."""
        return self.open(options, fds)

    def take_held(self, options: Options) -> Optional[Held]:
        """A run that was begun ahead, if there is one for such a call."""
        return self._zygote.take_held(options)

    def hold_next(self) -> None:
        """Begin the next one ahead."""
        self._zygote.hold_next()

    def failed(self) -> None:
        """The engine, or the zygote, did not do its work."""
        self._way.drop(self._zygote)

    def done(self) -> None:
        """The call has come to its end."""
        self._way.put(self._zygote)
