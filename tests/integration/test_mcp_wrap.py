# SPDX-License-Identifier: Apache-2.0
"""`belljar mcp-wrap`: somebody else's MCP server in a jar, with some of its tools hidden."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import unittest
from typing import Dict, List, Optional

from harness import census, paths
from harness.bounds import BOUND
from harness.case import JarCase
from harness.mcp import Server

# A server that does what it is told, and nothing that it should.
SERVER = r"""
import json, os, sys, time
print("not the protocol", flush=True)
print("a remark", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    name, given = params.get("name"), params.get("arguments") or {}
    def answer(result):
        print('{"jsonrpc": "2.0",  "id": %s, "result": %s}' % (json.dumps(number), json.dumps(result)), flush=True)
    if method == "tools/list":
        answer({"tools": [{"name": tool, "x": [1, 2.50, None]} for tool in ("read", "write", "delete_all", "big")], "more": "é"})
    elif method == "tools/call" and name == "read":
        try:
            answer({"content": [{"type": "text", "text": open(given["path"]).read()}]})
        except OSError as error:
            answer({"content": [{"type": "text", "text": str(error)}], "isError": True})
    elif method == "tools/call" and name == "big":
        print("x" * given["bytes"], flush=True)
        answer({})
    elif method == "tools/call" and name == "write":
        for i in range(given["count"]):
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"n": i}}), flush=True)
        answer({"calls": given["count"]})
    elif method == "tools/call":
        answer({"called": name})
    elif method == "leave":
        sys.exit(7)
    elif method == "hang":
        time.sleep(600)
    elif number is not None:
        answer({"echo": message})
