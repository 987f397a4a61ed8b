# SPDX-License-Identifier: Apache-2.0
"""Ending unnoticed, ending as somebody else, not ending without a sound: every run ends when it must, and nothing is left.

Layers: the pid namespace on the namespace rung; the subreaper's hunt on the landlock rung; the engine's own clock on both.
Storms, which need the machine to themselves, are in test_ends.py.
"""

from __future__ import annotations

import subprocess
import unittest
from pathlib import Path

from adversarial_support import AttackCase, EndCase
from harness.bounds import LASTING
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE


@on_ways(NAMESPACE, LANDLOCK)
class Ends(EndCase):
    def test_a_command_that_is_traced_by_its_parent(self) -> None:
        """PTRACE_TRACEME makes the jar's first process the tracer, which must not be led astray by stops."""
        for how in ("stop", "exec", "crash"):
            with self.subTest(how=how):
                self.timed(self.tool("attack_end"), "traceme", how, self.marker)
        result = self.json("--", self.tool("attack_end"), "traceme", "exit")
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 3))

    def test_the_end_of_a_main_process_that_a_left_over_traces(self) -> None:
        """A zombie under a tracer is not shown to its parent; the run ends with the main process all the same."""
        result = self.json("--timeout", f"{LASTING}s", "--grace", "0", "--", self.tool("attack_end"), "tracer")
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 7))

    def test_closing_all_streams_hides_nobody(self) -> None:
        self.timed(self.tool("attack_end"), "quiet")

    def test_stopping_oneself_and_others(self) -> None:
        for script in ("kill -STOP $$", "kill -STOP $PPID; kill -STOP $$", "sleep 1000 & kill -STOP $!; kill -STOP $$"):
            with self.subTest(script=script):
                self.timed("/bin/sh", "-c", script, self.marker)

    def test_every_signal_ignored_or_blocked(self) -> None:
        script = """
signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
time.sleep(1000)
"""
        self.timed(*[str(word) for word in self.python(script)[1:]])

    def test_the_end_looks_like_what_it_was(self) -> None:
        """Exit statuses and texts that imitate a limit are what they are: no limit."""
        cases = {
            "exit 137": ("exited", 137, None),
            "exit 139": ("exited", 139, None),
            "exit 124": ("exited", 124, None),
            "exit 125": ("exited", 125, None),
            "kill -KILL $$": ("signaled", None, "SIGKILL"),
            "kill -SEGV $$": ("signaled", None, "SIGSEGV"),
            "kill -XCPU $$": ("signaled", None, "SIGXCPU"),
            "kill -TERM $$": ("signaled", None, "SIGTERM"),
            "echo MemoryError: Cannot allocate memory >&2; exit 1": ("exited", 1, None),
            "echo Killed >&2; echo 'Out of memory: Killed process' >&2; exit 137": ("exited", 137, None),
        }
        for script, expected in cases.items():
            with self.subTest(script=script):
                result = self.json("--timeout", "20s", *self.sh(script))
                self.assertEqual((result["outcome"], result["exit_code"], result["signal"]), expected)
                self.assertEqual((result["killed"], result["timed_out"], result["limits_hit"]), (False, False, []))

    def test_a_crash_in_a_child_is_not_the_command_s(self) -> None:
        result = self.json(*self.sh("sh -c 'kill -SEGV $$'; sh -c 'kill -KILL $$'; exit 4"))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 4))


@on_ways(NAMESPACE, LANDLOCK)
class Litter(AttackCase):
    def own_directory(self, script: str) -> Path:
        """Run a script in the run's own directory (its home's parent); that directory."""
        done = self.jar(*self.sh(f'cd "$HOME/.." && pwd && {script}'), timeout=40)
        self.assertEqual(done.status, 0, done)
        return Path(done.stdout.decode().splitlines()[0])

    def test_the_run_s_directory_is_removed_whatever_is_in_it(self) -> None:
        if self.way is NAMESPACE:
            self.skipTest("only the landlock rung has such a directory")
        scripts = {
            "deep": "i=0; while [ $i -lt 600 ]; do mkdir d && cd d || break; i=$((i+1)); done; true",
            "locked": "mkdir -p a/b/c; touch a/b/c/f; chmod 0 a/b/c a/b a",
            "links": f"ln -s {self.outside} out; ln -s / root; ln -s .. up; mkfifo pipe",
            "odd names": "touch -- -rf '--' ' ' '*' 'a\nb'; mkdir -- '-x'",
            "many": "mkdir m; cd m; i=0; while [ $i -lt 3000 ]; do : > f$i; i=$((i+1)); done",
            "names of the sweeper": "for i in 0 1 2 3 4 5 6 7 8 9; do mkdir -p .belljar-$i/d/e/f; done",
            "names of the sweeper and nothing else": (
                "rmdir home tmp workspace; for i in 0 1 2 3 4 5 6 7 8 9; do mkdir -p .belljar-$i/d/e/f; done"
            ),
            "a tree of names of the sweeper": (
                "rmdir home tmp workspace; for i in 0 1 2 3; do for j in 0 1 2 3 4 5 6 7; do "
                "mkdir -p .belljar-$i/.belljar-$j/.belljar-$i/x/y; done; done"
            ),
        }
        for name, script in scripts.items():
            with self.subTest(name=name):
                path = self.own_directory(script)
                is_left = path.exists()
                if is_left:
                    subprocess.run(["rm", "-rf", str(path)], check=False)
                self.assertFalse(is_left, f"{path} is left on the host")
        self.assertEqual(self.secret.read_text(), self.SECRET)


if __name__ == "__main__":
    unittest.main()
