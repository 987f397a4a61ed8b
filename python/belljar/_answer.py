# SPDX-License-Identifier: Apache-2.0
"""The answer of a call: how it travels from the jar to your program, on a stream socket of its own.

| bytes | what |
|---|---|
| 4 | `BJAN` |
| 1 | version of this format: 1 |
| 1 | kind: what the message is |
| 2 | how many memory files are attached |
| 4 | zero |
| 8 | length of the message |
| … | message: CBOR as _codec writes it |

Little endian. Large byte strings and arrays are not in the message but in memory files, whose descriptors come with the first
byte, in the order in which the message names them. The sender may be hostile: a file is read only if its seals say that nobody
can change it any more, and every length is compared with the bound before memory is allocated for it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from typing import Any, Iterable, List, Sequence, Tuple

from ._codec import Codec
from ._errors import ResultError

HEADER = struct.Struct("<4sBBHIQ")
HEADER_BYTES = HEADER.size
MAGIC = b"BJAN"
VERSION = 1

# What a message is.
VALUE, RAISED, NOT_DATA, NOT_MADE, NOT_READY = range(5)

MAX_FILES = 64
# Smaller ones are quicker in the message.
FILE_BYTES = 256 << 10
# An exception as text; see _inside.
MAX_WORDS_BYTES = 1 << 20
# Linux's own numbers: this module is imported on other systems, too, if only to say there that nothing can be called.
F_ADD_SEALS, F_GET_SEALS = 1033, 1034
F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1, 2, 4, 8
SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
READ_BYTES = 64 << 10
# All that the kernel lets into one message: what finds no room it closes, which can take as long as the sender likes (_discard).
RIGHTS_SPACE = socket.CMSG_SPACE(4 * 253)
PIECE_BYTES = 1 << 30
# For what is not the function's value: text, in a few parts.
WORDS = Codec(max_bytes=MAX_WORDS_BYTES, max_nodes=16, max_depth=2)


def memory_file(name: str, parts: Sequence[Any]) -> int:
    """A sealed file in memory that holds these bytes; the position is at its end."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        for part in parts:
            write_whole(fd, part)
        fcntl.fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd


def write_whole(fd: int, data: Any) -> None:
    """All of it, however long."""
    view = memoryview(data)
    while view.nbytes:
        view = view[os.write(fd, view[:PIECE_BYTES]) :]


# --- the call for a fork that waits, on the same socket ---

# In place of a packed call, which begins otherwise: it is in the file that comes with this.
IN_A_FILE = b"BJMF"


def send_call(link: socket.socket, parts: Sequence[Any]) -> None:
    """In your program: send a packed call to a fork that waits for it. OSError if the fork has gone."""
    if sum(map(len, parts)) <= READ_BYTES:
        link.sendmsg(parts, [], socket.MSG_NOSIGNAL)
        return
    fd = memory_file("belljar-call", parts)
    try:
        link.sendmsg([IN_A_FILE], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))], socket.MSG_NOSIGNAL)
    finally:
        os.close(fd)


# --- in the jar ---


def send_answer(fd: int, kind: int, parts: Sequence[bytes], buffers: Sequence[Any] = ()) -> None:
    """Write a whole answer. OSError if nobody takes it."""
    head = HEADER.pack(MAGIC, VERSION, kind, len(buffers), 0, sum(map(len, parts)))
    if buffers:
        head = head[_send_with_files(fd, head, buffers) :]
    small = [head]
    for part in parts:
        if len(part) < READ_BYTES:
            small.append(part)
            continue
        write_whole(fd, b"".join(small))
        small = []
        write_whole(fd, part)
    write_whole(fd, b"".join(small))


def _send_with_files(fd: int, head: bytes, buffers: Sequence[Any]) -> int:
    files: List[int] = []
    link = socket.socket(fileno=os.dup(fd))
    try:
        for buffer in buffers:
            files.append(memory_file("belljar-result", [buffer]))
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(files)}i", *files))
        return link.sendmsg([head], [rights])
    finally:
        link.close()
        for file in files:
            os.close(file)


# --- in your program ---


