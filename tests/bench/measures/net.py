# SPDX-License-Identifier: Apache-2.0
"""Net: what a gate adds to a start, to a request and to many bytes; the server is on the host's loopback."""

from __future__ import annotations

import shutil
import statistics
import subprocess
from typing import Dict, List

from bench.context import BELLJAR, Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

PART = 0.2
REQUESTS = 400
QUICK_REQUESTS = 4
MEBIBYTES = 1024
QUICK_MEBIBYTES = 8
NATIVE = "no sandbox"
GATE = "belljar, gate"


def started(bench: Bench) -> Table:
    """/bin/true with a gate and without."""
    lines = {
        "belljar, no network": [BELLJAR, "run", "-C", "none", "--", "/bin/true"],
        GATE: [BELLJAR, "run", "-C", "none", "--allow-net", "example.org", "--", "/bin/true"],
    }
    values = take_turns([Way(name, lambda line=line: bench.lines(line)) for name, line in lines.items()], bench.rounds(PART))
    commands = {name: " ".join(line) for name, line in lines.items()}
    return make_table("/bin/true, with and without a gate", "µs", "belljar, no network", values, commands=commands)


class Client:
    """The measuring program, outside and in a jar with a gate."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        program = shutil.copy(bench.program("network"), bench.workdir / "network")
        server = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert server.stdin and server.stdout
        bench.at_end(lambda: (server.stdin.close(), server.stdout.close(), server.wait()))  # type: ignore[union-attr]
        port = server.stdout.readline().strip()
        jar = [BELLJAR, "run", "-C", str(bench.workdir), "--allow-net", f"host:{port}", "--"]
        self.lines: Dict[str, List[str]] = {
            NATIVE: [str(program), "{}", "127.0.0.1", port],
            GATE: [*jar, str(program), "{}", "host.belljar.internal", port],
        }

    def commands(self, what: str, count: int) -> Dict[str, str]:
        """What is run, for each way."""
        return {name: " ".join([*line, str(count)]).replace("{}", what) for name, line in self.lines.items()}

    def nanoseconds(self, name: str, what: str, count: int) -> List[int]:
        """What the program has measured."""
        line = [what if word == "{}" else word for word in self.lines[name]]
        return [int(words[0]) for words in self._bench.lines([*line, str(count)])]


def requests(bench: Bench, client: Client) -> Table:
    """The median of many requests, each time."""
    count = bench.size(REQUESTS, QUICK_REQUESTS)

    def way(name: str) -> Way:
        return Way(name, lambda: statistics.median(client.nanoseconds(name, "requests", count)) / 1000, has_own_value=True)

    values = take_turns([way(name) for name in client.lines], bench.rounds(PART / 2))
    notes = [f"connect, one byte there and back, close; the median of {count}"]
    return make_table("A request to the host's loopback", "µs", NATIVE, values, commands=client.commands("requests", count), notes=notes)


def pulled(bench: Bench, client: Client) -> Table:
    """Many bytes over one connection."""
    mebibytes = bench.size(MEBIBYTES, QUICK_MEBIBYTES)

    def way(name: str) -> Way:
        return Way(
            name, lambda: (mebibytes << 20) / 1e6 / (client.nanoseconds(name, "pull", mebibytes)[0] / 1e9), has_own_value=True
        )

    values = take_turns([way(name) for name in client.lines], bench.rounds(PART / 10))
    commands = client.commands("pull", mebibytes)
    return make_table(f"{mebibytes} MiB over one connection", "MB/s", NATIVE, values, is_rate=True, commands=commands)


def measure(bench: Bench) -> Dict[str, Table]:
    """Three tables."""
    client = Client(bench)
    return {"start": started(bench), "request": requests(bench, client), "pull": pulled(bench, client)}
