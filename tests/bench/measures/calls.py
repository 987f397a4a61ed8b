# SPDX-License-Identifier: Apache-2.0
"""Calls: a Python function in a jar, beside a bare fork of an interpreter with the same modules."""

from __future__ import annotations

from typing import Dict, List

from bench.context import Bench
from bench.table import Table, make_table

PART = 0.5
BURST = 20
QUICK_BURST = 3
MODULES = ["asyncio", "decimal", "json"]
LARGE_MB = 300
QUICK_LARGE_MB = 20
BALLAST = "ballast"
COMMANDS = {
    "fork": "os.fork() in an interpreter with the same modules, the answer through a pipe, waitpid",
    "belljar call": "pool.call(operator.add, 1, 2)",
    "multiprocessing spawn": "operator.add in multiprocessing's spawned process",
    "python -c, pickles": "operator.add in `python -c`, pickles both ways",
}


def write_ballast(bench: Bench, megabytes: int) -> str:
    """The folder of a module that holds so much memory, in pieces as objects have it."""
    folder = bench.make_folder("modules")
    text = f"DATA = [bytes((number & 255,)) * 4000 for number in range({megabytes * 250})]\n"
    (folder / f"{BALLAST}.py").write_text(text)
    return str(folder)


def one_pool(bench: Bench, title: str, modules: List[str], paths: List[str]) -> Dict[str, Table]:
    """Both tables of one pool."""
    burst = bench.size(BURST, QUICK_BURST)
    values = bench.host("call_host", rounds=bench.rounds(PART), burst=burst, modules=modules, paths=paths)
    return {
        "idle": make_table(f"Python call after idle, {title}", "µs", "fork", values["idle"], commands=COMMANDS),
        "burst": make_table(
            f"Python call back to back, {title}",
            "µs",
            "fork",
            values["burst"],
            commands=COMMANDS,
            notes=[f"of {burst} in a row, per call; quantiles are of such bursts"],
        ),
    }


def measure(bench: Bench) -> Dict[str, Table]:
    """After idle and back to back, with few modules and with much memory loaded."""
    megabytes = bench.size(LARGE_MB, QUICK_LARGE_MB)
    small = one_pool(bench, "few modules", MODULES, [])
    large = one_pool(bench, f"{megabytes} MB loaded", [*MODULES, BALLAST], [write_ballast(bench, megabytes)])
    return {
        "small_idle": small["idle"],
        "small_burst": small["burst"],
        "large_idle": large["idle"],
        "large_burst": large["burst"],
    }
