# SPDX-License-Identifier: Apache-2.0
"""belljar.adapters.jeeves: tool hosts with small fakes of the framework, paths that stay inside, programs in jars."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import dataclasses
import importlib.util
import io
import os
import pickle
import subprocess
import sys
import types
import unittest
import unittest.mock
from typing import Any, AsyncIterator, Dict, List, Optional

import belljar
from belljar._errors import CallEnded, CallError, CallTimeout, ResultError, SendError, UnavailableError
from belljar.adapters.jeeves import CodeRunner, FilesystemSandbox, SubprocessSandbox
from package_case import PackageCase, tearDownModule  # noqa: F401

SLEEP = 1000


@dataclasses.dataclass
class ToolResult:
    call_id: str
    ok: bool
    output: Any = None
    error: Optional[str] = None
    denied: bool = False
    reason: Optional[str] = None

    @classmethod
    def success(cls, call_id: str, output: Any) -> "ToolResult":
        return cls(call_id, True, output)

    @classmethod
    def error_(cls, call_id: str, message: str) -> "ToolResult":
        return cls(call_id, False, error=message)

    @classmethod
    def denied_(cls, call_id: str, reason: str) -> "ToolResult":
        return cls(call_id, False, denied=True, reason=reason)


class ConfigError(Exception):
    pass


class InProcessToolHost:
    def __init__(self, **functions: Any) -> None:
        self.functions = functions
        self.calls: List[Any] = []

    def get(self, name: str) -> Any:
        return types.SimpleNamespace(fn=self.functions[name]) if name in self.functions else None

    def register(self, tool: Any) -> Any:
        self.functions[tool.__name__] = tool
        return tool

    async def list_tools(self, *, query: Optional[str] = None) -> Any:
        return sorted(self.functions), query

    async def call(self, tool: str, args: Any, *, call_id: str = "") -> ToolResult:
        self.calls.append((tool, args))
        return ToolResult.success(call_id, "ran")

    async def watch(self) -> AsyncIterator[str]:
        yield "event"


class WithFramework(PackageCase):
    """Makes the fakes the installed framework."""

    def setUp(self) -> None:
        super().setUp()
        module = types.ModuleType("loomflow")
        module.ToolResult, module.ConfigError = ToolResult, ConfigError  # type: ignore[attr-defined]
        module.__path__ = []  # type: ignore[attr-defined]
        tools = types.ModuleType("loomflow.tools")
        tools.InProcessToolHost = InProcessToolHost  # type: ignore[attr-defined]
        for made in (module, tools):
            self.put(made.__name__, made)
        self.put("jeevesagent", None)

    def put(self, name: str, module: Any) -> None:
        before = sys.modules.get(name)
        self.addCleanup(lambda: sys.modules.pop(name, None) if before is None else sys.modules.update({name: before}))
        sys.modules[name] = module

    def use_call(self, call: Any) -> None:
        async def call_async(_: Any, fn: Any, args: Any, kwargs: Any, options: Any) -> Any:
            return await call(fn, **options.keys)

        patch = unittest.mock.patch.object(belljar.Pool, "_call_async", call_async)
        patch.start()
        self.addCleanup(patch.stop)


def module_level(x: int) -> int:
    """A tool that plain pickle can send."""
    return x + 1


class Tools(WithFramework):
    def call(self, sandbox: Any, tool: str, **args: Any) -> ToolResult:
        made = asyncio.run(sandbox.call(tool, args, call_id="c1"))
        self.assertEqual((type(made), made.call_id), (ToolResult, "c1"))
        return made

    def test_construction(self) -> None:
        host = InProcessToolHost()
        sandbox = SubprocessSandbox(host)
        self.assertEqual((sandbox.inner, sandbox.timeout_seconds), (host, 30.0))
        for wrong in (0, -1.5):
            with self.assertRaises(ValueError) as caught:
                SubprocessSandbox(host, timeout_seconds=wrong)
            self.assertEqual(str(caught.exception), "timeout_seconds must be positive")
        with self.assertRaises(ConfigError) as refused:
            SubprocessSandbox(types.SimpleNamespace())
        self.assertEqual(
            str(refused.exception),
            "SubprocessSandbox wraps InProcessToolHost only (it needs access to the registered Tool.fn callable). "
            "Got SimpleNamespace.",
        )

    def test_without_a_framework_it_says_what_to_install(self) -> None:
        self.put("loomflow", None)
        with self.assertRaises(ImportError) as caught:
            SubprocessSandbox(InProcessToolHost())
        for word in ("install", "loomflow", "jeevesagent"):
            self.assertIn(word, str(caught.exception))

    def test_what_passes_through(self) -> None:
        sandbox = SubprocessSandbox(InProcessToolHost(a=1))

        async def main() -> Any:
            return await sandbox.list_tools(query="q"), [event async for event in sandbox.watch()]

        self.assertEqual(asyncio.run(main()), ((["a"], "q"), ["event"]))
        sandbox.register(module_level)
        self.assertIn("module_level", sandbox.inner.functions)

    def test_a_call(self) -> None:
        seen: List[Any] = []

        async def call_async(fn: Any, **options: Any) -> Any:
            seen.append(options)
            return fn()

        self.use_call(call_async)
        sandbox = SubprocessSandbox(InProcessToolHost(tool=module_level), timeout_seconds=2.5, memory="1G")
        self.assertEqual(self.call(sandbox, "tool", x=1), ToolResult("c1", True, 2))
        self.assertEqual(seen, [{"timeout": 2.5, "memory": "1G"}])
        self.assertEqual(self.call(sandbox, "other").error, "unknown tool: other")

    def test_failures(self) -> None:
        cases = [
            (CallTimeout("x"), "SubprocessSandbox: tool exceeded 2.0s"),
            (CallEnded("x"), "SubprocessSandbox: subprocess exited without producing a result"),
            (CallError("x", "mod.BadThing", "why"), "SubprocessSandbox: tool raised BadThing: why"),
            (ResultError("a value of type x.Y at $ is not data"), "x.Y"),
            (UnavailableError("no walls"), "no walls"),
            (SendError("because"), "SubprocessSandbox: tool 'tool' or its arguments are not picklable (because)."),
        ]
        for error, words in cases:

            async def call_async(fn: Any, error: BaseException = error, **options: Any) -> Any:
                raise error

            self.use_call(call_async)
            made = self.call(SubprocessSandbox(InProcessToolHost(tool=module_level), timeout_seconds=2.0), "tool", x=1)
            self.assertFalse(made.ok)
            self.assertIn(words, str(made.error))

    def test_closures_and_odd_arguments_are_refused_before_anything_runs(self) -> None:
        async def call_async(fn: Any, **options: Any) -> Any:
            raise AssertionError("it ran")

        self.use_call(call_async)
        host = InProcessToolHost(closure=lambda: None, tool=module_level)
        for tool, args in (("closure", {}), ("tool", {"x": lambda: None})):
            error = str(self.call(SubprocessSandbox(host), tool, **args).error)
            self.assertTrue(error.startswith(f"SubprocessSandbox: tool {tool!r} or its arguments are not picklable ("), error)
            self.assertTrue(error.endswith("). Use a module-level function and primitive args."), error)

    def test_cancelling_is_passed_on(self) -> None:
        async def call_async(fn: Any, **options: Any) -> Any:
            await asyncio.sleep(SLEEP)

        self.use_call(call_async)

        async def main() -> None:
            task = asyncio.ensure_future(SubprocessSandbox(InProcessToolHost(tool=module_level)).call("tool", {"x": 1}))
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())


class Bomb:
    """Unpickling it on the host would leave a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def bombs(path: str, is_result: bool) -> Any:
    """Write everywhere what must not be unpickled, or give it as the result."""
    if is_result:
        return Bomb(path)
    for fd in range(1, 20):
        try:
            os.write(fd, pickle.dumps(Bomb(path)))
        except OSError:
            pass
    return "done"


