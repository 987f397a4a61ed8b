# SPDX-License-Identifier: Apache-2.0
"""Belljar's own files in the reach of a command: what runs outside of every jar the next time.

Layers: read-only mounts over the programs, the packages and the trees they were installed into, and pins of the directories
above; without mounts such a policy is refused. What changes all the same, by another name of a file, fails the run.
"""

from __future__ import annotations

import json
import os
import shutil
import unittest
from pathlib import Path
from typing import Dict, List
from unittest import mock

from adversarial_support import AttackCase, contents
from harness import paths
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE, Arg

# Each path that is named: change it, put another in its place, and move every directory above it away.
REPLACE = """
import pathlib
for name in sys.argv[1:-1]:
    path = pathlib.Path(name)
    print("there", os.path.lexists(name), flush=True)
    if path.is_file():
        attempt("write " + name, lambda: os.open(name, os.O_WRONLY))
        attempt("truncate " + name, lambda: os.truncate(name, 0))
    attempt("chmod " + name, lambda: os.chmod(name, 0o777))
    attempt("new beside " + name, lambda: os.open(str(path) + ".py", os.O_WRONLY | os.O_CREAT))
    attempt("link out " + name, lambda: os.link(name, "stolen", follow_symlinks=False))
    attempt("rename " + name, lambda: os.rename(name, name + ".moved"))
    attempt("remove " + name, lambda: os.unlink(name))
    for above in path.parents:
        if str(above) == ".":
            break
        attempt("rename " + str(above), lambda: os.rename(above, str(above) + ".moved"))
        os.makedirs("spare", exist_ok=True)
        attempt("exchange " + str(above), lambda: call(316, -100, str(above).encode(), -100, b"spare", 2))
        os.rmdir("spare")
"""

# What each way of installing makes; "ENGINE" is the program.
LAYOUTS: Dict[str, Dict[str, str]] = {
    "npm": {
        "node_modules/@belljar/linux-x64/bin/belljar": "ENGINE",
        "node_modules/@belljar/linux-x64/bin/belljar-gate": "gate",
        "node_modules/@belljar/linux-x64/bin/belljar-prove": "prover",
        "node_modules/belljar/index.js": "client",
        "node_modules/.bin/belljar": "-> ../@belljar/linux-x64/bin/belljar",
        "node_modules/other/index.js": "other",
    },
    "venv": {
        ".venv/pyvenv.cfg": "",
        ".venv/bin/belljar": "script",
        ".venv/bin/python": "-> /usr/bin/python3",
        ".venv/lib/python3/site-packages/belljar/__init__.py": "client",
        ".venv/lib/python3/site-packages/belljar/_bin/belljar": "ENGINE",
        ".venv/lib/python3/site-packages/other.py": "other",
    },
    "target": {"vendor/belljar/__init__.py": "client", "vendor/belljar/_bin/belljar": "ENGINE"},
    "plain": {"tools/bin/belljar": "ENGINE", "tools/bin/belljar-gate": "gate", "tools/bin/belljar-prove": "prover"},
}
# New names there would run instead.
SHADOWS = {"npm": ["node_modules/belljar.js", "node_modules/.bin/new"], "venv": [".venv/lib/python3/site-packages/x.pth", ".venv/bin/new"]}


class OwnCase(AttackCase):
    def install(self, layout: str, top: Path) -> Path:
        """Install Belljar below a directory; the engine, which the tests run from then on."""
        found = None
        for name, content in LAYOUTS[layout].items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content == "ENGINE":
                shutil.copy(paths.belljar(), path)
                found = path
            elif content.startswith("-> "):
                path.symlink_to(content[3:])
            else:
                path.write_text(content)
                path.chmod(0o755)
        assert found
        return found

    def run_by(self, engine: Path) -> None:
        """Start this program in what follows."""
        patch = mock.patch.object(paths, "belljar", lambda: str(engine))
        patch.start()
        self.addCleanup(patch.stop)


