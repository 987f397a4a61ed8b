# SPDX-License-Identifier: Apache-2.0
"""The gate under attack: lying clients, lying name servers, other ways out, and a gate that is stopped or killed.

Layers: the jar's network namespace has no way out (a refused connection, whatever the protocol), the gate checks what a
connection is for (a reset), and the filter refuses other families and protocols.
"""

from __future__ import annotations

import os
import signal
import unittest
from pathlib import Path
from typing import List

from harness import census, runner
from harness.gate_case import CLIENT, GateCase
from harness.internet import ECHO_PORT, RETRY, RETRY_PORT, SERVER

# A ClientHello for a name, in records of `size` bytes.
HELLO = r"""
def hello(*names, size=16384):
    def part(data, n):
        return len(data).to_bytes(n, "big") + data
    extensions = b"\0\x2b\0\x03\x02\x03\x04"
    for name in names:
        extensions += b"\0\0" + part(part(b"\0" + part(name.encode(), 2), 2), 2)
    body = b"\3\3" + bytes(32) + b"\0" + part(b"\x13\x01", 2) + part(b"\0", 1) + part(extensions, 2)
    message = b"\1" + part(body, 3)
    return b"".join(b"\x16\3\1" + part(message[i:i + size], 2) for i in range(0, len(message), size))
def slowly(host, port, data):
    "Byte by byte, each in a packet of its own."
    with socket.create_connection((host, port)) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.settimeout(40)
        try:
            for i in range(len(data)):
                s.send(data[i:i + 1])
            return len(s.recv(1)) == 1
        except OSError as error:
            return type(error).__name__
"""
RESET = "ConnectionResetError"
REFUSED = "ConnectionRefusedError"


