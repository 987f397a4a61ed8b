# SPDX-License-Identifier: Apache-2.0
"""belljar.adapters.openjarvis: the contract of the module it replaces, and the holes that are closed."""

from __future__ import annotations

import dataclasses
import inspect
import os
import resource
import subprocess
import unittest

from belljar.adapters import openjarvis
from belljar.adapters.openjarvis import SandboxResult, build_safe_env, kill_process_tree, run_sandboxed
from package_case import BOUND_SECONDS, PackageCase, tearDownModule  # noqa: F401

SAFE = set("PATH HOME USER LANG TERM SHELL LC_ALL LC_CTYPE TMPDIR TZ".split())
SLEEP = 1000


class Contract(PackageCase):
    def test_names_and_defaults(self) -> None:
        self.assertEqual(openjarvis.__all__, ["SandboxResult", "build_safe_env", "kill_process_tree", "run_sandboxed"])
        self.assertEqual(openjarvis._SAFE_ENV_VARS, frozenset(SAFE))
        self.assertEqual(
            dataclasses.asdict(SandboxResult()),
            {"stdout": "", "stderr": "", "returncode": -1, "timed_out": False, "killed": False},
        )
        parameters = inspect.signature(run_sandboxed).parameters
        self.assertEqual(
            {name: parameter.default for name, parameter in parameters.items() if name != "command"},
            dict(timeout=30.0, working_dir=None, env_passthrough=None, env_extra=None, max_output_bytes=102_400),
        )

    def test_the_safe_environment(self) -> None:
        os.environ.update(BJT_SECRET="s", BJT_WANTED="w")
        self.addCleanup(os.environ.pop, "BJT_SECRET")
        self.addCleanup(os.environ.pop, "BJT_WANTED")
        self.assertEqual(set(build_safe_env()) - SAFE, set())
        env = build_safe_env(["BJT_WANTED", "BJT_UNSET"], {"PATH": "mine", "A": "b"})
        self.assertEqual((env["BJT_WANTED"], env["PATH"], env["A"]), ("w", "mine", "b"))
        self.assertNotIn("BJT_UNSET", env)
        self.assertNotIn("BJT_SECRET", env)

    def test_an_ordinary_command(self) -> None:
        self.assertEqual(run_sandboxed("echo out; echo err >&2"), SandboxResult("out\n", "err\n", 0))
        self.assertEqual(run_sandboxed("exit 42").returncode, 42)
        result = run_sandboxed("kill -9 $$")
        self.assertEqual((result.returncode, result.timed_out, result.killed), (-9, False, False))

    def test_the_environment_inside(self) -> None:
        os.environ.update(BJT_SECRET="the-hidden-value", BJT_WANTED="w", GIT_AUTHOR_NAME="somebody")
        for name in ("BJT_SECRET", "BJT_WANTED", "GIT_AUTHOR_NAME"):
            self.addCleanup(os.environ.pop, name)
        result = run_sandboxed("env", env_passthrough=["BJT_WANTED"], env_extra={"EXTRA": "e"})
        names = {line.partition("=")[0] for line in result.stdout.splitlines()}
        self.assertEqual(names - SAFE - {"PWD", "SHLVL", "_", "OLDPWD"}, {"BJT_WANTED", "EXTRA"})

    def test_the_working_directory(self) -> None:
        self.assertEqual(run_sandboxed("pwd", working_dir=str(self.work)).stdout, f"{self.work}\n")
        self.assertEqual(run_sandboxed("pwd").stdout, f"{self.work}\n")

    def test_the_cap_holds_for_each_stream_and_fails_nothing(self) -> None:
        result = run_sandboxed("printf %0100d 0; printf %0100d 0 >&2", max_output_bytes=50)
        self.assertEqual((len(result.stdout), len(result.stderr), result.returncode), (50, 50, 0))
        result = run_sandboxed("head -c 300000 /dev/zero | tr '\\0' x; echo end >&2", max_output_bytes=102_400)
        self.assertEqual((len(result.stdout), result.stderr, result.returncode), (102_400, "end\n", 0))

    def test_a_timeout(self) -> None:
        result = run_sandboxed(f"sleep {SLEEP}", timeout=0.3)
        self.assertEqual(result, SandboxResult("(timed out)", "", -1, timed_out=True, killed=True))

    def test_an_empty_working_dir_is_none(self) -> None:
        self.assertEqual(run_sandboxed("pwd", working_dir="").stdout, f"{self.work}\n")

    def test_a_current_directory_that_will_not_do_is_told(self) -> None:
        """As a last line of stderr, whatever else is there, and only where no directory was named."""
        os.chdir("/")
        for command, stdout, stderr in (("pwd", "/workspace\n", ""), ("printf x >&2", "", "x\n"), ("echo x >&2", "", "x\n")):
            result = run_sandboxed(command)
            self.assertEqual((result.returncode, result.stdout), (0, stdout))
            self.assertTrue(result.stderr.startswith(stderr))
            line = result.stderr[len(stderr) :]
            self.assertEqual(line.count("\n"), 1, line)
            self.assertIn("private", line)
        self.assertIn("private", run_sandboxed(f"sleep {SLEEP}", timeout=0.2).stderr)
        self.assertEqual(run_sandboxed("pwd", working_dir=str(self.work)).stderr, "")
        os.chdir(self.work)
        self.assertEqual(run_sandboxed("pwd").stderr, "")

    def test_killing_what_is_not_there(self) -> None:
        kill_process_tree(999_999_999)

    def test_killing_a_tree(self) -> None:
        child = subprocess.Popen(self.sh("sh -c 'touch began; sleep 100; :' $0 & wait"))
        self.addCleanup(child.kill)
        self.wait_for((self.work / "began").exists, "the tree stands")
        # Right after a fork the child still has its parent's arguments, and so the marker.
        self.wait_for(lambda: len(self.marked()) == 2, "a shell below a shell")
        kill_process_tree(child.pid)
        self.assertEqual(child.wait(BOUND_SECONDS), -9)
        self.assertEqual(self.marked(), [])

    def test_further_keys(self) -> None:
        openjarvis.POLICY.update(workdir=None)
        self.addCleanup(openjarvis.POLICY.clear)
        self.assertEqual(run_sandboxed("pwd").stdout, "/workspace\n")


