# SPDX-License-Identifier: Apache-2.0
"""Kept interpreters and shells: a cell and a command beside bare processes that answer through pipes; what a start costs."""

from __future__ import annotations

from typing import Dict

from bench.context import Bench
from bench.table import Table, make_table

PART = 0.3
BURST = 200
QUICK_BURST = 5
CELLS = {
    "pipe": "a line to `cat` and back",
    "bare Python loop": "`x = 1` to a Python that execs what its pipe brings, and answers",
    "belljar cell": 'it.run("x = 1")',
    "belljar cell with value and output": 'it.run("print(x)\\nx")',
}
COMMANDS = {
    "bare sh": "`echo` to a shell that reads a pipe",
    "belljar shell": 'shell.run("echo")',
    "belljar kept jar": 'jar.run(["/bin/sh", "-c", "echo"])',
}
STARTS = {
    "belljar call": "pool.call(operator.add, 1, 2)",
    "belljar Interpreter()": "belljar.Interpreter(), the second and later",
    "fork()": "it.fork().close()",
}


def measure(bench: Bench) -> Dict[str, Table]:
    """Cells, commands and starts."""
    burst = bench.size(BURST, QUICK_BURST)
    values = bench.host("interpreter_host", rounds=bench.rounds(PART), burst=burst)
    notes = [f"of {burst} in a row, per cell or command; quantiles are of such bursts"]
    return {
        "cells": make_table("Kept interpreter, cells", "µs", "pipe", values["cells"], commands=CELLS, notes=notes),
        "commands": make_table("Kept shell, commands", "µs", "bare sh", values["commands"], commands=COMMANDS, notes=notes),
        "starts": make_table("Kept interpreter, starts", "µs", "belljar call", values["starts"], commands=STARTS),
    }
