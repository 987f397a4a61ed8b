# SPDX-License-Identifier: Apache-2.0
"""What `pip install .` calls in tools/package.py, in a checkout whose ./dev only pretends to build."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

# The runner puts the sources of the package there; a checkout has them at its root.
ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "packaging" if (ROOT / "packaging").exists() else ROOT
# The first bytes of a program for x86-64, which is all that package.py looks at.
DEV = """#!/bin/sh
[ "$*" = "build release" ] || exit 3
mkdir -p build/python
printf '\\177ELF\\002\\001\\001\\0\\0\\0\\0\\0\\0\\0\\0\\0\\002\\0\\076\\0' >build/belljar
printf prove >build/belljar-prove
"""
# One that can build belljar-gate too, on a host that has the licences of what is inside.
GATE = "mkdir -p build/gate && printf gate >build/gate/belljar-gate\n"
LICENCES = [pathlib.Path("/usr/share/doc") / name / "copyright" for name in ("libssl-dev", "libnghttp2-dev")]


class Hooks(unittest.TestCase):
    def setUp(self) -> None:
        self.checkout = pathlib.Path(tempfile.mkdtemp(prefix="bjt-"))
        self.addCleanup(shutil.rmtree, self.checkout)
        for name in ("meson.build", "LICENSE", "pyproject.toml"):
            shutil.copy2(SOURCE / name, self.checkout / name)
        for name in ("python", "python-adapters", "tools"):
            shutil.copytree(SOURCE / name, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        self.set_dev(DEV)

    def set_dev(self, text: str) -> None:
        (self.checkout / "dev").write_text(text)
        (self.checkout / "dev").chmod(0o755)

    def call(self, hook: str) -> subprocess.CompletedProcess[str]:
        program = f"import sys; sys.path.insert(0, 'tools'); import package; print(package.{hook}('out'))"
        return subprocess.run([sys.executable, "-B", "-c", program], cwd=self.checkout, capture_output=True, text=True, timeout=60, check=False)

    def made(self, hook: str) -> zipfile.ZipFile:
        done = self.call(hook)
        self.assertEqual(done.returncode, 0, done.stderr)
        archive = zipfile.ZipFile(self.checkout / "out" / done.stdout.strip())
        self.addCleanup(archive.close)
        return archive

    def test_a_wheel_has_the_package_the_engine_and_its_own_description(self) -> None:
        archive = self.made("build_wheel")
        names = archive.namelist()
        self.assertTrue({"belljar/__init__.py", "belljar/_bin/belljar", "belljar/_bin/belljar-prove"} <= set(names))
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
        self.assertIn((SOURCE / "python" / "DESCRIPTION.md").read_text(), metadata)
        # It stands by itself: no links into a repository that the reader does not have.
        self.assertNotIn("](", metadata)

    def test_a_wheel_has_the_gate_and_the_licences_of_what_is_inside(self) -> None:
        if not all(path.is_file() for path in LICENCES):
            self.skipTest("needs:libssl-dev and libnghttp2-dev, as Debian has them")
        self.set_dev(DEV.replace('[ "$*" = "build release" ] || exit 3\n', GATE))
        archive = self.made("build_wheel")
        gate = archive.getinfo("belljar/_bin/belljar-gate")
        self.assertEqual((archive.read(gate), gate.external_attr >> 16), (b"gate", 0o100755))
        texts = {name.rsplit("/", 1)[1]: archive.read(name) for name in archive.namelist() if "/licenses/" in name}
        self.assertEqual(texts.keys(), {"LICENSE", "OpenSSL.txt", "nghttp2.txt"})
        self.assertIn(b"nghttp2", texts["nghttp2.txt"])

    def test_where_no_gate_can_be_built_the_wheel_has_none_and_says_so(self) -> None:
        self.assertNotIn("belljar/_bin/belljar-gate", self.made("build_wheel").namelist())
        self.assertIn("without belljar-gate", self.call("build_wheel").stderr)

    def test_the_adapters_are_a_wheel_of_their_own(self) -> None:
        main = {name.split("/adapters/")[1] for name in self.made("build_wheel").namelist() if "/adapters/" in name}
        self.assertEqual(main, {"__init__.py"})
        program = "import build_backend; print(build_backend.build_wheel('out'))"
        done = subprocess.run([sys.executable, "-B", "-c", program], cwd=self.checkout / "python-adapters", capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with zipfile.ZipFile(self.checkout / "python-adapters" / "out" / done.stdout.strip()) as archive:
            names = archive.namelist()
            metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
        found = {name for name in names if name.endswith(".py")}
        self.assertEqual(found, {f"belljar_adapters/{name}.py" for name in ("__init__", "calute", "jeeves", "openjarvis", "secuscan")})
        self.assertRegex(metadata, r"(?m)^Requires-Dist: belljar \(==\S+\)$")

    def test_an_editable_install_leads_to_what_dev_builds(self) -> None:
        archive = self.made("build_editable")
        self.assertEqual(archive.read("belljar.pth").decode(), f"{self.checkout.resolve() / 'build' / 'python'}\n")
        self.assertNotIn("belljar/__init__.py", archive.namelist())

    def test_a_failed_build_says_what_is_needed(self) -> None:
        self.set_dev("#!/bin/sh\nexit 1\n")
        done = self.call("build_wheel")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("musl-tools", done.stderr)


if __name__ == "__main__":
    unittest.main()
