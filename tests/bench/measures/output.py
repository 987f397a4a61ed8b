# SPDX-License-Identifier: Apache-2.0
"""Output: bytes per second of one producer, through Belljar and through a plain pipe."""

from __future__ import annotations

import shutil
from typing import Dict, List

from bench.candidates import BELLJAR, Field
from bench.context import Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

PART = 0.05
MEBIBYTES = 256
QUICK_MEBIBYTES = 8
KEPT = "1M"
SECRET = "correct-horse-battery"
OPTIONS = {
    "belljar truncate": ["--output", KEPT],
    "belljar redact": ["--redact", SECRET],
    "belljar redact-secrets": ["--redact-secrets"],
    "belljar json": ["--json"],
}


def measure(bench: Bench) -> Dict[str, Table]:
    """One table."""
    mebibytes = bench.size(MEBIBYTES, QUICK_MEBIBYTES)
    producer = shutil.copy(bench.program("produce"), bench.workdir / "produce")
    field = Field(bench, [str(producer), str(mebibytes)], ["bubblewrap"], bare="pipe")
    for name, options in OPTIONS.items():
        line = field.lines["belljar"]
        field.lines[name] = [BELLJAR, "run", *options, *line[2:]]
    drain = bench.program("drain")

    def way(name: str, line: List[str]) -> Way:
        def run() -> float:
            nanoseconds, count, status = bench.lines([drain, *line])[-1]
            is_whole = name in ("belljar truncate", "belljar json") or int(count) == mebibytes << 20
            if status != "0" or not is_whole:
                raise RuntimeError(f"{name}: wait status {status}, {count} bytes")
            return (mebibytes << 20) / 1e6 / (int(nanoseconds) / 1e9)

        return Way(name, run, has_own_value=True)

    values = take_turns([way(name, line) for name, line in field.lines.items()], bench.rounds(PART))
    note = f"{mebibytes} MiB of log lines, written and read 64 KiB at a time; what a cap drops counts as written"
    table = make_table(
        "Output of one producer",
        "MB/s",
        "pipe",
        values,
        is_rate=True,
        missing=field.missing,
        commands=field.commands(bench),
        notes=[note],
    )
    return {"rate": table}
