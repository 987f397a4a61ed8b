# SPDX-License-Identifier: Apache-2.0
"""Files: writing and reading files of a jar from Python, small and large, beside the same on the host."""

from __future__ import annotations

from typing import Dict

from bench.context import Bench
from bench.table import Table, make_table

PART = 0.2
LARGE_PART = 0.02
LARGE_BYTES = 100_000_000
QUICK_LARGE_BYTES = 4_000_000
COMMANDS = {
    "host write": "open(PATH, 'wb').write(DATA)",
    "host read": "open(PATH, 'rb').read()",
    "jar write": "jar.write_file(PATH, DATA)",
    "jar read": "jar.read_file(PATH)",
    "jar stat": "jar.stat(PATH)",
    "jar mkdir, remove": "jar.mkdir(PATH), jar.remove(PATH)",
    "jar cat": 'jar.run(["cat", PATH])',
}


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for small files, one for a large one."""
    large = bench.size(LARGE_BYTES, QUICK_LARGE_BYTES)
    found = bench.host(
        "files_host", rounds=bench.rounds(PART), large_rounds=bench.rounds(LARGE_PART), large=large, folder=str(bench.workdir)
    )
    return {
        "small": make_table("A file of 1 KB in a jar, from Python", "µs", "host write", found["small"], commands=COMMANDS),
        "large": make_table(
            f"A file of {large // 1_000_000} MB in a jar, from Python",
            "MB/s", "host write", found["large"], is_rate=True, commands=COMMANDS, notes=["in memory, on both sides"],
        ),
    }  # fmt: skip
