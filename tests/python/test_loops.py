# SPDX-License-Identifier: Apache-2.0
"""All that is async works under trio and anyio as it does under asyncio. Without these libraries there is nothing to run."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import importlib.util
import sys
import threading
import unittest
from typing import Any, Awaitable, Callable, List

import belljar
from belljar import _loops, _pool
from belljar.toolhost import JarToolHost
from package_case import PackageCase, open_fds, tearDownModule  # noqa: F401

Work = Callable[[], Awaitable[Any]]


def slow(marker: str) -> None:
    """A function that a call has to end."""
    import subprocess

    subprocess.run(["sh", "-c", "sleep 1000", marker], check=False)


def has(name: str) -> bool:
    """Whether the library is there."""
    return importlib.util.find_spec(name) is not None


class Cases:
    """The cases; below are the loops they run in."""

    class Loop(PackageCase):
        """One loop."""

        library = "trio"
        backend = ""

        def setUp(self) -> None:
            super().setUp()
            self.kit: Any = importlib.import_module(self.library)
            belljar.run(["true"])
            _pool._at_exit()  # the hidden pool opens and closes things when it likes
            gc.collect()
            self.before = sorted(open_fds())

        def run_loop(self, work: Work, is_clean: bool = True) -> Any:
            """Run to its end in a new loop, bounded; no descriptor is left."""

            async def bounded() -> Any:
                with self.kit.fail_after(120):
                    return await work()

            found = self.kit.run(bounded, **({"backend": self.backend} if self.backend else {}))
            if is_clean:
                gc.collect()
                self.assertEqual(sorted(open_fds()), self.before)
            return found

        def tasks(self) -> Any:
            """A group of tasks."""
            return self.kit.open_nursery() if self.library == "trio" else self.kit.create_task_group()

        async def until(self, condition: Callable[[], object]) -> None:
            """Wait for it."""
            while not condition():
                await self.kit.sleep(0.01)

        async def cancel_when(self, condition: Callable[[], object], work: Work) -> bool:
            """Cancel the work once the condition holds; whether it ended so."""
            with self.kit.CancelScope() as scope:

                async def watch() -> None:
                    await self.until(condition)
                    scope.cancel()

                async with self.tasks() as group:
                    group.start_soon(watch)
                    await work()
            return bool(scope.cancelled_caught if hasattr(scope, "cancelled_caught") else scope.cancel_called)

        # --- runs ---

        def test_the_same_results(self) -> None:
            async def work() -> None:
                result = await belljar.run_async(["cat"], input="x" * 100_000, timeout=20)
                self.assertEqual((result.stdout, result.outcome), ("x" * 100_000, "exited"))
                with self.assertRaises(belljar.RunTimeout):
                    await belljar.run_async(self.sh("sleep 1000"), timeout=0.1, check=True)
                with self.assertRaises(belljar.StartError):
                    await belljar.run_async(["/nonexistent"])
                large = {f"N{number}": "x" * 1000 for number in range(900)}
                self.assertEqual((await belljar.run_async("echo $N899 | wc -c", shell=True, env=large)).stdout, "1001\n")

            self.run_loop(work)

        def test_many_at_once(self) -> None:
            found: List[str] = []

            async def one(number: int) -> None:
                found.append((await belljar.run_async(["echo", str(number)])).stdout.strip())

            async def work() -> None:
                async with self.tasks() as group:
                    for number in range(30):
                        group.start_soon(one, number)

            self.run_loop(work)
            self.assertEqual(sorted(map(int, found)), list(range(30)))

        def test_callbacks_of_both_kinds(self) -> None:
            async def work() -> None:
                seen = []
                script = "echo a; sleep 0.05; echo b >&2"
                await belljar.run_async(script, shell=True, on_output=lambda stream, data: seen.append((stream, data)))

                async def hear(stream: str, data: bytes) -> None:
                    await self.kit.sleep(0.01)
                    seen.append((stream, data))

                await belljar.run_async(script, shell=True, on_output=hear)
                self.assertEqual(seen, [("stdout", b"a\n"), ("stderr", b"b\n")] * 2)

            self.run_loop(work)

        def test_cancelling_a_scope_ends_the_run_with_its_grace(self) -> None:
            # Before the engine knows that the command runs there is no grace: its output is the sign.
            script = "trap 'sleep 0.3; touch had_grace; exit' TERM; echo ready; while :; do sleep 0.01; done"
            seen: List[bytes] = []

            async def work() -> None:
                hear = functools.partial(belljar.run_async, on_output=lambda _, data: seen.append(data))
                run = functools.partial(hear, self.sh(script), timeout=None, grace=100)
                self.assertTrue(await self.cancel_when(lambda: seen, run))
                self.assertEqual(self.marked(), [])

            self.run_loop(work)
            self.assertTrue((self.work / "had_grace").exists())

        def test_a_deadline_ends_the_run(self) -> None:
            async def work() -> None:
                with self.kit.move_on_after(0.3):
                    await belljar.run_async(self.sh("sleep 1000"), timeout=None)
                self.assertEqual(self.marked(), [])

            self.run_loop(work)

        # --- processes ---

        def test_a_conversation(self) -> None:
            async def work() -> None:
                script = "echo ready; while read line; do echo got $line; done; echo bye >&2; printf '1\\n2\\n3'"
                async with await belljar.spawn_async(self.sh(script), stdin=belljar.PIPE) as process:
                    assert process.stdin and process.stdout and process.stderr
                    self.assertEqual(await process.stdout.readline(), b"ready\n")
                    self.assertIsNone(await process.poll())
                    process.stdin.write(b"one\n")
                    await process.stdin.drain()
                    self.assertEqual(await process.stdout.readexactly(4), b"got ")
                    self.assertEqual(await process.stdout.readuntil(b"e\n"), b"one\n")
                    with self.assertRaises(TimeoutError):
                        await process.wait(0.05)
                    process.stdin.close()
                    await process.stdin.wait_closed()
                    self.assertEqual([line async for line in process.stdout], [b"1\n", b"2\n", b"3"])
                    self.assertEqual((await process.stderr.read(), process.stderr.at_eof()), (b"bye\n", True))
                    result = await process.wait()
                    self.assertEqual((result.outcome, process.returncode, await process.poll()), ("exited", 0, result))

            self.run_loop(work)

        def test_more_than_a_pipe_holds_both_ways(self) -> None:
            data = bytes(range(256)) * 8192

            async def work() -> None:
                async with await belljar.spawn_async(["cat"], stdin=belljar.PIPE, output="4M") as process:
                    assert process.stdin and process.stdout
                    process.stdin.write(data)
                    process.stdin.close()
                    found = b""
                    while len(found) < len(data):
                        found += await process.stdout.read(100_000)
                    self.assertEqual((found == data, await process.stdout.read()), (True, b""))
                    self.assertEqual((await process.wait()).outcome, "exited")

            self.run_loop(work)

        def test_nobody_reads_what_is_written(self) -> None:
            async def work() -> None:
                async with await belljar.spawn_async(["true"], stdin=belljar.PIPE) as process:
                    assert process.stdin
                    await process.wait()
                    with self.assertRaises(ConnectionError):
                        while True:
                            process.stdin.write(b"x" * 100_000)
                            await process.stdin.drain()

            self.run_loop(work)

        def test_a_line_without_end(self) -> None:
            async def work() -> None:
                script = "head -c 2000000 /dev/zero; echo; echo next"
                async with await belljar.spawn_async(["sh", "-c", script]) as process:
                    assert process.stdout
                    with self.assertRaises(ValueError):
                        await process.stdout.readline()
                    rest = await process.stdout.read()
                    self.assertTrue(rest.endswith(b"next\n"))

            self.run_loop(work)

        def test_signals_cancel_and_leaving(self) -> None:
            async def work() -> None:
                async with await belljar.spawn_async(self.sh("echo ready; sleep 1000")) as process:
                    assert process.stdout
                    await process.stdout.readline()
                    process.kill()
                    self.assertEqual((await process.wait()).returncode, -9)
                async with await belljar.spawn_async(self.sh("sleep 1000"), timeout=None) as process:
                    self.assertEqual((await process.cancel()).outcome, "cancelled")
                async with await belljar.spawn_async(self.sh("sleep 1000"), timeout=None):
                    pass
                self.assertEqual(self.marked(), [])
                with self.assertRaises(belljar.StartError):
                    await belljar.spawn_async(["/nonexistent"], stdin=belljar.PIPE)

            self.run_loop(work)

        def test_cancelling_a_reader_loses_nothing_and_leaving_ends_the_run(self) -> None:
            async def work() -> None:
                async with await belljar.spawn_async(self.sh("read x; echo $x"), stdin=belljar.PIPE, timeout=None) as process:
                    assert process.stdin and process.stdout
                    with self.kit.move_on_after(0.05):
                        await process.stdout.readline()
                    process.stdin.write(b"word\n")
                    self.assertEqual(await process.stdout.readline(), b"word\n")

                async def stay() -> None:
                    async with await belljar.spawn_async(self.sh("touch ready; sleep 1000"), timeout=None) as process:
                        await process.wait()

                self.assertTrue(await self.cancel_when((self.work / "ready").exists, stay))
                self.assertEqual(self.marked(), [])

            self.run_loop(work)

        def test_the_end_of_the_loop_ends_the_run(self) -> None:
            kept = []

            async def work() -> None:
                kept.append(await belljar.spawn_async(self.sh("sleep 1000"), timeout=None, on_output=print))

            self.run_loop(work, is_clean=False)
            self.assertEqual(self.marked(), [])
            self.assertIsNone(kept.pop().returncode)

        def test_callbacks_of_a_process_and_what_they_raise(self) -> None:
            async def work() -> None:
                async def fail(_: str, data: bytes) -> None:
                    raise KeyError(data)

                async with await belljar.spawn_async(self.sh("echo x; sleep 1000"), on_output=fail, timeout=None) as process:
                    with self.assertRaises(KeyError):
                        await process.wait()
                self.assertEqual(self.marked(), [])

            self.run_loop(work)

        # --- jars, calls ---

        def test_a_jar(self) -> None:
            async def work() -> None:
                async with belljar.Jar(workdir=None, ro=[sys.base_prefix]) as jar:
                    await jar.run_async("echo x > f", shell=True, check=True)
                    self.assertEqual((await jar.run_async(["cat", "f"])).stdout, "x\n")
                    async with await jar.spawn_async(["cat", "f"]) as process:
                        assert process.stdout
                        self.assertEqual(await process.stdout.read(), b"x\n")
                    self.assertEqual(await jar.call_async(len, "abc"), 3)

            self.run_loop(work)

        def test_calls_wait_in_order_and_end_when_cancelled(self) -> None:
            found: List[int] = []

            async def work() -> None:
                async with belljar.Pool(concurrency=2) as pool:

                    async def one(number: int) -> None:
                        found.append(await pool.call_async(abs, -number))

                    async with self.tasks() as group:
                        for number in range(12):
                            group.start_soon(one, number)
                    call = functools.partial(pool.call_async, slow, self.marker, timeout=None)
                    self.assertTrue(await self.cancel_when(self.marked, call))
                    self.assertEqual(self.marked(), [])
                    seen: List[bytes] = []

                    async def hear(_: str, data: bytes) -> None:
                        await self.kit.sleep(0)
                        seen.append(data)

                    self.assertEqual(await pool.call_async(print, "x" * 10, on_output=hear), None)
                    self.assertEqual(b"".join(seen), b"x" * 10 + b"\n")
                    with self.assertRaises(belljar.CallError):
                        await pool.call_async(divmod, 1, 0)

            self.run_loop(work)
            self.assertEqual(sorted(found), list(range(12)))

        def test_files_and_interpreters(self) -> None:
            async def work() -> None:
                async with await belljar.Jar.open_async(workdir=None, ro=[sys.base_prefix]) as jar:
                    await jar.write_file_async("a/b", "x" * 100_000, parents=True)
                    self.assertEqual(await jar.read_file_async("a/b"), b"x" * 100_000)
                    self.assertEqual([info.name for info in await jar.list_files_async(".", recursive=True)], ["a", "a/b"])
                    await jar.rename_async("a/b", "c")
                    self.assertTrue(await jar.exists_async("c"))
                    await jar.remove_async("a", recursive=True)
                    archive = await jar.export_tar_async(".")
                    await jar.mkdir_async("again")
                    await jar.import_tar_async(archive.read(), "again")
                    archive.close()
                    self.assertEqual((await jar.stat_async("again/c")).size, 100_000)
                async with await belljar.Interpreter.open_async(ro=[sys.base_prefix]) as interpreter:
                    await interpreter.set_async("x", 20)
                    self.assertEqual((await interpreter.run_async("x + 1")).value, 21)

            self.run_loop(work, is_clean=False)

        def test_the_hidden_pool_and_tools(self) -> None:
            @belljar.tool
            async def double(number: int) -> int:
                return number * 2

            async def work() -> None:
                self.assertEqual(await belljar.call_async(sorted, [2, 1]), [1, 2])
                self.assertEqual(await double(4), 8)

            self.run_loop(work, is_clean=False)

        def test_a_coroutine_function_runs_in_the_loop_of_its_caller(self) -> None:
            async def library() -> str:
                import asyncio
                import sys

                await (sys.modules["trio"] if "trio" in sys.modules else asyncio).sleep(0)
                return "trio" if "trio" in sys.modules else "asyncio"

            async def work() -> None:
                is_trio = "trio" in (self.library, self.backend)
                self.assertEqual(await belljar.call_async(library), "trio" if is_trio else "asyncio")

            self.run_loop(work, is_clean=False)
            self.assertEqual(belljar.call(library), "asyncio")

        def test_a_tool_host_and_its_events(self) -> None:
            async def work() -> None:
                async with JarToolHost([abs], concurrency=1) as host:
                    watch = host.watch()
                    kinds: List[str] = []

                    async def hear() -> None:
                        async for event in watch:
                            kinds.append(event.kind)

                    async with self.tasks() as group:
                        group.start_soon(hear)
                        await self.kit.sleep(0.01)
                        host.add(len)
                        self.assertEqual((await host.call("len", {})).kind, "error")
                        host.close()
                    self.assertEqual(kinds, ["added", "started", "finished", "closed"])

            self.run_loop(work)

        # --- threads ---

        def test_a_function_in_a_thread(self) -> None:
            async def work() -> None:
                self.assertNotEqual(await _loops.run_blocking(threading.get_ident), threading.get_ident())
                with self.assertRaises(ZeroDivisionError):
                    await _loops.run_blocking(lambda: divmod(1, 0))

            self.run_loop(work, is_clean=False)

        def test_what_a_cancelled_thread_returns_is_discarded(self) -> None:
            may_return, began = threading.Event(), threading.Event()
            discarded: List[str] = []

            def function() -> str:
                began.set()
                may_return.wait(60)
                return "made"

            async def work() -> None:
                run = functools.partial(_loops.run_blocking, function, discarded.append)
                self.assertTrue(await self.cancel_when(began.is_set, run))
                may_return.set()
                await self.until(lambda: discarded)

            self.run_loop(work, is_clean=False)
            self.assertEqual(discarded, ["made"])


@unittest.skipUnless(has("trio"), "trio is not installed")
class Trio(Cases.Loop):
    """trio's own."""


