# SPDX-License-Identifier: Apache-2.0
"""`belljar mcp`: tools for agents, in both eras of the protocol; what a client, a command and a piece of code may do wrong."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import signal
import unittest
from pathlib import Path

from harness import census, host, paths
from harness.bounds import BOUND
from harness.case import JarCase
from harness.mcp import META, VERSION, HttpServer, Server, joined, said

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


class McpCase(JarCase):
    def server(self, *options: str) -> Server:
        server = Server(self.env, self.work, *options)
        self.addCleanup(server.close)
        return server


class Protocol(McpCase):
    def test_the_handshake(self) -> None:
        server = self.server()
        for asked, told in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2031-01-01", "2025-11-25")):
            result = server.result("initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
            self.assertEqual(result["protocolVersion"], told)
            self.assertEqual(result["serverInfo"]["name"], "belljar")
            self.assertNotIn("resultType", result)
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.assertEqual(server.result("ping"), {})
        self.assertNotIn("ttlMs", server.result("tools/list"))

    def test_without_a_handshake(self) -> None:
        server = self.server()
        meta = {META + "protocolVersion": VERSION, META + "clientCapabilities": {}}
        result = server.result("server/discover", {"_meta": meta})
        self.assertEqual(result["resultType"], "complete")
        self.assertIn(VERSION, result["supportedVersions"])
        self.assertEqual(result["_meta"][META + "serverInfo"]["name"], "belljar")
        listed = server.result("tools/list", {"_meta": meta})
        self.assertEqual((listed["resultType"], listed["cacheScope"]), ("complete", "private"))
        self.assertGreater(listed["ttlMs"], 0)
        called = server.result("tools/call", {"name": "run", "arguments": {"command": "echo hi"}, "_meta": meta})
        self.assertEqual((called["resultType"], called["structuredContent"]["stdout"]), ("complete", "hi\n"))

    def test_a_version_of_the_future(self) -> None:
        error = self.server().ask("tools/list", {"_meta": {META + "protocolVersion": "2099-01-01"}})["error"]
        self.assertEqual((error["code"], error["data"]), (-32022, {"supported": [VERSION], "requested": "2099-01-01"}))

    def test_what_is_no_request(self) -> None:
        server = self.server()
        for line, code in (
            (b"nonsense\n", -32700),
            (b'{"jsonrpc":"2.0","id":1,"method":"x"\n', -32700),
            (b"[]\n", -32600),
            (b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32600),
            (b'{"jsonrpc":"2.0","id":7}\n', -32600),
            (b"x" * (9 << 20) + b"\n", -32700),
        ):
            server.send(line)
            self.assertEqual(server.read()["error"]["code"], code, line[:80])
        # Nobody waits for an answer to these.
        server.send(b'\n\r\n{"jsonrpc":"2.0","method":"no/such"}\n{"jsonrpc":"2.0","id":5,"result":{}}\n')
        self.assertEqual(server.ask("no/such")["error"]["code"], -32601)
        self.assertEqual(server.ask("tools/call", {"name": "no_such"})["error"]["code"], -32602)
        self.assertEqual(server.ask("tools/call", {"name": "run", "arguments": []})["error"]["code"], -32602)
        server.send({"jsonrpc": "2.0", "id": "a \"b\"", "method": "ping"})
        self.assertEqual(server.read(), {"jsonrpc": "2.0", "id": "a \"b\"", "result": {}})

    def test_a_line_in_many_pieces_and_many_lines_in_one(self) -> None:
        server = self.server()
        for byte in b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n':
            server.send(bytes([byte]))
        self.assertEqual(server.read()["id"], 1)
        server.send(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\r\n' % number for number in range(200)))
        self.assertEqual([server.read()["id"] for _ in range(200)], list(range(200)))

    def test_schemas_and_annotations_are_those_of_the_policy(self) -> None:
        tools = {tool["name"]: tool for tool in self.server().result("tools/list")["tools"]}
        self.assertEqual(
            set(tools),
            {"run", "run_code", "read_file", "write_file", "edit_file", "list_files", "jar_open", "jar_close", "policy_show"},
        )
        self.assertTrue(tools["run"]["annotations"]["destructiveHint"])
        self.assertFalse(tools["run"]["annotations"]["openWorldHint"])
        self.assertTrue(tools["read_file"]["annotations"]["readOnlyHint"])
        for tool in tools.values():
            self.assertEqual(tool["inputSchema"]["type"], "object")
        tools = {tool["name"]: tool for tool in self.server("--policy", "readonly").result("tools/list")["tools"]}
        self.assertTrue(tools["write_file"]["annotations"]["readOnlyHint"])
        tools = {tool["name"]: tool for tool in self.server("--net", "host").result("tools/list")["tools"]}
        self.assertTrue(tools["run"]["annotations"]["openWorldHint"])

    def test_results_fit_their_schemas(self) -> None:
        server = self.server("--cow", "--allow-apply", "*")
        (self.work / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n0000")
        kinds = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict, "null": type(None)}
        schemas = {tool["name"]: tool["outputSchema"] for tool in server.result("tools/list")["tools"]}
        jar = server.data("jar_open")["jar"]
        for tool, arguments in (
            ("run", {"command": "kill -9 $$"}),
            ("run_code", {"language": "bash", "code": "false"}),
            ("write_file", {"path": "a", "content": "one"}),
            ("edit_file", {"path": "a", "old_text": "one", "new_text": "two"}),
            ("read_file", {"path": "a"}),
            ("read_file", {"path": "a.png"}),
            ("list_files", {}),
            ("diff", {}),
            ("apply", {}),
            ("policy_show", {}),
            ("jar_open", {}),
            ("jar_close", {"jar": jar}),
        ):
            data, schema = server.data(tool, **arguments), schemas[tool]
            self.assertLessEqual(set(schema["required"]), set(data), tool)
            for name in set(schema["properties"]) & set(data):
                types = schema["properties"][name]["type"]
                self.assertIsInstance(data[name], tuple(kinds[word] for word in ([types] if isinstance(types, str) else types)), (tool, name))
        self.assertEqual(set(schemas), {"run", "run_code", "read_file", "write_file", "edit_file", "list_files", "diff", "apply", "jar_open", "jar_close", "policy_show"})

    def test_an_option_that_is_wrong_is_told_at_once(self) -> None:
        server = Server(self.env, self.work, "--no-such-option")
        self.assertEqual(server.close(), 125)


class Run(McpCase):
    def test_a_command(self) -> None:
        result = self.server().tool("run", command="echo out; echo err >&2; cat; exit 3", stdin="in\n")
        data = result["structuredContent"]
        self.assertEqual((data["stdout"], data["stderr"], data["exit_code"], data["outcome"]), ("out\nin\n", "err\n", 3, "exited"))
        self.assertFalse(result["isError"])
        self.assertEqual([block["text"] for block in result["content"][:-1]], ["out\nin\n", "err\n"])
        self.assertEqual(said(result), "above: stdout, 2 lines; then stderr, 1 line\nexit status 3")
        self.assertEqual(said(self.server().tool("run", command="true")), "exit status 0")

    def test_limits_are_named(self) -> None:
        server = self.server("--timeout", "20s", "--output", "4K")
        result = server.tool("run", command="sleep 60", timeout_seconds=0.2)
        self.assertTrue(result["isError"])
        self.assertEqual(result["structuredContent"]["outcome"], "timeout")
        self.assertEqual(said(result), "limit reached: timeout, 200ms; this call asked for it with timeout_seconds, and can ask for more\nended: timeout")
        flood = said(server.tool("run", command="seq 9999"))
        self.assertIn("limit reached: output, 4K; the user can allow more with --output 8K", flood)
        # A jar that was opened with less is the model's own to open again.
        jar = server.data("jar_open", tighten={"output": "1K"})["jar"]
        self.assertIn("limit reached: output, 1K; jar_open was given it in tighten", said(server.tool("run", command="seq 9999", jar=jar)))
        # No more than the server's own.
        server = self.server("--timeout", "300ms")
        result = server.tool("run", command="sleep 60", timeout_seconds=50)
        self.assertEqual(said(result), "limit reached: timeout, 300ms; the user can allow more with --timeout 600ms\nended: timeout")
        result = server.tool("run_code", language="bash", code="sleep 60", timeout_seconds=50)
        self.assertIn("limit reached: timeout, 300ms; the user can allow more with --timeout 600ms\n", said(result))

    def test_a_refusal_says_what_would_allow_it(self) -> None:
        host.need("userns")
        server = self.server("--allow-net", "allowed.example")
        result = server.tool("run", command="getent hosts other.example")
        self.assertEqual(result["structuredContent"]["denied"][0]["what"], "other.example")
        self.assertRegex(said(result), r'refused: "other.example": .*; the user can allow it with --allow-net other.example; trying again unchanged will not help')

    def test_long_output_is_shortened_and_can_be_read(self) -> None:
        server = self.server()
        text = server.text("run", command="seq 100000")
        self.assertLess(len(text), 20000)
        self.assertTrue(text.startswith("1\n2\n"), text[:200])
        mark = re.escape(text.splitlines()[-1].partition(" exit status 0")[0])
        self.assertRegex(text, rf"\n99999\n100000\n{mark} exit status 0\n$")
        self.assertRegex(text, rf"\n{mark} \d+ lines, \d+ bytes left out here; all of it: read_file with path \"/tmp/belljar-stdout-1.txt\"\n")
        rest = server.data("read_file", path="/tmp/belljar-stdout-1.txt", first_line=50000, lines=2)
        self.assertEqual((rest["content"], rest["next_line"]), ("50000\n50001\n", 50002))

    def test_output_that_is_no_text(self) -> None:
        self.assertEqual(self.server().data("run", command=r"printf 'a\377b'")["stdout"], "a\ufffdb")

    def test_many_at_once(self) -> None:
        server = self.server()
        numbers = [server.begin("tools/call", {"name": "run", "arguments": {"command": f"echo {i}"}}) for i in range(60)]
        answers = {}
        while len(answers) < len(numbers):
            message = server.read()
            answers[message["id"]] = message["result"]["structuredContent"]["stdout"]
        self.assertEqual([answers[number] for number in numbers], [f"{i}\n" for i in range(60)])

    def test_progress_comes_before_the_end(self) -> None:
        server = self.server()
        arguments = {"command": "echo one; sleep 0.6; echo two; sleep 0.6; echo three"}
        server.result("tools/call", {"name": "run", "arguments": arguments, "_meta": {"progressToken": "p"}})
        told = [note["params"] for note in server.notes if note.get("method") == "notifications/progress"]
        self.assertTrue(all(params["progressToken"] == "p" for params in told), told)
        self.assertEqual([params["progress"] for params in told], sorted(params["progress"] for params in told))
        self.assertIn("two", [params["message"] for params in told])
        server.notes.clear()
        server.tool("run", command="echo quiet")
        self.assertEqual(server.notes, [])

    def test_cancelling_ends_the_command(self) -> None:
        server = self.server()
        number = server.begin("tools/call", {"name": "run", "arguments": {"command": f"touch begun; exec sleep 60 # {self.marker}"}})
        self.wait_for(lambda: (self.work / "begun").exists(), "it")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, "reason": "enough"}})
        self.assertEqual(server.data("run", command="echo next")["stdout"], "next\n")
        self.wait_for(lambda: not census.marked(self.marker), "it")
        self.assertEqual([note for note in server.notes if note.get("id") == number], [])
        # One that nobody knows does nothing.
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4711}})
        self.assertEqual(server.result("ping"), {})

    def test_hanging_up_ends_everything(self) -> None:
        server = Server(self.env, self.work)
        server.begin("tools/call", {"name": "run", "arguments": {"command": f"touch begun; sleep 60; : {self.marker}"}})
        self.wait_for(lambda: (self.work / "begun").exists(), "it")
        self.assertEqual(server.close(), 0)
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_a_server_that_is_killed_leaves_nothing(self) -> None:
        server = Server(self.env, self.work)
        server.begin("tools/call", {"name": "run_code", "arguments": {"language": "bash", "code": f"touch begun; sleep 60; : {self.marker}"}})
        self.wait_for(lambda: (self.work / "begun").exists(), "it")
        os.kill(server.process.pid, signal.SIGKILL)
        server.close()
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_arguments_that_are_wrong(self) -> None:
        server = self.server()
        for arguments, words in (
            ({}, "needs 'command', a string"),
            ({"command": 5}, "needs 'command', a string"),
            ({"comand": "true"}, "no argument 'comand'"),
            ({"command": "true", "properties": {}}, "no argument 'properties'"),
            ({"command": "true", "description": ""}, "no argument 'description'"),
            ({"command": "true", "timeout_seconds": "5"}, "must be a number"),
            ({"command": "true", "timeout_seconds": -1}, "must be a number"),
            ({"command": "true", "jar": "jar-none"}, "there is no jar 'jar-none'"),
        ):
            result = server.tool("run", **arguments)
            self.assertTrue(result["isError"], arguments)
            self.assertIn(words, said(result))


class Code(McpCase):
    def code(self, server: Server, language: str, code: str, **arguments: object) -> "dict[str, object]":
        return server.data("run_code", language=language, code=code, **arguments)

    def said(self, server: Server, language: str, code: str, **arguments: object) -> str:
        result = server.tool("run_code", language=language, code=code, **arguments)
        self.assertTrue(result["isError"])
        return said(result)

    def test_python_keeps_its_variables(self) -> None:
        server = self.server()
        self.assertEqual(self.code(server, "python", "x = 5\nprint('a')\nx * 2")["value"], "10")
        data = self.code(server, "python", "import sys\nprint('e', file=sys.stderr)\nx")
        self.assertEqual((data["value"], data["stderr"], data["stdout"]), ("5", "e\n", ""))
        data = self.code(server, "python", "def f():\n    return 1 / 0\nf()")
        self.assertIn("return 1 / 0", str(data["error"]))
        self.assertNotIn("eval(", str(data["error"]))
        self.assertEqual(self.code(server, "python", "import asyncio\nawait asyncio.sleep(0, result=7)")["value"], "7")
        self.assertIn("SystemExit: 3\n", str(self.code(server, "python", "raise SystemExit(3)")["error"]))
        self.assertEqual(self.code(server, "python", "x")["value"], "5")

    def test_what_code_leaves_for_other_programs_is_told(self) -> None:
        """And what a process that it left running plants later, when the jar is closed."""
        server = self.server()
        for language, code, name in (("python", "open('.envrc', 'w').close()", ".envrc"), ("bash", "echo x > AGENTS.md", "AGENTS.md")):
            result = server.tool("run_code", language=language, code=code)
            self.assertIn(f'risky: "{self.work}/{name}": it appeared', said(result))
            self.assertEqual([entry["path"] for entry in result["structuredContent"]["risky"]], [str(self.work / name)])
            self.assertEqual(self.code(server, language, "1")["risky"], [])
        server.tool("run_code", language="bash", code="exit", timeout_seconds=20)
        jar = server.data("jar_open")["jar"]
        self.code(server, "bash", "(while ! test -e go; do sleep 0.01; done; echo x > CLAUDE.md; touch went) & true", jar=jar)
        (self.work / "go").touch()
        self.wait_for((self.work / "went").exists, "the process")
        result = server.tool("jar_close", jar=jar)
        self.assertIn(f'risky: "{self.work}/CLAUDE.md": it appeared', said(result))

    def test_python_that_takes_too_long_keeps_its_variables(self) -> None:
        server = self.server()
        self.code(server, "python", "x = 5")
        result = server.tool("run_code", language="python", code="import time\ntime.sleep(60)", timeout_seconds=0.2)
        self.assertTrue(result["isError"])
        self.assertIn("limit reached: timeout, 200ms; this call asked for it with timeout_seconds, and can ask for more\nthe variables are kept\n", said(result))
        self.assertEqual(self.code(server, "python", "x")["value"], "5")

    def test_code_that_does_not_listen_is_ended(self) -> None:
        server = self.server()
        deaf = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)"
        self.assertIn("variables are gone", self.said(server, "python", deaf, timeout_seconds=0.2))
        self.assertEqual(self.code(server, "python", "1 + 1")["value"], "2")
        self.assertIn("variables are gone", self.said(server, "bash", "sleep 60", timeout_seconds=0.2))
        self.assertEqual(self.code(server, "bash", "echo back")["stdout"], "back\n")

    def test_secrets_are_redacted_wherever_they_come_out(self) -> None:
        server = self.server("--redact", "hunter-2222")
        (self.work / "file").write_text("a hunter-2222 b\n")
        said = [
            server.tool("run", command="cat file"),
            server.tool("read_file", path="file"),
            server.tool("run_code", language="bash", code="printf 'hunter-'; sleep 0.1; echo '2222'; cat file >&2"),
            server.tool("run_code", language="python", code="print('hunter' + '-2222', end='')\n'<hunter' + '-2222>'"),
            server.tool("run_code", language="python", code="raise ValueError('hunter' + '-2222')"),
            server.tool("run_code", language="bash", code="printf hunter-; exit"),
        ]
        for result in said[:-1]:
            self.assertNotIn("hunter-2222", json.dumps(result))
            self.assertIn("[REDACTED]", joined(result))
            self.assertIn("[REDACTED]", json.dumps(result["structuredContent"]))
        # What only begins like one is not lost.
        self.assertEqual(said[-1]["structuredContent"]["stdout"], "hunter-")
        self.assertEqual(server.data("run_code", language="bash", code="printf hunter-")["stdout"], "hunter-")
        self.assertEqual(server.data("run_code", language="bash", code="echo 2222")["stdout"], "2222\n")
        arguments = {"language": "bash", "code": "echo hunter-2222; sleep 0.5; echo hunter-2222"}
        server.result("tools/call", {"name": "run_code", "arguments": arguments, "_meta": {"progressToken": "p"}})
        self.assertNotIn("hunter-2222", json.dumps(server.notes))
        # A jar that was tightened has more to hide.
        jar = server.data("jar_open", tighten={"redact": ["hunter-2222", "other-3333"]})["jar"]
        self.assertEqual(server.data("run_code", language="bash", code="echo other-3333 hunter-2222", jar=jar)["stdout"], "[REDACTED] [REDACTED]\n")

    def test_long_output_of_code_is_shortened_and_can_be_read(self) -> None:
        server = self.server()
        result = server.tool("run_code", language="bash", code="seq 100000")
        self.assertLess(len(json.dumps(result)), 40000)
        self.assertIn('left out here; all of it: read_file with path "/tmp/belljar-stdout-1.txt"\n', joined(result))
        self.assertEqual(server.data("read_file", path="/tmp/belljar-stdout-1.txt", first_line=50000, lines=1)["content"], "50000\n")
        long = server.tool("run_code", language="python", code="'x' * 100000")
        self.assertLess(len(json.dumps(long)), 40000)

    def test_all_that_code_answers_is_held_to_the_owners_output(self) -> None:
        server = self.server("--output", "100")
        for code, most in (
            ("'x' * 5000", {"value": 100}),
            ("'\u00e9' * 5000", {"value": 100}),
            ("raise ValueError('x' * 5000)", {"error": 100}),
            ("import sys; print('a' * 60); print('b' * 60, file=sys.stderr)", {"stdout": 61, "stderr": 61}),
        ):
            result = server.tool("run_code", language="python", code=code)
            data = result["structuredContent"]
            self.assertLessEqual(sum(len((data[name] or "").encode()) for name in most), 100, data)
            self.assertGreater(sum(len((data[name] or "").encode()) for name in most), 90, data)
            self.assertRegex(joined(result), r"limit of output allows were left out|bytes more were written and are lost")
        self.assertEqual(server.data("run_code", language="python", code="1 + 1")["value"], "2")

    def test_bash_keeps_its_state(self) -> None:
        server = self.server()
        data = self.code(server, "bash", "y=3; cd /; f() { echo f$1; }; echo a; false")
        self.assertEqual((data["stdout"], data["exit_code"]), ("a\n", 1))
        self.assertEqual(self.code(server, "bash", 'f "$y"; pwd; cat; echo "quoted \\" and $(echo sub)"')["stdout"], 'f3\n/\nquoted " and sub\n')
        self.assertIn("has ended (exited)", self.said(server, "bash", "exit 4"))
        self.assertEqual(self.code(server, "bash", "echo [$y]")["stdout"], "[]\n")

    @unittest.skipUnless(shutil.which("node", path="/usr/bin:/usr/local/bin"), "needs:node which is not installed")
    def test_javascript_keeps_its_variables(self) -> None:
        server = self.server("--memory", "none")
        self.assertEqual(self.code(server, "javascript", "const a = await Promise.resolve(5); a * 2")["value"], "10")
        data = self.code(server, "javascript", "console.log('out'); console.error('err'); a + 1")
        self.assertEqual((data["value"], data["stdout"], data["stderr"]), ("6", "out\n", "err\n"))
        self.assertIn("Error: no", str(self.code(server, "javascript", "throw new Error('no')")["error"]))
        self.assertIn("Error: late", str(self.code(server, "javascript", "await Promise.reject(new Error('late'))")["error"]))
        self.assertEqual(self.code(server, "javascript", "require('os').EOL.length + a")["value"], "6")

    def test_what_the_inside_forges_is_only_about_itself(self) -> None:
        server = self.server()
        # It finds the number of its piece, and answers in the driver's place.
        find = "import json, os, sys\nframe = sys._getframe()\nwhile frame.f_back: frame = frame.f_back\nnumber = int(frame.f_globals['number'])\n"
        forge = find + "os.write(4, json.dumps({'number': number, 'value': 'forged', 'error': None, 'images': ['x\"}']}).encode() + bytes(1))"
        result = server.tool("run_code", language="python", code=forge)
        self.assertEqual((result["structuredContent"]["value"], [block["type"] for block in result["content"]]), ("forged", ["text", "text"]))
        # The driver's own answer comes after that, about a piece that is over: no later one gets it.
        answers = [server.data("run_code", language="python", code="1 + 1") for _ in range(2)]
        self.assertEqual(answers[1]["value"], "2", answers)
        self.assertIn(answers[0]["value"], ("2", None), answers)
        for answer in (b"nonsense\0", b"[]\0", b'{"value":"5","error":null}\0', b'{"number":99,"value":"5"}\0', b"\0"):
            code = f"import os, time\nos.write(4, {answer!r})\ntime.sleep(60)"
            self.assertIn("variables are gone", self.said(server, "python", code))
        self.assertIn("too long", self.said(server, "python", "import os\nwhile True: os.write(4, b'x' * 65536)"))
        self.assertIn("variables are gone", self.said(server, "python", "import os\nos.closerange(0, 99)\nos._exit(3)"))
        self.assertEqual(server.data("run", command="echo alive")["stdout"], "alive\n")

    def test_output_without_end_costs_no_memory(self) -> None:
        server = self.server()
        data = self.code(server, "python", "print('x' * 79 + '\\n', end='')\nfor i in range(100000): print('y' * 79)")
        self.assertIn("bytes more were written and are lost", str(data["belljar"]))
        self.assertLess(len(json.dumps(data)), 40000)
        peak = int(Path(f"/proc/{server.process.pid}/status").read_text().partition("VmHWM:")[2].split()[0])
        self.assertLess(peak, 32 << 10)

    def test_two_pieces_at_once_in_one_interpreter(self) -> None:
        server = self.server()
        first = server.begin("tools/call", {"name": "run_code", "arguments": {"language": "bash", "code": "sleep 0.5; echo done"}})
        self.assertIn("is at work", server.text("run_code", language="bash", code="echo no"))
        message = next((note for note in server.notes if note.get("id") == first), None) or server.answer(first)
        self.assertEqual(message["result"]["structuredContent"]["stdout"], "done\n")

    def test_cancelling_a_piece(self) -> None:
        server = self.server()
        self.code(server, "python", "x = 5")
        number = server.begin("tools/call", {"name": "run_code", "arguments": {"language": "python", "code": "open('begun', 'w')\nimport time\ntime.sleep(60)"}})
        self.wait_for(lambda: (self.work / "begun").exists(), "it")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        self.wait_for(lambda: "at work" not in server.text("run_code", language="python", code="x"), "the end of the piece")
        self.assertEqual(server.data("run_code", language="python", code="x")["value"], "5")


class Files(McpCase):
    def test_write_read_edit_list(self) -> None:
        server = self.server()
        server.tool("write_file", path="new/dir/a.txt", content="one\ntwo\ntwo\nfour")
        self.assertEqual((self.work / "new/dir/a.txt").read_text(), "one\ntwo\ntwo\nfour")
        self.assertIn("2 times", server.text("edit_file", path="new/dir/a.txt", old_text="two", new_text="2"))
        self.assertIn("is not in", server.text("edit_file", path="new/dir/a.txt", old_text="three", new_text="3"))
        self.assertIn("is empty", server.text("edit_file", path="new/dir/a.txt", old_text="", new_text="3"))
        server.tool("edit_file", path="new/dir/a.txt", old_text="two", new_text="2", replace_all=True)
        os.chmod(self.work / "new/dir/a.txt", 0o750)
        server.tool("edit_file", path="new/dir/a.txt", old_text="one\n2", new_text="1\n2")
        self.assertEqual((self.work / "new/dir/a.txt").read_text(), "1\n2\n2\nfour")
        self.assertEqual((self.work / "new/dir/a.txt").stat().st_mode & 0o777, 0o750)
        data = server.data("read_file", path="new/dir/a.txt", first_line=2, lines=2)
        self.assertEqual((data["content"], data["is_all"], data["next_line"]), ("2\n2\n", False, 4))
        self.assertTrue(server.data("read_file", path="new/dir/a.txt")["is_all"])
        (self.work / "link").symlink_to("nowhere")
        entries = {entry["name"]: entry["type"] for entry in server.data("list_files")["entries"]}
        self.assertEqual(entries, {"new": "directory", "link": "link"})

    def test_images_and_other_bytes(self) -> None:
        (self.work / "a.png").write_bytes(PNG)
        (self.work / "a.bin").write_bytes(b"\x00\x01\x02")
        server = self.server()
        content = server.tool("read_file", path="a.png")["content"]
        self.assertEqual((content[0]["type"], content[0]["mimeType"], base64.b64decode(content[0]["data"])), ("image", "image/png", PNG))
        self.assertIn('"a.png": image/png', content[-1]["text"])
        self.assertIn("is not text", server.text("read_file", path="a.bin"))

    def test_nothing_outside_the_jar(self) -> None:
        (self.base / "secret").write_text("secret")
        (self.work / "link").symlink_to(self.base / "secret")
        server = self.server()
        places = (str(self.base / "secret"), "../secret", "link")
        for path in places:
            self.assertTrue(server.tool("read_file", path=path)["isError"], path)
        for path in places:
            server.tool("write_file", path=path, content="changed")
            self.assertEqual((self.base / "secret").read_text(), "secret", path)

    def test_a_jar_that_only_reads(self) -> None:
        (self.work / "a.txt").write_text("one")
        server = self.server("--policy", "readonly")
        result = server.tool("write_file", path="a.txt", content="two")
        self.assertTrue(result["isError"])
        self.assertIn(f'refused: writing "{self.work}/a.txt": the policy shows the work directory read-only; the user can allow it with --workdir-mode rw', said(result))
        self.assertIn('the user can allow it with --rw "/usr/share/a"', said(server.tool("write_file", path="/usr/share/a", content="")))
        # The change that is named does allow it.
        allowed = self.server("--policy", "readonly", "--workdir-mode", "rw")
        self.assertFalse(allowed.tool("write_file", path="b.txt", content="two")["isError"])
        self.assertEqual((self.work / "a.txt").read_text(), "one")


class Jars(McpCase):
    def test_another_jar_has_files_and_variables_of_its_own(self) -> None:
        server = self.server()
        jar = server.data("jar_open")["jar"]
        server.tool("run", command="echo theirs > /tmp/mine", jar=jar)
        self.assertEqual(server.data("run", command="cat /tmp/mine", jar=jar)["stdout"], "theirs\n")
        self.assertEqual(server.data("run", command="cat /tmp/mine")["exit_code"], 1)
        server.tool("run_code", language="python", code="x = 1", jar=jar)
        self.assertIn("NameError", server.data("run_code", language="python", code="x")["error"])
        self.assertTrue(server.data("jar_close", jar=jar)["closed"])
        self.assertIn("there is no jar", server.text("run", command="true", jar=jar))

    def test_a_client_can_only_tighten(self) -> None:
        server = self.server("--memory", "300M", "--timeout", "10s")
        for tighten in (
            {"memory": "400M"},
            {"memory": None},
            {"net": "host"},
            {"rw": ["/"]},
            {"ro": [str(self.base)]},
            {"timeout": "1h"},
            {"workdir": "/"},
            {"extends": "agent"},
            {"no_such": 1},
            [],
            "x",
        ):
            result = server.tool("jar_open", tighten=tighten)
            self.assertTrue(result["isError"], tighten)
        opened = server.data("jar_open", tighten={"memory": "100M", "workdir_mode": "ro", "timeout": "300ms"})
        self.assertEqual(opened["policy"]["workdir_mode"], "ro")
        jar = opened["jar"]
        self.assertNotEqual(server.data("run", command="echo x > y", jar=jar)["exit_code"], 0)
        self.assertEqual(server.data("run", command="sleep 30", jar=jar)["outcome"], "timeout")
        self.assertTrue(server.tool("write_file", path="y", content="x", jar=jar)["isError"])
        self.assertEqual(server.data("run", command="echo x > y")["exit_code"], 0)

    def test_what_is_allowed_is_shown(self) -> None:
        data = self.server("--memory", "300M").data("policy_show")
        self.assertEqual((data["policy"]["memory"], data["policy"]["net"]), ("300M", "none"))
        self.assertIn("rung", data["in_force"])

    def test_there_is_an_end_to_jars(self) -> None:
        server = self.server()
        results = [server.tool("jar_open") for _ in range(65)]
        self.assertEqual([result["isError"] for result in results], [False] * 64 + [True])
        self.assertIn("no more can be", results[-1]["content"][0]["text"])

    def test_an_engine_that_died_is_replaced(self) -> None:
        server = self.server()
        server.tool("run", command="true")
        engine = int(Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()[0])
        os.kill(engine, signal.SIGKILL)
        self.wait_for(lambda: not Path(f"/proc/{engine}").exists() or "Z" in Path(f"/proc/{engine}/stat").read_text().rpartition(")")[2][:3], "it")
        server.tool("run", command="echo first")
        self.assertEqual(server.data("run", command="echo again")["stdout"], "again\n")


class Layers(McpCase):
    """With --cow the agent's changes are a proposal."""

    def names(self, server: Server) -> set[str]:
        return {tool["name"] for tool in server.result("tools/list")["tools"]}

    def test_changes_are_shown_and_not_applied_unless_the_person_says_so(self) -> None:
        (self.work / "a").write_text("1\n")
        self.assertTrue(self.names(self.server()).isdisjoint({"diff", "apply"}))
        server = self.server("--cow", "--redact", "hidden-word")
        tools = {tool["name"]: tool["annotations"] for tool in server.result("tools/list")["tools"]}
        self.assertNotIn("apply", tools)
        self.assertEqual([tools[name]["destructiveHint"] for name in ("run", "write_file", "diff")], [False] * 3)
        self.assertIn("nothing was changed", server.text("diff"))
        server.tool("run", command="echo 2 >> a; echo hidden-word > b; echo x > .envrc")
        told = server.tool("diff")
        self.assertEqual([change["path"] for change in told["structuredContent"]["changes"]], [".envrc", "a", "b"])
        self.assertTrue(told["structuredContent"]["changes"][0]["refused"])
        self.assertIn("+2\n", told["structuredContent"]["patch"])
        self.assertNotIn("hidden-word", str(told))
        self.assertRegex(said(told), r"belljar apply [a-z]{5}-[a-z]{5}")
        self.assertRegex(said(told), r'not applied without the user: "\.envrc": ')
        self.assertEqual([change["path"] for change in server.tool("diff", paths=["a"])["structuredContent"]["changes"]], ["a"])
        self.assertIn("list of paths", server.text("diff", paths=[]))
        self.assertEqual(server.ask("tools/call", {"name": "apply", "arguments": {}})["error"]["code"], -32602)
        self.assertEqual(os.listdir(self.work), ["a"])

    def test_an_agent_applies_what_the_person_lets_it(self) -> None:
        host.need("userns")
        server = self.server("--cow", "--allow-apply", "src/*")
        tools = {tool["name"]: tool["annotations"] for tool in server.result("tools/list")["tools"]}
        self.assertTrue(tools["apply"]["destructiveHint"])
        self.assertIn("nothing was changed", server.text("apply"))
        server.tool("run_code", language="python", code="x = 1")
        server.tool("run", command="mkdir -p src/d/e other; echo 1 > src/d/f; echo 2 > other/g; echo 3 > h; ln -s /etc/passwd src/out")
        told = server.tool("apply")
        self.assertEqual((told["structuredContent"]["applied"], told["structuredContent"]["not_allowed"]), (3, 2))
        self.assertEqual([entry["path"] for entry in told["structuredContent"]["not_applied"]], ["src/out"])
        self.assertEqual(sorted(str(path.relative_to(self.work)) for path in self.work.rglob("*")), ["src", "src/d", "src/d/f"])
        self.assertIn("none of these", server.text("apply", paths=["h"]))
        self.assertIn("NameError", str(server.tool("run_code", language="python", code="x")))
        self.assertEqual(server.tool("run", command="cat src/d/f other/g h")["structuredContent"]["stdout"], "1\n2\n3\n")
        number = server.begin("tools/call", {"name": "run", "arguments": {"command": "sleep 1000"}})
        self.assertIn("under way", server.text("apply"))
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    def test_an_agent_applies_what_it_was_shown(self) -> None:
        host.need("userns")
        for pattern in ("*", "[a-z]*"):
            server = self.server("--cow", "--allow-apply", pattern)
            self.assertIn("nothing was changed", server.text("diff"))
            server.tool("run", command="echo good > a; echo good > b")
            self.assertEqual(len(server.tool("diff")["structuredContent"]["changes"]), 2)
            server.tool("run", command="echo evil > a; echo evil > c")
            for _ in ("once", "again"):
                refused = {entry["path"] for entry in server.tool("apply")["structuredContent"]["not_applied"]}
                self.assertIn("a", refused)
            self.assertEqual((sorted(os.listdir(self.work)), (self.work / "b").read_text()), (["b"], "good\n"))
            server.tool("diff")
            self.assertEqual(server.tool("apply")["structuredContent"]["applied"], 2)
            for name in "abc":
                (self.work / name).unlink()

    def test_an_agent_may_apply_everything_but_what_is_risky(self) -> None:
        server = self.server("--cow", "--allow-apply", "*")
        server.tool("run", command="mkdir d; echo 1 > d/f; echo x > .envrc")
        told = server.tool("apply", paths=["d"])
        self.assertEqual(told["structuredContent"]["applied"], 2)
        self.assertEqual(server.tool("apply")["structuredContent"]["not_applied"][0]["reason"], "refused")
        self.assertEqual(sorted(os.listdir(self.work)), ["d"])
        self.assertNotEqual(self.server("--allow-apply", "*").process.wait(BOUND), 0)


