# SPDX-License-Identifier: Apache-2.0
"""belljar.adapters.secuscan: the contract of the module it replaces, and the holes that are closed."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import types
import unittest
import unittest.mock
from typing import Any, List, Optional, Tuple

from belljar.adapters import secuscan
from belljar.adapters.secuscan import SandboxConfig, SandboxViolation, resolve_sandbox_config, sandbox_execute
from package_case import PackageCase, tearDownModule  # noqa: F401

SLEEP = 1000
MB = 1 << 20


def execute(cmd: List[str], callback: Any = None, **fields: Any) -> Tuple[str, str, int, Optional[str]]:
    """Without the host's network, which only some tests are about."""
    return asyncio.run(sandbox_execute(cmd, SandboxConfig(**{"allow_network": False, **fields}), callback))


class Config(unittest.TestCase):
    def test_defaults(self) -> None:
        config = SandboxConfig()
        self.assertEqual((config.timeout_seconds, config.max_memory_mb), (120, 512))
        self.assertEqual((config.max_output_bytes, config.allow_network), (5_242_880, True))
        self.assertEqual((secuscan.CHUNK_SIZE, secuscan.SIGTERM_GRACE, secuscan.IS_LINUX), (65536, 3.0, True))

    def test_fields_that_were_not_given_fall_back_to_the_settings_one_by_one(self) -> None:
        self.assertEqual(
            resolve_sandbox_config(),
            SandboxConfig(timeout_seconds=600, max_memory_mb=512, max_output_bytes=5_242_880, allow_network=True),
        )
        given = SandboxConfig(max_memory_mb=2048)
        self.assertEqual(resolve_sandbox_config(given), SandboxConfig(timeout_seconds=600, max_memory_mb=2048))
        self.assertEqual(resolve_sandbox_config({"timeout_seconds": 5}).timeout_seconds, 5)
        plugin = types.SimpleNamespace(sandbox=SandboxConfig(allow_network=False, timeout_seconds=120))
        resolved = resolve_sandbox_config(plugin)
        self.assertEqual((resolved.allow_network, resolved.timeout_seconds, resolved.max_memory_mb), (False, 120, 512))

    def test_the_applications_settings_are_used_where_it_has_loaded_them(self) -> None:
        module = types.ModuleType("backend.secuscan.config")
        module.settings = types.SimpleNamespace(sandbox_timeout=42, sandbox_memory_mb=256)  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module
        self.addCleanup(sys.modules.pop, module.__name__)
        resolved = resolve_sandbox_config()
        self.assertEqual((resolved.timeout_seconds, resolved.max_memory_mb, resolved.max_output_bytes), (42, 256, 5_242_880))

    def test_what_is_no_number_is_refused(self) -> None:
        for name in ("timeout_seconds", "max_memory_mb", "max_output_bytes"):
            for wrong in (None, -1, "-1", "five", 1.5, float("nan"), float("inf"), [], "5.5", b"\xff", ".0", ""):
                with self.assertRaises(ValueError, msg=f"{name}={wrong}"):
                    SandboxConfig(**{name: wrong})
        for fields in ({"max_memory_mb": 0}, {"allow_network": None}, {"allow_network": 2}, {"allow_network": "maybe"}):
            with self.assertRaises(ValueError):
                SandboxConfig(**fields)
        config = SandboxConfig()
        with self.assertRaises(ValueError):
            config.timeout_seconds = None  # type: ignore[assignment]

    def test_it_reads_what_a_model_of_the_application_reads(self) -> None:
        config = SandboxConfig(timeout_seconds="5", max_memory_mb=64.0, allow_network="no", unknown=1)
        self.assertEqual(config, SandboxConfig(timeout_seconds=5, max_memory_mb=64, allow_network=False))
        self.assertFalse(hasattr(config, "unknown"))
        for number in (5, 5.0, "5", " 5 ", "5.0", "5.00 ", b"5"):
            self.assertEqual(SandboxConfig(timeout_seconds=number).timeout_seconds, 5)
        with self.assertRaises(ValueError):
            SandboxConfig(allow_network=" yes ")
        for word, value in ((0, False), (1, True), ("off", False), ("Yes", True), ("true", True), ("0", False)):
            self.assertIs(SandboxConfig(allow_network=word).allow_network, value)

    def test_the_methods_of_a_model(self) -> None:
        config = SandboxConfig(timeout_seconds=5)
        everything = {"timeout_seconds": 5, "max_memory_mb": 512, "max_output_bytes": 5_242_880, "allow_network": True}
        self.assertEqual(config.model_dump(), everything)
        self.assertEqual(config.model_dump(exclude_none=True), everything)
        self.assertEqual(config.model_dump(exclude_unset=True), {"timeout_seconds": 5})
        self.assertEqual(config.model_dump(include={"timeout_seconds"}), {"timeout_seconds": 5})
        copy = config.model_copy(update={"max_memory_mb": "64"})
        self.assertEqual((copy.timeout_seconds, copy.max_memory_mb, config.max_memory_mb), (5, 64, 512))
        self.assertEqual(copy.model_fields_set, {"timeout_seconds", "max_memory_mb"})
        self.assertEqual(SandboxConfig.model_validate({"timeout_seconds": "5", "x": 1}), config)
        self.assertEqual(SandboxConfig.model_validate(config), config)
        copy.allow_network = "no"  # type: ignore[assignment]
        self.assertEqual(resolve_sandbox_config(plugin_sandbox=copy).allow_network, False)

    def test_a_mock_that_has_every_attribute_is_no_plugin_around_a_config(self) -> None:
        mock = unittest.mock.MagicMock(timeout_seconds=5, model_fields_set={"timeout_seconds"})
        self.assertEqual(resolve_sandbox_config(mock).timeout_seconds, 5)

    def test_a_violation(self) -> None:
        error = SandboxViolation("timeout")
        self.assertEqual((error.reason, str(error)), ("timeout", "timeout"))
        self.assertEqual(secuscan.TASK_STATES["output_limit"], "terminated:output_limit")


