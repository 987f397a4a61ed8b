# SPDX-License-Identifier: Apache-2.0
"""Stdio: the engine over one stream of bytes beside the engine over sockets, both with small clients in Python."""

from __future__ import annotations

import shutil
from typing import Dict

from bench.context import Bench
from bench.table import Table, make_table

PART = 0.5
MEBIBYTES = 96
QUICK_MEBIBYTES = 4
COMMANDS = {"sockets": "belljar engine", "stdio": "belljar engine --stdio"}


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for a run in a jar of its own, one for a run in a kept jar, one for output."""
    mebibytes = bench.size(MEBIBYTES, QUICK_MEBIBYTES)
    producer = shutil.copy(bench.program("produce"), bench.workdir / "produce")
    found = bench.host("stdio_host", rounds=bench.rounds(PART), producer=str(producer), mebibytes=mebibytes)
    return {
        "alone": make_table("/bin/true in a jar of its own, frames by hand", "µs", "sockets", found["alone"], commands=COMMANDS),
        "kept": make_table("/bin/true in a kept jar, frames by hand", "µs", "sockets", found["kept"], commands=COMMANDS),
        "output": make_table(
            f"{mebibytes} MiB of output as frames", "MB/s", "sockets", found["output"], is_rate=True, commands=COMMANDS
        ),
    }