def read_text(path: str) -> str:
    """What a file holds."""
    with open(path) as file:
        return file.read()


async def slowly(x: int) -> int:
    await asyncio.sleep(0.01)
    print("words")
    return x * 2


def explode(kind: str) -> Any:
    """End in many ways."""
    if kind == "raise":
        raise KeyError("k")
    if kind == "exit":
        os._exit(3)
    if kind == "memory":
        return len(bytearray(400 << 20))
    if kind in ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError"):
        raise getattr(builtins, kind, asyncio.CancelledError)("word")
    return object() if kind == "object" else "x" * 1_000_000


async def explode_slowly(kind: str) -> Any:
    """The same in a coroutine."""
    await asyncio.sleep(0)
    return explode(kind)


def chatter() -> int:
    """Say something in both ways."""
    print("h\u00e9llo")
    print("oops", file=sys.stderr)
    return 1


def leave_children(marker: str) -> None:
    """Children that want to stay."""
    subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 1000; true", marker], start_new_session=True)
    subprocess.call(["/bin/sh", "-c", "(trap '' TERM; sleep 1000; true) & sleep 1000; true", marker])


@dataclasses.dataclass
class Tool:
    """What the framework's decorator makes of a function: it has the function's name."""

    fn: Any


@Tool
def decorated(x: int) -> int:
    """A function that its own name does not lead to."""
    return x * module_level(2)


