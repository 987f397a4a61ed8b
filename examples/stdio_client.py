# SPDX-License-Identifier: Apache-2.0
"""A whole client of `belljar engine --stdio`, written from docs/protocol.md alone; Python's standard library is all it needs.

    python3 examples/stdio_client.py COMMAND [ARGUMENT...]
"""

from __future__ import annotations

import collections
import io
import json
import os
import struct
import subprocess
import sys
import threading
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Union

VERSION = 2
RUN, OPEN, ASK, JOIN, FILE, SIGNAL, CANCEL, RESIZE, CLOSE, GO, HELLO, CONNECT, PROCESSES, KILL, USAGE, NET, REPLY = range(1, 18)
STARTED, OUTPUT, CAPTURED, RESULT, OPENED, FAILED, CLOSED, DESCRIPTOR, ANSWER = range(65, 74)
DATA, DATA_END, DATA_STOP, CREDIT, END = range(128, 133)
COUNTED = (OUTPUT, CAPTURED, DATA)
PIECE_BYTES = 65536

Payload = Union[bytes, Dict[str, Any]]


class EngineGone(Exception):
    """The engine has ended, or has ended the connection; the message says why if it said so."""


class Frame(NamedTuple):
    """One frame."""

    kind: int
    payload: bytes

    @property
    def json(self) -> Any:
        """The payload as JSON."""
        return json.loads(self.payload)


class Channel:
    """One run, jar, file or question. Any thread may use it."""

    def __init__(self, engine: "Engine", number: int) -> None:
        self.engine, self.number = engine, number
        self.frames: Deque[Frame] = collections.deque()
        self.credit = engine.window  # what we may still send
        self.owed = 0  # what we have read and not given back
        self.has_ended = False  # the engine has sent END
        self.is_closed = False  # we have
        self.is_stopped = False  # nobody reads what we send

    def send(self, kind: int, payload: Payload = b"") -> "Channel":
        """A frame that needs no credit. One that comes too late is not sent."""
        with self.engine.lock:
            if not self.is_closed:
                self.engine.write(self.number, kind, payload)
        return self

    def ask(self, kind: int, payload: Dict[str, Any]) -> "Channel":
        """A request to a jar (JOIN, FILE, ...): the new channel on which its answer comes."""
        with self.engine.lock:
            channel = self.engine.new_channel()
            self.engine.write(self.number, kind, struct.pack("<I", channel.number) + encode(payload))
        return channel

    def write(self, data: bytes) -> bool:
        """Send DATA, waiting for credit. False: nobody reads it any more."""
        view = memoryview(data)
        while len(view):
            with self.engine.changed:
                self.engine.wait_for(lambda: self.credit or self.has_ended or self.is_stopped)
                if self.has_ended or self.is_stopped or self.is_closed:
                    return False
                part = view[: min(self.credit, PIECE_BYTES)]
                self.credit -= len(part)
                self.engine.write(self.number, DATA, bytes(part))
            view = view[len(part) :]
        return True

    def end_data(self) -> "Channel":
        """Nothing more follows."""
        return self.send(DATA_END)

    def read(self, timeout: Optional[float] = None) -> Optional[Frame]:
        """The next frame; None at the end of the channel. What was read is given back as credit."""
        with self.engine.changed:
            self.engine.wait_for(lambda: self.frames or self.has_ended, timeout)
            if not self.frames:
                self._close()
                return None
            frame = self.frames.popleft()
            if frame.kind in COUNTED and not self.has_ended and not self.is_closed:
                self.owed += len(frame.payload)
                if self.owed >= self.engine.window // 4:
                    self.engine.write(self.number, CREDIT, struct.pack("<I", self.owed))
                    self.owed = 0
            return frame

    def read_all(self, timeout: Optional[float] = None) -> List[Frame]:
        """Every frame until the end."""
        return list(iter(lambda: self.read(timeout), None))

    def _close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.engine.write(self.number, END)
            if self.has_ended:
                self.engine.forget(self)

    def close(self) -> None:
        """Hang up: what runs on this channel is killed at once."""
        with self.engine.lock:
            self.frames.clear()
            try:
                self._close()
            except OSError:
                pass  # the engine is gone, and everything with it


