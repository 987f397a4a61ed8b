# SPDX-License-Identifier: Apache-2.0
"""One table of frames: the page of the protocol and the clients in Python say what src/door/wire/frame.h says."""

from __future__ import annotations

import ast
import pathlib
import re

TABLE = "src/door/wire/frame.h"
PAGE = "docs/protocol.md"
# A client need not know every frame.
CLIENTS = ("python/belljar/_wire.py", "tests/harness/wire.py", "examples/stdio_client.py")

ROW = re.compile(r"\bX\(([A-Z_]+), ([0-9]+), FRAME_FROM_([A-Z]+), ([A-Z_|0 ]+)\)")
PAGE_ROW = re.compile(r"^\| ([0-9]+) \| `([A-Z_]+)` \| (\w+) \| ([^|]*) \|")
# What the page calls the traits, in the order it names them.
MARKS = {
    "FRAME_BEGINS": "first",
    "FRAME_LAST": "last",
    "FRAME_JOINS": "channel",
    "FRAME_FEEDS": "input",
    "FRAME_OPENS": "file",
    "FRAME_COUNTED": "counted",
    "FRAME_SHARED": "shared",
}


def of_table(text: str) -> dict[str, tuple[int, str, str]]:
    """Name: number, who sends it, marks."""
    found = {}
    for name, number, sender, traits in ROW.findall(text):
        words = set(traits.replace("|", " ").split())
        found[name] = (int(number), sender.lower(), ", ".join(mark for trait, mark in MARKS.items() if trait in words))
    return found


def of_page(text: str) -> dict[str, tuple[int, str, str]]:
    """The same, from the page."""
    rows = (PAGE_ROW.match(line) for line in text.splitlines())
    return {row.group(2): (int(row.group(1)), row.group(3), row.group(4).strip()) for row in rows if row}


def of_client(text: str) -> dict[str, int]:
    """Names and numbers that a module sets: `A, B = range(1, 3)`, `A = 1`."""
    found = {}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Call) and getattr(value.func, "id", "") == "range":
            numbers = range(*(ast.literal_eval(word) for word in value.args))
            found.update(zip((name.id for name in target.elts if isinstance(name, ast.Name)), numbers))
        elif isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, int):
            found[target.id] = value.value
    return found


def frames(root: pathlib.Path) -> list[str]:
    """The page has every frame of the table; a client in Python has the same numbers."""
    table = of_table((root / TABLE).read_text())
    page = of_page((root / PAGE).read_text())
    problems = [] if table else [f"{TABLE}: no table of frames"]
    for name in sorted({*table, *page}, key=lambda name: (table.get(name) or page[name])[0]):
        if table.get(name) != page.get(name):
            problems.append(f"{PAGE}: {name} is {page.get(name)}, and {table.get(name)} in {TABLE}")
    for client in CLIENTS:
        numbers = of_client((root / client).read_text())
        known = {name for name in table if name in numbers}
        if not known:
            problems.append(f"{client}: no frames")
        problems += [f"{client}: {name} is {numbers[name]}, not {table[name][0]}" for name in sorted(known) if numbers[name] != table[name][0]]
    return problems
