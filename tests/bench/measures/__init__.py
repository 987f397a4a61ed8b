# SPDX-License-Identifier: Apache-2.0
"""Every measure, in the order in which they are taken. Each has `measure(bench)`, which gives its tables by name."""

from __future__ import annotations

from types import ModuleType
from typing import Dict

from bench.measures import api, calls, cold, files, inside, interpreter, ledger, mcp, memory, net, node, output, places, python, spawn, starts, stdio, throughput, workspace

MEASURES: Dict[str, ModuleType] = {
    "cold": cold,
    "places": places,
    "starts": starts,
    "api": api,
    "python": python,
    "calls": calls,
    "interpreter": interpreter,
    "throughput": throughput,
    "output": output,
    "spawn": spawn,
    "stdio": stdio,
    "node": node,
    "mcp": mcp,
    "files": files,
    "memory": memory,
    "net": net,
    "workspace": workspace,
    "ledger": ledger,
    "inside": inside,
}
