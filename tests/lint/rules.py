# SPDX-License-Identifier: Apache-2.0
"""The rules of this code base that no linter knows."""

from __future__ import annotations

import ast
import pathlib
import re

from lint.check import WARNING, c_files, project_files, python_files, shell_files


# Below include/; the library that it is of includes it like any other.
PUBLIC_HEADER = "belljar.h"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
SPDX = "SPDX-License-Identifier: Apache-2.0"
PYTHON_MIN = (3, 9)
FILE_MAX_LINES = 800


# Words that do not belong here, put together from pieces so that this file does not have them.
WORDS_EVERYWHERE = {
    "/wor" + "k/": "a path of somebody's machine",
    ".librar" + "y/": "a path of somebody's machine",
    "TO" + "DO": "unfinished",
    "FIX" + "ME": "unfinished",
    **{
        ".".join(parts): "a package registry"
        for parts in (
            ("py" + "pi", "org"),
            ("python" + "hosted", "org"),
            ("npm" + "js", "org"),
            ("npm" + "js", "com"),
            ("yarn" + "pkg", "com"),
            ("crates", "io"),
            ("docker", "io"),
            ("ghcr", "io"),
            ("quay", "io"),
            ("proxy", "golang", "org"),
            ("ruby" + "gems", "org"),
            ("deb", "debian", "org"),
            ("archive", "ubuntu", "com"),
        )
    },
}
WORDS_IN_PROGRAMS = {"XX" + "X": "unfinished", "HA" + "CK": "unfinished", "not imple" + "mented": "unfinished"}
PROGRAM_FOLDERS = ("src", "include", "python", "python-adapters", "node", "cli")

# Words that hide who acts, or that say nothing.
VAGUE_WORDS = re.compile(r"\b(nobody|somebody|whoever|of whom|as it were|by the way|so many)\b", re.IGNORECASE)
# How often they may occur in a file or folder; the longest path that matches counts. These numbers only fall. In C files
# the check reads comments and strings only.
VAGUE_WORDS_MAX = {
    "README.md": 0,
    "CONTRIBUTING.md": 0,
    "SECURITY.md": 0,
    "docs": 0,
    "docs/architecture.md": 0,
    "docs/glossary.md": 0,
    "docs/bench": 0,
    "man": 0,
    "contrib/README.md": 0,
    "node/README.md": 0,
    "python/DESCRIPTION.md": 0,
    "src": 0,
}
VAGUE_WORDS_UNCHECKED = ("docs/design",)
C_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)


def project_includes(path: pathlib.Path) -> list[str]:
    """The project headers that a file includes, in order."""
    return [match.group(1) for line in path.read_text().splitlines() if (match := INCLUDE.match(line))]


def own_header_problem(root: pathlib.Path, path: pathlib.Path) -> str:
    """A file that has a header includes it first, or a header that does: so no header needs anything before it."""
    header = path.with_suffix(".h")
    if path.suffix != ".c" or path.parts[0] != "src" or not (root / header).is_file():
        return ""
    own = str(header.relative_to("src"))
    first = project_includes(root / path)[:1]
    if first == [own] or any(own in project_includes(root / "src" / name) for name in first):
        return ""
    return f"{path}: does not include its own header \"{own}\" before other project headers"


def c_header_problem(root: pathlib.Path, path: pathlib.Path) -> str:
    """A C file opens with its licence, then its own name and what it is for."""
    lines = (root / path).read_text().splitlines()
    name = str(path.relative_to("src")) if path.parts[0] == "src" else str(path)
    if lines[:1] != [f"/* {SPDX} */"]:
        return f"{path}:1: the first line is not the licence"
    if lines[1:2] != ["/*"] or len(lines) < 3 or not lines[2].startswith(f" * {name} - "):
        return f"{path}:3: the file does not say what it is for: ' * {name} - ...'"
    return ""


