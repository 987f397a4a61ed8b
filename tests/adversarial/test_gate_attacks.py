# SPDX-License-Identifier: Apache-2.0
"""More attacks on the gate, each where the kernel leads connections to it by rules, and where it has a listener for each port.

test_hostile_gate has first bytes, names that lie, and gates that are killed; here are other ways to send, floods, and the count
of what leaves the host.
"""

from __future__ import annotations

import errno
import os
import resource
import unittest
from pathlib import Path
from typing import Any, Dict, List

from harness import census, runner
from harness.case import on_ways
from harness.gate_case import CLIENT, GateCase
from harness.internet import ECHO_PORT, OTHER_SERVER, PRIVATE, SERVER, SINK_PORT, URGENT_PORT
from harness.runner import NAMESPACE, Way

RESET = "ConnectionResetError"
REFUSED = "ConnectionRefusedError"
PORTS = Way("ports", ("nftables",), ("--rung", "namespace"), "namespace", ("userns",))

# Every way to send to an address that is not connect() and send(). Each answers with what came back, or with an error's name.
WAYS = r"""
import ctypes, errno, struct
libc = ctypes.CDLL(None, use_errno=True)
FASTOPEN = 0x20000000
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
class Header(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("name_len", ctypes.c_uint32), ("parts", ctypes.POINTER(Vector)), ("part_count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_len", ctypes.c_size_t), ("flags", ctypes.c_int), ("len", ctypes.c_uint32)]
def pack(address, port, family):
    if family == socket.AF_INET6:
        return struct.pack("=H", family) + struct.pack(">HI", port, 0) + socket.inet_pton(family, address) + bytes(4)
    return struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)
def sendmmsg(s, address, port, family):
    name = pack(address, port, family)
    headers = (Header * 2)(*[Header(name, len(name), ctypes.pointer(Vector(b"hi", 2)), 1, None, 0, 0, 0)] * 2)
    if libc.sendmmsg(s.fileno(), headers, 2, FASTOPEN) < 0:
        raise OSError(ctypes.get_errno(), "sendmmsg")
def uring(*_):
    if libc.syscall(425, 8, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")
def once_more(s, address, port, family):
    "Connected to what is allowed, then unmade, then elsewhere."
    s.connect(good)
    if libc.connect(s.fileno(), bytes(16), 16) < 0:
        raise OSError(ctypes.get_errno(), "connect")
    s.connect((address, port))
def option(s, address, port, family):
    s.setsockopt(socket.IPPROTO_TCP, 30, 1)
    s.connect((address, port)); s.sendall(b"hi")
ways = {
    "connect": lambda s, address, port, family: (s.connect((address, port)), s.sendall(b"hi")),
    "sendto": lambda s, address, port, family: s.sendto(b"hi", FASTOPEN, (address, port)),
    "sendmsg": lambda s, address, port, family: s.sendmsg([b"hi"], [], FASTOPEN, (address, port)),
    "sendmmsg": sendmmsg, "option": option, "again": once_more, "uring": uring,
}
def attempt(way, address, port, family=socket.AF_INET, kind=socket.SOCK_STREAM, protocol=0):
    try:
        with socket.socket(family, kind, protocol) as s:
            # Fast open does not wait in sockets that have a time limit: whoever hangs is found by the test's bound.
            ways[way](s, address, port, family)
            return s.recv(2).decode() or "end"
    except OSError as error:
        return type(error).__name__ if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT,
            errno.ESOCKTNOSUPPORT, errno.EACCES, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOPROTOOPT) else "no"
"""


class AttackCase(GateCase):
    """A gate of either kind."""

    def gates(self) -> List[int]:
        """The processes of gates that this test has started."""
        found = []
        for pid in census.descendants(os.getpid()):
            try:
                if census.read(f"/proc/{pid}/cmdline").split(b"\0")[1:2] == [b"gate-process"]:
                    found.append(pid)
            except OSError:
                continue
        return found

    def is_by_ports(self) -> bool:
        return self.way is PORTS

    def check_kind(self, result: Dict[str, Any]) -> None:
        wanted = "net-ns+gate(ports)" if self.is_by_ports() else "net-ns+gate"
        self.assertEqual(result["enforced"]["network"], wanted)


