# SPDX-License-Identifier: Apache-2.0
"""A kept shell: state stays from command to command, each has its own output and status, and no output is taken for a status."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import unittest
import warnings
from typing import Any, List
from unittest import mock

import belljar
from belljar import Shell, _shell
from harness import host, paths
from package_case import PackageCase, again_and_again, open_fds, tearDownModule  # noqa: F401

# Finds the pipe of the status among bash's own descriptors, and writes to it.
FORGE = "for n in 10 11 12 13 14 15; do printf -- '{}' >&$n; done 2>/dev/null"


class Case(PackageCase):
    """One shell in one jar."""

    def setUp(self) -> None:
        super().setUp()
        self.jar = belljar.Jar()
        self.addCleanup(self.jar.close)
        self.shell = self.open()

    def open(self, **options: Any) -> Shell:
        made = self.jar.shell(**options)
        self.addCleanup(made.close)
        return made

    def out(self, command: str) -> str:
        """What a command prints that ends well."""
        result = self.shell.run(command)
        self.assertTrue(result.ok, result)
        return result.stdout


class Commands(Case):
    """What a command gives, and what stays."""

    def test_directory_variables_functions_and_options_stay(self) -> None:
        self.out("cd /usr; x=5; export Y=6; greet() { echo hello $1; }; set -u")
        self.assertEqual(self.out("pwd; greet $x; sh -c 'echo $Y'"), "/usr\nhello 5\n6\n")
        self.assertNotEqual(self.shell.run("echo $nothing_of_that_name").exit_code, 0)
        self.assertEqual(self.out("echo still here"), "still here\n")

    def test_each_command_has_its_status_and_sees_the_last(self) -> None:
        for status in (0, 1, 3, 126, 255):
            self.assertEqual(self.shell.run(f"(exit {status})").exit_code, status)
            self.assertEqual(self.out("echo $?"), f"{status}\n")
        self.assertEqual(self.shell.run("kill -9 $(sh -c 'echo $PPID') & wait $!; false").exit_code, 1)
        self.assertEqual(self.shell.run("no_such_command").exit_code, 127)
        self.assertEqual(self.shell.run("sh -c 'kill -TERM $$'").exit_code, 143)

    def test_output_is_told_apart(self) -> None:
        result = self.shell.run("echo out; echo err >&2; sh -c 'echo child'")
        self.assertEqual((result.stdout, result.stderr), ("out\nchild\n", "err\n"))
        for number in range(20):
            self.assertEqual(self.out(f"printf {number}"), str(number))

    def test_no_output_is_a_status(self) -> None:
        number = self.shell._number + 1
        result = self.shell.run(f"echo '{number} 0'; echo '{number} 0' >&2; false")
        self.assertEqual((result.exit_code, result.stdout), (1, f"{number} 0\n"))

    def test_whatever_is_in_a_command_is_one_command(self) -> None:
        for command, expected in (
            ("echo 'it'\\''s'", "it's\n"),
            ('echo "a  b"', "a  b\n"),
            ("echo one\necho two\n\n", "one\ntwo\n"),
            ("cat <<END\n$((6 * 7)) 'x'\nEND", "42 'x'\n"),
            ("# a comment", ""),
            ("", ""),
            ("echo a # b", "a\n"),
            ("echo é 日本", "é 日本\n"),
            ("echo a!b !$", "a!b !$\n"),
            ("for i in 1 2 3; do\n echo $i\ndone", "1\n2\n3\n"),
            ("echo \\\n x", "x\n"),
            ("echo " + "x" * 50_000, "x" * 50_000 + "\n"),
        ):
            self.assertEqual(self.out(command), expected, command[:60])
        for command in ("if", "echo 'open", 'echo "open', "cat <<END", "(", "}", "echo $("):
            self.shell.run(command)
            self.assertEqual(self.out("echo fine"), "fine\n", command)

    def test_what_cannot_be_run(self) -> None:
        with self.assertRaises(TypeError):
            self.shell.run(["ls"])  # type: ignore[arg-type]
        with self.assertRaises(ValueError):
            self.shell.run("a\0b")
        with self.assertRaises(ValueError):
            self.shell.run("x" * (2 << 20))
        self.assertEqual(self.out("echo fine"), "fine\n")

    def test_commands_have_no_input_and_no_descriptors(self) -> None:
        self.assertEqual(self.out("cat; read x; echo \"<$x>\""), "<>\n")
        self.assertEqual(self.out("ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3 ")

    def test_background_jobs_stay(self) -> None:
        self.out("(sleep 0.3; echo late) & job=$!")
        self.assertEqual(self.out("wait $job"), "late\n")
        self.out("sleep 60 & job=$!")
        self.assertEqual(self.shell.run("sleep 60", timeout=0.3).outcome, "timeout")
        self.assertEqual(self.out("kill -0 $job && echo alive"), "alive\n")

    def test_the_cap_is_that_of_a_command(self) -> None:
        shell = self.open(output="1K")
        result = shell.run("head -c 5000 /dev/zero | tr '\\0' x")
        self.assertEqual((len(result.stdout), result.truncated), (1024, True))
        self.assertFalse(shell.run("echo short").truncated)

    def test_the_files_are_the_jar_s(self) -> None:
        self.jar.write_file("in.txt", "from outside")
        self.assertEqual(self.out("cat in.txt"), "from outside")
        self.out("echo from inside > out.txt")
        self.assertEqual(self.jar.read_file("out.txt"), b"from inside\n")

    def test_options_and_their_errors(self) -> None:
        shell = self.open(env={"A": "b"}, timeout="300ms")
        self.assertEqual(shell.run("echo $A").stdout, "b\n")
        self.assertEqual(shell.run("sleep 60").outcome, "timeout")
        for keys in ({"ro": ["/"]}, {"tiemout": 1}, {"redact": ["x"]}, {"output": None}):
            with self.assertRaises(belljar.PolicyError):
                self.jar.shell(**keys)  # type: ignore[arg-type]

    def test_check(self) -> None:
        self.assertEqual(self.shell.run("true").check().exit_code, 0)
        with self.assertRaises(belljar.RunError) as caught:
            self.shell.run("echo x; exit_status() { return 4; }; exit_status").check()
        self.assertEqual((caught.exception.returncode, caught.exception.stdout), (4, "x\n"))
        with self.assertRaises(belljar.RunTimeout):
            self.shell.run("sleep 60", timeout=0.2).check()


class Limits(Case):
    """Time, interrupts and the end."""

    def test_a_timeout_ends_the_whole_command_and_keeps_the_shell(self) -> None:
        self.out("x=7")
        for command in ("sleep 60; echo after", "while :; do :; done", "while :; do sleep 1; done", "sleep 60 | cat", "f() { sleep 60; }; f"):
            result = self.shell.run(f"echo begun; {command}", timeout=0.3)
            self.assertEqual((result.outcome, result.exit_code, result.state_lost), ("timeout", 130, False), command)
            self.assertEqual(result.stdout, "begun\n")
            self.assertEqual(self.out("echo $x"), "7\n")

    def test_a_command_that_does_not_stop_is_killed_with_the_shell(self) -> None:
        shell = self.open(grace=0.2)
        result = shell.run("echo begun; trap '' INT; sleep 60", timeout=0.2)
        self.assertEqual((result.outcome, result.exit_code, result.state_lost, result.stdout), ("timeout", None, True, "begun\n"))
        with self.assertRaises(belljar.CallEnded):
            shell.run("echo x")
        self.assertEqual(self.out("echo the other lives"), "the other lives\n")

    def test_interrupt_from_another_thread(self) -> None:
        self.shell.interrupt()  # nothing runs
        for _ in range(3):
            with again_and_again(self.shell.interrupt, 0.2):
                result = self.shell.run("sleep 60; echo after")
            self.assertEqual((result.outcome, result.exit_code, result.stdout), ("interrupted", 130, ""))
        self.assertEqual(self.out("echo fine"), "fine\n")

    def test_the_end_of_the_shell_is_told_as_the_engine_saw_it(self) -> None:
        for command, status, outcome in (("exit 3", 3, "exited"), ("kill -9 $$", None, "signaled"), ("exec sh -c 'exit 5'", 5, "exited")):
            shell = self.open()
            result = shell.run(f"echo last; {command}")
            assert result.result is not None
            self.assertEqual((result.outcome, result.exit_code, result.stdout), ("ended", status, "last\n"), command)
            self.assertEqual(result.result.outcome, outcome)
            self.assertFalse(result.ok)
            with self.assertRaises(belljar.CallEnded):
                shell.run("echo x")

    def test_a_background_writer_does_not_keep_the_reader(self) -> None:
        self.shell.run("while :; do echo yyyyyyyyyyyyyyyyyyyyyy; done & job=$!")
        for _ in range(3):
            self.assertTrue(self.shell.run("true").ok)
        self.shell.run("kill $job")


class Forged(Case):
    """What a command can say of itself."""

    def test_a_report_that_is_none_ends_the_shell(self) -> None:
        for words in ("nonsense\\n", "1 0 0\\n", "-1 0\\n", "x" * 100, "1 99999\\n"):
            shell = self.open()
            with self.assertRaises(belljar.ResultError):
                shell.run(FORGE.format(words) + "; sleep 60")
            with self.assertRaises(belljar.CallEnded):
                shell.run("echo x")

    def test_a_status_of_another_command_is_ignored(self) -> None:
        self.assertEqual(self.shell.run(FORGE.format("77 0\\n") + "; false").exit_code, 1)
        self.assertEqual(self.out("echo fine"), "fine\n")

    def test_a_command_can_forge_its_own_status_and_that_is_all(self) -> None:
        number = self.shell._number + 1
        result = self.shell.run(FORGE.format(f"{number} 42\\n") + "; sleep 0.2; false")
        self.assertIn(result.exit_code, (1, 42))
        self.assertEqual(self.out("echo fine"), "fine\n")


class _Plain(Case):
    """Without bash."""

    def setUp(self) -> None:
        patch = mock.patch.object(_shell, "_START", "exec /bin/sh -i")
        patch.start()
        self.addCleanup(patch.stop)
        super().setUp()


class PlainCommands(_Plain, Commands):
    """The same without bash."""


class PlainLimits(_Plain, Limits):
    """The same without bash."""


class Life(Case):
    """Opening and closing."""

    def test_close_ends_a_command_that_runs(self) -> None:
        shell = self.jar.shell()
        results: List[Any] = []
        thread = threading.Thread(target=lambda: results.append(shell.run(f"sleep 60 # {self.marker}")))
        thread.start()
        self.wait_for(lambda: shell._is_busy, "the command runs")
        shell.close()
        thread.join()
        self.assertEqual(results[0].outcome, "ended")
        shell.close()
        with self.assertRaises(belljar.EngineError):
            shell.run("echo")

    def test_a_second_command_waits_for_the_first(self) -> None:
        threads = [threading.Thread(target=self.shell.run, args=(f"echo {n} >> o; sleep 0.05; echo {n} >> o",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        order = self.out("cat o").split()
        self.assertEqual(order[::2], order[1::2])

    def test_nothing_is_left_open(self) -> None:
        before = len(open_fds())
        for _ in range(5):
            with self.jar.shell() as shell:
                shell.run("echo")
            with self.jar.shell() as shell:
                shell.run("exit")
        self.assertEqual(len(open_fds()), before)

    def test_one_that_is_forgotten_is_closed_with_a_warning(self) -> None:
        shell = self.jar.shell()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del shell
            gc.collect()
        self.assertIn("never closed", str(caught[0].message))

    def test_it_ends_with_the_jar(self) -> None:
        jar = belljar.Jar()
        with jar.shell() as shell:
            jar.close()
            self.assertEqual(shell.run("echo x").outcome, "ended")

    def test_in_a_forked_host_it_is_not_there(self) -> None:
        out = self.host(
            "import belljar, os\n"
            "with belljar.Jar() as jar, jar.shell() as shell:\n"
            "    pid = os.fork()\n"
            "    if pid == 0:\n"
            "        try:\n"
            "            shell.run('true')\n"
            "        except belljar.EngineError:\n"
            "            print('refused', flush=True)\n"
            "        os._exit(0)\n"
            "    os.waitpid(pid, 0)\n"
            "    print(shell.run('echo fine').stdout, end='')\n"
        )
        self.assertEqual(out, "refused\nfine\n")

    def test_without_user_namespaces(self) -> None:
        host.need("landlock")
        script = """
