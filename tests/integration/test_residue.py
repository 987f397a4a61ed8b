# SPDX-License-Identifier: Apache-2.0
"""The host after many runs is the host before them: no mounts, no files, no cgroups, no processes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path
from typing import Callable, List, Set

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase, every_way, on_ways
from harness.runner import LANDLOCK, finish, read_until, send

RUN_ALONE = True
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run")


def cgroups() -> Set[str]:
    """Those of ours: other programs come and go too."""
    return census.picture()["cgroups"]


def files() -> Set[str]:
    """Entries of ours in the common places; other programs may be busy there, so only names that tell of a jar."""
    found: Set[str] = set()
    for place in PLACES:
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue
        for entry in entries:
            if "jar" in entry.name.lower() and not entry.name.startswith("belljar-test-") and is_ours(entry):
                found.add(entry.path)
    return found


def is_ours(entry: "os.DirEntry[str]") -> bool:
    """Made by this user; gone entries are nobody's."""
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except OSError:
        return False


PICTURES: List[Callable[[], Set[str]]] = [census.mounts, cgroups, files]


@every_way
class Residue(JarCase):
    def assorted_runs(self) -> None:
        """About twenty runs that end in different ways."""
        leftover, writer = self.tool("leftover"), self.tool("writer")
        self.jar("--", "true")
        self.jar("--", "no-such-command")
        self.jar("-C", "none", *self.sh("touch a; mkdir b; exit 3"))
        self.jar("-C", "/no/such", "--", "true")
        self.jar("--bogus")
        self.jar(*self.sh("touch $HOME/x $TMPDIR/y; mkdir -p $TMPDIR/a/b; chmod 0 $TMPDIR/a"))
        self.jar(*self.sh("kill -KILL $$"))
        self.jar("--timeout", "200ms", "--grace", "0", "--", "sleep", "1000")
        self.jar("--", leftover, "setsid", "double", "ignore", "--", self.marker)
        self.jar("--output", "10", "--overflow", "kill", "--", writer, "o:0")
        self.jar("--json", "--", writer, "o:300000")
        self.jar("--events", "--", writer, "o:300000")
        self.jar("--pty", "--", "tty")
        self.jar("--memory", "64M", "--cpu-time", "5s", "--pids", "30", "--", "true")
        self.jar("--disk", "1M", *self.sh("head -c 5000000 /dev/zero > $TMPDIR/big; true"))
        self.jar("--tmpfs", "/scratch", "--", "true")
        self.jar("--hide", "/usr/share", "--", "true")
        self.jar("--ro", "/usr/share:/data", "--", "true")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            process = self.start("--grace", "200ms", "--", leftover, "say", "stay", "--", self.marker)
            assert process.stdout
            read_until(process.stdout, b"left\n")
            send(process, number)
            process.wait(BOUND)
        # As below: where the count of processes needs a cgroup, the killed one's is empty, and the next run sweeps it.
        self.check_nothing_left()
        self.jar("--", "true")

    def tree(self) -> List[str]:
        """Everything below the test's own directory."""
        return sorted(str(path) for path in self.base.rglob("*"))

    def check_as_before(self, act: Callable[[], None]) -> None:
        """Do something, and compare the host before and after."""
        self.tool("leftover")
        self.tool("writer")
        self.env["TMPDIR"] = str(self.directory("scratch"))
        self.env["XDG_RUNTIME_DIR"] = str(self.directory("runtime"))
        before = [picture() for picture in PICTURES]
        tree = self.tree()
        act()
        self.check_nothing_left()
        self.wait_for(lambda: self.tree() == tree, f"nothing new below {self.base}")
        for i, picture in enumerate(PICTURES):
            # Others use this host too: what comes later is not ours, and what they have goes again.
            left = picture() - before[i]
            deadline = time.monotonic() + BOUND
            while left and time.monotonic() < deadline:
                time.sleep(0.05)
                left &= picture()
            self.assertEqual(left, set(), f"new {picture.__name__}")

    def test_the_host_is_as_it_was(self) -> None:
        self.check_as_before(self.assorted_runs)

    def sudden_deaths(self) -> None:
        """Kill belljar at many moments of a run's first milliseconds."""
        words = ["--", self.tool("leftover"), "setsid", "say", "stay", "--", self.marker]
        self.kill_at_moments(200, b"left\n", "--memory", "256M", *words)
        # An empty cgroup is all that stays behind; whoever makes the next one sweeps it away.
        self.check_nothing_left()
        self.jar("--memory", "256M", "--", "true")

    def test_two_hundred_sudden_deaths(self) -> None:
        self.check_as_before(self.sudden_deaths)


def make_removable(path: Path) -> None:
    """What the run under test has left alone goes with the rest of the test's files."""
    if path.exists():
        path.chmod(0o700)


@on_ways(LANDLOCK)
class Abandoned(JarCase):
    """What is left where the engine and the jar's first process were killed at once."""

    def abandoned(self, digit: str, age_seconds: float) -> Path:
        top = self.base / "runtime" / ("belljar-" + digit * 16)
        (top / "home" / "deep" / "er").mkdir(parents=True)
        (top / "home" / "deep" / "file").write_text("x")
        (top / "home" / "deep").chmod(0o500)
        self.addCleanup(make_removable, top / "home" / "deep")
        (top / "link").symlink_to(self.home)
        then = time.time() - age_seconds
        os.utime(top, (then, then))
        return top

    def test_the_next_run_removes_it(self) -> None:
        self.env["XDG_RUNTIME_DIR"] = str(self.directory("runtime"))
        (self.home / "kept").write_text("x")
        old, young, held = self.abandoned("a", 3600), self.abandoned("b", 0), self.abandoned("c", 3600)
        named = self.base / "runtime" / "belljar-something"
        named.mkdir()
        os.utime(named, (1, 1))
        lock = os.open(held, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertEqual(self.jar("--", "true").status, 0)
        finally:
            os.close(lock)
        self.assertFalse(old.exists())
        self.assertTrue((self.home / "kept").exists())
        self.assertEqual([path.is_dir() for path in (young, held, named)], [True] * 3)

    def test_a_run_holds_its_own(self) -> None:
        self.env["XDG_RUNTIME_DIR"] = str(self.directory("runtime"))
        script = "touch -d '2 hours ago' $HOME/..; touch $TMPDIR/mine; echo ready; read x; ls $TMPDIR"
        process = self.start(*self.sh(script), stdin=subprocess.PIPE)
        assert process.stdin and process.stdout
        read_until(process.stdout, b"ready\n")
        self.assertEqual(self.jar("--", "true").status, 0)
        self.assertEqual(finish(process, b"\n").stdout, b"mine\n")


if __name__ == "__main__":
    unittest.main()
