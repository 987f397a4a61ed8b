#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many at once from one Python host: threads, an event loop, kept jars. Every result right, nothing left, no leak.

    python_hosts.py [--threads 64] [--runs 200] [--tasks 500] [--jars 100]

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("threads", 64), ("runs", 200), ("tasks", 500), ("jars", 100)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    belljar.run(["true"])
    engine = belljar._engine.current().pid
    parts: List[tuple[str, Callable[[], None]]] = [
        (f"{options.threads} threads × {options.runs} runs", lambda: threads(options.threads, options.runs)),
        (f"{options.tasks} tasks at once", lambda: tasks(options.tasks)),
        (f"{options.jars} jars at once", lambda: jars(options.jars)),
    ]
    for title, part in parts:
        before, begin = descriptors(), time.monotonic()
        part()
        gc.collect()
        after = descriptors()
        print(f"{title}: {time.monotonic() - begin:.1f} s, descriptors {before} -> {after}, engine {resident_kib(engine)} KiB,"
              f" {descriptors(engine)} descriptors")
        if after != before:
            print("a descriptor leaked")
            return 1
        if belljar._engine.current().pid != engine:
            print("the engine died")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