@on_ways(NAMESPACE)
class Installed(OwnCase):
    def options(self, engine: Path) -> Dict[str, List[Arg]]:
        """What a policy may say of it."""
        return {
            "nothing": [],
            "not protected": ["--no-protect"],
            "named": ["--rw", engine],
            "package named": ["--rw", engine.parent.parent, "--no-protect"],
            "elsewhere": ["--rw", f"{engine.parent}:/d"],
            "layer": ["--cow"],
        }

    def check(self, layout: str) -> None:
        engine = self.install(layout, self.work)
        names = [name for name in LAYOUTS[layout] if layout == "npm" or "python" not in Path(name).name]
        self.run_by(engine)
        before = {name: contents(self.work / name) for name in names}
        for what, options in self.options(engine).items():
            with self.subTest(policy=what):
                result = self.json(*options, *self.python(REPLACE, *names))
                self.assertIsNone(result["error"], result)
                self.assertEqual(result["stdout"].count("there True"), len(names), result)
                answers = self.answers(result["stdout"])
                wrong = {name: answer for name, answer in answers.items() if answer == "ok" and not name.startswith("new beside")}
                self.assertEqual(wrong, {}, result)
                self.assertEqual({name: contents(self.work / name) for name in names}, before)
                for shadow in SHADOWS.get(layout, ()):
                    done = self.jar(*options, *self.sh(f"echo evil > {shadow}"))
                    self.assertIn(b"Read-only file system", done.stderr, done)
                done = self.jar("--rw", engine.parent, *self.sh(f"echo > {engine}; echo > /d/belljar"))
                self.assertNotEqual(done.status, 0)
        self.assertEqual({name: contents(self.work / name) for name in names}, before)

    def test_npm_install_in_the_project(self) -> None:
        self.check("npm")

    def test_an_environment_in_the_project(self) -> None:
        self.check("venv")

    def test_pip_install_to_a_directory_of_the_project(self) -> None:
        self.check("target")

    def test_a_program_in_the_project(self) -> None:
        self.check("plain")

    def test_what_belongs_to_the_project_stays_writable(self) -> None:
        self.run_by(self.install("npm", self.work))
        done = self.jar(*self.sh("echo x > new && mkdir d && mv new d && rm -r d && echo worked"))
        self.assertEqual(done.stdout, b"worked\n", done)

    def test_a_work_directory_in_the_tree_stays_writable(self) -> None:
        """Of an environment around the project only what leads to Belljar is held."""
        engine = self.install("venv", self.work)
        project = self.work / ".venv/src/project"
        project.mkdir(parents=True)
        self.run_by(engine)
        script = "echo x > new || exit 1; for f in bin/x lib/python3/site-packages/x.pth; do echo > ../../$f; done; true"
        result = self.json("--rw", self.work / ".venv", "-C", project, *self.sh(script))
        self.assertEqual((result["exit_code"], (project / "new").exists()), (0, True), result)
        self.assertEqual((result["stderr"].count("Read-only"), (self.work / ".venv/bin/x").exists()), (2, False), result)

    def test_the_messages_say_what_the_command_may_write_to(self) -> None:
        """An active environment that holds Belljar: PATH names it, and no command can leave anything there."""
        engine = self.install("venv", self.work)
        self.run_by(engine)
        self.env["PATH"] = f"{self.work}/.venv/bin:{self.env['PATH']}"
        self.assertEqual(self.jar(*self.sh("true")).stderr, b"")
        self.assertEqual([note["name"] for note in self.json(*self.sh("true"))["notes"]], ["belljar"])
        done = self.jar("--rw", self.work / ".venv", *self.sh("true"))
        self.assertIn(b".venv' is read-only in the jar: Belljar itself runs from it", done.stderr)
        self.env["PATH"] = f"{self.work}/tools:{self.env['PATH']}"
        (self.work / "tools").mkdir()
        self.assertIn(b"your PATH has '%b', which" % str(self.work / "tools").encode(), self.jar(*self.sh("true")).stderr)

    def test_no_change_is_proposed(self) -> None:
        engine = self.install("npm", self.work)
        self.run_by(engine)
        done = self.belljar("why", engine, "write", verb="")
        self.assertIn(b"Belljar itself runs from", done.stdout)
        self.assertNotIn(b"--rw", done.stdout)


@on_ways(LANDLOCK)
class InstalledWithoutMounts(OwnCase):
    def test_a_policy_that_could_write_to_it_is_refused(self) -> None:
        for layout in LAYOUTS:
            engine = self.install(layout, self.work / layout)
            with mock.patch.object(paths, "belljar", lambda: str(engine)):
                for options in (["-C", self.work / layout], ["-C", "none", "--rw", engine.parent], ["-C", "none", "--rw", engine]):
                    with self.subTest(layout=layout, options=options):
                        self.assert_failed(self.jar(*options, *self.sh("echo")), "belljar's own", "install belljar outside")
                done = self.jar("-C", "none", *self.sh("echo worked"))
                self.assertEqual(done.stdout, b"worked\n", done)


@on_ways(NAMESPACE, LANDLOCK)
class OtherNames(OwnCase):
    def test_a_link_that_a_command_could_replace_does_not_start_it(self) -> None:
        engine = self.install("plain", self.outside)
        link = self.work / "link"
        link.symlink_to(engine)
        self.run_by(link)
        self.assert_failed(self.jar(*self.sh("echo")), "symbolic link", str(link), f"start '{engine}'")
        self.assertEqual(self.jar("-C", "none", *self.sh("echo worked")).stdout, b"worked\n")

    def test_a_file_that_changed_by_another_name_fails_the_run(self) -> None:
        """As in the cache of a package manager that links one file into many projects."""
        engine = self.install("target", self.outside)
        os.link(engine, self.work / "program")
        os.link(self.outside / "vendor/belljar/__init__.py", self.work / "alias")
        self.run_by(engine)
        result = self.json(*self.sh("echo fine"))
        self.assertEqual((result["outcome"], result["error"]), ("exited", None))
        result = self.json(*self.sh("echo evil > alias"))
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("cancelled", "isolate"), result)
        self.assertIn("Belljar's own", result["error"]["message"])
        self.assertIn(str(self.outside / "vendor/belljar"), result["error"]["message"])


