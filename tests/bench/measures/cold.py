# SPDX-License-Identifier: Apache-2.0
"""Cold: a command line from its start to its end, nothing made ahead."""

from __future__ import annotations

from typing import Dict, List

from bench.candidates import Field
from bench.context import Bench
from bench.table import Table, make_table

# Command, title, part of the rounds.
COMMANDS = {
    "true": (["/bin/true"], "/bin/true", 1.0),
    "python": (["/usr/bin/python3", "-c", "pass"], "python3 -c pass", 0.25),
}


def spawn(bench: Bench, rounds: int, field: Field) -> Dict[str, List[float]]:
    """Microseconds of each command line."""
    words: List[str] = []
    for name, line in field.lines.items():
        words += [name, str(field.every.get(name, 1)), str(len(line)), *line]
    times: Dict[str, List[float]] = {name: [] for name in field.lines}
    for *label, nanoseconds, status in bench.lines([bench.program("spawn"), str(rounds), *words]):
        name = " ".join(label)
        if status != "0":
            raise RuntimeError(f"{name} ended with wait status {status}")
        times[name].append(int(nanoseconds) / 1000)
    return times


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each command."""
    tables = {}
    for name, (command, title, part) in COMMANDS.items():
        field = Field(bench, command)
        times = spawn(bench, bench.rounds(part), field)
        tables[name] = make_table(
            f"{title}, start to exit", "µs", "bare", times, missing=field.missing, commands=field.commands(bench)
        )
    return tables