class Engine:
    """A `belljar engine --stdio` and its channels. One thread reads; whoever waits is woken."""

    def __init__(self, program: str = "belljar", env: Optional[Dict[str, str]] = None, cwd: Optional[str] = None) -> None:
        self.process = subprocess.Popen([program, "engine", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env, cwd=cwd)
        assert self.process.stdout is not None
        self.stream = io.BufferedReader(self.process.stdout, 4 * PIECE_BYTES)
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.channels: Dict[int, Channel] = {}
        self.next_number = 1
        self.window = 0
        self.hello: Optional[Dict[str, Any]] = None
        self.end: Optional[str] = None
        self.thread = threading.Thread(target=self._read_frames, daemon=True)
        self.write(0, HELLO, {"version": VERSION})
        self.thread.start()
        with self.changed:
            self.wait_for(lambda: self.hello is not None)

    def write(self, number: int, kind: int, payload: Payload = b"") -> None:
        """One frame; the caller holds the lock, so that frames do not mix."""
        data = encode(payload)
        rest = memoryview(struct.pack("<IB", len(data), kind) + number.to_bytes(3, "little") + data)
        assert self.process.stdin is not None
        while len(rest):
            rest = rest[self.process.stdin.write(rest) :]

    def wait_for(self, condition: Any, timeout: Optional[float] = None) -> None:
        """Wait until it holds; the caller holds the lock."""
        if not self.changed.wait_for(lambda: condition() or self.end is not None, timeout):
            raise TimeoutError("the engine said nothing in time")
        if not condition():
            raise EngineGone(self.end)

    def new_channel(self) -> Channel:
        """A number that is not in use; the caller holds the lock."""
        while self.next_number in self.channels:
            self.next_number = self.next_number % 0xFFFFFF + 1
        channel = self.channels[self.next_number] = Channel(self, self.next_number)
        self.next_number = self.next_number % 0xFFFFFF + 1
        return channel

    def forget(self, channel: Channel) -> None:
        """Both sides have sent END: the number is free."""
        del self.channels[channel.number]

    def open(self, kind: int, payload: Dict[str, Any]) -> Channel:
        """A new channel that begins with this frame."""
        with self.lock:
            channel = self.new_channel()
            self.write(channel.number, kind, payload)
        return channel

    def run(self, argv: List[str], keys: Optional[Dict[str, Any]] = None, **run: Any) -> Channel:
        """A run in a jar of its own; read STARTED, OUTPUT ..., RESULT from the channel."""
        return self.open(RUN, {**request(keys), "run": {"argv": argv, **run}})

    def close(self) -> int:
        """Leave: the engine kills every jar and ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = self.process.wait()
        self.thread.join()
        self.stream.close()
        return status

    # --- the thread that reads ---

    def _exactly(self, count: int) -> bytes:
        data = self.stream.read(count)
        if len(data) < count:
            raise EngineGone("the engine has ended")
        return data

    def _read_frames(self) -> None:
        why = "the engine has ended"
        try:
            while True:
                header = self._exactly(8)
                length, kind = struct.unpack("<IB", header[:5])
                payload = self._exactly(length)
                with self.changed:
                    self._take(int.from_bytes(header[5:], "little"), Frame(kind, payload))
                    self.changed.notify_all()
        except (EngineGone, OSError, ValueError) as error:
            why = str(error)
        with self.changed:
            self.end = why
            self.changed.notify_all()

    def _take(self, number: int, frame: Frame) -> None:
        if number == 0 and frame.kind == FAILED:
            raise EngineGone(frame.json["error"]["message"])
        if number == 0:
            self.hello = frame.json
            self.window = self.hello["window"]
            return
        channel = self.channels[number]
        if frame.kind == END:
            channel.has_ended = True
            if channel.is_closed:
                self.forget(channel)
        elif frame.kind == CREDIT:
            channel.credit += struct.unpack("<I", frame.payload)[0]
        elif frame.kind == DATA_STOP:
            channel.is_stopped = True
        elif not channel.is_closed:
            channel.frames.append(frame)


def encode(payload: Payload) -> bytes:
    """The bytes of a payload."""
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


def request(keys: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """What RUN and OPEN begin with: who asks, and what is allowed beyond the default policy."""
    return {"version": VERSION, "keys": keys or {}, "cwd": os.getcwd(), "environ": [f"{name}={value}" for name, value in os.environ.items()]}


def main(argv: List[str]) -> int:
    """Run a command, with our own standard input, and write what it writes."""
    engine = Engine(os.environ.get("BELLJAR", "belljar"))
    channel = engine.run(argv, sink="frames", capture=False, stdin="descriptor")

    def feed() -> None:
        while True:
            data = os.read(0, PIECE_BYTES)
            if not data or not channel.write(data):
                break
        channel.end_data()

    threading.Thread(target=feed, daemon=True).start()
    status = 125
    for frame in iter(channel.read, None):
        if frame.kind == OUTPUT:
            os.write(frame.payload[0], frame.payload[8:])
        elif frame.kind == RESULT and frame.json["exit_code"] is not None:
            status = frame.json["exit_code"]
        elif frame.kind in (RESULT, FAILED):
            print(frame.json["error"] or frame.json["outcome"], file=sys.stderr)
    engine.close()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
