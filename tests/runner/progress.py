# SPDX-License-Identifier: Apache-2.0
"""How far the tests are: one line at the end of a terminal, which is written over; and what each group took the last time."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import TextIO

WIDTH = 80
ERASE_LINE = "\r\x1b[K"


class Costs:
    """What each group took the last time that it ran to its end, kept in the build folder."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self.seconds: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(path.read_text())
            self.seconds = {title: float(seconds) for title, seconds in known.items()}

    def keep(self, new: dict[str, float]) -> None:
        """For the next time. Where it cannot be written, the next time guesses."""
        self.seconds.update(new)
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(json.dumps(self.seconds, indent=1, sort_keys=True) + "\n")


class Progress:
    """Groups done, groups left, and when the end is to be expected by what the groups left took the last time."""

    def __init__(self, expected: Mapping[str, float], clock: Callable[[], float] = time.time) -> None:
        self._left = dict(expected)
        self._clock = clock
        self._start = clock()
        self._count = len(self._left)
        self._done_seconds = 0.0

    def done(self, title: str) -> None:
        """A group has come to its end."""
        self._done_seconds += self._left.pop(title, 0.0)

    def line(self) -> str:
        """At most 79 characters: a terminal of 80 columns goes to the next line after the last."""
        text = f"{self._count - len(self._left)} of {self._count} groups done, {len(self._left)} left"
        if self._left and self._done_seconds:
            seconds = (self._clock() - self._start) * sum(self._left.values()) / self._done_seconds
            end = time.strftime("%H:%M", time.localtime(self._clock() + seconds))
            text += f", about {max(1, round(seconds / 60))} min more, until {end}"
        return text[: WIDTH - 1]


class Screen:
    """Prints lines, and on a terminal how far all is below them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.progress: Progress | None = None

    def show(self, text: str) -> None:
        """What stays."""
        before, after = "", ""
        if self.progress is not None and self._is_terminal:
            before, after = ERASE_LINE, self.progress.line()
        print(f"{before}{text}\n{after}", end="", file=self._stream, flush=True)

    def refresh(self) -> None:
        """Write the last line anew."""
        if self.progress is not None and self._is_terminal:
            print(f"{ERASE_LINE}{self.progress.line()}", end="", file=self._stream, flush=True)

    def end(self) -> None:
        """Nothing below any more."""
        if self.progress is not None and self._is_terminal:
            print(ERASE_LINE, end="", file=self._stream, flush=True)
        self.progress = None
