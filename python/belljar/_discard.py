# SPDX-License-Identifier: Apache-2.0
"""Close descriptors that came out of a jar, without waiting for anything.

Whoever closes the last reference to a TCP socket with SO_LINGER waits in the kernel until its data is sent, as long as the sender
of the descriptor likes. The same happens when such a socket lies unread in the queue of a Unix socket that is closed. So we read
whatever a jar has sent, tell sockets not to linger, and only then close them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from typing import Any, Iterable, List

from ._answer import RIGHTS_SPACE, carried

# More messages of no length than a socket's queue can have.
MAX_NOTHINGS = 10_000
NO_LINGER = struct.pack("ii", 0, 0)


def drain(sock: socket.socket) -> List[int]:
    """Close both directions of a Unix socket; the descriptors that lay unread in its queue."""
    found: List[int] = []
    nothings = 0
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)  # nothing more can come
    with contextlib.suppress(OSError):
        while nothings < MAX_NOTHINGS:
            data, ancillary, _, _ = sock.recvmsg(1 << 16, RIGHTS_SPACE, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)
            found += carried(ancillary)
            # In a stream it is the end; else it may be a message without a byte.
            nothings = 0 if data or ancillary else nothings + 1 if sock.type != socket.SOCK_STREAM else MAX_NOTHINGS
    return found


def keep_in_line(sock: socket.socket) -> None:
    """Urgent bytes are read with the rest: those that are passed over take their descriptors along."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)


def _empty(sock: socket.socket) -> List[int]:
    """What a Unix socket of somebody else's has in its queue: descriptors, or connections that nobody accepted."""
    found: List[int] = []
    keep_in_line(sock)
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return drain(sock)
    sock.shutdown(socket.SHUT_RDWR)
    sock.setblocking(False)
    with contextlib.suppress(OSError):
        while True:
            found.append(sock.accept()[0].detach())
    return found


def _open_up(fd: int) -> List[int]:
    """Make a descriptor one whose close returns at once; those that this brought to light."""
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return []
    sock: Any = socket.socket(fileno=fd)
    try:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        return _empty(sock) if sock.family == socket.AF_UNIX else []
    finally:
        sock.detach()


def discard(fds: Iterable[int]) -> None:
    """Close what came from a jar. Best when nothing of the jar is left that could interfere."""
    left = list(fds)
    while left:
        fd = left.pop()
        with contextlib.suppress(OSError):
            left += _open_up(fd)
        os.close(fd)