def script_header_problem(root: pathlib.Path, path: pathlib.Path, is_python: bool) -> str:
    """A script has its licence in the first lines, then says what it is for."""
    text = (root / path).read_text()
    if not any(SPDX in line for line in text.splitlines()[:3]):
        return f"{path}:1: no licence in the first lines"
    if is_python and not ast.get_docstring(ast.parse(text)):
        return f"{path}:2: the file does not say what it is for"
    if not is_python and not re.search(rf"^# {re.escape(str(path))}\b.* - ", text, re.MULTILINE):
        return f"{path}:2: the file does not say what it is for: '# {path} - ...'"
    return ""


def headers(root: pathlib.Path) -> list[str]:
    """Licence and purpose at the top of every source file."""
    found = [problem for path in c_files(root) for problem in (c_header_problem(root, path), own_header_problem(root, path))]
    found += [script_header_problem(root, path, is_python=False) for path in shell_files(root)]
    found += [script_header_problem(root, path, is_python=True) for path in python_files(root)]
    return [problem for problem in found if problem]


def words(root: pathlib.Path) -> list[str]:
    """No unfinished business, no paths of one machine, no package registries."""
    everywhere = re.compile("|".join(rf"(?<![A-Za-z]){re.escape(word)}" for word in WORDS_EVERYWHERE))
    in_programs = re.compile("|".join(rf"\b{word}\b" for word in WORDS_IN_PROGRAMS))
    problems = []
    for path in project_files(root):
        for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1):
            match = everywhere.search(line)
            if match is None and path.parts[0] in PROGRAM_FOLDERS:
                match = in_programs.search(line)
            if match is not None:
                why = {**WORDS_EVERYWHERE, **WORDS_IN_PROGRAMS}[match.group()]
                problems.append(f"{path}:{number}: '{match.group()}': {why}")
    return problems


def readable_text(path: pathlib.Path) -> str:
    """What people read of a file: of C its comments and strings, of everything else all of it."""
    text = path.read_text(errors="replace")
    if path.suffix not in (".c", ".h"):
        return text
    return " ".join(match.group() for match in C_TEXT.finditer(text) if not match.group().startswith("'"))


def plain_words(root: pathlib.Path) -> list[str]:
    """VAGUE_WORDS occur no more often than VAGUE_WORDS_MAX allows."""
    found: dict[str, list[str]] = {place: [] for place in VAGUE_WORDS_MAX}
    for path in project_files(root):
        places = [pathlib.Path(place) for place in (*VAGUE_WORDS_MAX, *VAGUE_WORDS_UNCHECKED)]
        places = [place for place in places if place == path or place in path.parents]
        place = str(max(places, key=lambda place: len(place.parts), default=""))
        if place in found:
            words = VAGUE_WORDS.findall(" ".join(readable_text(root / path).split()))
            found[place] += [f"{path}: '{word}'" for word in words]
    problems = []
    for place, here in found.items():
        most = VAGUE_WORDS_MAX[place]
        if len(here) > most:
            problems.append(f"{place}: {len(here)} words that hide who acts, more than {most}: {', '.join(here[-5:])}")
        elif len(here) < most:
            problems.append(f"{WARNING}{place}: {len(here)} words that hide who acts; lower its number in VAGUE_WORDS_MAX")
    return problems


def sizes(root: pathlib.Path) -> list[str]:
    """Large files are not wrong, but worth a thought."""
    problems = []
    for path in sorted({*c_files(root), *python_files(root), *shell_files(root)}):
        count = len((root / path).read_text().splitlines())
        if count > FILE_MAX_LINES:
            problems.append(f"{WARNING}{path} has {count} lines; would a split by responsibility read better?")
    return problems


def python(root: pathlib.Path) -> list[str]:
    """Python files parse with the oldest version that must run them."""
    problems = []
    for path in python_files(root):
        try:
            ast.parse((root / path).read_text(), str(path), feature_version=PYTHON_MIN)
        except SyntaxError as error:
            problems.append(f"{path}:{error.lineno}: {error.msg}")
    return problems
