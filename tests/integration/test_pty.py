# SPDX-License-Identifier: Apache-2.0
"""A terminal of the command's own: size, keys, job control, and the caller's terminal as it was afterwards."""

from __future__ import annotations

import os
import signal
import termios
import unittest
from typing import Any

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase, every_way
from harness.runner import NAMESPACE, read_until, send
from harness.terminal import Terminal

CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = b"\x03", b"\x04", b"\x1a", b"\x1c"

# Waits until something was typed, changes the terminal's modes without reading it, and then reads to the end as a line editor does,
# or as cat does.
CHANGES_MODES = """
import os, select, sys, termios, tty
before = termios.tcgetattr(0)
is_raw_before = sys.argv[1] == "1"
if is_raw_before:
    tty.setraw(0)
select.select([0], [], [])
if is_raw_before:
    termios.tcsetattr(0, termios.TCSANOW, before)
    while os.read(0, 100) != b"":
        pass
else:
    tty.setraw(0, termios.TCSANOW)
    while b"\\x04" not in os.read(0, 100):
        pass
print("ended")
"""


class TerminalCase(JarCase):
    """A test that sits in front of a terminal."""

    def terminal(self, *args: Any, rows: int = 24, columns: int = 80, verb: str = "run", **options: Any) -> Terminal:
        terminal = Terminal(rows, columns)
        self.addCleanup(terminal.close)
        terminal.start(args, way=self.way, verb=verb, env=self.env, cwd=self.work, **options)
        return terminal

    def assert_modes_restored(self, terminal: Terminal) -> None:
        self.wait_for(lambda: terminal.read_modes() == terminal.modes, "the terminal's modes are restored")


