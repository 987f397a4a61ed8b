# SPDX-License-Identifier: Apache-2.0
"""Find the engine's program, and run it for a short answer."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Dict, Optional, Tuple

from ._errors import EngineError, UnavailableError


def _who_tried() -> Tuple[str, bool]:
    """The line of the caller's that uses this package, in words, and whether it runs because a module is imported."""
    package = os.path.dirname(os.path.abspath(__file__))
    frame = sys._getframe()
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == package:
        frame = frame.f_back
    who = f"line {frame.f_lineno} of {frame.f_code.co_filename}"
    up: Optional[FrameType] = frame
    while up is not None:
        # The code of a module, but for the program itself, runs only when it is imported.
        if up.f_code.co_name == "<module>" and up.f_globals.get("__name__") not in (None, "__main__"):
            return f"{who}, while the module '{up.f_globals['__name__']}' was imported,", True
        up = up.f_back
    return who, False


def refuse_inside(may_be_imported: bool = False) -> None:
    """UnavailableError in a jar for calls, where there can be no jars; it names who tried. may_be_imported: not if that was a
    module's own code."""
    inside = sys.modules.get((__package__ or "belljar") + "._inside")
    if inside is None or not inside.is_inside:
        return
    who, is_imported = _who_tried()
    if not (is_imported and may_be_imported):
        raise UnavailableError(f"a jar cannot hold another jar: {who} tried to make one").with_(
            hint="in a jar, call the function itself; what needs jars belongs into the program outside, not into the module's own code"
        )


def confined_hint() -> Optional[str]:
    """What to say of a jar that could not be made, if this program is confined as commands in jars are."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            facts = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return None
    if (facts.get("NoNewPrivs", "").strip(), facts.get("Seccomp", "").strip()) != ("1", "2"):
        return None
    return f"this program runs in a jar itself, or in another sandbox, and a jar cannot hold another jar: {_who_tried()[0]} tried"


def engine_path() -> str:
    """$BELLJAR_BIN if set, else the program in this package."""
    refuse_inside()
    if not sys.platform.startswith("linux"):
        raise UnavailableError(f"Belljar needs Linux; this is {sys.platform}")
    path = os.environ.get("BELLJAR_BIN") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "belljar")
    if not os.access(path, os.X_OK):
        raise EngineError(f"there is no engine to run: '{path}' is not a program").with_(
            hint="install the package as a wheel, build it with ./dev build, or set BELLJAR_BIN"
        )
    return path


def engine_environ() -> Dict[str, str]:
    """This process's environment for the engine, which makes the package that it names read-only in every jar."""
    return {**os.environ, "BELLJAR_PACKAGE": os.path.dirname(os.path.abspath(__file__))}


def ask_program(arguments: list[str], stream: int = 2) -> tuple[int, str]:
    """Run the program itself, outside any jar, for a short answer: exit status, and what it wrote to stderr, or stdout."""
    path = engine_path()
    reader, writer = os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 3 - stream, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, stream),
        ]
        try:
            pid = os.posix_spawn(path, ["belljar", *arguments], os.environ, file_actions=actions)
        except OSError as error:
            raise EngineError(f"cannot start '{path}': {error}") from error
        finally:
            os.close(writer)
        with open(reader, "rb", closefd=False) as words:
            text = words.read(1 << 20)
        try:
            status = os.waitpid(pid, 0)[1]
        except ChildProcessError:
            # Where SIGCHLD is ignored nobody learns how children end; only a complaint is written to stderr.
            return int(bool(text) == (stream == 2)), text.decode("utf-8", "replace")
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1, text.decode("utf-8", "replace")
    finally:
        os.close(reader)
