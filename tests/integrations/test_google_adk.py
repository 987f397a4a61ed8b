# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.google_adk with the framework: environments, and code with files."""

from __future__ import annotations

import asyncio
import base64
import unittest
from pathlib import Path
from typing import Any, Dict

from belljar.integrations.google_adk import JarCodeExecutor, JarEnvironment
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from integration_case import IntegrationCase
from package_case import tearDownModule  # noqa: F401


class GoogleADK(IntegrationCase):
    """Environments and code executors."""

    def test_the_example(self) -> None:
        self.check_example("google_adk")

    def test_an_environment(self) -> None:
        async def main() -> None:
            environment = JarEnvironment(timeout=60)
            with self.assertRaises(RuntimeError):
                await environment.execute("true")
            await environment.initialize()
            await environment.initialize()
            self.assertTrue(environment.is_initialized)
            self.assertEqual(environment.working_dir, Path("/workspace"))
            await environment.write_file("a/b", "text")
            await environment.write_file(Path("/workspace/a/c"), b"\0")
            self.assertEqual(await environment.read_file("a/c"), b"\0")
            done = await environment.execute("cat a/b; echo err >&2; exit 3")
            self.assertEqual((done.exit_code, done.stdout, done.stderr, done.timed_out), (3, "text", "err\n", False))
            late = await environment.execute("echo early; sleep 1000", timeout=0.5)
            self.assertEqual((late.exit_code, late.stdout, late.timed_out), (124, "early\n", True))
            with self.assertRaises(FileNotFoundError):
                await environment.read_file("none")
            await environment.execute(f"(until [ -e go ]; do sleep 0.01; done; touch gone; sleep 1000; : {self.marker}) &")
            await environment.write_file("go", "")
            while not (await environment.execute("test -e gone")).exit_code == 0:
                await asyncio.sleep(0.01)
            self.assertNotEqual(self.marked(), [])
            await environment.close()
            await environment.close()
            self.assertFalse(environment.is_initialized)

        self.run_loop(main())

    def execute(self, code: str, *files: File, **options: object) -> CodeExecutionResult:
        """Run a block."""
        return JarCodeExecutor(**options).execute_code(None, CodeExecutionInput(code=code, input_files=list(files)))

    def test_code_with_files(self) -> None:
        code = "import shutil; shutil.copy('in/a.csv', 'b.csv'); open('c', 'wb').write(b'\\0'); print('done')"
        given = File(name="in/a.csv", content=base64.b64encode(b"1,2\n").decode())
        done = self.execute(code, given, File(name="raw", content=b"as it is"))
        self.assertEqual((done.stdout, done.stderr, done.exit_code), ("done\n", "", 0))
        found = {file.name: (file.content, file.mime_type) for file in done.output_files}
        self.assertEqual(found, {"b.csv": (b"1,2\n", "text/csv"), "c": (b"\0", "application/octet-stream")})

    def test_output_that_cannot_be_taken_is_remarked(self) -> None:
        done = self.execute("import os; open('a', 'w').close(); os.chmod('a', 0); os.truncate(os.open('b', 65), 65 << 20); os.mkfifo('c')")
        self.assertEqual((done.output_files, done.exit_code), ([], 0))
        self.assertRegex(done.stdout, r"(?s)Permission denied: 'a'.*larger than.*'b'")
        deep = self.execute("import os\nfor _ in range(200): os.mkdir('d'); os.chdir('d')")
        self.assertIn("cannot be listed", deep.stdout)

    def test_a_failure_is_in_stderr_and_only_a_failure(self) -> None:
        self.assertEqual(self.execute("import sys; print('warning', file=sys.stderr)").stderr, "")
        self.assertIn("ZeroDivisionError", self.execute("1/0").stderr)
        silent = self.execute("import os; os._exit(7)")
        self.assertEqual((silent.stderr, silent.exit_code), ("exit status 7", 7))
        self.assertIn("limit 'timeout'", self.execute("while True: pass", timeout_seconds=1).stderr)
        with self.assertRaises(ValueError):
            self.execute("", keys={"workdir": "."})

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        async def run(keys: Dict[str, Any], command: str) -> str:
            environment = JarEnvironment(**keys)
            await environment.initialize()
            try:
                done = await environment.execute(command, timeout=None)
                return str(done.stdout + done.stderr)
            finally:
                await environment.close()

        self.check_limits(lambda keys, command: str(self.run_loop(run(keys, command))))

    def test_the_owners_limits_hold_for_code(self) -> None:
        def see(keys: Dict[str, Any], command: str) -> str:
            code = f"import subprocess, sys; sys.exit(subprocess.run({command!r}, shell=True).returncode)"
            done = self.execute(code, **keys)
            return str(done.stdout + done.stderr)

        self.check_limits(see)

    def test_mistakes_are_found_when_it_is_made(self) -> None:
        self.check_mistakes(JarEnvironment)
        self.check_mistakes(JarCodeExecutor)
        self.check_mistakes(lambda **keys: JarCodeExecutor(keys.pop("policy", None), keys=keys))

    def test_the_strict_preset_has_an_interpreter_too(self) -> None:
        self.assertEqual(self.execute("print(1)", policy="strict").stdout, "1\n")


if __name__ == "__main__":
    unittest.main()