class Helpers(unittest.TestCase):
    def test_the_guess_about_memory(self) -> None:
        guess, limit = secuscan.classify_memory_violation, 512 * MB
        yes = [(-11, "", 0), (139, "", 0), (1, "x MemoryError: y", 0), (1, "Cannot allocate memory", 0)]
        yes += [(137, "", int(limit * 0.95)), (1, "", limit), (0, "memoryerror", 0), (1, "CANNOT ALLOCATE MEMORY", 0)]
        no = [(137, "", 0), (137, "", int(limit * 0.94)), (0, "", limit), (1, "Segmentation fault", 0), (0, "", 0)]
        for case in yes:
            self.assertIs(guess(*case, limit), True, case)
        for case in no:
            self.assertIs(guess(*case, limit), False, case)

    def test_terminating_a_process(self) -> None:
        class Stubborn:
            returncode = None
            calls: List[str] = []

            def terminate(self) -> None:
                self.calls.append("terminate")

            def kill(self) -> None:
                self.calls.append("kill")

            async def wait(self) -> None:
                self.calls.append("wait")
                if "kill" not in self.calls:
                    await asyncio.sleep(SLEEP)

        before, secuscan.SIGTERM_GRACE = secuscan.SIGTERM_GRACE, 0.05
        try:
            asyncio.run(secuscan._terminate_process(Stubborn()))
        finally:
            secuscan.SIGTERM_GRACE = before
        self.assertEqual(Stubborn.calls, ["terminate", "wait", "kill", "wait"])

    def test_the_preexec_function_sets_the_limit(self) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", "ulimit -v"],
            preexec_fn=secuscan._build_preexec_fn(SandboxConfig(max_memory_mb=128)),
            capture_output=True,
            check=True,
        )
        self.assertEqual(int(done.stdout), 128 << 10)

    def test_reading_a_stream(self) -> None:
        """Both streams share one cap."""
        seen: List[Any] = []
        state = {"total_bytes": 0, "max_bytes": 9, "limit_hit": False}
        buffers = (bytearray(), bytearray(), bytearray())

        async def callback(chunk: bytes, name: str) -> None:
            seen.append((name, chunk))

        async def read() -> None:
            for buffer, name in zip(buffers, ("stdout", "stderr", "")):
                stream = asyncio.StreamReader()
                stream.feed_data(b"abcdef")
                stream.feed_eof()
                await secuscan._read_stream(stream, buffer, state, callback, name)

        asyncio.run(read())
        self.assertEqual(buffers, (b"abcdef", b"abc", b""))
        self.assertEqual(seen, [("stdout", b"abcdef"), ("stderr", b"abc")])
        self.assertEqual(state, {"total_bytes": 9, "max_bytes": 9, "limit_hit": True})

    def test_what_fits_exactly_hits_no_limit(self) -> None:
        state = {"total_bytes": 0, "max_bytes": 3, "limit_hit": False}
        buffer = bytearray()

        async def read() -> None:
            stream = asyncio.StreamReader()
            stream.feed_data(b"abc")
            stream.feed_eof()
            await secuscan._read_stream(stream, buffer, state)

        asyncio.run(read())
        self.assertEqual((buffer, state["limit_hit"]), (b"abc", False))

    def test_a_process_that_is_gone_is_not_waited_for(self) -> None:
        process = unittest.mock.MagicMock(returncode=0, **{"terminate.side_effect": ProcessLookupError})
        asyncio.run(secuscan._terminate_process(process))
        process.terminate.assert_called_once()
        process.kill.assert_not_called()
        process.wait.assert_not_called()


