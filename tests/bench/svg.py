# SPDX-License-Identifier: Apache-2.0
"""Plots: one picture for each measure, one panel for each table, bars for medians and a whisker up to p95 and p99.

Where the largest value is far above the smallest, bars would show nothing but that: dots on a logarithmic scale then.
"""

from __future__ import annotations

import math
from typing import Callable, Dict, List
from xml.sax.saxutils import escape, quoteattr

from bench.table import Row, Table

WIDTH = 860
LABEL_WIDTH = 190
PLOT_WIDTH = 470
ROW_HEIGHT = 24
PANEL_GAP = 34
MARGIN = 16
LOG_FROM = 30.0
OURS, REFERENCE, OTHERS, INK, FAINT = "#2563a8", "#6b7280", "#c2703d", "#1f2937", "#d1d5db"


def element(name: str, text: str = "", **attributes: object) -> str:
    """One element; `_` in a name of an attribute is `-`."""
    words = "".join(f" {key.replace('_', '-')}={quoteattr(str(value))}" for key, value in attributes.items())
    return f"<{name}{words}>{escape(text)}</{name}>" if text else f"<{name}{words}/>"


def text(x: float, y: float, words: str, **attributes: object) -> str:
    """A line of text."""
    return element("text", words, x=round(x, 1), y=round(y, 1), **{"font_size": 12, "fill": INK, **attributes})


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1) -> str:
    """A straight line."""
    places = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return element("line", stroke=stroke, stroke_width=width, **{name: round(at, 1) for name, at in places.items()})


class Scale:
    """Where a value is, from left to right."""

    def __init__(self, table: Table) -> None:
        values = [value for row in table.rows.values() for value in (row.median, row.p99) if value > 0] or [1.0]
        self.is_log = max(values) / min(values) > LOG_FROM
        self._low = math.log10(min(values)) - 0.1 if self.is_log else 0.0
        self._high = math.log10(max(values)) + 0.05 if self.is_log else max(values)

    def x(self, value: float) -> float:
        """In pixels."""
        at = (math.log10(value) if value > 0 else self._low) if self.is_log else value
        part = (at - self._low) / ((self._high - self._low) or 1.0)
        return MARGIN + LABEL_WIDTH + PLOT_WIDTH * min(max(part, 0.0), 1.0)


def colour(name: str, table: Table) -> str:
    """Ours, the reference, others."""
    if name == table.reference:
        return REFERENCE
    is_ours = name.startswith("belljar") or name in ("new", "prepared", "kept")
    return OURS if is_ours else OTHERS


def draw_row(name: str, row: Row, table: Table, scale: Scale, y: float) -> List[str]:
    """Name, bar or dot, whisker, numbers."""
    middle = y + ROW_HEIGHT / 2
    left, at, far = MARGIN + LABEL_WIDTH, scale.x(row.median), scale.x(row.p99)
    paint = colour(name, table)
    parts = [text(left - 8, middle + 4, name, text_anchor="end")]
    if scale.is_log:
        parts.append(line(left, middle, at, middle, FAINT))
        parts.append(element("circle", cx=round(at, 1), cy=middle, r=5, fill=paint))
    else:
        width = round(max(at - left, 1), 1)
        parts.append(element("rect", x=left, y=y + 4, width=width, height=ROW_HEIGHT - 8, fill=paint))
    parts.append(line(at, middle, far, middle, INK))
    parts += [line(x, middle - 4, x, middle + 4, INK) for x in (scale.x(row.p95), far)]
    ratio = "" if row.ratio is None else f"  ({row.ratio:.2f} ×)"
    shown = f"{row.median:.0f}" if row.median >= 100 else f"{row.median:.3g}"
    parts.append(text(left + PLOT_WIDTH + 12, middle + 4, f"{shown} {table.unit}{ratio}"))
    return parts


def draw_panel(table: Table, top: float) -> List[str]:
    """One table."""
    scale = Scale(table)
    kind = "logarithmic; " if scale.is_log else ""
    words = f"{kind}{table.unit}, {'more' if table.is_rate else 'less'} is better; × {table.reference}"
    parts = [text(MARGIN, top + 14, table.title, font_weight="bold")]
    parts.append(text(WIDTH - MARGIN, top + 14, words, text_anchor="end", fill=REFERENCE, font_size=11))
    left = MARGIN + LABEL_WIDTH
    bottom = top + 22 + ROW_HEIGHT * len(table.rows)
    parts.append(line(left, top + 22, left, bottom, FAINT))
    for number, (name, row) in enumerate(table.rows.items()):
        parts += draw_row(name, row, table, scale, top + 22 + number * ROW_HEIGHT)
    return parts


def panel_height(table: Table) -> int:
    """How much room a table takes."""
    return 22 + ROW_HEIGHT * len(table.rows) + PANEL_GAP


def draw(title: str, tables: Dict[str, Table], captions: List[str]) -> str:
    """A whole picture; captions are lines at its foot."""
    height_of: Callable[[Table], int] = panel_height
    body_top = 46
    height = body_top + sum(map(height_of, tables.values())) + 16 * len(captions) + MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    parts = [f'{head} font-family="sans-serif" role="img">', element("title", title)]
    parts.append(element("rect", width=WIDTH, height=height, fill="#ffffff"))
    parts.append(text(MARGIN, 28, title, font_size=15, font_weight="bold"))
    top = float(body_top)
    for table in tables.values():
        parts += draw_panel(table, top)
        top += height_of(table)
    for number, caption in enumerate(captions):
        parts.append(text(MARGIN, top + 6 + 16 * number, caption, font_size=11, fill=REFERENCE))
    return "\n".join([*parts, "</svg>"]) + "\n"
