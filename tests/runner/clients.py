# SPDX-License-Identifier: Apache-2.0
"""Clients that the distribution does not have, for the tests that run them through the gate: Python packages and Node packages.

They are below build/clients. pip and npm fetch the newest releases from whatever registries they are configured for; where those
cannot be reached, what is there already will do, and tests of what is missing are skipped.
"""

from __future__ import annotations

import pathlib
import shutil
import threading

from runner import process
from runner.frameworks import PIP_TIMEOUT_SECONDS, Absent, choose_interpreter

PYTHON_PACKAGES = ("requests", "httpx[http2]", "aiohttp", "grpcio", "uv")
NODE_PACKAGES = ("undici@6", "pnpm@9")
_lock = threading.Lock()


class Clients:
    """The folder with all of them, filled once in a run of the tests."""

    def __init__(self, source: pathlib.Path) -> None:
        self.folder = source / "build" / "clients"
        self._is_filled = False

    def fill(self) -> None:
        """Have in it what can be had."""
        with _lock:
            if not self._is_filled:
                self._is_filled = True
                self.folder.mkdir(parents=True, exist_ok=True)
                self._fetch_python()
                self._fetch_node()

    def _run(self, *command: str) -> int:
        return process.run([*command], timeout_seconds=PIP_TIMEOUT_SECONDS).status

    def _fetch_python(self) -> None:
        folder = self.folder / "python"
        try:
            if not (folder / "bin" / "python").exists():
                self._run(choose_interpreter().path, "-m", "venv", "--clear", str(folder))
        except Absent:
            return
        for package in PYTHON_PACKAGES:
            # One by one: where one cannot be had there are the others.
            words = ("install", "--quiet", "--disable-pip-version-check", "--upgrade", package)
            self._run(str(folder / "bin" / "python"), "-m", "pip", *words)

    def _fetch_node(self) -> None:
        npm = shutil.which("npm")
        if npm is None:
            return
        folder = self.folder / "node"
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text("{}\n")
        for package in NODE_PACKAGES:
            self._run(npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), package)
