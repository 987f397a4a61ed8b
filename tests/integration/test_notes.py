# SPDX-License-Identifier: Apache-2.0
"""What `belljar run` says on stderr: nothing while all is well, and what a reader needs when a command failed."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

from harness import paths
from harness.case import JarCase, on_ways
from harness.runner import NAMESPACE

BURN = "while :; do :; done"


class Ends(JarCase):
    """A limit that ends a command is named with its amount."""

    def said(self, *words: str) -> bytes:
        done = self.jar(*words)
        self.assertEqual(done.status, 137, done)
        return done.stderr

    def test_the_limit_of_processor_time_has_an_amount(self) -> None:
        self.assertIn(b"ended by the CPU time limit of 200ms\n", self.said("--cpu-time", "200ms", "--", "sh", "-c", BURN))

    def test_the_limit_of_memory_has_an_amount(self) -> None:
        script = "x = [b'1' * 1000000 for _ in range(500)]"
        self.assertIn(b"ended by the memory limit of 40M\n", self.said("--memory", "40M", "--", "python3", "-c", script))


@on_ways(NAMESPACE)
class Notes(JarCase):
    """Notes that are always in results are read by people only when they help."""

    def make_environment(self, top: Path) -> Path:
        (top / "bin").mkdir(parents=True)
        (top / "pyvenv.cfg").touch()
        return top

    def test_the_environment_that_one_works_in_is_not_worth_a_line_on_each_run(self) -> None:
        tools = self.make_environment(self.work / ".venv") / "bin"
        bin_of_npm = self.work / "node_modules/.bin"
        bin_of_npm.mkdir(parents=True)
        self.env.update(VIRTUAL_ENV=str(tools.parent), PATH=f"{tools}:{bin_of_npm}:{self.env['PATH']}")
        for status in ("true", "false"):
            self.assertEqual(self.jar(status).stderr, b"")
        self.assertIn(f"your PATH has '{tools}', '{bin_of_npm}', which the command may write to".encode(), self.jar("-v", "true").stderr)
        self.assertEqual([note["name"] for note in self.json("true")["notes"]], ["path"])

    def test_other_directories_that_run_what_a_command_leaves_are_named_before_each_run(self) -> None:
        environment = self.make_environment(self.work / ".venv")
        other = self.make_environment(self.work / "other") / "bin"
        self.env.update(VIRTUAL_ENV=str(environment), PATH=f"{other}:{environment}/bin:{self.env['PATH']}")
        said = self.jar("true").stderr
        self.assertIn(f"your PATH has '{other}', which".encode(), said)
        self.assertNotIn(b".venv", said)

    def test_a_command_that_cannot_install_beside_belljar_is_followed_by_the_reason(self) -> None:
        for number, (tree, program) in enumerate((
            (".venv", ".venv/lib/python3/site-packages/belljar/_bin/belljar"),
            ("node_modules", "node_modules/@belljar/linux-x64/bin/belljar"),
        )):
            project = self.work / str(number)
            engine = project / program
            engine.parent.mkdir(parents=True)
            self.make_environment(project / ".venv")
            shutil.copy(paths.belljar(), engine)
            reason = f"'{project / tree}' is read-only in the jar: Belljar itself runs from it, and nothing can be installed there\n"
            with mock.patch.object(paths, "belljar", lambda found=engine: str(found)):
                failed = self.jar("-C", project, "mkdir", f"{tree}/new").stderr.decode()
                self.assertEqual(self.jar("-C", project, "true").stderr, b"")
            self.assertIn("Read-only file system\n", failed)
            self.assertEqual((failed.count(reason), failed.count("Belljar itself")), (1, 1), failed)
            self.assertIn("  hint: to install packages in a jar, have Belljar outside the project", failed)