class Holes(PackageCase):
    """By their numbers in the list of holes."""

    def test_hole_2_grandchildren_do_not_survive_a_timeout(self) -> None:
        script = f"(trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep {SLEEP}; : {self.marker}' &) ; sleep {SLEEP}"
        openjarvis.POLICY.update(grace=0.2)
        self.addCleanup(openjarvis.POLICY.clear)
        self.assertTrue(run_sandboxed(script, timeout=0.5).timed_out)
        self.assertEqual(self.marked(), [])

    def test_hole_3_a_child_that_holds_the_pipe_is_no_timeout(self) -> None:
        result = run_sandboxed(f"setsid sleep {SLEEP} & echo done", timeout=60)
        self.assertEqual((result.stdout, result.returncode, result.timed_out), ("done\n", 0, False))

    def test_hole_4_output_beyond_the_cap_is_not_kept_in_memory(self) -> None:
        run_sandboxed("true")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = run_sandboxed("head -c 200000000 /dev/zero", max_output_bytes=1000, timeout=120)
        self.assertEqual((len(result.stdout), result.returncode), (1000, 0))
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 20_000, "kB")

    def test_hole_4_the_cap_counts_bytes_and_cuts_no_character(self) -> None:
        self.assertEqual(run_sandboxed("printf '€€€€'", max_output_bytes=10).stdout, "€€€")

    def test_hole_7_the_environment_cannot_be_read_back(self) -> None:
        os.environ["BJT_SECRET"] = "the-hidden-value"
        self.addCleanup(os.environ.pop, "BJT_SECRET")
        result = run_sandboxed("cat /proc/$PPID/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c the-hidden; true")
        self.assertEqual(result.stdout, "0\n")

    def test_hole_8_partial_output_survives_a_timeout(self) -> None:
        result = run_sandboxed(f"echo out; echo err >&2; sleep {SLEEP}", timeout=0.5)
        self.assertEqual((result.stdout, result.stderr, result.timed_out), ("out\n", "err\n", True))

    def test_hole_8_output_that_is_not_utf_8(self) -> None:
        self.assertEqual(run_sandboxed(r"printf 'a\377b'").stdout, "a\ufffdb")

    def test_hole_10_a_bad_working_directory_is_an_error(self) -> None:
        for wrong in (str(self.base / "missing"), "/etc/passwd", "/"):
            result = run_sandboxed("touch ran", working_dir=wrong)
            self.assertEqual((result.returncode, result.stdout), (-1, ""))
            self.assertTrue(result.stderr.startswith("Execution error:"), result.stderr)

    def test_hole_10_what_cannot_be_started_is_an_error(self) -> None:
        for wrong in ("a\0b", None):
            result = run_sandboxed(wrong)  # type: ignore[arg-type]
            self.assertTrue(result.stderr.startswith("Execution error:"), result.stderr)

    def test_hole_11_killing_never_kills_the_caller(self) -> None:
        with self.assertLogs(openjarvis._logger, "WARNING"):
            for pid in (os.getpid(), os.getppid(), 0, 1, -1):
                kill_process_tree(pid)
        script = (
            "import subprocess, sys; from belljar.adapters.openjarvis import kill_process_tree\n"
            "child = subprocess.Popen(['sleep', '1000']); kill_process_tree(child.pid); print(child.wait())"
        )
        self.assertEqual(self.host(script), "-9\n")


if __name__ == "__main__":
    unittest.main()
