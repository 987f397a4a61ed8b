# SPDX-License-Identifier: Apache-2.0
"""Inside: work that asks much of the kernel, in a jar and outside; starting is not in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Tuple

from bench.candidates import Field
from bench.context import Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

PART = 0.1
FILES = 2000
QUICK_FILES = 20
CALLS = 1_000_000
QUICK_CALLS = 1000
REPOSITORY_FILES = 400
QUICK_REPOSITORY_FILES = 10
FUNCTIONS = 300
QUICK_FUNCTIONS = 5


def git(folder: Path, *words: str) -> None:
    """git that nobody's configuration changes."""
    settings = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, "-C", str(folder), *words], check=True, stdout=subprocess.DEVNULL)


def make_repository(bench: Bench) -> Path:
    """Two branches of which every file differs."""
    folder = bench.workdir / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "one")
    for branch in ("one", "two"):
        if branch == "two":
            git(folder, "checkout", "-q", "-b", branch)
        for number in range(bench.size(REPOSITORY_FILES, QUICK_REPOSITORY_FILES)):
            path = folder / f"d{number % 20}" / f"f{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{branch} {number}\n" * 100)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", branch)
    git(folder, "checkout", "-q", "one")
    return folder


def make_source(bench: Bench) -> Path:
    """A small C file."""
    path = bench.workdir / "small.c"
    count = bench.size(FUNCTIONS, QUICK_FUNCTIONS)
    functions = (f"int f{number}(int x) {{ return printf(\"%d\", x * {number}); }}\n" for number in range(count))
    path.write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + "".join(functions))
    return path


def works(bench: Bench) -> Dict[str, Tuple[str, List[str]]]:
    """Each kind of work: its title and the words for the program `work`."""
    files = bench.workdir / "files"
    files.mkdir()
    source = make_source(bench)
    repository = make_repository(bench)
    switch = f"git -C {repository} checkout -q two && git -C {repository} checkout -q one"
    return {
        "stat": ("stat storm", ["stat", str(files), str(bench.size(FILES, QUICK_FILES))]),
        "git": ("git checkout, there and back", ["command", "/bin/sh", "-c", switch]),
        "compile": ("compile of a small C file", ["command", "cc", "-O1", "-c", str(source), "-o", f"{source}.o"]),
        "calls": ("cheap system calls", ["calls", str(bench.size(CALLS, QUICK_CALLS))]),
    }


def one_work(bench: Bench, title: str, command: List[str]) -> Table:
    """The same work outside and inside."""
    field = Field(bench, command, ["bubblewrap"], bare="outside")
    # The least that a sandbox with a filter of system calls can cost.
    field.lines["empty filter"] = [bench.program("filter"), *command]

    def way(name: str) -> Way:
        return Way(name, lambda: int(bench.lines(field.lines[name])[-1][0]) / 1e6, has_own_value=True)

    values = take_turns([way(name) for name in field.lines], bench.rounds(PART))
    return make_table(
        f"Inside: {title}", "ms", "outside", values, missing=field.missing, commands=field.commands(bench)
    )


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each kind of work."""
    program = str(shutil.copy(bench.program("work"), bench.workdir / "work"))
    tables = {}
    for name, (title, words) in works(bench).items():
        tables[name] = one_work(bench, title, [program, *words])
    return tables
