# SPDX-License-Identifier: Apache-2.0
"""Our ends of one kept interpreter: the socket, the pipes of its output, and two pipes that are signals to it."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any, List, Sequence

from . import _answer, _cell, _engine
from ._codec import Codec
from ._codec_types import array_type
from ._discard import drain, keep_in_line
from ._errors import shortage_is_engine_error
from ._kept import Poll, Streams

# Longer requests travel as a file.
INLINE_BYTES = 32 << 10
INTERRUPT, KILL = range(2)

CODEC = Codec()


class Ends:
    """Our ends of one interpreter: the link, the streams, and two pipes for signals."""

    def __init__(self, link: socket.socket, cap: int, also: Sequence[int]) -> None:
        """also: what a cell waits for beside its answer and its output."""
        self.link = link
        self.streams = Streams(cap)
        self._theirs: List[int] = []
        self._ours: List[Any] = []
        with shortage_is_engine_error("make pipes for signals"):
            for _ in range(2):
                reader, writer = os.pipe()
                os.set_blocking(writer, False)
                file = open(writer, "wb", buffering=0)
                _engine._held.add(file)
                self._theirs.append(reader)
                self._ours.append(file)
        link.setblocking(False)
        keep_in_line(link)
        self.poll = Poll([link.fileno(), *self.streams.fds, *also])

    @property
    def theirs(self) -> List[int]:
        return [*self.streams.theirs, *self._theirs]

    def sent(self) -> None:
        self.streams.sent()
        _engine.close_all(self._theirs)
        self._theirs = []

    def signal(self, which: int) -> bool:
        """INTERRUPT or KILL. False: nobody is there any more."""
        try:
            self._ours[which].write(b"!")
            return True
        except BlockingIOError:
            return True
        except (OSError, ValueError):
            return False

    def request(self, request: List[Any], fds: Sequence[int] = ()) -> bool:
        """Send a request. False: nobody is there to take it."""
        flags, payload = 0, b""
        if request[0] == "run" and request[3:] == [False, None]:
            with contextlib.suppress(UnicodeEncodeError):
                flags, payload = _cell.ONLY_CODE, request[2].encode("utf-8")
        if not flags:
            payload = CODEC.encode(request)
        files: List[int] = []
        if len(payload) > INLINE_BYTES:
            with shortage_is_engine_error("hold the request"):
                files.append(_answer.memory_file("belljar-request", [payload]))
            flags, payload = flags | _cell.IN_A_FILE, b""
        flags |= _cell.HAS_NUMPY if array_type() is not None else 0
        number = request[1] if type(request[1]) is int else 0
        data = _cell.REQUEST.pack(_cell.MAGIC, flags, len(payload), number) + payload
        try:
            return _engine.send_rights(self.link, data, _engine.rights([*files, *fds]), _engine.AT_ONCE) == len(data)
        except OSError:
            return False
        finally:
            _engine.close_all(files)

    def take_kill(self) -> Any:
        """The pipe whose end kills."""
        return self._ours.pop(KILL)

    def close(self) -> List[int]:
        """Let go, which kills the process; descriptors that lay unread, to be closed when the run is over."""
        found = drain(self.link)
        _engine.close_socket(self.link)
        self.sent()
        self.streams.close()
        for file in self._ours:
            _engine._held.discard(file)
            file.close()
        return found