class Real(WithFramework):
    """In jars; holes by their numbers."""

    def test_a_function_behind_the_framework_s_decorator(self) -> None:
        self.tools.functions["decorated"] = decorated.fn
        self.assertEqual(self.call("decorated", x=5), ToolResult("c1", True, 15))
        self.assertIn("not picklable", str(self.call("decorated", x=lambda: None).error))

    def setUp(self) -> None:
        super().setUp()
        self.tools = InProcessToolHost(tool=module_level, slowly=slowly, explode=explode, bombs=bombs, children=leave_children)

    def call(self, tool: str, timeout: float = 30.0, **args: Any) -> ToolResult:
        made = asyncio.run(SubprocessSandbox(self.tools, timeout_seconds=timeout).call(tool, args, call_id="c1"))
        assert isinstance(made, ToolResult)
        return made

    def test_values(self) -> None:
        self.assertEqual(self.call("tool", x=1), ToolResult("c1", True, 2))
        self.assertEqual(self.call("slowly", x=4), ToolResult("c1", True, 8))
        self.assertEqual(len(self.call("explode", kind="long").output), 1_000_000)  # hole 6

    def test_files_for_the_tools(self) -> None:
        (self.work / "f").write_text("seen")
        self.tools.functions["read"] = read_text
        self.assertIn("FileNotFoundError", str(self.call("read", path=str(self.work / "f")).error))
        for keys in ({"ro": [self.work]}, {"workdir": self.work}, {"policy": {"ro": [str(self.work)]}, "memory": "256M"}):
            sandbox = SubprocessSandbox(self.tools, **keys)
            made = asyncio.run(sandbox.call("read", {"path": str(self.work / "f")}, call_id="c1"))
            self.assertEqual(made, ToolResult("c1", True, "seen"))
        with self.assertRaisesRegex(TypeError, "did you mean 'workdir'"):
            SubprocessSandbox(self.tools, wrkdir="/")

    def test_failures(self) -> None:
        self.assertEqual(self.call("explode", kind="raise").error, "SubprocessSandbox: tool raised KeyError: 'k'")
        self.assertEqual(
            self.call("explode", kind="exit").error, "SubprocessSandbox: subprocess exited without producing a result"
        )
        self.assertIn("type object at $", str(self.call("explode", kind="object").error))

    def test_every_exception_is_relayed_as_raised(self) -> None:
        self.tools.functions["slowly"] = explode_slowly
        for kind in ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError"):
            for tool in ("explode", "slowly"):
                if tool == "slowly" and kind in ("GeneratorExit", "CancelledError"):
                    continue  # these two are how a coroutine is ended
                with self.subTest(kind=kind, tool=tool):
                    self.assertEqual(self.call(tool, kind=kind).error, f"SubprocessSandbox: tool raised {kind}: word")

    def test_a_memory_kill_is_told_as_such(self) -> None:
        sandbox = SubprocessSandbox(self.tools, memory="100M")
        made = asyncio.run(sandbox.call("explode", {"kind": "memory"}, call_id="c1"))
        self.assertIn("SubprocessSandbox: tool was killed: it used more memory than it may", made.error)

    def test_what_a_tool_prints_goes_to_the_caller(self) -> None:
        self.tools.functions["chatter"] = chatter
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.assertEqual(self.call("chatter").output, 1)
        self.assertEqual((out.getvalue(), err.getvalue()), ("h\u00e9llo\n", "oops\n"))
        raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        with contextlib.redirect_stdout(raw), contextlib.redirect_stderr(err):
            self.assertEqual(self.call("chatter").output, 1)
            self.assertEqual(raw.buffer.getvalue(), "h\u00e9llo\n".encode())  # type: ignore[attr-defined]
            raw.close()
            self.assertEqual(self.call("chatter").output, 1)
        seen: List[Any] = []
        sandbox = SubprocessSandbox(self.tools, on_output=lambda stream, data: seen.append(stream))
        asyncio.run(sandbox.call("chatter", {}))
        self.assertEqual(sorted(set(seen)), ["stderr", "stdout"])

    def test_hole_1_nothing_that_the_tool_wrote_is_unpickled(self) -> None:
        sign = str(self.base / "sign")
        self.assertIn("malformed", str(self.call("bombs", path=sign, is_result=False).error))
        self.assertIn("Bomb", str(self.call("bombs", path=sign, is_result=True).error))
        self.assertFalse(os.path.exists(sign))

    def test_hole_2_grandchildren_end_with_a_timeout(self) -> None:
        made = self.call("children", 1.0, marker=self.marker)
        self.assertEqual(made.error, "SubprocessSandbox: tool exceeded 1.0s")
        self.assertEqual(self.marked(), [])

    def test_hole_11_cancelling_does_not_wait_for_the_tool(self) -> None:
        async def main() -> None:
            sandbox = SubprocessSandbox(self.tools, timeout_seconds=SLEEP)
            task = asyncio.ensure_future(sandbox.call("children", {"marker": self.marker}))
            while not self.marked():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(self.marked(), [])

        asyncio.run(main())

    @unittest.skipUnless(importlib.util.find_spec("trio"), "trio is not installed")
    def test_under_trio(self) -> None:
        import trio

        async def main() -> Any:
            return await SubprocessSandbox(self.tools).call("tool", {"x": 5}, call_id="c1")

        self.assertEqual(trio.run(main), ToolResult("c1", True, 6))