@on_ways(NAMESPACE, LANDLOCK)
class InACopy(OwnCase):
    def test_what_belljar_is_executed_from_does_not_come_home(self) -> None:
        """A copy has no mounts that hold it; a layer may be of a time when Belljar was not installed here."""
        for layout, names in (
            ("npm", ["node_modules/@belljar/linux-x64/bin/belljar", "node_modules/belljar/index.js", "node_modules/belljar.js", "node_modules/.bin/new"]),
            ("plain", ["tools/bin/belljar", "tools/bin/belljar-gate"]),
        ):
            with self.subTest(layout):
                top = self.directory(f"copy-{layout}")
                (top / "src").mkdir()
                for name in names:
                    (top / name).parent.mkdir(parents=True, exist_ok=True)
                result = self.json("--cow", *self.sh("for name in src/fine " + " ".join(names) + "; do rm -f $name; echo evil > $name; done"), cwd=top)
                self.assertEqual(result["exit_code"], 0, result)
                engine = self.install(layout, top)
                before = contents(engine.parent)
                with mock.patch.object(paths, "belljar", lambda: str(engine)):
                    done = self.belljar("apply", "--json", *(word for name in names for word in ("--theirs", name)), cwd=top)
                left = {entry["path"]: entry["reason"] for entry in json.loads(done.stdout)["not_applied"]}
                for name in names:
                    self.assertEqual(left.get(name), "refused", (done, left))
                self.assertEqual(contents(engine.parent), before)
                self.assertEqual((top / "src/fine").read_text(), "evil\n")


@on_ways(NAMESPACE)
class NotThereYet(OwnCase):
    """Without belljar-gate or belljar-prove beside the program, a command could put there what the program executes next."""

    def test_a_program_that_appears_fails_the_run(self) -> None:
        engine = self.install("plain", self.work)
        beside = [engine.parent / name for name in ("belljar-gate", "belljar-prove")]
        for program in beside:
            program.unlink()
        self.run_by(engine)
        result = self.json(*self.sh("echo fine > tools/new"))
        self.assertEqual((result["outcome"], result["error"]), ("exited", None), result)
        for program in beside:
            for plant in ("cp", "ln -s"):
                with self.subTest(plant=plant, program=program.name):
                    result = self.json(*self.sh(f"{plant} /bin/true {program}"))
                    self.assertEqual((result["outcome"], result["error"]["stage"]), ("cancelled", "isolate"), result)
                    self.assertIn(f"Belljar's own '{program}'", result["error"]["message"])
                    program.unlink()

    def test_a_program_that_the_environment_names(self) -> None:
        gate = self.work / "gate"
        self.env["BELLJAR_GATE"] = str(gate)
        result = self.json(*self.sh(f"cp /bin/true {gate}"))
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("cancelled", "isolate"), result)


STORE = Path("/run/belljar" if os.getuid() == 0 else f"/run/user/{os.getuid()}/belljar")


@on_ways(NAMESPACE, LANDLOCK)
class Roots(AttackCase):
    """The roots that later jars share."""

    def test_the_environment_does_not_choose_their_place(self) -> None:
        for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "TMPDIR"):
            self.env[name] = str(self.directory(name))
            (self.base / name).chmod(0o700)
        (self.home / ".cache").mkdir()
        for _ in range(3):
            self.assertEqual(self.jar(*self.sh("true")).status, 0)
        left = [path for path in self.base.rglob("*") if path.name.startswith(("skeletons", "belljar"))]
        self.assertEqual(left, [])
        self.assertEqual((STORE / "skeletons").is_dir(), STORE.parent.is_dir())

    def test_no_policy_makes_their_place_writable(self) -> None:
        for named in (STORE.parent, Path("/run"), STORE / "skeletons"):
            if not named.is_dir() or (named == Path("/run") and self.way is NAMESPACE):
                continue
            with self.subTest(named=named):
                done = self.jar("--rw", named, *self.sh(f"ls -A {STORE}/skeletons; touch {STORE}/skeletons/x"))
                if self.way is LANDLOCK:
                    self.assert_failed(done, "belljar's own", "show less than")
                else:
                    self.assertEqual((done.stdout, done.status == 0), (b"", False), done)
                self.assertFalse((STORE / "skeletons/x").exists())


if __name__ == "__main__":
    unittest.main()
