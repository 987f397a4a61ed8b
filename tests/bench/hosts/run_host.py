# SPDX-License-Identifier: Apache-2.0
"""A Python program that runs /bin/true in every way. Arguments: rounds, heap_mib."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from typing import Dict, List

from bench import seeds
from bench.turns import Way, take_turns

COMMAND = ["/bin/true"]
# A moment for what is made ahead off the caller's path; the same for every way.
IDLE_SECONDS = 0.01
SLOW_EVERY = 5


def touch_heap(mib: int) -> bytearray:
    """Memory that is really there."""
    heap = bytearray(mib << 20)
    for place in range(0, len(heap), 4096):
        heap[place] = 1
    return heap


def measure(rounds: int) -> Dict[str, List[float]]:
    """Microseconds of each way."""
    import belljar

    numbers = iter(range(1 << 30))
    with belljar.Jar() as jar:
        ways = [
            Way("subprocess", lambda: subprocess.run(COMMAND)),
            Way("subprocess, capture", lambda: subprocess.run(COMMAND, capture_output=True)),
            Way("belljar new", lambda: belljar.run(COMMAND, hostname=f"h{os.getpid()}-{next(numbers)}")),
            Way("belljar prepared", lambda: belljar.run(COMMAND)),
            Way("belljar kept", lambda: jar.run(COMMAND)),
            Way("shell with setsid", lambda: seeds.shell_in_session("/bin/true")),
            Way("multiprocessing spawn", lambda: seeds.spawned_process(operator.add, 1, 2), SLOW_EVERY),
            Way("python -c, pickles", lambda: seeds.python_with_pickles(operator.add, 1, 2), SLOW_EVERY),
        ]
        return take_turns(ways, rounds, IDLE_SECONDS)


def main() -> None:
    """Print the values as JSON."""
    arguments = json.loads(sys.argv[1])
    heap = touch_heap(arguments["heap_mib"])
    json.dump(measure(arguments["rounds"]), sys.stdout)
    del heap


if __name__ == "__main__":
    main()
