# SPDX-License-Identifier: Apache-2.0
"""libbelljar as a program's author meets it: installed, found by pkg-config, compiled against, linked, run."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BELLJAR_TEST_LIBRARY"])
ROOT = pathlib.Path(os.environ["BELLJAR_TEST_ROOT"])
HERE = ROOT / "tests" / "library"
EXAMPLE = ROOT / "examples" / "run.c"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def output(*command: object, env: dict[str, str] | None = None) -> str:
    """What a program prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def public_symbols(*command: object) -> set[str]:
    """The names that nm lists."""
    return {line.split()[-1] for line in output("nm", *command).splitlines() if len(line.split()) == 3}


class Install(unittest.TestCase):
    """One installation serves all tests."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="belljar-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        output("meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", cls.folder / "root")
        cls.prefix = cls.folder / "root" / "usr" / "local"
        cls.config = next(cls.prefix.rglob("libbelljar.pc")).parent
        cls.libraries = cls.config.parent

    def flags(self, *options: str) -> list[str]:
        """What pkg-config says, for a library that is not where it will be."""
        env = {**os.environ, "PKG_CONFIG_PATH": str(self.config)}
        text = output("pkg-config", f"--define-variable=prefix={self.prefix}", *options, "libbelljar", env=env)
        return text.split()

    def run_it(self, program: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """With the library where the linker does not look by itself."""
        env = {**os.environ, "LD_LIBRARY_PATH": str(self.libraries)}
        return subprocess.run([program, *arguments], capture_output=True, text=True, env=env, check=False, timeout=120)

    def expected_symbols(self) -> set[str]:
        return set((HERE / "libbelljar.symbols").read_text().split())

    def test_what_is_installed(self) -> None:
        names = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if not path.is_dir()}
        for pattern in ("include/belljar.h", r"lib/.*libbelljar\.so", r"lib/.*libbelljar\.so\.1", r"lib/.*libbelljar\.a"):
            self.assertTrue(any(re.fullmatch(pattern, name) for name in names), f"{pattern} is not in {sorted(names)}")
        self.assertIn("share/man/man3/libbelljar.3", names)
        # The engine is another build's.
        self.assertLessEqual({name for name in names if name.startswith("bin/")}, {"bin/belljar-gate"})

    def test_the_exported_symbols_are_those_listed(self) -> None:
        library = self.libraries / "libbelljar.so.1"
        found = public_symbols("-D", "--defined-only", library)
        self.assertEqual(found - {"BELLJAR_1"}, {f"{name}@@BELLJAR_1" for name in self.expected_symbols()})

    def test_the_static_library_shows_no_others(self) -> None:
        found = public_symbols("-g", "--defined-only", self.libraries / "libbelljar.a")
        self.assertEqual(found, self.expected_symbols())

    def test_every_symbol_is_declared_and_has_a_manual_page(self) -> None:
        header = (self.prefix / "include" / "belljar.h").read_text()
        declared = set(re.findall(r"\b(belljar_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)))
        self.assertEqual(declared, self.expected_symbols())
        pages = "".join(path.read_text() for path in (self.prefix / "share" / "man" / "man3").iterdir())
        self.assertFalse([name for name in self.expected_symbols() if not re.search(rf"^\.Fo {name}$", pages, re.MULTILINE)])

    def test_it_has_no_variables_of_its_own(self) -> None:
        sections = output("readelf", "-SW", self.libraries / "libbelljar.a")
        sizes = {name: int(size, 16) for name, size in re.findall(r"\] (\.data|\.bss)\s+\w+\s+\w+ \w+ (\w+)", sections)}
        self.assertEqual(sizes, {".data": 0, ".bss": 0})

    def test_it_needs_nothing_but_libc(self) -> None:
        needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", self.libraries / "libbelljar.so.1"))
        self.assertLessEqual(set(needed), {"libc.so.6", "libpthread.so.0"})

    def check_example(self, program: pathlib.Path) -> None:
        done = self.run_it(program, "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual(done.stdout, "out\n", done.stderr)
        self.assertRegex(done.stderr, r"err\nexited, exit code 3, rung \w+, ")
        self.assertEqual(done.returncode, 1)
        done = self.run_it(program, "no-such-command")
        self.assertIn("exec: ", done.stderr)

    def test_the_example_with_the_shared_library(self) -> None:
        program = self.folder / "shared"
        output("gcc", "-std=c99", *STRICT, EXAMPLE, "-o", program, *self.flags("--cflags", "--libs"))
        self.check_example(program)

    def test_the_example_with_the_static_library(self) -> None:
        program = self.folder / "static"
        flags = [flag.replace("-lbelljar", "-l:libbelljar.a") for flag in self.flags("--cflags", "--libs", "--static")]
        output("clang", "-std=c99", *STRICT, EXAMPLE, "-o", program, *flags)
        self.assertNotIn("libbelljar", output("readelf", "-d", program))
        self.check_example(program)

    def test_the_example_with_a_workspace(self) -> None:
        program, work = self.folder / "workspace", self.folder / "work"
        output("gcc", "-std=c99", *STRICT, EXAMPLE.with_name("workspace.c"), "-o", program, *self.flags("--cflags", "--libs"))
        work.mkdir()
        env = {**os.environ, "LD_LIBRARY_PATH": str(self.libraries), "XDG_STATE_HOME": str(self.folder / "state")}
        for script, files in (("echo new > n; false", set()), ("echo new > n", {"n"})):
            done = subprocess.run([program, "sh", "-c", script], capture_output=True, text=True, env=env, cwd=work, check=False, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            self.assertIn("+new\n", done.stdout)
            self.assertEqual({path.name for path in work.iterdir()}, files)

    def test_a_host_in_cpp(self) -> None:
        for compiler in ("g++", "clang++"):
            for standard in ("c++98", "c++17"):
                with self.subTest(compiler=compiler, standard=standard):
                    program = self.folder / f"cpp-{compiler}-{standard}"
                    # C++98 has no stdint.h, and no macro with a variable number of arguments, of its own.
                    flags = [*STRICT, "-Wno-long-long", f"-std={standard}", *self.flags("--cflags", "--libs")]
                    output(compiler, HERE / "host.cpp", "-o", program, *flags)
                    done = self.run_it(program)
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
