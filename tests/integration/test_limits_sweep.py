# SPDX-License-Identifier: Apache-2.0
"""The cgroups of runs: none is left, and what an engine that was killed left is swept by the next one."""

from __future__ import annotations

import os
import signal
import unittest
from typing import Set

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase
from harness.runner import read_until, send

RUN_ALONE = True


def cgroups() -> Set[str]:
    """Every cgroup of ours."""
    found = set()
    for root, directories, _ in os.walk("/sys/fs/cgroup"):
        found.update(os.path.join(root, name) for name in directories if name.startswith("belljar-"))
    return found


class Sweep(JarCase):
    def check_as_before(self, before: Set[str]) -> None:
        """Nothing of ours is left. Others use this host too: what comes later is not ours, and what they have goes again."""
        left = cgroups() - before

        def is_gone() -> bool:
            nonlocal left
            left &= cgroups()
            return not left

        self.wait_for(is_gone, f"the cgroups are gone: {left}")

    def test_no_cgroup_is_left(self) -> None:
        before = cgroups()
        hog = self.tool("limit_memory")
        self.jar("--memory", "64M", "--cpu-time", "100s", "--pids", "9", "--", hog, "say:x")
        self.jar("--memory", "64M", "--", hog, f"touch:{500 << 20}")
        self.jar("--cpu-time", "100ms", "--", self.tool("limit_cpu"), "self:0")
        self.jar("--memory", "64M", "--", "no-such-command")
        self.jar("--memory", "1M", "--", "true", *["x" * 100000] * 12)  # too much even to start
        self.check_as_before(before)

    def test_what_a_killed_engine_left_is_swept(self) -> None:
        before = cgroups()
        process = self.start("--memory", "64M", "--pids", "20", "--cpu-time", "100s", *self.sh("echo ready; exec sleep 1000"))
        assert process.stdout
        read_until(process.stdout, b"ready")
        process.kill()
        process.wait(BOUND)
        self.check_nothing_left()
        result = self.json("--memory", "64M", "--pids", "20", "--cpu-time", "100s", "--", "true")
        self.assertEqual(result["exit_code"], 0, result)
        self.check_as_before(before)

    def test_a_living_engine_is_not_swept(self) -> None:
        process = self.start("--memory", "64M", "--pids", "20", *self.sh("echo ready; exec sleep 1000"))
        assert process.stdout
        read_until(process.stdout, b"ready")
        lines = [line for pid in census.descendants(process.pid) for line in census.read(f"/proc/{pid}/cgroup").decode().splitlines()]
        own = {path for path in cgroups() if any("belljar-" in line and path.endswith(line.split(":")[2]) for line in lines)}
        for _ in range(3):
            self.assertEqual(self.jar("--memory", "64M", "--pids", "20", "--", "true").status, 0)
        self.assertLessEqual(own, cgroups())
        send(process, signal.SIGTERM)
        process.wait(BOUND)
        self.wait_for(lambda: not cgroups() & own, "its cgroups are gone")


if __name__ == "__main__":
    unittest.main()
