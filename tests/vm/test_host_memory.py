# SPDX-License-Identifier: Apache-2.0
"""The host itself runs out of memory: what the kernel then kills was not ended by the run's own limit, and nobody says so."""

from __future__ import annotations

import os
import signal
import subprocess
import unittest
from pathlib import Path
from typing import List

from harness import census
from harness.case import JarCase
from harness.result import Result
from harness.runner import Way, send

RUN_ALONE = True
MIB = 1 << 20
EXPECTED = dict(word.split("=") for word in os.environ["BELLJAR_VM_EXPECTED"].split(","))
NO_CGROUP = Way("meter", ("cgroup",))


def total_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def host_kills() -> int:
    """How often the kernel has killed for want of memory."""
    words = Path("/proc/vmstat").read_text().split()
    return int(words[words.index("oom_kill") + 1])


def remarks(result: Result) -> str:
    """What is said about memory."""
    return "\n".join(item["why"] for item in result["missing"] if item["name"] == "memory")


def is_in_a_namespace(pid: int) -> bool:
    """Has it a number of its own in a pid namespace below this one?"""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("NSpid:"))
    return len(line.split()) > 2


class HostMemory(JarCase):
    def exhaust(self, *options: str, way: Way = Way("any")) -> Result:
        before = host_kills()
        hog = self.tool("limit_memory")
        result = self.json(*options, "--", hog, "say:begun", f"touch:{2 * total_bytes()}", "say:done", way=way, timeout=200)
        self.assertGreater(host_kills(), before, "the kernel killed nobody: this test shows nothing")
        self.assertEqual((result["outcome"], result["signal"], result["killed"]), ("signaled", "SIGKILL", False), result)
        self.assertEqual((result["limits_hit"], result["stdout"]), ([], "begun\n"), result)
        return result

    def test_with_the_best_back_end(self) -> None:
        result = self.exhaust("--memory", str(4 * total_bytes()))
        self.assertEqual(result["enforced"]["memory"], EXPECTED["memory"])
        if EXPECTED["memory"] == "cgroup2":
            self.assertIn("own limit was not reached", remarks(result))
        else:
            self.assertIn("Belljar cannot know whether", remarks(result))

    def test_with_the_meter_the_doubt_is_stated(self) -> None:
        result = self.exhaust("--memory", str(4 * total_bytes()), way=NO_CGROUP)
        self.assertEqual(result["enforced"]["memory"], "meter")
        self.assertIn("Belljar cannot know whether", remarks(result))

    def test_without_a_limit_nothing_is_claimed(self) -> None:
        self.assertEqual(remarks(self.exhaust()), "")

    def test_a_signal_of_its_own_is_not_in_doubt(self) -> None:
        result = self.json("--memory", "64M", "--", "/bin/sh", "-c", "kill -KILL $$")
        self.assertEqual((result["outcome"], result["limits_hit"]), ("signaled", []))
        self.assertNotIn("SIGKILL", remarks(result))

    def test_the_jar_is_chosen_before_the_engine(self) -> None:
        process = self.start("--memory", "256M", "--", "/bin/sh", "-c", "echo up; sleep 1000", self.marker, stdout=subprocess.PIPE)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), b"up\n")
        # The engine's own helpers, such as the one that measures, are outside the jar's pid namespace.
        inside: List[int] = [pid for pid in census.descendants(process.pid) if is_in_a_namespace(pid)]
        scores = [int(Path(f"/proc/{pid}/oom_score").read_text()) for pid in inside]
        engine = int(Path(f"/proc/{process.pid}/oom_score").read_text())
        self.assertGreaterEqual(len(scores), 2)
        self.assertGreater(min(scores), engine, (engine, dict(zip(inside, scores))))
        send(process, signal.SIGTERM)
        process.wait(20)


if __name__ == "__main__":
    unittest.main()
