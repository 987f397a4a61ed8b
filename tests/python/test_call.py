# SPDX-License-Identifier: Apache-2.0
"""belljar.call: functions in jars, what comes back, and what is said of those that do not come back."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import enum
import functools
import operator
import os
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, List, NamedTuple

import belljar
from harness.bounds import SLOWNESS
from package_case import PackageCase, open_fds, tearDownModule  # noqa: F401

SLEEP = 1000


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Pair(NamedTuple):
    left: Any
    right: Any


class Adder:
    """Has a method, and can be pickled."""

    def __init__(self, start: int) -> None:
        self.start = start

    def add(self, x: int) -> int:
        return self.start + x

    def __call__(self, x: int) -> int:
        return self.start * x


def twice(x: Any) -> Any:
    return x + x


def with_defaults(a: int, b: int = 2, *rest: int, c: int = 3, **more: Any) -> Any:
    return a, b, rest, c, more


async def later(x: int) -> int:
    await asyncio.sleep(0.01)
    return x + 1


def raises(text: str) -> None:
    print("printed before")
    raise ValueError(text)


def odd_exception() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("never")

    raise Odd


def takes_timeout(timeout: int) -> int:
    return timeout


class Values(PackageCase):
    """What goes in and what comes out."""

    def test_functions_of_every_kind(self) -> None:
        factor = 7
        calls = [
            (operator.add, (1, 2), {}, 3),
            (twice, ("ab",), {}, "abab"),
            (with_defaults, (1,), {}, (1, 2, (), 3, {})),
            (with_defaults, (1, 5, 6), {"c": 4, "z": None}, (1, 5, (6,), 4, {"z": None})),
            (functools.partial(operator.mul, 6), (7,), {}, 42),
            (Adder(10).add, (5,), {}, 15),
            (Adder(10), (5,), {}, 50),
            (lambda x: x * factor, (6,), {}, 42),
            (later, (1,), {}, 2),
            (functools.partial(later, 4), (), {}, 5),
            (len, ([1, 2],), {}, 2),
            (str.upper, ("x",), {}, "X"),
        ]
        for fn, args, kwargs, value in calls:
            with self.subTest(repr(fn)):
                self.assertEqual(belljar.call(fn, *args, **kwargs), value)

    def test_types_come_back_exactly(self) -> None:
        value = {1: (True, 1, 1.5, None), "s": [b"\xff", {2, 3}], (1, 2): frozenset({"x"})}
        back = belljar.call(operator.itemgetter(0), [value])
        self.assertEqual(back, value)
        self.assertEqual([type(part) for part in back[1]], [bool, int, float, type(None)])

    def test_listed_classes(self) -> None:
        value = [Colour.RED, Point(1, 2), Pair("a", [1])]
        back = belljar.call(operator.itemgetter(0), [value], types=[Colour, Point, Pair])
        self.assertEqual(back, value)
        self.assertEqual([type(part) for part in back], [Colour, Point, Pair])
        with self.assertRaises(belljar.ResultError) as caught:
            belljar.call(operator.itemgetter(0), [{"p": [Point(1, 2)]}])
        for word in ("test_call.Point", '$["p"][0]', "types="):
            self.assertIn(word, str(caught.exception))
        with self.assertRaises(TypeError):
            belljar.call(len, "", types=[int])

    def test_what_is_not_data_names_its_type(self) -> None:
        for fn, word in ((object, "object"), (lambda: [open], "builtin_function"), (lambda: bytearray(1), "bytearray")):
            with self.assertRaises(belljar.ResultError) as caught:
                belljar.call(fn)
            self.assertIn(word, str(caught.exception))
            assert caught.exception.result is not None
            self.assertEqual(caught.exception.result.outcome, "exited")

    def test_the_bound_on_results(self) -> None:
        self.assertEqual(len(belljar.call(bytes, 5000, max_result=6000)), 5000)
        for size in (100_000, 2 << 20):
            with self.assertRaisesRegex(belljar.ResultError, "6144"):
                belljar.call(bytes, size, max_result="6K")
        with self.assertRaises(belljar.PolicyError):
            belljar.call(len, "", max_result="lots")

    def test_what_cannot_be_sent_runs_nothing(self) -> None:
        with self.assertRaises(belljar.SendError) as caught:
            belljar.call(len, threading.Lock())
        self.assertIn("argument 0 of 'len'", str(caught.exception))
        with self.assertRaises(belljar.SendError):
            belljar.call(3)  # type: ignore[arg-type]
        self.assertIsInstance(caught.exception, TypeError)

    def test_options_are_not_the_function_s(self) -> None:
        self.assertEqual(belljar.call(functools.partial(takes_timeout, timeout=3), timeout=20), 3)
        with self.assertRaises(belljar.CallError):
            belljar.call(takes_timeout, timeout=3)
        with self.assertRaises(belljar.PolicyError):
            belljar.call(len, "", timeout="soon")

    def test_large_arguments_and_results(self) -> None:
        size = 20 << 20
        data = os.urandom(1 << 20) * 20
        self.assertEqual(belljar.call(len, data), size)
        self.assertEqual(belljar.call(twice, data[: size // 4]), data[: size // 4] * 2)
        mixed = belljar.call(lambda x: {"a": x, "b": [x, (x, "t" * 300_000)], "s": {x}}, data[: 1 << 20])
        self.assertEqual((mixed["a"], mixed["b"][1][0], len(mixed["b"][1][1])), (data[: 1 << 20], data[: 1 << 20], 300_000))
        self.assertEqual(mixed["s"], {data[: 1 << 20]})

    def test_many_large_parts_are_more_than_files(self) -> None:
        parts = belljar.call(lambda: [bytes([i]) * 300_000 for i in range(80)])
        self.assertEqual([part[:1] + part[-1:] for part in parts], [bytes([i, i]) for i in range(80)])
        self.assertEqual({len(part) for part in parts}, {300_000})


class Endings(PackageCase):
    """Each a truthful outcome."""

    def ended(self, fn: Any, *args: Any, **options: Any) -> Any:
        with self.assertRaises(belljar.CallEnded) as caught:
            belljar.call(fn, *args, **options)
        assert caught.exception.result is not None
        return caught.exception.result

    def test_an_exception_is_text(self) -> None:
        with self.assertRaises(belljar.CallError) as caught:
            belljar.call(raises, "bad value")
        error = caught.exception
        self.assertIs(type(error), belljar.CallError)
        self.assertEqual((error.type_name, error.message), ("ValueError", "bad value"))
        assert error.traceback is not None and error.result is not None
        self.assertTrue(error.traceback.startswith("Traceback (most recent call last):\n"))
        self.assertIn("in raises", error.traceback)
        self.assertNotIn("_inside", error.traceback)
        self.assertEqual(error.result.stdout, "printed before\n")
        self.assertIsNone(error.__cause__)

    def test_exceptions_of_every_kind(self) -> None:
        def interrupted() -> None:
            raise KeyboardInterrupt

        for fn, name in ((odd_exception, "test_call.odd_exception.<locals>.Odd"), (interrupted, "KeyboardInterrupt")):
            with self.assertRaises(belljar.CallError) as caught:
                belljar.call(fn)
            self.assertEqual((type(caught.exception), caught.exception.type_name), (belljar.CallError, name))
        with self.assertRaises(belljar.CallError) as caught:
            belljar.call(raises, "x" * 10_000_000)
        assert caught.exception.message is not None
        self.assertLess(len(caught.exception.message), 100_000)

    def test_a_refused_system_call_is_told(self) -> None:
        def refused() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            raise OSError(ctypes.get_errno() if libc.mount(b"x", b"/tmp", b"tmpfs", 0, None) else 0, "mount")

        with self.assertRaises(belljar.CallError) as caught:
            belljar.call(refused)
        assert caught.exception.result is not None
        self.assertEqual([(entry.kind, entry.what, entry.count) for entry in caught.exception.result.denied], [("syscall", "mount", 1)])
        self.assertIn("Errno 1", str(caught.exception))

    def test_leaving(self) -> None:
        self.assertEqual(self.ended(os._exit, 3).exit_code, 3)
        self.assertEqual(self.ended(sys.exit, 4).exit_code, 4)
        self.assertEqual(self.ended(sys.exit).exit_code, 0)
        result = self.ended(sys.exit, "words")
        self.assertEqual((result.exit_code, result.stderr), (1, "words\n"))

    def test_dying(self) -> None:
        self.assertEqual(self.ended(ctypes.string_at, 0).signal, "SIGSEGV")
        self.assertEqual(self.ended(lambda: os.kill(os.getpid(), 9)).signal, "SIGKILL")
        result = self.ended(lambda: len(bytearray(1 << 30)) and time.sleep(SLEEP), memory="200M")
        self.assertEqual(result.outcome, "memory")

    def test_a_memory_error_that_is_caught_is_an_answer(self) -> None:
        def caught() -> str:
            try:
                bytearray(1 << 60)
            except MemoryError:
                return "no"
            return "yes"

        self.assertEqual(belljar.call(caught), "no")

    def test_a_timeout(self) -> None:
        with self.assertRaises(belljar.CallTimeout) as caught:
            belljar.call(lambda: print("before") or time.sleep(SLEEP), timeout=SLOWNESS, grace=0)
        self.assertIsInstance(caught.exception, TimeoutError)
        assert caught.exception.result is not None
        self.assertEqual((caught.exception.result.outcome, caught.exception.result.stdout), ("timeout", "before\n"))

    def test_output_beyond_the_cap(self) -> None:
        self.assertEqual(belljar.call(lambda: print("x" * 500_000)), None)
        result = self.ended(lambda: print("x" * 500_000), overflow="kill", output=100)
        self.assertEqual((result.outcome, result.stdout), ("output", "x" * 100))

    def test_threads_and_children_left_running_end_with_the_call(self) -> None:
        def leave(marker: str) -> str:
            threading.Thread(target=time.sleep, args=(SLEEP,)).start()
            subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; sleep 1000", marker], start_new_session=True)
            if os.fork() == 0:
                time.sleep(SLEEP)
            return "done"

        self.assertEqual(belljar.call(leave, self.marker), "done")
        self.wait_for(lambda: not self.marked(), "children are gone")

    def test_a_forked_child_that_returns_too_is_not_heard(self) -> None:
        def fork() -> int:
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
            return 1 if pid else 2

        self.assertEqual(belljar.call(fork), 1)

    def test_what_it_cannot_see(self) -> None:
        def look() -> Any:
            fds = sorted(map(int, os.listdir("/proc/self/fd")))
            return os.getcwd(), os.listdir("."), os.environ.get("BELLJAR_TEST_SECRET"), fds

        os.environ["BELLJAR_TEST_SECRET"] = "x"
        self.addCleanup(os.environ.pop, "BELLJAR_TEST_SECRET")
        cwd, names, secret, fds = belljar.call(look)
        self.assertNotEqual(cwd, str(self.work))
        self.assertEqual((names, secret), ([], None))
        self.assertEqual([fd for fd in fds if fd not in (0, 1, 2, 3, 4)], [])

    def test_there_are_no_jars_in_jars(self) -> None:
        with self.assertRaises(belljar.CallError) as caught:
            belljar.call(lambda: belljar.call(len, ""))
        self.assertIn("UnavailableError", caught.exception.type_name or "")

    def test_prints_are_apart_from_the_result(self) -> None:
        seen: List[Any] = []

        def talk() -> int:
            print("out")
            print("err", file=sys.stderr)
            os.write(1, b"raw\n")
            return 5

        self.assertEqual(belljar.call(talk, on_output=lambda *piece: seen.append(piece)), 5)
        self.assertEqual(b"".join(data for stream, data in seen if stream == "stdout"), b"out\nraw\n")
        self.assertIn(("stderr", b"err\n"), seen)
        with self.assertRaises(ZeroDivisionError):
            belljar.call(talk, on_output=lambda *piece: 1 / 0)
        # Neither output nor a large answer waits for the other.
        chunks: List[int] = []
        large = belljar.call(lambda: print("x" * 90_000) or "y" * 3_000_000, on_output=lambda s, d: chunks.append(len(d)))
        self.assertEqual(len(large), 3_000_000)
        self.assertEqual(sum(chunks), 90_001)

    def test_nothing_leaks(self) -> None:
        belljar.call(len, "")
        before = len(open_fds())
        for fn in (len, raises, os._exit, threading.Lock):
            with self.subTest(str(fn)):
                try:
                    belljar.call(fn, "")
                except belljar.CallError:
                    pass
                with self.assertRaises(belljar.SendError):
                    belljar.call(len, threading.Lock())
        belljar.call(len, "")
        # The end of the last one may be still to come.
        self.wait_for(lambda: len(open_fds()) <= before + 1, "no descriptor is left")


class Async(PackageCase):
    """The same in a loop."""

    def test_many_at_once(self) -> None:
        async def main() -> List[Any]:
            return await asyncio.gather(*(belljar.call_async(later, i) for i in range(8)))

        self.assertEqual(asyncio.run(main()), list(range(1, 9)))

    def test_outcomes(self) -> None:
        async def main() -> None:
            with self.assertRaises(belljar.CallError):
                await belljar.call_async(raises, "x")
            with self.assertRaises(belljar.CallEnded):
                await belljar.call_async(os._exit, 1)
            with self.assertRaises(belljar.CallTimeout):
                await belljar.call_async(time.sleep, SLEEP, timeout=0.5)
            with self.assertRaises(belljar.ResultError):
                await belljar.call_async(object)
            with self.assertRaises(belljar.SendError):
                await belljar.call_async(len, threading.Lock())
            seen: List[Any] = []

            async def on_output(*piece: Any) -> None:
                await asyncio.sleep(0)
                seen.append(piece)

            self.assertEqual(await belljar.call_async(lambda: print("x") or bytes(1 << 20), on_output=on_output), bytes(1 << 20))
            self.assertEqual(seen, [("stdout", b"x\n")])

        asyncio.run(main())

    def test_cancelling_ends_the_call_first(self) -> None:
        def wait(marker: str) -> None:
            subprocess.run(["/bin/sh", "-c", "sleep 1000; true", marker], check=False)

        async def main() -> None:
            task = asyncio.ensure_future(belljar.call_async(wait, self.marker))
            while not self.marked():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(self.marked(), [])

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
