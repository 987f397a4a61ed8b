# SPDX-License-Identifier: Apache-2.0
"""One folder of src/ is one process role: what each room may include, how its exported names begin, how long it may be."""

from __future__ import annotations

import pathlib
import re

from lint.check import c_files
from lint.rules import INCLUDE, PUBLIC_HEADER, project_includes

# Room: (what the names begin with that it exports, how many lines it may have, which rooms it may include). Lower rooms know
# nothing of upper ones. A room in a room is one of its own. Lines only go down; docs/design/30-rooms-by-process says when they may not.
ROOMS = {
    "base": ("*", 3600, ""),
    "base/sys": ("sys", 490, "base"),
    "base/reap": ("reap", 870, "base base/sys"),
    "base/redact": ("redact redactor", 1750, "base"),
    "policy": ("policy net", 6900, "base"),
    "survey": ("survey", 11100, "base base/sys policy"),
    "workspace": ("workspace", 9100, "base base/sys base/reap survey"),
    "inside": ("inside control", 970, "base base/reap"),
    "inside/answer": ("answer", 1450, "base base/sys inside"),
    "inside/task": ("task", 870, "base base/sys base/reap inside"),
    "inside/build": ("build", 1050, "base base/sys base/reap inside inside/answer"),
    "inside/init": ("init", 1450, "base base/sys base/reap inside inside/task inside/build"),
    "inside/call": ("call", 780, "base base/sys inside/init"),
    "plan/seccomp": ("seccomp syscall", 2350, "base policy inside"),
    "plan": ("plan", 5150, "base base/sys policy survey inside plan/seccomp"),
    "plan/gate": ("plan", 1050, "base policy plan"),
    "plan/explain": ("plan", 1650, "base base/sys policy survey plan/seccomp plan"),
    "gate": ("gate", 4600, "base base/sys policy plan/seccomp plan plan/explain"),
    "gate/inspect": ("inspect", 4100, "base base/sys policy gate"),
    "helper": ("helper", 2050, "base base/sys base/reap survey inside plan/seccomp plan plan/explain"),
    "engine/limits": ("limits limiter", 2000, "base base/sys policy inside plan plan/explain helper"),
    "engine/gate": ("engine_gate", 1300, "base base/sys base/reap policy plan gate engine/limits"),
    "engine/jar": ("jar", 2050, "base base/sys base/reap inside inside/task inside/init engine/limits engine/gate"),
    "engine/ledger": ("ledger", 280, "base base/sys base/reap inside plan/explain helper"),
    "engine/run": ("run", 2950, "base base/sys base/reap base/redact policy inside plan/seccomp plan plan/explain helper engine/limits engine/gate engine/jar engine/ledger"),
    "engine/result": ("result", 1300, "base policy survey plan plan/explain engine/limits engine/run"),
    "engine/skeleton": ("skeleton", 420, "base base/reap survey workspace inside/build plan"),
    "engine": ("engine", 5050, "base base/sys base/reap base/redact policy survey workspace plan/seccomp plan plan/explain gate helper engine/limits engine/jar engine/run engine/result engine/skeleton"),
    "doctor": ("doctor probe", 1950, "base base/sys policy survey inside/answer plan/seccomp plan engine/skeleton"),
    "door/wire": ("wire frame", 1200, "base"),
    "door/serve/mux": ("mux", 1400, "base base/sys door/wire"),
    "client": ("client belljar", 3250, "base door/wire"),
    "door/mcp": ("mcp", 4550, "base base/sys base/redact policy"),
    "door/serve": ("serve server", 3900, "base base/sys base/reap policy survey workspace inside inside/call plan engine/jar engine/result engine doctor door/wire door/serve/mux"),
    "door/cli": ("cli", 8200, "base policy workspace gate engine doctor door/mcp door/serve"),
    "prove": ("prove attempt", 3550, "base base/sys base/reap policy survey plan gate engine/gate engine doctor door/cli"),
    "door/mcp/http": ("mcp", 1650, "base base/sys engine door/mcp door/cli"),
}
SRC_MAX_LINES = 104900

# What makes a jar with privilege, and all that it is given: short enough to be read in an afternoon.
CORE = ("inside/build", "base/sys", "inside/jar_plan.h")
CORE_MAX_LINES = 1800
# The only rooms that may see the builder: who carries its steps out.
CORE_USERS = ("inside/build", "inside/init", "engine/skeleton")

PAGE = "docs/architecture.md"
# How far the page's number of lines may be off.
PAGE_SLACK = 0.05

# In this room every file has names of its own.
ANY_NAME = "*"
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\[^\n]|\\\n)*", re.MULTILINE)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")


def room_of(path: pathlib.Path) -> str:
    """The room of a file below src/."""
    return str(path.parent.relative_to("src"))


def includes(root: pathlib.Path) -> list[str]:
    """Every include of a project header is allowed by the table, and is written from src/."""
    problems = []
    for path in c_files(root, "src"):
        room = room_of(path)
        if room not in ROOMS:
            problems.append(f"{path}: the room '{room}' is not in the table of tests/lint/rooms.py")
            continue
        allowed = {room, *ROOMS[room][2].split()}
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match is None or (match.group(1) == PUBLIC_HEADER and room.startswith(("client", "door/mcp"))):
                continue
            target = "src" / pathlib.Path(match.group(1))
            if not (root / target).is_file():
                problems.append(f'{path}:{number}: "{match.group(1)}" is no file below src/')
            elif room_of(target) not in allowed:
                problems.append(f"{path}:{number}: {room}/ may not include {room_of(target)}/")
    return problems


