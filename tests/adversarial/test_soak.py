# SPDX-License-Identifier: Apache-2.0
"""The soak, small: hostile runs at once, then sudden deaths; `./dev soak` has the large one."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

# It compares the whole host before and after.
RUN_ALONE = True

SOAK = Path(__file__).resolve().parent.parent / "soak" / "run"


class Soak(unittest.TestCase):
    def test_a_small_soak_leaves_the_host_as_it_was(self) -> None:
        done = subprocess.run(
            [sys.executable, str(SOAK), "4", "16", "20"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=500,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])


if __name__ == "__main__":
    unittest.main()
