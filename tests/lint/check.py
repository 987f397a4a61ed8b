# SPDX-License-Identifier: Apache-2.0
"""What a check is, and the files that checks look at."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
from collections.abc import Callable

# A problem that begins so is shown but fails nothing.
WARNING = "warning: "


@dataclasses.dataclass
class Check:
    """`find_problems` takes the project's root and returns a line for each problem."""

    name: str
    find_problems: Callable[[pathlib.Path], list[str]]
    programs: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    is_slow: bool = False  # for ./dev lint; ./dev test has no minutes for it


def project_files(root: pathlib.Path) -> list[pathlib.Path]:
    """Every file that is tracked or would be, relative to the root. Without git: everything outside build/."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [name for name in names if name.split("/")[0] not in ("build", ".git") and "cache" not in name]
    paths = (pathlib.Path(name) for name in sorted(set(names)))
    return [path for path in paths if (root / path).is_file() and not (root / path).is_symlink()]


def c_files(root: pathlib.Path, *folders: str) -> list[pathlib.Path]:
    """The C sources and headers, of the whole project or of some top folders."""
    files = [path for path in project_files(root) if path.suffix in (".c", ".h")]
    return [path for path in files if not folders or path.parts[0] in folders]


def first_line(path: pathlib.Path) -> str:
    """The first line of a text; nothing for what is no text."""
    with path.open("rb") as file:
        return file.readline(200).decode(errors="replace")


def shell_files(root: pathlib.Path) -> list[pathlib.Path]:
    """Shell scripts, by name or by their first line."""
    return [
        path
        for path in project_files(root)
        if path.suffix == ".sh" or first_line(root / path).rstrip().endswith(("/sh", "/bash", "env bash", "env sh"))
    ]


def python_files(root: pathlib.Path) -> list[pathlib.Path]:
    """Python files, by name or by their first line."""
    return [
        path
        for path in project_files(root)
        if path.suffix == ".py" or (first_line(root / path).startswith("#!") and "python" in first_line(root / path))
    ]
