# SPDX-License-Identifier: Apache-2.0
"""What ./dev says while it builds, with a ninja that only pretends."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

DEV = pathlib.Path(__file__).resolve().parents[2] / "dev"

MESON = """#!/bin/sh
echo 'build tools: phony' >build/build.ninja
"""
# As ninja does it: a line for each step, and for one that failed what it was and what it said.
NINJA = """#!/bin/sh
case "$*" in
*--quiet*) [ "$FAKE_NINJA" = new ] || exit 1 ;;
esac
case "$*" in
*--version*) echo 1; exit ;;
*-n*) echo 'ninja: would do something'; exit ;;
*--quiet*) ;;
*) echo '[1/2] Compiling one.c'; echo '[2/2] Compiling two.c' ;;
esac
[ -z "$FAKE_FAILURE" ] || { echo 'FAILED: two.o'; echo 'two.c: no semicolon'; exit 1; }
"""


class Building(unittest.TestCase):
    """./dev build in a checkout with nothing in it."""

    def build(self, ninja: str, failure: str = "") -> subprocess.CompletedProcess[str]:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bjt-"))
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy2(DEV, folder / "dev")
        programs = folder / "programs"
        programs.mkdir()
        for name, text in (("meson", MESON), ("ninja", NINJA), ("gcc", "#!/bin/sh\n"), ("musl-gcc", "#!/bin/sh\n")):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "FAKE_NINJA": ninja, "FAKE_FAILURE": failure}
        return subprocess.run([folder / "dev", "build", "tools"], env=env, capture_output=True, text=True, timeout=60)

    def test_one_line_says_that_it_builds(self) -> None:
        for ninja in ("new", "old"):
            done = self.build(ninja)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            self.assertEqual(done.stderr.splitlines(), ["dev: configuring build", "dev: building build"], ninja)

    def test_what_failed_is_shown(self) -> None:
        for ninja in ("new", "old"):
            done = self.build(ninja, "yes")
            self.assertNotEqual(done.returncode, 0, ninja)
            self.assertEqual(done.stderr.splitlines()[2:], ["FAILED: two.o", "two.c: no semicolon"], ninja)


if __name__ == "__main__":
    unittest.main()