def definitions(text: str) -> list[str]:
    """What a .c file defines for others: functions and objects."""
    text = DIRECTIVE.sub("", COMMENT_OR_TEXT.sub(lambda match: '""' if match.group()[0] == '"' else " ", text))
    names, depth, statement = [], 0, ""
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "}" and depth == 0:
            statement += char
        elif depth == 0 or (char == "{" and depth == 1):
            statement += char
        is_body = statement.endswith("{}") and "=" not in statement and re.search(r"\)\s*\{\}$", statement)
        if depth or not (statement.endswith(";") or is_body):
            continue
        head = ATTRIBUTE.sub("", statement).split("{")[0].split("=")[0].strip()
        if not re.search(r"\bstatic\b|^typedef\b|^extern\b|^_Static_assert\b", head):
            match = re.search(r"\b([A-Za-z_]\w*)\s*\(", head) if is_body else re.search(r"\b([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$", head)
            if match and (is_body or "=" in statement):
                names.append(match.group(1))
        statement = ""
    return names


def prefixes(root: pathlib.Path) -> list[str]:
    """What a room exports says by its name where it is from."""
    problems = []
    for path in c_files(root, "src"):
        starts = ROOMS.get(room_of(path), (ANY_NAME, 0, ""))[0].split()
        if path.suffix != ".c" or starts == [ANY_NAME] or path.name == "main.c":
            continue
        allowed = re.compile(rf"(?:{'|'.join(starts)})s?(?:_|$)")
        for name in definitions((root / path).read_text()):
            if not allowed.match(name):
                problems.append(f"{path}: {name} is exported; names of {room_of(path)}/ begin with {' or '.join(f'{start}_' for start in starts)}")
    return problems


def lines_of(root: pathlib.Path, what: str) -> int:
    """The lines of one file of src/, or of a room without the rooms in it."""
    path = root / "src" / what
    files = [path] if path.is_file() else [file for file in path.glob("*.[ch]")]
    return sum(len(file.read_text().splitlines()) for file in files)


def budgets(root: pathlib.Path) -> list[str]:
    """No room grows beyond what it was given."""
    counts = {room: lines_of(root, room) for room in ROOMS}
    problems = [
        f"src/{room} has {count} lines, more than {ROOMS[room][1]}: cut, or say in docs/design/ why a user would pay for it"
        for room, count in counts.items()
        if count > ROOMS[room][1]
    ]
    if sum(counts.values()) > SRC_MAX_LINES:
        problems.append(f"src/ has {sum(counts.values())} lines, more than {SRC_MAX_LINES}")
    return problems


def core(root: pathlib.Path) -> list[str]:
    """The trusted core stays short, and few rooms see more of it than what it is given."""
    problems = []
    count = sum(lines_of(root, part) for part in CORE)
    if count > CORE_MAX_LINES:
        problems.append(f"{' and '.join(CORE)} have {count} lines together, more than {CORE_MAX_LINES}")
    for path in c_files(root, "src"):
        if room_of(path) not in CORE_USERS:
            seen = [target for target in project_includes(root / path) if target.startswith("inside/build/")]
            problems += [f"{path}: only {', '.join(CORE_USERS)} may include {target}" for target in seen]
    return problems


def auditor_page(root: pathlib.Path) -> list[str]:
    """The page for auditors has every room of the jar and the gate, and about as many lines as they have."""
    text = (root / PAGE).read_text()
    table = text.partition("## For an auditor")[2].partition("\n## ")[0]
    problems, named = [], set()
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        parts = re.findall(r"`([a-z_/.]+)`", cells[0])
        parts = [part.rstrip("/") for part in parts if (root / "src" / part).exists()]
        if not parts or len(cells) < 3:
            continue
        named.update(parts)
        said, count = int(re.sub(r"\D", "", cells[1]) or 0), sum(lines_of(root, part) for part in parts)
        if abs(said - count) > max(count * PAGE_SLACK, 10):
            problems.append(f"{PAGE}: {cells[0]} has {count} lines, not {said}")
    audited = [room for room in ROOMS if room.split("/")[0] in ("inside", "gate") or room in ("helper", "engine/gate")]
    return problems + [f"{PAGE}: the table for auditors lacks {room}/" for room in audited if room not in named]


TOUR = "docs/tour.md"
TOUR_ROW = re.compile(r"^\|[^|]*\| (\S+\.(?:c|py)) \| `(\w+)` \|", re.M)


def tour(root: pathlib.Path) -> list[str]:
    """Each function that the tour names is in the file that it names."""
    problems = []
    rows = TOUR_ROW.findall((root / TOUR).read_text())
    for name, function in rows:
        path = root / (name if name.startswith("python/") else f"src/{name}")
        if not path.is_file():
            problems.append(f"{TOUR}: {name} does not exist")
        elif not re.search(rf"^(?:[a-z][^\n;]*\b{function}\(|\s*(?:async )?def {function}\()", path.read_text(), re.M):
            problems.append(f"{TOUR}: {name} has no function {function}()")
    return problems if rows else [f"{TOUR} has no row"]