"""


class Wrapped(Server):
    """A wrapped server; its client is that of the other tests."""

    def __init__(self, env: Dict[str, str], cwd: str, *words: str) -> None:
        command = [paths.belljar(), "mcp-wrap", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=cwd, bufsize=0)
        self.notes = []
        self._waiting = b""
        self._number = 0

    def close(self) -> int:
        status = super().close()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status


class Wrap(JarCase):
    def setUp(self) -> None:
        super().setUp()
        (self.work / "server.py").write_text(SERVER)

    def wrap(self, *options: str, command: Optional[List[str]] = None) -> Wrapped:
        server = Wrapped(self.env, str(self.work), *options, "--", *(command or ["/usr/bin/python3", "server.py", self.marker]))
        self.addCleanup(server.close)
        return server

    def test_messages_pass_as_they_are(self) -> None:
        server = self.wrap()
        line = b'{ "jsonrpc":"2.0", "id":"a\\u00e9/", "method":"any/thing", "params":{"x":[1,2.50,1e3,"\\ud83c\\udf4e"]} }'
        server.send(line + b"\n")
        answer = server.read()
        self.assertEqual((answer["id"], answer["result"]["echo"]), (json.loads(line)["id"], json.loads(line)))
        # The very bytes: two blanks stand behind the version.
        server.send({"jsonrpc": "2.0", "id": 5, "method": "x"})
        assert server.process.stdout is not None
        self.assertTrue(os.read(server.process.stdout.fileno(), 4096).startswith(b'{"jsonrpc": "2.0",  "id": 5'))

    def test_hidden_tools(self) -> None:
        server = self.wrap("--deny-tool", "delete_*", "--log", str(self.base / "log"))
        listed = server.result("tools/list")
        self.assertEqual([tool["name"] for tool in listed["tools"]], ["read", "write", "big"])
        self.assertEqual((listed["tools"][0]["x"], listed["more"]), ([1, 2.5, None], "é"))
        refused = server.tool("delete_all")
        self.assertTrue(refused["isError"])
        self.assertIn("'delete_all' is not allowed here", refused["content"][0]["text"])
        self.assertEqual(server.tool("other"), {"called": "other"})
        logged = [json.loads(text) for text in (self.base / "log").read_text().splitlines()]
        self.assertEqual([(entry["tool"], entry["what"]) for entry in logged], [("delete_all", "refused"), ("other", "answered")])

    def test_only_tools_that_are_named(self) -> None:
        server = self.wrap("--allow-tool", "re*", "--allow-tool", "write", "--deny-tool", "w*")
        self.assertEqual([tool["name"] for tool in server.result("tools/list")["tools"]], ["read"])
        for tool in ("write", "other", "", "READ"):
            self.assertTrue(server.tool(tool)["isError"], tool)

    def test_lines_that_could_be_read_in_two_ways_do_not_pass(self) -> None:
        server = self.wrap("--deny-tool", "delete_all")
        for line in (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"x","params":{"name":"delete_all"}}',
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"delete_all"}}',
            b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_all"}}]',
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_all\\u0000"}}',
            b"{",
            b"\xff",
        ):
            server.send(line + b"\n")
            self.assertEqual(server.read()["error"]["code"], -32700, line)
        server.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u0064elete_all"}}\n')
        self.assertTrue(server.read()["result"]["isError"])
        # A notification has no answer, and is not passed on.
        server.send({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "delete_all"}})
        self.assertEqual(server.tool("other"), {"called": "other"})

    def test_the_server_is_in_a_jar(self) -> None:
        (self.base / "outside").write_text("secret")
        (self.base / "shown").write_text("shown")
        server = self.wrap("--ro", str(self.base / "shown"))
        self.assertTrue(server.tool("read", path=str(self.base / "outside"))["isError"])
        self.assertEqual(server.tool("read", path=str(self.base / "shown"))["content"][0]["text"], "shown")

    def test_an_answer_that_is_too_long(self) -> None:
        server = self.wrap("--answer-max", "64K")
        self.assertEqual(server.tool("big", bytes=60000), {})
        error = server.ask("tools/call", {"name": "big", "arguments": {"bytes": 1000000}})["error"]
        self.assertIn("longer than is allowed", error["message"])
        self.wait_for(lambda: server.process.poll() is not None, "the end")

    def test_a_server_that_talks_too_fast_waits(self) -> None:
        server = self.wrap("--rate", "200")
        self.assertEqual(server.tool("write", count=300), {"calls": 300})
        self.assertEqual(len(server.notes), 300)

    def test_the_end_of_the_server(self) -> None:
        server = self.wrap()
        first, second = server.begin("tools/call", {"name": "x"}), server.begin("leave")
        self.assertEqual(server.answer(first)["result"], {"called": "x"})
        self.assertEqual(server.answer(second)["error"]["message"].partition("] ")[2], "the server has ended")
        self.wait_for(lambda: server.process.poll() is not None, "the end")
        self.assertEqual(server.process.returncode, 7)

    def test_the_end_of_the_client(self) -> None:
        server = Wrapped(self.env, str(self.work), "--", "/usr/bin/python3", "server.py", self.marker)
        self.assertEqual(server.tool("x"), {"called": "x"})
        self.assertEqual(server.close(), 0)
        server = Wrapped(self.env, str(self.work), "--", "/usr/bin/python3", "server.py", self.marker)
        self.assertEqual(server.tool("x"), {"called": "x"})
        os.kill(server.process.pid, signal.SIGKILL)
        server.close()
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_a_server_that_does_not_leave_is_ended(self) -> None:
        server = Wrapped(self.env, str(self.work), "--", "/usr/bin/python3", "server.py", self.marker)
        server.begin("hang")
        self.wait_for(lambda: census.marked(self.marker), "the server")
        server.close()
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_what_cannot_be_started(self) -> None:
        for words, status in ((["--", "/no/such"], 125), (["--log", "/no/such/log", "--", "true"], 125), (["--rate", "0", "--", "true"], 125), ([], 125)):
            done = subprocess.run([paths.belljar(), "mcp-wrap", *words], stdin=subprocess.DEVNULL, capture_output=True, env=self.env, cwd=self.work, timeout=BOUND)
            self.assertEqual((done.returncode, done.stdout), (status, b""), (words, done))
            self.assertNotEqual(done.stderr, b"")


if __name__ == "__main__":
    unittest.main()
