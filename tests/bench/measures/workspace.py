# SPDX-License-Identifier: Apache-2.0
"""Workspace: what a layer costs when a jar starts, when a large tree is read, and when many files are made."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List

from bench.context import BELLJAR, Bench
from bench.table import Table, make_table
from bench.turns import Way, take_turns

START_PART = 0.5
TREE_PART = 0.02
FILES = 50_000
QUICK_FILES = 500
NEW_FILES = 20_000
QUICK_NEW_FILES = 200
FILE_BYTES = 1500
# The time of a first git status, and of another one.
STATUS = """
import subprocess, time
for _ in range(2):
    begin = time.perf_counter()
    subprocess.run(["git", "--no-optional-locks", "status", "--short"], check=True)
    print((time.perf_counter() - begin) * 1e6)
"""
MAKE = "import sys\nfor i in range(int(sys.argv[1])):\n open(f'n{i}', 'wb').write(bytes(%d))" % FILE_BYTES


class Places:
    """A directory of its own for stores, so that the caller's are left alone; what a run leaves there is removed after it."""

    def __init__(self, bench: Bench) -> None:
        self.state = bench.make_folder("state")
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.state)}

    def run(self, folder: Path, line: List[str]) -> str:
        done = subprocess.run(line, cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    def forget(self) -> None:
        for store in (self.state / "belljar/ws").glob("*"):
            subprocess.run(["chmod", "-R", "u+rwx", str(store)], check=False)
            shutil.rmtree(store, ignore_errors=True)


def make_tree(folder: Path, count: int) -> None:
    """Files in directories of a hundred, committed to git."""
    for number in range(count):
        path = folder / str(number // 100) / f"{number}.txt"
        if number % 100 == 0:
            path.parent.mkdir()
        path.write_text(f"{number}\n" * 20)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "gc.auto=0"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], cwd=folder, check=True)


def measure_start(bench: Bench, places: Places) -> Table:
    """Until /bin/true has ended and nothing is left."""
    folder = bench.make_folder("start")
    lines = {
        "direct": [BELLJAR, "run", "--", "/bin/true"],
        "layer": [BELLJAR, "run", "--cow", "--", "/bin/true"],
    }
    values = take_turns(
        [Way(name, lambda line=line: places.run(folder, line)) for name, line in lines.items()], bench.rounds(START_PART)
    )
    values["what the layer adds"] = [after - before for before, after in zip(values["direct"], values["layer"])]
    return make_table(
        "A jar with a layer over its work directory", "µs", "direct", values,
        commands={**{name: " ".join(line) for name, line in lines.items()}, "what the layer adds": "the difference of the two, turn by turn"},
    )  # fmt: skip


def measure_status(bench: Bench, places: Places) -> Table:
    """git status in a large tree, timed beside it: the first in a jar, for which the kernel looks every file up, and the next."""
    count = bench.size(FILES, QUICK_FILES)
    folder = bench.make_folder("tree")
    make_tree(folder, count)
    command = ["/usr/bin/python3", "-c", STATUS]
    lines = {
        "native": command,
        "jar, direct": [BELLJAR, "run", "--", *command],
        "jar, layer": [BELLJAR, "run", "--cow", "--", *command],
    }
    values: Dict[str, List[float]] = {}
    for _ in range(bench.rounds(TREE_PART)):
        for name, line in lines.items():
            first, again = places.run(folder, line).split()
            values.setdefault(f"{name}, first", []).append(float(first))
            values.setdefault(name, []).append(float(again))
    return make_table(
        f"git status, {count} files", "µs", "native", values, commands={name: "git --no-optional-locks status --short" for name in values}
    )


def measure_making(bench: Bench, places: Places) -> Table:
    """Many new files; what they leave is removed between the rounds, which is not counted."""
    count = bench.size(NEW_FILES, QUICK_NEW_FILES)
    command = ["/usr/bin/python3", "-c", MAKE, str(count)]
    lines = {"native": command, "jar, layer": [BELLJAR, "run", "--cow", "--", *command]}
    values: Dict[str, List[float]] = {name: [] for name in lines}
    for _ in range(bench.rounds(TREE_PART)):
        for name, line in lines.items():
            folder = bench.make_folder("make")
            found = take_turns([Way(name, lambda line=line, folder=folder: places.run(folder, line))], 1)
            values[name] += found[name]
            shutil.rmtree(folder)
            places.forget()
    return make_table(
        f"{count} new files of {FILE_BYTES} bytes", "µs", "native", values,
        commands={name: f"python3: {count} files, each opened, written and closed" for name in lines},
    )  # fmt: skip


def measure_deciding(bench: Bench, places: Places) -> Table:
    """A look at five changes in a large tree, and an apply of many new files; who makes them is not counted."""
    count, new = bench.size(FILES, QUICK_FILES), bench.size(NEW_FILES, QUICK_NEW_FILES)
    large, folder = bench.make_folder("large"), bench.make_folder("new")
    make_tree(large, count)
    places.run(large, [BELLJAR, "run", "-q", "--cow", "--", "sh", "-c", "for i in 0 1 2 3 4; do echo x > $i/${i}00.txt; done"])
    values = take_turns([Way("diff", lambda: places.run(large, [BELLJAR, "diff"]))], bench.rounds(START_PART))
    values["program alone"] = take_turns([Way("version", lambda: places.run(large, [BELLJAR, "--version"]))], bench.rounds(START_PART))["version"]
    places.forget()
    values["apply"] = []
    for _ in range(bench.rounds(TREE_PART)):
        places.run(folder, [BELLJAR, "run", "-q", "--cow", "--", "/usr/bin/python3", "-c", MAKE, str(new)])
        values["apply"] += take_turns([Way("apply", lambda: places.run(folder, [BELLJAR, "apply", "-q"]))], 1)["apply"]
        for path in folder.iterdir():
            path.unlink()
    return make_table(
        f"Deciding: a diff of 5 changes in {count} files, an apply of {new} new files", "µs", "program alone", values,
        commands={"diff": "belljar diff", "apply": "belljar apply", "program alone": "belljar --version"},
    )  # fmt: skip


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each question."""
    places = Places(bench)
    return {
        "start": measure_start(bench, places),
        "status": measure_status(bench, places),
        "making": measure_making(bench, places),
        "deciding": measure_deciding(bench, places),
    }
