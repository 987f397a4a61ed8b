# SPDX-License-Identifier: Apache-2.0
"""Policy, safe_env(), kill_tree(), capabilities(), the command line, and what the package shows of itself."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import unittest
from unittest import mock

import belljar
from harness import census
from package_case import PackageCase, tearDownModule  # noqa: F401


class Policies(PackageCase):
    """Policies as data."""

    def test_a_policy_is_a_frozen_value(self) -> None:
        policy = belljar.Policy(timeout=5, ro=["/usr"], cwd=self.work)
        self.assertEqual(policy.to_dict(), {"timeout": 5, "ro": ["/usr"], "workdir": str(self.work)})
        other = policy.replace(timeout=6)
        self.assertEqual((policy.to_dict()["timeout"], other.to_dict()["timeout"]), (5, 6))
        self.assertEqual(policy, other.replace(timeout=5))
        self.assertEqual(hash(policy), hash(other.replace(timeout=5)))
        self.assertEqual(pickle.loads(pickle.dumps(policy)), policy)
        self.assertEqual(eval(repr(policy), {"Policy": belljar.Policy}), policy)
        policy.to_dict()["timeout"] = 7
        self.assertEqual(policy.to_dict()["timeout"], 5)
        with self.assertRaises(AttributeError):
            policy.timeout = 3  # type: ignore[attr-defined]
        with self.assertRaises(TypeError):
            belljar.Policy(cwd="/a", workdir="/b")
        with self.assertRaises(belljar.PolicyError):
            belljar.Policy(timeout=object())

    def test_it_is_used(self) -> None:
        policy = belljar.Policy(timeout=0.2)
        self.assertEqual(belljar.run(self.sh("sleep 1000"), policy=policy).outcome, "timeout")
        self.assertEqual(belljar.run(["true"], policy=policy, timeout=30).outcome, "exited")
        self.assertEqual(belljar.run(["pwd"], policy="strict").stdout, "/workspace\n")
        self.assertEqual(belljar.run(["pwd"], policy=belljar.Policy.preset("strict")).stdout, "/workspace\n")

    def test_a_file(self) -> None:
        folder = self.base / "policies"
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "file").write_text("found")
        path = folder / "mine.json"
        path.write_text('// mine\n{ "ro": ["data", ], /* "x": */ "env": {"A": "http://x//y, ]"}, "timeout": "20s", }\n')
        policy = belljar.Policy.load(path)
        self.assertEqual(policy.to_dict(), {"ro": ["data"], "env": {"A": "http://x//y, ]"}, "timeout": "20s"})
        command = ["sh", "-c", f"cat {folder}/data/file; echo $A"]
        for given in (policy, path, str(path), os.path.relpath(path), pickle.loads(pickle.dumps(policy))):
            self.assertEqual(belljar.run(command, policy=given).stdout, "foundhttp://x//y, ]\n", repr(given))
        path.unlink()
        self.assertEqual(belljar.run(command, policy=policy).stdout, "foundhttp://x//y, ]\n")

    def test_bad_files_and_presets_are_told_at_once(self) -> None:
        path = self.work / "bad.json"
        path.write_text('{\n  "tiemout": 3 }')
        with self.assertRaisesRegex(belljar.PolicyError, r"bad\.json:2:\d+: unknown key 'tiemout' \(did you mean 'timeout'"):
            belljar.Policy.load(path)
        with self.assertRaises(belljar.PolicyError):
            belljar.Policy.load(self.work / "absent.json")
        with self.assertRaisesRegex(belljar.PolicyError, "agent, readonly and strict"):
            belljar.Policy.preset("nonsense")
        with self.assertRaises(belljar.PolicyError):
            belljar.Policy.preset("./file.json")


class Environment(unittest.TestCase):
    """safe_env()."""

    def test_only_what_is_named_and_set(self) -> None:
        given = {"PATH": "/bin", "LC_ALL": "C", "AWS_KEY": "x", "GIT_AUTHOR_NAME": "a", "CI": "1", "CI_TOKEN": "2", "LANGX": "3"}
        with mock.patch.dict(os.environ, given, clear=True):
            self.assertEqual(belljar.safe_env(), {"PATH": "/bin", "LC_ALL": "C", "GIT_AUTHOR_NAME": "a"})
            self.assertEqual(belljar.safe_env(["CI", "ABSENT"])["CI"], "1")
            self.assertEqual(set(belljar.safe_env(["CI*"])) - set(belljar.safe_env()), {"CI", "CI_TOKEN"})
            self.assertEqual(belljar.safe_env(extra={"PATH": "/x", "A": "b"})["PATH"], "/x")
            with self.assertRaises(TypeError):
                belljar.safe_env("CI")

    def test_the_names_are_those_of_the_default_policy(self) -> None:
        from belljar._host import SAFE_NAMES

        program = os.environ["BELLJAR_BIN"]
        shown = subprocess.run([program, "policy", "show", "agent"], capture_output=True, text=True, check=True).stdout
        import json

        self.assertEqual(json.loads(shown)["pass_env"], SAFE_NAMES)


class Trees(PackageCase):
    """kill_tree()."""

    def start(self, script: str) -> subprocess.Popen[bytes]:
        """A tree outside of any jar."""
        process = subprocess.Popen(["/bin/sh", "-c", script, self.marker], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)  # type: ignore[union-attr]
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_the_whole_tree_dies(self) -> None:
        inner = f"sh -c 'setsid sh -c \"sleep 1000; true {self.marker}\" & sleep 1000; true {self.marker}' & echo ready; wait"
        process = self.start(inner)
        assert process.stdout
        process.stdout.readline()
        self.wait_for(lambda: len(self.marked()) >= 3, "the tree stands")
        belljar.kill_tree(process.pid)
        self.wait_for(lambda: self.marked() == [], "the tree is gone")
        self.assertEqual(process.wait(), -signal.SIGKILL)
        belljar.kill_tree(process.pid)

    def test_stopped_processes_and_forkers_die_too(self) -> None:
        process = self.start(f"while :; do sh -c 'sleep 0.05; true {self.marker}' & sleep 0.01; done")
        self.wait_for(lambda: len(self.marked()) >= 3, "it forks")
        os.kill(process.pid, signal.SIGSTOP)
        belljar.kill_tree(process.pid)
        process.wait()
        self.wait_for(lambda: self.marked() == [], "the tree is gone")

    def test_siblings_in_the_same_group_live(self) -> None:
        one = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        two = subprocess.Popen(["sleep", "1000"])
        try:
            belljar.kill_tree(one.pid)
            self.assertEqual(one.wait(), -9)
            self.assertIsNone(two.poll())
        finally:
            for process in (one, two):
                process.kill()
                process.wait()

    def test_what_may_not_be_killed(self) -> None:
        for pid in (0, 1, -1, -5, os.getpid(), os.getppid()):
            with self.assertRaises(ValueError, msg=str(pid)):
                belljar.kill_tree(pid)
        with self.assertRaises(TypeError):
            belljar.kill_tree("1")  # type: ignore[arg-type]
        child = subprocess.Popen(["true"])
        child.wait()
        belljar.kill_tree(child.pid)


class Package(PackageCase):
    """What else is in it."""

    def test_capabilities(self) -> None:
        found = belljar.capabilities()
        self.assertEqual(found["version"], 1)
        self.assertIn("best_rung", found)

    def test_the_command_line(self) -> None:
        command = [sys.executable, "-m", "belljar"]
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, f"belljar {belljar.__version__}\n")
        done = subprocess.run([*command, "run", "--", "sh", "-c", "echo out; exit 7"], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.returncode), ("out\n", 7))

    def test_all_that_is_promised_is_there(self) -> None:
        for name in belljar.__all__:
            self.assertIsNotNone(getattr(belljar, name), name)
            self.assertIn(name, dir(belljar))
        names = "run run_async spawn spawn_async Process AsyncProcess Jar Policy Result FileInfo safe_env kill_tree capabilities"
        names += " call call_async Pool tool"
        errors = "BelljarError PolicyError UnavailableError StartError EngineError RunError RunTimeout"
        errors += " SendError CallError CallTimeout CallEnded ResultError"
        self.assertEqual(set((names + " " + errors).split()) - set(belljar.__all__), set())
        with self.assertRaises(AttributeError):
            belljar.nonsense  # type: ignore[attr-defined]  # noqa: B018
        self.assertTrue(issubclass(belljar.RunTimeout, TimeoutError) and issubclass(belljar.StartError, OSError))
        self.assertTrue(all(issubclass(getattr(belljar, name), belljar.BelljarError) for name in errors.split()))

    def test_on_other_systems_the_first_use_says_so(self) -> None:
        for use in ("belljar.run(['true'])", "belljar.call(len, '')", "belljar.Pool()", "belljar.tool(lambda: 1)()"):
            script = "import sys, fcntl, os; sys.platform = 'darwin'\ndel os.memfd_create, fcntl.F_ADD_SEALS\nimport belljar\n"
            script += f"try:\n    {use}\nexcept belljar.UnavailableError as error:\n    print(error)"
            self.assertIn("Belljar needs Linux", self.host(script), use)

    def test_an_engine_left_over_would_be_seen(self) -> None:
        belljar.run(["true"])
        self.assertIn("belljar engine", [census.command_line(pid) for pid in census.descendants(os.getpid())])


if __name__ == "__main__":
    unittest.main()
