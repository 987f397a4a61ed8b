# SPDX-License-Identifier: Apache-2.0
"""What a run used, over its whole tree."""

from __future__ import annotations

import signal
import unittest

from harness.bounds import BOUND, SLOWNESS
from harness.case import JarCase, every_way
from harness.runner import check_answer, finish, read_until, send


@every_way
class Usage(JarCase):
    def test_a_short_run(self) -> None:
        usage = self.json("--", "true")["usage"]
        self.assertGreater(usage["wall_ms"], 0)
        self.assertLess(usage["wall_ms"], BOUND * 1000)
        self.assertGreater(usage["peak_memory_bytes"], 0)
        self.assertLess(usage["peak_memory_bytes"], 1 << 30)

    def test_wall_time(self) -> None:
        usage = self.json("--", "sleep", "0.4")["usage"]
        self.assertGreaterEqual(usage["wall_ms"], 400)
        self.assertLess(usage["user_ms"] + usage["system_ms"], 400 * SLOWNESS)

    def test_cpu_time_of_the_main_process(self) -> None:
        usage = self.json("--", self.tool("burn"), "cpu:300")["usage"]
        self.assertGreaterEqual(usage["user_ms"] + usage["system_ms"], 290)
        self.assertLess(usage["user_ms"] + usage["system_ms"], 3000 * SLOWNESS)

    def test_cpu_time_of_children(self) -> None:
        usage = self.json("--", self.tool("burn"), "child:300")["usage"]
        self.assertGreaterEqual(usage["user_ms"] + usage["system_ms"], 290)

    def test_cpu_time_of_left_overs_that_were_killed(self) -> None:
        usage = self.json("--", self.tool("burn"), "orphan:300")["usage"]
        self.assertGreaterEqual(usage["user_ms"] + usage["system_ms"], 290)

    def test_cpu_time_of_a_tree_that_was_ended(self) -> None:
        """Ended when it has said that it has used its time: a busy host gives it that in a second or in a minute."""
        words = (self.tool("burn"), "child:200", "orphan:200", "say:1", "wait:1000000")
        process, status = self.start_status("--grace", "0", "--", *words)
        assert process.stdout
        read_until(process.stdout, b"1", 120)
        send(process, signal.SIGTERM)
        done = finish(process)
        result = check_answer(done, status.read())
        self.assertEqual(result["outcome"], "cancelled")
        self.assertGreaterEqual(result["usage"]["user_ms"] + result["usage"]["system_ms"], 390)

    def test_cpu_time_of_children_that_nobody_waited_for(self) -> None:
        """Where the back end of the CPU limit counts the tree, usage does too."""
        result = self.json("--cpu-time", "1000s", "--", self.tool("limit_cpu"), "ignored:5:60")
        if result["enforced"]["cpu_time"] == "meter" and any(row["name"] == "cpu_time" for row in result["missing"]):
            self.skipTest("the back end here cannot see them")
        self.assertGreaterEqual(result["usage"]["user_ms"] + result["usage"]["system_ms"], 290)

    def test_belljars_own_time_is_not_counted(self) -> None:
        usage = self.json("--", "sleep", "0.2")["usage"]
        self.assertLess(usage["user_ms"] + usage["system_ms"], 150 * SLOWNESS)

    def test_memory(self) -> None:
        size = 64 << 20
        usage = self.json("--", self.tool("burn"), f"memory:{size}", "wait:300")["usage"]
        self.assertGreaterEqual(usage["peak_memory_bytes"], size * 0.95)  # the kernel counts in batches
        self.assertLess(usage["peak_memory_bytes"], 2 * size)

    def test_memory_by_is_what_enforced_says(self) -> None:
        result = self.json("--memory", "512M", "--", "true")
        if result["enforced"]["memory"] in ("cgroup2", "cgroup1", "meter"):
            self.assertEqual(result["usage"]["memory_by"], result["enforced"]["memory"])

    def test_processes(self) -> None:
        usage = self.json(*self.sh("for i in 1 2 3 4 5; do sleep 1000 & done; sleep 0.5"))["usage"]
        if usage["peak_processes"] is not None:
            self.assertGreaterEqual(usage["peak_processes"], 5)
            self.assertLess(usage["peak_processes"], 15)


if __name__ == "__main__":
    unittest.main()
