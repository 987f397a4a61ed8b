# SPDX-License-Identifier: Apache-2.0
"""Local services and the network: sockets of the host by path and by abstract name, loopback, any address.

Layers: on the namespace rung the sockets are not there (ENOENT) or in another network namespace (ECONNREFUSED,
ENETUNREACH); on the landlock rung the filter refuses connect() (EACCES) and internet sockets (EAFNOSUPPORT).
"""

from __future__ import annotations

import os
import socket
import unittest
from pathlib import Path
from typing import Dict, List

from adversarial_support import AttackCase, host
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE, Way

# What daemons of a desktop or a build machine would listen on, below the places that are planted.
NAMES = ("docker.sock", "dbus-1", "agent.1", "S.gpg-agent", "tmux-0", "X0", "pulse", "podman.sock")
CLIENT = """
kinds = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM, "seqpacket": socket.SOCK_SEQPACKET}
def reach(address, kind):
    s = socket.socket(socket.AF_UNIX, kinds[kind])
    s.settimeout(3)
    s.connect(address)
    s.send(b"attack")
def send_to(address):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(b"attack", address)
def pair_send_to(address):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b"attack", address)
def pass_descriptor(address):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(address)
    s.sendmsg([b"attack"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
for address in sys.argv[1:-1]:
    real = ("\\0" + address[1:]) if address[0] == "@" else address
    for kind in kinds:
        attempt(f"{address} {kind}", lambda: reach(real, kind))
    attempt(f"{address} sendto", lambda: send_to(real))
    attempt(f"{address} pair", lambda: pair_send_to(real))
    attempt(f"{address} rights", lambda: pass_descriptor(real))
"""


class ServiceCase(AttackCase):
    def setUp(self) -> None:
        super().setUp()
        self.servers: List[socket.socket] = []

    def listen(self, address: "str | bytes", kind: int = socket.SOCK_STREAM, family: int = socket.AF_UNIX) -> None:
        """A service of the host; whoever contacts it waits in its queue."""
        server = socket.socket(family, kind)
        self.addCleanup(server.close)
        server.bind(address)  # type: ignore[arg-type]
        if kind != socket.SOCK_DGRAM:
            server.listen(64)
        server.setblocking(False)
        self.servers.append(server)

    def heard(self) -> List[str]:
        """Every contact with one of the services so far."""
        found = []
        for server in self.servers:
            while True:
                try:
                    if server.type == socket.SOCK_DGRAM:
                        server.recv(100)
                    else:
                        server.accept()[0].close()
                except BlockingIOError:
                    break
                found.append(f"{server.getsockname()!r} {server.type!r}")
        return found

    def contact(self, *addresses: str, options: "tuple[str, ...]" = (), way: "Way | None" = None) -> Dict[str, str]:
        extra = {"way": way} if way else {}
        result = self.json("--output", "1M", *options, *self.python(CLIENT, *addresses), **extra)
        self.assertEqual(result["outcome"], "exited", result["error"])
        self.result = result
        return self.answers(result["stdout"])


