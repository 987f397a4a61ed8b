# SPDX-License-Identifier: Apache-2.0
"""Nobody takes the output: the run is ended and belljar says so, instead of going on for nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import unittest
from typing import Any, Tuple

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase, every_way
from harness.result import Result
from harness.runner import check_answer, finish, unread


@every_way
class OutputGone(JarCase):
    def run_without_reader(self, *args: str, **options: Any) -> "Tuple[int, bytes, Result]":
        """Run to the end with --status-fd: exit status, stderr, result."""
        process, status = self.start_status(*args, **options)
        done = finish(process, timeout=20)
        return done.status, done.stderr, check_answer(done, status.read())

    def check_gone(self, code: int, stderr: bytes, result: Result, has_message: bool = True) -> None:
        self.assertEqual((code, result["outcome"], result["killed"]), (125, "cancelled", True))
        self.assertEqual(result["error"]["stage"], "output")
        if has_message:
            self.assertNotEqual(stderr.strip(), b"", "no message on stderr")

    def wait_until_output_waits(self, process: "subprocess.Popen[bytes]") -> None:
        """The command has ended, and nobody has taken what is in the pipe."""
        stdout = process.stdout
        assert stdout
        is_over = lambda: unread(stdout.fileno()) and not census.children(process.pid)  # noqa: E731
        self.wait_for(is_over, "the command has ended, its output waits")

    def broken_pipe(self) -> int:
        """The writing end of a pipe that nobody reads."""
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        return writer

    def test_the_reader_is_gone(self) -> None:
        endless = [self.tool("writer"), "o:0"]
        self.check_gone(*self.run_without_reader("--grace", "1s", "--", *endless, stdout=self.broken_pipe()))

    def test_the_reader_leaves_in_the_middle(self) -> None:
        process, status = self.start_status("--grace", "1s", "--", self.tool("writer"), "o:0")
        assert process.stdout and process.stderr
        self.assertEqual(len(process.stdout.read(100000)), 100000)
        process.stdout.close()
        self.assertEqual(process.wait(BOUND), 125)
        self.assertNotEqual(process.stderr.read(), b"")
        self.assertIn(b'"cancelled"', status.read())

    def test_one_write_into_nothing_is_enough(self) -> None:
        writer = self.broken_pipe()
        self.check_gone(*self.run_without_reader("--grace", "200ms", *self.sh("echo x; sleep 1000"), stdout=writer))

    def test_a_full_disk(self) -> None:
        with open("/dev/full", "wb") as full:
            self.check_gone(*self.run_without_reader("--grace", "200ms", *self.sh("echo x; sleep 1000"), stdout=full))

    def test_a_closed_stdout(self) -> None:
        answer = self.run_without_reader(
            "--grace", "200ms", *self.sh("echo x; sleep 1000"), stdout=None, preexec_fn=lambda: os.close(1)
        )
        self.check_gone(*answer)

    def test_nobody_takes_stderr(self) -> None:
        with open("/dev/full", "wb") as full:
            process, status = self.start_status("--grace", "200ms", *self.sh("echo x >&2; sleep 1000"), stderr=full)
            done = finish(process, timeout=20)
            self.check_gone(done.status, b"", check_answer(done, status.read()), has_message=False)

    def test_nobody_takes_the_result(self) -> None:
        with open("/dev/full", "wb") as full:
            self.check_gone(*self.run_without_reader("--json", "--", "echo", "x", stdout=full))
        self.check_gone(*self.run_without_reader("--json", "--", "echo", "x", stdout=self.broken_pipe()))

    def test_nobody_takes_the_events(self) -> None:
        with open("/dev/full", "wb") as full:
            self.check_gone(
                *self.run_without_reader("--events", "--grace", "200ms", *self.sh("echo x; sleep 1000"), stdout=full)
            )
        writer = self.broken_pipe()
        self.check_gone(*self.run_without_reader("--events", "--grace", "200ms", "--", "sleep", "1000", stdout=writer))

    def test_a_silent_command_does_not_need_a_reader(self) -> None:
        code, _, result = self.run_without_reader("--", "true", stdout=self.broken_pipe())
        self.assertEqual((code, result["outcome"]), (0, "exited"))

    def test_belljar_does_not_die_of_sigpipe(self) -> None:
        def restore() -> None:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)

        code, stderr, result = self.run_without_reader(
            "--grace", "1s", "--", self.tool("writer"), "o:0", stdout=self.broken_pipe(), preexec_fn=restore
        )
        self.check_gone(code, stderr, result)

    def test_a_pipe_to_head_ends_the_run(self) -> None:
        process = self.start("--grace", "1s", "--", self.tool("writer"), "o:0:100", stdout=subprocess.PIPE)
        assert process.stdout
        head = subprocess.run(["head", "-c", "5"], stdin=process.stdout, stdout=subprocess.PIPE, check=True)
        process.stdout.close()
        self.assertEqual(head.stdout, b"abcde")
        self.assertEqual(process.wait(BOUND), 125)

    def test_a_reader_that_leaves_long_after_the_command(self) -> None:
        """The command has ended, its output waits for a reader that never took any, and then there is none."""
        process, status = self.start_status("--", self.tool("writer"), "o:180000", stdout=subprocess.PIPE)
        assert process.stdout
        self.wait_until_output_waits(process)
        time.sleep(1.2)  # more than the second after which a run that was ended drops what nobody takes
        process.stdout.close()
        self.assertEqual(process.wait(BOUND), 125)
        self.assertIn(b'"cancelled"', status.read())

    def test_a_signal_ends_the_wait_for_a_reader_who_takes_nothing(self) -> None:
        process, status = self.start_status("--", self.tool("writer"), "o:180000", stdout=subprocess.PIPE)
        self.wait_until_output_waits(process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(BOUND), 0)
        self.assertIn(b'"truncated":true', status.read())

    def test_nobody_takes_the_status(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        process = self.start("--status-fd", str(writer), *self.sh("exit 0"), pass_fds=(writer,))
        os.close(writer)
        self.assertIn(finish(process, timeout=20).status, (0, 125))


if __name__ == "__main__":
    unittest.main()