class FirstBytes(GateCase):
    """A connection to one host that says it is for another."""

    def test_server_names(self) -> None:
        said = self.say(
            ["good.test", "good.test:7000"],
            HELLO
            + f"""
def answer(s):
    try:
        return s.recv(1).decode()
    except OSError as error:
        return type(error).__name__
def tls(data, port=443):
    said = talk("good.test", port, data)
    return said if said.endswith("Error") else len(said) > 0
def cut_short():
    with socket.create_connection(("good.test", 443)) as s:
        s.settimeout(40)
        s.sendall(hello("good.test")[:50])
        s.shutdown(socket.SHUT_WR)
        return answer(s)
said = [tls(hello("good.test")), tls(hello("GOOD.test.")), tls(hello("good.test", size=1)),
        slowly("good.test", 443, hello("good.test")),
        tls(hello("evil.test")), tls(hello()), tls(hello("good.test", "evil.test")), tls(hello("evil.test", size=1)),
        slowly("good.test", 443, hello("evil.test")), tls(hello("www.good.test")), tls(b"\\x16\\3\\1\\0\\0"),
        tls(b"SSH-2.0-x\\r\\n"), tls(b"\\x15\\3\\3\\0\\2\\1\\x5a" + hello("evil.test"), {ECHO_PORT}),
        tls(hello("good.test"), {ECHO_PORT}), tls(hello("evil.test"), {ECHO_PORT}), tls(hello("evil.test"), 80), cut_short()]
""",
        )
        self.assertEqual(said, [True] * 4 + [RESET] * 9 + [True, RESET, RESET, RESET])
        # Nobody outside has heard of those that were refused.
        self.assertEqual(len(self.reached()), 5 + 2)

    def test_a_second_hello_has_the_same_name(self) -> None:
        """A server may ask for one, and takes the name out of it; whoever lies need not wait until it is asked for."""
        said = self.say(
            [f"good.test:{RETRY_PORT}"],
            HELLO
            + f"""
def twice(first, second, is_early):
    with socket.create_connection(("good.test", {RETRY_PORT})) as s:
        s.settimeout(40)
        try:
            s.sendall(first + (second if is_early else b""))
            got = b""
            while len(got) < {len(RETRY)}:
                got += s.recv({len(RETRY)} - len(got))
            if not is_early:
                s.sendall(second)
            got = b""
            while len(got) < len(second):
                piece = s.recv(65536)
                if not piece:
                    return "end"
                got += piece
            return got == second
        except OSError as error:
            return type(error).__name__
good, evil, ccs, data = hello("good.test"), hello("evil.test"), b"\\x14\\3\\3\\0\\1\\1", b"\\x17\\3\\3\\0\\4data"
said = [[twice(good, second, is_early) for is_early in (True, False)] for second in
        (good, ccs + good, ccs + data + good, hello("good.test", size=1), evil, ccs + evil, hello("evil.test", size=1), hello(), b"junk junk",
         b"\\x15\\3\\3\\0\\2\\1\\x5a" + evil)]
""",
        )
        self.assertEqual(said, [[True, True]] * 4 + [[RESET, RESET]] * 6)

    def test_hosts_of_requests(self) -> None:
        bad = [
            "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: evil.test\r\nHost: good.test\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\nHost: good.test\n\n",
            "GET / HTTP/1.1\r\nHost : evil.test\r\nHost: good.test\r\n\r\n",
            "GET / HTTP/1.1\r\nX: y\r\n Host: evil.test\r\nHost: good.test\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
            "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: good.test:8080\r\n\r\n",
        ]
        said = self.say(
            ["good.test", "good.test:8080"],
            HELLO
            + f"bad = {bad!r}\n"
            + """
good = "GET / HTTP/1.1\\r\\nHost: good.test\\r\\n\\r\\n"
said = [web("good.test", host="GOOD.test:80")[:15], slowly("good.test", 80, good.encode()),
        slowly("good.test", 80, good.replace("good", "evil").encode()),
        web("good.test", 8080)[:15], web("good.test", 8080, "evil.test"),
        talk("good.test", 80, b"GET /" + bytes([65]) * 70000)] + [talk("good.test", 80, text.encode()) for text in bad]
""",
        )
        self.assertEqual(said[:2], ["HTTP/1.1 200 OK", True])  # type: ignore[index]
        self.assertEqual(said[2:6], [RESET, "HTTP/1.1 200 OK", RESET, RESET])  # type: ignore[index]
        self.assertEqual(said[6:], [RESET] * len(bad))  # type: ignore[index]

    def test_saying_nothing_leads_nowhere(self) -> None:
        """A name is not asked for, and nobody is dialled, before the client has said whom it wants."""
        self.say(["good.test"], "s = socket.create_connection(('good.test', 443))\ns.sendall(b'\\x16')\ns.close()")
        self.assertEqual(self.internet.log(), [])