class Execute(PackageCase):
    def test_an_ordinary_command(self) -> None:
        self.assertEqual(execute(self.sh("echo out; echo err >&2; exit 3")), ("out\n", "err\n", 3, None))

    def test_a_command_that_is_not_there(self) -> None:
        with self.assertRaises(FileNotFoundError) as caught:
            execute(["/no/such/scanner"])
        error = caught.exception
        self.assertEqual((error.strerror, error.filename), ("No such file or directory", "/no/such/scanner"))
        self.assertEqual(str(error), "[Errno 2] No such file or directory: '/no/such/scanner'")

    def test_a_config_of_any_class_will_do(self) -> None:
        fields = dict(timeout_seconds=0, max_memory_mb=64, max_output_bytes=3, allow_network=False)
        for config in (types.SimpleNamespace(**fields), fields):
            made = asyncio.run(sandbox_execute(self.sh("echo abcdef; sleep 1000"), config))
            self.assertEqual((made[0], made[3]), ("abc", "output_limit"))

    def test_live_chunks(self) -> None:
        seen: List[Any] = []

        async def callback(chunk: bytes, stream: str) -> None:
            seen.append((stream, chunk))

        execute(self.sh("echo out; sleep 0.2; echo err >&2"), callback)
        self.assertEqual(seen, [("stdout", b"out\n"), ("stderr", b"err\n")])

    def test_no_timeout(self) -> None:
        self.assertEqual(execute(self.sh("sleep 0.1; echo x"), timeout_seconds=0), ("x\n", "", 0, None))

    def test_cancelling_ends_the_tree(self) -> None:
        async def main() -> None:
            command = self.sh(f"setsid sleep {SLEEP} & touch began; sleep {SLEEP}")
            task = asyncio.ensure_future(sandbox_execute(command, SandboxConfig(allow_network=False)))
            while not (self.work / "began").exists():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(self.marked(), [])

        asyncio.run(main())

    def test_the_callers_function(self) -> None:
        seen: List[Any] = []

        async def broadcast(task: str, text: str) -> None:
            seen.append((task, text))

        plugin = {"allow_network": False}
        command = self.sh("echo o; sleep 0.2; echo e >&2")
        made = asyncio.run(secuscan._execute_command(command, "t1", plugin=plugin, broadcast=broadcast))
        self.assertEqual(made, ("o\n\ne\n", 0, None))
        self.assertEqual(seen, [("t1", "o\n"), ("t1", "e\n")])
        made = asyncio.run(secuscan._execute_command(self.sh("echo e >&2"), "t1", None, plugin=plugin))
        self.assertEqual(made, ("e\n", 0, None))
        made = asyncio.run(secuscan._execute_command(self.sh(f"sleep {SLEEP}"), "t1", 1, plugin=plugin))
        self.assertEqual((made[0], made[2]), ("", "timeout"))

    def test_the_caller_s_function_never_raises(self) -> None:
        def broken(task_id: str, text: str) -> None:
            raise RuntimeError("no listener")

        for command, options, words in (
            (["/no/such/scanner"], {}, "Execution error: [Errno 2] No such file or directory"),
            ([], {}, "Execution error: "),
            (self.sh("true"), {"plugin": {"timeout_seconds": None}}, "Execution error: timeout_seconds"),
            (self.sh("echo x"), {"broadcast": broken}, "Execution error: no listener"),
        ):
            made = asyncio.run(secuscan._execute_command(command, "t1", **options))  # type: ignore[arg-type]
            self.assertTrue(made[0].startswith(words), made)
            self.assertEqual(made[1:], (-1, None))


