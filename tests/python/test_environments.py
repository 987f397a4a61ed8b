# SPDX-License-Identifier: Apache-2.0
"""The caller's own interpreter and its packages are in every jar, wherever they are, though PATH says nothing of them."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path

from package_case import PackageCase, tearDownModule  # noqa: F401

SCRIPT = """
import os, sys
import belljar
inside = "import sys, own_module; print(sys.prefix, own_module.answer)"
for round in range(3):
    result = belljar.run([sys.executable, "-c", inside], **KEYS)
    print(result.stdout or result.stderr.strip().splitlines()[-1:], end="")
"""


class Environments(PackageCase):
    def make(self, path: Path) -> str:
        """An environment with a module of its own, and its interpreter."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        (path / "lib" / version / "site-packages" / "own_module.py").write_text("answer = 42\n")
        (path / ".env").write_text("secret\n")
        return str(path / "bin" / "python")

    def ask(self, python: str, script: str, keys: str = "{}") -> str:
        """What a program of that interpreter prints; it has none of the environment in PATH."""
        env = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [python, "-c", script.replace("KEYS", keys)], capture_output=True, text=True, env=env, timeout=60, check=False
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def test_the_own_interpreter_runs_with_its_packages(self) -> None:
        path = self.base / "env"
        self.assertEqual(self.ask(self.make(path), SCRIPT), f"{path} 42\n" * 3)

    def test_one_in_the_workdir_stays_writable(self) -> None:
        path = self.work / ".venv"
        script = SCRIPT + "print(belljar.run('echo x > .venv/lib/new', shell=True).returncode)"
        self.assertEqual(self.ask(self.make(path), script), f"{path} 42\n" * 3 + "0\n")

    def test_toolchains_off_shows_none(self) -> None:
        python = self.make(self.base / "env")
        script = "import belljar, sys; print(belljar.run(['/bin/ls', sys.prefix], **KEYS).returncode)"
        self.assertEqual((self.ask(python, script), self.ask(python, script, "{'toolchains': False}")), ("0\n", "2\n"))

    def test_what_lies_beside_it_is_not_shown(self) -> None:
        path = self.base / "env"
        script = f"import belljar; print(belljar.run('cat {path}/.env {path}/pyvenv.cfg', shell=True).stdout)"
        seen = self.ask(self.make(path), script)
        self.assertNotIn("secret", seen)
        self.assertIn("home = ", seen)

    @unittest.skipUnless(os.getuid() == 0, "only root can give files away")
    def test_whoever_owns_it_the_caller_runs_it(self) -> None:
        path = self.base / "env"
        python = self.make(path)
        for folder, folders, files in os.walk(path):
            for name in (".", *folders, *files):
                os.chown(os.path.join(folder, name), 12345, 12345, follow_symlinks=False)
        self.assertEqual(self.ask(python, SCRIPT), f"{path} 42\n" * 3)

    def test_calls_and_programs_have_the_packages_and_nothing_beside_them(self) -> None:
        """An environment may be made in a project (python -m venv .), whose secrets are not for every function."""
        path = self.base / "project"
        python = self.make(path)
        (path / "own_tools.py").write_text(
            "import os, own_module\n"
            "def look(path): return [own_module.answer, os.path.exists(path + '/.env'), os.path.exists(path + '/pyvenv.cfg')]\n"
        )
        code = f"import os, own_module; print([own_module.answer, os.path.exists({str(path / '.env')!r})])"
        script = (
            "import asyncio, sys\nimport belljar\nfrom belljar.toolhost import CodeRunner\n"
            f"sys.path.append({str(path)!r})\nimport own_tools\nsys.path.remove({str(path)!r})\n"
            f"print(belljar.call(own_tools.look, {str(path)!r}))\n"
            f"print(asyncio.run(CodeRunner().run({code!r})).stdout)"
        )
        self.assertEqual(self.ask(python, script), "[42, False, True]\n[42, False]\n\n")

    def test_a_jar_has_it_too(self) -> None:
        path = self.base / "env"
        script = (
            "import belljar, sys\nwith belljar.Jar() as jar:\n"
            "    print(jar.run([sys.executable, '-c', 'import own_module; print(own_module.answer)']).stdout)"
        )
        self.assertEqual(self.ask(self.make(path), script), "42\n\n")


if __name__ == "__main__":
    unittest.main()