class Paths(WithFramework):
    def setUp(self) -> None:
        super().setUp()
        self.root = self.work / "root"
        self.root.mkdir()
        (self.root / "inside").write_text("x")
        (self.work / "secret").write_text("x")
        (self.root / "link").symlink_to(self.work / "secret")
        (self.root / "good-link").symlink_to(self.root / "inside")
        self.host_ = InProcessToolHost()

    def ask(self, args: Dict[str, Any], **options: Any) -> ToolResult:
        sandbox = FilesystemSandbox(self.host_, **{"roots": [self.root], **options})
        made = asyncio.run(sandbox.call("t", args, call_id="c1"))
        assert isinstance(made, ToolResult)
        return made

    def denied(self, args: Dict[str, Any], **options: Any) -> None:
        self.host_.calls.clear()
        made = self.ask(args, **options)
        self.assertTrue(made.denied, args)
        self.assertIn("outside", str(made.reason))
        self.assertEqual((made.call_id, self.host_.calls), ("c1", []))

    def allowed(self, args: Dict[str, Any], **options: Any) -> None:
        self.assertTrue(self.ask(args, **options).ok, args)
        self.assertEqual(self.host_.calls[-1], ("t", args))

    def test_roots_are_needed(self) -> None:
        for roots in ([], (), None):
            with self.assertRaises(ValueError):
                FilesystemSandbox(self.host_, roots=roots)  # type: ignore[arg-type]
        self.assertEqual(FilesystemSandbox(self.host_, roots=str(self.root)).roots, (self.root.resolve(),))

    def test_inside(self) -> None:
        for path in (self.root, self.root / "inside", self.root / "new/deep", self.root / "a/../inside", self.root / "good-link"):
            self.allowed({"path": str(path)})
        os.chdir(self.root)
        self.allowed({"path": "inside", "n": 3, "text": "and/or", "flag": True, "url": "https://host/../x y"[:14]})

    def test_outside(self) -> None:
        outside = [self.work / "secret", self.root / "../secret", self.root / "link", "/etc/passwd", "~/x", "file:///etc/passwd"]
        outside += [str(self.root) + "-other", "a\0b", self.root / "link/x"]
        for path in outside:
            self.denied({"path": str(path)})
        os.chdir(self.work)
        self.denied({"output_file": "secret"})
        self.denied({"path": self.work / "secret"})
        self.denied({"path": os.fsencode(self.work / "secret")})

    def test_at_any_depth_and_by_shape(self) -> None:
        deep: Any = "/etc/passwd"
        for _ in range(30):
            deep = [{"k": (deep,)}]
        self.denied({"x": deep})
        self.denied({"anything": "/etc/passwd"})
        self.denied({"anything": {"/etc/passwd": 1}})
        self.denied({"options": {"src_dir": {"names": ["ok", "../../x"]}}})
        self.denied({"x": {"../up"}})
        for _ in range(100):
            deep = [deep]
        self.denied({"x": deep})

    def test_without_detection_only_the_named_arguments_count(self) -> None:
        self.allowed({"path": "/etc/passwd"}, auto_detect=False)
        self.denied({"where": "/etc/passwd"}, auto_detect=False, path_args=["where"])
        self.denied({"deep": [{"where": ["/etc/passwd"]}]}, auto_detect=False, path_args=["where"])