@every_way
class Pty(TerminalCase):
    def test_the_command_has_a_terminal(self) -> None:
        result = self.json("--pty", *self.sh("test -t 0 && test -t 1 && test -t 2 && echo yes"))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        self.assertEqual(result["stdout"].replace("\r\n", "\n"), "yes\n")

    def test_all_output_is_stdout(self) -> None:
        result = self.json("--pty", *self.sh("echo out; echo err >&2; echo tty >/dev/tty"))
        self.assertEqual(result["stdout"].replace("\r\n", "\n"), "out\nerr\ntty\n")
        self.assertEqual((result["stderr"], result["stderr_bytes"]), ("", 0))

    def test_without_the_option_there_is_no_terminal(self) -> None:
        terminal = self.terminal(
            *self.sh("for i in 0 1 2; do test -t $i && echo tty $i; done; echo checked; read x; echo got $x")
        )
        terminal.expect(b"checked")
        terminal.type(b"typed\n")
        terminal.expect(b"got typed")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"tty ", terminal.screen())
        self.assert_modes_restored(terminal)

    def test_without_the_option_dev_tty_is_not_the_callers(self) -> None:
        terminal = self.terminal(*self.sh("echo escaped > /dev/tty; echo checked"))
        terminal.expect(b"checked")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"escaped\r\n", terminal.screen())

    def test_keys_reach_the_command(self) -> None:
        terminal = self.terminal("--pty", *self.sh("echo ready; read x; echo got $x"))
        terminal.expect(b"ready")
        terminal.type(b"some words\r")
        terminal.expect(b"got some words")
        self.assertEqual(terminal.end(), 0)
        self.assert_modes_restored(terminal)

    def test_the_callers_echo_is_off(self) -> None:
        terminal = self.terminal("--pty", *self.sh("stty -echo; echo ready; read x; echo done"))
        terminal.expect(b"ready")
        terminal.type(b"password\r")
        terminal.expect(b"done")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"password", terminal.screen())

    def test_end_of_input(self) -> None:
        terminal = self.terminal("--pty", *self.sh("echo ready; cat; echo after"))
        terminal.expect(b"ready")
        terminal.type(b"x\r")
        terminal.type(CTRL_D)
        terminal.expect(b"after")
        self.assertEqual(terminal.end(), 0)

    def test_the_window_has_the_callers_size(self) -> None:
        terminal = self.terminal("--pty", *self.sh("stty size"), rows=33, columns=101)
        terminal.expect(b"33 101")
        self.assertEqual(terminal.end(), 0)

    def test_a_new_size_is_passed_on(self) -> None:
        catcher = self.tool("catcher")
        script = f'stty size; "{catcher}" 0 first & wait $! ; true'
        terminal = self.terminal("--pty", *self.sh(f"trap 'stty size; exit 4' WINCH; {script}"), rows=20, columns=70)
        terminal.expect(b"ready first")
        terminal.resize(41, 123)
        terminal.expect(b"41 123")
        self.assertEqual(terminal.end(), 4)

    def test_ctrl_c_reaches_the_command(self) -> None:
        terminal = self.terminal("--pty", "--", self.tool("catcher"), "6", self.marker)
        terminal.expect(b"ready")
        terminal.type(CTRL_C)
        terminal.expect(b"got SIGINT")
        self.assertEqual(terminal.end(), 6)
        self.assert_modes_restored(terminal)

    def test_ctrl_c_ends_a_command_without_a_handler(self) -> None:
        terminal = self.terminal("--pty", *self.sh("echo ready; exec sleep 1000"))
        terminal.expect(b"ready")
        terminal.type(CTRL_C)
        self.assertEqual(terminal.end(), 130)

    def test_ctrl_c_is_no_cancel(self) -> None:
        result_file = self.base / "result"
        terminal = self.terminal("--pty", *self.sh("trap 'echo again' INT; echo ready; read x; read y; exit 9"))
        terminal.expect(b"ready")
        terminal.type(CTRL_C)
        terminal.expect(b"again")
        terminal.type(b"\r\r")
        self.assertEqual(terminal.end(), 9)
        self.assertFalse(result_file.exists())

    def test_the_modes_come_back_after_a_signal(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            terminal = self.terminal("--pty", "--grace", "200ms", *self.sh("echo ready; exec sleep 1000"))
            terminal.expect(b"ready")
            self.assertNotEqual(terminal.read_modes(), terminal.modes, "the terminal was never made raw")
            os.kill(terminal.pid(), number)
            self.assertEqual(terminal.end(), 128 + number)
            self.assert_modes_restored(terminal)

    def test_the_modes_come_back_after_a_sudden_death(self) -> None:
        terminal = self.terminal("--pty", *self.sh("echo ready; exec sleep 1000"))
        terminal.expect(b"ready")
        os.kill(terminal.pid(), signal.SIGKILL)
        self.assertEqual(terminal.end(), -9)
        self.assert_modes_restored(terminal)

    def test_the_modes_come_back_after_a_timeout(self) -> None:
        terminal = self.terminal("--pty", "--timeout", "500ms", "--grace", "0", *self.sh("echo ready; exec sleep 1000"))
        terminal.expect(b"ready")
        self.assertEqual(terminal.end(), 124)
        self.assert_modes_restored(terminal)

    def test_the_modes_come_back_after_a_failed_start(self) -> None:
        terminal = self.terminal("--pty", "--", "no-such-command")
        self.assertEqual(terminal.end(), 127)
        self.assert_modes_restored(terminal)

    def test_a_left_over_on_the_terminal_does_not_hold_the_call(self) -> None:
        result = self.json("--pty", "--", self.tool("leftover"), "hold", "ignore", "say", "--", self.marker, timeout=10)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        self.assertIn("left", result["stdout"])

    def test_the_cap_holds(self) -> None:
        result = self.json("--pty", "--output", "1000", "--", self.tool("writer"), "o:50000", "e:50000")
        self.assertEqual((len(result["stdout"]), result["truncated"], result["exit_code"]), (1000, True, 0))

    def test_all_output_of_a_short_command_arrives(self) -> None:
        for _ in range(10):
            result = self.json("--pty", "--", self.tool("writer"), "o:20000")
            self.assertEqual((result["stdout_bytes"], result["exit_code"]), (20000, 0))

    def test_input_from_a_pipe(self) -> None:
        result = self.json("--pty", *self.sh("read x; echo got $x"), stdin=b"piped\n")
        self.assertIn("got piped", result["stdout"])

    def test_the_end_of_input_holds_for_each_reader(self) -> None:
        result = self.json("--pty", *self.sh("cat; echo one; cat; echo two"), stdin=b"some")
        self.assertEqual((result["exit_code"], result["stdout"].replace("\r\n", "\n")), (0, "somesomeone\ntwo\n"))

    def test_the_end_of_input_outlives_a_change_of_modes(self) -> None:
        for is_raw_before in (False, True):
            with self.subTest(is_raw_before=is_raw_before):
                result = self.json("--pty", "--", "/usr/bin/python3", "-c", CHANGES_MODES, str(int(is_raw_before)), stdin=b"")
                self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)
                self.assertIn("ended", result["stdout"])

    def test_a_signal_to_belljar_cancels(self) -> None:
        process, status = self.start_status("--pty", "--grace", "1000s", "--", self.tool("catcher"), "5", self.marker)
        assert process.stdout
        read_until(process.stdout, b"ready")
        send(process, signal.SIGTERM)
        self.assertEqual(process.wait(BOUND), 143)
        self.assertIn(b'"cancelled"', status.read())


