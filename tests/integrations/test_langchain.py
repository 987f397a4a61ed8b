# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.langchain with the framework: its shell sessions, in jars."""

from __future__ import annotations

import os
import unittest
from typing import Any, Dict

import belljar
from belljar.integrations.langchain import JarExecutionPolicy
from integration_case import IntegrationCase
from langchain.agents.middleware.shell_tool import ShellSession
from package_case import tearDownModule  # noqa: F401


class LangChain(IntegrationCase):
    """Shells."""

    def session(self, environment: dict[str, str], **options: object) -> ShellSession:
        """A shell as the middleware starts it."""
        policy = JarExecutionPolicy(options=options, termination_timeout=0.5)
        session = ShellSession(self.work, policy, ("/bin/sh",), environment)
        session.start()
        self.addCleanup(session.stop, 20)
        return session

    def test_the_example(self) -> None:
        self.check_example("langchain")

    def test_the_session_is_in_a_jar_over_the_workspace(self) -> None:
        session = self.session({"TOKEN": f"secret-{self.marker}"})
        done = session.execute("echo hello >file; echo $TOKEN; ls ~ | wc -l; false", timeout=60)
        self.assertEqual((done.exit_code, done.output), (1, f"secret-{self.marker}\n0\n"))
        self.assertEqual((self.work / "file").read_text(), "hello\n")
        # The value is in the shell's environment, and in nobody's command line.
        self.assertEqual(self.marked(), [])

    def test_a_command_that_hangs_is_killed_with_its_jar(self) -> None:
        session = self.session({})
        self.assertTrue(session.execute(f"sleep 1000 & sleep 1000; : {self.marker}", timeout=1).timed_out)
        self.assertEqual(session.execute("echo again", timeout=60).output, "again\n")

    def test_options_are_policy_keys(self) -> None:
        session = self.session({}, hostname="jar-host", memory="64M")
        self.assertEqual(session.execute("uname -n", timeout=60).output, "jar-host\n")

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        def see(keys: Dict[str, Any], command: str) -> str:
            session = self.session({}, **keys)
            done = session.execute(command, timeout=120)
            self.assertFalse(done.timed_out)
            return str(done.output)

        self.check_limits(see)

    def test_mistakes_are_found_when_it_is_made(self) -> None:
        self.check_mistakes(lambda **keys: JarExecutionPolicy(options=keys))
        for policy in ({"memory": "1G"}, belljar.Policy(memory="1G")):
            with self.assertRaisesRegex(belljar.PolicyError, "the name of a preset or a file") as caught:
                JarExecutionPolicy(options={"policy": policy})
            self.assertIn("options of their own", caught.exception.hint)
        with self.assertRaisesRegex(TypeError, "write a policy file for more"):
            JarExecutionPolicy(options={"ro": [{"path": "/srv", "optional": True}]})
        os.environ["BELLJAR_TEST_FOO"] = "bar"
        self.addCleanup(os.environ.pop, "BELLJAR_TEST_FOO")
        session = self.session({}, pass_env="BELLJAR_TEST_FOO")
        self.assertEqual(session.execute("echo $BELLJAR_TEST_FOO", timeout=60).output, "bar\n")


if __name__ == "__main__":
    unittest.main()