@on_ways(NAMESPACE, PORTS)
class WaysToSend(AttackCase):
    """Data that goes along with a connection, other protocols, other families."""

    def test_to_what_is_allowed_and_to_what_is_not(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            WAYS
            + f"""
good = (socket.gethostbyname("good.test"), {ECHO_PORT})
names = [name for name in ways if name not in ("uring", "again")]
said["good"] = [attempt(name, *good) for name in names]
said["mapped"] = attempt("connect", "::ffff:" + good[0], good[1], socket.AF_INET6)
said["port"] = [attempt(name, good[0], {SINK_PORT}) for name in ways]
said["address"] = [attempt(name, address, 8080) for name in ways for address in ("{SERVER}", "{PRIVATE}", "169.254.169.254")]
said["own port"] = [attempt(name, address, {ECHO_PORT}) for name in ways for address in ("{SERVER}", "{PRIVATE}", "198.18.200.1", "198.19.0.9")]
said["six"] = [attempt(name, address, {ECHO_PORT}, socket.AF_INET6) for name in ("connect", "sendto", "sendmsg", "sendmmsg", "option")
               for address in ("2001:db8:1::10", "::ffff:{SERVER}", "64:ff9b::a09:909", "fe80::1")]
said["others"] = [attempt("connect", "{SERVER}", {ECHO_PORT}, socket.AF_INET, *kind) for kind in
                  ((socket.SOCK_STREAM, 262), (socket.SOCK_STREAM, 132), (socket.SOCK_SEQPACKET, 132), (6, 33), (socket.SOCK_RAW, 6), (socket.SOCK_RAW, 255))]
said["lite"] = attempt("connect", "{SERVER}", {ECHO_PORT}, socket.AF_INET, socket.SOCK_DGRAM, 136)
for family in (socket.AF_PACKET, 40, 38, 31, 44, 9):
    said.setdefault("families", []).append(attempt("connect", "{SERVER}", {ECHO_PORT}, family, socket.SOCK_DGRAM))
""",
        )
        self.check_kind(self.result)
        self.assertEqual(said["good"], ["hi"] + ["no"] * 4, "no call connects but connect()")
        self.assertIn(said["mapped"], ("hi", REFUSED, RESET))
        # Where the gate listens by port it takes what comes there, and resets what is for nobody.
        nowhere = {REFUSED, "no", "ConnectionAbortedError", RESET} if self.is_by_ports() else {REFUSED, "no", RESET}
        for name in ("port", "address"):
            self.assertLessEqual(set(said[name]), {REFUSED, "no"}, name)
        self.assertLessEqual(set(said["own port"]), nowhere)
        self.assertLessEqual(set(said["six"]), nowhere | {"OSError"})
        self.assertLessEqual(set(said["others"]) | set(said["families"]) | {said["lite"]}, {"no", REFUSED, "TypeError"})
        # "mapped" is the same server, if it works at all.
        self.assertEqual(set(self.reached()), {f"{SERVER}:{ECHO_PORT}"})

    def test_urgent_bytes_come_in_their_order_and_wake_nobody_for_ever(self) -> None:
        """splice() stops at such a byte: a gate that only splices would spin."""
        process = self.start(
            "-C", self.work, *self.rules(f"good.test:{URGENT_PORT}"), "--json", "--", "python3", "-c",
            CLIENT
            + f"""
with socket.create_connection(("good.test", {URGENT_PORT}), timeout=40) as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    got = b""
    while len(got) < 11:
        got += s.recv(99)
    open("ready", "w").write(got.decode())
    sys.stdin.readline()
""",
            self.marker, preexec_fn=self.internet.enter, stdin=-1,
        )
        self.wait_for(lambda: (self.work / "ready").exists() and (self.work / "ready").read_text(), "all bytes are back")
        self.assertEqual((self.work / "ready").read_text(), "abc!def?ghi")
        (gate,) = self.gates()
        self.wait_for(lambda: census.state(gate) == "S", "the gate sleeps")
        self.assertEqual(runner.check_answer(done := runner.finish(process, b"\n"), done.stdout)["exit_code"], 0)

    def test_no_urgent_byte_leaves_a_jar(self) -> None:
        said = self.say(
            ["good.test"],
            """
with socket.create_connection(("good.test", 80)) as s:
    try:
        s.send(b"X", socket.MSG_OOB)
    except OSError as error:
        said["urgent"] = error.errno
""",
        )
        self.assertEqual(said["urgent"], errno.EOPNOTSUPP)


