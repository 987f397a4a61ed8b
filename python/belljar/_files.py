# SPDX-License-Identifier: Apache-2.0
"""Reading and writing files of a jar, over descriptors that the jar's own first process opened behind its walls.

We never look up a path of the jar out here: it would lead to a file of the host. Below a directory of the jar we use single names
only, with O_NOFOLLOW, so no link leads anywhere. Everything has a bound, because the jar decides how much there is.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import stat
from typing import Any, List, Optional

from ._errors import public
from ._steps import Steps, finish

READ_CHUNK_BYTES = 1 << 20
WRITE_CHUNK_BYTES = 4 << 20
LIST_MAX_ENTRIES = 100_000
LIST_MAX_DEPTH = 100

_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "symlink"}


@public
@dataclasses.dataclass(frozen=True)
class FileInfo:
    """A name in a jar. `type` is "file", "dir", "symlink" or "other"; `name` is relative to the listed directory.

    `mode` has the permissions only; `mtime` is the time of the last change, in seconds as time.time() counts.
    """

    name: str
    type: str
    size: int
    mode: int
    mtime: float = 0.0


def read_steps(fd: int, path: Any, max_bytes: int, length: Optional[int] = None) -> Steps[bytes]:
    """At most `length` bytes from where the descriptor stands; OSError with EFBIG if these are more than max_bytes."""
    parts: List[bytes] = []
    count = 0
    room = max_bytes + 1 if length is None else min(length, max_bytes + 1)
    while count < room:
        part = os.read(fd, min(READ_CHUNK_BYTES, room - count))
        if not part:
            break
        count += len(part)
        if count > max_bytes:
            raise OSError(errno.EFBIG, f"the file is larger than {max_bytes} bytes", path)
        parts.append(part)
        yield None
    return b"".join(parts)


def read_all(fd: int, path: Any, max_bytes: int) -> bytes:
    """The whole file; OSError with EFBIG if it holds more than max_bytes."""
    return finish(read_steps(fd, path, max_bytes))


def write_steps(fd: int, data: Any) -> Steps[None]:
    """Every byte, or OSError."""
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(fd, view[:WRITE_CHUNK_BYTES]) :]
        yield None


def _describe(fd: int, name: str, prefix: str) -> Optional[FileInfo]:
    try:
        seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed in between
    kind = _TYPES.get(stat.S_IFMT(seen.st_mode), "other")
    return FileInfo(prefix + name, kind, seen.st_size, stat.S_IMODE(seen.st_mode), seen.st_mtime)


def _list_one(fd: int, prefix: str, found: List[FileInfo], path: Any) -> List[str]:
    """Add the names of one directory; the names of those that are directories."""
    below = []
    with os.scandir(fd) as entries:
        for entry in entries:
            info = _describe(fd, entry.name, prefix)
            if info is None:
                continue
            if len(found) >= LIST_MAX_ENTRIES:
                raise OSError(errno.E2BIG, f"the directory has more than {LIST_MAX_ENTRIES} files", path)
            found.append(info)
            if info.type == "dir":
                below.append(entry.name)
    return below


def open_below(fd: int, name: str) -> Optional[int]:
    """A directory in a directory; None if it was removed or replaced in between."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


def _list_below(fd: int, prefix: str, depth: int, found: List[FileInfo], path: Any) -> Steps[None]:
    if depth > LIST_MAX_DEPTH:
        raise OSError(errno.E2BIG, f"directories are nested more than {LIST_MAX_DEPTH} deep", path)
    for name in _list_one(fd, prefix, found, path):
        inner = open_below(fd, name)
        if inner is None:
            continue
        try:
            yield None
            yield from _list_below(inner, f"{prefix}{name}/", depth + 1, found, path)
        finally:
            os.close(inner)


def list_steps(fd: int, path: Any, recursive: bool) -> Steps[List[FileInfo]]:
    """The names in a directory, sorted; of all below it too if recursive. No link is followed."""
    found: List[FileInfo] = []
    if recursive:
        yield from _list_below(fd, "", 0, found, path)
    else:
        _list_one(fd, "", found, path)
    return sorted(found, key=lambda info: info.name)
