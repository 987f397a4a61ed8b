# SPDX-License-Identifier: Apache-2.0
"""What a measure gives: tables of rows, each row the quantiles of many values and their ratio to the reference."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any, Dict, List, Optional


def quantile(values: List[float], part: float) -> float:
    """The value that a part of all values are not above."""
    return sorted(values)[round(part * (len(values) - 1))]


@dataclasses.dataclass
class Row:
    """One candidate. p95 and p99 are on the bad side: 95 and 99 of 100 values were at least as good."""

    median: float
    p95: float
    p99: float
    best: float
    count: int
    ratio: Optional[float] = None  # to the reference's median; None: there is no reference in this run


@dataclasses.dataclass
class Table:
    """Candidates that took turns. `reference` names the row that ratios are to; it may be missing."""

    title: str
    unit: str
    reference: str
    rows: Dict[str, Row]
    is_rate: bool = False  # more is better
    missing: Dict[str, str] = dataclasses.field(default_factory=dict)  # candidate: why it was not measured
    commands: Dict[str, str] = dataclasses.field(default_factory=dict)  # candidate: what was run
    notes: List[str] = dataclasses.field(default_factory=list)

    def to_dict(self) -> Dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> Table:
        """The opposite of to_dict()."""
        return cls(**{**data, "rows": {name: Row(**row) for name, row in data["rows"].items()}})


def make_row(values: List[float], is_rate: bool) -> Row:
    """The quantiles of some values."""
    far = (lambda part: 1 - part) if is_rate else (lambda part: part)
    return Row(
        median=statistics.median(values),
        p95=quantile(values, far(0.95)),
        p99=quantile(values, far(0.99)),
        best=max(values) if is_rate else min(values),
        count=len(values),
    )


def make_table(title: str, unit: str, reference: str, values: Dict[str, List[float]], **rest: Any) -> Table:
    """A table of the values of each candidate; `rest` are further members."""
    table = Table(title, unit, reference, {}, **rest)
    table.rows = {name: make_row(list_, table.is_rate) for name, list_ in values.items() if list_}
    base = table.rows.get(reference)
    for row in table.rows.values():
        row.ratio = row.median / base.median if base and base.median > 0 else None
    return table
