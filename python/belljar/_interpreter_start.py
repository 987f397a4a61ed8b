# SPDX-License-Identifier: Apache-2.0
"""Where interpreters come from: forks of a zygote, or fresh ones in a jar that is open."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple

from . import _cell, _engine
from ._call import Call, Options
from ._cold import JarBackend
from ._errors import EngineError, PolicyError
from ._keys import RUN_KEYS
from ._paths import Places
from ._policy import PolicyLike, encode, wire_form
from ._request import environ_text
from ._warm import Zygotes

if TYPE_CHECKING:
    from ._jar import Jar
    from ._keys import OnAsk

# What every zygote for interpreters has loaded beside what it is told.
USUAL = ("?linecache", "?traceback", "?reprlib")
# Each takes some 30 MB with its forks that wait.
MAX_ZYGOTES = 4


# The call, what lets go of its place, and the jar that it is in; None: one that is for it alone.
Started = Tuple[Call, Callable[[], None], Optional["Jar"]]


class WarmStart:
    """Forks of a zygote; on hosts without, fresh interpreters."""

    def __init__(self, zygotes: Zygotes, on_ask: Optional[OnAsk]) -> None:
        self._zygotes = zygotes
        self._options = Options({"on_ask": on_ask})

    def start(self) -> Started:
        backend = self._zygotes.take()
        try:
            call = Call(_cell.serve, (), {}, self._options, backend.paths)
            call.begin(backend)
        except BaseException as error:
            if isinstance(error, EngineError):
                self._zygotes.drop(backend)
            self._zygotes.put(backend)
            raise
        return call, lambda: self._zygotes.put(backend), getattr(backend, "jar", None)


class _KeptBackend(JarBackend):
    """What calls must not use, a kept interpreter may: it is of the jar itself, as any Python that a run starts there. So the
    caller's own interpreter, and all of its sys.path, also where the jar can write; what the jar does not show is not there."""

    def _interpreter(self) -> str:
        return sys.executable

    def _plan(self, sys_path: Tuple[str, ...]) -> Places:
        return Places(sys_path, (), ())

    def _run(self, options: Options) -> Dict[str, Any]:
        return {**super()._run(options), "cells": True}


class JarStart:
    """Fresh interpreters in a jar that is open."""

    def __init__(self, jar: "Jar", preload: Sequence[str], keys: Dict[str, Any], on_ask: Optional[OnAsk]) -> None:
        self._jar = jar
        self._backend = _KeptBackend(jar, jar._policy, jar._keys, [*preload, "?linecache"])
        for name in keys:
            if name not in RUN_KEYS:
                near = difflib.get_close_matches(name, [*sorted(RUN_KEYS), "preload", "on_input", "on_ask", "cell_memory"], 1)
                hint = f"; did you mean {near[0]!r}?" if near else ": it is fixed for the jar, or unknown"
                raise PolicyError(f"python() does not take {name!r}{hint}")
        self._options = Options({**keys, "on_ask": on_ask})

    def start(self) -> Started:
        call = Call(_cell.serve, (), {}, self._options, self._backend.paths)
        call.begin(self._backend)
        return call, lambda: None, self._jar


_lock = threading.Lock()
_zygotes: Dict[Any, Zygotes] = {}


def zygotes_for(
    preload: Sequence[str], named: Sequence[Any], policy: PolicyLike, policy_keys: Dict[str, Any], keys: Dict[str, Any], asks: bool
) -> Zygotes:
    """Interpreters that are made alike come from one zygote. The oldest ones go, when there are many.

    Alike is what says the same to the engine: policy_keys is what the policy says now, should it be a file.
    """
    cwd = None
    with contextlib.suppress(OSError):
        cwd = os.getcwd()
    says = (*wire_form(policy, cwd), encode(policy_keys), encode(keys), environ_text())
    what = (sys.executable, tuple(preload), tuple(map(os.fspath, named)), cwd, says, asks)
    with _lock:
        found = _zygotes.pop(what, None)
        if found is None:
            found = Zygotes(sys.executable, [*preload, *USUAL], named, policy, {**keys, "timeout": None}, sys.maxsize, asks)
        _zygotes[what] = found
        old = _zygotes.pop(next(iter(_zygotes))) if len(_zygotes) > MAX_ZYGOTES else None
    if old is not None:
        old.close()
    return found


def _at_exit() -> None:
    with _lock:
        found = list(_zygotes.values())
        _zygotes.clear()
    for zygotes in found:
        zygotes.close()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _zygotes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
_engine.at_exit(_at_exit)