class LyingNames(GateCase):
    """Name servers that answer one thing and then another."""

    def test_rebinding(self) -> None:
        """The gate judges the address that it dials, each time."""
        said = self.say(
            [f"rebind.test:{ECHO_PORT}"],
            f"""
said = [talk("rebind.test", {ECHO_PORT}, b"hi")]
for _ in range(400):
    said.append(talk("rebind.test", {ECHO_PORT}, b"hi"))
    if said[-1] != "hi":
        break
    time.sleep(0.05)
said = [said[0], said[-1]]
""",
        )
        self.assertEqual(said, ["hi", RESET])
        self.assertEqual(set(self.reached()), {f"{SERVER}:{ECHO_PORT}"})

    def test_a_name_server_that_never_answers(self) -> None:
        said = self.say(
            [f"never.test:{ECHO_PORT}", f"good.test:{ECHO_PORT}"],
            f"""
waiting = socket.create_connection(("never.test", {ECHO_PORT}))
said = [talk("good.test", {ECHO_PORT}, b"hi") for _ in range(5)]
waiting.settimeout(40)
try:
    said.append(waiting.recv(1).decode())
except OSError as error:
    said.append(type(error).__name__)
""",
        )
        self.assertEqual(said, ["hi"] * 5 + [RESET])

    def test_there_is_an_end_to_names(self) -> None:
        said = self.say(
            [f"*.many.test:{ECHO_PORT}"],
            f"""
import struct
def ask(s, name):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    q += b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0" + struct.pack(">HH", 1, 1)
    s.send(q)
    return s.recv(512)[3] & 15
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(40)
    s.connect(("198.18.0.1", 53))
    codes = [ask(s, "n%d.many.test" % i) for i in range(5000)]
said = [codes[:4096] == [0] * 4096, set(codes[4096:]) == {{2}}, talk("n7.many.test", {ECHO_PORT}, b"hi"), look("n4999.many.test")]
""",
        )
        self.assertEqual(said, [True, True, "hi", "gaierror"])

    def test_a_name_that_is_not_allowed_is_not_asked_for_outside(self) -> None:
        before = self.internet.packets_out()
        said = self.say(
            ["good.test"],
            """
said = [look("secret-%d.evil.test" % i) for i in range(50)]
said += [talk("198.51.100.%d" % i, 443) for i in range(50)]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.sendto(b"secret", ("8.8.8.8", 53))
    s.sendto(b"secret", ("8.8.8.8", 123))
""",
        )
        self.assertEqual(said, ["gaierror"] * 50 + [REFUSED] * 50)
        self.assertEqual(self.internet.log(), [])
        self.assertEqual(self.internet.packets_out(), before, "a packet has left the host")
        self.say([f"good.test:{ECHO_PORT}"], f'said = [talk("good.test", {ECHO_PORT}, b"hi", 2)]')
        self.assertGreater(self.internet.packets_out(), before, "packets are not counted")


