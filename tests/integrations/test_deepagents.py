# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.deepagents with the framework: what its file tools make of a jar."""

from __future__ import annotations

import unittest
from typing import Any, Dict

import belljar
from belljar.integrations.deepagents import JarSandbox
from integration_case import IntegrationCase
from package_case import tearDownModule  # noqa: F401

SET_ASIDE = ["/large_tool_results", "/conversation_history"]


class DeepAgents(IntegrationCase):
    """Sandboxes."""

    def setUp(self) -> None:
        super().setUp()
        self.jar = belljar.Jar(workdir=None, tmpfs=SET_ASIDE)
        self.addCleanup(self.jar.close)
        self.sandbox = JarSandbox(self.jar)

    def test_the_example(self) -> None:
        self.check_example("deepagents")

    def test_every_file_tool(self) -> None:
        sandbox = self.sandbox
        self.assertIsNone(sandbox.write("/workspace/a/b.txt", "one\ntwo\n").error)
        self.assertIn("two", sandbox.read("/workspace/a/b.txt").file_data["content"])
        self.assertIsNone(sandbox.edit("/workspace/a/b.txt", "two", "three").error)
        self.assertEqual(self.jar.read_file("a/b.txt"), b"one\nthree\n")
        self.assertEqual([entry["path"] for entry in sandbox.ls("/workspace").entries], ["/workspace/a"])
        self.assertEqual([match["path"] for match in sandbox.grep("three", "/workspace").matches], ["/workspace/a/b.txt"])
        self.assertEqual(len(sandbox.glob("**/*.txt", "/workspace").matches), 1)
        self.assertIsNone(sandbox.delete("/workspace/a/b.txt").error)
        self.assertFalse(self.jar.exists("a/b.txt"))

    def test_commands(self) -> None:
        done = self.sandbox.execute("echo out; echo err >&2; exit 3")
        self.assertEqual((done.output, done.exit_code, done.truncated), ("out\nerr\n", 3, False))
        late = self.run_loop(self.sandbox.aexecute("echo early; sleep 1000", timeout=1))
        self.assertEqual(late.exit_code, 124)
        self.assertRegex(late.output, r"^early\n\n\[belljar ([0-9a-f]{8})\] .*limit 'timeout' of 1s\n\[belljar \1\] .*this call allowed it.*\n$")
        self.assertTrue(self.sandbox.execute("head -c 200000 /dev/zero").truncated)
        self.assertEqual(self.sandbox.execute("kill -9 $$").exit_code, 137)

    def test_background_work_lives_as_long_as_the_jar(self) -> None:
        self.assertEqual(self.sandbox.execute(f"(sleep 1000; : {self.marker}) & echo begun").output, "begun\n")
        self.assertNotEqual(self.marked(), [])
        self.jar.close()
        self.assertEqual(self.marked(), [])

    def test_uploads_and_downloads_fail_one_by_one(self) -> None:
        up = self.sandbox.upload_files([("/workspace/d/f", b"\0x"), ("/usr/f", b""), ("f", b""), ("/workspace/d", b"")])
        self.assertEqual([answer.error for answer in up], [None, "permission_denied", "invalid_path", "is_directory"])
        down = self.sandbox.download_files(["/workspace/d/f", "/workspace/none", "/workspace/d", "f", "/workspace/d/f/g"])
        self.assertEqual([answer.content for answer in down], [b"\0x", None, None, None, None])
        self.assertEqual(
            [answer.error for answer in down], [None, "file_not_found", "is_directory", "invalid_path", "invalid_path"]
        )

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        def see(keys: Dict[str, Any], command: str) -> str:
            with belljar.Jar(workdir=None, tmpfs=SET_ASIDE, **keys) as jar:
                return str(JarSandbox(jar).execute(command, timeout=0).output)

        self.check_limits(see)

    def test_a_jar_without_places_for_long_answers_is_warned_about(self) -> None:
        with belljar.Jar(workdir=None) as jar, self.assertWarnsRegex(UserWarning, "/large_tool_results"):
            JarSandbox(jar)


if __name__ == "__main__":
    unittest.main()