@on_ways(NAMESPACE, LANDLOCK)
class UnixSockets(ServiceCase):
    def test_sockets_by_path_in_the_usual_places(self) -> None:
        places = [self.directory("run"), self.home]
        paths: List[str] = []
        for place in places:
            for name in NAMES:
                path = str(place / name)
                self.listen(path)
                paths.append(path)
        datagram = str(self.directory("log") / "dev-log")
        self.listen(datagram, socket.SOCK_DGRAM)
        answers = self.contact(*paths, datagram)
        allowed = {"ENOENT"} if self.way is NAMESPACE else {"EACCES", "ESOCKTNOSUPPORT"}
        self.assertEqual({name: a for name, a in answers.items() if a not in allowed}, {})
        self.assertEqual(self.heard(), [])

    def test_sockets_planted_in_tmp_and_run(self) -> None:
        path = f"/tmp/bjt-socket-{os.getpid()}-{self.marker[-6:]}"
        self.listen(path)
        self.addCleanup(lambda: Path(path).unlink())
        answers = self.contact(path, "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0")
        self.assertNotIn("ok", answers.values())
        self.assertEqual(self.heard(), [])

    def test_abstract_sockets(self) -> None:
        """Layers: the network namespace (ECONNREFUSED), or the filter and Landlock's scope (EACCES, EPERM)."""
        self.listen(b"\0" + self.marker.encode())
        self.listen(b"\0d" + self.marker.encode(), socket.SOCK_DGRAM)
        answers = self.contact("@" + self.marker, "@d" + self.marker)
        allowed = {"ECONNREFUSED"} if self.way is NAMESPACE else {"EACCES", "EPERM", "ESOCKTNOSUPPORT"}
        self.assertEqual({name: a for name, a in answers.items() if a not in allowed}, {})
        self.assertEqual(self.heard(), [])

    def test_abstract_sockets_with_the_host_s_network(self) -> None:
        """Layer: Landlock's scope alone. Where the kernel has none, the result must say so."""
        self.listen(b"\0" + self.marker.encode())
        answers = self.contact("@" + self.marker, options=("--net", "host"))
        if host.landlock_abi() >= 6:
            self.assertNotIn("ok", answers.values())
            self.assertEqual(self.heard(), [])

    def test_abstract_sockets_with_the_host_s_network_and_no_landlock(self) -> None:
        if self.way is not NAMESPACE:
            self.skipTest("needs:namespace rung")
        self.listen(b"\0" + self.marker.encode())
        way = Way("no landlock", ("landlock",), ("--rung", "namespace"), "namespace", ("userns",))
        answers = self.contact("@" + self.marker, options=("--net", "host"), way=way)
        reached = "ok" in answers.values()
        said = any("socket" in str(entry).lower() for entry in self.result["missing"])
        self.assertTrue(not reached or said, "abstract sockets of the host are in reach, and the result does not say so")

    def test_path_sockets_with_the_host_s_network(self) -> None:
        path = str(self.directory("run") / "docker.sock")
        self.listen(path)
        answers = self.contact(path, options=("--net", "host"))
        if self.way is NAMESPACE:
            self.assertNotIn("ok", answers.values())
        elif "ok" in answers.values():
            self.assertIn("unix_sockets", self.missing(self.result))

    def test_sockets_inside_work_where_promised(self) -> None:
        script = """
a, b = socket.socketpair()
a.send(b"x"); assert b.recv(1) == b"x"
print("pair ok")
"""
        self.assertIn("pair ok", self.json(*self.python(script))["stdout"])