class NamespacePty(TerminalCase):
    way = NAMESPACE

    def test_the_terminal_has_a_name(self) -> None:
        result = self.json("--pty", *self.sh("t=$(tty) && test -c $t && echo named > $t && ls -A /dev/pts"))
        self.assertEqual(result["exit_code"], 0, result)
        self.assertIn("named", result["stdout"])

    def test_the_command_can_make_more_terminals(self) -> None:
        if not os.path.exists("/usr/bin/script"):
            self.skipTest("needs:script to open a second terminal")
        result = self.json("--", "script", "-qec", "tty; echo inner", "/dev/null")
        self.assertEqual(result["exit_code"], 0, result)
        self.assertIn("inner", result["stdout"])

    def test_job_control(self) -> None:
        self.env["PS1"] = "$ "
        terminal = self.terminal("--pty", "--", "/bin/sh", "-i")
        terminal.type(b"echo rea''dy; sleep 1000 # %s\r" % self.marker.encode())
        terminal.expect(b"ready")
        self.wait_for(
            lambda: any("sleep 1000" in census.command_line(p) for p in census.descendants(os.getpid())), "sleep"
        )
        terminal.type(CTRL_Z)
        at = terminal.expect(b"Stopped")
        terminal.type(b"jobs; kill %1; fg; echo back''again\r")
        terminal.expect(b"backagain", after=at)
        terminal.type(b"exit 5\r")
        self.assertEqual(terminal.end(), 5)
        self.assert_modes_restored(terminal)


class Shell(TerminalCase):
    def test_a_session(self) -> None:
        terminal = self.terminal(verb="shell")
        terminal.type(b"test -t 0 && echo in''teractive; pwd; echo made > made\r")
        at = terminal.expect(b"interactive")
        terminal.expect(str(self.work).encode(), after=at)
        terminal.type(b"exit 7\r")
        self.assertEqual(terminal.end(), 7)
        self.assertEqual((self.work / "made").read_text(), "made\n")
        self.assert_modes_restored(terminal)

    def test_job_control(self) -> None:
        terminal = self.terminal(verb="shell")
        terminal.type(b"echo rea''dy; sleep 1000\r")
        terminal.expect(b"ready")
        self.wait_for(
            lambda: any("sleep 1000" in census.command_line(p) for p in census.descendants(os.getpid())), "sleep"
        )
        terminal.type(CTRL_Z)
        terminal.expect(b"Stopped")
        terminal.type(b"kill %1; exit 3\r")
        terminal.pump(0.3)
        terminal.type(b"exit 3\r")
        self.assertEqual(terminal.end(), 3)

    def test_ctrl_c_does_not_end_the_shell(self) -> None:
        terminal = self.terminal(verb="shell")
        terminal.type(b"echo rea''dy; sleep 1000\r")
        terminal.expect(b"ready")
        self.wait_for(
            lambda: any("sleep 1000" in census.command_line(p) for p in census.descendants(os.getpid())), "sleep"
        )
        terminal.type(CTRL_C)
        terminal.type(b"echo still''here\r")
        terminal.expect(b"stillhere")
        terminal.type(b"exit\r")
        terminal.end()

    def test_end_of_input_ends_the_shell(self) -> None:
        terminal = self.terminal(verb="shell")
        terminal.type(b"echo rea''dy\r")
        terminal.expect(b"ready")
        terminal.type(CTRL_D)
        self.assertEqual(terminal.end(), 0)
        self.assert_modes_restored(terminal)

    def test_a_shell_without_input_ends(self) -> None:
        for shell in ("/bin/sh", "/bin/bash"):
            self.env["SHELL"] = shell
            with self.subTest(shell=shell), open("/dev/null", "rb") as nothing:
                self.assertEqual(self.start(verb="shell", stdin=nothing).wait(BOUND), 0)

    def test_a_shell_runs_what_a_pipe_has_and_ends(self) -> None:
        for text in (b"echo pi''ped; exit 7\n", b"echo pi''ped; exit 7"):
            for shell in ("/bin/sh", "/bin/bash"):
                self.env["SHELL"] = shell
                with self.subTest(shell=shell, text=text):
                    process = self.start(verb="shell", stdin=-1)
                    stdout, _ = process.communicate(text, timeout=BOUND)
                    self.assertIn(b"piped", stdout)
                    self.assertEqual(process.returncode, 7)

    def test_a_shell_ends_with_the_terminal_it_reads(self) -> None:
        master, slave = os.openpty()
        try:
            process = self.start(verb="shell", stdin=slave)
            os.write(master, b"echo rea''dy\n")
            assert process.stdout
            read_until(process.stdout, b"ready")
        finally:
            os.close(slave)
            os.close(master)
        process.communicate(timeout=BOUND)
        self.assertEqual(process.returncode, 0)

    def test_options_hold(self) -> None:
        terminal = self.terminal("-C", "none", "--env", "GREETING=hello", verb="shell")
        terminal.type(b"echo $GREETING''there; ls -A | wc -l\r")
        terminal.expect(b"hellothere")
        terminal.type(b"exit\r")
        self.assertEqual(terminal.end(), 0)


