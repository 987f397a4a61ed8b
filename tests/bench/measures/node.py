# SPDX-License-Identifier: Apache-2.0
"""Node: the package for Node beside child_process, in one Node program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Dict

from bench.context import BELLJAR, HERE, PROGRAM_TIMEOUT_SECONDS, ROOT, Bench
from bench.table import Table, make_table

PART = 0.5
IDLE_MS = 20
MEBIBYTES = 96
QUICK_MEBIBYTES = 4
COMMANDS = {
    "execFile": "child_process.execFile('/bin/true'), outside any jar",
    "run()": "run(['/bin/true']) of the package",
    "jar.run()": "the same in a jar that is open",
    "shell.run()": "shell.run(':')",
    "python.run()": "python.run('x = 1')",
    "pool.call()": "pool.call(module, 'add', [1, 2]) with a process that waits",
    "spawn": "child_process.spawn and `for await` over its stdout",
    "belljar spawn()": "spawn() of the package, the same way",
}


def measure(bench: Bench) -> Dict[str, Table]:
    """Tables for commands, for what keeps state, for calls, for output, and for the memory of the Node program."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("there is no node")
    mebibytes = bench.size(MEBIBYTES, QUICK_MEBIBYTES)
    producer = shutil.copy(bench.program("produce"), bench.workdir / "produce")
    arguments = {
        "package": str(ROOT / "node" / "index.js"),
        "rounds": bench.rounds(PART),
        "producer": str(producer),
        "mebibytes": mebibytes,
        "idleMs": IDLE_MS,
    }
    done = subprocess.run(
        [node, "--expose-gc", str(HERE / "hosts" / "node_host.mjs"), json.dumps(arguments)],
        stdout=subprocess.PIPE,
        check=True,
        cwd=bench.workdir,
        env={**os.environ, "BELLJAR_BIN": BELLJAR},
        timeout=PROGRAM_TIMEOUT_SECONDS,
    )
    found = json.loads(done.stdout)
    return {
        "runs": make_table("/bin/true from Node", "µs", "execFile", found["runs"], commands=COMMANDS),
        "kept": make_table("What keeps its state, from Node", "µs", "shell.run()", found["kept"], commands=COMMANDS),
        "calls": make_table("A function of a module, from Node", "µs", "pool.call()", found["calls"], commands=COMMANDS),
        "output": make_table(
            f"{mebibytes} MiB of output read by Node", "MB/s", "spawn", found["output"], is_rate=True, commands=COMMANDS
        ),
        "memory": make_table("Memory of the Node program (RSS)", "KiB", "node alone", found["memory"], commands={row: "process.memoryUsage().rss" for row in found["memory"]}),
    }
