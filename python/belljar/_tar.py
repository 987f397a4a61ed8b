# SPDX-License-Identifier: Apache-2.0
"""Trees of a jar as tar archives, in and out, piece by piece: nothing is kept whole.

On the way out a tree is read over descriptors, as in _files.py. On the way in every file is made inside, by the jar's own first
process; what an archive could do harm with is refused.

A file with large holes is written as GNU tar writes it, format 1.0: a map of what there is, then that. The zeros of a hole of a
terabyte would take hours.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import tarfile
from typing import Any, Dict, Generator, Iterator, List, Optional, Tuple, Union

from ._files import LIST_MAX_DEPTH, open_below

PIECE_BYTES = 256 << 10
BLOCK_BYTES = tarfile.BLOCKSIZE
TYPES = {stat.S_IFREG: tarfile.REGTYPE, stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE}


# --- out ---


HOLES_FROM = 64 << 20  # bytes of holes; smaller ones are written as zeros, which every program unpacks


def _header(name: str, seen: os.stat_result, link: str = "", extended: Optional[Dict[str, str]] = None) -> bytes:
    info = tarfile.TarInfo(name)
    info.pax_headers = extended or {}
    info.type = TYPES[stat.S_IFMT(seen.st_mode)]
    info.mode = stat.S_IMODE(seen.st_mode)
    info.mtime = int(seen.st_mtime)
    info.size = seen.st_size if stat.S_ISREG(seen.st_mode) else 0
    info.linkname = link
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _content(fd: int, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes and what fills the last block, whatever becomes of the file meanwhile."""
    left = size
    while left:
        data = os.read(fd, min(PIECE_BYTES, left)) or bytes(min(PIECE_BYTES, left))
        left -= len(data)
        yield data
    yield bytes(-size % BLOCK_BYTES)


def _parts(fd: int, size: int) -> List[Tuple[int, int]]:
    """Where there is data, and how much; an empty one at the end of a file that ends with a hole."""
    found = []
    at = 0
    while at < size:
        try:
            data = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        at = min(os.lseek(fd, data, os.SEEK_HOLE), size)
        if data >= at:
            break
        found.append((data, at - data))
    if not found or sum(found[-1]) < size:
        found.append((size, 0))
    return found


def _sparse(name: str, fd: int, seen: os.stat_result) -> Iterator[bytes]:
    parts = _parts(fd, seen.st_size)
    numbers = [len(parts), *(number for part in parts for number in part)]
    table = b"".join(b"%d\n" % number for number in numbers)
    table += bytes(-len(table) % BLOCK_BYTES)
    stored = sum(length for _, length in parts)
    words = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name, "GNU.sparse.realsize": str(seen.st_size)}
    facts = list(seen[:10])
    facts[stat.ST_SIZE] = len(table) + stored
    yield _header("GNUSparseFile.0/file", os.stat_result(facts), extended=words)
    yield table
    for at, length in parts:
        while length:
            data = os.pread(fd, min(PIECE_BYTES, length), at) or bytes(min(PIECE_BYTES, length))
            at += len(data)
            length -= len(data)
            yield data
    yield bytes(-stored % BLOCK_BYTES)


def _file(name: str, fd: int) -> Iterator[bytes]:
    """A regular file; its descriptor is closed."""
    try:
        seen = os.fstat(fd)
        if stat.S_ISREG(seen.st_mode) and seen.st_size - seen.st_blocks * BLOCK_BYTES >= HOLES_FROM:
            yield from _sparse(name, fd, seen)
        elif stat.S_ISREG(seen.st_mode):
            yield _header(name, seen)
            yield from _content(fd, seen.st_size)
    finally:
        os.close(fd)


def _entry(fd: int, name: str, path: str) -> Iterator[bytes]:
    """One name of a directory that is no directory; nothing for what is neither file nor link."""
    try:
        seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISLNK(seen.st_mode):
            yield _header(path, seen, os.readlink(name, dir_fd=fd))
            return
        if not stat.S_ISREG(seen.st_mode):
            return
        inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=fd)
    except FileNotFoundError:
        return  # removed in between
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL, errno.ENXIO):
            return  # replaced in between
        raise
    yield from _file(path, inner)


def _below(fd: int, prefix: str, depth: int) -> Iterator[bytes]:
    if depth > LIST_MAX_DEPTH:
        raise OSError(errno.E2BIG, f"directories are nested more than {LIST_MAX_DEPTH} deep", prefix)
    with os.scandir(fd) as entries:
        names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    for name, is_dir in names:
        inner = open_below(fd, name) if is_dir else None
        if inner is None:
            yield from _entry(fd, name, prefix + name)
            continue
        try:
            yield _header(prefix + name, os.fstat(inner))
            yield from _below(inner, f"{prefix}{name}/", depth + 1)
        finally:
            os.close(inner)


def _pieces(fd: int, name: str) -> Generator[bytes, None, None]:
    """The archive of what a descriptor is of, which is closed: a directory, or one regular file."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        yield from _file(name, fd)
    else:
        try:
            yield from _below(fd, "", 0)
        finally:
            os.close(fd)
    yield bytes(2 * BLOCK_BYTES)


class _Pieces(io.RawIOBase):
    """A file to be read, made of pieces as they come."""

    def __init__(self, fd: int, name: str) -> None:
        super().__init__()
        self._fd = fd
        self._pieces = _pieces(fd, name)
        self._has_begun = False
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._has_begun = True
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._pieces.close()
            if not self._has_begun:
                os.close(self._fd)  # a generator that never ran closes nothing
        super().close()


def export_file(fd: int, name: str) -> io.BufferedReader:
    """The archive, read as it is wanted. Takes the descriptor over."""
    return io.BufferedReader(_Pieces(fd, name), PIECE_BYTES)


# --- in ---


def _refusal(member: tarfile.TarInfo) -> Optional[str]:
    """What is wrong with a member."""
    if member.issym() or member.islnk():
        return "is a link"
    if member.issparse():
        return "is a sparse file"
    if not (member.isreg() or member.isdir()):
        return "is neither a file nor a directory"
    if member.name.startswith("/"):
        return "has an absolute name"
    if ".." in member.name.split("/"):
        return "has '..' in its name"
    if "\0" in member.name:
        return "has a NUL in its name"
    return None


def members(data: Union[bytes, bytearray, memoryview, Any]) -> Iterator[Tuple[str, int, int, Optional[Any]]]:
    """Name, mode, size and content of each member, in order; no content: a directory. ValueError for one that is refused."""
    source = io.BytesIO(data) if isinstance(data, (bytes, bytearray, memoryview)) else data
    with tarfile.open(fileobj=source, mode="r|", encoding="utf-8", errors="surrogateescape") as archive:
        for member in archive:
            why = _refusal(member)
            if why is not None:
                raise ValueError(f"'{member.name}' in the archive {why}; it was not unpacked, nor was what follows it")
            yield member.name, member.mode & 0o777, member.size, None if member.isdir() else archive.extractfile(member)
            setattr(archive, "members", [])  # or it would keep them all


def target(path: Any, name: str) -> Union[str, bytes]:
    """Where a member belongs."""
    parts: List[str] = [os.fsdecode(path), *(part for part in name.split("/") if part not in ("", "."))]
    return "/".join(parts)
