# SPDX-License-Identifier: Apache-2.0
"""A folder with agent frameworks for Node, and with the package as npm installs it, for the tests of its adapters and types.

npm fetches the newest releases from whatever registry it is configured for; where that cannot be reached, a folder that is there
already will do, and without one the tests are skipped. Some frameworks need a newer Node than the distribution has, and npm silently
takes old releases of them for an old Node: so the first thing it fetches is a Node.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
import threading

from runner import process
from runner.frameworks import Absent
from runner.interpreters import is_open

NODE = "node@22"
# The frameworks first: their versions are shown.
FRAMEWORKS = ("ai", "deepagents", "@openai/agents")
OTHERS = ("@langchain/core", "@types/node", "bun", "deno", "typescript", "zod")
# The package's own tests run with these too: the oldest Node that it is for, and one that is newer than the distribution's.
NODES = tuple(f"node{version}@npm:node-linux-{'arm64' if os.uname().machine == 'aarch64' else 'x64'}@{version}" for version in (18, 24))
# For `belljar mcp` and `belljar mcp-wrap`. What the conformance tool asks for changes from release to release, and so does the list of what is
# expected to fail.
PROTOCOL = (
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector",
    "@modelcontextprotocol/sdk",
    "@modelcontextprotocol/server-filesystem",
)
# For `belljar hook`, and for what docs/mcp.md says about their settings.
AGENTS = ("@anthropic-ai/claude-code", "@google/gemini-cli", "@openai/codex")
NPM_TIMEOUT_SECONDS = 900


class Adapters:
    """The folder, made and brought up to date once in a run of the tests."""

    def __init__(self, source: pathlib.Path) -> None:
        self.source = source
        self.folder = source / "build" / "node-adapters"
        self.node = self.folder / "node_modules" / ".bin" / "node"
        self.tarballs = self.folder / "tarballs"
        self._lock = threading.Lock()
        self._versions = ""
        self._reason = ""

    @property
    def is_open(self) -> bool:
        """Other users can use it."""
        return is_open(self.node) and is_open(self.node.resolve())

    def prepare(self, engine: pathlib.Path) -> str:
        """Have everything in it; the frameworks' names and versions. Raises Absent."""
        with self._lock:
            if not self._versions and not self._reason:
                try:
                    self._versions = self._make(engine)
                except Absent as absent:
                    self._reason = str(absent)
            if self._reason:
                raise Absent(self._reason)
            return self._versions

    def _install(self, *words: str, node: pathlib.Path | None = None) -> process.Finished:
        npm = shutil.which("npm")
        if npm is None:
            raise Absent("needs:npm")
        command = [npm] if node is None else [str(node), os.path.realpath(npm)]
        return process.run(
            [*command, "install", "--no-audit", "--no-fund", "--loglevel=error", *words],
            timeout_seconds=NPM_TIMEOUT_SECONDS,
            cwd=self.folder,
        )

    def _version(self, name: str) -> str:
        about = self.folder / "node_modules" / name / "package.json"
        if not about.is_file():
            raise FileNotFoundError(about)
        return f"{name} {json.loads(about.read_text())['version']}"

    def _make(self, engine: pathlib.Path) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        about = self.folder / "package.json"
        if not about.is_file():
            about.write_text('{"private": true, "type": "module"}\n')
        fetched = self._install(NODE)
        if self.node.exists():
            wanted = (name if "@" in name[1:] else f"{name}@latest" for name in (*FRAMEWORKS, *OTHERS, *NODES, *PROTOCOL, *AGENTS))
            fetched = self._install(*wanted, node=self.node)
        try:
            versions = ", ".join(self._version(name) for name in FRAMEWORKS)
        except FileNotFoundError:
            said = [line for line in fetched.output.splitlines() if line.strip()] or [f"npm ended with {fetched.status}"]
            raise Absent(f"needs:registry the frameworks cannot be installed: {said[-1][:300]}") from None
        shutil.rmtree(self.tarballs, ignore_errors=True)
        tool = self.source / "tools" / "package.py"
        made = process.run([sys.executable, str(tool), "npm", str(engine), str(self.tarballs)], timeout_seconds=60)
        if made.status != 0:
            raise RuntimeError(made.output)
        self._place()
        is_old = "" if fetched.status == 0 else ", as they were: the registry cannot be reached"
        return f"{versions}{is_old}"

    def _place(self) -> None:
        """The packages, unpacked as npm does it, which would ask the registry for the engine's; and the tests, beside what they import."""
        modules = self.folder / "node_modules"
        for tarball in self.tarballs.glob("*.tgz"):
            parts = tarball.name.split("-")
            target = modules / "@belljar" / "-".join(parts[1:3]) if parts[1] == "linux" else modules / "belljar"
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            process.run(["tar", "xzf", str(tarball), "--strip-components=1", "-C", str(target)], timeout_seconds=60)
        shutil.rmtree(self.folder / "tests", ignore_errors=True)
        shutil.copytree(self.source / "node" / "test" / "adapters", self.folder / "tests")
        shutil.copy2(self.source / "node" / "test" / "reporter.js", self.folder / "tests")
