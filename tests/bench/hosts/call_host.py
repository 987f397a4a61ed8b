# SPDX-License-Identifier: Apache-2.0
"""A Python program that calls a function in every way. Arguments: rounds, burst, modules, paths.

The answer has two sets of values: each call after a moment of idleness, and calls back to back, per call of a burst.
"""

from __future__ import annotations

import json
import operator
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List

from bench import seeds
from bench.turns import Way, take_turns

# So long that a warm interpreter has made the next fork, the same for every way.
IDLE_SECONDS = 0.02
BURST_PAUSE_SECONDS = 0.05
SLOW_EVERY = 5
MEMORY = "1G"


class Forker:
    """An interpreter with the same modules, forked bare."""

    def __init__(self, modules: List[str], paths: List[str]) -> None:
        text = json.dumps({"modules": modules, "paths": paths})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.hosts.fork_host", text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def fork(self, count: int) -> float:
        """Microseconds for each of so many forks in a row, as measured there."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{count}\n")
        return int(self._process.stdout.readline()) / 1000 / count

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def repeated(call: Callable[[], Any], count: int) -> Callable[[], float]:
    """Microseconds of one call, of so many in a row."""

    def run() -> float:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) * 1e6 / count

    return run


def call_ways(pool: Any, forker: Forker, count: int, every: int) -> List[Way]:
    """Each way, `count` times in a row; the slow ways once, for they are as slow alone."""
    return [
        Way("fork", lambda: forker.fork(count), has_own_value=True),
        Way("belljar call", repeated(lambda: pool.call(operator.add, 1, 2), count), has_own_value=True),
        Way("multiprocessing spawn", lambda: seeds.spawned_process(operator.add, 1, 2), every),
        Way("python -c, pickles", lambda: seeds.python_with_pickles(operator.add, 1, 2), every),
    ]


def measure(rounds: int, burst: int, modules: List[str], paths: List[str]) -> Dict[str, Dict[str, List[float]]]:
    """Both sets of values."""
    import belljar

    forker = Forker(modules, paths)
    with belljar.Pool(modules, import_paths=paths, memory=MEMORY) as pool:
        pool.call(operator.add, 1, 2)
        idle = take_turns(call_ways(pool, forker, 1, SLOW_EVERY), rounds, IDLE_SECONDS)
        burst_rounds = max(rounds // 4, 2)
        bursts = take_turns(call_ways(pool, forker, burst, 2), burst_rounds, BURST_PAUSE_SECONDS)
    forker.close()
    return {"idle": idle, "burst": bursts}


if __name__ == "__main__":
    json.dump(measure(**json.loads(sys.argv[1])), sys.stdout)
