# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.pydantic_ai with the framework: its conformance suite, and what the suite does not ask."""

from __future__ import annotations

import os
import unittest
from typing import Any, Dict

from belljar.integrations.pydantic_ai import JarWorkspace
from integration_case import IntegrationCase
from package_case import tearDownModule  # noqa: F401
from pydantic_ai.workspaces import WorkspaceOutputLimitError, WorkspaceTimeoutError, WorkspaceUnavailableError


class PydanticAI(IntegrationCase):
    """Workspaces."""

    def test_the_example(self) -> None:
        self.check_example("pydantic_ai")

    def test_the_conformance_suite(self) -> None:
        outcomes = self.run_suite("suite_pydantic_ai.py")
        # In a root user's jar the uid is 0, and the suite takes that for a user whom nothing is forbidden.
        by_root = ["test_permission_denied_uses_builtin_error[asyncio]", "test_permission_denied_uses_builtin_error[trio]"]
        self.assertEqual(outcomes["skipped"], by_root if os.getuid() == 0 else [])
        self.assertGreaterEqual(len(outcomes["passed"]) + len(outcomes["skipped"]), 76)

    def test_limits_are_the_framework_s_errors(self) -> None:
        async def main() -> None:
            async with JarWorkspace(workdir=None, output=1000) as workspace:
                with self.assertRaises(WorkspaceOutputLimitError) as caught:
                    await workspace.run(["head", "-c", "2000", "/dev/zero"])
                self.assertEqual((caught.exception.limit, len(caught.exception.stdout)), (1000, 1000))
                with self.assertRaises(WorkspaceTimeoutError) as late:
                    await workspace.run("echo early; sleep 1000", shell=True, timeout=0.5)
                self.assertEqual(late.exception.stdout, "early\n")
                self.assertEqual((await workspace.run("kill -9 $$", shell=True)).exit_code, 137)
                self.assertEqual((await workspace.run(["/etc/passwd"])).exit_code, 126)

        self.run_loop(main())

    def test_a_closed_jar_is_unavailable_to_all_that_use_it(self) -> None:
        async def main() -> None:
            workspace = JarWorkspace(workdir=None)
            await workspace.write_bytes("/workspace/file", b"data")
            other = JarWorkspace(ref=workspace.ref)
            self.assertEqual(await other.read_bytes("/workspace/file"), b"data")
            await workspace.close()
            await workspace.close()
            for use in (other, workspace):
                with self.assertRaises(WorkspaceUnavailableError):
                    await use.run(["true"])

        self.run_loop(main())

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        async def run(keys: Dict[str, Any], command: str) -> str:
            async with JarWorkspace(**keys) as workspace:
                try:
                    done = await workspace.run(command, shell=True, timeout=None)
                except WorkspaceTimeoutError as error:
                    return str(error)
                return str(done.stdout + done.stderr)

        self.check_limits(lambda keys, command: str(self.run_loop(run(keys, command))))

    def test_mistakes_are_found_when_it_is_made(self) -> None:
        self.check_mistakes(JarWorkspace)


if __name__ == "__main__":
    unittest.main()