@on_ways(NAMESPACE, LANDLOCK)
class Network(ServiceCase):
    CLIENT = """
def tcp(host, port, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(2); s.connect((host, port))
def udp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(b"attack", (host, port))
def fast_open(host, port):
    s = socket.socket(); s.sendto(b"attack", 0x20000000, (host, port))
def ping(host):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1); s.sendto(b"\\x08\\0\\0\\0\\0\\0\\0\\0", (host, 0))
def broadcast(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.sendto(b"attack", ("255.255.255.255", port))
port = int(sys.argv[1])
for host in ("127.0.0.1", "127.1.2.3", "0.0.0.0", *sys.argv[2:-1]):
    attempt(f"tcp {host}", lambda: tcp(host, port))
    attempt(f"udp {host}", lambda: udp(host, port + 0))
    attempt(f"fastopen {host}", lambda: fast_open(host, port))
attempt("tcp ::1", lambda: tcp("::1", port, socket.AF_INET6))
attempt("tcp mapped", lambda: tcp("::ffff:127.0.0.1", port, socket.AF_INET6))
attempt("tcp metadata", lambda: tcp("169.254.169.254", 80))
attempt("udp dns", lambda: udp("192.0.2.1", 53))
attempt("ping", lambda: ping("192.0.2.1"))
attempt("broadcast", lambda: broadcast(port))
def listen():
    s = socket.socket(); s.bind(("0.0.0.0", 0)); s.listen(1)
    c = socket.socket(); c.settimeout(2); c.connect(("127.0.0.1", s.getsockname()[1]))
attempt("own loopback", listen)
print("interfaces", ",".join(sorted(name for _, name in socket.if_nameindex())) if hasattr(socket, "if_nameindex") else "?")
"""

    def addresses(self) -> List[str]:
        """The host's own addresses, as far as they can be told without a packet."""
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            probe.connect(("192.0.2.1", 9))
            return [probe.getsockname()[0]]
        except OSError:
            return []
        finally:
            probe.close()

    def test_nothing_of_the_host_s_network_is_in_reach(self) -> None:
        self.listen(("127.0.0.1", 0), family=socket.AF_INET)  # type: ignore[arg-type]
        port = self.servers[0].getsockname()[1]
        self.listen(("127.0.0.1", port), socket.SOCK_DGRAM, socket.AF_INET)  # type: ignore[arg-type]
        if self.way is LANDLOCK:
            # Without internet sockets if_nameindex has nothing to ask with.
            script = self.CLIENT.replace("print(\"interfaces\"", "0 and print(\"interfaces\"")
        else:
            script = self.CLIENT
        result = self.json(*self.python(script, str(port), *self.addresses()))
        answers = self.answers(result["stdout"])
        self.assertGreater(len(answers), 12, result["stderr"])
        own = answers.pop("own loopback")
        if self.way is NAMESPACE:
            self.assertEqual(own, "ok")
            self.assertEqual(answers.pop("interfaces"), "lo")
            # A datagram to one's own loopback goes nowhere, and says so only later.
            silent = {"udp 127.0.0.1", "udp 127.1.2.3", "udp 0.0.0.0"}
            reached = {name for name, answer in answers.items() if answer == "ok"} - silent
            self.assertEqual(reached, set())
            stopped = {a for name, a in answers.items() if name not in silent}
            refusals = {"ECONNREFUSED", "ENETUNREACH", "EACCES", "EPERM", "EADDRNOTAVAIL", "EHOSTUNREACH"}
            # The filter refuses TCP fast open with EOPNOTSUPP, another name of the same number.
            self.assertLessEqual(stopped, refusals | {"ENOTSUP"})
        else:
            self.assertEqual({own, *answers.values()}, {"EAFNOSUPPORT"})
            self.assertIn("loopback", self.missing(result))
        self.assertEqual(self.heard(), [])

    def test_netlink_changes_nothing(self) -> None:
        script = """
def up():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    # RTM_NEWLINK: a new dummy interface; the answer carries an errno
    attribute = struct.pack("HH", 4 + 6, 18) + struct.pack("HH", 6, 1) + b"d\\0" + b"\\0\\0"
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + attribute
    s.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
    code = struct.unpack("i", s.recv(4096)[16:20])[0]
    if code < 0:
        raise OSError(-code, "netlink")
attempt("newlink", up)
def flags():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0))
attempt("lo down", flags)
"""
        answers = self.answers(self.json(*self.python(script))["stdout"])
        self.assertNotIn("ok", answers.values())

    def test_proxies_of_the_caller_are_not_told(self) -> None:
        env = {**self.env, "HTTP_PROXY": "http://user:pw@proxy", "SSH_AUTH_SOCK": "/tmp/agent", "DISPLAY": ":0"}
        env.update(DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/0/bus", XDG_RUNTIME_DIR="/run/user/0", DOCKER_HOST="tcp://x")
        result = self.json("--", "env", env=env)
        for name in ("PROXY", "SSH_AUTH", "DISPLAY", "DBUS", "XDG_RUNTIME", "DOCKER"):
            self.assertNotIn(name, result["stdout"])


if __name__ == "__main__":
    unittest.main()
