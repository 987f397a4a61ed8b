# SPDX-License-Identifier: Apache-2.0
"""Mistakes on the command line: exit status 125, a helpful message, and nothing has run. And help where asked."""

from __future__ import annotations

import unittest
from typing import List

from harness.bounds import BOUND
from harness.case import JarCase
from harness.result import parse_json
from harness.runner import Arg

COMMANDS = ("run", "shell", "plan", "doctor", "policy")


class Mistakes(JarCase):
    def refused(self, *args: Arg) -> str:
        """The message for a command line that must run nothing."""
        done = self.jar(*args, *self.sh("touch ran"))
        self.assert_failed(done)
        self.assertFalse((self.work / "ran").exists())
        return done.stderr.decode(errors="replace")

    def test_unknown_options_come_with_a_guess(self) -> None:
        for option, guess in (
            ("--timout", "--timeout"),
            ("--memroy", "--memory"),
            ("--jsn", "--json"),
            ("--work-dir", "--workdir"),
            ("--cpu_time", "--cpu-time"),
        ):
            with self.subTest(option=option):
                message = self.refused(option)
                self.assertIn(option, message)
                self.assertIn(guess, message)

    def test_unknown_options_without_a_guess(self) -> None:
        self.assertIn("--qqqqqqqqqqqq", self.refused("--qqqqqqqqqqqq"))
        self.refused("-Z")

    def test_sizes(self) -> None:
        for option in ("--memory", "--disk", "--file-size", "--output", "--core"):
            for value in (
                "x",
                "",
                "-1",
                "1X",
                "1 K",
                "K",
                "1e3",
                "99999999999999999999",
                "18446744073709551616K",
                "none1",
            ):
                with self.subTest(option=option, value=value):
                    self.refused(option, value)

    def test_counts(self) -> None:
        for option in ("--pids", "--fds"):
            for value in ("0", "-5", "x", "", "1.5", "1K", "99999999999999999999"):
                with self.subTest(option=option, value=value):
                    self.refused(option, value)

    def test_zero_is_an_error(self) -> None:
        for option in ("--memory", "--disk", "--file-size", "--timeout", "--cpu-time"):
            with self.subTest(option=option):
                self.refused(option, "0")

    def test_words(self) -> None:
        for option, value in (
            ("--net", "hots"),
            ("--overflow", "x"),
            ("--keep", "all"),
            ("--rung", "vm"),
            ("--rung", ""),
        ):
            with self.subTest(option=option, value=value):
                self.refused(option, value)

    def test_values_that_name_the_choices(self) -> None:
        message = self.refused("--keep", "all")
        for word in ("head", "tail", "both"):
            self.assertIn(word, message)

    def test_missing_values(self) -> None:
        for option in ("--timeout", "--env", "-C", "--policy"):
            with self.subTest(option=option):
                self.assert_failed(self.jar(option))

    def test_a_value_for_an_option_that_takes_none(self) -> None:
        self.refused("--pty=yes")

    def test_limits_that_no_program_can_live_with(self) -> None:
        for option, value, least in (("--memory", "5", "1M"), ("--memory", "1023K", "1M"), ("--fds", "2", "4"), ("--pids", "0", "none")):
            with self.subTest(option=option, value=value):
                self.assertIn(least, self.refused(option, value))
        self.assertEqual(self.jar("--pids", "1", "--fds", "4", "--", "true").status, 0)

    def test_no_command(self) -> None:
        arguments: List[List[str]] = [[], ["--"], ["--timeout", "5s"], ["--shell"]]
        for args in arguments:
            with self.subTest(args=args):
                self.assert_failed(self.jar(*args))

    def test_unknown_presets(self) -> None:
        self.assertIn("strict", self.refused("--policy", "strickt"))

    def test_unknown_commands(self) -> None:
        self.assertIn(b"run", self.belljar("rnu", "--", "true").stderr)
        for args in (["rnu"], ["policy", "shwo"], ["policy"], ["--bogus"], ["doctor", "extra"]):
            with self.subTest(args=args):
                self.assert_failed(self.belljar(*args))

    def test_no_arguments_at_all(self) -> None:
        done = self.belljar()
        self.assertEqual(done.status, 125, done)

    def test_a_very_long_command_line(self) -> None:
        variables = [f"--env=V{i}=" + "x" * 100000 for i in range(19)]
        done, result = self.status(*variables, *self.sh("touch ran"))
        self.assertIn((done.status, result["outcome"]), ((125, "failed"), (126, "failed"), (0, "exited")))
        self.assertEqual((self.work / "ran").exists(), result["outcome"] == "exited")

    def test_paths(self) -> None:
        for args in (
            ["--ro", ""],
            ["--rw", "/no/such/thing"],
            ["--ro", "/usr:relative"],
            ["--tmpfs", "relative"],
            ["--hide", ""],
        ):
            with self.subTest(args=args):
                self.refused(*args)

    def test_errors_are_one_message(self) -> None:
        done = self.jar("--timeout", "x", "--", "true")
        self.assertLessEqual(len(done.stderr.decode().strip().splitlines()), 3, done.stderr)
        self.assertNotIn(b"\x1b", done.stderr, "colours on something that is no terminal")

    def test_colours_can_be_had_and_refused(self) -> None:
        done = self.jar("--color", "never", "--timeout", "x", "--", "true")
        self.assertNotIn(b"\x1b", done.stderr)

    def test_messages_do_not_carry_control_characters(self) -> None:
        done = self.jar("--", b"no-such-\x1b[31m-command\n\r\x07")
        self.assertEqual(done.status, 127)
        for byte in (b"\x1b", b"\x07", b"\r"):
            self.assertNotIn(byte, done.stderr)