@on_ways(NAMESPACE, PORTS)
class Outside(AttackCase):
    """What is seen from outside of a run that may reach nothing, or one thing."""

    def test_not_one_packet_leaves_a_run_that_is_denied_everything(self) -> None:
        before = self.internet.packets_out()
        said = self.say(
            [f"nobody.test:{ECHO_PORT},80,443"],
            WAYS
            + f"""
good = ("203.0.113.99", {ECHO_PORT})
for name in ways:
    for port in (53, 80, 443, {ECHO_PORT}, 8080):
        if (name, port) != ("again", 53):
            attempt(name, "{SERVER}", port); attempt(name, "{PRIVATE}", port); attempt(name, "2001:db8:1::10", port, socket.AF_INET6)
for name in ("good.test", "secret.evil.test", "x" * 60 + ".evil.test", "203.0.113.53.in-addr.arpa", "nobody.test.evil.test", "test"):
    look(name)
for family, address in ((socket.AF_INET, "{SERVER}"), (socket.AF_INET, "203.0.113.53"), (socket.AF_INET, "255.255.255.255"),
                        (socket.AF_INET, "224.0.0.1"), (socket.AF_INET6, "2001:db8:1::10"), (socket.AF_INET6, "ff02::1")):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        for port in (53, 443, 5353, 9):
            try:
                s.sendto(b"secret", (address, port))
            except OSError:
                pass
# The one name that is allowed, on ports that are not, and without a word on those that are checked.
said["port"] = talk("nobody.test", 8080, b"x")
for port in (80, 443):
    s = socket.create_connection(("nobody.test", port)); s.sendall(b"\\x16\\3"); s.close()
    said[str(port)] = web("nobody.test", port, "evil.test")
""",
        )
        self.assertEqual((said["80"], said["443"]), (RESET, RESET))
        self.assertIn(said["port"], (REFUSED, RESET))
        self.assertEqual(self.internet.log(), [], "a server or the name server has heard of it")
        self.assertEqual(self.internet.packets_out(), before, "a packet has left the host")
        # They are counted: the same run with one that is allowed.
        self.say([f"good.test:{ECHO_PORT}"], f'said = talk("good.test", {ECHO_PORT}, b"hi")')
        self.assertGreater(self.internet.packets_out(), before)

    def test_a_port_that_is_not_allowed_is_not_a_question(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}", f"other.test:{SINK_PORT}"],
            f"said = [talk('good.test', {SINK_PORT}, b'x'), talk('other.test', {ECHO_PORT}, b'x')]",
        )
        self.assertEqual((said, self.internet.log()), ([RESET, RESET], []))


@on_ways(NAMESPACE, PORTS)
class Floods(AttackCase):
    """Much of everything. Whoever floods a gate floods its own."""

    def test_ten_thousand_connections_that_say_nothing(self) -> None:
        said = self.say(
            ["good.test", f"good.test:{ECHO_PORT}"],
            f"""
address = (socket.gethostbyname("good.test"), 443)
held = []
for i in range(10000):
    s = socket.socket()
    s.setblocking(False)
    try:
        s.connect(address)
    except BlockingIOError:
        pass
    held.append(s)
# There may be no room for more; names are answered still.
said = [len(held), look("good.test")]
for s in held:
    s.close()
said.append(talk("good.test", {ECHO_PORT}, b"hi"))
""",
            "--fds", "12000",
        )
        self.assertEqual(said, [10000, ["198.18.1.0"], "hi"])
        self.assertEqual(self.reached(), [f"{SERVER}:{ECHO_PORT}"])

    def test_a_gate_with_few_descriptors_serves_one_after_the_other(self) -> None:
        def enter() -> None:
            # Room for some thirty connections.
            resource.setrlimit(resource.RLIMIT_NOFILE, (700, 700))
            self.internet.enter()

        result = self.json(
            "-C", "none", *self.rules(f"good.test:{ECHO_PORT}"), "--", "python3", "-c",
            CLIENT
            + f"""
address = (socket.gethostbyname("good.test"), {ECHO_PORT})
held = [socket.create_connection(address, timeout=40) for _ in range(200)]
for s in held:
    s.sendall(b"x")
answers = ""
for s in held:
    answers += s.recv(1).decode()
    s.close()
print(len(answers))
""",
            self.marker, preexec_fn=enter,
        )
        self.check_kind(result)
        self.assertEqual((result["exit_code"], result["stdout"]), (0, "200\n"), result)

    def test_questions_that_are_none(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"""
import random
chance = random.Random(1)
good = b"\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4good\\4test\\0\\0\\1\\0\\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for i in range(3000):
        bad = bytearray(good * chance.randint(1, 3))
        for _ in range(chance.randint(1, 8)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        s.sendto(bad[:chance.randint(0, len(bad))], ("198.18.0.1", 53))
held = []
for i in range(300):
    s = socket.create_connection(("8.8.8.8", 53), timeout=40)
    s.sendall(b"\\0" if i % 2 else b"\\xff\\xff" + bytes(100))
    held.append(s)
said = [talk("good.test", {ECHO_PORT}, b"hi"), talk("8.8.8.8", 53, len(good).to_bytes(2, "big") + good) != ""]
""",
        )
        self.assertEqual(said, ["hi", True])

    def test_every_port_of_every_kind_of_address(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"""
def scan(address, family=socket.AF_INET):
    answers = set()
    for port in [*range(1, 1100), *range(1100, 65536, 97), 65535]:
        if port not in (53, {ECHO_PORT}):
            with socket.socket(family) as s:
                answers.add(s.connect_ex((address, port)))
    return sorted(answers)
said = [scan(a) for a in (socket.gethostbyname("good.test"), "{SERVER}", "{OTHER_SERVER}", "169.254.169.254")] + [scan("2001:db8:1::10", socket.AF_INET6)]
""",
        )
        self.assertEqual(said, [[111]] * 5)
        self.assertEqual(self.internet.log(), [])


