# SPDX-License-Identifier: Apache-2.0
"""What Belljar sets out to reach, as ratios within one run, and what was measured. Nothing fails where one is missed."""

from __future__ import annotations

import dataclasses
from typing import Dict, List, Optional, Tuple

from bench.table import Row, Table

Measures = Dict[str, Dict[str, Table]]
# Measure, table, row; and the row that it is divided by, or "": its value stands for itself.
Place = Tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Goal:
    """`is_least`: the bound is the least, not the most."""

    words: str
    place: Place
    other: Optional[Place]
    bound: float
    is_least: bool = False


GOALS = [
    Goal("`belljar run -- /bin/true`, × bare", ("cold", "true", "belljar"), ("cold", "true", "bare"), 3.0),
    Goal("the same, × bubblewrap", ("cold", "true", "belljar"), ("cold", "true", "bubblewrap"), 0.5),
    Goal(
        "the same, × bubblewrap that shows the same",
        ("cold", "true", "belljar"), ("cold", "true", "bubblewrap-same-view"), 0.5,
    ),
    *(
        Goal(f"{words}, {place}, × empty", ("places", table, place), ("places", table, "empty"), bound)
        for table, words, bound in (("command", "/bin/true", 1.1), ("slow", "sleep 0.2", 1.02), ("kept", "kept jar", 1.1))
        for place in ("repository", "repository, built", "300 directories", "node_modules of 6000")
    ),
    *(
        Goal(f"{words}, 1000 directories, × empty", ("places", table, "1000 directories"), ("places", table, "empty"), bound)
        for table, words, bound in (("command", "/bin/true", 1.3), ("slow", "sleep 0.2", 1.02), ("kept", "kept jar", 1.1))
    ),
    Goal(
        "kept jar, 10000 directories, × empty",
        ("places", "kept", "10000 directories"), ("places", "kept", "empty"), 1.1,
    ),
    Goal("/bin/true, each of 10000 directories, µs", ("places", "each", "each of 10000"), None, 1.3),
    *(
        Goal(f"/bin/true, {place}, × bubblewrap there", ("places", "command", place), ("places", "command", f"bubblewrap, {place}"), 1.0)
        for place in ("empty", "repository", "300 directories", "node_modules of 6000")
    ),
    Goal("Python, in a row, × subprocess.run", ("starts", "row", "belljar"), ("starts", "row", "subprocess"), 3.0),
    Goal("API, new jar, × bare", ("api", "small", "new"), ("api", "small", "bare"), 2.3),
    Goal("API, prepared jar, × bare", ("api", "small", "prepared"), ("api", "small", "bare"), 1.5),
    Goal("API, kept jar, × bare", ("api", "small", "kept"), ("api", "small", "bare"), 1.2),
    Goal(
        "Python, prepared, × subprocess.run",
        ("python", "small", "belljar prepared"), ("python", "small", "subprocess"), 1.2,
    ),
    Goal("Python, kept, × subprocess.run", ("python", "small", "belljar kept"), ("python", "small", "subprocess"), 0.8),
    Goal("API, prepared, large × small host", ("api", "large", "prepared"), ("api", "small", "prepared"), 1.1),
    Goal(
        "Python, prepared, large × small host",
        ("python", "large", "belljar prepared"), ("python", "small", "belljar prepared"), 1.1,
    ),
    Goal(
        "new jars per second, CLI, × bubblewrap",
        ("throughput", "jobs_2", "belljar"), ("throughput", "jobs_2", "bubblewrap"), 3.0, True,
    ),
    Goal(
        "the same, × bubblewrap that shows the same",
        ("throughput", "jobs_2", "belljar"), ("throughput", "jobs_2", "bubblewrap-same-view"), 3.0, True,
    ),
    Goal("new jars per second, API", ("throughput", "jobs_2", "belljar API"), None, 500, True),
    Goal(
        "start of an interpreter, × call",
        ("interpreter", "starts", "belljar Interpreter()"), ("interpreter", "starts", "belljar call"), 2.0,
    ),
    Goal("cell, × pipe", ("interpreter", "cells", "belljar cell"), ("interpreter", "cells", "pipe"), 3.0),
    Goal("command of a shell, × bare", ("interpreter", "commands", "belljar shell"), ("interpreter", "commands", "bare sh"), 3.0),
    Goal("call after idle, × fork", ("calls", "small_idle", "belljar call"), ("calls", "small_idle", "fork"), 0.6),
    Goal("call back to back, × fork", ("calls", "small_burst", "belljar call"), ("calls", "small_burst", "fork"), 2.0),
    Goal(
        "call after idle, much loaded, × fork",
        ("calls", "large_idle", "belljar call"), ("calls", "large_idle", "fork"), 0.6,
    ),
    Goal(
        "call back to back, much loaded, × fork",
        ("calls", "large_burst", "belljar call"), ("calls", "large_burst", "fork"), 2.0,
    ),
    Goal("output passed through, × plain pipe", ("output", "rate", "belljar"), ("output", "rate", "pipe"), 0.8, True),
    Goal(
        "output truncated, × plain pipe",
        ("output", "rate", "belljar truncate"), ("output", "rate", "pipe"), 0.8, True,
    ),
    Goal("output redacted, MB/s", ("output", "rate", "belljar redact"), None, 1000, True),
    Goal("or × plain pipe", ("output", "rate", "belljar redact"), ("output", "rate", "pipe"), 0.5, True),
    Goal("memory of one jar, PSS, KiB", ("memory", "pss", "belljar run"), None, 700),
    Goal("make -j2 that is traced, × not traced", ("ledger", "build", "trace"), ("ledger", "build", "basic"), 2.2),
    Goal("start of Python that is traced, × not traced", ("ledger", "python", "trace"), ("ledger", "python", "basic"), 1.1),
    Goal("a layer, more µs for a run", ("workspace", "start", "what the layer adds"), None, 400),
    Goal("git status under a layer, × native", ("workspace", "status", "jar, layer"), ("workspace", "status", "native"), 1.2),
    Goal("new files under a layer, × native", ("workspace", "making", "jar, layer"), ("workspace", "making", "native"), 1.7),
    Goal("20,000 new files applied, µs", ("workspace", "deciding", "apply"), None, 1_500_000),
    Goal("a gate, more µs until a command runs", ("net", "start", "what the gate adds"), None, 450),
    Goal("memory of a gate, PSS, KiB", ("net", "memory", "a gate, PSS"), None, 2048),
    Goal("bytes through a gate, MB/s", ("net", "pull", "belljar, gate"), None, 1000, True),
    Goal(
        "or × loopback", ("net", "pull", "belljar, gate"), ("net", "pull", "no sandbox"), 0.35, True,
    ),
    Goal("stat storm, × outside", ("inside", "stat", "belljar"), ("inside", "stat", "outside"), 1.05),
    Goal("git checkout, × outside", ("inside", "git", "belljar"), ("inside", "git", "outside"), 1.05),
    Goal("compile, × outside", ("inside", "compile", "belljar"), ("inside", "compile", "outside"), 1.05),
    Goal("system calls, × outside", ("inside", "calls", "belljar"), ("inside", "calls", "outside"), 1.05),
]


def find(measures: Measures, place: Place) -> Optional[Row]:
    """The row at a place, if it was measured."""
    measure, table, name = place
    found = measures.get(measure, {}).get(table)
    return found.rows.get(name) if found else None


def reached(measures: Measures, goal: Goal) -> Optional[float]:
    """What a goal came to; None: not measured."""
    row = find(measures, goal.place)
    other = find(measures, goal.other) if goal.other else None
    if row is None or (goal.other and other is None):
        return None
    return row.median / other.median if other else row.median


def goal_lines(measures: Measures) -> List[str]:
    """A Markdown table of all of them."""
    lines = ["| measure | goal | measured | |", "|---|--:|--:|---|"]
    for goal in GOALS:
        value = reached(measures, goal)
        is_met = value is not None and (value >= goal.bound if goal.is_least else value <= goal.bound)
        said = "not measured" if value is None else ("reached" if is_met else "missed")
        shown = "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.2f}"
        bound = f"{'at least' if goal.is_least else 'at most'} {goal.bound:g}"
        lines.append(f"| {goal.words} | {bound} | {shown} | {said} |")
    return lines