@every_way
class Introduction(TerminalCase):
    """What a shell in a jar says at its start, and how its prompt looks."""

    def shell(self, path: str, *options: str) -> Terminal:
        if not os.path.exists(path):
            self.skipTest(f"there is no {path}")
        self.env["SHELL"] = path
        return self.terminal("--color", "never", *options, verb="shell")

    def leave(self, terminal: Terminal) -> bytes:
        terminal.type(b"exit 4\r")
        self.assertEqual(terminal.end(), 4)
        self.assert_modes_restored(terminal)
        return terminal.screen()

    def test_it_says_what_the_jar_is_like(self) -> None:
        terminal = self.shell("/bin/sh", "--timeout", "90s")
        terminal.expect(b"(jar) ")
        lines = self.leave(terminal).split(b"\r\n")
        said = [line.decode() for line in lines if line.startswith(b"belljar:")]
        self.assertIn(f"belljar: a shell in a jar (rung {self.way.rung}), in {self.work}; exit leaves it", said)
        self.assertTrue(any("limits: timeout 90s, pids 1024" in line for line in said), said)
        networks = {"namespace": "none but a private loopback", "landlock": "none", "process": "the host's"}
        self.assertTrue(any(f"network: {networks[str(self.way.rung)]};" in line for line in said), said)
        self.assertEqual(f"belljar: writable: {self.work}" in said, self.way.rung != "process", said)

    def test_every_shell_shows_it(self) -> None:
        for path in ("/bin/sh", "/bin/bash", "/bin/zsh"):
            if os.path.exists(path):
                with self.subTest(shell=path):
                    terminal = self.shell(path)
                    terminal.expect(b"(jar)")
                    self.leave(terminal)

    def test_quiet_says_nothing(self) -> None:
        terminal = self.shell("/bin/sh", "-q")
        terminal.expect(b"(jar) ")
        self.assertNotIn(b"belljar:", self.leave(terminal))

    def test_a_prompt_that_was_chosen_is_kept(self) -> None:
        terminal = self.shell("/bin/sh", "--env", "PS1=mine> ")
        terminal.expect(b"mine> ")
        self.assertNotIn(b"(jar)", self.leave(terminal))

    def test_a_command_on_a_terminal_is_not_introduced(self) -> None:
        terminal = self.terminal("--pty", *self.sh("echo alo''ne; env"))
        terminal.expect(b"alone")
        terminal.end()
        self.assertNotIn(b"(jar)", terminal.screen())
        self.assertNotIn(b"a shell in a jar", terminal.screen())


