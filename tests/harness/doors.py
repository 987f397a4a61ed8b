# SPDX-License-Identifier: Apache-2.0
"""Both doors of the engine behind one small interface: descriptors over sockets, and one stream of bytes.

Over sockets it is harness/wire.py, over a stream it is examples/stdio_client.py, which knows nothing but docs/protocol.md.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import stat
import threading
from types import ModuleType
from typing import Any, Dict, List, Optional, Tuple

from harness import paths, wire
from harness.bounds import BOUND


def _load_client() -> ModuleType:
    path = paths.TESTS.parent / "examples" / "stdio_client.py"
    spec = importlib.util.spec_from_file_location("stdio_client", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stdio_client = _load_client()
Frames = List[Tuple[int, bytes]]


class Line:
    """A channel, whatever carries it."""

    def send(self, kind: int, payload: wire.Payload = None) -> "Line":
        """A frame."""
        raise NotImplementedError

    def ask(self, kind: int, payload: Any) -> "Line":
        """A request on a jar's channel: the channel of its answer."""
        raise NotImplementedError

    def read(self) -> Optional[Tuple[int, bytes]]:
        """The next frame that both doors have; None at the end."""
        raise NotImplementedError

    def write(self, data: bytes) -> bool:
        """To standard input, a file or a socket; False: nobody reads it."""
        raise NotImplementedError

    def end_data(self) -> None:
        """No more of it."""
        raise NotImplementedError

    def read_data(self) -> bytes:
        """All that a file or a socket has."""
        raise NotImplementedError

    def read_piece(self) -> bytes:
        """Some of it."""
        raise NotImplementedError

    def write_file(self, data: bytes) -> bool:
        """All that a file shall have: has it been written?"""
        raise NotImplementedError

    def names(self) -> List[str]:
        """The entries of a directory."""
        raise NotImplementedError

    def close(self) -> None:
        """Hang up."""
        raise NotImplementedError

    def read_all(self) -> Frames:
        """Every frame until the end."""
        return list(iter(self.read, None))


class Door:
    """An engine and a way to it."""

    pid: int

    def begin(self, kind: int, payload: Any) -> Line:
        """A channel that begins with this frame."""
        raise NotImplementedError

    def leave(self) -> int:
        """As a client that leaves: the engine's status."""
        raise NotImplementedError


# --- over sockets ---


class SocketLine(Line):
    """A socket; what is open beside it is a descriptor of ours."""

    def __init__(self, channel: wire.Channel, input_fd: int = -1) -> None:
        self.channel, self.fd = channel, input_fd

    def send(self, kind: int, payload: wire.Payload = None) -> "SocketLine":
        self.channel.send(kind, payload)
        return self

    def ask(self, kind: int, payload: Any) -> "SocketLine":
        ours, theirs = socket.socketpair()
        line, fds = SocketLine(wire.Channel(ours)), [theirs.fileno()]
        reader = line.open_input(payload)
        self.channel.send(kind, payload, fds + reader)
        theirs.close()
        for fd in reader:
            os.close(fd)
        return line

    def open_input(self, request: Any) -> List[int]:
        """The end for the engine, if the request asks for one."""
        run = request.get("run", request) if isinstance(request, dict) else {}
        if run.get("stdin") != "descriptor":
            return []
        reader, self.fd = os.pipe()
        return [reader]

    def read(self) -> Optional[Tuple[int, bytes]]:
        frame = self.channel.read()
        if frame is None:
            self.channel.close()
            return None
        if frame.fds:
            (self.fd,) = frame.fds
        return frame.kind, frame.payload

    def write(self, data: bytes) -> bool:
        view = memoryview(data)
        try:
            while len(view):
                view = view[os.write(self.fd, view) :]
        except BrokenPipeError:
            return False
        return True

    def end_data(self) -> None:
        if stat.S_ISSOCK(os.fstat(self.fd).st_mode):
            with socket.socket(fileno=os.dup(self.fd)) as connected:
                connected.shutdown(socket.SHUT_WR)
        else:
            self.close_data()

    def close_data(self) -> None:
        """Close what is open beside the channel."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def read_data(self) -> bytes:
        return b"".join(iter(lambda: os.read(self.fd, 65536), b""))

    def read_piece(self) -> bytes:
        return os.read(self.fd, 65536)

    def write_file(self, data: bytes) -> bool:
        try:
            return self.write(data)
        except OSError:
            return False
        finally:
            self.close_data()

    def names(self) -> List[str]:
        return sorted(os.listdir(self.fd))

    def close(self) -> None:
        self.close_data()
        self.channel.close()


class SocketDoor(Door):
    """The door socket."""

    def __init__(self, env: Dict[str, str], cwd: str) -> None:
        self.engine = wire.Engine(env, cwd)
        self.pid = self.engine.pid

    def begin(self, kind: int, payload: Any) -> SocketLine:
        line = SocketLine(self.engine.channel())
        reader = line.open_input(payload)
        line.channel.send(kind, payload, reader)
        for fd in reader:
            os.close(fd)
        return line

    def leave(self) -> int:
        return self.engine.close()


# --- over one stream ---


class StreamLine(Line):
    """A channel of the stream."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel

    def send(self, kind: int, payload: wire.Payload = None) -> "StreamLine":
        self.channel.send(kind, wire.encode(payload))
        return self

    def ask(self, kind: int, payload: Any) -> "StreamLine":
        return StreamLine(self.channel.ask(kind, payload))

    def read(self) -> Optional[Tuple[int, bytes]]:
        frame = self.channel.read(BOUND)
        return None if frame is None else tuple(frame)

    def write(self, data: bytes) -> bool:
        return bool(self.channel.write(data))

    def end_data(self) -> None:
        self.channel.end_data()

    def read_data(self) -> bytes:
        data = []
        while True:
            kind, payload = self.channel.read(BOUND)
            if kind != stdio_client.DATA:
                assert kind == stdio_client.DATA_END, (kind, payload)
                return b"".join(data)
            data.append(payload)

    def read_piece(self) -> bytes:
        kind, payload = self.channel.read(BOUND)
        assert kind == stdio_client.DATA, (kind, payload)
        return bytes(payload)

    def write_file(self, data: bytes) -> bool:
        if self.write(data):
            self.end_data()
        kind, payload = self.channel.read(BOUND)
        assert kind in (stdio_client.DATA_END, wire.FAILED), (kind, payload)
        return bool(kind == stdio_client.DATA_END)

    def names(self) -> List[str]:
        return sorted(entry[1:].decode() for entry in self.read_data().split(b"\0") if entry)

    def close(self) -> None:
        self.channel.close()


class StreamDoor(Door):
    """Standard input and output."""

    def __init__(self, env: Dict[str, str], cwd: str) -> None:
        self.engine = stdio_client.Engine(paths.belljar(), env, cwd)
        self.pid = self.engine.process.pid

    def begin(self, kind: int, payload: Any) -> StreamLine:
        return StreamLine(self.engine.open(kind, payload))

    def leave(self) -> int:
        return int(self.engine.close())


def feed(line: Line, data: bytes) -> threading.Thread:
    """Write from a thread, then end it."""

    def write() -> None:
        if line.write(data):
            line.end_data()

    thread = threading.Thread(target=write)
    thread.start()
    return thread
