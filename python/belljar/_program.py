# SPDX-License-Identifier: Apache-2.0
"""Find the engine's program, and run it for a short answer."""

from __future__ import annotations

import os
import sys

from ._errors import EngineError, UnavailableError


def engine_path() -> str:
    """$BELLJAR_BIN if set, else the program in this package."""
    if not sys.platform.startswith("linux"):
        raise UnavailableError(f"Belljar needs Linux; this is {sys.platform}")
    path = os.environ.get("BELLJAR_BIN") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "belljar")
    if not os.access(path, os.X_OK):
        raise EngineError(f"there is no engine to run: '{path}' is not a program").with_(
            hint="install the package as a wheel, build it with ./dev build, or set BELLJAR_BIN"
        )
    return path


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
