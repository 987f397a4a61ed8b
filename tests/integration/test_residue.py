# SPDX-License-Identifier: Apache-2.0
"""The host after many runs is the host before them: no mounts, no files, no cgroups, no processes."""

from __future__ import annotations

import os
import signal
import time
import unittest
from pathlib import Path
from typing import Callable, List, Set

from harness.case import JarCase, every_way
from harness.runner import send

RUN_ALONE = True
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run")


def mounts() -> Set[str]:
    """Mount points of this process's namespace."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def cgroups() -> Set[str]:
    """Every cgroup there is."""
    return {root for root, _, _ in os.walk("/sys/fs/cgroup")}


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


PICTURES: List[Callable[[], Set[str]]] = [mounts, cgroups, files]


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
            process = self.start("--grace", "200ms", "--", leftover, "stay", "--", self.marker)
            time.sleep(0.2)
            send(process, number)
            process.wait(15)

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
            deadline = time.monotonic() + 10
            while picture() - before[i] and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(picture() - before[i], set(), f"new {picture.__name__}")

    def test_the_host_is_as_it_was(self) -> None:
        self.check_as_before(self.assorted_runs)

    def sudden_deaths(self) -> None:
        """Kill belljar at many moments of a run's first milliseconds."""
        for i in range(200):
            process = self.start("--memory", "256M", "--", self.tool("leftover"), "setsid", "stay", "--", self.marker)
            time.sleep(0.0002 * (i % 60))
            process.kill()
            process.wait(10)
        # An empty cgroup is all that stays behind; whoever makes the next one sweeps it away.
        self.check_nothing_left()
        self.jar("--memory", "256M", "--", "true")

    def test_two_hundred_sudden_deaths(self) -> None:
        self.check_as_before(self.sudden_deaths)


if __name__ == "__main__":
    unittest.main()