@unittest.skipUnless(has("trio") and has("anyio"), "anyio and trio are not installed")
class AnyioOnTrio(Cases.Loop):
    """anyio, with trio's loop."""

    library, backend = "anyio", "trio"


@unittest.skipUnless(has("anyio"), "anyio is not installed")
class AnyioOnAsyncio(Cases.Loop):
    """anyio, with asyncio's loop, where a scope cancels again at every turn."""

    library, backend = "anyio", "asyncio"


class Turns(PackageCase):
    """Whatever comes from a run, the others in the loop have their turn."""

    def test_a_channel_that_is_never_empty(self) -> None:
        from belljar._async import READS_IN_A_ROW, Reader

        class Endless:
            """A socket with always more to read."""

            reads = 0

            def setblocking(self, _: bool) -> None:
                """As a socket."""

            def recv(self, _: int) -> bytes:
                """As a socket."""
                self.reads += 1
                return b"x"

        class Channel:
            """Of such a socket."""

            socket = Endless()

        async def work() -> None:
            async def read() -> None:
                reader = Reader(Channel())  # type: ignore[arg-type]
                while True:
                    await reader.read()

            task = asyncio.ensure_future(read())
            for _ in range(3):
                await asyncio.sleep(0)
            task.cancel()
            self.assertLessEqual(Channel.socket.reads, 4 * (READS_IN_A_ROW + 1))

        asyncio.run(asyncio.wait_for(work(), 60))

    def test_nothing_is_imported_for_it(self) -> None:
        script = (
            "import asyncio, sys, belljar\n"
            "asyncio.run(belljar.run_async(['true'])); asyncio.run(belljar.call_async(len, ''))\n"
            "print(sorted({'trio', 'anyio', 'sniffio'} & set(sys.modules)))"
        )
        self.assertEqual(self.host(script), "[]\n")


if __name__ == "__main__":
    unittest.main()
