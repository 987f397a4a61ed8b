# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.openai_agents with the framework: sessions, terminals, ports, snapshots, and the shell tool."""

from __future__ import annotations

import asyncio
import io
import unittest
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict

import belljar
from agents.run_context import RunContextWrapper
from agents.sandbox import Manifest
from agents.sandbox.entries import File
from agents.sandbox.errors import ExecTimeoutError, ExposedPortUnavailableError, PtySessionNotFoundError, WorkspaceReadNotFoundError
from agents.sandbox.session.sandbox_session import SandboxSession
from agents.sandbox.snapshot import LocalSnapshotSpec
from agents.tool import ShellActionRequest, ShellCallData, ShellCommandRequest
from belljar.integrations.openai_agents import JarSandboxClient, JarSandboxClientOptions, JarShell
from integration_case import IntegrationCase
from package_case import tearDownModule  # noqa: F401

Use = Callable[[SandboxSession], Awaitable[None]]


class Sessions(IntegrationCase):
    """Sandboxes of agents."""

    def use(self, work: Use, client: JarSandboxClient | None = None, **options: Any) -> None:
        """A session from its start to its end."""

        async def main() -> None:
            made = await (client or JarSandboxClient()).create(**options)
            async with made as session:
                await work(session)
            self.assertFalse(await made.running())

        self.run_loop(main())

    def test_the_example(self) -> None:
        self.check_example("openai_agents")

    def test_commands_and_files(self) -> None:
        async def work(session: SandboxSession) -> None:
            self.assertTrue(await session.running())
            self.assertEqual((await session.exec("cat notes/a; echo $MODE")).stdout, b"given\ntest\n")
            done = await session.exec("printf '\\377'; echo err >&2; exit 3")
            self.assertEqual((done.stdout, done.stderr, done.exit_code), (b"\xff", b"err\n", 3))
            self.assertEqual((await session.exec("no-such-program", shell=False)).exit_code, 127)
            with self.assertRaises(ExecTimeoutError):
                await session.exec("sleep 1000", timeout=0.5)
            await session.write(Path("deep/er/file"), io.BytesIO(b"\0data"))
            self.assertEqual((await session.read(Path("deep/er/file"))).read(), b"\0data")
            self.assertEqual(await session.read_bounded(Path("deep/er/file"), max_bytes=2), b"\0d")
            with self.assertRaises(WorkspaceReadNotFoundError):
                await session.read(Path("none"))
            self.assertEqual({Path(entry.path).name for entry in await session.ls(".")} - {".", ".."}, {"deep", "notes"})
            await session.mv("deep/er/file", "moved")
            await session.mkdir("new/dir", parents=True)
            await session.rm("deep", recursive=True)
            self.assertEqual((await session.exec("find . | sort")).stdout, b".\n./moved\n./new\n./new/dir\n./notes\n./notes/a\n")
            with self.assertRaises(ValueError):
                await session.exec("true", user="daemon")

        manifest = Manifest(entries={"notes/a": File(content=b"given\n")}, environment={"value": {"MODE": "test"}})
        self.use(work, manifest=manifest)

    def test_background_work_lives_as_long_as_the_session(self) -> None:
        async def work(session: SandboxSession) -> None:
            await session.exec(f"(until [ -e go ]; do sleep 0.01; done; touch gone; sleep 1000; : {self.marker}) >/dev/null 2>&1 &")
            await session.write(Path("go"), io.BytesIO())
            while not (await session.exec("test -e gone")).ok():
                await asyncio.sleep(0.01)
            self.assertNotEqual(self.marked(), [])

        self.use(work)
        self.assertEqual(self.marked(), [])

    def test_a_host_directory_is_the_root(self) -> None:
        async def work(session: SandboxSession) -> None:
            self.assertEqual((await session.exec("pwd; echo x >made")).stdout.decode().strip(), str(self.work))

        self.use(work, JarSandboxClient(workdir=self.work))
        self.assertEqual((self.work / "made").read_text(), "x\n")
        with self.assertRaises(ValueError):
            self.use(work, manifest=Manifest(root="/elsewhere"))

    def test_terminals(self) -> None:
        async def work(session: SandboxSession) -> None:
            begun = await session.pty_exec_start("tty; read name; echo hello $name; exit 3", tty=True, yield_time_s=0.25)
            output = begun.output
            while b"/dev/" not in output:
                output += (await session.pty_write_stdin(session_id=begun.process_id, chars="")).output
            ended = await session.pty_write_stdin(session_id=begun.process_id, chars="Ada\n", yield_time_s=30)
            self.assertIn(b"hello Ada\r\n", ended.output)
            self.assertEqual((ended.process_id, ended.exit_code), (None, 3))
            with self.assertRaises(PtySessionNotFoundError):
                await session.pty_write_stdin(session_id=begun.process_id, chars="x")
            piped = await session.pty_exec_start("test -t 0 || echo no terminal", yield_time_s=30)
            self.assertEqual((piped.output, piped.exit_code), (b"no terminal\n", 0))
            # What is left at the end is ended.
            left = await session.pty_exec_start(f"sleep 1000; : {self.marker}", tty=True, yield_time_s=0.25)
            self.assertIsNotNone(left.process_id)

        self.use(work)
        self.assertEqual(self.marked(), [])

    def test_a_terminal_that_nobody_reads_waits(self) -> None:
        async def work(session: SandboxSession) -> None:
            begun = await session.pty_exec_start("yes", tty=True, yield_time_s=0.25, max_output_tokens=10)
            terminal = session._inner._terminals[begun.process_id]
            while terminal.room.is_set() or not terminal.chunks:
                await asyncio.sleep(0.01)
            held = sum(map(len, terminal.chunks))
            await asyncio.sleep(0.2)
            self.assertEqual(sum(map(len, terminal.chunks)), held)
            self.assertLess(held, 2 << 20)
            more = await session.pty_write_stdin(session_id=begun.process_id, chars="", max_output_tokens=10)
            self.assertEqual(more.process_id, begun.process_id)

        self.use(work)

    def test_ports(self) -> None:
        server = (
            "import socket\n"
            "s = socket.create_server(('127.0.0.1', 8000)); print('ready', flush=True)\n"
            "while True:\n    c, _ = s.accept(); c.sendall(c.recv(100).upper()); c.close()\n"
        )

        async def work(session: SandboxSession) -> None:
            await session.write(Path("server.py"), io.BytesIO(server.encode()))
            begun = await session.pty_exec_start("python3 server.py", yield_time_s=0.25)
            output = begun.output
            while b"ready" not in output:
                output += (await session.pty_write_stdin(session_id=begun.process_id, chars="")).output
            endpoint = await session.resolve_exposed_port(8000)
            self.assertEqual(endpoint.host, "127.0.0.1")
            for _ in range(3):
                reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
                writer.write(b"hello")
                self.assertEqual(await reader.read(), b"HELLO")
                writer.close()
            with self.assertRaises(ExposedPortUnavailableError):
                await session.resolve_exposed_port(8001)
            # Nobody listens there.
            silent = await session.resolve_exposed_port(8002)
            with self.assertRaises(ConnectionResetError):
                reader, writer = await asyncio.open_connection(silent.host, silent.port)
                await reader.read()
            staying.append(await asyncio.open_connection(endpoint.host, endpoint.port))

        async def main() -> None:
            async with await JarSandboxClient().create(options=JarSandboxClientOptions(exposed_ports=(8000, 8002))) as session:
                await work(session)
            # It was connected when the session ended, and had said nothing.
            (reader, writer) = staying.pop()
            self.assertEqual(await reader.read(), b"")
            writer.close()

        staying: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.run_loop(main())

    def test_a_snapshot_brings_the_workspace_back(self) -> None:
        client = JarSandboxClient()
        entries = {"given": File(content=b"1"), "passing": File(content=b"2", ephemeral=True)}

        async def main() -> None:
            spec = LocalSnapshotSpec(base_path=self.base / "snapshots")
            async with await client.create(snapshot=spec, manifest=Manifest(entries=entries)) as session:
                await session.exec("mkdir d; echo kept >d/file; chmod +x d/file; ln -s d/file link; rm given passing")
                state = client.serialize_session_state(session.state)
            resumed = await client.resume(client.deserialize_session_state(state))
            async with resumed as session:
                listing = await session.exec("cat link; test -x d/file && echo runs; ls")
                self.assertEqual(listing.stdout, b"kept\nruns\nd\nlink\npassing\n")
            await client.delete(resumed)

        self.run_loop(main())

    def test_a_session_can_be_resumed_while_its_jar_lives(self) -> None:
        client = JarSandboxClient()

        async def main() -> None:
            session = await client.create()
            await session.start()
            await session.exec("echo x >file; sleep 1000 >/dev/null 2>&1 &")
            again = await client.resume(session.state)
            await again.start()
            self.assertEqual((await again.exec("cat file; ps ax | grep -c '[s]leep 1000'")).stdout, b"x\n1\n")
            await client.delete(again)
            self.assertFalse(await session.running())

        self.run_loop(main())

    def test_a_session_whose_jar_was_ended_starts_with_a_new_one(self) -> None:
        client = JarSandboxClient(ttl=1)

        async def main() -> None:
            session = await client.create()
            await session.start()
            while await session.running():
                await asyncio.sleep(0.05)
            again = await client.resume(session.state)
            await again.start()
            self.assertTrue(await again.running())
            await client.delete(again)

        self.run_loop(main())

    def test_the_shell_tool(self) -> None:
        async def main() -> None:
            with belljar.Jar(workdir=None) as jar:
                action = ShellActionRequest(["echo out; exit 3", "sleep 1000", "echo never"], timeout_ms=500, max_output_length=10)
                request = ShellCommandRequest(RunContextWrapper(None), ShellCallData("1", action))
                result = await JarShell(jar)(request)
                self.assertEqual([output.status for output in result.output], ["completed", "timeout"])
                self.assertEqual((result.output[0].stdout, result.output[0].exit_code), ("out\n", 3))
                self.assertIn("limit 'timeout'", result.output[1].stderr)
                self.assertEqual(result.max_output_length, 10)

        self.run_loop(main())

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        async def run(keys: Dict[str, Any], command: str, has_terminal: bool) -> str:
            async with await JarSandboxClient(**keys).create() as session:
                if not has_terminal:
                    done = await session.exec(command, timeout=None)
                    return (done.stdout + done.stderr).decode()
                update = await session.pty_exec_start(command, timeout=None, tty=True, yield_time_s=30)
                output = update.output
                while update.process_id is not None:
                    update = await session.pty_write_stdin(session_id=update.process_id, chars="", yield_time_s=5)
                    output += update.output
                return str(output.decode())

        for has_terminal in (False, True):
            self.check_limits(lambda keys, command: str(self.run_loop(run(keys, command, has_terminal))))

    def test_mistakes_are_found_when_it_is_made(self) -> None:
        self.check_mistakes(JarSandboxClient)


if __name__ == "__main__":
    unittest.main()