class OtherWays(GateCase):
    """Ways to the network that are not a plain connect()."""

    def test_other_protocols_and_calls(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"""
FASTOPEN = 0x20000000
def attempt(function):
    try:
        return function()
    except OSError as error:
        return error.strerror
def fast(address, way):
    with socket.socket() as s:
        if way == "sendto":
            s.sendto(b"hi", FASTOPEN, address)
        elif way == "sendmsg":
            s.sendmsg([b"hi"], [], FASTOPEN, address)
        else:
            s.setsockopt(socket.IPPROTO_TCP, 30, 1)
            s.connect(address)
            s.sendall(b"hi")
        s.settimeout(40)
        return s.recv(2).decode()
def datagram(kind, protocol, address):
    with socket.socket(socket.AF_INET, kind, protocol) as s:
        s.settimeout(40)
        s.connect(address)
        s.send(b"x")
        s.send(b"x")
        return "sent"
good = (socket.gethostbyname("good.test"), {ECHO_PORT})
for way in ("sendto", "sendmsg", "option"):
    said["good " + way] = attempt(lambda: fast(good, way))
    said["evil " + way] = attempt(lambda: fast(("{SERVER}", {ECHO_PORT}), way))
said["udp"] = attempt(lambda: datagram(socket.SOCK_DGRAM, 0, ("{SERVER}", 443)))
said["quic"] = attempt(lambda: datagram(socket.SOCK_DGRAM, 0, (good[0], 443)))
for name, arguments in {{
    "mptcp": (socket.AF_INET, socket.SOCK_STREAM, 262), "sctp": (socket.AF_INET, socket.SOCK_STREAM, 132),
    "udplite": (socket.AF_INET, socket.SOCK_DGRAM, 136), "dccp": (socket.AF_INET, 6, 33),
    "raw": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), "raw tcp": (socket.AF_INET, socket.SOCK_RAW, 6),
    "ping": (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), "packet": (17, socket.SOCK_RAW, 768),
    "netfilter": (socket.AF_NETLINK, socket.SOCK_RAW, 12), "vsock": (40, socket.SOCK_STREAM, 0),
}}.items():
    said[name] = attempt(lambda: socket.socket(*arguments) and "made")
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
    import struct
    message = struct.pack("IHHII", 28, 24, 0x605, 1, 0) + struct.pack("8BI", 2, 0, 0, 0, 254, 4, 0, 1, 0)
    s.send(message)
    said["route"] = struct.unpack("i", s.recv(4096)[16:20])[0]
def bind(address):
    with socket.socket() as s:
        s.bind(address)
        return "bound"
said["bind 53"] = attempt(lambda: bind(("0.0.0.0", 53)))
said["bind 1"] = attempt(lambda: bind(("127.0.0.1", 1)))
said["listener"] = talk("127.0.0.1", 1)
""",
        )
        for way in ("sendto", "sendmsg", "option"):
            expected = "Protocol not available" if way == "option" else "Operation not supported"
            self.assertEqual((said[f"good {way}"], said[f"evil {way}"]), (expected, expected))
        self.assertEqual((said["udp"], said["quic"]), ("Connection refused", "Connection refused"))
        for name in "mptcp sctp udplite dccp raw ping packet netfilter vsock".split() + ["raw tcp"]:
            self.assertNotEqual(said[name], "made", name)
        self.assertEqual(said["route"], -1, "EPERM")
        self.assertEqual((said["bind 53"], said["bind 1"]), ("Permission denied", "Permission denied"))
        self.assertEqual(said["listener"], RESET)

    def test_no_socket_of_the_hosts_is_in_the_jar(self) -> None:
        """Neither the command, nor the first process, nor anybody it could ask, has one; all are in the jar's own network."""
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            """
said["own"] = [os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd") if int(name) < 3]
said["sockets"] = sum(os.readlink("/proc/self/fd/" + name).startswith("socket:") for name in os.listdir("/proc/self/fd") if name != "3")
said["net"] = os.readlink("/proc/self/ns/net")
""",
        )
        self.assertEqual(said["sockets"], 0)
        self.assertNotEqual(said["net"], os.readlink("/proc/self/ns/net"))

    def test_two_jars_at_once_have_gates_of_their_own(self) -> None:
        rules = [["good.test:7000"], ["other.test:7000"]]
        code = CLIENT + "print(talk('good.test', 7000, b'a'), talk('other.test', 7000, b'b'), look('good.test'), look('other.test'))"
        running = [
            self.start("-C", "none", *self.rules(*rule), "--", "python3", "-c", code, self.marker, preexec_fn=self.internet.enter)
            for rule in rules
        ]
        said = [runner.finish(process).stdout.decode().strip() for process in running]
        # The same address stands for another name in each.
        self.assertEqual(said, ["a gaierror ['198.18.1.0'] gaierror", "gaierror b gaierror ['198.18.1.0']"])


