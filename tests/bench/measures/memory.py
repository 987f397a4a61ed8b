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
    quiet = subprocess.DEVNULL
    with subprocess.Popen(line, cwd=bench.workdir, stdin=quiet, stderr=quiet) as process:
        try:
            time.sleep(pss.SETTLE_SECONDS)
            return pss.overhead_kib(process.pid)
        finally:
            process.terminate()


def measure(bench: Bench) -> Dict[str, Table]:
    """One table. To all but root, processes that cannot be dumped hide their memory: that is said then."""
    # Whether it works is tried with a command that ends at once.
    field = Field(bench, ["/bin/true"], ["bubblewrap"])
    lines = {"belljar run": belljar(bench, pss.COMMAND)}
    if "bubblewrap" in field.lines:
        lines["bubblewrap"] = [*field.lines["bubblewrap"][:-1], *pss.COMMAND]
    values: Dict[str, List[float]] = {}
    missing = dict(field.missing)
    for name, line in [*lines.items()] * bench.rounds(PART):
        try:
            values.setdefault(name, []).append(one_line(line, bench))
        except PermissionError as error:
            missing[name] = f"only root can see its memory: {error}"
    for _ in range(bench.rounds(PART)):
        answer = bench.host("memory_host", jars=bench.size(JARS, QUICK_JARS))
        for name, value in answer["values"].items():
            values.setdefault(name, []).append(value)
        if answer["hidden"]:
            missing["engine"] = f"only root can see its memory: {answer['hidden']}"
            break
    table = make_table(
        "Memory of all processes but the command's (PSS)",
        "KiB",
        "bubblewrap",
        values,
        missing=missing,
        commands={**ENGINE_COMMANDS, **{name: f"{name} … {' '.join(pss.COMMAND)}" for name in lines}},
    )
    return {"pss": table}
