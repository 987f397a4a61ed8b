# SPDX-License-Identifier: Apache-2.0
"""What a jar makes the gate hold: connections that it opens and never reads from.

Layer: the gate, which gives all connections but a few buffers of a fixed size.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import termios
import time
import unittest
from pathlib import Path
from typing import List

from harness.bounds import BOUND
from harness.gate_case import CLIENT, GateCase
from harness.internet import SOURCE_PORT

CONNECTIONS = 64
# So many connections may have windows of the kernel's choice; others have 512 KiB each way.
LARGE = 4
MOST_OF_OTHERS = 1 << 20
# The gate's own memory.
MOST = 64 << 20
SIOCINQ, SIOCOUTQ = termios.FIONREAD, termios.TIOCOUTQ
PIDFD_GETFD = 438

UNREAD = CLIENT + f"""
held = []
for _ in range({CONNECTIONS}):
    s = socket.create_connection(("good.test", {SOURCE_PORT}), timeout=40)
    s.sendall(b"100000000\\n")
    held.append(s)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.05)
"""


def children(pid: int) -> List[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def waiting(pid: int) -> List[int]:
    """Bytes that wait in each of the connections of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    found = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            fd = libc.syscall(PIDFD_GETFD, pidfd, int(name), 0)
            if fd < 0:
                continue
            try:
                with socket.socket(fileno=os.dup(fd)) as s:
                    if s.family not in (socket.AF_INET, socket.AF_INET6) or s.type != socket.SOCK_STREAM:
                        continue
                    s.getpeername()
                    found.append(sum(struct.unpack("i", fcntl.ioctl(s, request, b"\0" * 4))[0] for request in (SIOCINQ, SIOCOUTQ)))
            except OSError:
                pass  # no socket, or a listener
            finally:
                os.close(fd)
    finally:
        os.close(pidfd)
    return found


class Unread(GateCase):
    def memory(self, pids: List[int]) -> int:
        """Bytes that helpers of the engine hold, the gate among them; as root also what waits in its sockets, which others cannot see."""
        own = 0
        for pid in pids:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            own += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))
        self.assertLess(own, MOST)
        if os.geteuid() != 0:
            return own
        found = [size for pid in pids for size in waiting(pid)]
        self.assertGreaterEqual(len(found), 2 * CONNECTIONS)
        large = [size for size in found if size > MOST_OF_OTHERS]
        self.assertLessEqual(len(large), LARGE, large)
        return own + sum(found)

    def test_connections_that_are_not_read_hold_little(self) -> None:
        process = self.start(
            "-C", self.work, *self.rules(f"good.test:{SOURCE_PORT}"), "--", "python3", "-c", UNREAD, self.marker, preexec_fn=self.internet.enter
        )
        self.addCleanup(process.kill)
        self.wait_for((self.work / "ready").exists, "all connections")
        helpers = [pid for pid in children(process.pid) if not children(pid)]
        self.assertTrue(helpers)
        before, deadline = -1, time.monotonic() + BOUND
        while True:
            held = self.memory(helpers)
            if held == before or time.monotonic() > deadline:
                break
            before = held
            time.sleep(0.5)
        (self.work / "go").touch()
        self.assertEqual(process.wait(BOUND), 0)


if __name__ == "__main__":
    unittest.main()