def carried(ancillary: Iterable[Tuple[int, int, bytes]]) -> List[int]:
    """The descriptors in what recvmsg() gave."""
    found: List[int] = []
    for level, kind, body in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found += struct.unpack(f"{len(body) // 4}i", body[: len(body) // 4 * 4])
    return found


def _malformed(why: str) -> ResultError:
    return ResultError(f"the answer is malformed: {why}")


class _SealedFiles:
    """The files of an answer, to be read in their order. Nothing is read of one that somebody could still change."""

    def __init__(self, fds: Sequence[int], room: int) -> None:
        self._fds = list(fds)
        self._room = room

    def size(self) -> int:
        """The length of the next one, checked against what may come in all."""
        if not self._fds:
            raise _malformed("a file is missing")
        fd = self._fds[0]
        try:
            seals = fcntl.fcntl(fd, F_GET_SEALS)
        except OSError:
            seals = 0
        if seals & SEALS != SEALS:
            raise _malformed("a process can still change one of its files")
        size = os.fstat(fd).st_size
        if size > self._room:
            raise ResultError("the result takes more bytes than max_result allows")
        return size

    def read(self) -> bytes:
        """The next one."""
        size = self.size()
        fd = self._next(size)
        data = os.pread(fd, size, 0)
        if len(data) < size:  # one call reads 2 GiB at most
            parts = [data]
            while sum(map(len, parts)) < size:
                parts.append(os.pread(fd, size, sum(map(len, parts))))
                if not parts[-1]:
                    raise _malformed("a file ends early")
            data = b"".join(parts)
        return data

    def read_into(self, view: Any) -> None:
        """The next one, to where its bytes belong; as many as it has."""
        fd, done = self._next(len(view)), 0
        while done < len(view):
            count = os.preadv(fd, [view[done : done + PIECE_BYTES]], done)
            if not count:
                raise _malformed("a file ends early")
            done += count

    def _next(self, size: int) -> int:
        self._room -= size
        return self._fds.pop(0)


class Answer:
    """Puts an answer together from what arrives. Whoever reads it must close the files that came with it: take_files()."""

    __slots__ = ("kind", "is_whole", "_codec", "_files", "_file_count", "_head", "_message", "_have")

    def __init__(self, codec: Codec) -> None:
        self.kind = -1
        self.is_whole = False
        self._codec = codec
        self._files: List[int] = []
        self._file_count = 0
        self._head = b""
        self._message: Any = b""
        self._have = 0

    def receive(self, link: socket.socket) -> bool:
        """Read what has arrived. False: nothing will come any more. ResultError if it is malformed.

        BlockingIOError if nothing has arrived yet."""
        try:
            if self.kind < 0:
                data, ancillary, _, _ = link.recvmsg(READ_BYTES, RIGHTS_SPACE, socket.MSG_CMSG_CLOEXEC)
                self._take_files(ancillary)
                self._take(data)
                return bool(data)
            count, ancillary, _, _ = link.recvmsg_into(
                [memoryview(self._message)[self._have :]], RIGHTS_SPACE, socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            raise
        except OSError:
            return False  # the other end has gone, with something unread
        self._have += count
        self._take_files(ancillary)
        self.is_whole = self._have == len(self._message)
        return count > 0

    def _take_files(self, ancillary: Any) -> None:
        self._files += carried(ancillary)
        if len(self._files) > MAX_FILES:
            raise _malformed("it has too many files")

    def _take(self, data: bytes) -> None:
        """Bytes before the header is known to be whole."""
        head = self._head + data if self._head else data
        if len(head) < HEADER_BYTES:
            self._head = head
            return
        magic, version, kind, files, zero, length = HEADER.unpack_from(head)
        if (magic, version, zero) != (MAGIC, VERSION, 0) or kind > NOT_READY or files > MAX_FILES:
            raise _malformed("it does not begin as an answer does")
        most = self._codec.max_bytes if kind == VALUE else MAX_WORDS_BYTES
        if length > most:
            raise ResultError(f"the result takes {length} bytes, more than the {most} that are allowed")
        have = len(head) - HEADER_BYTES
        if length < have:
            raise _malformed("there are bytes after its end")
        if length == have:
            self._message = head[HEADER_BYTES:]
        else:
            # The system gives memory as it is filled, not as it is promised.
            self._message = bytearray(length)
            self._message[:have] = head[HEADER_BYTES:]
        self.kind, self._file_count, self._have = kind, files, have
        self.is_whole = have == length

    def value(self) -> Any:
        """What the message says. ResultError if it is not what the writer writes."""
        if len(self._files) != self._file_count:
            raise _malformed("it has too many files or too few")
        codec = self._codec if self.kind == VALUE else WORDS
        files = _SealedFiles(self._files, codec.max_bytes - len(self._message)) if self._files else None
        message, self._message = self._message, b""
        try:
            return codec.decode(message, files)
        except (ResultError, MemoryError):
            raise
        except Exception as error:  # whatever it is, the sender caused it
            raise _malformed(f"{type(error).__name__}: {error}") from error

    def take_files(self) -> List[int]:
        """The files that came with it; the caller closes them."""
        files, self._files = self._files, []
        return files