class Storms(GateCase):
    """Many connections, and a gate that is hindered."""

    def test_two_thousand_connections(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"""
address = (socket.gethostbyname("good.test"), {ECHO_PORT})
held, answered = [], 0
for i in range(2000):
    s = socket.socket()
    s.settimeout(60)
    s.connect(address)
    s.sendall(b"x")
    held.append(s)
for s in held:
    answered += s.recv(1) == b"x"
said = answered
""",
            "--fds", "4096",
        )
        self.assertEqual(said, 2000)

    def test_a_scan_of_every_port(self) -> None:
        said = self.say(
            ["good.test"],
            f"""
answers = {{}}
for port in range(1, 3000):
    if port not in (53, 80, 443):
        answer = talk("good.test", port)
        answers[answer] = answers.get(answer, 0) + 1
said = answers
""",
        )
        self.assertEqual(list(said), [REFUSED])
        self.assertEqual(self.reached(), [])

    def wait_for_gate(self) -> int:
        found: List[int] = []

        def look() -> bool:
            for pid in census.descendants(os.getpid()):
                try:
                    words = census.read(f"/proc/{pid}/cmdline").split(b"\0")
                except OSError:
                    continue
                if words[1:2] == [b"gate-process"]:
                    found.append(pid)
            return bool(found)

        self.wait_for(look, "there is a gate")
        return found[0]

    WAITING = f"""
s = socket.create_connection(("good.test", {ECHO_PORT}))
s.sendall(b"x"); s.recv(1)
open("ready", "w").close()
sys.stdin.readline()
try:
    s.settimeout(40)
    print("open", s.recv(1))
except OSError as error:
    print("open", type(error).__name__)
print("new", talk("good.test", {ECHO_PORT}, b"hi"), talk("198.18.1.0", {ECHO_PORT}))
"""

    def test_a_gate_that_is_killed_lets_nothing_through(self) -> None:
        process = self.start(
            "-C", self.work, *self.rules(f"good.test:{ECHO_PORT}"), "--json", "--", "python3", "-u", "-c", CLIENT + self.WAITING, self.marker,
            preexec_fn=self.internet.enter, stdin=-1,
        )
        gate = self.wait_for_gate()
        self.wait_for((self.work / "ready").exists, "the program is connected")
        os.kill(gate, signal.SIGKILL)
        self.wait_for(lambda: not census.state(gate) or census.state(gate) == "Z", "the gate is dead")
        done = runner.finish(process, b"\n")  # type: ignore[arg-type]
        result = runner.check_answer(done, done.stdout)
        self.assertIn(result["stdout"].splitlines()[0], ("open b''", f"open {RESET}"))
        self.assertEqual(result["stdout"].splitlines()[1], f"new gaierror {REFUSED}")
        self.assertIn("the gate ended before the run did", str(result["notes"]))

    def test_a_gate_that_is_stopped_does_not_hold_up_the_end(self) -> None:
        process = self.start(
            "-C", self.work, *self.rules(f"good.test:{ECHO_PORT}"), "--json", "--", "python3", "-u", "-c", CLIENT + "open('ready', 'w').close(); sys.stdin.readline()",
            self.marker, preexec_fn=self.internet.enter, stdin=-1,
        )
        gate = self.wait_for_gate()
        self.wait_for((self.work / "ready").exists, "the program runs")
        os.kill(gate, signal.SIGSTOP)
        done = runner.finish(process, b"\n")
        self.assertEqual(runner.check_answer(done, done.stdout)["exit_code"], 0)

    def test_nothing_outlives_belljar(self) -> None:
        process = self.start(
            "-C", self.work, *self.rules(f"good.test:{ECHO_PORT}"), "--", "python3", "-u", "-c", CLIENT + self.WAITING, self.marker,
            preexec_fn=self.internet.enter, stdin=-1,
        )
        self.wait_for_gate()
        self.wait_for((self.work / "ready").exists, "the program is connected")
        process.kill()
        process.wait()
        # check_nothing_left() waits for the gate too.

    def test_the_gate_has_nothing_but_sockets(self) -> None:
        process = self.start(
            "-C", self.work, *self.rules(f"good.test:{ECHO_PORT}"), "--", "python3", "-u", "-c", CLIENT + self.WAITING, self.marker,
            preexec_fn=self.internet.enter, stdin=-1,
        )
        gate = self.wait_for_gate()
        self.wait_for((self.work / "ready").exists, "the program is connected")
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{gate}/status").read_text().splitlines() if ":\t" in line)
        self.assertEqual((status["Seccomp"], status["NoNewPrivs"]), ("2", "1"))
        for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            self.assertEqual(int(status[name], 16), 0, name)
        if os.geteuid() == 0:
            self.assertNotIn("0", status["Uid"].split())
            links = {os.readlink(f"/proc/{gate}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{gate}/fd")}
            self.assertLessEqual(links, {"socket", "pipe", "anon_inode"})
            self.assertEqual(Path(f"/proc/{gate}/environ").read_bytes(), b"")
        process.kill()


if __name__ == "__main__":
    unittest.main()
