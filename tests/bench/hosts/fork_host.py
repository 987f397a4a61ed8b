# SPDX-License-Identifier: Apache-2.0
"""An interpreter with some modules loaded that forks when it is told to. Arguments: modules, paths.

Each line that it reads is a number of forks to make, one after the other; it answers with the nanoseconds they took.
"""

from __future__ import annotations

import importlib
import json
import operator
import sys
import time

from bench import seeds


def main() -> None:
    """Until there is nothing more to read."""
    arguments = json.loads(sys.argv[1])
    sys.path += arguments["paths"]
    for name in arguments["modules"]:
        importlib.import_module(name)
    for line in sys.stdin:
        begin = time.perf_counter_ns()
        for _ in range(int(line)):
            seeds.forked(operator.add, 1, 2)
        print(time.perf_counter_ns() - begin, flush=True)


if __name__ == "__main__":
    main()
