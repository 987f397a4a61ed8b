# SPDX-License-Identifier: Apache-2.0
"""Limits that were got around: what lost children write, processes beside a kept jar's own, memory in sockets."""

from __future__ import annotations

import time
from typing import Any

from adversarial_support import PYTHON, AttackCase
from harness import wire
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.runner import LANDLOCK, NAMESPACE

# Short-lived children that nobody waits for; together they write ten times the limit.
LOST = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
data = bytes(1 << 17)
for i in range(1600):
    if not os.fork():
        os.write(os.open("lost%d" % i, os.O_CREAT | os.O_WRONLY, 0o644), data)
        os._exit(0)
    try:
        os.wait()
    except OSError:
        pass
"""

# The same, from a parent that has more page faults of its own between two children than any of them has.
HIDDEN = LOST.replace("data =", "import mmap\nroom, ones = mmap.mmap(-1, 4 << 20), bytes(1024)\ndata =").replace(
    "    if not os.fork", "    room[::4096] = ones\n    room.madvise(mmap.MADV_DONTNEED)\n    if not os.fork"
)

# How many bytes wait in 60 pairs of sockets that ask for large buffers.
PAIRS = """
import socket
pairs = [socket.socketpair() for _ in range(60)]
piece, total = bytes(1 << 16), 0
for pair in pairs:
    for one in pair:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            one.setsockopt(socket.SOL_SOCKET, option, 64 << 20)
        one.setblocking(False)
        try:
            while True:
                total += one.send(piece)
        except BlockingIOError:
            pass
print(total)
"""

# As many children as there can be, and how many processes that makes.
COUNT = """
import os, time
children = []
while len(children) < 300:
    try:
        child = os.fork()
    except OSError:
        break
    if not child:
        time.sleep(300)
    children.append(child)
print(len(children) + 1, flush=True)
for child in children:
    os.kill(child, 9)
for child in children:
    os.waitpid(child, 0)
"""


@on_ways(NAMESPACE, LANDLOCK)
class Disk(AttackCase):
    def test_what_lost_children_write_counts(self) -> None:
        result = self.json("--disk", "20M", "--", PYTHON, "-c", LOST, self.marker)
        self.assertIn("disk", [hit["name"] for hit in result["limits_hit"]], result)

    def test_page_faults_of_the_parent_hide_no_child(self) -> None:
        result = self.json("--disk", "20M", "--", PYTHON, "-c", HIDDEN, self.marker)
        self.assertEqual(result["outcome"], "disk", result)


@on_ways(NAMESPACE, LANDLOCK)
class Sockets(AttackCase):
    def test_what_sixty_pairs_hold_is_bounded(self) -> None:
        """By the kernel's usual size, whatever a program asks for; or a cgroup counts it."""
        result = self.json("--memory", "64M", "--", PYTHON, "-c", PAIRS, self.marker)
        if result["outcome"] != "memory":
            self.assertLess(int(result["stdout"]), 64 << 20, result)


class Processes(KeptJarCase, AttackCase):
    way = NAMESPACE

    def count(self, jar: Any) -> int:
        return int(self.run_in(jar, [PYTHON, "-c", COUNT, self.marker]).stdout)

    def test_a_kept_jar_has_no_room_for_more_than_its_limit(self) -> None:
        jar = self.open({"pids": 20, "timeout": "60s"})
        for _ in range(3):
            counted = self.count(jar)
            # Spare minders that are not there yet leave room for as many; `missing` says so where it is so.
            self.assertIn(counted, range(15, 25))
            result = self.run_in(jar, self.script("true")).result
            missing = [entry["why"] for entry in result["missing"] if entry["name"] == "pids"]
            if counted > 20:
                self.assertIn("more than the limit", missing[0])

    def test_runs_of_a_jar_share_its_limit(self) -> None:
        """Three at a time, each as many as it can; none ends its own before all have counted."""
        jar = self.open({"pids": 20, "timeout": "60s"})
        wait = "open('count%s' % sys.argv[1], 'w').write(str(len(children) + 1))\n"
        wait += "while not os.path.exists('go'):\n    time.sleep(0.01)\n"
        code = COUNT.replace("import os,", "import sys, os,").replace("print(", wait + "print(")
        runs = [self.join(jar, [PYTHON, "-c", code, str(i), self.marker]) for i in range(3)]
        files = [self.work / f"count{i}" for i in range(3)]
        while not all(file.exists() and file.read_text() for file in files):
            time.sleep(0.01)
        (self.work / "go").touch()
        counts = [int(wire.finish(run).stdout) for run in runs]
        self.assertLessEqual(sum(counts), 20 + 8 + len(runs), counts)


if __name__ == "__main__":
    import unittest

    unittest.main()
