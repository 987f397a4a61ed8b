# SPDX-License-Identifier: Apache-2.0
"""The base of tests of published ports: a server in a jar, and clients on the host's loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase
from harness.runner import NAMESPACE

# What servers in the jar begin with.
SERVER = r"""
import json, os, socket, sys, threading, time
def say(what):
    os.write(1, b'%s\n' % str(what).encode())
def each(serve, port=8000, host='127.0.0.1', family=socket.AF_INET, backlog=128):
    "Serve each connection in a thread, for ever."
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, port))
    s.listen(backlog)
    say('up')
    while True:
        c, _ = s.accept()
        threading.Thread(target=serve, args=(c,), daemon=True).start()
def echo(c):
    with c:
        while True:
            data = c.recv(65536)
            if not data:
                break
            c.sendall(data)
"""


class PublishCase(JarCase):
    """A test with a jar whose ports are published."""

    way = NAMESPACE

    def serve(self, code: str, *options: str, publish: str = "8000", wait: bool = True, **more: Any) -> "Tuple[subprocess.Popen[bytes], int]":
        """A program in a jar, and the port of the host; wait until the program says something."""
        process = self.start(
            "--events", "-C", "none", "--publish", publish, *options, "--", "python3", "-u", "-c", SERVER + code, self.marker, **more
        )
        started = self.event(process)
        self.assertEqual(started["event"], "start", started)
        self.started = started
        if wait:
            self.assertEqual(self.event(process)["event"], "output")
        return process, started["published"][0]["host_port"]

    def event(self, process: "subprocess.Popen[bytes]") -> Dict[str, Any]:
        assert process.stdout is not None
        return json.loads(process.stdout.readline())  # type: ignore[no-any-return]

    def result(self, process: "subprocess.Popen[bytes]", number: int = signal.SIGTERM) -> Dict[str, Any]:
        """End the run, and its result."""
        process.send_signal(number)
        assert process.stdout is not None
        last: Dict[str, Any] = {}
        for line in process.stdout:
            last = json.loads(line)
        process.wait(BOUND)
        return last["result"]  # type: ignore[no-any-return]

    def connect(self, port: int) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", port), BOUND)
        self.addCleanup(made.close)
        return made

    def talk(self, port: int, data: bytes = b"hi", count: Optional[int] = None) -> object:
        """What came back, or the name of the error."""
        try:
            with socket.create_connection(("127.0.0.1", port), BOUND) as made:
                made.sendall(data)
                got = b""
                while len(got) < (len(data) if count is None else count):
                    piece = made.recv(65536)
                    if not piece:
                        break
                    got += piece
                return got
        except OSError as error:
            return type(error).__name__

    def gates(self, process: "subprocess.Popen[bytes]") -> List[int]:
        """The gates of an engine."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:2] == [b"gate-process"] and census.parent(int(path.name)) == process.pid:
                found.append(int(path.name))
        return found

    def fd_count(self, pid: int) -> int:
        return len(os.listdir(f"/proc/{pid}/fd"))
