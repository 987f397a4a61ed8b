# SPDX-License-Identifier: Apache-2.0
"""The numbers as text: tables for the terminal, and docs/bench/README.md."""

from __future__ import annotations

from typing import Any, Dict, List

from bench.candidates import SANDBOXES
from bench.goals import goal_lines
from bench.table import Row, Table


def show(value: float) -> str:
    """Three digits that count, no more."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def show_ratio(row: Row) -> str:
    """The ratio to the reference."""
    return "–" if row.ratio is None else f"{row.ratio:.2f}"


def print_table(table: Table, is_verbose: bool) -> None:
    """One table for the terminal."""
    width = max(map(len, [*table.rows, *table.missing, ""])) + 2
    print(f"\n{table.title} ({table.unit})")
    print(f"{'':{width}}{'median':>10}{'p95':>10}{'p99':>10}{'× ' + table.reference:>22}")
    for name, row in table.rows.items():
        print(f"{name:{width}}{show(row.median):>10}{show(row.p95):>10}{show(row.p99):>10}{show_ratio(row):>22}")
    for name, why in table.missing.items():
        print(f"{name:{width}} {why}")
    for note in table.notes:
        print(f"  {note}")
    if is_verbose:
        for name, line in table.commands.items():
            print(f"  {name}: {line}")


def cell(text: str) -> str:
    """Text that stays in its cell of a Markdown table."""
    return text.replace("|", "\\|")


def table_lines(table: Table) -> List[str]:
    """One table as Markdown."""
    lines = [f"**{table.title}**", ""]
    lines += [f"| | median {table.unit} | p95 | p99 | × {cell(table.reference)} | values |", "|---|--:|--:|--:|--:|--:|"]
    for name, row in table.rows.items():
        numbers = [show(row.median), show(row.p95), show(row.p99), show_ratio(row), str(row.count)]
        lines.append(f"| {cell(name)} | {' | '.join(numbers)} |")
    lines += ["", *(f"{note[0].upper()}{note[1:]}." for note in table.notes), *([""] if table.notes else [])]
    return lines


def missing_lines(tables: List[Table]) -> List[str]:
    """Who was not measured, each once."""
    missing: Dict[str, str] = {name: why for table in tables for name, why in table.missing.items()}
    return [f"- {name}: {why}" for name, why in missing.items()] or ["- none"]


def command_lines(measures: Dict[str, Dict[str, Table]]) -> List[str]:
    """What was run, once for each measure: tables of one measure differ in the command alone."""
    lines = []
    for name, tables in measures.items():
        table = next(iter(tables.values()))
        lines += [f"### {name}", *(f"- {candidate}: `{line}`" for candidate, line in table.commands.items()), ""]
    return lines


def markdown(document: Dict[str, Any], measures: Dict[str, Dict[str, Table]]) -> str:
    """The whole of docs/bench/README.md."""
    machine, versions = document["machine"], document["versions"]
    quick = ["Measured with `--quick`: these numbers say nothing.", ""] if document["options"]["quick"] else []
    lines = [
        "# Measurements",
        "",
        *quick,
        "Made by `./dev bench`; do not edit. Candidates take turns in random order within one run, so that ratios hold",
        "although the machine is noisy; each table has the ratio to its reference. p95 and p99 are on the bad side: of",
        "rates, 95 and 99 of 100 were at least that high.",
        "",
        "```sh",
        "./dev bench                 # all of it, about five minutes; writes this folder",
        "./dev bench cold calls      # only these, into build/bench; --rounds N, --json FILE, --verbose",
        "./dev bench --compare       # and the differences from baseline.json, which --store-baseline writes",
        "```",
        "",
        f"- {machine['date']}, {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB,"
        f" {machine['distribution']}, {machine['kernel']}, as {machine['user']}; load before: {machine['load_before']}",
        f"- {'; '.join(f'{name}: {version}' for name, version in versions.items())}",
        "",
        "Not measured:",
        *missing_lines([table for tables in measures.values() for table in tables.values()]),
        "",
        "## Goals",
        *goal_lines(measures),
        "",
    ]
    for name, tables in measures.items():
        lines += [f"## {name}", f"![{name}]({name}.svg)", ""]
        for table in tables.values():
            lines += table_lines(table)
    lines += ["## What was run", "Walls that differ from a jar of the preset `agent`:", ""]
    lines += [f"- {sandbox.name}: {sandbox.walls}" for sandbox in SANDBOXES]
    return "\n".join([*lines, "", *command_lines(measures)]).rstrip() + "\n"
