# SPDX-License-Identifier: Apache-2.0
"""Not ending, ending unnoticed, ending others: every run ends when it must, and nothing is left.

Layers: the pid namespace on the namespace rung; the subreaper's hunt on the landlock rung; the engine's own clock on both.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import time
import unittest
from pathlib import Path
from typing import Callable, Optional, Set

from adversarial_support import SLOWNESS, AttackCase
from harness import census, runner
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

# Fork bombs and storms disturb whoever measures time beside them.
RUN_ALONE = True
KILLS = 100


def no_more_than(processes: int) -> Optional[Callable[[], None]]:
    """A bound on all processes of this user, for bombs that Belljar does not bound itself. Root has none."""
    if os.geteuid() == 0:
        return None
    running = sum(1 for name in os.listdir("/proc") if name.isdigit() and _owner(name) == os.geteuid())
    limit = running + processes
    return lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


def _owner(name: str) -> int:
    try:
        return os.stat(f"/proc/{name}").st_uid
    except OSError:
        return -1


@on_ways(NAMESPACE, LANDLOCK)
class Ends(AttackCase):
    def timed(self, *args: str, seconds: float, preexec_fn: Optional[Callable[[], None]] = None) -> "runner.Result":
        begun = time.monotonic()
        _, result = self.status("--timeout", "1s", "--grace", "300ms", "--", *args, timeout=45, preexec_fn=preexec_fn)
        self.assertEqual(result["outcome"], "timeout")
        self.assertLess(time.monotonic() - begun, seconds * SLOWNESS)
        self.assertEqual(census.wait_until_none(2.0, self.marker), [])
        return result

    def test_a_fork_bomb_within_the_limit_is_ended(self) -> None:
        """On the namespace rung --pids bounds it; on the other only the hunt ends it."""
        tool = self.tool("attack_end")
        if self.way is NAMESPACE:
            begun = time.monotonic()
            args = ["--pids", "200", "--timeout", "1s", "--grace", "300ms", "--", tool, "bomb", "30", self.marker]
            _, result = self.status(*args, timeout=45)
            self.assertEqual(result["outcome"], "timeout")
            self.assertLess(time.monotonic() - begun, 5 * SLOWNESS)
            return
        bound = no_more_than(250)
        if bound is None:
            self.skipTest("needs:user root's processes cannot be bounded here")
        self.timed(tool, "bomb", "35", self.marker, seconds=8, preexec_fn=bound)

    def test_a_bomb_does_not_outlive_its_main_process(self) -> None:
        bound = no_more_than(150) if self.way is LANDLOCK else None
        if self.way is LANDLOCK and bound is None:
            self.skipTest("needs:user root's processes cannot be bounded here")
        tool = self.tool("attack_end")
        begun = time.monotonic()
        script = f'setsid "{tool}" bomb 30 & sleep 0.5; exit 3'
        options = ["--pids", "150"] if self.way is NAMESPACE else []
        done = self.jar(*options, *self.sh(script), timeout=45, preexec_fn=bound)
        self.assertEqual(done.status, 3)
        self.assertLess(time.monotonic() - begun, 8 * SLOWNESS)

    def test_chains_of_hopping_processes(self) -> None:
        for chains in ("1", "8", "40"):
            with self.subTest(chains=chains):
                self.timed(self.tool("attack_end"), "hop", chains, "25", seconds=7, preexec_fn=no_more_than(800))

    def test_zombies_and_orphans_by_the_thousand(self) -> None:
        for kind, count in (("zombies", "3000"), ("orphans", "8000")):
            with self.subTest(kind=kind):
                options = ["--pids", "none"] if kind == "zombies" and self.way is NAMESPACE else []
                result = self.json(*options, "--", self.tool("attack_end"), kind, count, timeout=40)
                self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 5), result["stderr"])

    def test_a_command_that_is_traced_by_its_parent(self) -> None:
        """PTRACE_TRACEME makes the jar's first process the tracer, which must not be led astray by stops."""
        for how in ("stop", "exec", "crash"):
            with self.subTest(how=how):
                self.timed(self.tool("attack_end"), "traceme", how, self.marker, seconds=5)
        result = self.json("--", self.tool("attack_end"), "traceme", "exit", timeout=10)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 3))

    def test_the_end_of_a_main_process_that_a_left_over_traces(self) -> None:
        """A zombie under a tracer is not shown to its parent; the run ends with the main process all the same."""
        begun = time.monotonic()
        result = self.json("--timeout", "8s", "--grace", "0", "--", self.tool("attack_end"), "tracer", timeout=30)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 7))
        self.assertLess(time.monotonic() - begun, 4 * SLOWNESS)

    def test_closing_all_streams_hides_nobody(self) -> None:
        self.timed(self.tool("attack_end"), "quiet", seconds=4)

    def test_stopping_oneself_and_others(self) -> None:
        for script in ("kill -STOP $$", "kill -STOP $PPID; kill -STOP $$", "sleep 1000 & kill -STOP $!; kill -STOP $$"):
            with self.subTest(script=script):
                self.timed("/bin/sh", "-c", script, self.marker, seconds=4)

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
        self.timed(*[str(word) for word in self.python(script)[1:]], seconds=6)

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
    def litter(self) -> Set[str]:
        """Entries of ours in the places where one could be left."""
        found: Set[str] = set()
        for place in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
            for name in os.listdir(place):
                if name.startswith("belljar-") and not name.startswith("belljar-test-"):
                    path = Path(place) / name
                    try:
                        if path.stat().st_uid == os.geteuid():
                            found.add(str(path))
                    except OSError:
                        pass
        return found

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

    def test_sudden_deaths_at_random_moments(self) -> None:
        """SIGKILL of belljar: the leash is a socket, so the jar's first process notices and ends everything."""
        before = self.litter()
        tool = self.tool("leftover")
        for _ in range(KILLS):
            process = self.start("--", tool, "setsid", "double", "ignore", "stay", "--", self.marker)
            time.sleep(random.random() * 0.03)
            process.kill()
            process.wait(10)
        self.assertEqual(census.wait_until_none(10.0, self.marker), [])
        self.wait_for(lambda: not self.litter() - before, f"no litter: {self.litter() - before}")

    def test_sudden_deaths_while_a_bomb_goes_off(self) -> None:
        bound = no_more_than(60)
        for _ in range(4):
            process = self.start("--", self.tool("attack_end"), "hop", "4", "20", preexec_fn=bound)
            time.sleep(0.05 + random.random() * 0.1)
            process.kill()
            process.wait(10)
        self.assertEqual(census.wait_until_none(10.0, self.marker), [])

    def test_sudden_deaths_with_a_terminal(self) -> None:
        """With --pty too the jar must not hold its own leash."""
        for _ in range(8):
            process = self.start("--pty", "--", self.tool("leftover"), "setsid", "ignore", "stay", "--", self.marker)
            time.sleep(0.1)
            process.kill()
            process.wait(10)
        self.assertEqual(census.wait_until_none(10.0, self.marker), [])


if __name__ == "__main__":
    unittest.main()
