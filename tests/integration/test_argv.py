# SPDX-License-Identifier: Apache-2.0
"""The command line that was asked for is the one that runs, to the byte, and its end is told truthfully."""

from __future__ import annotations

import base64
import signal
import unittest

from harness.case import JarCase, every_way

ODD_WORDS = [
    b"",
    b" ",
    b"a b",
    b"\n",
    b"line\nline\n",
    b"\t\r\x01\x1b[31m\x7f",
    b"\xff\xfe\x80",
    "é中😀".encode(),
    b"\xc3",
    b"$HOME `id` $(id) \\ \" ' * ? [a] ~ ; | & > <",
    b"-x",
    b"--json",
    b"--",
    b"%s%n",
    b"x" * 100000,
    b"",
]


class Argv(JarCase):
    def dump(self, *words: bytes) -> list[bytes]:
        result = self.json("--bytes", "--output", "1M", "--", self.tool("argdump"), *words)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        return base64.b64decode(result["stdout_base64"]).split(b"\0")[:-1]

    def test_odd_words_arrive_as_given(self) -> None:
        self.assertEqual(self.dump(*ODD_WORDS), ODD_WORDS)

    def test_many_words_arrive_as_given(self) -> None:
        words = [b"w%d" % i for i in range(5000)]
        self.assertEqual(self.dump(*words), words)

    def test_no_words_arrive_where_none_are_given(self) -> None:
        self.assertEqual(self.dump(), [])

    def test_the_command_sees_its_name_as_given(self) -> None:
        self.tool("argdump")
        result = self.json("--env", "ARGDUMP_SELF=1", "--", "tools/argdump", "one")
        self.assertEqual(result["stdout"], "tools/argdump\0one\0")

    def test_options_end_at_the_command(self) -> None:
        done = self.jar("echo", "--json", "-v", "--timeout")
        self.assertEqual((done.status, done.stdout), (0, b"--json -v --timeout\n"), done)

    def test_a_second_double_dash_belongs_to_the_command(self) -> None:
        done = self.jar("--", "echo", "--", "x")
        self.assertEqual((done.status, done.stdout), (0, b"-- x\n"), done)

    def test_values_may_follow_an_equals_sign(self) -> None:
        done = self.jar("--timeout=20s", "--env=A=b=c", *self.sh('printf %s "$A"'))
        self.assertEqual((done.status, done.stdout), (0, b"b=c"), done)

    def test_a_shell_string_goes_to_the_shell(self) -> None:
        done = self.jar("--shell", "for i in 1 2; do printf '%s,' \"$i\"; done; exit 9")
        self.assertEqual((done.status, done.stdout), (9, b"1,2,"), done)

    def test_a_shell_string_may_hold_any_bytes(self) -> None:
        done = self.jar("--shell", "--", b"printf '%s' '\xff\n-- --json'")
        self.assertEqual((done.status, done.stdout), (0, b"\xff\n-- --json"), done)

    def test_without_a_shell_nothing_is_interpreted(self) -> None:
        result = self.json("--", "echo hello; exit 3")
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "exec"))

    def test_the_command_is_found_on_the_path(self) -> None:
        self.assertEqual(self.jar("true").status, 0)

    def test_a_relative_command_starts_at_the_workdir(self) -> None:
        script = self.work / "script"
        script.write_text("#!/bin/sh\necho ran $0\n")
        script.chmod(0o755)
        other = self.directory("elsewhere")
        done = self.jar("-C", self.work, "--", "./script", cwd=other)
        self.assertEqual((done.status, done.stdout), (0, b"ran ./script\n"), done)


@every_way
class Ends(JarCase):
    def test_exit_codes_are_the_commands_own(self) -> None:
        for code in (0, 1, 2, 3, 42, 124, 125, 126, 127, 128, 137, 139, 143, 255):
            with self.subTest(code=code):
                result = self.json(*self.sh(f"exit {code}"))
                self.assertEqual((result["outcome"], result["exit_code"]), ("exited", code))
                self.assertEqual(result["limits_hit"], [])

    def test_a_signal_that_ends_the_command_is_named(self) -> None:
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGHUP, signal.SIGABRT, signal.SIGPIPE):
            with self.subTest(signal=number.name):
                result = self.json(*self.sh(f"kill -{int(number)} $$; sleep 10"))
                self.assertEqual((result["outcome"], result["signal"]), ("signaled", number.name))
                self.assertEqual((result["killed"], result["timed_out"]), (False, False))
                self.assertEqual(result["limits_hit"], [])

    def test_the_exit_status_of_a_signal_is_128_and_its_number(self) -> None:
        self.assertEqual(self.jar(*self.sh("kill -KILL $$; sleep 10")).status, 137)
        self.assertEqual(self.jar(*self.sh("kill -SEGV $$; sleep 10")).status, 139)

    def test_a_real_time_signal_has_a_status_too(self) -> None:
        result = self.json(*self.sh("kill -40 $$; sleep 10"))
        self.assertEqual(result["outcome"], "signaled")

    def test_exit_137_is_not_a_limit(self) -> None:
        done, result = self.status(*self.sh("echo 'MemoryError: Cannot allocate memory' >&2; exit 137"))
        self.assertEqual((done.status, result["outcome"], result["killed"]), (137, "exited", False))

    def test_a_command_that_is_not_there(self) -> None:
        done, result = self.status("--", "no-such-command-" + self.marker)
        self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (127, "failed", "exec"))
        self.assertIn(result["error"]["errno"], ("ENOENT", 2))
        self.assertIn("no-such-command", result["error"]["message"])
        self.assertIn(b"no-such-command", done.stderr)

    def test_a_closed_directory_of_the_path_holds_no_command(self) -> None:
        (self.work / "closed").mkdir(mode=0o600)
        env = {**self.env, "PATH": f"{self.work / 'closed'}:{self.env['PATH']}"}
        self.assertEqual(self.jar("--", "no-such-command", env=env).status, 127)
        self.assertEqual(self.jar("--", "true", env=env).status, 0)

    def test_a_path_that_is_not_there(self) -> None:
        for path in ("./nothing", "/nonexistent/command", "nothing/here"):
            with self.subTest(path=path):
                self.assertEqual(self.jar("--", path).status, 127)

    def test_a_file_that_is_not_executable(self) -> None:
        (self.work / "data").write_text("#!/bin/sh\ntouch ran\n")
        done, result = self.status("--", "./data")
        self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (126, "failed", "exec"))
        self.assertFalse((self.work / "ran").exists())

    def test_a_directory_is_not_executable(self) -> None:
        self.assertEqual(self.jar("--", "./").status, 126)
        self.assertEqual(self.jar("--", "/usr").status, 126)

    def test_a_file_of_no_known_format(self) -> None:
        (self.work / "junk").write_bytes(b"\x7fELF\0\0\0\0 of nowhere")
        (self.work / "junk").chmod(0o755)
        result = self.json("--", "./junk")
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "exec"))

    def test_a_script_whose_interpreter_is_not_there(self) -> None:
        (self.work / "script").write_text("#!/no/such/interpreter\n")
        (self.work / "script").chmod(0o755)
        self.assertEqual(self.jar("--", "./script").status, 127)

    def test_an_empty_command_name_runs_nothing(self) -> None:
        result = self.json("--", "")
        self.assertEqual(result["outcome"], "failed")

    def test_a_background_child_does_not_change_the_end(self) -> None:
        result = self.json(*self.sh("sleep 1000 & exit 7"))
        self.assertEqual((result["outcome"], result["exit_code"], result["killed"]), ("exited", 7, False))


if __name__ == "__main__":
    unittest.main()
