#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many at once from one Python host: threads, an event loop, kept jars, calls. Every result right, nothing left, no leak.

    python_hosts.py [--threads 64] [--runs 200] [--tasks 500] [--jars 100] [--calls 10000] [--callers 200]

Needs ./dev build.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import threading
import time
from pathlib import Path
from typing import Callable, List

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "build" / "python"))

import belljar  # noqa: E402

# What this program may need in the end, whatever it has done.
HOST_MAX_KIB = 128 << 10


def descriptors(pid: object = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")))


def check(text: str) -> None:
    result = belljar.run(["echo", text], timeout=300)
    if (result.outcome, result.stdout) != ("exited", f"{text}\n"):
        raise AssertionError(f"{text}: {result}")


def threads(count: int, runs: int) -> None:
    """Each thread runs its own commands one after the other."""
    failures: List[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(runs):
                check(f"{number}.{i}")
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]


def tasks(count: int) -> None:
    """All at once in one loop, all running at the same time."""

    async def one(number: int) -> None:
        result = await belljar.run_async("echo $0; sleep 1".replace("$0", str(number)), shell=True, timeout=600)
        if (result.outcome, result.stdout) != ("exited", f"{number}\n"):
            raise AssertionError(f"{number}: {result}")

    async def main() -> None:
        await asyncio.gather(*(one(number) for number in range(count)))

    asyncio.run(main())


def jars(count: int) -> None:
    """All open at the same time."""
    opened = [belljar.Jar(workdir=None, timeout=300) for _ in range(count)]
    engine = belljar._engine.current().pid
    print(f"  {count} jars open: engine {resident_kib(engine)} KiB, {descriptors(engine)} descriptors")
    for number, jar in enumerate(opened):
        jar.write_file("number", str(number))
    for number, jar in enumerate(opened):
        if jar.run(["cat", "number"]).stdout != str(number):
            raise AssertionError(f"jar {number}")
    for jar in opened:
        jar.close()


def calls(count: int) -> None:
    """One after the other, some of which end badly."""
    with belljar.Pool(concurrency=1, timeout=300) as pool:
        for number in range(count):
            if pool.call(divmod, number, 7) != divmod(number, 7):
                raise AssertionError(f"call {number}")
            if number % 100 == 0:
                try:
                    pool.call(os._exit, 3)
                except belljar.CallEnded as error:
                    if error.result is None or error.result.exit_code != 3:
                        raise
                else:
                    raise AssertionError(f"call {number} came back")


def callers(count: int) -> None:
    """So many calls under way at the same time."""

    def wait(number: int) -> int:
        time.sleep(1)
        return -number

    async def main() -> None:
        async with belljar.Pool(concurrency=count, timeout=600) as pool:
            values = await asyncio.gather(*(pool.call_async(wait, number) for number in range(count)))
            if values != [-number for number in range(count)]:
                raise AssertionError(f"{values}")

    asyncio.run(main())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("threads", 64), ("runs", 200), ("tasks", 500), ("jars", 100), ("calls", 10_000), ("callers", 200)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    belljar.run(["true"])
    engine = belljar._engine.current().pid
    parts: List[tuple[str, Callable[[], None]]] = [
        (f"{options.threads} threads × {options.runs} runs", lambda: threads(options.threads, options.runs)),
        (f"{options.tasks} tasks at once", lambda: tasks(options.tasks)),
        (f"{options.jars} jars at once", lambda: jars(options.jars)),
        (f"{options.calls} calls", lambda: calls(options.calls)),
        (f"{options.callers} calls at once", lambda: callers(options.callers)),
    ]
    for title, part in parts:
        before, begin = descriptors(), time.monotonic()
        part()
        gc.collect()
        after = descriptors()
        print(f"{title}: {time.monotonic() - begin:.1f} s, descriptors {before} -> {after}, engine {resident_kib(engine)} KiB,"
              f" {descriptors(engine)} descriptors")
        if resident_kib(os.getpid()) > HOST_MAX_KIB:
            print(f"the host has grown to {resident_kib(os.getpid())} KiB")
            return 1
        if after != before:
            print("a descriptor leaked")
            return 1
        if belljar._engine.current().pid != engine:
            print("the engine died")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
