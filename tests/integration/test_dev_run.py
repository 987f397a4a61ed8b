# SPDX-License-Identifier: Apache-2.0
"""./dev run inside its own checkout, where the command may write to the tree that the engine lies in."""

from __future__ import annotations

import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import List

from harness import paths
from harness.bounds import BOUND
from harness.case import JarCase, on_ways
from harness.runner import LANDLOCK, NAMESPACE

DEV = paths.TESTS.parent / "dev"


@on_ways(NAMESPACE, LANDLOCK)
class DevRun(JarCase):
    def setUp(self) -> None:
        super().setUp()
        self.tree = self.base / "checkout"
        (self.tree / "build").mkdir(parents=True)
        shutil.copy2(DEV, self.tree / "dev")
        shutil.copy2(paths.belljar(), self.tree / "build" / "belljar")
        # As if it were built already: nothing to configure, nothing to make.
        programs = self.base / "programs"
        programs.mkdir()
        for name in ("meson", "ninja", "gcc", "musl-gcc"):
            (programs / name).write_text("#!/bin/sh\necho 'ninja: no work to do.'\n")
            (programs / name).chmod(0o755)
        (self.tree / "build" / "python").mkdir()
        (self.tree / "build" / "build.ninja").write_text("")
        (self.tree / "tools").mkdir()
        (self.tree / "python").mkdir()
        (self.tree / "tools" / "package.py").write_text("")
        (self.tree / "build" / "python" / "made").write_text("")
        self.home = self.base / "home-of-dev"
        self.home.mkdir()
        self.env = {"PATH": f"{programs}:{paths.SYSTEM_PATH}", "HOME": str(self.home)}

    def dev_run(self, where: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        deny: List[str] = [paths.tool("deny"), *self.way.deny, "--"] if self.way.deny else []
        command = [*deny, str(self.tree / "dev"), "run", "-q", "--", *words]
        return subprocess.run(command, cwd=where, env=self.env, capture_output=True, text=True, timeout=BOUND)

    def test_the_command_runs_in_the_checkout_and_cannot_change_the_engine(self) -> None:
        copies = self.home / ".cache" / "belljar"
        script = "echo ran; pwd; for f in \"$@\"; do true >> \"$f\" && echo changed; done; echo new > made"
        done = self.dev_run(self.tree, "sh", "-c", script, "sh", *(str(path) for path in self.engines_out_of_reach()))
        self.assertEqual((done.returncode, done.stdout), (0, f"ran\n{self.tree}\n"), done.stderr)
        self.assertEqual((self.tree / "made").read_text(), "new\n")
        self.assertEqual(copies.exists(), self.way is LANDLOCK)

    def engines_out_of_reach(self) -> List[Path]:
        """The program that ./dev run starts must not be writable: the tree's own, or the copy."""
        if self.way is not LANDLOCK:
            return [self.tree / "build" / "belljar"]
        self.assertEqual(self.dev_run(self.tree, "true").returncode, 0)
        (copy,) = (self.home / ".cache" / "belljar").glob("dev*/belljar")
        self.assertTrue(os.access(copy, os.X_OK))
        return [copy]

    def test_elsewhere_the_built_engine_runs(self) -> None:
        done = self.dev_run(self.work, "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertFalse((self.home / ".cache").exists())


if __name__ == "__main__":
    unittest.main()
