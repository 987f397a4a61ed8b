# SPDX-License-Identifier: Apache-2.0
"""A Python program with one engine and many kept jars, idle and busy. Arguments: jars.

The answer, in KiB: PSS of the engine without jars; for each idle and each busy jar the PSS of all processes but the commands,
and the RSS by which the engine alone has grown. Of that PSS would say nothing: it falls as jars share the engine's pages.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import Dict, Tuple

from bench.pss import COMMAND, SETTLE_SECONDS, kib, overhead_kib


def engine_pid() -> int:
    """The only child of this process."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


def look() -> Tuple[float, float]:
    """The engine alone, and with the jars' own processes."""
    time.sleep(SETTLE_SECONDS)
    return kib(engine_pid(), "Rss"), overhead_kib(engine_pid())


def measure(jars: int) -> Dict[str, float]:
    """With no jar, then all idle, then all busy."""
    import belljar

    with contextlib.ExitStack() as stack:
        belljar.Jar().close()
        none = look()
        opened = [stack.enter_context(belljar.Jar()) for _ in range(jars)]
        idle = look()
        for jar in opened:
            stack.enter_context(jar.spawn(COMMAND))
        busy = look()
    return {
        "engine, no jar": none[1],
        "each idle jar": (idle[1] - none[1]) / jars,
        "each busy jar": (busy[1] - none[1]) / jars,
        "in the engine, each idle jar": (idle[0] - none[0]) / jars,
        "in the engine, each busy jar": (busy[0] - none[0]) / jars,
    }


def main() -> None:
    """Print the values as JSON, or why they are hidden."""
    answer: Dict[str, object] = {"values": {}, "hidden": ""}
    try:
        answer["values"] = measure(**json.loads(sys.argv[1]))
    except PermissionError as error:
        answer["hidden"] = str(error)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
