# SPDX-License-Identifier: Apache-2.0
"""The engine's frames: docs/protocol.md as code. Knows bytes only; sockets are elsewhere."""

from __future__ import annotations

import json
import struct
from typing import Any, List, Sequence, Tuple

from ._errors import EngineError

VERSION = 2

# Frames to the engine.
RUN, OPEN, ASK, JOIN, FILE, SIGNAL, CANCEL, RESIZE, CLOSE, GO, HELLO, CONNECT, PROCESSES, KILL, USAGE, NET, REPLY, WORKSPACE, LAYER, LOOK = range(1, 21)
# Frames from it.
STARTED, OUTPUT, CAPTURED, RESULT, OPENED, FAILED, CLOSED, DESCRIPTOR, ANSWER, EVENT = range(65, 75)

HEADER = struct.Struct("<IB3x")
HEADER_BYTES = HEADER.size
SEND_MAX_BYTES = 5 << 20
JSON_MAX_BYTES = 16 << 20
# An OUTPUT or CAPTURED frame: one byte for the stream, seven zeroes, then at most so many bytes.
PIECE_HEADER_BYTES = 8
PIECE_MAX_BYTES = 64 << 10
STREAMS = {1: "stdout", 2: "stderr"}

Frame = Tuple[int, bytes]

_decode = json.JSONDecoder().decode


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A frame as it travels."""
    return HEADER.pack(len(payload), kind) + payload


def max_payload(kind: int) -> int:
    """How long a frame from the engine may be."""
    if kind in (OUTPUT, CAPTURED):
        return PIECE_HEADER_BYTES + PIECE_MAX_BYTES
    if STARTED <= kind <= EVENT:
        return JSON_MAX_BYTES
    raise EngineError(f"the engine sent a frame of the unknown type {kind}")


def parse(payload: bytes) -> Any:
    """The JSON of a frame from the engine: always an object."""
    try:
        value = _decode(payload.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise EngineError(f"the engine sent a frame that is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise EngineError("the engine sent a frame that is not a JSON object")
    return value


def piece(payload: bytes) -> Tuple[str, bytes]:
    """Stream and bytes of an OUTPUT or CAPTURED frame."""
    stream = STREAMS.get(payload[0]) if len(payload) > PIECE_HEADER_BYTES else None
    if stream is None:
        raise EngineError("the engine sent a piece of output that belongs to no stream")
    return stream, payload[PIECE_HEADER_BYTES:]


class Inbox:
    """Puts frames together from the bytes of a channel, however these are cut."""

    __slots__ = ("_parts", "_have", "_need")

    def __init__(self) -> None:
        self._parts: List[bytes] = []
        self._have = 0
        self._need = HEADER_BYTES

    def feed(self, data: bytes) -> Sequence[Frame]:
        """The frames that are complete with these bytes."""
        self._have += len(data)
        if self._have < self._need:
            self._parts.append(data)
            return ()
        if self._parts:
            data = b"".join([*self._parts, data])
            self._parts = []
        frames = []
        start = 0
        while True:
            self._need = HEADER_BYTES
            if self._have - start < HEADER_BYTES:
                break
            length, kind = HEADER.unpack_from(data, start)
            if length > max_payload(kind):
                raise EngineError(f"the engine sent a frame of type {kind} with {length} bytes")
            self._need = HEADER_BYTES + length
            if self._have - start < self._need:
                break
            frames.append((kind, data[start + HEADER_BYTES : start + self._need]))
            start += self._need
        self._have -= start
        if self._have:
            self._parts.append(data[start:])
        return frames
