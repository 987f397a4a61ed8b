# SPDX-License-Identifier: Apache-2.0
"""Virtual environments anywhere on the host: seen with the Python they are made from, and nothing else with them."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, List

from harness import pythons
from harness.case import JarCase, on_ways
from harness.runner import LANDLOCK, NAMESPACE


class EnvironmentCase(JarCase):
    """Tests whose PATH begins with an environment."""

    def use(self, *environments: Path) -> None:
        """Have their programs first in PATH."""
        self.env["PATH"] = ":".join([*(f"{path}/bin" for path in environments), "/usr/bin:/bin"])

    def notes(self, *args: Any, name: str = "toolchains") -> List[str]:
        """What the result says of tools."""
        result = self.json(*(args or self.sh("true")))
        return [note["why"] for note in result["notes"] if note["name"] == name]

    def output(self, script: str, *options: Any) -> str:
        """Of a script in a jar, with what it said of errors."""
        done = self.jar(*options, *self.sh(f"{{ {script}; }} 2>&1"))
        return done.stdout.decode()


@on_ways(NAMESPACE, LANDLOCK)
class Environments(EnvironmentCase):
    def test_an_environment_of_path_comes_with_its_python(self) -> None:
        base = pythons.installation(self.base / "pythons" / "3.12")
        made = pythons.virtual_environment(self.base / "venvs" / "x", base / "bin")
        self.use(made)
        done = self.jar("--", "python")
        self.assertEqual(done.stdout.decode(), f"python of {base}\nlibrary\n", done)
        self.assertEqual(self.output("tool"), f"tool of {made}\n")
        self.assertEqual((self.notes(), self.notes(name="path")), ([], []))

    def test_only_what_makes_an_environment_is_shown_and_read_only(self) -> None:
        base = pythons.installation(self.base / "pythons" / "3.12")
        made = pythons.virtual_environment(self.base / "venvs" / "x", base / "bin")
        self.use(made)
        seen = self.output(f"cat {made}/.env {base}/secret; echo x > {made}/lib/new; echo x > {base}/lib/new; touch {made}/new")
        self.assertNotIn("secret\n", seen)
        self.assertFalse((made / "lib" / "new").exists() or (base / "lib" / "new").exists() or (made / "new").exists())

    def test_virtual_env_alone_shows_it_too(self) -> None:
        made = pythons.virtual_environment(self.base / "venvs" / "x", "/usr/bin")
        self.use()
        self.env["VIRTUAL_ENV"] = str(made)
        self.assertEqual(self.output(f"{made}/bin/tool"), f"tool of {made}\n")

    def test_layouts_of_tools(self) -> None:
        """uv: a link for the minor version; pyenv; conda; poetry and hatch below home; links of a deployment."""
        store = self.home / ".local" / "share" / "uv" / "python"
        base = pythons.installation(store / "cpython-3.12.7-linux-x86_64-gnu")
        (store / "cpython-3.12-linux-x86_64-gnu").symlink_to(base.name)
        elsewhere = pythons.installation(self.base / "uv" / "cpython-3.12.7")
        (self.base / "uv" / "cpython-3.12").symlink_to(elsewhere.name)
        pyenv = pythons.installation(self.home / ".pyenv" / "versions" / "3.12.1")
        conda = pythons.conda(self.base / "conda" / "envs" / "x")
        rows = {
            "uv": (self.base / "a", store / "cpython-3.12-linux-x86_64-gnu", base),
            "uv elsewhere": (self.base / "b", self.base / "uv" / "cpython-3.12", elsewhere),
            "pyenv": (self.base / "c", pyenv, pyenv),
            "from conda": (self.base / "d", conda, conda),
            "poetry": (self.home / ".cache/pypoetry/virtualenvs/x-py3.12", pyenv, pyenv),
            "hatch": (self.home / ".local/share/hatch/env/virtual/x/y", pyenv, pyenv),
            "virtualenvwrapper": (self.home / ".virtualenvs/x", elsewhere, elsewhere),
        }
        for name, (path, home, real) in rows.items():
            with self.subTest(name):
                self.use(pythons.virtual_environment(path, home / "bin"))
                done = self.jar("--", "python")
                self.assertEqual(done.stdout.decode(), f"python of {real}\nlibrary\n", done)
        with self.subTest("conda"):
            self.use(conda)
            self.assertEqual(self.output("tool"), f"tool of {conda}\ncertificates\n")
            self.assertNotIn("secret\n", self.output(f"cat {conda}/.env"))
        with self.subTest("link"):
            (self.base / "current").symlink_to("a")
            self.use(self.base / "current")
            self.assertEqual(self.output("tool"), f"tool of {self.base / 'a'}\n")

    def test_a_pipx_program_comes_with_the_python_of_its_environment(self) -> None:
        pyenv = pythons.installation(self.home / ".pyenv" / "versions" / "3.12.1")
        made = pythons.virtual_environment(self.home / ".local/share/pipx/venvs/x", pyenv / "bin")
        (made / "bin" / "x").write_text(f"#!/bin/sh\nexec {made}/bin/python\n")
        (made / "bin" / "x").chmod(0o755)
        (self.home / ".local" / "bin").mkdir()
        (self.home / ".local" / "bin" / "x").symlink_to(made / "bin" / "x")
        self.use(self.home / ".local")
        self.assertEqual(self.output("x"), f"python of {pyenv}\nlibrary\n")

    def test_toolchains_off_shows_none_and_says_nothing(self) -> None:
        made = pythons.virtual_environment(self.base / "venvs" / "x", "/usr/bin")
        self.use(made)
        self.env["VIRTUAL_ENV"] = str(made)
        done = self.jar("--no-toolchains", *self.sh(f"cat {made}/pyvenv.cfg"))
        self.assertNotEqual(done.status, 0)
        self.assertEqual(self.notes("--no-toolchains", *self.sh("true"), name="path"), [])

    def test_an_environment_in_the_workdir_stays_writable(self) -> None:
        made = pythons.virtual_environment(self.work / ".venv", "/usr/bin")
        self.use(made)
        self.env["VIRTUAL_ENV"] = str(made)
        self.assertEqual(self.output("tool; touch .venv/lib/new .venv/new"), f"tool of {made}\n")
        self.assertTrue((made / "new").exists() and (made / "lib" / "new").exists())
        self.assertEqual(self.notes(), [])

    def test_an_active_environment_in_the_workdir_has_the_pythons_that_tools_installed(self) -> None:
        """Which of them its pyvenv.cfg names does not matter: a command could have written that."""
        base = pythons.installation(self.home / ".local/share/uv/python" / "cpython-3.12.7")
        made = pythons.virtual_environment(self.work / ".venv", base / "bin")
        self.use(made)
        self.env["VIRTUAL_ENV"] = str(made)
        done = self.jar("--", "python")
        self.assertEqual(done.stdout.decode(), f"python of {base}\nlibrary\n", done)
        self.assertEqual(self.notes(), [])

    def test_a_python_that_is_not_shown_is_told(self) -> None:
        """Else the next one of PATH runs, and nobody knows why it lacks the packages."""
        base = pythons.installation(self.base / "pythons" / "3.12")
        made = pythons.virtual_environment(self.work / ".venv", base / "bin")
        self.use(made)
        (note,) = self.notes()
        self.assertIn(f"does not show the Python of the virtual environment '{made}'", note)
        self.assertNotIn(str(base), note)
        self.assertEqual(self.notes("--ro", base, *self.sh("true")), [])

    def test_directories_of_path_that_the_jar_lacks_are_in_the_result(self) -> None:
        folders = [self.base / "tools" / str(number) for number in range(7)]
        for path in folders:
            path.mkdir(parents=True)
        self.env["PATH"] = ":".join(["/usr/bin:/bin", *map(str, folders), str(folders[0]), f"{self.base}/nowhere"])
        (note,) = self.notes(name="path")
        self.assertIn(f"'{folders[0]}', '{folders[1]}'", note)
        self.assertIn("and 2 more, which the jar does not show", note)
        self.assertNotIn("nowhere", note)
        self.assertEqual(self.notes("--ro", self.base / "tools", *self.sh("true"), name="path"), [])
        # People hear of it where it matters.
        self.assertEqual(self.jar("--", "true").stderr, b"")
        done = self.jar("--", "no-such-program")
        self.assertIn(b"which the jar does not show", done.stderr)

    def test_a_plan_shows_them(self) -> None:
        base = pythons.installation(self.base / "pythons" / "3.12")
        made = pythons.virtual_environment(self.base / "venvs" / "x", base / "bin")
        self.use(made)
        done = self.belljar("plan", "--json", "--", "true")
        text = json.dumps(json.loads(done.stdout))
        for path in (f"{made}/bin", f"{made}/pyvenv.cfg", f"{base}/lib"):
            self.assertIn(f'"{path}"', text)
        self.assertNotIn(f'"{made}"', text)

    def test_a_real_environment(self) -> None:
        made = self.base / "real"
        for more in ([], ["--system-site-packages"]):
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", *more, str(made)], check=True)
            version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
            (made / "lib" / version / "site-packages" / "own_module.py").write_text("answer = 42\n")
            self.use(made)
            script = "import sys, json, own_module; print(sys.prefix, own_module.answer)"
            done = self.jar("--", "python", "-c", script)
            self.assertEqual(done.stdout.decode(), f"{made} 42\n", done)

    def test_an_environment_made_from_an_environment(self) -> None:
        """It is one of the same installation, also where it lies in the other."""
        first, second = self.base / "first", self.base / "first" / "second"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(first)], check=True)
        subprocess.run([str(first / "bin" / "python"), "-m", "venv", "--without-pip", str(second)], check=True)
        self.use(second, first)
        done = self.jar("--", "python", "-c", "import sys, json; print(sys.prefix)")
        self.assertEqual(done.stdout.decode(), f"{second}\n", done)


if __name__ == "__main__":
    unittest.main()
