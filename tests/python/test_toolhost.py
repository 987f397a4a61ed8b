# SPDX-License-Identifier: Apache-2.0
"""belljar.toolhost: every tool in a jar with its own policy, events, paths that stay inside, programs."""

from __future__ import annotations

import asyncio
import os
import time
import unittest
import unittest.mock
from typing import Any, List

import belljar
from belljar import toolhost
from belljar.toolhost import CodeToolHost, FilesystemSandbox, JarToolHost, ToolEvent, ToolResult
from package_case import PackageCase, tearDownModule  # noqa: F401

SLEEP = 1000


def add(a: int, b: int = 1, *, flag: bool = False) -> int:
    """Add two numbers."""
    return a + b


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def raises() -> None:
    raise ValueError("why")


def directory() -> str:
    return os.getcwd()


@belljar.tool
def decorated(x: int) -> int:
    """A tool already."""
    return -x


class BadWords(Exception):
    def __str__(self) -> str:
        raise ValueError("not even that")


class BadArguments:
    def keys(self) -> Any:
        raise BadWords


class BadName:
    def __str__(self) -> str:
        raise BadWords


class BadText(str):
    __str__ = BadName.__str__

    def __hash__(self) -> int:
        raise BadWords


class Hosts(PackageCase):
    def run_(self, coroutine: Any) -> Any:
        return asyncio.run(coroutine)

    def test_a_call_never_raises(self) -> None:
        async def main() -> List[ToolResult]:
            async with JarToolHost([add, raises]) as host:
                calls: List[Any] = [("add", wrong) for wrong in (None, 3, [1], {1: 2}, {"c": 1}, {"a": object}, BadArguments())]
                calls += [(wrong, {}) for wrong in (None, ["add"], {}, "absent", "raises", BadName(), BadText("absent"), BadText("raises"))]
                hosts: List[Any] = [host, FilesystemSandbox(host, roots=["/"]), CodeToolHost()]
                found = [await one.call(*call) for one in hosts for call in calls]
                programs: List[Any] = [None, {}, {"code": 3}, {"code": "", "files": 3}, BadArguments()]
                found += [await hosts[2].call("run_code", wrong) for wrong in programs]
                with unittest.mock.patch("os.memfd_create", side_effect=OSError(24, "too many open files")):
                    found.append(await host.call("add", {"a": "x" * (1 << 20)}))
                self.assertEqual((await host.call("add", {"a": 1})).output, 2)
            found.append(await host.call("add", {"a": 1}))
            return found

        for result in self.run_(main()):
            self.assertIn(result.kind, ("error", "denied"), result)

    def test_what_is_told_of_tools(self) -> None:
        async def main() -> Any:
            async with JarToolHost([add, decorated]) as host:
                host.add(read, name="slurp", description="Give the text of a file.", parameters={"type": "object"})
                return await host.list_tools(), await host.list_tools(query="TEXT file"), await host.list_tools(query="nothing")

        every, some, none = self.run_(main())
        self.assertEqual([tool.name for tool in every], ["add", "decorated", "slurp"])
        self.assertEqual([tool.name for tool in some], ["slurp"])
        self.assertEqual(none, [])
        self.assertEqual(every[0].description, "Add two numbers.")
        self.assertEqual(
            every[0].parameters,
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "flag": {"type": "boolean"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        )
        self.assertEqual(every[1].description, "A tool already.")

    def test_calls_and_their_failures(self) -> None:
        async def main() -> None:
            async with JarToolHost([add, raises, decorated], timeout=20) as host:
                host.add(os._exit, name="leave")
                host.add(time.sleep, name="sleep", timeout=0.5)
                self.assertEqual(await host.call("add", {"a": 1, "b": 2}, call_id="c"), ToolResult("c", "ok", 3))
                self.assertEqual((await host.call("decorated", {"x": 4})).output, -4)
                self.assertEqual(await host.call("nope", {}), ToolResult("", "error", message="unknown tool: nope"))
                self.assertEqual(await host.call("raises", {}), ToolResult("", "error", message="ValueError: why"))
                wrong = await host.call("add", {"c": object()})
                self.assertEqual((wrong.ok, wrong.kind), (False, "error"))
                with self.assertRaises(ValueError):
                    host.add(add)
                host.remove("add")
                self.assertFalse((await host.call("add", {"a": 1})).ok)

        self.run_(main())

    def test_each_tool_has_its_own_policy(self) -> None:
        secret = self.base / "secret"
        secret.write_text("s")

        async def main() -> None:
            async with JarToolHost() as host:
                host.add(read)
                host.add(read, name="read_secret", ro=[str(secret)])
                host.add(directory, workdir=str(self.work))
                host.add(directory, name="elsewhere", policy="strict")
                host.add(lambda: time.sleep(SLEEP), name="sleep", timeout=0.5)
                self.assertEqual((await host.call("read", {"path": str(secret)})).kind, "error")
                self.assertEqual((await host.call("read_secret", {"path": str(secret)})).output, "s")
                self.assertEqual((await host.call("directory", {})).output, str(self.work))
                self.assertEqual((await host.call("elsewhere", {})).output, "/workspace")
                self.assertEqual((await host.call("sleep", {})).kind, "timeout")
                host.add(lambda: os._exit(3), name="leave")
                self.assertEqual((await host.call("leave", {})).kind, "ended")
                self.assertEqual(len(host._pools), 3)

        self.run_(main())

    def test_events(self) -> None:
        async def main() -> List[ToolEvent]:
            host = JarToolHost()
            watch = host.watch()
            early = host.watch()
            await early.aclose()
            host.add(add)
            result = await host.call("add", {"a": 1}, call_id="c")
            host.remove("add")
            host.close()
            host.close()
            self.assertEqual(result.output, 2)
            with self.assertRaises(belljar.PolicyError):
                host.add(add)
            return [event async for event in watch]

        events = self.run_(main())
        self.assertEqual([event.kind for event in events], ["added", "started", "finished", "removed", "closed", "closed"])
        self.assertEqual(events[2], ToolEvent("finished", "add", "c", ToolResult("c", "ok", 2)))

    def test_a_watcher_that_sleeps_does_not_grow(self) -> None:
        async def main() -> int:
            host = JarToolHost()
            watch = host.watch()
            for _ in range(toolhost.MAX_EVENTS + 10):
                await host.call("x", {})
                host._tell(ToolEvent("added", "x"))
            host.close()
            return len([event async for event in watch])

        self.assertEqual(self.run_(main()), toolhost.MAX_EVENTS)

    def test_cancelling(self) -> None:
        def wait(seconds: float) -> None:
            time.sleep(seconds)

        async def main() -> None:
            async with JarToolHost([wait]) as host:
                watch = host.watch()
                task = asyncio.ensure_future(host.call("wait", {"seconds": SLEEP}))
                self.assertEqual((await watch.__anext__()).kind, "started")
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual((await watch.__anext__()).kind, "finished")

        self.run_(main())

    def test_paths_that_lead_outside_are_denied(self) -> None:
        (self.work / "in").write_text("x")

        async def main() -> None:
            async with JarToolHost() as inner:
                inner.add(read, ro=[str(self.work)])
                host = FilesystemSandbox(inner, roots=[self.work])
                self.assertEqual((await host.call("read", {"path": str(self.work / "in")})).output, "x")
                denied = await host.call("read", {"path": "/etc/passwd"}, call_id="c")
                self.assertEqual((denied.kind, denied.call_id), ("denied", "c"))
                self.assertIn("outside", denied.message)
                self.assertEqual([tool.name for tool in await host.list_tools()], ["read"])
                self.assertEqual(host.roots, (self.work.resolve(),))
                await host.watch().aclose()  # type: ignore[attr-defined]
            with self.assertRaises(ValueError):
                FilesystemSandbox(inner, roots=[])

        self.run_(main())

    def test_programs(self) -> None:
        async def main() -> None:
            host = CodeToolHost()
            code = "print(open('in').read()); open('out/x', 'w').write('y')"
            made = await host.call("run_code", {"code": code, "files": {"in": "text"}}, call_id="c")
            self.assertEqual((made.ok, made.output["stdout"], made.output["artifacts"]), (True, "text\n", {"x": b"y"}))
            self.assertEqual((await host.call("run_code", {"code": "exit 3", "language": "sh"})).output["returncode"], 3)
            for wrong in ({}, {"code": "", "language": "cobol"}, {"code": "", "nonsense": 1}):
                self.assertEqual((await host.call("run_code", wrong)).kind, "error")
            self.assertEqual((await host.call("other", {})).kind, "error")
            self.assertEqual(len(await host.list_tools()), 1)

        self.run_(main())


if __name__ == "__main__":
    unittest.main()