import belljar
with belljar.Jar() as jar:
    with jar.shell() as shell:
        print(jar.rung, shell.run("x=1; cd /usr").exit_code, shell.run("pwd; echo $x").stdout.split())
        print(shell.run("sleep 60", timeout=0.3).outcome, shell.run("echo $x").stdout)
    with jar.python() as it:
        print(it.run("x = 1").error, it.run("x + 1").value, it.run("import time; time.sleep(60)", timeout=0.3).error.kind)
with belljar.Interpreter() as it:
    print(it.run("x = 1").error, it.run("x + 1").value, it.fork().run("x").value)
"""
        done = subprocess.run(
            [paths.tool("deny"), "userns", "--", sys.executable, "-W", "ignore", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        expected = ["landlock 0 ['/usr', '1']", "timeout 1", "", "None 2 timeout", "None 2 1"]
        self.assertEqual((done.stderr, done.stdout.splitlines()), ("", expected))


class InLoops(Case):
    """The _async twins."""

    def test_all_of_them(self) -> None:
        async def main() -> None:
            async with await self.jar.shell_async() as shell:
                self.assertEqual((await shell.run_async("x=3; echo $x")).stdout, "3\n")
                asyncio.get_running_loop().call_later(0.2, shell.interrupt)
                self.assertEqual((await shell.run_async("sleep 60")).outcome, "interrupted")
                await shell.interrupt_async()
                task = asyncio.ensure_future(shell.run_async("sleep 60"))
                await asyncio.sleep(0.2)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual((await shell.run_async("echo $x")).stdout, "3\n")
            await shell.close_async()

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
