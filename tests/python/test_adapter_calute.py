# SPDX-License-Identifier: Apache-2.0
"""belljar.adapters.calute: routing, configuration, registry, capabilities, and what failures of calls are called."""

from __future__ import annotations

import dataclasses
import operator
import os
import pickle
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any, List, Tuple

import belljar
from belljar._errors import CallEnded, CallError, CallTimeout, ResultError, SendError, UnavailableError
from belljar.adapters import calute
from belljar.adapters.calute import (
    BelljarSandboxBackend,
    ExecutionContext,
    SandboxBackend,
    SandboxBackendConfig,
    SandboxConfig,
    SandboxExecutionUnavailableError,
    SandboxMode,
    SandboxRouter,
    SubprocessSandboxBackend,
    get_backend,
    list_backends,
    register_backend,
)
from package_case import PackageCase, tearDownModule  # noqa: F401


class Routing(unittest.TestCase):
    def test_defaults(self) -> None:
        backend = dict(image="python:3.12-slim", mount_paths={}, mount_readonly=True, env_vars={}, extra_args={})
        self.assertEqual(dataclasses.asdict(SandboxBackendConfig()), backend)
        self.assertEqual(
            dataclasses.asdict(SandboxConfig()),
            dict(
                mode=SandboxMode.OFF,
                sandboxed_tools=set(),
                elevated_tools=set(),
                sandbox_timeout=30.0,
                sandbox_memory_limit_mb=512,
                sandbox_network_access=False,
                working_directory=None,
                backend_type=None,
                backend_config=backend,
            ),
        )
        self.assertEqual([mode.value for mode in SandboxMode], ["off", "warn", "strict"])

    def decide(self, mode: SandboxMode, tool: str) -> Tuple[ExecutionContext, str]:
        config = SandboxConfig(mode=mode, sandboxed_tools={"shell", "root"}, elevated_tools={"root"})
        decision = SandboxRouter(config).decide(tool)
        self.assertEqual(decision.tool_name, tool)
        return decision.context, decision.reason

    def test_decisions(self) -> None:
        host, sandbox = ExecutionContext.HOST, ExecutionContext.SANDBOX
        for mode in SandboxMode:
            self.assertEqual(self.decide(mode, "root"), (host, "Tool is marked as elevated"))
        self.assertEqual(self.decide(SandboxMode.OFF, "shell"), (host, "Sandbox mode is off"))
        self.assertEqual(self.decide(SandboxMode.STRICT, "shell"), (sandbox, "Strict sandbox enforcement"))
        for mode in (SandboxMode.WARN, SandboxMode.STRICT):
            self.assertEqual(self.decide(mode, "other"), (host, "Tool not designated for sandbox"))
        with self.assertLogs(calute._logger, "WARNING") as logs:
            context, reason = self.decide(SandboxMode.WARN, "shell")
        self.assertEqual(context, host)
        self.assertEqual(reason, "Warn mode advisory: tool would run in sandbox, executing on host")
        self.assertIn("'shell' would run in sandbox", logs.output[0])

    def test_there_is_no_falling_back_to_the_host(self) -> None:
        with self.assertRaises(SandboxExecutionUnavailableError) as caught:
            SandboxRouter().execute_in_sandbox("x", operator.add, {})
        self.assertIsInstance(caught.exception, RuntimeError)
        self.assertEqual(
            str(caught.exception), "Tool 'x' requires sandbox execution, but no sandbox backend is configured"
        )

    def test_names_are_quoted_as_python_does(self) -> None:
        """A name with a quote in it too."""
        self.assertEqual(
            str(SandboxExecutionUnavailableError("it's")),
            'Tool "it\'s" requires sandbox execution, but no sandbox backend is configured',
        )
        with self.assertRaisesRegex(ValueError, 'Unknown sandbox backend "it\'s"'):
            get_backend("it's")
        with self.assertLogs(calute._logger, "WARNING") as logs:
            self.decide(SandboxMode.WARN, "shell")
        self.assertIn("Tool 'shell' would run in sandbox", logs.output[0])

    def test_a_backend_has_what_the_protocol_says(self) -> None:
        self.assertIn("SandboxBackend", calute.__all__)
        for name in ("execute", "is_available", "get_capabilities"):
            self.assertTrue(callable(getattr(SandboxBackend, name)) and callable(getattr(SubprocessSandboxBackend, name)))

    def test_the_registry(self) -> None:
        self.assertEqual(list_backends(), ["belljar", "subprocess"])
        config = SandboxConfig(sandbox_timeout=5.0)
        backend = get_backend("subprocess", config)
        self.assertIs(type(backend), SubprocessSandboxBackend)
        self.assertIs(backend._config, config)
        self.assertIs(type(get_backend("belljar", config)), BelljarSandboxBackend)
        with self.assertRaises(ValueError) as caught:
            get_backend("docker", config)
        self.assertEqual(str(caught.exception), "Unknown sandbox backend 'docker'. Available backends: belljar, subprocess")
        register_backend("mine", SubprocessSandboxBackend)
        self.addCleanup(calute._backends.pop, "mine")
        self.assertIn("mine", list_backends())


