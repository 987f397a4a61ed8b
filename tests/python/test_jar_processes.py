# SPDX-License-Identifier: Apache-2.0
"""Jar: its processes, ports that they listen on, what it uses, and how long it lives."""

from __future__ import annotations

import asyncio
import select
import signal
import socket
import time
import unittest

import belljar
from package_case import PackageCase, tearDownModule  # noqa: F401

SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    peer, _ = listener.accept()
    peer.sendall(b"hello " + peer.recv(100))
    peer.close()
"""


class Processes(PackageCase):
    """Listed, and ended by number."""

    def test_processes_are_told_with_their_run(self) -> None:
        with belljar.Jar() as jar:
            self.assertEqual(jar.processes(), [])
            before = time.time()
            with jar.spawn(self.sh("sleep 1000 & echo up; wait")) as process:
                assert process.stdout is not None
                process.stdout.readline()
                self.wait_for(lambda: [info.name for info in jar.processes()] == ["sh", "sleep"], "both are there")
                shell, sleeper = jar.processes()
                self.assertEqual((sleeper.ppid, sleeper.run, sleeper.args), (shell.pid, shell.run, ["sleep", "1000"]))
                self.assertIn(self.marker, shell.args)
                self.assertLess(abs(sleeper.started - before), 60)
                jar.kill(sleeper.pid)
                self.assertEqual(process.wait(60).outcome, "exited")
                with self.assertRaises(ProcessLookupError):
                    jar.kill(sleeper.pid, signal.SIGKILL)
            for pid, sig in ((0, 9), (1, 9), (-1, 9), (5, 65), (5, -1)):
                with self.assertRaises(ValueError):
                    jar.kill(pid, sig)

    def test_twins(self) -> None:
        async def work() -> None:
            async with await belljar.Jar.open_async() as jar:
                async with await jar.spawn_async(["sleep", "1000"]) as process:
                    (info,) = await jar.processes_async()
                    self.assertEqual((await jar.usage_async())["runs"], 1)
                    await jar.kill_async(info.pid, signal.SIGKILL)
                    self.assertEqual((await process.wait(60)).signal, "SIGKILL")

        asyncio.run(work())


class Detached(PackageCase):
    """What a command leaves running."""

    def test_a_server_that_a_command_has_started(self) -> None:
        with belljar.Jar(rung="namespace") as jar:
            script = f"python3 -c '{SERVER}' \"$0\" > port 2>&1 & while ! test -s port; do sleep 0.01; done; cat port"
            result = jar.run(self.sh(script), detach=True)
            self.assertEqual((result.outcome, result.exit_code), ("exited", 0))
            with jar.connect(int(result.stdout)) as peer:
                peer.sendall(b"you")
                self.assertEqual(peer.recv(100), b"hello you")
            (server,) = jar.processes()
            jar.kill(server.pid)
            self.wait_for(lambda: not jar.processes(), "it is gone")
            with self.assertRaises(ValueError):
                jar.run(["true"], detach=True, pty=True)

    def test_without_it_nothing_stays(self) -> None:
        with belljar.Jar() as jar:
            jar.run(self.sh("sleep 1000 &"))
            self.assertEqual(jar.processes(), [])
            jar.run(self.sh("sleep 1000 &"), detach=True)
            self.assertEqual(len(jar.processes()), 1)
        self.assertEqual(self.marked(), [])

    def test_in_a_loop(self) -> None:
        async def work() -> None:
            async with await belljar.Jar.open_async() as jar:
                await jar.run_async(self.sh("sleep 1000 &"), detach=True)
                self.assertEqual(len(await jar.processes_async()), 1)

        asyncio.run(work())


class Ports(PackageCase):
    """A server in the jar."""

    def test_a_server_in_the_jar(self) -> None:
        with belljar.Jar(rung="namespace") as jar, jar.spawn(["python3", "-c", SERVER, self.marker]) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            for _ in range(3):
                with jar.connect(port) as peer:
                    self.assertEqual(peer.getpeername(), ("127.0.0.1", port))
                    peer.sendall(b"you")
                    self.assertEqual(peer.recv(100), b"hello you")

            async def work() -> bytes:
                reader, writer = await asyncio.open_connection(sock=await jar.connect_async(port))
                writer.write(b"loop")
                data = await reader.read()
                writer.close()
                return data

            self.assertEqual(asyncio.run(work()), b"hello loop")
            with self.assertRaises(ConnectionRefusedError):
                jar.connect(1)
            for port in (0, -1, 65536):
                with self.assertRaises(ValueError):
                    jar.connect(port)

    def test_the_port_is_the_jars_own(self) -> None:
        with belljar.Jar(rung="namespace") as jar, socket.create_server(("127.0.0.1", 0)) as listener:
            with self.assertRaises(ConnectionRefusedError):
                jar.connect(listener.getsockname()[1])
        with belljar.Jar(net="host") as jar, socket.create_server(("127.0.0.1", 0)) as listener:
            jar.connect(listener.getsockname()[1]).close()


class Life(PackageCase):
    """What it uses, and when it ends."""

    def test_usage(self) -> None:
        with belljar.Jar(ttl="1h") as jar:
            usage = jar.usage()
            self.assertEqual(usage["runs"], 0)
            self.assertLessEqual(usage["ttl_ms"], 3600_000)

    def test_a_jar_ends_when_its_time_is_over_and_its_descriptor_tells(self) -> None:
        jar = belljar.Jar(ttl=0.2)
        process = jar.spawn(self.sh("sleep 1000"))
        self.assertEqual(select.select([jar], [], [], 60)[0], [jar])
        self.assertEqual(process.wait(60).outcome, "cancelled")
        for use in (lambda: jar.run(["true"]), lambda: jar.stat(".")):
            with self.assertRaisesRegex(belljar.EngineError, "time to live"):
                use()
        process.close()
        jar.close()
        with self.assertRaises(belljar.PolicyError):
            belljar.Jar(ttl="soon")

    def test_the_descriptor_of_a_jar_that_lives_is_silent(self) -> None:
        with belljar.Jar() as jar:
            jar.run(["true"])
            jar.write_file("x", "y")
            self.assertEqual(select.select([jar.fileno()], [], [], 0)[0], [])


if __name__ == "__main__":
    unittest.main()