class Help(JarCase):
    def test_help_goes_to_stdout(self) -> None:
        for args in (["--help"], *[[command, "--help"] for command in COMMANDS]):
            with self.subTest(args=args):
                done = self.belljar(*args)
                self.assertEqual((done.status, done.stderr), (0, b""), done)
                self.assertIn(b"belljar", done.stdout)

    def test_help_lists_every_option(self) -> None:
        text = self.belljar("run", "--help").stdout.decode()
        for option in (
            "--workdir --ro --rw --hide --tmpfs --net --env --pass-env --timeout --grace --cpu-time --memory --pids "
            "--disk --file-size --fds --core --output --overflow --keep --redact --redact-secrets --redact-env "
            "--hostname --rung --policy --tighten --shell --stdin --pty --json --bytes --events --status-fd --timing "
            "--die-with-parent --color -v -q -C"
        ).split():
            self.assertRegex(text, option.replace("--", r"--(\[no-\])?", 1))

    def test_help_does_not_run_anything(self) -> None:
        done = self.jar("--help", *self.sh("touch ran"))
        self.assertEqual(done.status, 0)
        self.assertFalse((self.work / "ran").exists())

    def test_the_version(self) -> None:
        done = self.belljar("--version")
        self.assertEqual(done.status, 0)
        self.assertRegex(done.stdout.decode(), r"\d+\.\d+")

    def test_help_into_nothing(self) -> None:
        with open("/dev/full", "wb") as full:
            process = self.start("--help", verb="", stdout=full)
            self.assertEqual(process.wait(BOUND), 125)


class Doctor(JarCase):
    def test_for_people(self) -> None:
        done = self.belljar("doctor")
        self.assertEqual(done.status, 0, done)
        self.assertIn(b"namespace", done.stdout)

    def test_for_programs(self) -> None:
        done = self.belljar("doctor", "--json")
        self.assertEqual(done.status, 0, done)
        self.assertIsInstance(parse_json(done.stdout), dict)


if __name__ == "__main__":
    unittest.main()
