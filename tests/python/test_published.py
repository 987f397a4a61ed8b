# SPDX-License-Identifier: Apache-2.0
"""publish in every door of the package: spawn, run, Jar, Policy; and what refuses it."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import belljar  # noqa: E402
from harness.bounds import BOUND  # noqa: E402
from harness.host import need  # noqa: E402
from package_case import PackageCase, tearDownModule  # noqa: E402, F401

SERVER = ["python3", "-c", "import os, socket\ns = socket.create_server(('127.0.0.1', 8000))\nos.write(1, b'up\\n')\nwhile True:\n s.accept()[0].sendall(b'hi')"]


def setUpModule() -> None:
    need("userns")


def ask(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), BOUND) as made:
        return made.recv(2)


class Published(PackageCase):
    """A server in a jar, reached from this process."""

    def test_a_process_tells_its_ports(self) -> None:
        for publish in (8000, "8000", ["0:8000"]):
            with belljar.spawn(SERVER, publish=publish, workdir=None) as process:
                assert process.stdout is not None
                process.stdout.readline()
                self.assertEqual(list(process.published), [8000])
                self.assertEqual(ask(process.published[8000]), b"hi")
        with belljar.spawn(["true"]) as process:
            self.assertEqual(process.published, {})

    def test_an_async_process_tells_its_ports(self) -> None:
        async def main() -> Any:
            async with await belljar.spawn_async(SERVER, publish=[8000], workdir=None) as process:
                assert process.stdout is not None
                await process.stdout.readline()
                return process.published, await asyncio.to_thread(ask, process.published[8000])

        published, said = asyncio.run(main())
        self.assertEqual((list(published), said), ([8000], b"hi"))

    def test_a_jar_keeps_its_ports(self) -> None:
        with belljar.Jar(belljar.Policy(publish=[8000], workdir=None)) as jar:
            port = jar.published[8000]
            for _ in range(2):
                with jar.spawn(SERVER) as process:
                    assert process.stdout is not None
                    process.stdout.readline()
                    self.assertEqual((ask(port), process.published), (b"hi", {8000: port}))
            self.assertEqual(jar.run(["true"]).network, {"hosts": [], "published": [{"port": 8000, "host_port": port}]})
        with self.assertRaises(ConnectionRefusedError):
            ask(port)
        with belljar.Jar(workdir=None) as jar:
            self.assertEqual(jar.published, {})

    def test_the_same_port_again_and_again(self) -> None:
        """No jar that was prepared holds it."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for _ in range(4):
            result = belljar.run(["true"], publish=[f"{port}:8000"], workdir=None).check()
            self.assertEqual((result.network or {})["published"], [{"port": 8000, "host_port": port}])

    def test_what_is_refused(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken, self.assertRaises(belljar.StartError) as caught:
            belljar.run(["true"], publish=[f"{taken.getsockname()[1]}:8000"])
        self.assertEqual(caught.exception.errno, errno.EADDRINUSE)
        for keys in ({"publish": [80]}, {"publish": ["x"]}, {"publish": [True]}, {"publish": [8000], "net": "host"}):
            with self.subTest(keys), self.assertRaises(belljar.PolicyError):
                belljar.run(["true"], **keys)
        with belljar.Pool(publish=[8000]) as pool, self.assertRaisesRegex(belljar.PolicyError, "each call has a network of its own"):
            pool.call(len, [])
        with belljar.Jar(workdir=None) as jar, self.assertRaises(belljar.PolicyError):
            jar.run(["true"], publish=[8000])


if __name__ == "__main__":
    unittest.main()
