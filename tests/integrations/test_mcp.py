# SPDX-License-Identifier: Apache-2.0
"""MCP servers in jars, with the Python SDK: the words of a command line are enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest

from belljar.integrations import command_line
from integration_case import IntegrationCase
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from package_case import tearDownModule  # noqa: F401

SERVER = """
import os, sys
from mcp.server import MCPServer

server = MCPServer("test")

@server.tool()
def home() -> str:
    print("a remark of the server", file=sys.stderr)
    return str(os.path.exists("/proc/1/root/root")) + " " + str(os.environ.get("SECRET_TOKEN"))

server.run()
"""


class MCP(IntegrationCase):
    """Servers."""

    def test_the_example(self) -> None:
        self.check_example("mcp")

    def test_a_client_of_either_protocol_speaks_to_a_server_in_a_jar(self) -> None:
        (self.work / "server.py").write_text(SERVER)
        words = command_line([sys.executable, "server.py", self.marker], workdir=self.work)

        async def main(mode: str) -> None:
            server = StdioServerParameters(command=words[0], args=words[1:], env={"SECRET_TOKEN": "x"})
            async with Client(server, mode=mode) as client:
                self.assertEqual((await client.call_tool("home", {})).content[0].text, "False None")
                self.assertNotEqual(self.marked(), [])

        for mode in ("auto", "legacy"):
            self.run_loop(main(mode))
            self.wait_for(lambda: not self.marked(), "the server is gone")

    def test_a_server_that_is_wrapped(self) -> None:
        (self.work / "server.py").write_text(SERVER.replace("server.run()", "@server.tool()\ndef away() -> str:\n    return ''\n\nserver.run()"))
        shown = ["--ro", sys.prefix, "--ro", sys.base_prefix]
        words = [command_line(["true"])[0], "mcp-wrap", "-C", str(self.work), *shown, "--deny-tool", "aw*", "--", sys.executable, "server.py", self.marker]

        async def main(mode: str) -> None:
            server = StdioServerParameters(command=words[0], args=words[1:], env={"SECRET_TOKEN": "x"})
            async with Client(server, mode=mode) as client:
                self.assertEqual([tool.name for tool in (await client.list_tools()).tools], ["home"])
                self.assertEqual((await client.call_tool("home", {})).content[0].text, "False None")
                self.assertTrue((await client.call_tool("away", {})).is_error)

        for mode in ("auto", "legacy"):
            self.run_loop(main(mode))
            self.wait_for(lambda: not self.marked(), "the server is gone")

    def test_a_server_from_the_registry_is_wrapped(self) -> None:
        shown = ["--ro", sys.prefix, "--ro", sys.base_prefix]
        log = self.base / "log"
        words = [command_line(["true"])[0], "mcp-wrap", "-C", str(self.work), *shown, "--deny-tool", "convert_*", "--log", str(log)]
        words += ["--", sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]

        async def main(mode: str) -> None:
            server = StdioServerParameters(command=words[0], args=words[1:])
            async with Client(server, mode=mode) as client:
                self.assertEqual([tool.name for tool in (await client.list_tools()).tools], ["get_current_time"])
                self.assertIn("UTC", (await client.call_tool("get_current_time", {"timezone": "UTC"})).content[0].text)
                self.assertTrue((await client.call_tool("convert_time", {})).is_error)

        for mode in ("auto", "legacy"):
            self.run_loop(main(mode))
        self.assertEqual([json.loads(line)["what"] for line in log.read_text().splitlines()], ["answered", "refused"] * 2)

    def test_the_tools_of_belljar_itself_over_http(self) -> None:
        words = [os.environ["BELLJAR_BIN"] + "-mcp-http", "-C", str(self.work)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        url, token = (process.stdout.readline().split(": ")[1].strip() for _ in range(2))

        async def main(mode: str, is_kept: bool) -> None:
            async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
                async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                    seen: "list[str]" = []

                    async def on_progress(_progress: float, _total: object, message: object) -> None:
                        seen.append(str(message))

                    done = await client.call_tool("run", {"command": "echo a; sleep 0.5; exit 3"}, progress_callback=on_progress)
                    self.assertEqual((done.structured_content["stdout"], done.structured_content["exit_code"]), ("a\n", 3))
                    self.assertIn("a", seen)
                    await client.call_tool("run_code", {"language": "bash", "code": "v=7"})
                    kept = await client.call_tool("run_code", {"language": "bash", "code": "echo $v"})
                    self.assertEqual(kept.structured_content["stdout"], "7\n" if is_kept else "\n")

        try:
            self.run_loop(main("auto", False))
            self.run_loop(main("legacy", True))
        finally:
            process.terminate()
            process.stdout.close()
            process.wait(60)

    def test_the_tools_of_belljar_itself(self) -> None:
        words = [command_line(["true"])[0], "mcp", "-C", str(self.work)]

        async def main(mode: str) -> None:
            server = StdioServerParameters(command=words[0], args=words[1:])
            async with Client(server, mode=mode) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                self.assertIn("run_code", names)
                seen: "list[str]" = []

                async def on_progress(_progress: float, _total: object, message: object) -> None:
                    seen.append(str(message))

                done = await client.call_tool("run", {"command": "echo a; sleep 0.5; exit 3"}, progress_callback=on_progress)
                self.assertEqual((done.structured_content["stdout"], done.structured_content["exit_code"]), ("a\n", 3))
                self.assertIn("a", seen)
                await client.call_tool("run_code", {"language": "python", "code": "x = 20"})
                self.assertEqual((await client.call_tool("run_code", {"language": "python", "code": "x + 1"})).content[0].text, "21")
                self.assertTrue((await client.call_tool("read_file", {"path": "absent"})).is_error)

        for mode in ("auto", "legacy"):
            self.run_loop(main(mode))

    def test_a_server_that_ends_is_seen_to_end(self) -> None:
        words = command_line(["sh", "-c", "cat; exit 3"], workdir=None)
        done = subprocess.run(words, input=b"{}", capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, b"{}", b""))


if __name__ == "__main__":
    unittest.main()
