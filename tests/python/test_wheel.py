# SPDX-License-Identifier: Apache-2.0
"""The wheel: installed into a clean environment, out of reach of the source tree, it passes the package's tests."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
WHEELS = os.environ.get("BELLJAR_TEST_WHEELS", str(HERE.parent.parent / "build" / "wheel"))
# What is tried in the new environment; all of it with the interpreter itself is the business of the other modules.
MODULES = ("test_run",)


class Wheel(unittest.TestCase):
    """One environment for all."""

    def setUp(self) -> None:
        found = sorted(Path(WHEELS).glob("belljar-*.whl"))
        self.assertEqual(len(found), 1, f"./dev build wheel makes one in {WHEELS}")
        self.wheel = found[0]
        (self.adapters,) = Path(WHEELS).glob("belljar_adapters-*.whl")

    def test_the_wheel_says_what_it_is(self) -> None:
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            self.assertEqual(len(names), len(set(names)))
            info = next(name for name in names if name.endswith(".dist-info/RECORD")).rsplit("/", 1)[0]
            record = {line.rsplit(",", 2)[0] for line in archive.read(f"{info}/RECORD").decode().splitlines()}
            self.assertEqual(record, set(names))
            self.assertEqual({name.split("/")[0] for name in names}, {"belljar", info})
            self.assertTrue({"belljar/py.typed", "belljar/__main__.py", "belljar/_bin/belljar"} <= set(names))
            programs = sorted(name for name in names if "/_bin/" in name)
            self.assertEqual(programs, ["belljar/_bin/belljar", "belljar/_bin/belljar-gate", "belljar/_bin/belljar-prove"])
            for name in programs:
                self.assertTrue(archive.getinfo(name).external_attr >> 16 & 0o111)
            entries = configparser.ConfigParser()
            entries.read_string(archive.read(f"{info}/entry_points.txt").decode())
            self.assertEqual(dict(entries["console_scripts"]), {"belljar": "belljar.__main__:main"})
            self.assertEqual(dict(entries["inspect_ai"]), {"belljar": "belljar.integrations.inspect_ai"})
            self.assertIn("belljar/integrations/inspect_ai.py", names)
            tags = [line for line in archive.read(f"{info}/WHEEL").decode().splitlines() if line.startswith("Tag: ")]
            self.assertTrue(tags and all(tag.startswith("Tag: py3-none-") for tag in tags), tags)

    def test_a_clean_environment(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="bjt-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BELLJAR_"))}
        env["HOME"] = str(folder)

        def run(*command: str, cwd: Path = folder) -> str:
            done = subprocess.run(
                command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250, check=False
            )
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        made = subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], env=env, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            self.skipTest(f"needs:venv this interpreter cannot make one: {(made.stdout + made.stderr).strip()[:200]}")
        python = str(folder / "venv" / "bin" / "python")
        run(python, "-m", "pip", "install", "--no-index", "--no-cache-dir", "--disable-pip-version-check", str(self.wheel))
        # Copies of the tests alone: neither the source nor what was built is on the way.
        for name in ("python", "harness"):
            shutil.copytree(HERE.parent / name, folder / "tests" / name, ignore=shutil.ignore_patterns("__pycache__"))
        where = run(python, "-c", "import belljar; print(belljar.__file__)")
        self.assertTrue(where.startswith(str(folder / "venv")), where)
        env["PYTHONPATH"] = f"{folder / 'tests' / 'python'}:{folder / 'tests'}"
        self.assertIn("OK", run(python, "-m", "unittest", *MODULES))
        self.assertRegex(run(str(folder / "venv" / "bin" / "belljar"), "--version"), r"^belljar \d")
        self.assertRegex(run(python, "-m", "belljar", "--version"), r"^belljar \d")
        adapter = 'from belljar.adapters import jeeves; print(jeeves.__name__, jeeves.__file__)'
        missing = f"try:\n    {adapter}\nexcept ModuleNotFoundError as error:\n    print(error)"
        self.assertIn("pip install belljar-adapters", run(python, "-c", missing))
        run(python, "-m", "pip", "install", "--no-index", "--no-cache-dir", "--disable-pip-version-check", str(self.adapters))
        self.assertRegex(run(python, "-c", adapter), rf"^belljar\.adapters\.jeeves {folder}/venv/")
        self.assertIn("OK", run(python, "-m", "unittest", "test_adapter_openjarvis"))
        run(python, "-m", "pip", "uninstall", "-y", "belljar", "belljar-adapters")
        self.assertEqual(list((folder / "venv").rglob("*belljar*")), [])


if __name__ == "__main__":
    unittest.main()
