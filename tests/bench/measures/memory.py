# SPDX-License-Identifier: Apache-2.0
"""Memory: what a sandbox takes beside the command, as proportional set size."""

from __future__ import annotations

import subprocess
import time
from typing import Dict, List

from bench import pss
from bench.candidates import Field, belljar
from bench.context import Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

PART = 0.025
JARS = 16
QUICK_JARS = 2
ENGINE_COMMANDS = {
    "engine, no jar": "belljar engine",
    "each idle jar": "for each of many kept jars: the engine's and the jar's own processes",
    "each busy jar": f"the same, {' '.join(pss.COMMAND)} in each, which does not count",
    "in the engine, each idle jar": "by how much the engine alone has grown, RSS",
    "in the engine, each busy jar": "the same",
}


def one_line(line: List[str], bench: Bench) -> float:
    """KiB of one command line's processes, but the command."""
    with subprocess.Popen(line, cwd=bench.workdir, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(pss.SETTLE_SECONDS)
            return pss.overhead_kib(process.pid)
        finally:
            process.terminate()


def measure(bench: Bench) -> Dict[str, Table]:
    """One table; what may not be read is named."""
    # Whether it works is tried with a command that ends at once.
    bubblewrap = Field(bench, ["/bin/true"], ["bubblewrap"])
    lines = {"belljar run": belljar(bench, pss.COMMAND)}
    if "bubblewrap" in bubblewrap.lines:
        lines["bubblewrap"] = [*bubblewrap.lines["bubblewrap"][:-1], *pss.COMMAND]

    def way(name: str) -> Way:
        return Way(name, lambda: one_line(lines[name], bench), has_own_value=True)

    missing = dict(bubblewrap.missing)
    values: Dict[str, List[float]] = {}
    try:
        values = take_turns([way(name) for name in lines], bench.rounds(PART))
        for _ in range(bench.rounds(PART)):
            for name, value in bench.host("memory_host", jars=bench.size(JARS, QUICK_JARS)).items():
                values.setdefault(name, []).append(value)
    except (PermissionError, subprocess.CalledProcessError) as error:
        missing["belljar run"] = f"its processes hide their memory from all but root: {error}"
    table = make_table(
        "Memory of all processes but the command's (PSS)",
        "KiB",
        "bubblewrap",
        values,
        missing=missing,
        commands={**ENGINE_COMMANDS, **{name: f"{name} … {' '.join(pss.COMMAND)}" for name in lines}},
    )
    return {"pss": table}
