# SPDX-License-Identifier: Apache-2.0
"""Spawn: bytes per second that a Python program reads from a running command, with belljar.spawn and subprocess.Popen."""

from __future__ import annotations

import shutil
from typing import Dict

from bench.context import Bench
from bench.table import Table, make_table

PART = 0.05
MEBIBYTES = 128
QUICK_MEBIBYTES = 4
COMMANDS = {
    "Popen": "subprocess.Popen([PRODUCER], stdout=PIPE)",
    "spawn": "belljar.spawn([PRODUCER])",
    "spawn, redact": 'belljar.spawn([PRODUCER], redact=["correct-horse-battery"])',
    "spawn_async": "await belljar.spawn_async([PRODUCER])",
}


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for pieces of 64 KiB, one for lines."""
    mebibytes = bench.size(MEBIBYTES, QUICK_MEBIBYTES)
    producer = shutil.copy(bench.program("produce"), bench.workdir / "produce")
    found = bench.host("spawn_host", rounds=bench.rounds(PART), producer=str(producer), mebibytes=mebibytes)
    note = f"{mebibytes} MiB of log lines, from start to end of the command"
    return {
        key: make_table(title, "MB/s", "Popen", found[key], is_rate=True, commands=COMMANDS, notes=[note])
        for key, title in (("pieces", "Reading 64 KiB at a time in Python"), ("lines", "Reading lines in Python"))
    }
