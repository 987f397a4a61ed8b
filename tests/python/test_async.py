# SPDX-License-Identifier: Apache-2.0
"""run_async() and spawn_async(), in asyncio's own loop and in one that offers only the public interface."""

from __future__ import annotations

import asyncio
import gc
import selectors
import signal
import threading
import unittest
import warnings
from typing import Any, Coroutine

import belljar
from package_case import PackageCase, open_fds, tearDownModule  # noqa: F401


class AsyncCase(PackageCase):
    """Runs coroutines, bounded."""

    def run_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run to its end in a new loop."""
        return asyncio.run(asyncio.wait_for(work, 120))


class Run(AsyncCase):
    """run_async()."""

    def test_the_same_results(self) -> None:
        async def work() -> None:
            result = await belljar.run_async(["cat"], input="x" * 100_000, timeout=20)
            self.assertEqual((result.stdout, result.outcome), ("x" * 100_000, "exited"))
            with self.assertRaises(belljar.RunTimeout):
                await belljar.run_async(self.sh("sleep 1000"), timeout=0.1, check=True)
            with self.assertRaises(belljar.StartError):
                await belljar.run_async(["/nonexistent"])
            with self.assertRaisesRegex(belljar.PolicyError, "did you mean"):
                await belljar.run_async(["true"], tiemout=3)
            with self.assertRaises(TypeError):
                await belljar.run_async("true")

        self.run_loop(work())

    def test_many_at_once(self) -> None:
        async def work() -> None:
            texts = [str(number) for number in range(60)]
            results = await asyncio.gather(*(belljar.run_async(["echo", text]) for text in texts))
            self.assertEqual([result.stdout.strip() for result in results], texts)

        belljar.run(["true"])
        before = sorted(open_fds())
        self.run_loop(work())
        self.assertEqual(sorted(open_fds()), before)

    def test_the_loop_goes_on_meanwhile(self) -> None:
        async def work() -> None:
            ticks = 0
            task = asyncio.ensure_future(belljar.run_async(self.sh("while ! test -e go; do sleep 0.01; done")))
            while not task.done():
                ticks += 1
                if ticks == 10:
                    (self.work / "go").write_text("x")
                await asyncio.sleep(0.01)
            self.assertGreaterEqual(ticks, 10)
            self.assertEqual((await task).outcome, "exited")

        self.run_loop(work())

    def test_cancelling_ends_the_jar_first(self) -> None:
        async def work() -> None:
            task = asyncio.ensure_future(belljar.run_async(self.sh("touch ready; sleep 1000"), timeout=None))
            while not (self.work / "ready").exists():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(task.cancelled())
            self.assertEqual(self.marked(), [])

        self.run_loop(work())

    def test_cancelling_twice_cuts_the_grace_short(self) -> None:
        async def work() -> None:
            # Before the engine knows that the command runs there is no grace: its output is the sign.
            script = "trap 'touch ignored' TERM; echo ready; while :; do sleep 0.01; done"
            ready = asyncio.Event()
            run = belljar.run_async(self.sh(script), timeout=None, grace=1000, on_output=lambda *_: ready.set())
            task = asyncio.ensure_future(run)
            await ready.wait()
            task.cancel()
            while not (self.work / "ignored").exists():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(self.marked(), [])

        self.run_loop(work())

    def test_wait_for_ends_the_jar(self) -> None:
        async def work() -> None:
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(belljar.run_async(self.sh("sleep 1000"), timeout=None), 0.3)
            self.assertEqual(self.marked(), [])

        self.run_loop(work())

    def test_the_end_of_the_loop_ends_the_jar(self) -> None:
        async def work() -> None:
            asyncio.ensure_future(belljar.run_async(self.sh("touch ready; sleep 1000"), timeout=None))
            while not (self.work / "ready").exists():
                await asyncio.sleep(0.01)

        self.run_loop(work())
        self.assertEqual(self.marked(), [])

    def test_a_loop_that_is_thrown_away(self) -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(belljar.run_async(self.sh("touch ready; sleep 1000"), timeout=None))

        async def until_ready() -> None:
            while not (self.work / "ready").exists():
                await asyncio.sleep(0.01)

        loop.run_until_complete(until_ready())
        loop.close()
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        coroutine = task.get_coro()
        coroutine.close()
        del task, coroutine
        gc.collect()
        self.wait_for(lambda: not self.marked(), "the run is ended")

    def test_callbacks_of_both_kinds(self) -> None:
        async def work() -> None:
            seen = []
            script = "echo a; sleep 0.05; echo b >&2"
            await belljar.run_async(script, shell=True, on_output=lambda stream, data: seen.append((stream, data)))

            async def hear(stream: str, data: bytes) -> None:
                await asyncio.sleep(0.01)
                seen.append((stream, data))

            await belljar.run_async(script, shell=True, on_output=hear)
            self.assertEqual(seen, [("stdout", b"a\n"), ("stderr", b"b\n")] * 2)

        self.run_loop(work())

    def test_a_slow_callback_slows_the_command_only(self) -> None:
        async def work() -> None:
            count = 0

            async def hear(_: str, data: bytes) -> None:
                nonlocal count
                count += len(data)
                await asyncio.sleep(0.002)

            slow = asyncio.ensure_future(belljar.run_async(["head", "-c", "3000000", "/dev/zero"], on_output=hear, output="4M"))
            quick = await belljar.run_async(["echo", "x"])
            self.assertEqual(quick.stdout, "x\n")
            self.assertEqual(((await slow).stdout_bytes, count), (3_000_000, 3_000_000))

        self.run_loop(work())

    def test_an_exception_of_a_callback_ends_the_run(self) -> None:
        async def work() -> None:
            async def fail(_: str, __: bytes) -> None:
                raise KeyError("mine")

            with self.assertRaises(KeyError):
                await belljar.run_async(self.sh("echo x; sleep 1000"), timeout=None, on_output=fail)
            self.assertEqual(self.marked(), [])

        self.run_loop(work())

    def test_loops_in_many_threads(self) -> None:
        found = []

        def thread() -> None:
            found.append(asyncio.run(belljar.run_async(["echo", "x"])).stdout)

        threads = [threading.Thread(target=thread) for _ in range(8)]
        for item in threads:
            item.start()
        for item in threads:
            item.join()
        self.assertEqual(found, ["x\n"] * 8)


class Spawn(AsyncCase):
    """spawn_async()."""

    def test_a_conversation(self) -> None:
        async def work() -> None:
            script = "echo ready; while read line; do echo got $line; done; echo bye >&2"
            async with await belljar.spawn_async(self.sh(script), stdin=belljar.PIPE) as process:
                assert process.stdin and process.stdout and process.stderr
                self.assertEqual(await process.stdout.readline(), b"ready\n")
                self.assertIsNone(await process.poll())
                process.stdin.write(b"one\n")
                await process.stdin.drain()
                self.assertEqual(await process.stdout.readline(), b"got one\n")
                process.stdin.close()
                self.assertEqual((await process.stdout.read(), await process.stderr.read()), (b"", b"bye\n"))
                result = await process.wait()
                self.assertEqual((result.stdout, process.returncode, await process.poll()), (None, 0, result))

        self.run_loop(work())

    def test_a_cap_ends_the_streams_of_a_run_that_goes_on(self) -> None:
        async def work() -> None:
            script = "trap 'exit 7' USR1; echo 1234567890; echo more; while :; do sleep 0.01; done"
            told = asyncio.Event()

            async def hear(event: Any) -> None:
                self.assertEqual((event["event"], event["limit"]["name"]), ("limit", "output"))
                told.set()

            async with await belljar.spawn_async(self.sh(script), output=6, on_event=hear) as process:
                assert process.stdout and process.stderr
                self.assertEqual((await process.stdout.read(), await process.stderr.read()), (b"123456", b""))
                await told.wait()
                await process.send_signal(signal.SIGUSR1)
                result = await process.wait()
                self.assertEqual((result.exit_code, result.truncated, result.limits_hit[0]["name"]), (7, True, "output"))

        self.run_loop(work())

    def test_lines_can_be_iterated(self) -> None:
        async def work() -> None:
            async with await belljar.spawn_async("seq 3; head -c 300000 /dev/zero", shell=True) as process:
                assert process.stdout
                sizes = [len(line) async for line in process.stdout]
                self.assertEqual(sizes, [2, 2, 2, 300_000])

        self.run_loop(work())

    def test_waiting_can_be_given_up(self) -> None:
        async def work() -> None:
            async with await belljar.spawn_async(self.sh("read x"), stdin=belljar.PIPE) as process:
                with self.assertRaises(TimeoutError):
                    await process.wait(0.05)
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(process.wait(), 0.05)
                assert process.stdin
                process.stdin.close()
                self.assertEqual((await process.wait(60)).outcome, "exited")

        self.run_loop(work())

    def test_signals_and_cancel(self) -> None:
        async def work() -> None:
            script = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.01; done"
            async with await belljar.spawn_async(self.sh(script)) as process:
                assert process.stdout
                await process.stdout.readline()
                await process.send_signal(signal.SIGUSR1)
                self.assertEqual(await process.stdout.readline(), b"usr1\n")
                process.kill()
                self.assertEqual((await process.wait()).returncode, -9)
            async with await belljar.spawn_async(self.sh("sleep 1000"), timeout=None) as process:
                self.assertEqual((await process.cancel()).outcome, "cancelled")

        self.run_loop(work())

    def test_leaving_the_context_ends_the_run(self) -> None:
        async def work() -> None:
            async with await belljar.spawn_async(self.sh("echo x; sleep 1000"), timeout=None) as process:
                assert process.stdout
                await process.stdout.readline()
            self.assertEqual(self.marked(), [])

        belljar.run(["true"])
        before = sorted(open_fds())
        self.run_loop(work())
        self.assertEqual(sorted(open_fds()), before)

    def test_what_cannot_start_raises_at_once(self) -> None:
        async def work() -> None:
            with self.assertRaises(belljar.StartError):
                await belljar.spawn_async(["/nonexistent"], stdin=belljar.PIPE)
            with self.assertRaises(belljar.PolicyError):
                await belljar.spawn_async(["true"], tiemout=3)

        belljar.run(["true"])
        before = sorted(open_fds())
        self.run_loop(work())
        self.assertEqual(sorted(open_fds()), before)

    def test_callbacks_come_without_waiting(self) -> None:
        async def work() -> None:
            seen = []
            hear = lambda stream, data: seen.append(data)  # noqa: E731
            process = await belljar.spawn_async(["echo", "x"], on_output=hear, capture=True)
            while not seen:
                await asyncio.sleep(0.01)
            self.assertEqual((await process.wait()).stdout, "x\n")

        self.run_loop(work())

    def test_the_end_of_the_loop_ends_the_run(self) -> None:
        kept = []

        async def work() -> None:
            kept.append(await belljar.spawn_async(self.sh("sleep 1000"), timeout=None, on_output=print))

        self.run_loop(work())
        self.assertEqual(self.marked(), [])
        kept.clear()

    def test_nobody_wants_it_any_more(self) -> None:
        async def work() -> None:
            process = await belljar.spawn_async(self.sh("sleep 1000"), timeout=None)
            with self.assertWarns(ResourceWarning):
                warnings.simplefilter("always", ResourceWarning)
                del process
                gc.collect()
            while self.marked():
                await asyncio.sleep(0.01)

        self.run_loop(work())


class PlainLoop(asyncio.SelectorEventLoop):
    """What a loop of other make promises: the public methods, with plain descriptors, and no signal handling."""

    def __init__(self) -> None:
        super().__init__(selectors.PollSelector())

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        """Numbers only."""
        assert isinstance(fd, int)
        return super().add_reader(fd, callback, *args)

    def add_signal_handler(self, *_: Any) -> None:
        """Not here."""
        raise NotImplementedError

    async def subprocess_exec(self, *_: Any, **__: Any) -> Any:
        """Not here."""
        raise NotImplementedError


class OtherLoop(Run, Spawn):
    """All of the above once more."""

    def run_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run to its end in a loop that is not asyncio's default."""
        loop = PlainLoop()
        try:
            asyncio.set_event_loop(loop)
            return loop.run_until_complete(asyncio.wait_for(work, 120))
        finally:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            asyncio.set_event_loop(None)
            loop.close()


if __name__ == "__main__":
    unittest.main()
