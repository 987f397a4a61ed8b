# SPDX-License-Identifier: Apache-2.0
"""The Python interpreters of this machine that the package must work with."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess

OLDEST = (3, 9)
NAME = re.compile(r"^python3(\.\d+)?$")
ASK = "import sys; print(sys.implementation.name, *sys.version_info[:3])"


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """`is_open`: another user can reach it too."""

    path: str
    version: str
    is_open: bool


def folders() -> list[pathlib.Path]:
    """Where interpreters are: the search path, and those of pyenv that are not on it."""
    places = [pathlib.Path("/usr/bin"), pathlib.Path("/usr/local/bin")]
    places += [pathlib.Path(word) for word in os.environ.get("PATH", "").split(":") if word.startswith("/")]
    places += sorted(pathlib.Path.home().glob(".pyenv/versions/3.*/bin"))
    return places


def is_open(path: pathlib.Path) -> bool:
    """Everybody may enter every directory on the way to the file."""
    return all(parent.stat().st_mode & 0o001 for parent in path.parents) and bool(path.stat().st_mode & 0o001)


def ask(path: pathlib.Path) -> tuple[str, tuple[int, ...]] | None:
    """What kind of Python it is; None for what is none, or a stand-in for one that is not there."""
    try:
        done = subprocess.run([path, "-S", "-c", ASK], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 4:
        return None
    return words[0], tuple(map(int, words[1:]))


def find_interpreters() -> list[Interpreter]:
    """One for each minor version, oldest first; of several the first that everybody can reach, and that is the system's."""
    found: dict[str, Interpreter] = {}
    seen = set()
    for folder in folders():
        for path in sorted(folder.glob("python3*")) if folder.is_dir() else []:
            real = path.resolve()
            if not NAME.match(path.name) or real in seen or not os.access(real, os.X_OK):
                continue
            seen.add(real)
            with real.open("rb") as file:
                if file.read(2) == b"#!":
                    continue
            answer = ask(real)
            if answer is None or answer[0] != "cpython" or answer[1] < OLDEST:
                continue
            version = ".".join(map(str, answer[1]))
            minor = version.rpartition(".")[0]
            if minor not in found or not found[minor].is_open:
                found[minor] = Interpreter(str(real), version, is_open(real))
    return sorted(found.values(), key=lambda item: tuple(map(int, item.version.split("."))))
