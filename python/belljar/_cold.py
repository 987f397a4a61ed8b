# SPDX-License-Identifier: Apache-2.0
"""Calls without a warm interpreter: each is a run of a fresh one.

Pools use a jar of its own for each call where the host has no user namespaces; Jar.call() uses a jar that stays open.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple

from . import _boot, _engine, _paths
from ._call import Backend, Options
from ._errors import PolicyError
from ._policy import PolicyLike
from ._request import join_frame, run_frame

if TYPE_CHECKING:
    from ._jar import Jar


class BootFile:
    """A file for _boot.BOOT_FD, closed when the last call that needs it has gone."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


class _FreshInterpreters(Backend):
    """Keeps what a fresh interpreter is started with, as long as the caller's sys.path stays the same."""

    def __init__(self, python: str, preload: Sequence[str]) -> None:
        self._python = python
        self._preload = list(preload)
        self._lock = threading.Lock()
        self._startup: Optional[Tuple[Tuple[str, ...], _paths.Places, BootFile]] = None

    def _plan(self, sys_path: Tuple[str, ...]) -> _paths.Places:
        """What of this sys.path can be used inside."""
        raise NotImplementedError

    def _current(self) -> Tuple[_paths.Places, BootFile]:
        sys_path = _paths.caller_paths()
        startup = self._startup
        if startup is None or startup[0] != sys_path:
            with self._lock:
                places = self._plan(sys_path)
                fd = _boot.boot_file(self._python, places.paths, self._preload, places.writable)
                startup = self._startup = (sys_path, places, BootFile(fd))
        return startup[1], startup[2]

    @property
    def paths(self) -> Sequence[str]:  # type: ignore[override]
        """Where modules can be imported from, inside."""
        return self._current()[0].paths

    def _run(self, options: Options) -> Dict[str, Any]:
        """The run of one call; the third of its descriptors is the boot file."""
        return {"argv": _boot.boot_words(self._python), **options.members, "started": False, "extra": 3}

    def close(self) -> None:
        """Let go of what is kept for the next call."""
        self._startup = None


class ColdBackend(_FreshInterpreters):
    """Every call is a fresh interpreter in a fresh jar."""

    def __init__(
        self, python: str, preload: Sequence[str], named: Sequence[Any], policy: PolicyLike, keys: Dict[str, Any]
    ) -> None:
        super().__init__(python, preload)
        self._named = list(named)
        self._policy = policy
        self._keys = keys

    def _plan(self, sys_path: Tuple[str, ...]) -> _paths.Places:
        return _paths.plan(self._python, self._named, self._policy, self._keys, sys_path)

    def _frame(self, options: Options, places: _paths.Places) -> bytes:
        keys = {**self._keys, "ro": [*(self._keys.get("ro") or ()), *_paths.ro_entries(places)]}
        return run_frame(self._policy, keys, {**self._run(options), "keys": options.keys or None})

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """A run in a jar of its own."""
        places, boot = self._current()
        return _engine.open_channel(self._frame(options, places), [*fds, boot.fd])

    async def open_async(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """The same without holding up the loop."""
        from ._async import open_channel_async

        places, boot = self._current()
        return await open_channel_async(self._frame(options, places), [*fds, boot.fd])


class JarBackend(_FreshInterpreters):
    """Every call is a fresh interpreter in a jar that stays open. The jar was not opened for calls, so they import only from
    those directories of the caller's sys.path that the jar shows, and shows read-only; functions from elsewhere go by value."""

    def __init__(self, jar: "Jar", policy: PolicyLike, keys: Dict[str, Any], preload: Sequence[str] = ()) -> None:
        self._jar = jar
        self._rights = _paths.Rights(_paths.keys_of(policy), keys, jar.workdir)
        super().__init__(self._interpreter(), preload)

    def _interpreter(self) -> str:
        """The caller's, unless a run in the jar could have replaced it."""
        for name in (sys.executable, os.path.realpath(sys.executable)):
            if not self._rights.may_write(os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))):
                return name
        raise PolicyError(f"the jar can write the interpreter '{sys.executable}', so no function can be called there")

    def _is_shown(self, path: str) -> bool:
        """Whether the jar has this very directory or archive, and cannot write it."""
        if self._rights.may_write(os.path.realpath(path)):
            return False
        try:
            ours = os.stat(path)
            fd = self._jar._open_file(path, "list" if stat.S_ISDIR(ours.st_mode) else "read")
        except OSError:
            return False
        try:
            theirs = os.fstat(fd)
            is_fixed = self._jar.rung != "namespace" or bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY)
            return is_fixed and (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)
        finally:
            os.close(fd)

    def _plan(self, sys_path: Tuple[str, ...]) -> _paths.Places:
        private = (*_paths.PRIVATE, os.path.expanduser("~"))
        return _paths.Places(tuple(filter(self._is_shown, sys_path)), (), (*self._rights.writable, *private))

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """A run in the jar."""
        frame = join_frame(options.keys, self._run(options), self._jar._environ)
        return self._jar._ask(frame, [*fds, self._current()[1].fd])