class NoProcess(AttackCase):
    """A gate whose process cannot be executed."""

    way = Way("no process", ("execveat",), ("--rung", "namespace"), "namespace", ("userns",))

    def test_nothing_gets_through(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}", f"203.0.113.0/24:{ECHO_PORT}"],
            f"said = [look('good.test'), talk('{SERVER}', {ECHO_PORT}), talk('{SERVER}', {ECHO_PORT}), talk('127.0.0.1', {ECHO_PORT})]",
        )
        self.assertEqual(said[0], "gaierror")  # type: ignore[index]
        # The first may have been there when the listener was closed.
        self.assertIn(said[1], (REFUSED, RESET))  # type: ignore[index]
        self.assertEqual(said[2:], [REFUSED, REFUSED])  # type: ignore[index]
        self.assertIn("the gate ended before the run did", str(self.result["notes"]))
        self.assertEqual(self.internet.log(), [])

    def test_a_short_command_without_network_needs_none(self) -> None:
        """On a busy host a short command may not be short enough: of some, one is."""
        for _ in range(200):
            result = self.json("-C", "none", *self.rules("good.test"), *self.sh("exit 3"), preexec_fn=self.internet.enter)
            self.assertEqual((result["exit_code"], result["network"]["hosts"]), (3, []))
            if "the gate ended" not in str(result["notes"]):
                return
        self.fail("each of them had a process")


class Neighbours(AttackCase):
    """Several jars at once."""

    def test_one_that_floods_does_not_hold_up_another(self) -> None:
        flood = CLIENT + f"""
address = (socket.gethostbyname("good.test"), 443)
open("ready", "w").close()
while True:
    held = [socket.socket() for _ in range(200)]
    for s in held:
        s.setblocking(False)
        s.connect_ex(address)
"""
        process = self.start(
            "-C", self.work, *self.rules("good.test"), "--", "python3", "-c", flood, self.marker, preexec_fn=self.internet.enter
        )
        self.wait_for((self.work / "ready").exists, "the other one floods")
        said = self.say([f"good.test:{ECHO_PORT}"], f"said = [talk('good.test', {ECHO_PORT}, b'hi') for _ in range(20)]")
        self.assertEqual(said, ["hi"] * 20)
        self.assertIsNone(process.poll())
        process.kill()

    def test_jars_have_nothing_of_each_other(self) -> None:
        """What one listens on, another does not find, at whatever address."""
        server = CLIENT + f"""
for address in ("0.0.0.0", "198.18.1.0"):
    for port in (8000, {ECHO_PORT}):
        try:
            s = socket.create_server((address, port))
        except OSError:
            continue
        threading.Thread(target=lambda s=s: [c.sendall(b"other jar") or c.close() for c, _ in iter(s.accept, 0)], daemon=True).start()
open("ready", "w").close()
time.sleep(60)
"""
        process = self.start(
            "-C", self.work, *self.rules(f"good.test:{ECHO_PORT}"), "--", "python3", "-c", server, self.marker, preexec_fn=self.internet.enter
        )
        self.wait_for((self.work / "ready").exists, "the other one listens")
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"said = [talk(a, p, b'hi') for a in ('127.0.0.1', '198.18.0.1', 'good.test') for p in (8000, {ECHO_PORT})]",
        )
        self.assertEqual(said, [REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, "hi"])
        process.kill()

    def test_no_file_of_the_gates_is_seen_in_the_jar(self) -> None:
        """Its names and servers are the jar's own, whatever the host's are."""
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            """
said["names"] = open("/etc/resolv.conf").read() + open("/etc/hosts").read()
said["processes"] = [open("/proc/%s/cmdline" % pid).read() for pid in os.listdir("/proc") if pid.isdigit()]
""",
        )
        for word in ("203.0.113", "listed.test"):
            self.assertNotIn(word, said["names"])
        self.assertFalse([line for line in said["processes"] if "gate-process" in line])
        self.assertTrue(Path("/etc/hosts").exists())


if __name__ == "__main__":
    unittest.main()
