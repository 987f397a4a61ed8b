# SPDX-License-Identifier: Apache-2.0
"""A service with Delegate=yes: its own cgroup is its user's, the one above is not. The tests' own processes are one down."""

from __future__ import annotations

import json
import subprocess
import time
import unittest
from pathlib import Path
from typing import List

from harness import paths
from harness.case import JarCase
from harness.result import Result, limit_of

MIB = 1 << 20
SERVICE = Path("/sys/fs/cgroup") / Path("/proc/self/cgroup").read_text().strip().partition("::/")[2]
SERVICE = SERVICE.parent
ENTER = 'echo 0 > "$1/cgroup.procs" || exit 99; shift; exec "$@"'


class Service(JarCase):
    def in_service(self, *words: str) -> List[str]:
        """belljar as the main process of the service: alone in its cgroup."""
        return ["/bin/sh", "-c", ENTER, "sh", str(SERVICE), paths.belljar(), "run", *words]

    def run_in_service(self, *words: str) -> Result:
        done = subprocess.run(self.in_service("--json", *words), cwd=self.work, env=self.env, capture_output=True, timeout=60, check=False)
        self.assertTrue(done.stdout, done.stderr)
        return dict(json.loads(done.stdout))

    def check_as_before(self) -> None:
        """Nothing is handed on, and nobody but the tests' own cgroup is there."""
        self.assertEqual((SERVICE / "cgroup.subtree_control").read_text().split(), [])
        self.assertEqual([path.name for path in SERVICE.iterdir() if path.is_dir()], ["main"])

    def test_alone_it_makes_room_for_the_run(self) -> None:
        result = self.run_in_service("--memory", "64M", "--pids", "20", "--", self.tool("limit_memory"), f"touch:{200 * MIB}")
        self.assertEqual((result["outcome"], result["enforced"]["memory"], result["enforced"]["pids"]), ("memory", "cgroup2", "cgroup2"), result)
        hit = limit_of(result, "memory")
        assert hit is not None
        self.assertEqual(hit["enforced_by"], "cgroup2")
        self.check_as_before()

    def test_every_limit(self) -> None:
        result = self.run_in_service("--memory", "64M", "--pids", "20", "--cpu-time", "10s", "--", "true")
        self.assertEqual([result["enforced"][key] for key in ("memory", "pids", "cpu_time")], ["cgroup2"] * 3, result)
        self.check_as_before()

    def test_with_company_nobody_is_moved(self) -> None:
        company = subprocess.Popen(["/bin/sh", "-c", ENTER, "sh", str(SERVICE), "sleep", "1000"])
        self.addCleanup(company.wait)
        self.addCleanup(company.kill)
        self.wait_for(lambda: (SERVICE / "cgroup.procs").read_text().split(), "it is there")
        result = self.run_in_service("--memory", "64M", "--", "true")
        self.assertEqual((result["outcome"], result["enforced"]["memory"]), ("exited", "meter"), result)
        self.assertEqual((SERVICE / "cgroup.procs").read_text().split(), [str(company.pid)])
        self.check_as_before()

    def test_what_a_killed_engine_left_does_not_stand_in_the_way(self) -> None:
        process = subprocess.Popen(self.in_service("--memory", "64M", "--", "sleep", "1000", self.marker), cwd=self.work, env=self.env)
        self.wait_for(lambda: [path for path in SERVICE.glob("belljar-*/cgroup.procs") if len(path.read_text().split()) > 1], "a jar")
        process.kill()
        process.wait(10)
        self.check_nothing_left()
        # systemd starts nothing more in such a cgroup; whoever takes it over does as it would.
        deadline = time.monotonic() + 10
        for path in [path for path in SERVICE.iterdir() if path.name.startswith("belljar-")]:
            while path.exists() and time.monotonic() < deadline:
                try:
                    path.rmdir()
                except OSError:
                    time.sleep(0.01)
        (SERVICE / "cgroup.subtree_control").write_text("-memory -pids")
        self.check_as_before()


if __name__ == "__main__":
    unittest.main()
