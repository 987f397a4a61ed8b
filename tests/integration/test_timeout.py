# SPDX-License-Identifier: Apache-2.0
"""The wall clock: SIGTERM to the whole tree, the grace, SIGKILL; and what was printed is kept.

No test asserts how fast something is: what must end at once is bounded against a sleep of 1000 seconds.
"""

from __future__ import annotations

import json
import os
import signal
import unittest

from harness import census
from harness.case import JarCase, every_way
from harness.result import check_result, limit_of


@every_way
class Timeout(JarCase):
    def test_a_run_ends_at_its_timeout(self) -> None:
        done, result = self.status("--timeout", "300ms", *self.sh("sleep 1000"))
        self.assertEqual((done.status, result["outcome"]), (124, "timeout"))
        limit = limit_of(result, "timeout")
        assert limit is not None
        self.assertEqual(limit["limit"], 300)
        self.assertGreaterEqual(result["usage"]["wall_ms"], 300)

    def test_a_run_that_ends_in_time_is_not_touched(self) -> None:
        result = self.json("--timeout", "20s", *self.sh("exit 124"))
        self.assertEqual((result["outcome"], result["exit_code"], result["limits_hit"]), ("exited", 124, []))

    def test_output_before_the_timeout_is_kept(self) -> None:
        result = self.json("--timeout", "500ms", *self.sh("echo out; echo err >&2; printf partial; sleep 1000"))
        self.assertEqual((result["outcome"], result["stdout"], result["stderr"]), ("timeout", "out\npartial", "err\n"))

    def test_output_before_the_timeout_is_passed_through(self) -> None:
        done = self.jar("--timeout", "500ms", *self.sh("echo out; echo err >&2; sleep 1000"))
        self.assertEqual((done.status, done.stdout), (124, b"out\n"), done)
        self.assertIn(b"err\n", done.stderr)

    def test_a_handler_runs_and_what_it_prints_arrives(self) -> None:
        result = self.json("--timeout", "500ms", "--grace", "1000s", "--", self.tool("catcher"), "5", self.marker)
        self.assertEqual(result["outcome"], "timeout")
        self.assertEqual(result["stdout"], f"ready {self.marker}\ngot SIGTERM {self.marker}\n")
        self.assertIsNone(result["signal"])

    def test_the_signal_that_ended_the_main_process_is_told(self) -> None:
        polite = self.json("--timeout", "300ms", "--grace", "1000s", "--", "sleep", "1000")
        self.assertEqual((polite["outcome"], polite["signal"]), ("timeout", "SIGTERM"))
        stubborn = self.json("--timeout", "300ms", "--grace", "200ms", "--", self.tool("catcher"), "stay", self.marker)
        self.assertEqual((stubborn["outcome"], stubborn["signal"]), ("timeout", "SIGKILL"))
        self.assertIn("got SIGTERM", stubborn["stdout"])

    def test_no_grace(self) -> None:
        for grace in ("0", "0s", "0ms"):
            result = self.json("--timeout", "300ms", "--grace", grace, "--", self.tool("catcher"), "stay", self.marker)
            self.assertEqual((result["outcome"], result["signal"]), ("timeout", "SIGKILL"))

    def test_the_whole_tree_is_signalled(self) -> None:
        catcher = self.tool("catcher")
        script = (
            f'setsid "{catcher}" 0 one-$0 & (setsid "{catcher}" 0 two-$0 &) ; "{catcher}" stay three-$0 &'
            'trap "" TERM; while :; do sleep 0.05; done'
        )
        result = self.json("--timeout", "1s", "--grace", "1s", *self.sh(script))
        self.assertEqual(result["outcome"], "timeout")
        for tag in ("one", "two", "three"):
            self.assertIn(f"got SIGTERM {tag}-{self.marker}", result["stdout"])

    def test_output_of_the_grace_is_kept(self) -> None:
        script = "trap 'for i in 1 2 3; do echo late $i; sleep 0.1; done; exit 3' TERM; while :; do sleep 0.02; done"
        result = self.json("--timeout", "300ms", "--grace", "1000s", *self.sh(script))
        self.assertEqual((result["outcome"], result["stdout"]), ("timeout", "late 1\nlate 2\nlate 3\n"))

    def test_a_stopped_tree_ends_too(self) -> None:
        for grace in ("0", "300ms"):
            result = self.json("--timeout", "300ms", "--grace", grace, *self.sh("sleep 1000 & kill -STOP $! $$"))
            self.assertEqual(result["outcome"], "timeout")

    def test_it_ends_though_the_engine_is_stopped(self) -> None:
        script = "trap '' TERM; echo up; setsid sleep 1001 & while :; do sleep 1000; done"
        process, status = self.start_status("--timeout", "1s", "--grace", "100ms", *self.sh(script))
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.kill(process.pid, signal.SIGSTOP)
        try:
            self.wait_for(lambda: not census.living(process.pid, "sleep", "sh"), "the command has ended")
        finally:
            os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.wait(), 124)
        result = check_result(json.loads(status.read()))
        self.assertEqual((result["outcome"], result["signal"]), ("timeout", "SIGKILL"))
        self.assertIsNotNone(limit_of(result, "timeout"))

    def test_the_grace_holds_though_the_engine_is_stopped(self) -> None:
        script = "trap 'echo asked; sleep 0.5; echo over; exit 3' TERM; echo up; while :; do sleep 0.02; done"
        process, status = self.start_status("--timeout", "1s", "--grace", "1000s", *self.sh(script))
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.kill(process.pid, signal.SIGSTOP)
        try:
            self.wait_for(lambda: not census.living(process.pid, "sleep", "sh"), "the command has ended")
        finally:
            os.kill(process.pid, signal.SIGCONT)
        self.assertEqual((process.stdout.read(), process.wait()), (b"asked\nover\n", 124))
        result = check_result(json.loads(status.read()))
        self.assertEqual((result["outcome"], result["signal"]), ("timeout", None))

    def test_left_overs_do_not_prolong_the_timeout(self) -> None:
        words = ("setsid", "double", "ignore", "hold", "stay")
        result = self.json(
            "--timeout", "500ms", "--grace", "200ms", "--", self.tool("leftover"), *words, "--", self.marker, timeout=15
        )
        self.assertEqual(result["outcome"], "timeout")

    def test_hopping_processes_are_caught(self) -> None:
        result = self.json(
            "--timeout", "700ms", "--grace", "100ms", "--", self.tool("hopper"), "20", self.marker, timeout=25
        )
        self.assertEqual((result["outcome"], result["stdout"]), ("timeout", "hopping\n"))

    def test_a_flood_of_output_does_not_hide_the_timeout(self) -> None:
        result = self.json("--timeout", "500ms", "--grace", "100ms", "--", self.tool("writer"), "b:0")
        self.assertEqual((result["outcome"], result["truncated"]), ("timeout", True))
        self.assertEqual({limit["name"] for limit in result["limits_hit"]}, {"timeout", "output"})

    def test_durations(self) -> None:
        for word in ("100ms", "0.1", "0.1s"):
            result = self.json("--timeout", word, "--", "sleep", "1000")
            limit = limit_of(result, "timeout")
            assert limit is not None
            self.assertEqual(limit["limit"], 100, word)
        for word in ("1", "5m", "1h", "none"):
            self.assertEqual(self.jar("--timeout", word, "--", "true").status, 0, word)

    def test_malformed_durations_are_refused(self) -> None:
        for word in ("0", "0s", "-1", "", "abc", "5x", "1 s", "ms", "1e400", "nan", "inf", "99999999999999999999h"):
            with self.subTest(word=word):
                done = self.jar("--timeout", word, *self.sh("touch ran"))
                self.assert_failed(done)
                self.assertFalse((self.work / "ran").exists())


if __name__ == "__main__":
    unittest.main()
