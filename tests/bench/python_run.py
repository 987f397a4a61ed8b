#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What belljar.run(["/bin/true"]) costs beside subprocess.run(["/bin/true"]), in one process and one interleaved run.

    prepared   a jar of the same policy is ready: the usual case
    new        none is: every run has a policy that was never seen (another hostname each time)
    kept       in a jar that stays

By itself, in a small host and in one with a 1 GiB heap and 50 threads. Needs ./dev build.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "build" / "python"))

import belljar  # noqa: E402

COMMAND = ["/bin/true"]


def quantile(values: List[float], part: float) -> float:
    return sorted(values)[round(part * (len(values) - 1))]


def measure(rounds: int, idle_seconds: float) -> Dict[str, List[float]]:
    """Microseconds of each way, taken in turns in random order."""
    counter = 0

    def new() -> object:
        nonlocal counter
        counter += 1
        return belljar.run(COMMAND, hostname=f"h{os.getpid()}-{counter}")

    with belljar.Jar() as jar:
        ways: Dict[str, Callable[[], object]] = {
            "subprocess": lambda: subprocess.run(COMMAND),
            "prepared": lambda: belljar.run(COMMAND),
            "new": new,
            "kept": lambda: jar.run(COMMAND),
        }
        times: Dict[str, List[float]] = {name: [] for name in ways}
        for way in ways.values():
            way()
        for _ in range(rounds):
            for name in random.sample(list(ways), len(ways)):
                # A moment for what is made ahead off the caller's path; the same for every way.
                time.sleep(idle_seconds)
                begin = time.perf_counter()
                ways[name]()
                times[name].append((time.perf_counter() - begin) * 1e6)
    return times


def report(title: str, times: Dict[str, List[float]]) -> None:
    base = statistics.median(times["subprocess"])
    print(f"\n{title}\n{'':12}{'median µs':>10}{'p95':>9}{'least':>9}{'× subprocess':>14}")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:12}{median:10.0f}{quantile(values, 0.95):9.0f}{min(values):9.0f}{median / base:14.2f}")


def cpu(rounds: int) -> None:
    """The host's own share: CPU time of this process per call."""
    with belljar.Jar() as jar:
        for name, way in (
            ("subprocess", lambda: subprocess.run(COMMAND)),
            ("belljar", lambda: belljar.run(COMMAND)),
            ("kept", lambda: jar.run(COMMAND)),
        ):
            way()
            begin = time.process_time()
            for _ in range(rounds):
                way()
            print(f"{name:12}{(time.process_time() - begin) / rounds * 1e6:10.0f} µs CPU of the host per call")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--idle", type=float, default=0.01, help="seconds between two runs")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}")
    report("small host", measure(options.rounds, options.idle))
    cpu(options.rounds)
    heap = bytearray(1 << 30)
    for place in range(0, len(heap), 4096):
        heap[place] = 1
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(50)]
    for thread in threads:
        thread.start()
    report("host with 1 GiB of heap and 50 threads", measure(options.rounds, options.idle))
    stop.set()
    return 0


if __name__ == "__main__":
    sys.exit(main())
