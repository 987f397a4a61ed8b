# SPDX-License-Identifier: Apache-2.0
"""A small client of the engine's protocol, for tests: raw frames, nothing hidden, nothing corrected.

It is not the product's client: it can also say what no client should.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import socket
import struct
import termios
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from harness import paths
from harness.bounds import BOUND
from harness.runner import ANY, Way

VERSION = 2
RUN, OPEN, ASK, JOIN, FILE, SIGNAL, CANCEL, RESIZE, CLOSE, GO, HELLO, CONNECT, PROCESSES, KILL, USAGE, NET, REPLY, WORKSPACE, LAYER, LOOK = range(1, 21)
STARTED, OUTPUT, CAPTURED, RESULT, OPENED, FAILED, CLOSED, DESCRIPTOR, ANSWER, EVENT = range(65, 75)
LAST = (RESULT, FAILED, CLOSED, DESCRIPTOR, ANSWER)

Payload = Union[bytes, Dict[str, Any], None]


def encode(payload: Payload) -> bytes:
    """The bytes of a payload: JSON of an object, or the bytes themselves."""
    if payload is None:
        return b""
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


def frame(kind: int, payload: Payload = None) -> bytes:
    """A whole frame."""
    data = encode(payload)
    return struct.pack("<IB3x", len(data), kind) + data


class Frame:
    """One frame from the engine."""

    def __init__(self, kind: int, payload: bytes, fds: List[int]) -> None:
        self.kind, self.payload, self.fds = kind, payload, fds

    @property
    def json(self) -> Any:
        """The payload as JSON."""
        return json.loads(self.payload)

    def __repr__(self) -> str:
        return f"Frame({self.kind}, {self.payload[:300]!r}, fds={len(self.fds)})"


class Channel:
    """One channel; frames are read one by one."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(BOUND)

    def send(self, kind: int, payload: Payload = None, fds: Sequence[int] = ()) -> "Channel":
        """A frame, the descriptors with its first byte."""
        return self.send_raw(frame(kind, payload), fds)

    def send_raw(self, data: bytes, fds: Sequence[int] = ()) -> "Channel":
        """Any bytes."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            sent = self.sock.sendmsg([data], ancillary)
            if sent < len(data):
                self.sock.sendall(data[sent:])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the engine has said its last word, which is still to be read
        return self

    def _exactly(self, count: int, fds: List[int]) -> Optional[bytes]:
        data = b""
        while len(data) < count:
            try:
                part, ancillary, _, _ = self.sock.recvmsg(count - len(data), socket.CMSG_SPACE(16 * 4))
            except ConnectionResetError:
                part, ancillary = b"", []
            for _, _, raw in ancillary:
                fds += array.array("i", raw[: len(raw) // 4 * 4])
            if not part:
                return None
            data += part
        return data

    def read(self) -> Optional[Frame]:
        """The next frame; None at the end."""
        fds: List[int] = []
        header = self._exactly(8, fds)
        if header is None:
            return None
        length, kind, zero = struct.unpack("<IB3s", header)
        assert zero == b"\0\0\0", header
        payload = self._exactly(length, fds) if length else b""
        assert payload is not None, "the channel ended within a frame"
        return Frame(kind, payload, fds)

    def unread_by_peer(self) -> int:
        """How much of what was sent the engine has not taken yet, in the kernel's measure."""
        return int(struct.unpack("i", fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(4)))[0])

    def read_all(self) -> List[Frame]:
        """Every frame until the end."""
        frames = []
        while True:
            one = self.read()
            if one is None:
                return frames
            frames.append(one)

    def close(self) -> None:
        """Close this end."""
        self.sock.close()


