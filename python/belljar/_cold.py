# SPDX-License-Identifier: Apache-2.0
"""Calls without a warm interpreter: each is a run of a fresh one.

In a jar of its own for pools on hosts that have nothing better; in a kept jar for Jar.call.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Sequence, Tuple

from . import _boot, _engine, _paths
from ._call import Options
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


class Setting(NamedTuple):
    """What follows from the caller's sys.path."""

    seen: Tuple[str, ...]
    places: _paths.Places
    boot: BootFile


def run_members(python: str, options: Options) -> Dict[str, Any]:
    """The run of one call: three descriptors are the call, its answer and the boot file."""
    return {"argv": _boot.boot_words(python), "sink": options.sink, "capture": True, "extra": 3}


def with_options(keys: Dict[str, Any], options: Options) -> Dict[str, Any]:
    """The keys of a pool with those of one call: values replace, lists and env are added to."""
    merged = {**keys, **options.keys}
    for name in ("pass_env", "redact"):
        if keys.get(name) and options.keys.get(name):
            merged[name] = [*keys[name], *options.keys[name]]
    if keys.get("env") and options.keys.get("env"):
        merged["env"] = {**keys["env"], **options.keys["env"]}
    return merged


class _NothingHeld:
    """A fresh interpreter is not begun ahead."""

    def take_held(self, options: Options) -> None:
        """There is none."""

    def hold_next(self) -> None:
        """There will be none."""


class ColdWay(_NothingHeld):
    """Every call is a fresh interpreter in a fresh jar."""

    def __init__(
        self, python: str, preload: Sequence[str], named: Sequence[Any], policy: PolicyLike, keys: Dict[str, Any]
    ) -> None:
        self._python = python
        self._preload = list(preload)
        self._named = list(named)
        self._policy = policy
        self._keys = keys
        self._lock = threading.Lock()
        self._setting: Optional[Setting] = None

    def _current(self) -> Setting:
        """Follow the caller's sys.path."""
        seen = _paths.caller_paths()
        setting = self._setting
        if setting is None or setting.seen != seen:
            with self._lock:
                places = _paths.plan(self._python, self._named, self._policy, self._keys, seen)
                fd = _boot.boot_file(self._python, places.paths, self._preload, places.writable)
                setting = self._setting = Setting(seen, places, BootFile(fd))
        return setting

    @property
    def places(self) -> _paths.Places:
        """What an interpreter for calls needs now."""
        return self._current().places

    @property
    def paths(self) -> Sequence[str]:
        """From where modules can be imported inside."""
        return self.places.paths

    def _request(self, options: Options, setting: Setting) -> bytes:
        keys = with_options(self._keys, options)
        keys["ro"] = [*(keys.get("ro") or ()), *_paths.ro_entries(setting.places)]
        return run_frame(self._policy, keys, run_members(self._python, options))

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """A run in a jar of its own."""
        setting = self._current()
        return _engine.open_channel(self._request(options, setting), [*fds, setting.boot.fd])

    async def open_async(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """The same without holding up the loop."""
        from ._async import open_channel_async

        setting = self._current()
        return await open_channel_async(self._request(options, setting), [*fds, setting.boot.fd])

    def failed(self) -> None:
        """The engine did not do its work; there is nothing of ours in it."""

    def done(self) -> None:
        """A call has come to its end."""

    def close(self) -> None:
        """Let go of what is kept for calls to come."""
        self._setting = None


class JarWay(_NothingHeld):
    """Every call is a fresh interpreter in a jar that is kept. The jar was opened without a thought of calls, so of the
    caller's sys.path only that is used which the jar shows, and shows read-only; functions from elsewhere go by value."""

    def __init__(self, jar: "Jar", policy: PolicyLike, keys: Dict[str, Any]) -> None:
        self._jar = jar
        said = _paths.said_by(policy)
        self._rights = _paths.Rights(said, keys, jar.workdir)
        self._python = self._interpreter()
        self._lock = threading.Lock()
        self._setting: Optional[Setting] = None

    def _interpreter(self) -> str:
        """The caller's, unless a run in the jar could have replaced it."""
        for name in (sys.executable, os.path.realpath(sys.executable)):
            if not self._rights.may_write(os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))):
                return name
        raise PolicyError(f"the interpreter '{sys.executable}' lies where the jar can write, so nothing can be called there")

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

    def _current(self) -> Setting:
        seen = _paths.caller_paths()
        setting = self._setting
        if setting is None or setting.seen != seen:
            with self._lock:
                private = (*_paths.PRIVATE, os.path.expanduser("~"))
                places = _paths.Places(tuple(filter(self._is_shown, seen)), (), (*self._rights.writable, *private))
                fd = _boot.boot_file(self._python, places.paths, (), places.writable)
                setting = self._setting = Setting(seen, places, BootFile(fd))
        return setting

    @property
    def paths(self) -> Sequence[str]:
        """From where modules can be imported inside."""
        return self._current().places.paths

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """A run in the jar."""
        frame = join_frame(options.keys, run_members(self._python, options), self._jar._environ)
        return self._jar._ask(frame, [*fds, self._current().boot.fd])

    async def open_async(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """The same."""
        return self.open(options, fds)
