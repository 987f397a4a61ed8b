# SPDX-License-Identifier: Apache-2.0
"""Starts: where most of a jar's root is there already and where it is not, in a row, in a new process, with a small and a large /etc."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Dict, List

from bench.context import BELLJAR, BUILD, ROOT, Bench
from bench.table import Table, make_table

COMMAND = "/bin/true"
BURST = 20
QUICK_BURST = 2
ETC_NAMES = (20, 200)
FIRST = {
    "subprocess": f'import subprocess; subprocess.run(["{COMMAND}"])',
    "belljar": f'import belljar; belljar.run(["{COMMAND}"])',
}
ROW = {"subprocess": f'subprocess.run(["{COMMAND}"])', "belljar": f'belljar.run(["{COMMAND}"])'}
# Another /etc, in a mount namespace that ends with the measure.
IN_OTHER_ETC = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"']


def timed(bench: Bench, rounds: int, lines: Dict[str, List[str]], before: List[str]) -> Dict[str, List[float]]:
    """Microseconds of each command line, from its start to its end."""
    words: List[str] = []
    for name, line in lines.items():
        words += [name.replace(" ", "_"), "1", str(len(line)), *line]
    times: Dict[str, List[float]] = {name: [] for name in lines}
    for name, nanoseconds, status in bench.lines([*before, bench.program("spawn"), str(rounds), *words]):
        if status != "0":
            raise RuntimeError(f"{name} ended with wait status {status}")
        times[name.replace("_", " ")].append(int(nanoseconds) / 1000)
    return times


def jars(bench: Bench) -> Dict[str, List[str]]:
    """A bare start, one with what earlier jars have left, one without."""
    run = [BELLJAR, "run", "-C", str(bench.workdir)]
    return {"bare": [COMMAND], "belljar": [*run, "--", COMMAND], "belljar anew": [*run, "--no-root-cache", "--", COMMAND]}


def said(lines: Dict[str, List[str]]) -> Dict[str, str]:
    """As one would type it."""
    return {name: " ".join(line) for name, line in lines.items()}


def with_and_without(bench: Bench) -> Table:
    """What a root that was made before saves on this host."""
    times = timed(bench, bench.rounds(0.5), jars(bench), [])
    return make_table(f"{COMMAND}, root made before and anew", "µs", "bare", times, commands=said(jars(bench)))


def first_run(bench: Bench) -> Table:
    """All of a new Python program that runs one command."""
    # As an installed package, which has its bytecode.
    compiled = ["-u", "PYTHONDONTWRITEBYTECODE", f"PYTHONPYCACHEPREFIX={bench.make_folder('bytecode')}"]
    python = ["/usr/bin/env", *compiled, f"PYTHONPATH={BUILD / 'python'}", f"BELLJAR_BIN={BELLJAR}", sys.executable, "-c"]
    times = timed(bench, bench.rounds(0.15), {name: [*python, code] for name, code in FIRST.items()}, [])
    return make_table("The first run of a new Python process", "µs", "subprocess", times, commands=FIRST)


def make_etc(folder: Path, count: int) -> None:
    """An /etc with so many names, of which those that jars show come first."""
    table = (ROOT / "src/survey/survey_names.c").read_text().split("survey_etc_names[] = {", 1)[1].split("};", 1)[0]
    shown = re.findall(r'"([^"]+)"', table)
    for name in [*shown, *(f"bench-{number}" for number in range(count))][:count]:
        path = folder / name
        if path.is_dir() or path.parent.is_file():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")


def with_etc(bench: Bench, count: int) -> Table:
    """The same on a host with that /etc."""
    folder = bench.make_folder(f"etc{count}")
    make_etc(folder, count)
    times = timed(bench, bench.rounds(0.25), jars(bench), [*IN_OTHER_ETC, str(folder)])
    return make_table(f"{COMMAND} on a host with {count} names in /etc", "µs", "bare", times, commands=said(jars(bench)))


def measure(bench: Bench) -> Dict[str, Table]:
    """The tables of /etc only as root, who can have another one."""
    burst = bench.size(BURST, QUICK_BURST)
    values = bench.host("burst_host", rounds=bench.rounds(0.1), burst=burst)
    tables = {
        "roots": with_and_without(bench),
        "row": make_table(f"Python, {burst} runs in a row, each", "µs", "subprocess", values, commands=ROW),
        "first": first_run(bench),
    }
    if os.geteuid() == 0:
        tables.update({f"etc_{count}": with_etc(bench, count) for count in ETC_NAMES})
    return tables
