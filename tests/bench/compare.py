# SPDX-License-Identifier: Apache-2.0
"""The differences from a stored run. Ratios are compared, for they hold across days and machines; nothing fails."""

from __future__ import annotations

from typing import Dict, List

from bench.table import Row, Table

Measures = Dict[str, Dict[str, Table]]
# Differences below are noise.
NOTABLE = 0.10


def change(new: Row, old: Row) -> float:
    """How much a ratio grew, as a part of what it was; the median, where there is no ratio."""
    if new.ratio is not None and old.ratio:
        return new.ratio / old.ratio - 1
    return new.median / old.median - 1 if old.median else 0.0


def verdict(part: float, is_rate: bool) -> str:
    """In a word."""
    if abs(part) < NOTABLE:
        return ""
    return "better" if (part > 0) == is_rate else "worse"


def compare_table(place: str, new: Table, old: Table) -> List[str]:
    """A line for each row that is in both."""
    lines = []
    for name, row in new.rows.items():
        before = old.rows.get(name)
        if before is None:
            lines.append(f"{place + ' ' + name:52} new")
            continue
        part = change(row, before)
        numbers = f"{before.median:10.4g} → {row.median:10.4g} {new.unit:8}"
        ratios = "" if row.ratio is None or before.ratio is None else f" × {before.ratio:6.2f} → {row.ratio:6.2f}"
        lines.append(f"{place + ' ' + name:52}{numbers}{ratios:20}{part * 100:+7.1f} % {verdict(part, new.is_rate)}".rstrip())
    return lines + [f"{place + ' ' + name:52} not measured now" for name in old.rows if name not in new.rows]


def compare(new: Measures, old: Measures) -> List[str]:
    """All that both runs measured."""
    lines = []
    for measure, tables in new.items():
        for name, table in tables.items():
            before = old.get(measure, {}).get(name)
            place = f"{measure}/{name}"
            lines += compare_table(place, table, before) if before else [f"{place}: not in the baseline"]
    return lines
