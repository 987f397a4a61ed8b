# SPDX-License-Identifier: Apache-2.0
"""A Python program that runs /bin/true many times in a row, without a pause. Arguments: rounds, burst."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List

from bench.turns import Way, take_turns

COMMAND = ["/bin/true"]


def measure(rounds: int, burst: int) -> Dict[str, List[float]]:
    """Microseconds of one run among so many."""
    import belljar

    def way(name: str, run: Callable[[], Any]) -> Way:
        def many() -> float:
            begin = time.perf_counter()
            for _ in range(burst):
                run()
            return (time.perf_counter() - begin) * 1e6 / burst

        return Way(name, many, has_own_value=True)

    ways = [way("subprocess", lambda: subprocess.run(COMMAND)), way("belljar", lambda: belljar.run(COMMAND))]
    return take_turns(ways, rounds)


def main() -> None:
    """Print the values as JSON."""
    arguments = json.loads(sys.argv[1])
    json.dump(measure(arguments["rounds"], arguments["burst"]), sys.stdout)


if __name__ == "__main__":
    main()
