# SPDX-License-Identifier: Apache-2.0
"""A client of `belljar mcp` that does only what it is told, so that tests can also do what no client should."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from harness import paths
from harness.bounds import BOUND
from harness.runner import ANY, Way, command

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
Message = Dict[str, Any]


def joined(result: Message) -> str:
    """All text of a result, as a model reads it."""
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def said(result: Message) -> str:
    """What Belljar says of it: the lines of the last block without their mark."""
    block = result["content"][-1]
    mark = f"[belljar {block['_meta']['belljar/mark']}] "
    lines = block["text"].lstrip("\n").splitlines()
    if not lines or not all(line.startswith(mark) for line in lines):
        raise AssertionError(result)
    if any(block["_meta"]["belljar/mark"] in other.get("text", "").replace(mark, "") for other in result["content"][:-1]):
        raise AssertionError(f"the mark is in the output: {result}")
    return "\n".join(line[len(mark) :] for line in lines)


class Server:
    """A server, its standard input and its standard output."""

    def __init__(self, env: Dict[str, str], cwd: Path, *options: str, way: Way = ANY, verb: str = "mcp") -> None:
        words = command(options, way, verb)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=cwd, bufsize=0)
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
        """What a model reads of it, where a client joins all blocks."""
        return joined(self.tool(tool, **arguments))

    def data(self, tool: str, **arguments: object) -> Message:
        """What a program reads of it."""
        result = self.tool(tool, **arguments)
        if "structuredContent" not in result:
            raise AssertionError(result)
        data: Message = result["structuredContent"]
        return data


class Answer:
    """What a server said over HTTP: its status, its headers, and its messages, the last of which answers the request."""

    def __init__(self, status: int, headers: Dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def messages(self) -> List[Message]:
        """All of them, whether they came as events or as one text."""
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            return [json.loads(self.body)]
        return [json.loads(line[6:]) for line in self.body.decode().splitlines() if line.startswith("data: ")]

    @property
    def data(self) -> Message:
        """The structured content of a tool's result."""
        data: Message = self.messages[-1]["result"]["structuredContent"]
        return data

    @property
    def code(self) -> int:
        """That of an error."""
        code: int = self.messages[-1]["error"]["code"]
        return code


class HttpServer:
    """A server that listens, and one connection to it at a time."""

    def __init__(self, env: Dict[str, str], cwd: Path, *options: str) -> None:
        command = [f"{paths.belljar()}-mcp-http", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env, cwd=cwd)
        assert self.process.stdout is not None
        url = self.process.stdout.readline().decode().strip()
        if not url:
            self.process.stdout.close()
            raise EOFError(f"the server has left with {self.process.wait(BOUND)}")
        self.said = url + "\n" + self.process.stdout.readline().decode()
        self.token = self.said.split("token: ")[1].strip()
        self.port = int(url.split(":")[-1].split("/")[0])
        self.number = 0

    def close(self) -> None:
        """End it; its sessions end with it."""
        assert self.process.stdout is not None
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait(BOUND)

    def connect(self) -> socket.socket:
        """A connection, nothing said."""
        return socket.create_connection(("127.0.0.1", self.port), BOUND)

    def head(self, method: str = "POST", length: Optional[int] = None, **changed: Optional[str]) -> bytes:
        """A head that is served, but for what is changed: a header of that name ("_" for "-"), or none (None)."""
        headers: Dict[str, Optional[str]] = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json" if method == "POST" else None,
            "Content-Length": None if length is None else str(length),
        }
        headers.update({name.replace("_", "-"): value for name, value in changed.items()})
        lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
        return "\r\n".join([f"{method} /mcp HTTP/1.1", *lines, "", ""]).encode()

    def request(self, body: object, **changed: Optional[str]) -> bytes:
        """All of a POST."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.head("POST", len(data), **changed) + data

    @staticmethod
    def read(connection: socket.socket) -> Answer:
        """The next answer."""
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def raw(self, data: bytes) -> Answer:
        """Bytes as they are, and the answer."""
        with self.connect() as connection:
            connection.sendall(data)
            return self.read(connection)

    def message(self, method: str, params: Optional[Message] = None) -> Message:
        """A request."""
        self.number += 1
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}}

    def post(self, method: str, params: Optional[Message] = None, **changed: Optional[str]) -> Answer:
        """Send a request and wait."""
        return self.raw(self.request(self.message(method, params), **changed))

    def open_session(self) -> str:
        """The handshake of the older protocol; the session's id."""
        answer = self.post("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        return answer.headers["mcp-session-id"]

    def tool(self, session: str, tool: str, **arguments: object) -> Answer:
        """Call a tool in a session."""
        return self.post("tools/call", {"name": tool, "arguments": arguments}, Mcp_Session_Id=session)

    def modern(self, method: str, params: Optional[Message] = None, **changed: Optional[str]) -> bytes:
        """A request without a session."""
        meta = {META + "protocolVersion": VERSION, META + "clientCapabilities": {}}
        given = {"_meta": meta, **(params or {})}
        headers = {"MCP_Protocol_Version": VERSION, "Mcp_Method": method, "Mcp_Name": given.get("name"), **changed}
        return self.request(self.message(method, given), **headers)

    def modern_tool(self, tool: str, **arguments: object) -> Answer:
        """Call a tool without a session."""
        return self.raw(self.modern("tools/call", {"name": tool, "arguments": arguments}))
