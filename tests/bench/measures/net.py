# SPDX-License-Identifier: Apache-2.0
"""Net: what a gate adds to a start, to a request, to many bytes and to memory; the server is on the host's loopback, or, where
requests are looked into, in network namespaces of its own."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from typing import Callable, Dict, List

from bench import pss
from bench.context import BELLJAR, Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

PART = 0.2
REQUESTS = 400
QUICK_REQUESTS = 4
MEBIBYTES = 1024
QUICK_MEBIBYTES = 8
EXCHANGE_MEBIBYTES = 64
JARS = 200
QUICK_JARS = 3
PROBE_SECONDS = 20
NATIVE = "no sandbox"
NO_NETWORK = "belljar, no network"
GATE = "belljar, gate"
ADDED = "what the gate adds"
PROXY = "proxy variables"
PASTA = "pasta"
SLIRP = "slirp4netns"
# The namespace is there first; slirp4netns then gives it an interface, and says so.
SLIRP_SCRIPT = """
place=$(mktemp -d); mkfifo "$place/ready"
unshare -r -n sh -c 'echo $$ > "$0/pid"; read -r _ < "$0/ready"; exec "$@"' "$place" "$@" &
command=$!
while [ ! -s "$place/pid" ]; do sleep 0.01; done
slirp4netns --configure --ready-fd=3 "$(cat "$place/pid")" tap0 3>"$place/ready" >/dev/null 2>&1 &
helper=$!
status=0; wait $command || status=$?
kill $helper 2>/dev/null || :
rm -rf "$place"
exit $status
"""
# Where slirp4netns has the host's loopback; pasta has it where the host has its router.
SLIRP_HOST = "10.0.2.2"


def router() -> str:
    """The address of the host's router."""
    words = subprocess.run(["ip", "route", "show", "default"], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return words[words.index("via") + 1] if "via" in words else ""


def started(bench: Bench) -> Dict[str, Table]:
    """A command with a gate and without: until it runs, and until everything is gone."""
    program = shutil.copy(bench.program("network"), bench.workdir / "network")
    options = {NO_NETWORK: [], GATE: ["--allow-net", "example.org"]}
    lines = {name: [BELLJAR, "run", "-C", str(bench.workdir), *words, "--", str(program), "now"] for name, words in options.items()}
    ends: Dict[str, List[float]] = {name: [] for name in lines}

    def run(name: str) -> float:
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        running = int(bench.lines(lines[name])[0][0])
        ends[name].append((time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin) / 1000)
        return (running - begin) / 1000

    def difference() -> float:
        """Both, one after the other, in both orders: what disturbs them disturbs both."""
        first = [run(NO_NETWORK), run(GATE)]
        second = [run(GATE), run(NO_NETWORK)]
        return (first[1] - first[0] + second[0] - second[1]) / 2

    ways = [Way(name, lambda name=name: run(name), has_own_value=True) for name in lines]
    values = take_turns([*ways, Way(ADDED, difference, has_own_value=True)], bench.rounds(PART))
    commands = {name: " ".join(line) for name, line in lines.items()}
    tried = {**commands, ADDED: "the two, one after the other, in both orders"}
    best = {name: min(list_) for name, list_ in values.items() if name in lines}
    notes = [f"the best: {best[NO_NETWORK]:.0f} and {best[GATE]:.0f} µs, {best[GATE] - best[NO_NETWORK]:.0f} more"]
    ends_best = min(ends[GATE]) - min(ends[NO_NETWORK])
    return {
        "start": make_table("Until a command runs, with and without a gate", "µs", NO_NETWORK, values, commands=tried, notes=notes),
        "run": make_table(
            "Until it is gone, too", "µs", NO_NETWORK, ends, commands=commands, notes=[f"the best with a gate took {ends_best:.0f} µs more"]
        ),
    }


class Client:
    """The measuring program, outside and in networks of several kinds."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        program = str(bench.workdir / "network")
        server = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert server.stdin and server.stdout
        bench.at_end(lambda: (server.stdin.close(), server.stdout.close(), server.wait()))  # type: ignore[union-attr]
        port = server.stdout.readline().strip()
        jar = [BELLJAR, "run", "-C", str(bench.workdir), "--allow-net", f"host:{port}", "--"]
        as_root = ["--runas", "0"] if os.geteuid() == 0 else []
        self.missing: Dict[str, str] = {}
        self.lines: Dict[str, List[str]] = {
            NATIVE: [program, "{}", "127.0.0.1", port],
            GATE: [*jar, program, "{}", "host.belljar.internal", port],
            PROXY: [bench.program("proxy"), program, "{}", "127.0.0.1", port],
            PASTA: ["pasta", "-q", "--config-net", *as_root, "--", program, "{}", router(), port],
            SLIRP: ["sh", "-euc", SLIRP_SCRIPT, "slirp4netns", program, "{}", SLIRP_HOST, port],
        }
        for name in (PROXY, PASTA, SLIRP):
            self._probe(name)

    def _probe(self, name: str) -> None:
        """Others are measured where they are installed and work."""
        if name != PROXY and shutil.which(name) is None:
            self.missing[name] = "not installed"
        else:
            line = ["requests" if word == "{}" else word for word in self.lines[name]]
            try:
                done = subprocess.run([*line, "1"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
                if done.returncode != 0:
                    self.missing[name] = f"does not work here: {(done.stderr.strip() or 'no words').splitlines()[-1]}"
            except subprocess.TimeoutExpired:
                self.missing[name] = "does not work here: no end"
        if name in self.missing:
            del self.lines[name]

    def commands(self, what: str, count: int) -> Dict[str, str]:
        """What is run, for each way."""
        shown = {name: line if name != SLIRP else ["unshare -r -n, slirp4netns --configure:", *line[4:]] for name, line in self.lines.items()}
        return {name: " ".join([*line, str(count)]).replace("{}", what) for name, line in shown.items()}

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
    commands = client.commands("requests", count)
    title = "A request to the host's loopback"
    return make_table(title, "µs", NATIVE, values, commands=commands, notes=notes, missing=client.missing)


def pulled(bench: Bench, client: Client) -> Table:
    """Many bytes over one connection."""
    mebibytes = bench.size(MEBIBYTES, QUICK_MEBIBYTES)

    def way(name: str) -> Way:
        return Way(
            name, lambda: (mebibytes << 20) / 1e6 / (client.nanoseconds(name, "pull", mebibytes)[0] / 1e9), has_own_value=True
        )

    values = take_turns([way(name) for name in client.lines], bench.rounds(PART / 10))
    commands = client.commands("pull", mebibytes)
    title = f"{mebibytes} MiB over one connection"
    return make_table(title, "MB/s", NATIVE, values, is_rate=True, commands=commands, missing=client.missing)


def inspected(bench: Bench) -> Dict[str, Table]:
    """Requests over one connection, which a gate passes or looks into, by both versions of HTTP."""
    sizes = {"count": bench.size(REQUESTS, QUICK_REQUESTS), "mebibytes": bench.size(EXCHANGE_MEBIBYTES, QUICK_MEBIBYTES)}
    first, found, missing = f"{NATIVE}, HTTP/1.1", {"requests": {}, "rates": {}, "commands": {}}, {}
    absent = next((name for name in ("node", "ip", "openssl") if shutil.which(name) is None), "")
    if absent:
        missing = {first: f"needs {absent}, which is not installed"}
    else:
        found = bench.host("inspect_host", rounds=bench.rounds(PART / 10), is_quick=bench.is_quick, **sizes)
    requests_title = "A request over TLS, on a connection that is open"
    notes = [f"client and server are Node's; the median of {sizes['count']}"]
    pull_title = f"{sizes['mebibytes']} MiB over TLS"
    more = {"commands": found["commands"], "missing": missing}
    return {
        "exchange": make_table(requests_title, "µs", first, found["requests"], notes=notes, **more),
        "exchange_pull": make_table(pull_title, "MB/s", first, found["rates"], is_rate=True, **more),
    }


def gate_processes(pid: int) -> List[int]:
    """Those below a process."""
    return [member for member in pss.tree(pid) if open(f"/proc/{member}/cmdline", "rb").read().split(b"\0")[1:2] == [b"gate-process"]]


def kept(bench: Bench) -> Table:
    """Memory of the gates of many jars at once."""
    line = [BELLJAR, "run", "-C", "none", "--allow-net", "example.org", "--", *pss.COMMAND]
    quiet = subprocess.DEVNULL
    jars = [subprocess.Popen(line, stdin=quiet, stderr=quiet) for _ in range(bench.size(JARS, QUICK_JARS))]
    values: Dict[str, List[float]] = {}
    missing: Dict[str, str] = {}
    try:
        gates = wait_for_gates(jars)
        for name, what in (("PSS", "Pss"), ("RSS, shared pages and all", "Rss")):
            values[f"a gate, {name}"] = [pss.kib(gate, what) for gate in gates]
    except PermissionError as error:
        missing["a gate"] = f"only root can see its memory: {error}"
    finally:
        for jar in jars:
            jar.terminate()
        for jar in jars:
            jar.wait()
    notes = [f"{len(jars)} jars at once"]
    commands = {name: " ".join(line) for name in values}
    return make_table("Memory of each gate", "KiB", "", values, missing=missing, commands=commands, notes=notes)


def wait_for_gates(jars: "List[subprocess.Popen[bytes]]") -> List[int]:
    """One for each jar, all of them asleep."""
    deadline = time.monotonic() + 30
    while True:
        gates = [gate for jar in jars for gate in gate_processes(jar.pid)]
        if len(gates) == len(jars) and all(is_asleep(gate) for gate in gates):
            return gates
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(gates)} gates for {len(jars)} jars")
        time.sleep(0.1)


def is_asleep(pid: int) -> bool:
    """It waits, behind its walls."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        lines: Callable[[str], bool] = status.read().__contains__
    return lines("State:\tS") and lines("Seccomp:\t2")


def measure(bench: Bench) -> Dict[str, Table]:
    """All tables."""
    starts = started(bench)
    client = Client(bench)
    return {**starts, "request": requests(bench, client), "pull": pulled(bench, client), **inspected(bench), "memory": kept(bench)}
