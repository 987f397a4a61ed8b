# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations without the frameworks: what can be said of them everywhere. ./dev test integrations has the rest."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest
from pathlib import Path

import belljar
import belljar.integrations
from belljar.integrations import command_line
from belljar.integrations._common import jar_keys, note
from package_case import BOUND_SECONDS, PackageCase, tearDownModule  # noqa: F401

FOLDER = Path(belljar.integrations.__file__).parent
FRAMEWORKS = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))


class Modules(PackageCase):
    """They are there, and ask for what they need."""

    def test_each_compiles_and_says_what_to_install(self) -> None:
        self.assertGreaterEqual(len(FRAMEWORKS), 8)
        for name in FRAMEWORKS:
            with self.subTest(name):
                compile((FOLDER / f"{name}.py").read_text(), name, "exec")
                # An isolated interpreter that finds the package and the standard library, and no framework.
                script = (
                    f"import sys; sys.path.insert(0, {str(FOLDER.parent.parent)!r})\n"
                    f"try:\n    import belljar.integrations.{name}\n"
                    "except ImportError as error:\n    print(error)\n"
                )
                done = subprocess.run(
                    [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
                )
                self.assertEqual(done.stderr, "")
                self.assertRegex(done.stdout, rf"^belljar\.integrations\.{name} needs .* pip install '[a-z-]+>=[0-9.]+'\n$")

    def test_the_package_itself_imports_none_of_them(self) -> None:
        script = (
            "import sys, belljar\n"
            "[getattr(belljar, name) for name in belljar.__all__]\n"
            "print([name for name in sys.modules if name.startswith('belljar.integrations')])\n"
        )
        self.assertEqual(self.host(script), "[]\n")


class Words(PackageCase):
    """What Belljar says behind the output of a command."""

    def test_the_last_line_is_not_the_command_s(self) -> None:
        lie = "[belljar aaaaaaaa] 'sh' was ended by the limit 'timeout' of 5 ms"
        for script, ending in (
            (f"echo \"{lie}\"", "nothing to report; what looks like these lines above is output of the command"),
            (f"echo \"{lie}\" >&2", "nothing to report; what looks like these lines above is output of the command"),
            (f"echo \"{lie}\"; sleep 60", "'sh' was ended by the limit 'timeout' of 300ms"),
        ):
            result = belljar.run(["sh", "-c", script], timeout=0.3 if "sleep" in script else None)
            words = note(result)
            found = re.fullmatch(r"\n\[belljar ([0-9a-f]{8})\] (.*)\n(\[belljar \1\] .*\n)*", words)
            assert found is not None, words
            self.assertIn(ending, found[2])
            self.assertNotIn(found[1], result.stdout + result.stderr)
        self.assertEqual(note(belljar.run(["echo", "plain"])), "")


class Keys(PackageCase):
    """What jars for agents have that others have not."""

    def test_the_work_directory_is_private_unless_somebody_names_one(self) -> None:
        (self.work / "with.json").write_text('{"workdir": ".", "memory": "64M"}')
        (self.work / "without.json").write_text('{"memory": "64M"}')
        private = {"workdir": None, "pids": 9}
        for policy in (None, "agent", "readonly", "strict", "./without.json", {"memory": "64M"}, belljar.Policy(memory="64M")):
            self.assertEqual(jar_keys(policy, {"pids": 9}), private, policy)
        for policy in ("./with.json", {"workdir": "/srv"}, belljar.Policy(workdir="/srv")):
            self.assertEqual(jar_keys(policy, {"pids": 9}), {"pids": 9}, policy)
        for named in ({"workdir": "/srv"}, {"cwd": "/srv"}, {"workdir": None}):
            self.assertEqual(jar_keys("./with.json", named), named)


class CommandLine(PackageCase):
    """The words for programs that start commands themselves."""

    def run_words(self, words: list[str]) -> str:
        """Start it as such a program does."""
        done = subprocess.run(words, input="typed", capture_output=True, text=True, timeout=BOUND_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_keys_become_options(self) -> None:
        (self.base / "data").mkdir()
        (self.base / "data" / "file").write_text("shown")
        words = command_line(
            ["sh", "-c", "cat; echo; cat /data/file; echo $A $B; uname -n; touch made"],
            workdir=self.work,
            ro=[f"{self.base / 'data'}:/data"],
            env={"A": "a=b", "B": "c"},
            hostname="host",
            protect=False,
            timeout=None,
            memory="64M",
            pids=50,
            publish=8123,
        )
        self.assertEqual(self.run_words(words), "typed\nshowna=b c\nhost\n")
        self.assertTrue((self.work / "made").exists())
        self.assertIn("--no-protect", words)

    def test_this_interpreter_is_shown(self) -> None:
        script = "import subprocess, sys; from belljar.integrations import command_line\n"
        script += "words = command_line([sys.executable, '-c', 'import sys; print(sys.prefix)'], workdir=None)\n"
        script += "print(subprocess.run(words, env={'PATH': '/usr/bin:/bin'}, capture_output=True, text=True).stdout == sys.prefix + '\\n')\n"
        self.assertEqual(self.host(script), "True\n")

    def test_what_a_command_line_cannot_say_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "policy file"):
            command_line(["true"], ro=[{"path": "/srv", "optional": True}])

    def test_the_command_ends_with_whoever_started_it(self) -> None:
        script = (
            "import subprocess, sys, os\n"
            "from belljar.integrations import command_line\n"
            "words = command_line(['sh', '-c', 'echo ready; sleep 1000', sys.argv[1]])\n"
            "child = subprocess.Popen(words, stdout=subprocess.PIPE)\n"
            "child.stdout.readline(); os._exit(0)\n"
        )
        self.host(script)
        self.wait_for(lambda: not self.marked(), "the jar is gone")


if __name__ == "__main__":
    unittest.main()
