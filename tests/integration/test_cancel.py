# SPDX-License-Identifier: Apache-2.0
"""Signals to belljar: passed on, then the grace, then the end; and what its sudden death leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import unittest
from typing import Tuple

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase, every_way
from harness.result import Result
from harness.runner import StatusPipe, check_answer, finish, read_until, send

CANCELLING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@every_way
class Cancel(JarCase):
    def started(self, *args: str, **options: object) -> "Tuple[subprocess.Popen[bytes], StatusPipe]":
        """A run whose command has said that it is ready."""
        process, status = self.start_status(*args, **options)
        assert process.stdout
        read_until(process.stdout, b"ready")
        return process, status

    def ended(self, process: "subprocess.Popen[bytes]", status: StatusPipe) -> "Tuple[int, Result, str]":
        """Its exit status, result and further output."""
        done = finish(process)
        return done.status, check_answer(done, status.read()), done.stdout.decode()

    def test_a_signal_is_passed_on(self) -> None:
        for number in CANCELLING:
            with self.subTest(signal=number.name):
                process, status = self.started("--grace", "1000s", "--", self.tool("catcher"), "5", self.marker)
                send(process, number)
                code, result, output = self.ended(process, status)
                self.assertEqual((code, result["outcome"]), (128 + number, "cancelled"))
                self.assertIn(f"got {number.name} {self.marker}", output)
                self.assertEqual((result["signal"], result["error"]), (None, None))

    def test_a_command_without_a_handler_dies_of_it(self) -> None:
        for number in CANCELLING:
            with self.subTest(signal=number.name):
                process, status = self.started("--grace", "1000s", *self.sh("echo ready; exec sleep 1000"))
                send(process, number)
                code, result, _ = self.ended(process, status)
                self.assertEqual((code, result["outcome"]), (128 + number, "cancelled"))
                self.assertEqual(result["signal"], number.name)

    def test_the_end_of_the_main_process_is_never_lost(self) -> None:
        """It may die of the signal while the engine is still sending to the jar."""
        for _ in range(60):
            process, status = self.started("--grace", "1000s", *self.sh("echo ready; exec sleep 1000"))
            send(process, signal.SIGTERM)
            self.assertEqual(self.ended(process, status)[1]["signal"], "SIGTERM")

    def test_after_the_grace_it_is_killed(self) -> None:
        process, status = self.started("--grace", "300ms", "--", self.tool("catcher"), "stay", self.marker)
        send(process, signal.SIGTERM)
        code, result, output = self.ended(process, status)
        self.assertEqual((code, result["outcome"], result["signal"]), (143, "cancelled", "SIGKILL"))
        self.assertIn("got SIGTERM", output)

    def test_a_second_signal_kills_at_once(self) -> None:
        for second in (signal.SIGINT, signal.SIGTERM):
            process, status = self.started("--grace", "1000s", "--", self.tool("catcher"), "stay", self.marker)
            assert process.stdout
            send(process, signal.SIGINT)
            read_until(process.stdout, b"got SIGINT")
            send(process, second)
            code, result, _ = self.ended(process, status)
            self.assertIn(code, (130, 128 + second))
            self.assertEqual((result["outcome"], result["signal"]), ("cancelled", "SIGKILL"))

    def test_no_grace(self) -> None:
        process, status = self.started("--grace", "0", "--", self.tool("catcher"), "stay", self.marker)
        send(process, signal.SIGTERM)
        code, result, _ = self.ended(process, status)
        self.assertEqual((code, result["outcome"]), (143, "cancelled"))

    def test_the_whole_tree_ends(self) -> None:
        script = f'"{self.tool("leftover")}" setsid double ignore hold -- $0; echo ready; exec sleep 1000'
        process, status = self.started("--grace", "200ms", *self.sh(script))
        send(process, signal.SIGINT)
        code, result, _ = self.ended(process, status)
        self.assertEqual((code, result["outcome"]), (130, "cancelled"))

    def test_a_stopped_command_ends(self) -> None:
        process, status = self.started("--grace", "300ms", *self.sh("echo ready; kill -STOP $$"))
        send(process, signal.SIGTERM)
        self.assertEqual(self.ended(process, status)[1]["outcome"], "cancelled")

    def test_output_of_the_handler_is_captured(self) -> None:
        process = self.start("--events", "--grace", "1000s", "--", self.tool("catcher"), "0", self.marker)
        assert process.stdout
        read_until(process.stdout, b"ready")
        send(process, signal.SIGTERM)
        done = finish(process)
        self.assertEqual(done.status, 143)
        self.assertIn(b"got SIGTERM", done.stdout)
        self.assertIn(b'"cancelled"', done.stdout)

    def test_a_signal_that_the_caller_ignores_stays_ignored(self) -> None:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            with self.subTest(signal=number.name):
                process, status = self.started(
                    *self.sh("echo ready; read x; echo done"),
                    stdin=subprocess.PIPE,
                    preexec_fn=lambda number=number: signal.signal(number, signal.SIG_IGN) and None,
                )
                send(process, number)
                time.sleep(0.2)
                done = finish(process, b"\n")
                result = check_answer(done, status.read())
                self.assertEqual((done.status, result["outcome"], done.stdout[-5:]), (0, "exited", b"done\n"))

    def test_the_command_has_default_signals(self) -> None:
        done = self.jar("--", self.tool("sigstate"))
        self.assertEqual(done.stdout, b"ignored\nblocked\n")

    def test_a_signal_during_the_timeouts_grace(self) -> None:
        process, status = self.started(
            "--timeout", "300ms", "--grace", "1000s", "--", self.tool("catcher"), "stay", self.marker
        )
        assert process.stdout
        read_until(process.stdout, b"got SIGTERM")
        send(process, signal.SIGINT)
        send(process, signal.SIGTERM)
        done = finish(process)
        self.assertIn(check_answer(done, status.read())["outcome"], ("timeout", "cancelled"))


@every_way
class SuddenDeath(JarCase):
    def test_the_tree_dies_with_belljar(self) -> None:
        beat = self.work / "beat"
        for words in (["stay"], ["setsid", "stay"], ["setsid", "double", "ignore", "stay"], ["stop", "stay"]):
            with self.subTest(words=words):
                args = ["--", self.tool("leftover"), "beat", "hold", "say", *words, "--", self.marker]
                process = self.start(*args)
                assert process.stdout
                read_until(process.stdout, b"left\n")
                process.kill()
                process.wait(BOUND)
                self.assertEqual(census.wait_until_none(10.0, self.marker), [])
                size = beat.stat().st_size
                time.sleep(0.1)
                self.assertEqual(beat.stat().st_size, size)

    def test_the_tree_dies_with_belljar_in_the_grace(self) -> None:
        process = self.start("--grace", "1000s", "--", self.tool("catcher"), "stay", self.marker)
        assert process.stdout
        read_until(process.stdout, b"ready")
        send(process, signal.SIGTERM)
        read_until(process.stdout, b"got SIGTERM")
        process.kill()
        process.wait(BOUND)
        self.assertEqual(census.wait_until_none(10.0, self.marker), [])

    def test_a_flooding_tree_dies_with_belljar(self) -> None:
        process = self.start("--json", "--", self.tool("writer"), "b:0")
        self.wait_for(lambda: "writer" in map(census.name, census.descendants(process.pid)), "the flood")
        process.kill()
        process.wait(BOUND)
        self.assertEqual(census.wait_until_none(10.0, self.marker), [])

    def test_hopping_processes_die_with_belljar(self) -> None:
        process = self.start("--", self.tool("hopper"), "10", self.marker)
        assert process.stdout
        read_until(process.stdout, b"hopping")
        process.kill()
        process.wait(BOUND)
        self.assertEqual(census.wait_until_none(15.0, self.marker), [])

    def test_death_at_any_moment_leaves_nothing(self) -> None:
        words = ["setsid", "ignore", "say", "stay", "--", self.marker]
        self.kill_at_moments(40, b"left\n", "--", self.tool("leftover"), *words)
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_the_death_of_process_1_ends_the_run(self) -> None:
        process, status = self.start_status(*self.sh("echo ready; exec sleep 1000"))
        assert process.stdout
        read_until(process.stdout, b"ready")
        for pid in census.descendants(process.pid):
            if "sleep" not in census.command_line(pid) and census.state(pid):
                os.kill(pid, signal.SIGKILL)
        done = finish(process, timeout=15)
        self.assertNotEqual(done.status, 0)
        self.assertTrue(status.read())


if __name__ == "__main__":
    unittest.main()
