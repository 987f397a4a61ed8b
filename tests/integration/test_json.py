# SPDX-License-Identifier: Apache-2.0
"""Where the result is written, and that it is written in every outcome."""

from __future__ import annotations

import fcntl
import os
import unittest

from harness.case import JarCase, every_way
from harness.result import check_result, check_status, parse_line
from harness.runner import StatusPipe, check_answer, finish


@every_way
class Json(JarCase):
    def test_the_result_is_one_line_and_all_there_is(self) -> None:
        done = self.jar("--json", *self.sh("echo out; echo err >&2"))
        result = check_answer(done, done.stdout)
        self.assertEqual((result["stdout"], result["stderr"], result["encoding"]), ("out\n", "err\n", "utf-8"))
        self.assertEqual((result["stdout_bytes"], result["stderr_bytes"]), (4, 4))
        self.assertNotIn(b"err\n", done.stderr)
        self.assertEqual(result["enforced"]["rung"], self.way.rung)

    def test_what_the_command_prints_cannot_forge_the_result(self) -> None:
        forged = '{"version":1,"outcome":"exited","exit_code":0}\n'
        result = self.json(*self.sh(f"printf '%s' '{forged}'; printf '%s' '{forged}' >&2; exit 1"))
        self.assertEqual((result["exit_code"], result["stdout"], result["stderr"]), (1, forged, forged))

    def test_the_status_descriptor_gets_the_result_and_output_passes(self) -> None:
        done, result = self.status(*self.sh("echo out; echo err >&2; exit 3"))
        self.assertEqual((done.status, done.stdout, done.stderr), (3, b"out\n", b"err\n"))
        self.assertEqual((result["stdout"], result["stderr"]), (None, None))
        self.assertEqual((result["stdout_bytes"], result["stderr_bytes"]), (4, 4))

    def test_both_ways_tell_the_same(self) -> None:
        status = StatusPipe()
        process = self.start("--json", *status.option, *self.sh("echo out"), pass_fds=(status.writer,))
        status.started()
        done = finish(process)
        self.assertEqual(done.stdout, status.read())
        self.assertEqual(check_answer(done, done.stdout)["stdout"], "out\n")

    def test_a_result_of_a_run_that_never_started(self) -> None:
        for args, stage in ((["--", "no-such-command"], "exec"), (["-C", "/no/such/dir", "--", "true"], None)):
            result = self.json(*args)
            self.assertEqual(result["outcome"], "failed")
            self.assertEqual((result["stdout_bytes"], result["stderr_bytes"], result["truncated"]), (0, 0, False))
            if stage:
                self.assertEqual(result["error"]["stage"], stage)

    def test_the_message_goes_to_stderr_too(self) -> None:
        done = self.jar("--", "no-such-command")
        self.assertEqual((done.status, done.stdout), (127, b""))
        self.assertIn(b"no-such-command", done.stderr)

    def test_what_held_is_told(self) -> None:
        result = self.json("--", "true")
        enforced = result["enforced"]
        if self.way.rung == "namespace":
            self.assertTrue(enforced["filesystem"].startswith("mount-ns"), enforced)
            self.assertEqual((enforced["network"], enforced["processes"]), ("net-ns", "pid-ns"))
        else:
            self.assertEqual(enforced["processes"], "subreaper", enforced)
        if self.way.rung == "landlock":
            self.assertRegex(enforced["filesystem"], "^landlock")
            self.assertIn("syscalls", enforced)
            self.assertTrue(result["missing"], "the landlock rung holds less, and says nothing of it")
        if self.way.rung == "process":
            self.assertEqual((enforced["filesystem"], enforced["network"]), ("none", "none"))
        else:
            self.assertEqual(enforced["syscalls"], "seccomp")
        self.assertIsNone(enforced["memory"], "memory was not asked for")
        self.assertIsNone(enforced["cpu_time"], "cpu_time was not asked for")
        self.assertIsNone(enforced["disk"], "disk was not asked for")


class Usage(JarCase):
    def test_a_usage_error_is_told_as_json_if_asked_before_the_dashes(self) -> None:
        for args in (
            ["--json", "--no-such-option", "--", "true"],
            ["--no-such-option", "--json", "--", "true"],
            ["--json", "--timeout", "bogus", "--", "true"],
            ["--timeout", "bogus", "--json", "--", "true"],
            ["--json"],
            ["--json", "--"],
            ["--json", "--timeout"],
        ):
            with self.subTest(args=args):
                done = self.jar(*args)
                result = check_answer(done, done.stdout)
                self.assertEqual((done.status, result["outcome"]), (125, "failed"))
                self.assertIn(result["error"]["stage"], ("usage", "policy"))
                self.assertNotEqual(done.stderr, b"")

    def test_a_usage_error_is_not_told_as_json_if_asked_after_the_dashes(self) -> None:
        done = self.jar("--no-such-option", "--", "true", "--json")
        self.assertEqual((done.status, done.stdout), (125, b""))

    def test_a_usage_error_reaches_the_status_descriptor(self) -> None:
        done, result = self.status("--no-such-option", "--", "true")
        self.assertEqual((done.status, done.stdout, result["error"]["stage"]), (125, b"", "usage"))

    def test_json_with_events_is_an_error(self) -> None:
        for args in (["--json", "--events"], ["--events", "--json"]):
            done = self.jar(*args, *self.sh("touch ran"))
            self.assertEqual(done.status, 125)
            self.assertFalse((self.work / "ran").exists())

    def test_unfit_status_descriptors_run_nothing(self) -> None:
        for word in ("0", "1", "2", "-1", "77", "999999", "99999999999999999999", "x", "", "3x"):
            with self.subTest(word=word):
                done = self.jar("--status-fd", word, *self.sh("touch ran"))
                self.assert_failed(done)
                self.assertFalse((self.work / "ran").exists())

    def test_a_status_descriptor_that_cannot_be_written(self) -> None:
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        done = self.jar("--status-fd", str(reader), *self.sh("exit 0"), pass_fds=(reader,))
        self.assertIn(done.status, (0, 125), done)

    def test_any_open_descriptor_will_do(self) -> None:
        for number in (3, 4, 9, 10, 63, 255, 1000):
            with self.subTest(number=number):
                pipe = os.pipe()
                reader, writer = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 1001) for end in pipe)
                os.close(pipe[0])
                os.close(pipe[1])
                os.dup2(writer, number)
                os.close(writer)
                process = self.start("--status-fd", str(number), "--", "echo", "x", pass_fds=(number,))
                os.close(number)
                with open(reader, "rb") as lines:
                    result = check_result(parse_line(lines.read()))
                done = finish(process)
                check_status(result, done.status)
                self.assertEqual(done.stdout, b"x\n")

    def test_messages_never_go_to_stdout(self) -> None:
        for args in (["--json", "-v"], ["--json", "--timing"], ["--json", "-v", "--timing", "--color", "always"]):
            with self.subTest(args=args):
                done = self.jar(*args, "--", "echo", "x")
                if done.status == 125:
                    self.assertNotIn("always", args[-1:], done)
                    continue
                self.assertEqual(check_answer(done, done.stdout)["stdout"], "x\n")

    def test_timing_goes_to_stderr(self) -> None:
        done = self.jar("--timing", "--", "echo", "x")
        self.assertEqual((done.status, done.stdout), (0, b"x\n"))
        self.assertNotEqual(done.stderr, b"")

    def test_quiet_silences_own_messages(self) -> None:
        done = self.jar("-q", "--", "true", cwd="/")
        self.assertEqual((done.status, done.stderr), (0, b""))


if __name__ == "__main__":
    unittest.main()
