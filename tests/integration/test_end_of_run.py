# SPDX-License-Identifier: Apache-2.0
"""The run ends when the main process ends: all its output, at once, and nothing left behind."""

from __future__ import annotations

import itertools
import unittest

from harness import census
from harness.case import JarCase, every_way

WORDS = ("setsid", "double", "ignore", "stop")


@every_way
class EndOfRun(JarCase):
    def test_left_overs_of_every_kind(self) -> None:
        for count in range(len(WORDS) + 1):
            for words in itertools.combinations(WORDS, count):
                with self.subTest(words=words):
                    args = ["--", self.tool("leftover"), "hold", "say", *words, "--", self.marker]
                    result = self.json(*args, timeout=10)
                    self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
                    self.assertEqual((result["killed"], result["stdout"]), (False, "left\n"))
                    self.assertEqual(census.wait_until_none(5.0, self.marker), [])

    def test_left_overs_are_gone_when_the_call_returns(self) -> None:
        for _ in range(10):
            done = self.jar("--", self.tool("leftover"), "setsid", "double", "ignore", "--", self.marker, timeout=10)
            self.assertEqual(done.status, 0)
            self.assertEqual(census.marked(self.marker), [])

    def test_a_left_over_that_holds_the_pipes_does_not_hold_the_call(self) -> None:
        done = self.jar(*self.sh("sleep 1000 & sleep 1000 >/dev/null & echo out; echo err >&2; exit 5"), timeout=10)
        self.assertEqual((done.status, done.stdout, done.stderr), (5, b"out\n", b"err\n"))

    def test_a_left_over_that_keeps_writing_does_not_hold_the_call(self) -> None:
        script = f'setsid "{self.tool("writer")}" b:0 & sleep 0.2; exit 4'
        result = self.json(*self.sh(script), timeout=20)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 4))
        self.assertTrue(result["truncated"])

    def test_a_chatty_left_over_of_a_passed_through_run(self) -> None:
        script = f'setsid "{self.tool("writer")}" b:0 & sleep 0.1; exit 4'
        self.assertEqual(self.jar(*self.sh(script), timeout=20).status, 4)

    def test_all_output_of_the_main_process_arrives(self) -> None:
        script = f'sleep 1000 & "{self.tool("writer")}" o:60000 e:60000; exit 0'
        for _ in range(10):
            result = self.json("--output", "1M", *self.sh(script), timeout=10)
            self.assertEqual((len(result["stdout"]), len(result["stderr"])), (60000, 60000))

    def test_output_that_a_child_wrote_before_the_end_arrives(self) -> None:
        script = f'"{self.tool("writer")}" o:50000 & wait; echo end'
        result = self.json(*self.sh(script), timeout=10)
        self.assertEqual(len(result["stdout"]), 50004)

    def test_many_left_overs(self) -> None:
        script = "i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done; exit 3"
        result = self.json(*self.sh(script), timeout=15)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 3))

    def test_hopping_left_overs(self) -> None:
        done = self.jar("--", self.tool("hopper"), "20", "-" + self.marker, timeout=20)
        self.assertEqual((done.status, done.stdout), (0, b"hopping\n"))

    def test_a_daemon_cannot_wait_for_the_end(self) -> None:
        script = '(setsid sh -c "trap \\"\\" TERM HUP INT; while :; do echo x >> beat; sleep 0.01; done" &) ; until [ -s beat ]; do sleep 0.01; done'
        self.assertEqual(self.jar(*self.sh(script), timeout=10).status, 0)
        size = (self.work / "beat").stat().st_size
        self.assertEqual(census.wait_until_none(5.0), [])
        self.assertEqual((self.work / "beat").stat().st_size, size)

    def test_a_main_process_that_replaces_itself_is_still_the_main_process(self) -> None:
        result = self.json(*self.sh("exec /bin/sh -c 'exec sh -c \"echo deep; exit 8\"'"))
        self.assertEqual((result["exit_code"], result["stdout"]), (8, "deep\n"))

    def test_zombies_are_reaped_while_the_run_goes_on(self) -> None:
        script = (
            "i=0; while [ $i -lt 30 ]; do (sh -c 'exit 0' &) ; i=$((i+1)); done; sleep 0.3; ps -eo stat= | grep -c Z"
        )
        result = self.json(*self.sh(script + " || true"))
        if self.way.rung == "namespace" and result["stderr"] == "":
            self.assertEqual(result["stdout"], "0\n")

    def test_the_parent_of_orphans_is_not_the_command(self) -> None:
        result = self.json(*self.sh("(sleep 0.2; exit 9) & exec sh -c 'sleep 0.4; exit 6'"))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 6))


if __name__ == "__main__":
    unittest.main()
