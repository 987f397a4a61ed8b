# SPDX-License-Identifier: Apache-2.0
"""The linters of the distribution, with our settings."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess

from lint.check import WARNING, c_files, project_files, shell_files
from runner import process

TOOL_TIMEOUT_SECONDS = 600
# Each version of a linter finds something new and lays out code a little differently. These decide; what others find is
# shown and fails nothing.
DECIDING_DISTRIBUTION = "bookworm"


def advice(problems: list[str]) -> list[str]:
    """Problems as they are where the linters are those that decide, as warnings elsewhere."""
    release = pathlib.Path("/etc/os-release")
    if release.is_file() and f"VERSION_CODENAME={DECIDING_DISTRIBUTION}" in release.read_text().splitlines():
        return problems
    return [WARNING + problem for problem in problems]


def run(root: pathlib.Path, command: list[str]) -> list[str]:
    """Run a linter; its output where it found fault."""
    done = process.run(command, timeout_seconds=TOOL_TIMEOUT_SECONDS, cwd=root)
    if done.is_timed_out:
        return [f"{command[0]} took more than {TOOL_TIMEOUT_SECONDS} seconds"]
    if done.status == 0:
        return []
    return done.output.splitlines() or [f"{command[0]}: exit status {done.status}"]


def clang_format(root: pathlib.Path) -> list[str]:
    """The layout is what ./dev format makes of it."""
    problems = run(root, ["clang-format", "--dry-run", "--Werror", *map(str, c_files(root))])
    places = [line for line in problems if "error:" in line]
    if not places:
        return problems
    files = dict.fromkeys(line.split(":")[0] for line in places)
    counts = [f"{name}: {sum(line.startswith(name + ':') for line in places)} places" for name in files]
    return advice([*counts, "try ./dev format"])


def shellcheck(root: pathlib.Path) -> list[str]:
    """Shell scripts, dev among them."""
    return run(root, ["shellcheck", *map(str, shell_files(root))])


def man(root: pathlib.Path) -> list[str]:
    """Manual pages, those that the build fills from templates included."""
    pages = [str(path) for path in project_files(root) if re.fullmatch(r"\.[1-8]", path.suffix)]
    pages += [str(path) for path in sorted((root / "build" / "gcc").glob("*.[1-8]")) if ".so." not in path.name]
    return run(root, ["mandoc", "-T", "lint", "-W", "warning", *pages]) if pages else []


def cppcheck(root: pathlib.Path) -> list[str]:
    """A second opinion on the engine."""
    cache = root / "build" / "cppcheck"
    cache.mkdir(parents=True, exist_ok=True)
    command = ["cppcheck", "--quiet", "--enable=warning,performance,portability", "--std=c11", "--inline-suppr"]
    command += ["--error-exitcode=1", "--template=gcc", "-Isrc", "-D_GNU_SOURCE", "-D__linux__", "-D__x86_64__"]
    command += [f"--cppcheck-build-dir={cache}", f"-j{len(os.sched_getaffinity(0))}"]
    command += ["--suppressions-list=tests/lint/cppcheck-suppressions.txt", "src"]
    return advice(run(root, command))


OWN_INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def with_headers(root: pathlib.Path, path: pathlib.Path, seen: dict[pathlib.Path, bytes]) -> dict[pathlib.Path, bytes]:
    """The contents of a file and of all of ours that it includes, directly or not."""
    if path not in seen and (root / path).is_file():
        seen[path] = (root / path).read_bytes()
        for name in OWN_INCLUDE.findall(seen[path]):
            with_headers(root, pathlib.Path("src") / name.decode(), seen)
    return seen


def tidy_key(root: pathlib.Path, path: pathlib.Path, common: bytes) -> str:
    """Names a file's contents together with all that its verdict depends on."""
    key = hashlib.sha256(common)
    for name, content in sorted(with_headers(root, path, {}).items()):
        key.update(str(name).encode() + b"\0" + content)
    return key.hexdigest()


def tidy_cache(root: pathlib.Path) -> pathlib.Path:
    """One for all work trees of a repository."""
    command = ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    try:
        folder = pathlib.Path(found or root / "build") / "clang-tidy"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "writable").touch()
    except OSError:
        folder = root / "build" / "clang-tidy"
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def clang_tidy(root: pathlib.Path) -> list[str]:
    """The slowest: a file that was clean is looked at again when it, a header of it or the settings have changed."""
    cache = tidy_cache(root)
    common = hashlib.sha256(subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout)
    common.update((root / ".clang-tidy").read_bytes())

    def look(path: pathlib.Path) -> list[str]:
        stamp = cache / tidy_key(root, path, common.digest())
        if stamp.is_file():
            return []
        lines = run(root, ["clang-tidy", "--quiet", "--warnings-as-errors=*", "-p", "build/asan", str(path)])
        if not lines:
            stamp.touch()
        # The findings, without the path that led the analyzer there.
        return [line for line in lines if re.search(r": (warning|error): ", line)] or lines

    sources = [path for path in c_files(root, "src") if path.suffix == ".c"]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return advice([line for lines in pool.map(look, sources) for line in lines])
