# SPDX-License-Identifier: Apache-2.0
"""An engine that misbehaves on purpose, for tests of what the package does then: started as BELLJAR_BIN.

What it does is the first word of the command that it is to run. It takes channels from the door socket at descriptor 3, as the
real one does.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

RESULT = {
    "version": 1,
    "outcome": "exited",
    "exit_code": 0,
    "signal": None,
    "timed_out": False,
    "killed": False,
    "stdout": None,
    "stderr": None,
    "encoding": "utf-8",
    "stdout_bytes": 4,
    "stderr_bytes": 0,
    "truncated": False,
    "limits_hit": [],
    "usage": {},
    "enforced": {},
    "missing": [],
    "risky": [],
    "error": None,
    "a_key_of_a_later_version": True,
}


def frame(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<IB3x", len(payload), kind) + payload


def piece(kind: int, stream: int, data: bytes) -> bytes:
    return frame(kind, bytes([stream]) + bytes(7) + data)


GOOD = frame(65, b"{}") + piece(67, 1, b"o") + piece(67, 1, b"ut\n") + frame(68, json.dumps(RESULT).encode())

# Output and the result come at once.
LOUD = piece(66, 1, b"o") + GOOD

ANSWERS = {
    "good": GOOD,
    "loud": LOUD,
    "unknown_type": frame(65, b"{}") + frame(99),
    "too_long": struct.pack("<IB3x", (16 << 20) + 1, 68),
    "too_long_output": struct.pack("<IB3x", (64 << 10) + 9, 66),
    "not_json": frame(68, b"{"),
    "not_utf8": frame(68, b'{"a":"\xff"}'),
    "not_an_object": frame(68, b"[]"),
    "no_keys": frame(68, b"{}"),
    "bad_stream": piece(66, 3, b"x"),
    "empty_piece": frame(66, b""),
    "out_of_place": frame(71),
    "nothing": b"",
    "half": GOOD[:-5],
    "deep": frame(68, b'{"a":' + b"[" * 200_000),
}


def receive(channel: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = channel.recv(count - len(data))
        if not part:
            break
        data += part
    return data


def answer(channel: socket.socket, door: socket.socket) -> None:
    """One request."""
    header = receive(channel, 8)
    if not header:
        return
    length, _ = struct.unpack("<IB3x", header)
    request = receive(channel, length)
    run = json.loads(request)["run"]
    word = run["argv"][0]
    record = os.environ.get("BELLJAR_FAKE_RECORD")
    if record:
        with open(record, "wb") as file:
            file.write(request)
    if word == "bytewise":
        for i in range(len(GOOD)):
            channel.sendall(GOOD[i : i + 1])
    elif word == "die":
        os.kill(os.getpid(), 9)
    elif word == "exit":
        os._exit(7)
    elif word == "hang":
        door.recv(1)  # until the client is gone
    else:
        channel.sendall(ANSWERS.get(word, GOOD))


def main() -> None:
    door = socket.socket(fileno=3)
    while True:
        word, fds, _, _ = socket.recv_fds(door, 2, 1)
        if not word:
            return
        with socket.socket(fileno=fds[0]) as channel:
            answer(channel, door)


if __name__ == "__main__":
    main()