class Stop(TerminalCase):
    """Ctrl-Z without a terminal of the command's own stops the tree and belljar."""

    def states(self, process_pid: int) -> "list[str]":
        return [census.state(pid) for pid in census.descendants(process_pid) if "beat" in census.command_line(pid)]


@every_way
class StopTree(Stop):
    def test_the_tree_stops_with_belljar_and_goes_on_with_it(self) -> None:
        beat = self.work / "beat"
        script = f'"{self.tool("leftover")}" setsid beat hold say -- $0; read x; echo done'
        process = self.start(*self.sh(script), stdin=-1)
        assert process.stdout and process.stdin
        read_until(process.stdout, b"left\n")
        send(process, signal.SIGTSTP)
        self.wait_for(lambda: census.state(process.pid) == "T", "belljar is stopped")
        size = beat.stat().st_size
        self.wait_for(lambda: set(self.states(process.pid)) == {"T"}, "the tree is stopped")
        size = beat.stat().st_size
        self.assertFalse(self.grows(beat, size, 0.2))
        send(process, signal.SIGCONT)
        self.wait_for(lambda: beat.stat().st_size > size, "the tree goes on")
        stdout, _ = process.communicate(b"\n", timeout=BOUND)
        self.assertEqual((process.returncode, stdout), (0, b"done\n"))

    @staticmethod
    def grows(path: Any, size: int, seconds: float) -> bool:
        import time

        time.sleep(seconds)
        return bool(path.stat().st_size > size)

    def test_ctrl_z_on_a_terminal(self) -> None:
        terminal = self.terminal(*self.sh("echo ready; read x; echo got $x"))
        terminal.expect(b"ready")
        terminal.type(CTRL_Z)
        self.assertIn(terminal.report("stopped"), (signal.SIGTSTP, signal.SIGSTOP))
        terminal.resume()
        terminal.type(b"more\n")
        terminal.expect(b"got more")
        self.assertEqual(terminal.end(), 0)
        self.assert_modes_restored(terminal)

    def test_ctrl_c_on_a_terminal(self) -> None:
        terminal = self.terminal("--grace", "1000s", "--", self.tool("catcher"), "5", self.marker)
        terminal.expect(b"ready")
        terminal.type(CTRL_C)
        terminal.expect(b"got SIGINT")
        self.assertEqual(terminal.end(), 130)

    def test_quit_on_a_terminal(self) -> None:
        terminal = self.terminal("--grace", "1000s", "--", self.tool("catcher"), "5", self.marker)
        terminal.expect(b"ready")
        terminal.type(CTRL_BACKSLASH)
        terminal.expect(b"got SIGQUIT")
        self.assertEqual(terminal.end(), 131)

    def test_a_hangup_ends_the_run(self) -> None:
        terminal = self.terminal("--grace", "200ms", *self.sh("echo ready; exec sleep 1000"))
        terminal.expect(b"ready")
        assert terminal.leader is not None
        os.kill(terminal.leader.pid, signal.SIGKILL)
        terminal.leader.wait(BOUND)
        self.assertEqual(census.wait_until_none(15.0, self.marker), [])

    def test_a_stopped_belljar_that_is_killed_leaves_nothing(self) -> None:
        process = self.start(*self.sh("echo ready; exec sleep 1000"))
        assert process.stdout
        read_until(process.stdout, b"ready")
        send(process, signal.SIGTSTP)
        self.wait_for(lambda: census.state(process.pid) == "T", "belljar is stopped")
        process.kill()
        process.wait(BOUND)
        self.assertEqual(census.wait_until_none(10.0, self.marker), [])


class BackgroundTerminal(TerminalCase):
    def test_stdin_at_its_end_on_a_terminal(self) -> None:
        terminal = self.terminal(*self.sh("echo ready; cat; echo after"))
        terminal.expect(b"ready")
        terminal.type(b"line\n" + CTRL_D)
        terminal.expect(b"after")
        self.assertEqual(terminal.end(), 0)

    def test_a_terminal_as_output_keeps_its_modes(self) -> None:
        terminal = self.terminal("--", "true")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(terminal.read_modes(), terminal.modes)
        self.assertTrue(terminal.modes[3] & termios.ECHO)


if __name__ == "__main__":
    unittest.main()
