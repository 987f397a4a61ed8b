# SPDX-License-Identifier: Apache-2.0
"""Calls that are forks of an interpreter with everything loaded, in a jar for calls (docs/protocol.md).

The interpreter, the zygote, is renewed when the caller's sys.path or a file that it has loaded changes, and after so many calls. A new
one is made by a thread of its own while the old one goes on; only the first call, and one after a change, waits for one. On hosts
without namespaces, and for interpreters that cannot be zygotes, calls go the cold way.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _boot, _engine, _paths, _wire
from ._answer import NOT_READY, VALUE, Answer
from ._call import Options
from ._codec import Codec
from ._cold import ColdWay
from ._errors import BelljarError, CallError, EngineError, UnavailableError
from ._jar import Jar
from ._launch import encode_words, environ_text, join, request
from ._policy import PolicyLike

# How often the files that a zygote has loaded are looked at.
LOOK_SECONDS = 1.0
_FACTS = Codec(max_bytes=16 << 20)


class _CannotBeZygote(Exception):
    """This interpreter ended before it had said anything."""


def _member(options: Options) -> str:
    """What is asked of the engine for one call, as JSON without braces."""
    return f'"stdin":"null","sink":"{options.sink}","capture":true,"started":false,"extra":2'


class ZygoteJar(Jar):
    """A jar for calls, its zygote ready."""

    def __init__(self, python: str, preload: Sequence[str], places: _paths.Places, policy: PolicyLike, keys: Dict[str, Any]) -> None:
        self._channel = None
        self._pid = 0
        self._is_closed = True
        self.calls = 0
        self._environ = environ_text()
        self._is_stale = False
        words = f',"zygote":[{encode_words(_boot.boot_words(python))}],"extra":2'
        all_keys = {**keys, "ro": [*(keys.get("ro") or ()), *_paths.ro_entries(places)]}
        boot = _boot.boot_file(python, places.paths, preload, places.writable, _boot.ZYGOTE)
        report, theirs = socket.socketpair()
        with report:
            try:
                with theirs:
                    self._open(request(_wire.OPEN, policy, all_keys, more=words), [theirs.fileno(), boot])
            finally:
                os.close(boot)
            try:
                self._files = self._hear(report)
            except BaseException:
                self.kill()
                raise
        self._looked = time.monotonic()

    @staticmethod
    def _hear(report: socket.socket) -> List[Tuple[str, int, int]]:
        """Wait until the zygote has loaded everything: what that was."""
        answer = Answer(_FACTS)
        try:
            while not answer.is_whole and answer.receive(report):
                pass
            value = answer.value() if answer.is_whole else None
        finally:
            answer.close()
        if value is None:
            raise _CannotBeZygote
        if answer.kind == NOT_READY and isinstance(value, dict):
            kind, message, trace = (str(value.get(name)) for name in ("type", "message", "traceback"))
            raise CallError(f"what was to be loaded ahead cannot be: {kind}: {message}", kind, message, trace)
        if answer.kind != VALUE or not isinstance(value, list):
            raise EngineError("the zygote spoke nonsense")
        return [(path, mtime, size) for path, mtime, size in value]

    def is_stale(self) -> bool:
        """Whether what is loaded is not what would be loaded now. Looked at every now and then."""
        now = time.monotonic()
        if not self._is_stale and now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._is_stale = any(_facts(path) != (mtime, size) for path, mtime, size in self._files)
        return self._is_stale

    def start(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """A call."""
        self.calls += 1
        environ = environ_text()
        is_same = environ is self._environ or environ == self._environ
        return self._ask(join(_member(options), options.keys, None if is_same else environ), fds)

    def kill(self) -> None:
        """End it without waiting."""
        channel, self._is_closed = self._channel, True
        if channel is not None:
            channel.kill()


def _facts(path: str) -> Tuple[int, int]:
    try:
        facts = os.stat(path)
    except OSError:
        return (0, -1)
    return (facts.st_mtime_ns, facts.st_size)


class WarmWay:
    """Every call is a fork of a zygote."""

    def __init__(
        self,
        python: str,
        preload: Sequence[str],
        named: Sequence[Any],
        policy: PolicyLike,
        keys: Dict[str, Any],
        renew_after: int,
    ) -> None:
        self._cold = ColdWay(python, preload, named, policy, keys)
        self._parts = (python, list(preload))
        self._policy = policy
        self._keys = keys
        self._renew_after = renew_after
        self._lock = threading.Lock()
        self._jar: Optional[ZygoteJar] = None
        self._places: Optional[_paths.Places] = None
        self._old: List[ZygoteJar] = []
        self._is_renewing = False
        self._is_cold = False
        self._is_closed = False

    @property
    def paths(self) -> Sequence[str]:
        """From where modules can be imported inside."""
        return self._cold.paths

    # --- zygotes ---

    def _make(self, places: _paths.Places) -> ZygoteJar:
        python, preload = self._parts
        return ZygoteJar(python, preload, places, self._policy, self._keys)

    def _replace(self, jar: ZygoteJar, places: _paths.Places) -> None:
        """With the lock. Calls of the old one may still be under way: it goes when the next one comes, or at the end."""
        for old in self._old:
            old.kill()
        self._old = [self._jar] if self._jar is not None else []
        self._jar, self._places = jar, places
        if self._is_closed:
            self._drop()

    def _drop(self) -> List[ZygoteJar]:
        jars = [*self._old, *([self._jar] if self._jar is not None else [])]
        self._old, self._jar = [], None
        return jars

    def _renew(self, places: _paths.Places) -> None:
        """In a thread of its own."""
        try:
            jar = self._make(places)
        except Exception:
            jar = None  # whoever needs it next makes it, and sees why it cannot be made
        with self._lock:
            self._is_renewing = False
            if jar is None:
                self._old += [self._jar] if self._jar is not None else []
                self._jar = None
            elif self._is_closed:
                jar.kill()
            else:
                self._replace(jar, places)

    def _begin_renewal(self, places: _paths.Places) -> None:
        """With the lock."""
        self._is_renewing = True
        threading.Thread(target=self._renew, args=(places,), name="belljar-zygote", daemon=True).start()

    def _current(self) -> Optional[ZygoteJar]:
        """The jar for the next call; None: it is to go the cold way."""
        places = self._cold.places
        with self._lock:
            if self._is_cold:
                return None
            jar = self._jar
            if jar is not None and self._places is not places and self._places != places:
                jar = None
            if jar is not None and jar.is_stale():
                jar = None
            if jar is not None:
                if jar.calls >= self._renew_after and not self._is_renewing:
                    self._begin_renewal(places)
                return jar
            try:
                jar = self._make(places)
            except (UnavailableError, _CannotBeZygote):
                self._is_cold = True
                return None
            self._replace(jar, places)
            return jar

    def _lose(self, jar: ZygoteJar) -> None:
        """It has ended by itself."""
        with self._lock:
            if self._jar is jar:
                self._jar = None
        jar.kill()

    # --- calls ---

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """Start a call."""
        for _ in range(2):
            jar = self._current()
            if jar is None:
                return self._cold.open(options, fds)
            try:
                return jar.start(options, fds)
            except EngineError:
                self._lose(jar)
        return self._cold.open(options, fds)

    async def open_async(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """The same; a zygote that must be made first is made in a thread."""
        import asyncio

        loop = asyncio.get_running_loop()
        for _ in range(2):
            jar = self._jar
            is_at_hand = jar is not None and not self._lock.locked() and self._places is self._cold.places
            jar = self._current() if is_at_hand else await loop.run_in_executor(None, self._current)
            if jar is None:
                break
            try:
                return jar.start(options, fds)
            except EngineError:
                self._lose(jar)
        return await self._cold.open_async(options, fds)

    def close(self) -> None:
        """End the zygotes, and wait until they are gone."""
        with self._lock:
            self._is_closed = True
            jars = self._drop()
        for jar in jars:
            try:
                jar.close()
            except BelljarError:
                pass  # the engine is gone, and so is the jar
        self._cold.close()