class Programs(PackageCase):
    def run_code(self, code: str, **options: Any) -> Any:
        return asyncio.run(CodeRunner("/usr/bin/python3").run(code, **options))

    def test_a_program_with_files_and_artifacts(self) -> None:
        code = (
            "import os, helper, sys\n"
            "print(helper.word, open('data/in.bin', 'rb').read(), os.environ['A']); print('e', file=sys.stderr)\n"
            "os.makedirs('out/sub'); open('out/sub/b', 'wb').write(b'\\0\\xff'); open('out/a', 'w').write('text')\n"
            "open('elsewhere', 'w').write('x'); sys.exit(3)"
        )
        files = {"helper.py": "word = 'w'", "data/in.bin": b"\1"}
        made = self.run_code(code, files=files, env={"A": "b"})
        self.assertEqual((made.stdout, made.stderr, made.returncode), ("w b'\\x01' b\n", "e\n", 3))
        self.assertEqual((made.artifacts, made.timed_out), ({"a": b"text", "sub/b": b"\0\xff"}, False))
        self.assertEqual(list(self.work.iterdir()), [])

    def test_a_shell_script_and_a_timeout(self) -> None:
        made = self.run_code(f"echo began; echo x > out/x; sleep {SLEEP}", language="bash", timeout_s=0.7)
        self.assertEqual((made.stdout, made.timed_out, made.artifacts), ("began\n", True, {"x": b"x\n"}))

    def test_names_that_will_not_do(self) -> None:
        for name in ("/etc/x", "../x", "a/../../x", "", "a\0b", "main.py"):
            with self.assertRaises(ValueError, msg=name):
                self.run_code("pass", files={name: b""})
        with self.assertRaises(ValueError):
            self.run_code("pass", language="cobol")

    def test_hole_12_artifacts_follow_no_link_and_wait_for_no_pipe(self) -> None:
        secret = self.base / "secret"
        secret.write_text("hidden")
        code = (
            f"import os\nos.symlink({str(secret)!r}, 'out/link'); os.symlink('/', 'out/root'); os.mkfifo('out/pipe')\n"
            "open('out/good', 'w').write('g'); os.truncate(os.open('out/huge', os.O_CREAT | os.O_RDWR), 1 << 40)\n"
            "os.mkdir('out/closed', 0); os.chmod('.', 0o500)"
        )
        self.assertEqual(self.run_code(code).artifacts, {"good": b"g"})

    def test_hole_12_the_folder_itself_may_be_a_link(self) -> None:
        code = "import os\nos.rmdir('out'); os.symlink('/etc', 'out')"
        self.assertEqual(self.run_code(code).artifacts, {})

    def test_artifacts_are_capped(self) -> None:
        runner = CodeRunner("/usr/bin/python3", max_artifact_bytes=10)
        made = asyncio.run(runner.run("for n in 'abc': open('out/' + n, 'w').write(n * 6)"))
        self.assertEqual(made.artifacts, {"a": b"aaaaaa"})


if __name__ == "__main__":
    unittest.main()
