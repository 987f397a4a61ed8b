# SPDX-License-Identifier: Apache-2.0
"""Host ids of root's jars: no two engines share one, whatever their own process numbers are."""

from __future__ import annotations

import os
import re
import subprocess
import time
import unittest
from pathlib import Path
from typing import List, Set

from harness import host, paths
from harness.case import JarCase, on_ways
from harness.runner import NAMESPACE

ENGINES = 6


@on_ways(NAMESPACE)
class HostIds(JarCase):
    def setUp(self) -> None:
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs:root whose jars have ids of their own")
        host.need("userns")

    def start_engine(self) -> "subprocess.Popen[bytes]":
        """Belljar as the second process of a pid namespace of its own."""
        words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words += ["sh", "-c", '"$@"; exit $?', "sh", paths.belljar(), "run", "--rung", "namespace", "--", "sh", "-c", f"sleep 30; : {self.marker}"]
        process = subprocess.Popen(words, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(self._stop, process)
        return process

    def ids(self) -> List[int]:
        """The users of the commands that run now; those of the engines are 0."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.marker.encode() in (entry / "cmdline").read_bytes():
                    uid = re.search(r"^Uid:\t(\d+)", (entry / "status").read_text(), re.MULTILINE)
                    found.append(int(uid.group(1)) if uid else -1)
            except OSError:
                continue
        return [uid for uid in found if uid]

    def test_engines_in_different_pid_namespaces(self) -> None:
        engines = [self.start_engine() for _ in range(ENGINES)]
        end = time.monotonic() + 60
        while len(self.ids()) < ENGINES and time.monotonic() < end:
            self.assertEqual([engine.poll() for engine in engines], [None] * ENGINES)
            time.sleep(0.05)
        ids = self.ids()
        self.assertEqual(len(ids), ENGINES, ids)
        different: Set[int] = set(ids)
        self.assertEqual(len(different), ENGINES, ids)
        for engine in engines:
            engine.kill()
            engine.wait()


if __name__ == "__main__":
    unittest.main()
