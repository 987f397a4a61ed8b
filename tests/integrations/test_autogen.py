# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.autogen with the framework: code blocks, their limits, and the cancellation token."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any, Dict

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from belljar.integrations.autogen import JarCodeExecutor
from integration_case import IntegrationCase
from package_case import tearDownModule  # noqa: F401


async def execute(executor: JarCodeExecutor, *blocks: tuple[str, str]) -> CodeResult:
    """Run blocks of (language, code)."""
    return await executor.execute_code_blocks([CodeBlock(code, language) for language, code in blocks], CancellationToken())


class AutoGen(IntegrationCase):
    """Code executors."""

    def test_the_example(self) -> None:
        self.check_example("autogen")

    def test_blocks_share_files_and_stop_at_the_first_failure(self) -> None:
        async def main() -> None:
            async with JarCodeExecutor() as executor:
                blocks = [("python", "open('f', 'w').write('x')"), ("bash", "cat f; exit 4"), ("sh", "echo never")]
                done = await execute(executor, *blocks)
                self.assertEqual((done.exit_code, done.output), (4, "x"))
                self.assertEqual((await execute(executor, ("sh", "cat f"))).output, "x")
                await executor.restart()
                self.assertEqual((await execute(executor, ("sh", "cat f 2>&1 >/dev/null; exit 0"))).exit_code, 0)
                self.assertEqual((await execute(executor, ("cobol", "x"))).exit_code, 1)

        self.run_loop(main())

    def test_a_traceback_and_a_limit_are_in_the_output(self) -> None:
        async def main() -> None:
            async with JarCodeExecutor(timeout=1) as executor:
                wrong = await execute(executor, ("python", "print('before', flush=True)\n1/0"))
                self.assertEqual(wrong.exit_code, 1)
                self.assertRegex(wrong.output, r"(?s)^before\n.*ZeroDivisionError")
                late = await execute(executor, ("sh", "echo early; sleep 1000"))
                self.assertEqual(late.exit_code, 124)
                self.assertIn("limit 'timeout'", late.output)

        self.run_loop(main())

    def test_the_token_ends_a_block(self) -> None:
        async def main() -> None:
            async with JarCodeExecutor(timeout=None) as executor:
                token = CancellationToken()
                block = CodeBlock(f"touch started; sleep 1000; : {self.marker}", "sh")
                task = asyncio.create_task(executor.execute_code_blocks([block], token))
                while not (await execute(executor, ("sh", "test -e started"))).exit_code == 0:
                    await asyncio.sleep(0.01)
                token.cancel()
                self.assertEqual((await task).exit_code, 125)
                self.assertEqual(self.marked(), [])

        self.run_loop(main())

    def test_an_executor_can_be_saved(self) -> None:
        saved = JarCodeExecutor("strict", hostname="saved").dump_component()
        loaded = CodeExecutor.load_component(saved)
        self.assertIsInstance(loaded, JarCodeExecutor)

        async def main() -> None:
            async with loaded as executor:
                self.assertEqual((await execute(executor, ("sh", "uname -n"))).output, "saved\n")

        self.run_loop(main())

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        async def run(keys: Dict[str, Any], command: str) -> str:
            async with JarCodeExecutor(**keys) as executor:
                return str((await execute(executor, ("sh", command))).output)

        self.check_limits(lambda keys, command: str(self.run_loop(run(keys, command))))

    def test_mistakes_are_found_when_it_is_made(self) -> None:
        self.check_mistakes(JarCodeExecutor)

    def test_the_strict_preset_has_an_interpreter_too(self) -> None:
        async def main() -> None:
            async with JarCodeExecutor("strict") as executor:
                self.assertEqual((await execute(executor, ("python", "print(1)"))).output, "1\n")

        self.run_loop(main())


if __name__ == "__main__":
    unittest.main()
