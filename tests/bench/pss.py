# SPDX-License-Identifier: Apache-2.0
"""Memory of processes by their proportional set size: pages that several share are divided among them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List

# What runs in the jars while memory is looked at; its own memory does not count.
COMMAND = ["/bin/sleep", "30"]
SETTLE_SECONDS = 0.3


def kib(pid: int, what: str) -> float:
    """`Pss` or `Rss` of one process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return float(line.split()[1])
    return 0.0


def tree(pid: int) -> List[int]:
    """A process and all below it."""
    pids = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
            pids += tree(int(child))
    return pids


def is_command(pid: int) -> bool:
    """Whether it is what the sandbox was asked to run."""
    name = Path(COMMAND[0]).name
    return Path(f"/proc/{pid}/comm").read_text().strip() == name


def overhead_kib(pid: int) -> float:
    """Of a process and all below it that are not the command."""
    return sum(kib(member, "Pss") for member in tree(pid) if not is_command(member))