class Outcome:
    """What came of a run."""

    def __init__(self, frames: List[Frame]) -> None:
        self.frames = frames
        self.kinds = [one.kind for one in frames]
        self.last = frames[-1] if frames else None

    def _stream(self, kind: int, stream: int) -> bytes:
        found = [one.payload for one in self.frames if one.kind == kind]
        assert all(part[1:8] == bytes(7) and part[0] in (1, 2) and len(part) <= 8 + 65536 for part in found)
        return b"".join(part[8:] for part in found if part[0] == stream)

    @property
    def stdout(self) -> bytes:
        """What was captured of standard output."""
        return self._stream(CAPTURED, 1)

    @property
    def stderr(self) -> bytes:
        """What was captured of standard error."""
        return self._stream(CAPTURED, 2)

    def streamed(self, stream: int = 1) -> bytes:
        """What came in OUTPUT frames."""
        return self._stream(OUTPUT, stream)

    @property
    def result(self) -> Any:
        """The result object."""
        assert self.last is not None and self.last.kind == RESULT, self.frames
        return self.last.json

    @property
    def error(self) -> Any:
        """The error of a FAILED frame."""
        assert self.last is not None and self.last.kind == FAILED, self.frames
        return self.last.json["error"]


class Engine:
    """A `belljar engine`, as a client would start it."""

    def __init__(self, env: Dict[str, str], cwd: Union[str, os.PathLike], way: Way = ANY) -> None:
        self.env, self.cwd, self.way = dict(env), str(cwd), way
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        high = os.dup(theirs.fileno())
        while high <= 3:
            high = os.dup(high)
        words = [paths.tool("deny"), *way.deny, "--"] if way.deny else []
        words += [paths.belljar(), "engine"]
        self.door: Optional[socket.socket] = ours
        self.pid = os.posix_spawn(words[0], words, self.env, file_actions=[(os.POSIX_SPAWN_DUP2, high, 3)])
        os.close(high)
        theirs.close()
        self.status: Optional[int] = None

    def channel(self) -> Channel:
        """A new channel."""
        ours, theirs = socket.socketpair()
        self.send_door(b"c", [theirs.fileno()])
        theirs.close()
        return Channel(ours)

    def send_door(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Any message on the door socket."""
        assert self.door is not None
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.door.sendmsg([data], ancillary)

    def request(self, argv: Any = None, keys: Optional[Dict[str, Any]] = None, **run: Any) -> Dict[str, Any]:
        """The payload of RUN; `top` adds or replaces members beside `run`."""
        top = run.pop("top", {})
        rung = {"rung": self.way.rung} if self.way.rung else {}
        payload: Dict[str, Any] = {
            "version": VERSION,
            "policy": None,
            "base": self.cwd,
            "keys": {**rung, **(keys or {})},
            "cwd": self.cwd,
            "environ": [f"{name}={value}" for name, value in self.env.items()],
        }
        if argv is not None:
            payload["run"] = {"argv": argv, **run}
        return {**payload, **top}

    def start(self, argv: Any, keys: Optional[Dict[str, Any]] = None, fds: Sequence[int] = (), **run: Any) -> Channel:
        """Begin a run in a jar of its own."""
        return self.channel().send(RUN, self.request(argv, keys, **run), fds)

    def run(self, argv: Any, keys: Optional[Dict[str, Any]] = None, fds: Sequence[int] = (), **run: Any) -> Outcome:
        """A run in a jar of its own, to its end."""
        channel = self.start(argv, keys, fds, **run)
        try:
            return Outcome(channel.read_all())
        finally:
            channel.close()

    def descriptors(self) -> int:
        """How many descriptors the engine has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def wait(self, seconds: float = BOUND) -> int:
        """Wait until the engine has left: its wait status."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
            elif time.monotonic() > deadline:
                raise AssertionError("the engine does not leave")
            else:
                time.sleep(0.002)
        return self.status

    def close(self) -> int:
        """Close the door socket, as a client does that leaves."""
        if self.door is not None:
            self.door.close()
            self.door = None
        try:
            return self.wait()
        except AssertionError:
            os.kill(self.pid, signal.SIGKILL)
            raise


def finish(channel: Channel) -> Outcome:
    """Every frame until the end, then close."""
    try:
        return Outcome(channel.read_all())
    finally:
        channel.close()


def number(value: int) -> bytes:
    """The payload of SIGNAL and CANCEL."""
    return struct.pack("<I", value)


def size(rows: int, columns: int) -> bytes:
    """The payload of RESIZE."""
    return struct.pack("<HH", rows, columns)


def pair() -> Tuple[int, int]:
    """A pipe: reader, writer."""
    return os.pipe()
