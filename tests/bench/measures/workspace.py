# SPDX-License-Identifier: Apache-2.0
"""Workspace: what a layer costs when a jar starts, when a large tree is read, and when many files are made.

As root all of it is on a file system of its own, ext4 with a journal, in memory. A disk would be measured with what other programs
write to it; and ext4 without a journal looks at every inode that was removed in the last minutes before it gives a new one away,
so that removing many files makes the next ones slow, natively too. For the same reason nothing is removed between rounds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional, Tuple

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
# Prints how long it took.
MAKE = """
import sys, time
begin = time.perf_counter()
for i in range(int(sys.argv[1])):
    open(f"n{i}", "wb").write(bytes(%d))
print((time.perf_counter() - begin) * 1e6)
""" % FILE_BYTES
MEMORY = Path("/dev/shm")
DISK_BYTES = 8 << 30
DISK_FILES = 1_500_000


def mount_disk(bench: Bench) -> Optional[Path]:
    """A new ext4 in a file in memory; None: it cannot be had here."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4") or shutil.disk_usage(MEMORY).free < DISK_BYTES:
        return None
    folder = bench.make_folder("disk")
    with tempfile.NamedTemporaryFile(dir=MEMORY) as image:
        image.truncate(DISK_BYTES)
        lines = [["mkfs.ext4", "-q", "-F", "-N", str(DISK_FILES), "-E", "lazy_itable_init=0", image.name], ["mount", "-o", "loop", image.name, str(folder)]]
        if any(subprocess.run(line, stderr=subprocess.DEVNULL, check=False).returncode for line in lines):
            return None
    bench.at_end(lambda: subprocess.run(["umount", "-l", str(folder)], check=True))
    return folder


class Places:
    """Where the tree, and its stores beside it, are: the caller's are left alone."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.state = self.make_folder("state")
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.state)}

    def make_folder(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.top))

    def run(self, folder: Path, line: List[str]) -> str:
        done = subprocess.run(line, cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()


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
    folder = places.make_folder("start")
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
    folder = places.make_folder("tree")
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


def make_files(places: Places, line: List[str]) -> Tuple[float, float]:
    """How long all of it took, and the making alone, as the command has seen it."""
    folder = places.make_folder("make")
    subprocess.run(["sync", "-f", str(folder)], check=True)
    begin = time.perf_counter()
    inside = float(places.run(folder, line))
    return (time.perf_counter() - begin) * 1e6, inside


def measure_making(bench: Bench, places: Places) -> Table:
    """Many new files, on that file system and on tmpfs; what is written already is on disk before each, and nothing is removed between."""
    count = bench.size(NEW_FILES, QUICK_NEW_FILES)
    command = ["/usr/bin/python3", "-c", MAKE, str(count)]
    layer = [BELLJAR, "run", "-q", "--cow", "--", *command]
    lines = {"native": command, "jar, direct": [BELLJAR, "run", "-q", "--", *command], "jar, layer": layer}
    values: Dict[str, List[float]] = {}
    with tempfile.TemporaryDirectory(dir=MEMORY) as memory:
        for _ in range(bench.rounds(TREE_PART)):
            for name, line in lines.items():
                whole, inside = make_files(places, line)
                values.setdefault(name, []).append(whole)
                values.setdefault(f"{name}, the making alone", []).append(inside)
                whole, _inside = make_files(Places(Path(memory)), line)
                values.setdefault(f"{name}, on tmpfs", []).append(whole)
    return make_table(
        f"{count} new files of {FILE_BYTES} bytes", "µs", "native", values,
        commands={name: f"python3: {count} files, each opened, written and closed" for name in values},
    )  # fmt: skip


def measure_deciding(bench: Bench, places: Places) -> Table:
    """A look at five changes in a large tree, and an apply of many new files; who makes them is not counted."""
    count, new = bench.size(FILES, QUICK_FILES), bench.size(NEW_FILES, QUICK_NEW_FILES)
    large = places.make_folder("large")
    make_tree(large, count)
    places.run(large, [BELLJAR, "run", "-q", "--cow", "--", "sh", "-c", "for i in 0 1 2 3 4; do echo x > $i/${i}00.txt; done"])
    values = take_turns([Way("diff", lambda: places.run(large, [BELLJAR, "diff"]))], bench.rounds(START_PART))
    values["program alone"] = take_turns([Way("version", lambda: places.run(large, [BELLJAR, "--version"]))], bench.rounds(START_PART))["version"]
    values["apply"] = []
    for _ in range(bench.rounds(TREE_PART)):
        folder = places.make_folder("new")
        places.run(folder, [BELLJAR, "run", "-q", "--cow", "--", "/usr/bin/python3", "-c", MAKE, str(new)])
        values["apply"] += take_turns([Way("apply", lambda folder=folder: places.run(folder, [BELLJAR, "apply", "-q"]))], 1)["apply"]
    return make_table(
        f"Deciding: a diff of 5 changes in {count} files, an apply of {new} new files", "µs", "program alone", values,
        commands={"diff": "belljar diff", "apply": "belljar apply", "program alone": "belljar --version"},
    )  # fmt: skip


def measure(bench: Bench) -> Dict[str, Table]:
    """One table for each question."""
    places = Places(mount_disk(bench) or bench.make_folder("places"))
    return {
        "start": measure_start(bench, places),
        "status": measure_status(bench, places),
        "making": measure_making(bench, places),
        "deciding": measure_deciding(bench, places),
    }
