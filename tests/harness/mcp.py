# SPDX-License-Identifier: Apache-2.0
"""A client of `belljar mcp` that does only what it is told, so that tests can also do what no client should."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from harness import paths
from harness.bounds import BOUND

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
Message = Dict[str, Any]


class Server:
    """A server, its standard input and its standard output."""

    def __init__(self, env: Dict[str, str], cwd: Path, *options: str) -> None:
        command = [paths.belljar(), "mcp", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=cwd, bufsize=0)
        self.notes: List[Message] = []
        self._waiting = b""
        self._number = 0

    def close(self) -> int:
        """Hang up; the server's exit status."""
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        try:
            return self.process.wait(BOUND)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def send(self, message: object) -> None:
        """A message, or bytes as they are."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        assert self.process.stdin is not None
        view = memoryview(data)
        while len(view):
            view = view[self.process.stdin.write(view) :]

    def read(self) -> Message:
        """The next message of the server."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + BOUND
        while b"\n" not in self._waiting:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError("the server says nothing")
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                raise EOFError(f"the server has left; waiting: {self._waiting[:200]!r}")
            self._waiting += piece
        line, _, self._waiting = self._waiting.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def begin(self, method: str, params: Optional[Message] = None) -> int:
        """Send a request; its id."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})
        return self._number

    def answer(self, number: int) -> Message:
        """The answer to a request; what comes before and is no answer is kept in `notes`."""
        while True:
            message = self.read()
            if message.get("id") == number:
                return message
            self.notes.append(message)

    def ask(self, method: str, params: Optional[Message] = None) -> Message:
        """Send a request and wait."""
        return self.answer(self.begin(method, params))

    def result(self, method: str, params: Optional[Message] = None) -> Message:
        """The same, where no error is expected."""
        answer = self.ask(method, params)
        if "result" not in answer:
            raise AssertionError(answer)
        result: Message = answer["result"]
        return result

    def tool(self, tool: str, **arguments: object) -> Message:
        """Call a tool; its result."""
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def text(self, tool: str, **arguments: object) -> str:
        """What a model reads of it."""
        text: str = self.tool(tool, **arguments)["content"][0]["text"]
        return text

    def data(self, tool: str, **arguments: object) -> Message:
        """What a program reads of it."""
        result = self.tool(tool, **arguments)
        if "structuredContent" not in result:
            raise AssertionError(result)
        data: Message = result["structuredContent"]
        return data
