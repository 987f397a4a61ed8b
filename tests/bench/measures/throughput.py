# SPDX-License-Identifier: Apache-2.0
"""Throughput: runs of /bin/true per second with several launchers, and what a run costs."""

from __future__ import annotations

from typing import Dict, List

from bench import processor
from bench.candidates import Field
from bench.context import BELLJAR, Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

PART = 0.025
LAUNCHERS = (1, 2, 8, 64)
RUNS = 120
QUICK_RUNS = 4
CPU_LAUNCHERS = 2
CPU_RUNS = 200
CPU_IDLE_SECONDS = 0.5
QUICK_IDLE_SECONDS = 0.05
# So much of one processor may be used by others before the cost of a run is in doubt.
BUSY_RATE = 0.1
API = "belljar API"
# A command line has no memory limit unless it is asked for; the API has one.
API_UNLIMITED = "belljar API, no memory limit"


class Batches:
    """Many runs by each candidate."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._program = bench.program("launch", with_library=True)
        self.field = Field(bench, ["/bin/true"], ["bubblewrap", "bubblewrap-same-view"])
        self.words: Dict[str, List[str]] = {name: ["cli", *line] for name, line in self.field.lines.items()}
        self.words[API] = ["api", BELLJAR]
        self.words[API_UNLIMITED] = ["api", BELLJAR, "memory=none"]

    def commands(self) -> Dict[str, str]:
        """What was run."""
        api = {API: "belljar_run(/bin/true), one engine", API_UNLIMITED: "the same with memory=none"}
        return {**self.field.commands(self._bench), **api}

    def seconds(self, name: str, runs: int, launchers: int) -> float:
        """One batch."""
        lines = self._bench.lines([self._program, str(runs), str(launchers), *self.words[name]])
        nanoseconds, failures = lines[-1]
        if failures != "0":
            raise RuntimeError(f"{name}: {failures} of {runs} runs with {launchers} launchers failed")
        return int(nanoseconds) / 1e9


def rates(bench: Bench, batches: Batches, launchers: int) -> Table:
    """Runs per second."""
    runs = bench.size(RUNS, QUICK_RUNS)

    def way(name: str) -> Way:
        return Way(name, lambda: runs / batches.seconds(name, runs, launchers), has_own_value=True)

    values = take_turns([way(name) for name in batches.words], bench.rounds(PART))
    plural = "launcher" if launchers == 1 else "launchers"
    return make_table(
        f"Runs per second, {launchers} {plural}",
        "runs/s",
        "bare",
        values,
        is_rate=True,
        missing=batches.field.missing,
        commands=batches.commands(),
    )


def costs(bench: Bench, batches: Batches) -> Table:
    """Processor time of one run, from the whole machine's account."""
    runs = bench.size(CPU_RUNS, QUICK_RUNS)
    idle = QUICK_IDLE_SECONDS if bench.is_quick else CPU_IDLE_SECONDS
    rates_seen: List[float] = []

    def way(name: str) -> Way:
        def run() -> float:
            spent, rate = processor.cost(lambda: batches.seconds(name, runs, CPU_LAUNCHERS), idle)
            rates_seen.append(rate)
            return spent / runs * 1e6

        return Way(name, run, has_own_value=True)

    values = take_turns([way(name) for name in batches.words], bench.rounds(PART))
    notes = ["all processors' busy time until 0.3 s after the last run, what goes on anyway subtracted"]
    if max(rates_seen) > BUSY_RATE:
        notes.append(f"in doubt: other work used up to {max(rates_seen):.2f} processors meanwhile")
    return make_table(
        "Processor time per run, the kernel's tearing down included",
        "µs",
        "bare",
        values,
        missing=batches.field.missing,
        commands=batches.commands(),
        notes=notes,
    )


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each number of launchers, one of costs."""
    batches = Batches(bench)
    tables = {f"jobs_{launchers}": rates(bench, batches, launchers) for launchers in LAUNCHERS}
    return {**tables, "cpu": costs(bench, batches)}
