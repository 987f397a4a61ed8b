# SPDX-License-Identifier: Apache-2.0
"""Places: the same starts in an empty directory, in this repository, and in large trees."""

from __future__ import annotations

import copy
import statistics
import subprocess
from pathlib import Path
from typing import Callable, Dict, List

from bench.candidates import Field, belljar, bubblewrap
from bench.context import BUILD, ROOT, Bench
from bench.measures.cold import spawn
from bench.table import Table, make_table

CLI_PART = 0.5
SLOW_PART = 0.1
API_PART = 0.5
QUICK_TREE = 20
SLOW_COMMAND = ["/bin/sleep", "0.2"]
EMPTY = "empty"
LARGE = 10000


def fill(top: Path, directories: int) -> None:
    """Source directories, ten in each, with one file in each."""
    queue, made = [top], 0
    while made < directories:
        parent = queue.pop(0)
        for number in range(min(10, directories - made)):
            path = parent / f"part{number}"
            path.mkdir()
            (path / "file.c").write_text("int x;\n")
            queue.append(path)
            made += 1


def make_repository(top: Path, *, is_built: bool) -> None:
    """A checkout of this repository; after a build it has the directories of the build too."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(top)], check=True)
    for found in BUILD.rglob("*") if is_built else ():
        if found.is_dir() and not found.is_symlink():
            (top / "build" / found.relative_to(BUILD)).mkdir(parents=True, exist_ok=True)


def makers(bench: Bench) -> Dict[str, Callable[[Path], None]]:
    """What fills each place."""

    def tree(directories: int) -> Callable[[Path], None]:
        return lambda top: fill(top, bench.size(directories, QUICK_TREE))

    def packages(top: Path) -> None:
        (top / "package.json").write_text("{}\n")
        (top / "node_modules").mkdir()
        fill(top / "node_modules", bench.size(6000, QUICK_TREE))

    return {
        EMPTY: lambda top: None,
        "repository": lambda top: make_repository(top, is_built=False),
        "repository, built": lambda top: make_repository(top, is_built=True),
        "300 directories": tree(300),
        "node_modules of 6000": packages,
        "1000 directories": tree(1000),
        f"{LARGE} directories": tree(LARGE),
    }


def make_places(bench: Bench, missing: Dict[str, str]) -> Dict[str, Path]:
    """Each place with its path; `missing` gets the reason for one that cannot be made."""
    places: Dict[str, Path] = {}
    for name, maker in makers(bench).items():
        path = bench.make_folder("place")
        try:
            maker(path)
            places[name] = path
        except (OSError, subprocess.SubprocessError) as error:
            missing[name] = str(error)
    return places


def in_place(bench: Bench, path: Path) -> Bench:
    """The same bench with another work directory."""
    other = copy.copy(bench)
    other.workdir = path
    return other


def command_lines(bench: Bench, places: Dict[str, Path], missing: Dict[str, str]) -> Dict[str, Table]:
    """The command line beside bubblewrap, in each place; a command of 200 ms."""
    field = Field(bench, ["/bin/true"], ["bubblewrap"])
    has_bubblewrap = "bubblewrap" in field.lines
    field.lines = {"bare": ["/bin/true"]}
    for name, path in places.items():
        field.lines[name] = belljar(in_place(bench, path), ["/bin/true"])
        if has_bubblewrap:
            field.lines[f"bubblewrap, {name}"] = bubblewrap(in_place(bench, path), ["/bin/true"])
    missing = {**field.missing, **missing}
    times = spawn(bench, bench.rounds(CLI_PART), field)
    short = make_table(
        "belljar run -- /bin/true, by work directory", "µs", EMPTY, times, missing=missing, commands=field.commands(bench)
    )
    base = statistics.median(times[EMPTY])
    more = {f"each of {LARGE}": [(value - base) / LARGE for value in times[f"{LARGE} directories"]]}
    field.every = {}
    field.lines = {name: belljar(in_place(bench, path), SLOW_COMMAND) for name, path in places.items()}
    slow = make_table(
        "belljar run -- sleep 0.2, by work directory", "µs", EMPTY,
        spawn(bench, bench.rounds(SLOW_PART), field), missing=missing, commands=field.commands(bench),
    )
    each = make_table(
        "/bin/true: what one more directory costs", "µs", "", more,
        commands={row: "the start there less the one in an empty directory, divided by the directories" for row in more},
    )
    return {"command": short, "slow": slow, "each": each}


def python_runs(bench: Bench, places: Dict[str, Path], missing: Dict[str, str]) -> Dict[str, Table]:
    """A kept jar, and back-to-back runs, in each place."""
    paths = {name: str(path) for name, path in places.items()}
    values: Dict[str, Dict[str, List[float]]] = bench.host("place_host", rounds=bench.rounds(API_PART), places=paths)
    kept = {name: 'jar.run(["/bin/true"])' for name in values["kept"]}
    row = {name: 'belljar.run(["/bin/true"], workdir=…)' for name in values["row"]}
    return {
        "kept": make_table(
            "Python, jar.run in a kept jar, by work directory", "µs", EMPTY, values["kept"], missing=missing, commands=kept
        ),
        "row": make_table(
            "Python, belljar.run back to back, by work directory", "µs", EMPTY, values["row"], missing=missing, commands=row
        ),
    }


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each way to start."""
    missing: Dict[str, str] = {}
    places = make_places(bench, missing)
    return {**command_lines(bench, places, missing), **python_runs(bench, places, missing)}
