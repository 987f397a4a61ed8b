# SPDX-License-Identifier: Apache-2.0
"""Api: /bin/true through libbelljar, from a small host, from one with much memory, and many runs in a row."""

from __future__ import annotations

from typing import Dict, List

from bench.context import BELLJAR, Bench
from bench.table import Table, make_table

PART = 1.0
ROW_PART = 0.1
BURST = 20
QUICK_BURST = 2
HEAP_MIB = 1024
QUICK_HEAP_MIB = 64
COMMANDS = {
    "bare": "posix_spawn(/bin/true), waitpid",
    "new": "belljar_run(/bin/true), another hostname each time",
    "prepared": "belljar_run(/bin/true), the same policy each time",
    "kept": "belljar_jar_run(/bin/true) in one jar",
}


def one_host(bench: Bench, title: str, heap_mib: int, burst: int = 1) -> Table:
    """All ways from one host."""
    times: Dict[str, List[float]] = {name: [] for name in COMMANDS}
    program = bench.program("api", with_library=True)
    rounds = bench.rounds(PART if burst == 1 else ROW_PART)
    for name, nanoseconds, status in bench.lines([program, str(rounds), str(heap_mib), str(burst), BELLJAR]):
        if status != "0":
            raise RuntimeError(f"{name} ended with status {status}")
        times[name].append(int(nanoseconds) / 1000)
    return make_table(f"libbelljar, {title}", "µs", "bare", times, commands=COMMANDS)


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each host."""
    heap = bench.size(HEAP_MIB, QUICK_HEAP_MIB)
    burst = bench.size(BURST, QUICK_BURST)
    return {
        "small": one_host(bench, "/bin/true from a small host", 0),
        "large": one_host(bench, f"/bin/true from a host with {heap} MiB of heap", heap),
        "row": one_host(bench, f"/bin/true, {burst} runs in a row, each", 0, burst),
    }
