# SPDX-License-Identifier: Apache-2.0
"""A Python program that runs /bin/true in several work directories. Arguments: rounds, places."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import Any, Callable, Dict, List

from bench.turns import Way, take_turns

COMMAND = ["/bin/true"]
# Back-to-back runs are timed together: one after a pause would use what was made meanwhile.
ROW = 5


def row_of(path: str) -> Callable[[], float]:
    """The mean of some runs, one right after the other."""
    import belljar

    def run() -> float:
        begin = time.perf_counter()
        for _ in range(ROW):
            belljar.run(COMMAND, workdir=path)
        return (time.perf_counter() - begin) * 1e6 / ROW

    return run


def measure(rounds: int, places: Dict[str, str]) -> Dict[str, Dict[str, List[float]]]:
    """Microseconds of each place, by way."""
    import belljar

    with contextlib.ExitStack() as stack:
        jars = {name: stack.enter_context(belljar.Jar(workdir=path)) for name, path in places.items()}

        def kept(jar: Any) -> Callable[[], Any]:
            return lambda: jar.run(COMMAND)

        return {
            "kept": take_turns([Way(name, kept(jar)) for name, jar in jars.items()], rounds),
            "row": take_turns(
                [Way(name, row_of(path), has_own_value=True) for name, path in places.items()], max(rounds // ROW, 1)
            ),
        }


def main() -> None:
    """Print the values as JSON."""
    arguments = json.loads(sys.argv[1])
    json.dump(measure(arguments["rounds"], arguments["places"]), sys.stdout)


if __name__ == "__main__":
    main()
