# SPDX-License-Identifier: Apache-2.0
"""--die-with-parent: the run ends when the process that started Belljar is gone, and not before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

from harness import census, runner
from harness.bounds import BOUND
from harness.case import JarCase, every_way
from harness.result import Result, check_result

# Each starts the command line that it is given, and says so on its standard input's other end by living or not.
STARTS = "import subprocess, sys\nchild = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, {})\n"
WAITS = "sys.stdin.read()\n"
# A thread starts it and ends; the process goes on.
THREAD = (
    "import subprocess, sys, threading\nchildren = []\n"
    "thread = threading.Thread(target=lambda: children.append(subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)))\n"
    "thread.start()\nthread.join()\nopen('thread-gone', 'w').close()\nsys.exit(children[0].wait())\n"
)
# The first thread starts it and ends, which leaves a process whose leader is dead.
LEADER = (
    "import ctypes, os, platform, subprocess, sys, threading\n"
    "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)\n"
    "def wait():\n    main.join(0.2)\n    open('thread-gone', 'w').close()\n    os._exit(child.wait())\n"
    "main = threading.main_thread()\nthreading.Thread(target=wait).start()\n"
    "ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)\n"
)
# Its child begins when it is gone itself, in the session that it had.
DEAD = (
    "import os, sys, time\nos.setsid()\nparent = os.getpid()\n"
    "if os.fork() == 0:\n    while os.getppid() == parent:\n        time.sleep(0.01)\n    os.execv(sys.argv[1], sys.argv[1:])\nos._exit(0)\n"
)


@every_way
class DieWithParent(JarCase):
    def parent(self, script: str, *options: str, command: str) -> "subprocess.Popen[bytes]":
        """A process that starts belljar as the script says; the result goes to the file "result"."""
        words = runner.command(["--json", "--timeout", "60s", *options, *self.sh(command)], self.way, "run")
        self.result = self.base / "result"
        with open(self.result, "wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", script, *words], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL, cwd=self.work, env=self.env
            )
        self.addCleanup(self._stop, process)
        return process

    def finished(self) -> Result:
        self.wait_for(lambda: self.result.read_bytes().endswith(b"\n"), "a result", 30)
        return check_result(json.loads(self.result.read_bytes()))

    def running(self, script: str, *options: str) -> "subprocess.Popen[bytes]":
        process = self.parent(script, *options, command="touch ready; while ! test -e go; do sleep 0.02; done")
        self.wait_for((self.work / "ready").exists, "the command runs", 30)
        return process

    def check_cancelled(self) -> None:
        result = self.finished()
        self.assertEqual((result["outcome"], result["killed"]), ("cancelled", True), result)
        self.assertEqual(census.wait_until_none(10.0, self.marker), [])

    def check_not_cancelled(self) -> None:
        (self.work / "go").touch()
        result = self.finished()
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)

    def test_a_parent_that_is_killed(self) -> None:
        process = self.running(STARTS.format("") + WAITS, "--die-with-parent")
        process.send_signal(signal.SIGKILL)
        self.check_cancelled()

    def test_a_parent_that_exits(self) -> None:
        process = self.running(STARTS.format("") + WAITS, "--die-with-parent")
        assert process.stdin
        process.stdin.close()
        self.assertEqual(process.wait(BOUND), 0)
        self.check_cancelled()

    def test_in_a_session_of_its_own(self) -> None:
        process = self.running(STARTS.format("start_new_session=True") + WAITS, "--die-with-parent")
        process.kill()
        self.check_cancelled()

    def test_a_command_that_stays_is_killed_after_the_grace(self) -> None:
        process = self.parent(
            STARTS.format("") + WAITS, "--die-with-parent", "--grace", "200ms", command="trap '' TERM; touch ready; while :; do sleep 0.05; done"
        )
        self.wait_for((self.work / "ready").exists, "the command runs", 30)
        process.kill()
        self.check_cancelled()

    def test_a_parent_that_was_gone_before(self) -> None:
        self.parent(DEAD, "--die-with-parent", command="touch ran").wait(BOUND)
        result = self.finished()
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "host"), result)
        self.assertIn("gone already", result["error"]["message"])
        self.assertFalse((self.work / "ran").exists())

    def test_a_thread_of_the_parent_that_ends(self) -> None:
        for name, script in (("another", THREAD), ("the first", LEADER)):
            with self.subTest(thread=name):
                for path in (self.work / word for word in ("ready", "go", "thread-gone")):
                    path.unlink(missing_ok=True)
                process = self.running(script, "--die-with-parent")
                self.wait_for((self.work / "thread-gone").exists, "the thread's end", 30)
                self.check_not_cancelled()
                self.assertEqual(process.wait(BOUND), 0)

    def test_without_the_option_the_run_goes_on(self) -> None:
        process = self.running(STARTS.format("") + WAITS)
        process.kill()
        process.wait(BOUND)
        self.check_not_cancelled()
