# SPDX-License-Identifier: Apache-2.0
"""--publish: a server in a jar, reached from the host's 127.0.0.1."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import unittest
from pathlib import Path

from harness.bounds import BOUND
from harness.case import JarCase
from harness.engine_case import KeptJarCase
from harness.gate_case import CLIENT, GateCase
from harness.publish_case import SERVER, PublishCase
from harness.runner import LANDLOCK, NAMESPACE
from harness.wire import OPEN

HTTP = "import http.server\nclass Handler(http.server.SimpleHTTPRequestHandler):\n protocol_version = 'HTTP/1.1'\n"
HTTP += "s = http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Handler)\nsay('up')\ns.serve_forever()\n"

WEBSOCKET = r"""
import base64, hashlib, struct
def serve(c):
    head = b''
    while b'\r\n\r\n' not in head:
        head += c.recv(4096)
    key = [line.split(b': ')[1] for line in head.split(b'\r\n') if line.lower().startswith(b'sec-websocket-key')][0]
    accept = base64.b64encode(hashlib.sha1(key + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest())
    c.sendall(b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + accept + b'\r\n\r\n')
    f = c.makefile('rb')
    while True:
        first, length = f.read(2)
        mask, data = f.read(4), f.read(length & 127)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        c.sendall(bytes([first, len(data)]) + data)
each(serve)
"""

NODE = "require('http').createServer((q, a) => a.end('node says ' + q.url)).listen(8000, '127.0.0.1', () => console.log('up'))"


def is_free(port: int) -> bool:
    with socket.socket() as made:
        return made.connect_ex(("127.0.0.1", port)) != 0


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Servers(PublishCase):
    """Servers of usual kinds."""

    def test_an_http_server_and_a_connection_that_is_kept(self) -> None:
        process, port = self.serve(HTTP)
        self.assertEqual(self.started["published"], [{"port": 8000, "host_port": port}])
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
        for _ in range(3):
            client.request("GET", "/")
            answer = client.getresponse()
            self.assertEqual((answer.status, b"Directory listing" in answer.read()), (200, True))
        client.close()
        result = self.result(process)
        self.assertEqual(result["network"], {"hosts": [], "published": [{"port": 8000, "host_port": port}]})
        self.assertEqual((result["outcome"], result["enforced"]["network"], result["notes"]), ("cancelled", "net-ns", []))
        self.assertEqual(self.talk(port), "ConnectionRefusedError")

    def test_a_websocket(self) -> None:
        _, port = self.serve(WEBSOCKET)
        made = self.connect(port)
        key = base64.b64encode(os.urandom(16))
        made.sendall(b"GET /live HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n")
        reader = made.makefile("rb")
        head = b"".join(iter(reader.readline, b"\r\n"))
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        self.assertIn(b"101 Switching", head)
        self.assertIn(accept, head)
        for word in (b"one", b"two"):
            mask = os.urandom(4)
            made.sendall(struct.pack("BB", 0x81, 0x80 | len(word)) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(word)))
            self.assertEqual(reader.read(2 + len(word)), struct.pack("BB", 0x81, len(word)) + word)

    @unittest.skipUnless(shutil.which("node"), "needs node")
    def test_a_node_server(self) -> None:
        process = self.start("--events", "-C", "none", "--publish", "8000", "--", "node", "-e", NODE, self.marker)
        port = self.event(process)["published"][0]["host_port"]
        self.assertEqual(self.event(process)["event"], "output")
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
        for path in ("/a", "/b"):
            client.request("GET", path)
            self.assertEqual(client.getresponse().read(), b"node says " + path.encode())
        client.close()

    def test_a_server_that_listens_on_ipv6_only(self) -> None:
        _, port = self.serve("each(echo, host='::1', family=socket.AF_INET6)")
        self.assertEqual(self.talk(port), b"hi")

    def test_much_both_ways_and_half_of_an_end(self) -> None:
        code = "def serve(c):\n data = b''.join(iter(lambda: c.recv(65536), b''))\n c.sendall(data[::-1])\n c.close()\neach(serve)"
        _, port = self.serve(code)
        data = os.urandom(8 << 20)
        made = self.connect(port)
        sender = threading.Thread(target=lambda: (made.sendall(data), made.shutdown(socket.SHUT_WR)))
        sender.start()
        got = b"".join(iter(lambda: made.recv(1 << 16), b""))
        sender.join()
        self.assertTrue(got == data[::-1], "other bytes came back")


class Ports(PublishCase):
    """Which ports, and what is told of them."""

    def test_nobody_listens_and_then_somebody_does(self) -> None:
        process, port = self.serve("sys.stdin.readline()\neach(echo)", wait=False, stdin=subprocess.PIPE)
        for _ in range(3):
            self.assertEqual(self.talk(port), "ConnectionResetError")
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        self.assertEqual(self.event(process)["event"], "output")
        self.assertEqual(self.talk(port), b"hi")

    def test_a_port_of_the_hosts_choice_can_be_used_again_at_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = self.json("--publish", f"{port}:8000", "--", "true")
            self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "plan"))
            self.assertIn(f"cannot publish port 8000 at 127.0.0.1:{port}: Address ", result["error"]["message"])
            self.assertIn("another program has that port", result["error"]["hint"])
        for _ in range(2):
            process, told = self.serve("each(echo)", publish=f"{port}:8000")
            self.assertEqual((told, self.talk(port)), (port, b"hi"))
            self.result(process)

    def test_several_ports(self) -> None:
        code = "threading.Thread(target=each, args=(echo, 8001), daemon=True).start()\n"
        code += "each(lambda c: (c.recv(2), c.sendall(b'eight'), c.close()))"
        self.serve(code, "--publish", "0:8001", "--publish", "8002")
        ports = {entry["port"]: entry["host_port"] for entry in self.started["published"]}
        self.assertEqual(sorted(ports), [8000, 8001, 8002])
        self.wait_for(lambda: self.talk(ports[8000], count=5) == b"eight" and self.talk(ports[8001]) == b"hi", "both listen")
        said = [self.talk(ports[8000], count=5), self.talk(ports[8001]), self.talk(ports[8002])]
        self.assertEqual(said, [b"eight", b"hi", "ConnectionResetError"])

    def test_it_is_the_hosts_loopback_and_not_the_jars(self) -> None:
        """Neither another address of the host's, nor the jar's own loopback, has the port."""
        process, port = self.serve("say('up')\nsay(socket.socket().connect_ex(('127.0.0.1', int(sys.stdin.readline()))))\neach(echo)", stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(b"%d\n" % port)
        process.stdin.flush()
        self.assertIn("111", self.event(process)["text"])
        with socket.socket() as other:
            self.assertNotEqual(other.connect_ex(("127.0.0.2", port)), 0)

    @unittest.skipIf(os.getuid() == 0, "root may")
    def test_low_ports_of_the_host_are_roots(self) -> None:
        result = self.json("--publish", "1023:8000", "--", "true")
        self.assertEqual(result["error"]["message"], "cannot publish port 8000 at 127.0.0.1:1023: Permission denied")

    def test_what_is_refused(self) -> None:
        self.assert_failed(self.belljar("run", "--publish", "80", "--", "true"), "nothing in a jar may listen on a port below 1024")
        self.assert_failed(self.belljar("run", "--publish", "x", "--", "true"), "HOSTPORT:PORT")
        self.assert_failed(self.belljar("run", "--publish", "9000:8000", "--publish", "9000:8001", "--", "true"), "another port of the jar")
        self.assert_failed(self.belljar("run", "--net", "host", "--publish", "8000", "--", "true"), "listens on the host itself")


class Ends(PublishCase):
    """A jar, a gate or an engine that ends."""

    def test_a_jar_that_ends_with_open_connections(self) -> None:
        process, port = self.serve("def serve(c):\n c.sendall(b'a' * 100000)\n time.sleep(0.1)\n os._exit(7)\neach(serve)")
        made = self.connect(port)
        silent = self.connect(port)
        self.assertEqual(self.result(process, signal.SIGCONT)["exit_code"], 7)
        got = 0
        try:
            while piece := made.recv(65536):
                got += len(piece)
        except ConnectionResetError:
            pass
        self.assertGreater(got, 0)
        with self.assertRaises(ConnectionRefusedError):
            self.connect(port)
        silent.close()

    def test_a_gate_that_is_killed(self) -> None:
        process, port = self.serve("each(echo)")
        made = self.connect(port)
        made.sendall(b"x")
        self.assertEqual(made.recv(1), b"x")
        for pid in self.gates(process):
            os.kill(pid, signal.SIGKILL)
        with self.assertRaises(ConnectionError):
            if not made.recv(1):
                raise ConnectionError
        # The kernel closes what it had open one by one.
        self.wait_for(lambda: self.talk(port) == "ConnectionRefusedError", "the port is free")
        result = self.result(process)
        self.assertIn("the gate ended", result["notes"][0]["why"])

    def test_an_engine_that_is_killed(self) -> None:
        process, port = self.serve("each(echo)")
        self.assertEqual(self.talk(port), b"hi")
        gates = self.gates(process)
        self.assertEqual(len(gates), 1)
        process.kill()
        process.wait(BOUND)
        self.wait_for(lambda: self.talk(port) == "ConnectionRefusedError", "the port is free")
        self.wait_for(lambda: not is_alive(gates[0]), "the gate is gone")


class Kept(KeptJarCase):
    """A session."""

    way = NAMESPACE

    @staticmethod
    def is_served(port: int) -> bool:
        """Whether anybody answers in the jar; without anybody a connection is reset."""
        try:
            with socket.create_connection(("127.0.0.1", port), BOUND) as made:
                made.sendall(b"x")
                return bool(made.recv(1))
        except ConnectionError:
            return False

    def test_a_port_is_the_jars_for_all_its_runs(self) -> None:
        jar = self.open({"publish": [8000]})
        port = self.opened["published"][0]["host_port"]
        script = ["python3", "-u", "-c", SERVER + "sys.argv[2:] and os._exit(0)\neach(lambda c: (c.sendall(b'hi'), c.close()))", self.marker]
        for _ in range(2):
            # Whoever served before may not be gone yet.
            self.wait_for(lambda: not self.is_served(port), "nobody serves there")
            run = self.join(jar, script, sink="frames", capture=False)
            kinds = [run.read(), run.read()]
            self.assertEqual(kinds[0].json["published"], [{"port": 8000, "host_port": port}])
            with socket.create_connection(("127.0.0.1", port), BOUND) as made:
                self.assertEqual(made.recv(9), b"hi")
            run.close()
        jar.close()
        self.wait_for(lambda: is_free(port), "the port is free")

    def test_another_program_has_the_port(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            channel = self.engine.channel().send(OPEN, self.engine.request(keys={"publish": [f"{port}:8000"]}))
            error = channel.read().json["error"]
            channel.close()
        self.assertEqual((error["stage"], error["errno_name"]), ("plan", "EADDRINUSE"))


class WithHosts(GateCase):
    """Ports that are published, and hosts that can be reached."""

    def test_both_ways_at_once(self) -> None:
        code = "s = socket.create_server(('127.0.0.1', 8000))\nprint(talk('good.test', 7000, b'out'), flush=True)\n"
        code += "c, _ = s.accept()\nc.sendall(talk('good.test', 7000, c.recv(99)).encode())\nc.close()\n"
        process = self.start(
            "--events", "-C", "none", "--publish", "8000", *self.rules("good.test:7000"), "--", "python3", "-c", CLIENT + code, self.marker,
            preexec_fn=self.internet.enter,
        )
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["published"][0]["host_port"]
        self.assertEqual(json.loads(process.stdout.readline())["text"], "out\n")
        client = "import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\ns.sendall(b'in')\nprint(s.recv(99).decode())"
        done = subprocess.run(
            ["python3", "-c", client, str(port)], preexec_fn=self.internet.enter, capture_output=True, text=True, timeout=BOUND, check=True
        )
        self.assertEqual(done.stdout, "in\n")
        result = [json.loads(line) for line in process.stdout][-1]["result"]
        self.assertEqual(result["enforced"]["network"], "net-ns+gate")
        self.assertEqual([host["connections"] for host in result["network"]["hosts"]], [2])
        self.assertEqual(result["network"]["published"], [{"port": 8000, "host_port": port}])


class OnLandlock(JarCase):
    """Where there are no namespaces, a jar has no loopback of its own."""

    way = LANDLOCK

    def test_it_is_refused(self) -> None:
        result = self.json("--publish", "8000", "--", "true")
        self.assertEqual((result["outcome"], result["error"]["message"]), ("failed", "publish needs the rung 'namespace'"))


if __name__ == "__main__":
    unittest.main()