class FakePool:
    """Stands for belljar.Pool, and notes what it is given."""

    made: List["FakePool"] = []

    def __init__(self, **keys: Any) -> None:
        self.keys, self.is_closed = keys, False
        FakePool.made.append(self)

    def call(self, fn: Any, **options: Any) -> Any:
        return ("pool", fn(), options)

    def close(self) -> None:
        self.is_closed = True


class Calling(unittest.TestCase):
    """Against stand-ins for belljar.call and belljar.Pool."""

    def use(self, name: str, value: Any) -> None:
        missing = object()
        before = belljar.__dict__.get(name, missing)

        def restore() -> None:
            if before is missing:
                belljar.__dict__.pop(name, None)
            else:
                setattr(belljar, name, before)

        self.addCleanup(restore)
        setattr(belljar, name, value)

    def test_the_function_its_arguments_and_limits(self) -> None:
        seen: List[Any] = []

        def call(fn: Any, **options: Any) -> Any:
            seen.append(options)
            return fn()

        self.use("call", call)
        config = SandboxConfig(sandbox_timeout=5.0, sandbox_memory_limit_mb=64)
        config.backend_config.env_vars["A"] = "b"
        backend = SubprocessSandboxBackend(config)
        # Arguments with the names of options are the function's.
        made = SandboxRouter(config, backend).execute_in_sandbox("t", dict, {"timeout": 1, "memory": 2, "fn": 3})
        self.assertEqual(made, {"timeout": 1, "memory": 2, "fn": 3})
        self.assertEqual(seen, [{"timeout": 5.0, "memory": "64M", "env": {"A": "b"}}])

    def test_what_is_fixed_for_a_jar_needs_a_pool(self) -> None:
        self.use("Pool", FakePool)
        config = SandboxConfig(sandbox_network_access=True, working_directory="/srv/w")
        config.backend_config.mount_paths["/data"] = "/mnt"
        backend = SubprocessSandboxBackend(config)
        for _ in range(2):
            self.assertEqual(backend.execute("t", dict, {"a": 1})[:2], ("pool", {"a": 1}))
        (pool,) = FakePool.made
        mounts = [{"path": "/data", "dest": "/mnt"}]
        self.assertEqual(pool.keys, {"memory": "512M", "net": "host", "workdir": "/srv/w", "ro": mounts})
        backend.close()
        self.assertTrue(pool.is_closed)

    def test_failures_are_runtime_errors_with_known_words(self) -> None:
        class Ended:
            returncode, stderr, outcome = -9, "last words", "signaled"

        cases = [
            (CallTimeout("x"), "Subprocess sandbox execution of tool 't' timed out after 30.0s"),
            (CallEnded("x").with_(result=Ended()), "Subprocess sandbox execution of tool 't' failed (exit -9): last words"),
            (ResultError("why"), "Failed to deserialise subprocess sandbox result for tool 't': why"),
            (CallError("x", "builtins.ValueError", "bad"), "Tool 't' raised ValueError inside subprocess sandbox: bad"),
            (SendError("why"), "Tool 't' cannot be sent to the subprocess sandbox: why"),
            (UnavailableError("why"), "Subprocess sandbox execution of tool 't' failed (exit -1): why"),
        ]
        for error, words in cases:

            def call(fn: Any, error: BaseException = error, **options: Any) -> Any:
                raise error

            self.use("call", call)
            with self.assertRaises(RuntimeError) as caught:
                SubprocessSandboxBackend(SandboxConfig()).execute("t", dict, {})
            self.assertEqual(str(caught.exception), words)
            self.assertIs(caught.exception.__cause__, error)


