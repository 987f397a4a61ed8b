# SPDX-License-Identifier: Apache-2.0
"""What every measure is given: how long to measure, where things are, programs made from source, a place to work in."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build"
BELLJAR = str(BUILD / "belljar")
# With --quick every measure is only seen to work.
QUICK_ROUNDS = 1
# However few rounds were asked for: a quantile of less says nothing.
ROUNDS_MIN = 5
PROGRAM_TIMEOUT_SECONDS = 600


class Bench:
    """A context manager: its directory, and what a measure asked to be undone, are gone at the end."""

    def __init__(self, rounds: int, is_quick: bool) -> None:
        self.is_quick = is_quick
        self._rounds = rounds
        self._stack = contextlib.ExitStack()
        self._programs: Dict[str, str] = {}

    def __enter__(self) -> Bench:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="belljar-bench-")))
        # Candidates that run as somebody else must be able to get there.
        self.folder.chmod(0o755)
        self.workdir = self.make_folder("work")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def at_end(self, undo: Callable[[], object]) -> None:
        """Have something called when all is measured."""
        self._stack.callback(undo)

    def make_folder(self, name: str) -> Path:
        """A folder of that name that nobody else has, everybody may enter."""
        path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        path.chmod(0o755)
        return path

    def rounds(self, part: float = 1.0) -> int:
        """So many rounds for a measure that is given a part of what was asked for."""
        return QUICK_ROUNDS if self.is_quick else max(round(self._rounds * part), ROUNDS_MIN)

    def size(self, whole: int, quick: int) -> int:
        """How much of something: less with --quick."""
        return quick if self.is_quick else whole

    def program(self, name: str, *, with_library: bool = False) -> str:
        """The path of a C program of programs/, compiled at its first use."""
        if name not in self._programs:
            made = str(self.folder / name)
            command = ["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", made, str(HERE / "programs" / f"{name}.c")]
            if with_library:
                library = str(BUILD / "lib")
                command += ["-I", str(ROOT / "include"), "-L", library, "-lbelljar", f"-Wl,-rpath,{library}"]
            subprocess.run(command, check=True)
            self._programs[name] = made
        return self._programs[name]

    def lines(self, command: List[str]) -> List[List[str]]:
        """What a program of programs/ prints, as words."""
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.workdir,
            timeout=PROGRAM_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stderr}")
        return [line.split() for line in done.stdout.splitlines()]

    def host(self, name: str, **arguments: Any) -> Any:
        """Run a program of hosts/ with these arguments; its answer is one JSON text."""
        env = {**os.environ, "PYTHONPATH": f"{HERE.parent}:{BUILD / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", f"bench.hosts.{name}", json.dumps(arguments)],
            stdout=subprocess.PIPE,
            check=True,
            cwd=self.workdir,
            env={**env, "BELLJAR_BIN": BELLJAR},
            timeout=PROGRAM_TIMEOUT_SECONDS,
        )
        return json.loads(done.stdout)
