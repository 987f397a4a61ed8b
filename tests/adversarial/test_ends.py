# SPDX-License-Identifier: Apache-2.0
"""Not ending, by the thousand: bombs, hopping chains, sudden deaths. Every run ends when it must, and nothing is left.

Layers: the pid namespace on the namespace rung; the subreaper's hunt on the landlock rung; the engine's own clock on both.
What ends without a storm is in test_quiet_ends.py.
"""

from __future__ import annotations

import os
import resource
import unittest
from pathlib import Path
from typing import Callable, Optional, Set

from adversarial_support import AttackCase, EndCase
from harness import census
from harness.bounds import LASTING
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

# Fork bombs and storms disturb whoever measures time beside them.
RUN_ALONE = True
KILLS = 50


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
class Storms(EndCase):
    def test_a_fork_bomb_within_the_limit_is_ended(self) -> None:
        """On the namespace rung --pids bounds it; on the other only the hunt ends it."""
        tool = self.tool("attack_end")
        if self.way is NAMESPACE:
            args = ["--pids", "200", "--timeout", "1s", "--grace", "300ms", "--", tool, "bomb", LASTING, self.marker]
            _, result = self.status(*args)
            self.assertEqual(result["outcome"], "timeout")
            return
        bound = no_more_than(250)
        if bound is None:
            self.skipTest("needs:user root's processes cannot be bounded here")
        self.timed(tool, "bomb", LASTING, self.marker, preexec_fn=bound)

    def test_a_bomb_does_not_outlive_its_main_process(self) -> None:
        bound = no_more_than(150) if self.way is LANDLOCK else None
        if self.way is LANDLOCK and bound is None:
            self.skipTest("needs:user root's processes cannot be bounded here")
        tool = self.tool("attack_end")
        script = f'setsid "{tool}" bomb {LASTING} & sleep 0.5; exit 3'
        options = ["--pids", "150"] if self.way is NAMESPACE else []
        done = self.jar(*options, *self.sh(script), preexec_fn=bound)
        self.assertEqual(done.status, 3)

    def test_chains_of_hopping_processes(self) -> None:
        for chains in ("1", "8", "40"):
            with self.subTest(chains=chains):
                self.timed(self.tool("attack_end"), "hop", chains, LASTING, preexec_fn=no_more_than(800))

    def test_zombies_and_orphans_by_the_thousand(self) -> None:
        for kind, count in (("zombies", "3000"), ("orphans", "8000")):
            with self.subTest(kind=kind):
                options = ["--pids", "none"] if kind == "zombies" else []
                result = self.json(*options, "--", self.tool("attack_end"), kind, count, timeout=40)
                self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 5), result["stderr"])


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

    def test_sudden_deaths_at_random_moments(self) -> None:
        """SIGKILL of belljar: the leash is a socket, so the jar's first process notices and ends everything."""
        before = self.litter()
        words = ["setsid", "double", "ignore", "say", "stay", "--", self.marker]
        self.kill_at_moments(KILLS, b"left\n", "--", self.tool("leftover"), *words)
        self.assertEqual(census.wait_until_none(marker=self.marker), [])
        self.wait_for(lambda: not self.litter() - before, f"no litter: {self.litter() - before}")

    def test_sudden_deaths_while_a_bomb_goes_off(self) -> None:
        words = ["--", self.tool("attack_end"), "hop", "4", LASTING]
        self.kill_at_moments(8, b"hopping\n", *words, preexec_fn=no_more_than(60))
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_sudden_deaths_with_a_terminal(self) -> None:
        """With --pty too the jar must not hold its own leash."""
        words = ["--", self.tool("leftover"), "setsid", "ignore", "say", "stay", "--", self.marker]
        self.kill_at_moments(8, b"left", "--pty", *words)
        self.assertEqual(census.wait_until_none(marker=self.marker), [])


if __name__ == "__main__":
    unittest.main()
