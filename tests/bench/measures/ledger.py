# SPDX-License-Identifier: Apache-2.0
"""The ledger: what its levels cost a parallel build and the start of Python, of time and of the processors."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path
from typing import Callable, Dict, List

from bench.context import BELLJAR, Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

BUILD_PART = 0.02
PYTHON_PART = 0.2
SOURCES = 24
QUICK_SOURCES = 2
LEVELS = ("basic", "files", "trace")
MAKEFILE = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\tcc -c -o $@ $<\n"


def make_sources(folder: Path, count: int) -> None:
    """Small C files with everyday headers."""
    headers = "".join(f"#include <{name}.h>\n" for name in ("stdio", "stdlib", "string", "unistd", "sys/socket", "math"))
    for number in range(count):
        (folder / f"f{number}.c").write_text(f"{headers}int f{number}(int x) {{ return printf(\"%d\", x) + {number}; }}\n")
    (folder / "Makefile").write_text(MAKEFILE)


def processor_us() -> float:
    """Of all that was waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def compare(folder: Path, title: str, command: List[str], rounds: int, prepare: Callable[[], None]) -> Dict[str, Table]:
    """The time at each level, and what the processors worked in the same runs."""
    worked: Dict[str, List[float]] = {level: [] for level in LEVELS}
    lines = {level: [BELLJAR, "run", "-C", str(folder), "--ledger", level, "--", *command] for level in LEVELS}

    def run(level: str) -> None:
        before = processor_us()
        subprocess.run(lines[level], check=True, stdout=subprocess.DEVNULL)
        worked[level].append(processor_us() - before)

    def way(level: str) -> Way:
        def value() -> None:
            prepare()
            run(level)

        return Way(level, value)

    values = take_turns([way(level) for level in LEVELS], rounds)
    commands = {level: " ".join(line) for level, line in lines.items()}
    return {
        "time": make_table(f"Ledger: {title}", "µs", "basic", values, commands=commands),
        "work": make_table(f"Ledger: {title}, time of the processors", "µs", "basic", worked, commands=commands),
    }


def measure(bench: Bench) -> Dict[str, Table]:
    """A build and a start."""
    folder = bench.make_folder("build")
    make_sources(folder, bench.size(SOURCES, QUICK_SOURCES))

    def clean() -> None:
        for path in folder.glob("*.o"):
            path.unlink()

    build = compare(folder, "make -j2", ["make", "-s", "-j2"], bench.rounds(BUILD_PART), clean)
    start = compare(folder, "start of Python", ["/usr/bin/python3", "-c", "pass"], bench.rounds(PYTHON_PART), lambda: None)
    return {"build": build["time"], "build_work": build["work"], "python": start["time"], "python_work": start["work"]}
