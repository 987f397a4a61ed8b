# SPDX-License-Identifier: Apache-2.0
"""Virtual environments with agent frameworks, for the tests of belljar.integrations, and with other libraries that a program may
use beside the package: event loops, notebooks, a type checker.

Each framework has one of its own below build/integrations: they ask for different versions of the same packages. pip fetches
the newest release from whatever registry it is configured for; where that cannot be reached, an environment that is there
already will do, and without one the tests are skipped.
"""

from __future__ import annotations

import pathlib
import threading

from runner import process
from runner.interpreters import Interpreter, find_interpreters, is_open

# What pip is told, the framework first, for the test module tests/integrations/test_NAME.py.
REQUIREMENTS = {
    "autogen": ("autogen-core", "autogen-agentchat"),
    "deepagents": ("deepagents",),
    "google_adk": ("google-adk",),
    "inspect_ai": ("inspect-ai", "openai", "pytest", "trio"),
    "langchain": ("langchain",),
    "mcp": ("mcp", "mcp-server-time"),
    "mypy": ("mypy",),
    "notebook": ("ipykernel", "jupyter-client"),
    "openai_agents": ("openai-agents",),
    "pydantic_ai": ("pydantic-ai-slim", "pytest", "trio"),
    "smolagents": ("smolagents",),
    "trio": ("trio", "anyio"),
}
# The frameworks need a newer Python than the package itself.
OLDEST = (3, 10)
PIP_TIMEOUT_SECONDS = 900
# Several installations at once only wait for each other.
_lock = threading.Lock()


class Absent(Exception):
    """The environment cannot be made here; the reason is for the reader."""


def choose_interpreter() -> Interpreter:
    """The newest one that everybody can use, else the newest."""
    fit = [item for item in find_interpreters() if tuple(map(int, item.version.split(".")[:2])) >= OLDEST]
    if not fit:
        raise Absent(f"needs:python Python {'.'.join(map(str, OLDEST))} or later")
    return max(fit, key=lambda item: (item.is_open, tuple(map(int, item.version.split(".")))))


class Environment:
    """One framework's environment, made and brought up to date once in a run of the tests."""

    def __init__(self, source: pathlib.Path, name: str) -> None:
        self.name = name
        self.folder = source / "build" / "integrations" / name
        self.python = self.folder / "bin" / "python"
        self._version = ""
        self._reason = ""

    @property
    def is_open(self) -> bool:
        """Other users can run it."""
        return is_open(self.python) and is_open(self.python.resolve())

    def prepare(self, wheel_folder: pathlib.Path) -> str:
        """Have the framework and the wheel in it; the framework's name and version. Raises Absent."""
        with _lock:
            if not self._version and not self._reason:
                try:
                    self._version = self._make(wheel_folder)
                except Absent as absent:
                    self._reason = str(absent)
            if self._reason:
                raise Absent(self._reason)
            return self._version

    def _run(self, *command: str) -> process.Finished:
        return process.run([*command], timeout_seconds=PIP_TIMEOUT_SECONDS)

    def _pip(self, *words: str) -> process.Finished:
        return self._run(str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)

    def _make(self, wheel_folder: pathlib.Path) -> str:
        if not self.python.exists():
            made = self._run(choose_interpreter().path, "-m", "venv", "--clear", str(self.folder))
            if made.status != 0:
                raise Absent(f"needs:venv {made.output.strip()[-300:]}")
        fetched = self._pip("--upgrade", *REQUIREMENTS[self.name])
        framework = REQUIREMENTS[self.name][0]
        asked = self._run(str(self.python), "-c", f"import importlib.metadata as m; print(m.version('{framework}'))")
        if asked.status != 0:
            said = [line for line in fetched.output.splitlines() if line.strip()] or [f"pip ended with {fetched.status}"]
            raise Absent(f"needs:registry {framework} cannot be installed: {said[-1][:300]}")
        (wheel,) = wheel_folder.glob("belljar-*.whl")
        placed = self._pip("--no-index", "--no-deps", "--force-reinstall", str(wheel))
        if placed.status != 0:
            raise RuntimeError(placed.output)
        is_old = "" if fetched.status == 0 else ", as it was: the registry cannot be reached"
        return f"{framework} {asked.output.strip()}{is_old}"
