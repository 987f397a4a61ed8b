# SPDX-License-Identifier: Apache-2.0
"""Api: /bin/true through libbelljar, from a small host and from one with much memory."""

from __future__ import annotations

from typing import Dict, List

from bench.context import BELLJAR, Bench
from bench.table import Table, make_table

PART = 1.0
HEAP_MIB = 1024
QUICK_HEAP_MIB = 64
COMMANDS = {
    "bare": "posix_spawn(/bin/true), waitpid",
    "new": "belljar_run(/bin/true), another hostname each time",
    "prepared": "belljar_run(/bin/true), the same policy each time",
    "kept": "belljar_jar_run(/bin/true) in one jar",
}


def one_host(bench: Bench, title: str, heap_mib: int) -> Table:
    """All ways from one host."""
    times: Dict[str, List[float]] = {name: [] for name in COMMANDS}
    program = bench.program("api", with_library=True)
    for name, nanoseconds, status in bench.lines([program, str(bench.rounds(PART)), str(heap_mib), BELLJAR]):
        if status != "0":
            raise RuntimeError(f"{name} ended with status {status}")
        times[name].append(int(nanoseconds) / 1000)
    return make_table(f"libbelljar, {title}", "µs", "bare", times, commands=COMMANDS)


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each host."""
    heap = bench.size(HEAP_MIB, QUICK_HEAP_MIB)
    return {
        "small": one_host(bench, "/bin/true from a small host", 0),
        "large": one_host(bench, f"/bin/true from a host with {heap} MiB of heap", heap),
    }