class Holes(PackageCase):
    """By their numbers in the list of holes."""

    def test_hole_2_and_8_a_timeout_leaves_nothing_and_keeps_the_output(self) -> None:
        script = f"echo out; (setsid sh -c 'trap \"\" TERM; sleep {SLEEP}; : {self.marker}' &); sleep {SLEEP}"
        stdout, _, status, violation = execute(self.sh(script), timeout_seconds=1)
        self.assertEqual((stdout, violation), ("out\n", "timeout"))
        self.assertNotEqual(status, 0)
        self.assertEqual(self.marked(), [])

    def test_hole_3_a_child_that_holds_the_pipe_is_no_timeout(self) -> None:
        self.assertEqual(execute(self.sh(f"setsid sleep {SLEEP} & echo done"), timeout_seconds=60), ("done\n", "", 0, None))

    def test_hole_4_and_5_the_cap_is_exact_over_both_streams_and_nothing_hangs(self) -> None:
        script = "yes out | head -c 3000000 & yes err | head -c 3000000 >&2; wait"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        stdout, stderr, status, violation = execute(self.sh(script), max_output_bytes=1000)
        self.assertEqual((len(stdout) + len(stderr), violation), (1000, "output_limit"))
        self.assertNotEqual(status, 0)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 20_000, "kB")
        self.assertEqual(execute(self.sh("printf %01000d 0"), max_output_bytes=1000)[3], None)

    def test_hole_7_the_environment_is_not_inherited(self) -> None:
        os.environ["BJT_SECRET"] = "the-hidden-value"
        self.addCleanup(os.environ.pop, "BJT_SECRET")
        self.assertNotIn("BJT_SECRET", execute(["env"])[0])
        self.assertEqual(execute(["cat"])[0], "")

    def test_hole_8_chunks_do_not_split_characters(self) -> None:
        seen: List[bytes] = []

        async def callback(chunk: bytes, stream: str) -> None:
            seen.append(chunk)

        made = execute(self.sh(r"printf '\342'; sleep 0.1; printf '\202'; sleep 0.1; printf '\254\377'"), callback)
        self.assertEqual((made[0], b"".join(seen)), ("€\ufffd", "€".encode() + b"\xff"))
        self.assertEqual(seen[0][:3], "€".encode())

    def test_hole_9_the_verdict_on_memory_is_not_taken_from_text_or_crashes(self) -> None:
        self.assertEqual(execute(self.sh("echo MemoryError >&2; exit 1"))[3], None)
        made = execute(self.sh("kill -SEGV $$"))
        self.assertEqual((made[2], made[3]), (-11, None))

    def test_hole_9_a_tree_of_processes_is_one_offender(self) -> None:
        hog = "x = bytearray(40 << 20); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(20)"
        script = f"for i in 1 2 3 4 5; do /usr/bin/python3 -S -c \"{hog}\" & done; wait"
        self.assertEqual(execute(self.sh(script), max_memory_mb=100, timeout_seconds=60)[3], "memory_limit")

    def test_hole_10_no_network_means_none(self) -> None:
        script = "exec 3<>/dev/udp/192.0.2.1/9 && echo connected"
        self.assertEqual(execute(["bash", "-c", script])[0], "")

    def test_secrets_are_redacted_before_they_are_delivered(self) -> None:
        seen: List[bytes] = []

        async def callback(chunk: bytes, stream: str) -> None:
            seen.append(chunk)

        secrets = ["ghp_" + "0123456789" * 3 + "abcdef", "AKIA" + "0123456789ABCDEF", "hunter2-and-more"]
        script = f"echo token {secrets[0]}; echo {secrets[1]}; echo password={secrets[2]} >&2"
        stdout, stderr, _, _ = execute(self.sh(script), callback)
        for text in (stdout + stderr, b"".join(seen).decode()):
            self.assertEqual(text.count("[REDACTED]"), 3)
            for secret in secrets:
                self.assertNotIn(secret, text)


if __name__ == "__main__":
    unittest.main()
