# SPDX-License-Identifier: Apache-2.0
"""CodeRunner: programs in jars. Files go in, and the files that a program leaves under ./out/ come back."""

from __future__ import annotations

import dataclasses
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._files import LIST_MAX_DEPTH, LIST_MAX_ENTRIES, read_all
from ._paths import parts

MAX_OUTPUT_BYTES = 100_000
MAX_ARTIFACT_BYTES = 16_000_000
OUTPUT_FOLDER = "out"


@dataclasses.dataclass
class ExecResult:
    """How a program ended, and the files that it left under ./out/, by their names there."""

    stdout: str
    stderr: str
    returncode: int
    timed_out: bool = False
    artifacts: Dict[str, bytes] = dataclasses.field(default_factory=dict)


class CodeRunner:
    """Runs programs in jars, each in an empty directory of its own.

    policy keys, such as memory="1G" or net="host", hold for all of them.
    """

    def __init__(
        self,
        python: str = sys.executable,
        *,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        max_artifact_bytes: int = MAX_ARTIFACT_BYTES,
        **keys: Any,
    ) -> None:
        self._commands = {
            "python": (python, "main.py"),
            "bash": ("/bin/bash", "main.sh"),
            "sh": ("/bin/sh", "main.sh"),
        }
        self._max_artifact_bytes = max_artifact_bytes
        self._keys = {"output": max_output_bytes, **keys}
        # An interpreter outside of the system's directories is of no use without what belongs to it.
        self._prefixes = [sys.prefix, sys.base_prefix] if python == sys.executable else [os.path.dirname(os.path.dirname(python))]

    async def run(
        self,
        code: str,
        *,
        language: str = "python",
        timeout_s: float = 30.0,
        files: Optional[Mapping[str, Union[bytes, str]]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> ExecResult:
        """Run a program to its end. ValueError for a language or a file name that will not do."""
        if language not in self._commands:
            raise ValueError(f"unknown language {language!r}; choose one of: {', '.join(self._commands)}")
        program, script = self._commands[language]
        # Its parent stays ours alone: what is in the jar can change the directory, not replace it.
        base = tempfile.mkdtemp(prefix="belljar-code-")
        try:
            folder = os.path.join(base, "work")
            os.makedirs(os.path.join(folder, OUTPUT_FOLDER))
            for name, data in (files or {}).items():
                _put(folder, name, data)
            if os.path.lexists(os.path.join(folder, script)):
                raise ValueError(f"the program itself is saved as {script!r}; give your file another name")
            _put(folder, script, code)
            return await self._run([program, script], folder, timeout_s, env)
        finally:
            _remove(base)

    async def _run(self, words: List[str], folder: str, timeout_s: float, env: Optional[Mapping[str, str]]) -> ExecResult:
        from ._jar import Jar

        keys: Dict[str, Any] = {**self._keys, "workdir": folder}
        keys["ro"] = [*keys.get("ro", ()), *_outside_system(self._prefixes)]
        # What the caller of one run asks for cannot go beyond the limits of this object.
        async with await Jar.open_async(**keys) as jar:
            result = await jar.run_async(words, timeout=timeout_s, env=dict(env or {}))
        artifacts = collect(os.path.join(folder, OUTPUT_FOLDER), self._max_artifact_bytes)
        return ExecResult(result.stdout, result.stderr, result.returncode, result.timed_out, artifacts)


def _outside_system(prefixes: Sequence[str]) -> List[Dict[str, Any]]:
    places = dict.fromkeys(os.path.realpath(prefix) for prefix in prefixes)
    outside = [place for place in places if place not in ("/", "/usr") and not place.startswith("/usr/")]
    return [{"path": path, "optional": True} for place in outside for path in parts(place)]


def _put(folder: str, name: str, data: Union[bytes, str]) -> None:
    parts = Path(name).parts
    if not parts or os.path.isabs(name) or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is not a relative path below the program's directory")
    path = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


class _Collection:
    """The regular files below a directory that is not to be trusted, as many as fit.

    Only single names are opened, below descriptors: no link is followed. A FIFO is not waited for, a directory that may not
    be read is passed over, and neither many files nor deep ones can keep us.
    """

    def __init__(self, max_bytes: int) -> None:
        self.found: Dict[str, bytes] = {}
        self._room = max_bytes
        self._entries_left = LIST_MAX_ENTRIES

    def enter(self, fd: int, prefix: str, depth: int) -> None:
        """All below a directory, in the order of names."""
        try:
            names = self._names(fd)
        except OSError:
            return
        for name in names:
            try:
                inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=fd)
            except OSError:
                continue
            try:
                kind = os.fstat(inner).st_mode
                if stat.S_ISREG(kind):
                    self._take(inner, prefix + name)
                elif stat.S_ISDIR(kind) and depth > 0:
                    self.enter(inner, f"{prefix}{name}/", depth - 1)
            finally:
                os.close(inner)

    def _names(self, fd: int) -> List[str]:
        names = []
        with os.scandir(fd) as entries:
            for entry in entries:
                if self._entries_left == 0:
                    break
                self._entries_left -= 1
                names.append(entry.name)
        return sorted(names)

    def _take(self, fd: int, name: str) -> None:
        try:
            data = read_all(fd, name, self._room) if os.fstat(fd).st_size <= self._room else None
        except OSError:
            return
        if data is not None:
            self.found[name] = data
            self._room -= len(data)


def collect(folder: str, max_bytes: int) -> Dict[str, bytes]:
    """What a program left in a directory: {relative name: bytes}."""
    collection = _Collection(max_bytes)
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        collection.enter(top, "", LIST_MAX_DEPTH)
    finally:
        os.close(top)
    return collection.found


def _remove(path: str) -> None:
    """A directory whatever was made of it: rights taken away, nested deeper than Python goes."""
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        for words in (["chmod", "-R", "u+rwx", "--", path], ["rm", "-rf", "--", path]):
            subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


async def run(
    code: str,
    *,
    language: str = "python",
    timeout_s: float = 30.0,
    files: Optional[Mapping[str, Union[bytes, str]]] = None,
    env: Optional[Mapping[str, str]] = None,
) -> ExecResult:
    """CodeRunner().run()"""
    return await CodeRunner().run(code, language=language, timeout_s=timeout_s, files=files, env=env)
