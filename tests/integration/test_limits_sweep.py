# SPDX-License-Identifier: Apache-2.0
"""The cgroups of runs: none is left, and what an engine that was killed left is swept by the next one."""

from __future__ import annotations

import os
import signal
import time
import unittest
from typing import Set

from harness.case import JarCase
from harness.runner import send

RUN_ALONE = True


def cgroups() -> Set[str]:
    """Every cgroup of ours."""
    found = set()
    for root, directories, _ in os.walk("/sys/fs/cgroup"):
        found.update(os.path.join(root, name) for name in directories if name.startswith("belljar-"))
    return found


class Sweep(JarCase):
    def test_no_cgroup_is_left(self) -> None:
        before = cgroups()
        hog = self.tool("limit_memory")
        self.jar("--memory", "64M", "--cpu-time", "100s", "--pids", "9", "--", hog, "say:x")
        self.jar("--memory", "64M", "--", hog, f"touch:{500 << 20}")
        self.jar("--cpu-time", "100ms", "--", self.tool("limit_cpu"), "self:0")
        self.jar("--memory", "64M", "--", "no-such-command")
        self.jar("--memory", "4K", "--", "true")
        self.assertEqual(cgroups() - before, set())

    def test_what_a_killed_engine_left_is_swept(self) -> None:
        before = cgroups()
        process = self.start("--memory", "64M", "--pids", "20", "--cpu-time", "100s", "--", "sleep", "1000")
        self.wait_for(lambda: process.poll() is not None or cgroups() - before or os.geteuid() != 0, "a cgroup")
        time.sleep(0.2)
        process.kill()
        process.wait(10)
        self.check_nothing_left()
        result = self.json("--memory", "64M", "--pids", "20", "--cpu-time", "100s", "--", "true")
        self.assertEqual(result["exit_code"], 0, result)
        self.assertEqual(cgroups() - before, set())

    def test_a_living_engine_is_not_swept(self) -> None:
        before = cgroups()  # what others left where nobody sweeps is not ours
        process = self.start("--memory", "64M", "--pids", "20", "--", "sleep", "1000")
        time.sleep(0.3)
        own = cgroups() - before
        for _ in range(3):
            self.assertEqual(self.jar("--memory", "64M", "--pids", "20", "--", "true").status, 0)
        self.assertEqual(cgroups() - before, own)
        send(process, signal.SIGTERM)
        process.wait(10)
        self.wait_for(lambda: not cgroups() & own, "its cgroups are gone")


if __name__ == "__main__":
    unittest.main()