class Bomb:
    """Unpickling it on the host would leave a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self.path),)


def print_bombs(path: str) -> str:
    """Print and write everywhere what must not be unpickled."""
    data = pickle.dumps(Bomb(path))
    print(data)
    for fd in range(1, 20):
        try:
            os.write(fd, data)
        except OSError:
            pass
    return "done"


def give_bomb(path: str) -> Any:
    return Bomb(path)


def talk(x: int) -> int:
    print("a", "lot", "of", "words")
    return x + 1


def leave_children(marker: str) -> None:
    subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 1000; true", marker], start_new_session=True)
    subprocess.call(["/bin/sh", "-c", "(trap '' TERM; sleep 1000; true) & sleep 1000; true", marker])


class Real(PackageCase):
    """In jars; holes by their numbers."""

    def execute(self, func: Any, **arguments: Any) -> Any:
        return SubprocessSandboxBackend(self.config).execute("t", func, arguments)

    def setUp(self) -> None:
        super().setUp()
        self.config = SandboxConfig()

    def fails(self, func: Any, **arguments: Any) -> str:
        with self.assertRaises(RuntimeError) as caught:
            self.execute(func, **arguments)
        return str(caught.exception)

    def test_values(self) -> None:
        self.assertEqual(self.execute(talk, x=1), 2)  # hole 11: what it prints is not its result
        self.assertEqual(self.execute(dict, timeout=1, b=(2, b"x")), {"timeout": 1, "b": (2, b"x")})
        self.assertEqual(self.execute(lambda: "closure"), "closure")
        self.assertEqual(len(self.execute(lambda: "x" * 300_000)), 300_000)

    def test_failures(self) -> None:
        self.assertEqual(self.fails(operator.truediv, a=1).split(" inside")[0], "Tool 't' raised TypeError")
        self.assertEqual(
            self.fails(lambda: sys.exit("why")), "Subprocess sandbox execution of tool 't' failed (exit 1): why"
        )
        self.assertEqual(
            self.fails(lambda: os.kill(os.getpid(), 9)), "Subprocess sandbox execution of tool 't' failed (exit -9): "
        )
        self.assertIn("Failed to deserialise subprocess sandbox result for tool 't': a value of type object", self.fails(object))

    def test_hole_1_nothing_that_the_tool_wrote_is_unpickled(self) -> None:
        sign = str(self.base / "sign")
        words = self.fails(print_bombs, path=sign)
        self.assertTrue(words.startswith("Failed to deserialise subprocess sandbox result for tool 't': "), words)
        self.assertIn("Bomb", self.fails(give_bomb, path=sign))
        self.assertFalse(os.path.exists(sign))

    def test_hole_2_grandchildren_end_with_a_timeout(self) -> None:
        self.config.sandbox_timeout = 1.0
        self.assertEqual(
            self.fails(leave_children, marker=self.marker), "Subprocess sandbox execution of tool 't' timed out after 1.0s"
        )
        self.assertEqual(self.marked(), [])

    def test_hole_4_and_7_output_environment_and_input(self) -> None:
        os.environ["BELLJAR_TEST_SECRET"] = "x"
        self.addCleanup(os.environ.pop, "BELLJAR_TEST_SECRET")
        self.config.backend_config.env_vars["GIVEN"] = "y"
        self.assertEqual(
            self.execute(lambda: (os.environ.get("BELLJAR_TEST_SECRET"), os.environ.get("GIVEN"), sys.stdin.read())),
            (None, "y", ""),
        )
        self.assertEqual(self.execute(lambda: print("x" * 50_000_000)), None)

    def test_hole_12_nothing_is_imported_from_the_working_directory(self) -> None:
        (self.work / "json.py").write_text("raise SystemExit(9)")
        self.config.working_directory = str(self.work)
        backend = SubprocessSandboxBackend(self.config)
        self.addCleanup(backend.close)
        self.assertEqual(backend.execute("t", os.getcwd, {}), str(self.work))
        self.assertIn("json", backend.execute("t", lambda: __import__("json").__file__, {}))
        self.assertNotIn(str(self.work), backend.execute("t", lambda: __import__("json").__file__, {}))

    def test_mounts_and_limits(self) -> None:
        data = self.base / "data"
        data.mkdir()
        (data / "f").write_text("in")
        self.config.backend_config.mount_paths[str(data)] = str(data)
        self.config.sandbox_memory_limit_mb = 100
        backend = get_backend("belljar", self.config)
        self.addCleanup(backend.close)
        self.assertEqual(backend.execute("t", lambda path: open(path).read(), {"path": str(data / "f")}), "in")
        with self.assertRaisesRegex(RuntimeError, r"failed \(exit -9\): .*more than its memory of 100 MB"):
            backend.execute("t", lambda: len(bytearray(400 << 20)) and time.sleep(1000), {})

    def test_what_the_tool_said_last_is_stripped(self) -> None:
        def leave() -> None:
            os.write(2, b"\n last words \n\n")
            os._exit(3)

        self.assertEqual(self.fails(leave), "Subprocess sandbox execution of tool 't' failed (exit 3): last words")


class Capabilities(PackageCase):
    def test_the_drop_in_says_what_its_callers_expect_and_adds_the_truth(self) -> None:
        backend = SubprocessSandboxBackend(SandboxConfig(sandbox_timeout=7.0, sandbox_memory_limit_mb=64))
        said = backend.get_capabilities()
        truth = said.pop("belljar")["enforced"]
        self.assertTrue(backend.is_available())
        self.assertEqual(
            said,
            dict(
                backend="subprocess",
                available=True,
                isolation_level="process",
                filesystem_isolation=False,
                network_isolation=False,
                memory_limit_mb=64,
                timeout=7.0,
            ),
        )
        self.assertIn(truth["rung"], ("namespace", "landlock"))

    def test_the_other_says_the_truth_in_the_keys_themselves(self) -> None:
        said = BelljarSandboxBackend(SandboxConfig()).get_capabilities()
        self.assertEqual((said["backend"], said["isolation_level"]), ("belljar", said["belljar"]["enforced"]["rung"]))
        self.assertIs(said["filesystem_isolation"], True)
        self.assertIs(said["network_isolation"], True)
        open_one = BelljarSandboxBackend(SandboxConfig(sandbox_network_access=True)).get_capabilities()
        self.assertIs(open_one["network_isolation"], False)

    def test_where_no_jar_can_be_made(self) -> None:
        backend = SubprocessSandboxBackend(SandboxConfig(working_directory="/no/such/directory"))
        said = backend.get_capabilities()
        self.assertEqual((backend.is_available(), said["available"], said["belljar"]), (False, False, {"enforced": None}))


if __name__ == "__main__":
    unittest.main()
