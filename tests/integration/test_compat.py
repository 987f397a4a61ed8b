# SPDX-License-Identifier: Apache-2.0
"""Everyday programs in a default jar: the light cases of tests/compat, one test each. ./dev compat runs all of them."""

from __future__ import annotations

import os
import re
import subprocess
import unittest
from typing import Callable

from compat.cases import CASES, Case, lacking, write_files
from harness.case import JarCase


class Compat(JarCase):
    def run_outside(self, case: Case) -> int:
        folder = self.directory("outside")
        write_files(case, str(folder))
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", case.script],
            cwd=folder,
            env={**self.env, "TMPDIR": str(self.directory("tmp"))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=case.seconds,
        )
        return done.returncode

    def check(self, case: Case) -> None:
        """The script succeeds in the jar and says what it should."""
        missing = lacking(case, self.env, os.geteuid())
        if missing:
            self.skipTest(f"needs:{missing}")
        write_files(case, str(self.work))
        done = self.jar("--", "/bin/sh", "-eu", "-c", case.script, self.marker, timeout=case.seconds)
        text = (done.stdout + done.stderr).decode(errors="replace")
        if done.status != 0 and self.run_outside(case) != 0:
            self.skipTest(f"needs:program {case.needs[0]} that works on this host")
        self.assertEqual((done.status, [words for words in case.says if words not in text]), (0, []), text)


def make_test(case: Case) -> Callable[[Compat], None]:
    def test(self: Compat) -> None:
        self.check(case)

    return test


for each in CASES:
    if each.is_light:
        setattr(Compat, "test_" + re.sub(r"\W+", "_", each.name.lower()).strip("_"), make_test(each))


if __name__ == "__main__":
    unittest.main()
