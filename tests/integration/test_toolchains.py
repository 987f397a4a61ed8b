# SPDX-License-Identifier: Apache-2.0
"""Tools below the home directory that PATH leads to: visible with what they need, and nothing else with them."""

from __future__ import annotations

import unittest
from pathlib import Path

from harness.case import JarCase, on_ways
from harness.runner import LANDLOCK, NAMESPACE


@on_ways(NAMESPACE, LANDLOCK)
class Toolchains(JarCase):
    def program(self, path: Path, text: str = "echo made by $0") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def add_path(self, path: Path) -> None:
        self.env["PATH"] = f"{path}:{self.env['PATH']}"

    def test_a_program_of_path_comes_with_its_directory(self) -> None:
        self.program(self.home / "tools" / "x" / "bin" / "tool", 'cat "$(dirname "$0")/../lib/data"')
        (self.home / "tools" / "x" / "lib").mkdir()
        (self.home / "tools" / "x" / "lib" / "data").write_text("data")
        (self.home / "tools" / "secret").write_text("secret")
        self.add_path(self.home / "tools" / "x" / "bin")
        done = self.jar("--", "tool")
        self.assertEqual((done.status, done.stdout), (0, b"data"), done)
        done = self.jar(*self.sh(f"cat {self.home}/tools/secret; echo x > {self.home}/tools/x/lib/data"))
        self.assertNotEqual(done.status, 0)
        self.assertNotIn(b"secret", done.stdout)
        self.assertEqual((self.home / "tools" / "x" / "lib" / "data").read_text(), "data")

    def test_a_link_of_an_installer_leads_to_its_program(self) -> None:
        """Alone from anywhere; with what is around it from where tools are kept."""
        folder = self.home / ".local" / "bin"
        folder.mkdir(parents=True)
        for top in ("apps/tool-1.0", ".local/opt/kept-1.0"):
            text = 'echo here; cat "$(dirname "$(readlink -f "$0")")/../data" 2>/dev/null'
            path = self.program(self.home / top / "bin" / "tool", text)
            (path.parent.parent / "data").write_text("data\n")
            (folder / Path(top).name[:4]).symlink_to(path)
        self.add_path(folder)
        done = self.jar(*self.sh("tool; kept"))
        self.assertEqual(done.stdout, b"here\nhere\ndata\n", done)

    def test_a_planted_link_on_the_way_shows_nothing(self) -> None:
        """A command that ran in the project put a link to somewhere else in the place of a directory that PATH names."""
        venv = self.work / ".venv"
        self.program(venv / "bin" / "tool")
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "key").write_text("secret")
        self.add_path(venv / "bin")
        self.assertEqual(self.jar(*self.sh(f"mv .venv/bin .venv/old; ln -s {self.home}/.ssh .venv/bin")).status, 0)
        done = self.jar(*self.sh(f"cat {self.home}/.ssh/key .venv/bin/key"))
        self.assertNotIn(b"secret", done.stdout)
        other = self.directory("other")
        done = self.jar("-C", other, *self.sh(f"cat {self.home}/.ssh/key"))
        self.assertNotIn(b"secret", done.stdout)

    def test_a_projects_own_tools_stay_as_writable_as_the_project(self) -> None:
        project = self.home / "project"
        self.program(project / ".venv" / "bin" / "tool")
        self.add_path(project / ".venv" / "bin")
        done = self.jar("-C", project, *self.sh("tool; touch .venv/new .venv/bin/new"))
        self.assertEqual(done.status, 0, done)
        self.assertTrue((project / ".venv" / "bin" / "new").exists())


if __name__ == "__main__":
    unittest.main()
