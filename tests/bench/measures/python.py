# SPDX-License-Identifier: Apache-2.0
"""Python: belljar.run beside subprocess.run, from a small host and from one with much memory."""

from __future__ import annotations

from typing import Dict

from bench.context import Bench
from bench.table import Table, make_table

PART = 0.5
HEAP_MIB = 1024
QUICK_HEAP_MIB = 32
COMMANDS = {
    "subprocess": 'subprocess.run(["/bin/true"])',
    "subprocess, capture": 'subprocess.run(["/bin/true"], capture_output=True)',
    "belljar new": 'belljar.run(["/bin/true"], hostname=NEVER_SEEN)',
    "belljar prepared": 'belljar.run(["/bin/true"])',
    "belljar kept": 'jar.run(["/bin/true"])',
    "shell with setsid": 'subprocess.Popen("/bin/true", shell=True, start_new_session=True, both streams piped)',
    "multiprocessing spawn": "a function in multiprocessing's spawned process",
    "python -c, pickles": "a function in `python -c`, pickles both ways",
}


def one_host(bench: Bench, title: str, heap_mib: int) -> Table:
    """All ways from one host."""
    values = bench.host("run_host", rounds=bench.rounds(PART), heap_mib=heap_mib)
    return make_table(f"Python run of /bin/true, {title}", "µs", "subprocess", values, commands=COMMANDS)


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each host."""
    heap = bench.size(HEAP_MIB, QUICK_HEAP_MIB)
    return {
        "small": one_host(bench, "small host", 0),
        "large": one_host(bench, f"host with {heap} MiB of heap", heap),
    }
