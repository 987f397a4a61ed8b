# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.inspect_ai with the framework: its self check, and samples as users write them."""

from __future__ import annotations

import asyncio
import os
import unittest
from typing import Any, Dict

from belljar.integrations.inspect_ai import JarConfig, JarSandboxEnvironment
from inspect_ai.util import OutputLimitExceededError, SandboxEnvironmentSpec, SandboxUnavailableError, SandboxUserUnsupportedError
from inspect_ai.util._sandbox.events import SandboxEnvironmentProxy
from inspect_ai.util._sandbox.limits import override_max_exec_output_size
from integration_case import IntegrationCase
from package_case import tearDownModule  # noqa: F401


class InspectAI(IntegrationCase):
    """Sandboxes of samples."""

    def test_the_example(self) -> None:
        self.check_example("inspect_ai")

    def test_the_self_check(self) -> None:
        outcomes = self.run_suite("suite_inspect_ai.py")
        self.assertEqual(outcomes["skipped"], ["test_exec_as_user[asyncio]", "test_exec_as_user[trio]"])
        self.assertGreaterEqual(len(outcomes["passed"]), 86)

    def test_the_module_is_found_by_its_entry_point_alone(self) -> None:
        script = (
            "from inspect_ai.util._sandbox.registry import registry_find_sandboxenv\n"
            "print(registry_find_sandboxenv('belljar').__module__)\n"
        )
        self.assertEqual(self.host(script), "belljar.integrations.inspect_ai\n")

    def test_configuration(self) -> None:
        (self.work / "policy.json").write_text('{"workdir": null, "hostname": "from-file"}')
        config = JarConfig(policy="strict", hostname="from-keys")
        again = SandboxEnvironmentSpec.model_validate(SandboxEnvironmentSpec("belljar", config).model_dump())
        self.assertEqual(again.config, config)

        async def name(config: object) -> str:
            made = await JarSandboxEnvironment.sample_init("task", config, {})
            try:
                return (await made["default"].exec(["uname", "-n"])).stdout.strip()
            finally:
                await JarSandboxEnvironment.sample_cleanup("task", config, made, True)

        self.assertEqual(self.run_loop(name("./policy.json")), "from-file")
        self.assertEqual(self.run_loop(name(config)), "from-keys")

    def test_background_work_outlives_its_command_but_not_the_sample(self) -> None:
        async def main() -> None:
            made = await JarSandboxEnvironment.sample_init("task", None, {})
            sandbox = made["default"]
            await sandbox.exec(["sh", "-c", f"(until [ -e go ]; do sleep 0.01; done; touch gone; sleep 1000; : {self.marker}) &"])
            await sandbox.write_file("go", "")
            while not (await sandbox.exec(["test", "-e", "gone"])).success:
                await asyncio.sleep(0.01)
            self.assertNotEqual(self.marked(), [])
            await JarSandboxEnvironment.sample_cleanup("task", None, made, False)
            self.assertEqual(self.marked(), [])
            with self.assertRaises(SandboxUnavailableError):
                await sandbox.exec(["true"])

        self.run_loop(main())

    def test_inspect_s_own_tools_run_in_a_jar(self) -> None:
        async def main() -> None:
            made = await JarSandboxEnvironment.sample_init("task", None, {})
            try:
                sandbox = SandboxEnvironmentProxy(made["default"])  # as samples have it
                process = await sandbox.exec_remote(["sh", "-c", "echo out; echo err >&2; exit 3"], stream=False)
                self.assertEqual((process.returncode, process.stdout, process.stderr), (3, "out\n", "err\n"))
            finally:
                await JarSandboxEnvironment.sample_cleanup("task", None, made, False)

        self.run_loop(main())

    def test_each_stream_has_the_limit_for_itself(self) -> None:
        async def main() -> None:
            made = await JarSandboxEnvironment.sample_init("task", None, {})
            try:
                with override_max_exec_output_size(1000):
                    full = await made["default"].exec(["sh", "-c", "head -c 1000 /dev/zero | tee /dev/stderr"])
                    self.assertEqual((len(full.stdout), len(full.stderr)), (1000, 1000))
                    with self.assertRaises(OutputLimitExceededError):
                        await made["default"].exec(["sh", "-c", "head -c 1001 /dev/zero >&2"])
            finally:
                await JarSandboxEnvironment.sample_cleanup("task", None, made, False)

        self.run_loop(main())

    def test_another_user_is_refused_and_the_own_one_is_not(self) -> None:
        async def main() -> None:
            made = await JarSandboxEnvironment.sample_init("task", None, {})
            try:
                self.assertTrue((await made["default"].exec(["true"], user=str(os.getuid()))).success)
                with self.assertRaises(SandboxUserUnsupportedError):
                    await made["default"].exec(["true"], user="daemon")
                missing = await made["default"].exec(["no-such-program"])
                self.assertEqual((missing.success, missing.returncode), (False, 127))
                self.assertFalse((await made["default"].exec(["true"], cwd="/no/such/directory")).success)
            finally:
                await JarSandboxEnvironment.sample_cleanup("task", None, made, False)

        self.run_loop(main())

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        async def run(keys: Dict[str, Any], command: str) -> str:
            config = JarConfig(**keys)
            made = await JarSandboxEnvironment.sample_init("task", config, {})
            try:
                done = await made["default"].exec(["sh", "-c", command], timeout=None)
                return str(done.stdout + done.stderr)
            finally:
                await JarSandboxEnvironment.sample_cleanup("task", config, made, False)

        self.check_limits(lambda keys, command: str(self.run_loop(run(keys, command))))

    def test_mistakes_are_found_when_it_is_made(self) -> None:
        self.check_mistakes(JarConfig)

    def test_a_preset_in_the_short_form(self) -> None:
        # Inspect has made a path of the word by then.
        config = str(self.work / "strict")

        async def main() -> None:
            made = await JarSandboxEnvironment.sample_init("task", config, {})
            try:
                self.assertEqual((await made["default"].exec(["sh", "-c", "ulimit -n"])).returncode, 0)
            finally:
                await JarSandboxEnvironment.sample_cleanup("task", config, made, False)

        self.run_loop(main())


if __name__ == "__main__":
    unittest.main()
