# SPDX-License-Identifier: Apache-2.0
"""A host whose Yama hides the memory of processes (kernel.yama.ptrace_scope 2): nobody can be told what a command opens."""

from __future__ import annotations

import unittest
from pathlib import Path

from harness.case import JarCase, on_ways
from harness.runner import LANDLOCK, NAMESPACE

SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


@on_ways(NAMESPACE, LANDLOCK)
class HiddenMemory(JarCase):
    def test_a_level_that_cannot_be_had_is_missing(self) -> None:
        self.assertEqual(SCOPE.read_text(), "2\n")
        (self.base / "data").write_text("secret")
        for level in ("files", "trace"):
            with self.subTest(level):
                result = self.json("--ledger", level, "--", "cat", self.base / "data", self.marker)
                self.assertEqual((result["exit_code"], result["stdout"]), (1, ""))
                (why,) = [entry["why"] for entry in result["missing"] if entry["name"] == "ledger"]
                self.assertIn("does not let Belljar see", why)
                self.assertEqual(result["denied"], [])

    def test_basic_misses_nothing(self) -> None:
        result = self.json("--", "true", self.marker)
        self.assertNotIn("ledger", [entry["name"] for entry in result["missing"]])


if __name__ == "__main__":
    unittest.main()
