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
_NODE_PACKAGE = f"node-linux-{'arm64' if os.uname().machine == 'aarch64' else 'x64'}"
# What each module of node/test/adapters needs, what it tests first. Each is installed by itself: what npm cannot install takes
# nothing away from the others.
NEEDS = {
    "types": ("typescript", "@types/node"),
    "ai-sdk": ("ai", "zod"),
    "deepagents": ("deepagents", "@langchain/core"),
    "openai-agents": ("@openai/agents", "zod"),
    # The package's own tests run with these too: the oldest Node that it is for, and one newer than the distribution's.
    "runtimes": ("bun", "deno", *(f"node{version}@npm:{_NODE_PACKAGE}@{version}" for version in (18, 24))),
    # For `belljar mcp` and `belljar mcp-wrap`. What the conformance tool asks for changes from release to release, and so
    # does the list of what is expected to fail.
    "mcp": (
        "@modelcontextprotocol/client",
        "@modelcontextprotocol/conformance@0.2.0-alpha.12",
        "@modelcontextprotocol/inspector",
        "@modelcontextprotocol/sdk",
        "@modelcontextprotocol/server-filesystem",
    ),
    # For `belljar hook`, and for what docs/mcp.md says about their settings.
    "agents": ("@anthropic-ai/claude-code", "@google/gemini-cli", "@openai/codex"),
    "package-npm": (),
}
# Older releases of what a framework needs. npm is given them where the newest ones, which it takes by itself, cannot be installed
# together.
OLDER = {"deepagents": ("@langchain/langgraph@1.4.18", "@langchain/langgraph-sdk@1.12.0")}
NPM_TIMEOUT_SECONDS = 900


# What npm says beside the reason.
_NO_REASON = ("A complete log of this run", "For a full report", "Fix the upstream dependency conflict", "this command with --force")


def npm_reason(output: str) -> str:
    """Why npm could not install something: what it says first, without what it says every time."""
    said = [line.split("error", 1)[-1].split("ERR!", 1)[-1].strip() for line in output.splitlines() if line.startswith("npm ")]
    kept = [line for line in said if line and not line.startswith(_NO_REASON) and "_logs" not in line]
    return "; ".join(kept)[:600] or output.strip()[-300:]


def needs_of(path: pathlib.Path) -> str:
    """The row of NEEDS for a test: types-NAME.test.ts needs what NAME.test.js does."""
    name = path.name.split(".")[0]
    return name[len("types-") :] if name.startswith("types-") else name


class Adapters:
    """The folder, made and brought up to date once in a run of the tests."""

    def __init__(self, source: pathlib.Path) -> None:
        self.source = source
        self.folder = source / "build" / "node-adapters"
        # Not that of .bin, which is the last of the versions that were installed.
        self.node = self.folder / "node_modules" / "node" / "bin" / "node"
        self.tarballs = self.folder / "tarballs"
        self._lock = threading.Lock()
        self._is_made = False
        self._reason = ""
        self._found: dict[str, str] = {}

    @property
    def is_open(self) -> bool:
        """Other users can use it."""
        return is_open(self.node) and is_open(self.node.resolve())

    def prepare(self, engine: pathlib.Path, needed: str) -> str:
        """Have the package in it, and what one test needs; the name and version of what is tested. Raises Absent."""
        with self._lock:
            if not self._is_made:
                self._is_made = True
                try:
                    self._make(engine)
                except Absent as absent:
                    self._reason = str(absent)
            if self._reason:
                raise Absent(self._reason)
            if self._found[needed].startswith("needs:"):
                raise Absent(self._found[needed])
            return self._found[needed]

    def _fetch(self, names: tuple[str, ...], older: tuple[str, ...] = ()) -> str:
        """What is there of them then; or a reason that begins with "needs:"."""
        if not names:
            return "npm"
        wanted = [name if "@" in name[1:] else f"{name}@latest" for name in names]
        fetched = self._install(*wanted, node=self.node)
        if fetched.status != 0 and older:
            again = self._install(*wanted, *older, node=self.node)
            fetched = again if again.status == 0 else fetched
        places = [f"{'@' if name.startswith('@') else ''}{name.lstrip('@').split('@')[0]}" for name in names]
        why = "" if fetched.status == 0 else npm_reason(fetched.output) or f"npm ended with {fetched.status}"
        try:
            versions = [self._version(name) for name in places]
        except FileNotFoundError:
            return f"needs:registry {names[0]} cannot be installed: {why}"
        beside = ", ".join(name for name in older if (self.folder / "node_modules" / name.rpartition("@")[0]).is_dir())
        framework = f"{versions[0]} (with {beside})" if beside else versions[0]
        return framework if not why else f"{framework}, as it was: {why}"

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

    def _make(self, engine: pathlib.Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        about = self.folder / "package.json"
        if not about.is_file():
            about.write_text('{"private": true, "type": "module"}\n')
        fetched = self._install(NODE)
        if not self.node.exists():
            raise Absent(f"needs:registry {NODE} cannot be installed: {npm_reason(fetched.output)}")
        self._found = {needed: self._fetch(names, OLDER.get(needed, ())) for needed, names in NEEDS.items()}
        shutil.rmtree(self.tarballs, ignore_errors=True)
        tool = self.source / "tools" / "package.py"
        made = process.run([sys.executable, str(tool), "npm", str(engine), str(self.tarballs)], timeout_seconds=60)
        if made.status != 0:
            raise RuntimeError(made.output)
        self._place()

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
