# SPDX-License-Identifier: Apache-2.0
"""belljar-mcp-http: who is let in, what a session keeps to itself, how calls and sessions end, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
import unittest
from typing import Optional

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase
from harness.mcp import VERSION, HttpServer

HANG = {"name": "run", "arguments": {"command": "touch begun; exec sleep 300"}}


class HttpCase(JarCase):
    def server(self, *options: str) -> HttpServer:
        server = HttpServer(self.env, self.work, *options)
        self.addCleanup(server.close)
        return server

    def hang(self, connection: socket.socket, request: bytes) -> None:
        """Send a call of HANG, and wait until it has begun."""
        connection.sendall(request)
        self.wait_for(lambda: (self.work / "begun").exists(), "the command")

    def processes(self, server: HttpServer) -> "set[int]":
        """Those that the server has started itself."""
        pid = server.process.pid
        return {child for child in census.descendants(pid) if census.stat_fields(child)[1:2] == [str(pid)]}

    def sleepers(self) -> "list[int]":
        return [pid for pid in census.descendants(os.getpid()) if census.command_line(pid).startswith("sleep")]


class Door(HttpCase):
    """Nobody gets further than he may."""

    def test_who_is_refused(self) -> None:
        server = self.server()
        body = server.message("tools/list")
        foreign = f"http://127.0.0.1:{server.port}.example.org"
        cases = (
            (401, {"Authorization": None}),
            (401, {"Authorization": "Bearer "}),
            (401, {"Authorization": f"Bearer {server.token[:-1]}"}),
            (401, {"Authorization": f"Bearer {server.token}x"}),
            (401, {"Authorization": f"Bearer {'x' * len(server.token)}"}),
            (401, {"Authorization": f"Basic {server.token}"}),
            # A name of somebody else's that was made to mean this address.
            (403, {"Host": f"evil.example.org:{server.port}"}),
            (403, {"Host": "127.0.0.1"}),
            (403, {"Host": f"127.0.0.1:{server.port}, evil.example.org"}),
            (403, {"Origin": "https://evil.example.org"}),
            (403, {"Origin": "null"}),
            (403, {"Origin": foreign}),
            (403, {"Origin": f"https://localhost:{server.port}"}),
            (400, {"Host": None}),
            (400, {"Content_Length": None}),
            (400, {"Transfer_Encoding": "chunked"}),
            (400, {"Transfer_Encoding": "gzip", "Content_Length": None}),
            (400, {"X": "y\nAuthorization: Bearer z"}),
            (400, {"authorization": f"Bearer {server.token}"}),
            (413, {"Content_Length": str(9 << 20)}),
            (415, {"Content_Type": "text/plain"}),
            (415, {"Content_Type": None}),
            (406, {"Accept": "text/html"}),
            # Nothing is wrong with it but that there is no session.
            (400, {"Host": f"LOCALHOST:{server.port}", "Origin": f"http://localhost:{server.port}", "Content_Type": "application/json; charset=utf-8"}),
        )
        for status, changed in cases:
            answer = server.raw(server.request(body, **changed))
            self.assertEqual((answer.status, answer.headers["content-type"]), (status, "application/json"), changed)
        self.assertIn("Mcp-Session-Id is missing", answer.messages[0]["error"]["message"])
        good = server.request(body)
        for status, data in (
            (404, good.replace(b"/mcp", b"/", 1)),
            (404, good.replace(b"/mcp", b"/mcp/", 1)),
            (400, good.replace(b"HTTP/1.1", b"HTTP/1.0", 1)),
            (400, b"nonsense\r\n\r\n"),
            (400, b"GET /mcp HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
            (405, server.head("PUT", 0)),
            (405, server.head("OPTIONS", Origin=f"http://localhost:{server.port}")),
            (406, server.head("GET", Accept="application/json")),
            (400, server.head("GET", 5) + b"hello"),
            (400, server.head("GET")),
            (400, server.head("DELETE")),
            (404, server.head("DELETE", Mcp_Session_Id="x")),
        ):
            self.assertEqual(server.raw(data).status, status, data[:60])
        # None of it made a process.
        self.assertEqual(census.descendants(server.process.pid), [])

    def test_what_is_no_message(self) -> None:
        server = self.server()
        for body, code in (
            (b"{", -32700),
            (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"initialize"}', -32700),
            (b"[]", -32600),
            (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600),
            (b'{"jsonrpc":"2.0","id":1}', -32600),
            (b'{"jsonrpc":"2.0","id":{},"method":"initialize"}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        ):
            answer = server.raw(server.request(body))
            self.assertEqual((answer.status, answer.code), (400, code), body)
        self.assertEqual(census.descendants(server.process.pid), [])

    def test_whoever_shows_no_token_gives_way(self) -> None:
        server = self.server()
        crowd = [server.connect() for _ in range(330)]
        for connection in crowd:
            self.addCleanup(connection.close)
        crowd[-1].sendall(b"POST /mcp HTTP/1.1\r\n")
        self.assertNotEqual(server.open_session(), "")
        self.assertEqual(crowd[0].recv(1), b"")

    def test_requests_in_pieces_and_many_at_once(self) -> None:
        server = self.server()
        session = server.open_session()
        ping = server.request(b'{\n"jsonrpc": "2.0",\r\n "id": 7, "method": "ping"}', Mcp_Session_Id=session)
        with server.connect() as connection:
            for byte in ping:
                connection.sendall(bytes([byte]))
            self.assertEqual(server.read(connection).messages, [{"jsonrpc": "2.0", "id": 7, "result": {}}])
            connection.sendall(ping * 50)
            received = b""
            while received.count(b'"result"') < 50:
                received += connection.recv(65536)
            self.assertEqual(received.count(b"HTTP/1.1 200 OK"), 50)
            data = b'{"jsonrpc":"2.0","id":8,"method":"ping"}'
            chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (data[:5], data[5:])) + b"0\r\n\r\n"
            connection.sendall(server.head(Transfer_Encoding="chunked", Expect="100-continue", Mcp_Session_Id=session))
            self.assertEqual(connection.recv(64), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(chunked)
            self.assertEqual(server.read(connection).messages[0]["id"], 8)
            connection.sendall(server.request(data, Connection="close", Mcp_Session_Id=session))
            self.assertEqual(server.read(connection).headers["connection"], "close")
            self.assertEqual(connection.recv(1), b"")

    def test_a_slow_reader_of_the_last_answer_gets_all_of_it(self) -> None:
        server = self.server()
        (self.work / "big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(7 << 20))
        session = server.open_session()
        call = server.message("tools/call", {"name": "read_file", "arguments": {"path": "big.png"}})
        with server.connect() as connection:
            connection.sendall(server.request(call, Mcp_Session_Id=session, Connection="close"))
            connection.recv(1, socket.MSG_PEEK)
            time.sleep(3)  # more than the server waits for a client to leave
            answer = server.read(connection)
        self.assertEqual(len(answer.body), int(answer.headers["content-length"]))
        self.assertGreater(len(answer.body), 9 << 20)

    def test_of_too_much_that_is_sent_the_most_gives_way(self) -> None:
        server = self.server()
        body = bytes(8 << 20)
        crowd = [server.connect() for _ in range(18)]
        for connection in crowd:
            self.addCleanup(connection.close)
            connection.sendall(server.head("POST", len(body)) + body[:-1])
        refused = select.select(crowd, [], [], BOUND)[0]
        answer = server.read(refused[0])
        self.assertEqual((answer.status, answer.code), (503, -32000))
        self.assertNotEqual(server.open_session(), "")

    def test_the_token_in_a_file(self) -> None:
        path = self.base / "token"
        server = self.server("--token-file", str(path))
        token = path.read_text().strip()
        self.assertEqual((path.stat().st_mode & 0o777, server.token), (0o600, f"in {path}"))
        self.assertGreaterEqual(len(token), 43)
        server.token = token
        self.assertNotEqual(server.open_session(), "")
        again = self.server("--token-file", str(path))
        again.token = token
        self.assertNotEqual(again.open_session(), "")
        for content, mode in ((token, 0o640), ("short", 0o600), ("x" * 40 + "\x01", 0o600), ("", 0o600)):
            path.write_text(content)
            path.chmod(mode)
            with self.assertRaises(EOFError, msg=content):
                HttpServer(self.env, self.work, "--token-file", str(path))
        with self.assertRaises(EOFError):
            HttpServer(self.env, self.work, "--port", str(server.port))


class Sessions(HttpCase):
    """The older protocol."""

    def test_a_session_keeps_its_state_to_itself(self) -> None:
        server = self.server()
        one, two = server.open_session(), server.open_session()
        jar = server.tool(one, "jar_open").data["jar"]
        self.assertEqual(server.tool(one, "run", command="echo mine > /tmp/x", jar=jar).data["exit_code"], 0)
        self.assertEqual(server.tool(one, "run", command="echo own > /tmp/x").data["exit_code"], 0)
        self.assertEqual(server.tool(one, "run", command="cat /tmp/x", jar=jar).data["stdout"], "mine\n")
        self.assertEqual(server.tool(one, "run", command="cat /tmp/x").data["stdout"], "own\n")
        self.assertIn("there is no jar", str(server.tool(two, "run", command="true", jar=jar).messages))
        self.assertIn("there is no jar", str(server.modern_tool("run", command="true", jar=jar).messages))
        self.assertEqual(server.tool(two, "run", command="cat /tmp/x 2>/dev/null").data["stdout"], "")

    def test_beginning_and_end(self) -> None:
        server = self.server()
        session = server.open_session()
        told = server.raw(server.request({"jsonrpc": "2.0", "method": "notifications/initialized"}, Mcp_Session_Id=session))
        self.assertEqual((told.status, told.body), (202, b""))
        self.assertEqual(server.post("ping", MCP_Protocol_Version="2025-06-18", Mcp_Session_Id=session).status, 200)
        self.assertEqual(server.post("ping", MCP_Protocol_Version="1999-01-01", Mcp_Session_Id=session).status, 400)
        self.assertEqual(server.post("ping", Mcp_Session_Id=session[:-1]).status, 404)
        with server.connect() as listening, server.connect() as calling:
            listening.sendall(server.head("GET", Mcp_Session_Id=session))
            self.assertIn(b"Content-Type: text/event-stream", listening.recv(4096))
            self.hang(calling, server.request(server.message("tools/call", HANG), Mcp_Session_Id=session))
            self.assertEqual(server.raw(server.head("DELETE", Mcp_Session_Id=session)).status, 204)
            self.assertEqual(server.read(calling).status, 404)
            listening.settimeout(60)
            self.assertTrue(listening.recv(4096).endswith(b"0\r\n\r\n"))
        self.wait_for(lambda: not self.sleepers(), "the end of the command")
        self.assertEqual(server.post("ping", Mcp_Session_Id=session).status, 404)
        self.wait_for(lambda: not census.descendants(server.process.pid), "the end of the session's processes")

    def test_sessions_that_nobody_uses_end(self) -> None:
        server = self.server("--idle", "200ms")
        session = server.open_session()
        self.wait_for(lambda: not census.descendants(server.process.pid), "the end of the session")
        self.assertEqual(server.post("ping", Mcp_Session_Id=session).status, 404)

    def test_a_session_too_many_ends_the_one_idle_longest(self) -> None:
        server = self.server()
        first, second = server.open_session(), server.open_session()
        self.assertEqual(server.post("ping", Mcp_Session_Id=first).status, 200)
        for _ in range(31):
            server.open_session()
        self.assertEqual(server.post("ping", Mcp_Session_Id=first).status, 200)
        self.assertEqual(server.post("ping", Mcp_Session_Id=second).status, 404)

    def test_progress_comes_as_events(self) -> None:
        server = self.server()
        session = server.open_session()
        call = {"name": "run", "arguments": {"command": "echo one; sleep 0.4; echo two; sleep 0.1"}, "_meta": {"progressToken": "p"}}
        answer = server.post("tools/call", call, Mcp_Session_Id=session)
        self.assertEqual((answer.status, answer.headers["content-type"]), (200, "text/event-stream"))
        told = [message["params"] for message in answer.messages[:-1]]
        self.assertEqual({params["progressToken"] for params in told}, {"p"})
        self.assertIn("two", [params["message"] for params in told])
        self.assertEqual(answer.data["stdout"], "one\ntwo\n")
        # Who takes no events gets one text.
        answer = server.post("tools/call", call, Mcp_Session_Id=session, Accept="application/json")
        self.assertEqual((answer.headers["content-type"], answer.data["stdout"]), ("application/json", "one\ntwo\n"))

    def test_a_call_is_cancelled_by_word_or_by_hanging_up(self) -> None:
        server = self.server()
        session = server.open_session()
        message = server.message("tools/call", HANG)
        with server.connect() as connection:
            self.hang(connection, server.request(message, Mcp_Session_Id=session))
            word = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
            self.assertEqual(server.raw(server.request(word, Mcp_Session_Id=session)).status, 202)
            answer = server.read(connection)
            self.assertEqual((answer.status, answer.body), (202, b""))
        self.wait_for(lambda: not self.sleepers(), "the end of the command")
        (self.work / "begun").unlink()
        with server.connect() as connection:
            self.hang(connection, server.request(server.message("tools/call", HANG), Mcp_Session_Id=session))
        self.wait_for(lambda: not self.sleepers(), "the end of the command")
        self.assertEqual(server.tool(session, "run", command="echo next").data["stdout"], "next\n")

    def test_a_server_that_is_killed_leaves_nothing(self) -> None:
        server = self.server()
        session = server.open_session()
        with server.connect() as one, server.connect() as other:
            self.hang(one, server.request(server.message("tools/call", HANG), Mcp_Session_Id=session))
            other.sendall(server.modern("tools/call", HANG))
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
        self.assertEqual(census.wait_until_none(marker=self.marker), [])


class Stateless(HttpCase):
    """2026-07-28."""

    def test_headers_repeat_what_the_body_says(self) -> None:
        server = self.server()
        call = {"name": "list_files", "arguments": {}}
        self.assertEqual(server.raw(server.modern("tools/call", call)).status, 200)
        self.assertEqual(server.raw(server.modern("tools/call", call, Mcp_Name="=?base64?bGlzdF9maWxlcw==?=", Mcp_Session_Id="any")).status, 200)
        cases: "tuple[dict[str, Optional[str]], ...]" = (
            {"Mcp_Name": None},
            {"Mcp_Name": "run"},
            {"Mcp_Name": "LIST_FILES"},
            {"Mcp_Name": "=?base64?cnVu?="},
            {"Mcp_Method": None},
            {"Mcp_Method": "tools/list"},
            {"MCP_Protocol_Version": None},
            {"MCP_Protocol_Version": "2025-11-25"},
        )
        for changed in cases:
            answer = server.raw(server.modern("tools/call", call, **changed))
            self.assertEqual((answer.status, answer.code), (400, -32020), changed)
        for params in ({"_meta": {}}, {"_meta": {"io.modelcontextprotocol/protocolVersion": VERSION}}):
            answer = server.raw(server.modern("tools/list", params))
            self.assertEqual((answer.status, answer.code), (400, -32602), params)
        for method, status, code in (("ping", 404, -32601), ("initialize", 404, -32601), ("no/such", 404, -32601)):
            answer = server.raw(server.modern(method))
            self.assertEqual((answer.status, answer.code), (status, code), method)
        future = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}}
        answer = server.raw(server.modern("tools/list", future, MCP_Protocol_Version="2099-01-01"))
        self.assertEqual((answer.status, answer.code), (400, -32022))
        word = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        self.assertEqual(server.raw(server.request(word, MCP_Protocol_Version=VERSION)).status, 202)

    def test_only_what_has_a_name_stays(self) -> None:
        server = self.server()
        self.assertEqual(server.modern_tool("run", command="echo x > /tmp/x; echo host > kept").data["exit_code"], 0)
        self.assertEqual(server.modern_tool("run", command="cat kept; cat /tmp/x 2>/dev/null").data["stdout"], "host\n")
        jar = server.modern_tool("jar_open").data["jar"]
        server.modern_tool("run", command="echo x > /tmp/x", jar=jar)
        self.assertEqual(server.modern_tool("run", command="cat /tmp/x", jar=jar).data["stdout"], "x\n")
        code = {"language": "bash", "code": "echo [$v]; v=5"}
        self.assertEqual([server.modern_tool("run_code", **code).data["stdout"] for _ in range(2)], ["[]\n", "[]\n"])
        self.assertEqual([server.modern_tool("run_code", jar=jar, **code).data["stdout"] for _ in range(2)], ["[]\n", "[5]\n"])
        self.assertNotIn("read_file with", json.dumps(server.modern_tool("run", command="seq 9999").messages))
        self.assertEqual(server.modern_tool("policy_show").data["jar"], "main")

    def test_a_jar_is_a_process_that_holds_nobody_up(self) -> None:
        server = self.server()
        server.modern_tool("run", command="true")
        before = self.processes(server)
        jar = server.modern_tool("jar_open").data["jar"]
        (process,) = self.processes(server) - before
        os.kill(process, signal.SIGSTOP)  # as one that waits for a large diff
        with server.connect() as connection:
            connection.sendall(server.modern("tools/call", {"name": "run", "arguments": {"command": "echo late", "jar": jar}}))
            other = server.modern_tool("jar_open").data["jar"]
            self.assertEqual(server.modern_tool("run", command="echo free", jar=other).data["stdout"], "free\n")
            self.assertEqual(server.modern_tool("run", command="echo none").data["stdout"], "none\n")
            os.kill(process, signal.SIGCONT)
            self.assertEqual(server.read(connection).data["stdout"], "late\n")
        self.assertIn("there is no jar", str(server.modern_tool("run", command="true", jar=jar[:-1]).messages))
        self.assertEqual(server.post("ping", Mcp_Session_Id=jar).status, 404)  # a jar is no session
        self.assertIn("tighten", str(server.modern_tool("jar_open", tighten={"net": "host"}).messages))
        for name in (jar, other):
            self.assertTrue(server.modern_tool("jar_close", jar=name).data["closed"])
        self.wait_for(lambda: self.processes(server) == before, "the end of the jars' processes")
        self.assertIn("there is no jar", str(server.modern_tool("run", command="true", jar=jar).messages))

    def test_a_jar_whose_name_nobody_heard_ends(self) -> None:
        server = self.server()
        os.kill(server.process.pid, signal.SIGSTOP)  # so that the request and the end of its client come together
        with server.connect() as connection:
            connection.sendall(server.modern("tools/call", {"name": "jar_open", "arguments": {}}))
        os.kill(server.process.pid, signal.SIGCONT)
        self.assertEqual(server.raw(server.head("PUT", 0)).status, 405)
        self.wait_for(lambda: not census.descendants(server.process.pid), "the end of the jar")

    def test_jars_that_nobody_uses_end(self) -> None:
        server = self.server("--idle", "200ms")
        jar = server.modern_tool("jar_open").data["jar"]
        self.wait_for(lambda: not census.descendants(server.process.pid), "the end of the jar")
        self.assertIn("there is no jar", str(server.modern_tool("run", command="true", jar=jar).messages))

    def test_changes_that_no_call_could_find_are_not_made(self) -> None:
        server = self.server("--cow")
        for tool, arguments in (("run", {"command": "echo x > new"}), ("write_file", {"path": "new", "content": "x"}), ("diff", {})):
            answer = server.modern_tool(tool, **arguments).messages[-1]["result"]
            self.assertTrue(answer["isError"] and "jar_open" in answer["content"][0]["text"], answer)
        jar = server.modern_tool("jar_open").data["jar"]
        server.modern_tool("write_file", path="new", content="x", jar=jar)
        self.assertEqual(server.modern_tool("diff", jar=jar).data["changes"][0]["path"], "new")
        self.assertFalse((self.work / "new").exists())

    def test_requests_of_the_same_id_do_not_meet(self) -> None:
        server = self.server()
        with server.connect() as one, server.connect() as other:
            for connection, word in ((one, "one"), (other, "other")):
                server.number = 7
                connection.sendall(server.modern("tools/call", {"name": "run", "arguments": {"command": f"sleep 0.1; echo {word}"}}))
            self.assertEqual([server.read(connection).data["stdout"] for connection in (one, other)], ["one\n", "other\n"])

    def test_hanging_up_ends_the_call(self) -> None:
        server = self.server()
        with server.connect() as connection:
            self.hang(connection, server.modern("tools/call", HANG))
        self.wait_for(lambda: not self.sleepers(), "the end of the command")


if __name__ == "__main__":
    unittest.main()