class Page(McpCase):
    """docs/mcp.md is true."""

    page = (paths.TESTS.parent / "docs" / "mcp.md").read_text()

    def test_the_tools_are_those_of_the_page(self) -> None:
        rows = re.search(r"^## Tools\n(.*?)\n\n", self.page, re.MULTILINE | re.DOTALL)
        assert rows is not None
        told = {name for row in rows.group(1).splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
        self.assertEqual(told, {tool["name"] for tool in self.server("--cow", "--allow-apply", "*").result("tools/list")["tools"]})

    def test_the_settings_are_json_that_names_this_server(self) -> None:
        shown = [json.loads(text) for text in re.findall(r"`(\{.*?\})` \|$", self.page, re.MULTILINE)]
        self.assertGreaterEqual(len(shown), 3)
        for settings in shown:
            server = next(settings[key] for key in ("mcpServers", "servers", "context_servers") if key in settings)["belljar"]
            self.assertEqual((server["command"], server["args"][:2]), ("belljar", ["mcp", "-C"]))

    def test_the_commands_start_a_server(self) -> None:
        (self.work / "policy.json").write_text("{}")
        lines = re.findall(r"^belljar (mcp .*)$", self.page, re.MULTILINE)
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            words = shlex.split(line.replace("~/src/project", str(self.work)).replace("~", str(self.home)), comments=True)[1:]
            self.assertEqual(self.server(*words).result("ping"), {}, line)

    def test_http_is_refused_with_the_place_where_it_will_be(self) -> None:
        for words in (["--http"], ["--http=8750"], ["--token-file", "t"]):
            done = self.belljar("mcp", "-C", self.work, *words, timeout=BOUND)
            self.assertEqual((done.status, done.stdout), (125, b""))
            self.assertIn(b"belljard", done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
