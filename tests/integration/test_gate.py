# SPDX-License-Identifier: Apache-2.0
"""The gate: a jar reaches the hosts that its policy names, by name and port, and nothing else.

Belljar runs on a host with a world around it that both are the test's own (harness/internet.py).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import unittest

from harness import internet
from harness.bounds import BOUND
from harness.case import JarCase
from harness.gate_case import CLIENT, GateCase
from harness.internet import BANNER_PORT, ECHO_PORT, IPV6_SERVER, PRIVATE, SERVER, SILENT_PORT, SINK_PORT, SOURCE_PORT
from harness.runner import LANDLOCK, Way

RESET = "ConnectionResetError"


class Names(GateCase):
    """Hosts by name."""

    def test_an_allowed_name_is_reached_and_others_do_not_exist(self) -> None:
        said = self.say(
            ["good.test"],
            "said = [web('good.test'), look('other.test'), look('www.good.test'), web('listed.test')]",
        )
        self.assertIn("hello", said[0])  # type: ignore[index]
        self.assertEqual(said[1:], ["gaierror"] * 3)  # type: ignore[index]
        self.assertEqual(self.reached(), [f"{SERVER}:80"])
        self.assertEqual(self.asked(), ["good.test"])

    def test_a_wildcard_is_for_names_below_it(self) -> None:
        said = self.say(
            ["*.good.test:7000"],
            f"said = [talk(name, {ECHO_PORT}, b'hi') for name in ('www.good.test', 'a.b.good.test', 'good.test')]",
        )
        self.assertEqual(said, ["hi", "hi", "gaierror"])

    def test_ports_are_those_of_the_rule(self) -> None:
        said = self.say(
            ["good.test:7000-7001", "other.test:80"],
            f"said = [talk('good.test', {ECHO_PORT}, b'hi'), talk('good.test', {SOURCE_PORT}, b'3\\n'),"
            f" talk('good.test', {SINK_PORT}, b'x'), web('other.test'), talk('other.test', {ECHO_PORT}, b'x')]",
        )
        self.assertEqual(said[:2], ["hi", "\0\0\0"])  # type: ignore[index]
        self.assertEqual(said[2], "ConnectionRefusedError")  # type: ignore[index]
        self.assertIn("hello", said[3])  # type: ignore[index]
        # Some name may be reached on that port, but not this one.
        self.assertEqual(said[4], "ConnectionResetError")  # type: ignore[index]
        self.assertEqual(self.reached(), [f"{SERVER}:7000", f"{SERVER}:7001", f"{internet.OTHER_SERVER}:80"])

    def test_a_server_may_speak_first(self) -> None:
        said = self.say([f"good.test:{BANNER_PORT}"], f"said = talk('good.test', {BANNER_PORT})")
        self.assertEqual(said, "SSH-2.0-world\r\n")

    def test_every_name_server_is_the_gate(self) -> None:
        """By datagram and by stream, whatever server is asked; other records do not exist."""
        said = self.say(
            ["good.test"],
            r"""
import struct
def query(name, kind, server, tcp=False, family=socket.AF_INET):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    q += b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack(">HH", kind, 1)
    with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(40)
        s.connect((server, 53))
        s.send(struct.pack(">H", len(q)) + q if tcp else q)
        r = s.recv(512)
        while tcp and len(r) < 2 + struct.unpack(">H", r[:2])[0]:
            r += s.recv(512)
        r = r[2:] if tcp else r
    return [r[3] & 15, struct.unpack(">H", r[6:8])[0]]
said = [query("good.test", 1, "198.18.0.1"), query("good.test", 1, "8.8.8.8"), query("good.test", 1, "9.9.9.9", True),
        query("good.test", 1, "2001:db8::53", False, socket.AF_INET6), query("good.test", 28, "8.8.8.8"),
        query("good.test", 65, "8.8.8.8"), query("evil.test", 1, "8.8.8.8"), query("evil.test", 16, "8.8.8.8", True),
        query("1.0.18.198.in-addr.arpa", 12, "8.8.8.8")]
""",
        )
        self.assertEqual(said, [[0, 1], [0, 1], [0, 1], [0, 1], [0, 0], [0, 0], [3, 0], [3, 0], [3, 0]])
        self.assertEqual(self.internet.log(), [])
        # Neither was a name server refused, nor can anybody allow the name of an address.
        self.assertEqual([(entry["kind"], entry["what"]) for entry in self.result["denied"]], [("name", "evil.test")])

    def test_the_hosts_own_list_of_names_is_asked_first(self) -> None:
        said = self.say([f"listed.test:{ECHO_PORT}"], f"said = talk('listed.test', {ECHO_PORT}, b'hi')")
        self.assertEqual((said, self.asked()), ("hi", []))

    def test_an_answer_too_long_for_a_datagram_is_asked_for_by_stream(self) -> None:
        """And where the stream has none, the part that the datagram had will do."""
        said = self.say([internet.BIG_NAME, internet.HALF_NAME], f"said = [web('{internet.BIG_NAME}'), web('{internet.HALF_NAME}')]")
        self.assertIn("hello", said[0])  # type: ignore[index]
        self.assertIn("hello", said[1])  # type: ignore[index]
        self.assertLessEqual({f"stream {internet.BIG_NAME}", f"stream {internet.HALF_NAME}"}, set(self.internet.log()))

    def test_other_name_servers_of_the_host_are_noticed(self) -> None:
        """While a command runs: new servers are asked, names that were found are looked up again, and so is /etc/hosts."""
        for name in ("resolv.conf", "hosts"):
            path = self.internet.base / name
            self.addCleanup(path.write_text, path.read_text())
        code = f'''
said["before"] = ["hello" in web("kept.many.test"), "hello" in web("listed.test"), web("0.{internet.MOVED_NAME}")]
web("new.test")
deadline = time.monotonic() + 40
for number in range(1, 4000):
    said["moved"], said["new"] = "hello" in web("%d.{internet.MOVED_NAME}" % number), "hello" in web("new.test")
    if (said["moved"] and said["new"]) or time.monotonic() > deadline:
        break
    time.sleep(0.1)
# The new server does not know it: an answer of the old one is no longer used.
said["kept"] = web("kept.many.test")
print(json.dumps(said))
'''
        process = self.start(
            "-C", "none", *self.rules(f"*.{internet.MOVED_NAME}", "new.test", "listed.test", "*.many.test"), "--", "python3", "-c",
            CLIENT + code, self.marker, preexec_fn=self.internet.enter,
        )
        self.wait_for(lambda: "name new.test" in self.internet.log(), "the first server is asked")
        (self.internet.base / "hosts").write_text("203.0.113.10 new.test\n")
        (self.internet.base / "resolv.conf").write_text(f"nameserver {internet.OTHER_NAME_SERVER}\n")
        said = json.loads(process.communicate(timeout=BOUND)[0])
        self.assertEqual(said, {"before": [True, True, RESET], "moved": True, "new": True, "kept": RESET})

    def test_the_next_address_is_tried(self) -> None:
        said = self.say(
            [f"dead.test:{ECHO_PORT}", f"six.test:{ECHO_PORT}", f"alias.test:{ECHO_PORT}"],
            f"said = [talk(name, {ECHO_PORT}, b'hi') for name in ('dead.test', 'six.test', 'alias.test')]",
        )
        self.assertEqual(said, ["hi"] * 3)

    def test_a_name_without_an_address_is_reset(self) -> None:
        said = self.say([f"absent.test:{ECHO_PORT}"], f"said = talk('absent.test', {ECHO_PORT}, b'hi')")
        self.assertEqual(said, "ConnectionResetError")

    def test_exceptions_win(self) -> None:
        said = self.say(
            [f"*.good.test:{ECHO_PORT}", '{"host": "www.good.test", "deny": true, "reason": "use the mirror"}'],
            f"said = [talk('a.b.good.test', {ECHO_PORT}, b'hi'), look('www.good.test')]",
        )
        self.assertEqual(said, ["hi", "gaierror"])


class Addresses(GateCase):
    """Hosts by address, and addresses that no name leads to."""

    def test_an_address_needs_a_rule(self) -> None:
        said = self.say(
            [f"203.0.113.8/29:{ECHO_PORT}", f"[2001:db8:1::/48]:{ECHO_PORT}", f"{PRIVATE}:{ECHO_PORT}"],
            f"""
said = [talk("{SERVER}", {ECHO_PORT}, b"hi"), talk("{IPV6_SERVER}", {ECHO_PORT}, b"hi", 99, socket.AF_INET6),
        talk("{PRIVATE}", {ECHO_PORT}, b"hi"), talk("{SERVER}", 80), talk("203.0.113.53", {ECHO_PORT}),
        talk("2001:db8:2::1", {ECHO_PORT}, b"", 99, socket.AF_INET6), talk("169.254.169.254", 80), talk("8.8.8.8", 443)]
""",
        )
        self.assertEqual(said, ["hi"] * 3 + ["ConnectionRefusedError"] * 5)

    def test_names_do_not_lead_to_private_addresses(self) -> None:
        names = "private meta own loop loop6 mapped nat64 badalias"
        rules = [f"{name}.test:{ECHO_PORT}" for name in names.split()]
        code = f"said = [talk(name + '.test', {ECHO_PORT}, b'hi') for name in '{names}'.split()]"
        self.assertEqual(self.say(rules, code), ["ConnectionResetError"] * len(rules))
        self.assertEqual(self.reached(), [])

    def test_of_several_addresses_the_public_ones_count(self) -> None:
        said = self.say([f"both.test:{ECHO_PORT}"], f"said = talk('both.test', {ECHO_PORT}, b'hi')")
        self.assertEqual((said, self.reached()), ("hi", [f"{SERVER}:{ECHO_PORT}"]))

    def test_private_is_for_private_addresses_only(self) -> None:
        names = ["private.test", "meta.test", "loop.test"]
        rules = [json.dumps({"host": name, "ports": ECHO_PORT, "private": True}) for name in names]
        said = self.say(rules, f"said = [talk(name, {ECHO_PORT}, b'hi') for name in {names}]")
        self.assertEqual(said, ["hi", "ConnectionResetError", "ConnectionResetError"])

    def test_a_denied_address_is_denied_inside_of_another(self) -> None:
        rules = [json.dumps({"host": "*.test", "ports": ECHO_PORT, "private": True}), json.dumps({"host": "10.0.0.0/8", "ports": "*", "deny": True})]
        said = self.say(rules, f"said = [talk(name + '.test', {ECHO_PORT}, b'hi') for name in ('private', 'mapped', 'good')]")
        self.assertEqual((said, self.reached()), ([RESET, RESET, "hi"], [f"{SERVER}:{ECHO_PORT}"]))

    def test_the_hosts_loopback_by_its_own_rule(self) -> None:
        """A server on the host's 127.0.0.1, in the network namespace that belljar runs in."""
        port, child = self.serve_on_loopback()
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        said = self.say(
            [f"host:{port}"],
            f"said = [talk('host.belljar.internal', {port}), talk('127.0.0.1', {port}), talk('host.belljar.internal', 80),"
            f" talk('localhost', {port})]",
        )
        self.assertEqual(said, ["own"] + ["ConnectionRefusedError"] * 3)

    def serve_on_loopback(self) -> "tuple[int, int]":
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.internet.enter()
                listener = socket.create_server(("127.0.0.1", 0))
                os.write(writer, str(listener.getsockname()[1]).encode())
                while True:
                    connection, _ = listener.accept()
                    connection.sendall(b"own")
                    connection.close()
            finally:
                os._exit(1)
        os.close(writer)
        port = int(os.read(reader, 16))
        os.close(reader)
        return port, child

    def test_the_jars_own_loopback_is_its_own(self) -> None:
        said = self.say(
            ["good.test:*"],
            """
servers = [socket.create_server((address, port), family=family) for address, port, family in
           (("127.0.0.1", 7000, socket.AF_INET), ("0.0.0.0", 7001, socket.AF_INET), ("::1", 7002, socket.AF_INET6))]
def serve(server):
    while True:
        c, _ = server.accept()
        c.sendall(b"mine")
        c.close()
for server in servers:
    threading.Thread(target=serve, args=(server,), daemon=True).start()
said = [talk("127.0.0.1", 7000), talk("127.0.0.1", 7001), talk("::1", 7002, family=socket.AF_INET6),
        talk("localhost", 7000), talk("127.0.0.1", 7009), talk("good.test", 7000, b"hi")]
""",
        )
        self.assertEqual(said, ["mine"] * 4 + ["ConnectionRefusedError", "hi"])


class Bytes(GateCase):
    """What goes through arrives, and is counted."""

    def test_bytes_are_counted_to_the_byte(self) -> None:
        self.say(
            ["good.test", f"good.test:{SOURCE_PORT}"],
            f"""
web("good.test"); web("good.test")
with socket.create_connection(("good.test", {SOURCE_PORT})) as s:
    s.sendall(b"3000000\\n")
    said["n"] = 0
    while data := s.recv(65536):
        said["n"] += len(data)
""",
        )
        network = self.result["network"]
        request = len("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n")
        self.assertEqual(
            network["hosts"],
            [
                {"host": "good.test", "port": 80, "connections": 2, "bytes_out": 2 * request, "bytes_in": 2 * 62},
                {"host": "good.test", "port": SOURCE_PORT, "connections": 1, "bytes_out": 8, "bytes_in": 3000000},
            ],
        )
        self.assertEqual(network["published"], [])
        self.assertEqual(self.result["enforced"]["network"], "net-ns+gate")

    def test_without_a_gate_there_is_no_such_object(self) -> None:
        result = self.json("-C", "none", "--", "true", preexec_fn=self.internet.enter)
        self.assertIsNone(result["network"])
        self.assertEqual(result["enforced"]["network"], "net-ns")

    def test_half_closed_both_ways(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"""
data = os.urandom(1 << 20)
got = b""
with socket.create_connection(("good.test", {ECHO_PORT})) as s:
    sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
    sender.start()
    while part := s.recv(65536):
        got += part
    sender.join()
said = got == data
""",
        )
        self.assertIs(said, True)

    def test_what_was_sent_before_the_end_arrives(self) -> None:
        self.say(
            [f"good.test:{SINK_PORT}"],
            f"""
s = socket.create_connection(("good.test", {SINK_PORT}))
s.sendall(bytes(300000))
""",
        )
        self.wait_for(lambda: "sink 300000" in self.internet.log(), "the world has it all")

    def test_a_reader_that_takes_nothing_slows_only_itself(self) -> None:
        said = self.say(
            [f"good.test:{SOURCE_PORT},{SILENT_PORT},{ECHO_PORT}"],
            f"""
slow = socket.create_connection(("good.test", {SOURCE_PORT}))
slow.sendall(b"100000000\\n")
stuck = socket.create_connection(("good.test", {SILENT_PORT}))
stuck.setblocking(False)
sent = 0
for _ in range(200):
    try:
        sent += stuck.send(bytes(65536))
    except BlockingIOError:
        time.sleep(0.005)
said["quick"] = [talk("good.test", {ECHO_PORT}, b"hi") for _ in range(20)]
said["sent"] = sent
""",
        )
        self.assertEqual(said["quick"], ["hi"] * 20)
        # What nobody takes is not taken in without end.
        self.assertLess(said["sent"], 64 << 20)


class Limits(GateCase):
    """net_connections and net_bytes."""

    def test_bytes_end_the_run(self) -> None:
        result = self.gate(
            [f"good.test:{SOURCE_PORT}"],
            f"""
s = socket.create_connection(("good.test", {SOURCE_PORT}))
s.sendall(b"100000000\\n")
n = 0
while data := s.recv(65536):
    n += len(data)
""",
            "--net-bytes", "1M",
        )
        self.assertEqual((result["outcome"], result["killed"]), ("net", True), result)
        hit = result["limits_hit"][0]
        self.assertEqual((hit["name"], hit["limit"], hit["peak"], hit["enforced_by"]), ("net_bytes", 1 << 20, 1 << 20, "gate"))
        self.assertEqual(sum(h["bytes_in"] + h["bytes_out"] for h in result["network"]["hosts"]), 1 << 20)

    def test_more_connections_than_may_be_are_refused(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"""
held = [socket.create_connection(("good.test", {ECHO_PORT})) for _ in range(3)]
for s in held:
    s.sendall(b"x")
    s.recv(1)
said["more"] = talk("good.test", {ECHO_PORT}, b"hi")
held.pop().close()
for _ in range(2000):
    said["again"] = talk("good.test", {ECHO_PORT}, b"hi")
    if said["again"] == "hi":
        break
    time.sleep(0.005)
""",
            "--net-connections", "3",
        )
        self.assertEqual(said, {"more": "ConnectionResetError", "again": "hi"})
        hit = self.result["limits_hit"][0]
        self.assertEqual((hit["name"], hit["limit"], hit["peak"]), ("net_connections", 3, 3))


class WhereThereIsNone(JarCase):
    """A gate that cannot be had is refused."""

    way = LANDLOCK

    def test_the_landlock_rung_has_no_gate(self) -> None:
        result = self.json("--allow-net", "good.test", "--", "true")
        self.assertEqual(result["outcome"], "failed")
        self.assertEqual(result["error"]["stage"], "host")
        self.assertIn("net 'gate' needs the rung 'namespace'", result["error"]["message"])
        self.assertTrue(result["error"]["hint"])


class WithoutNfTables(GateCase):
    """A listener for each port, where the host refuses nf_tables."""

    way = Way("ports", ("nftables",), ("--rung", "namespace"), "namespace", ("userns",))

    def test_ports_instead(self) -> None:
        code = CLIENT + f"""
said = [web("good.test"), talk("good.test", {ECHO_PORT}, b"hi"), talk("{SERVER}", 80), look("other.test"), talk("8.8.8.8", 25)]
print(json.dumps(said))
"""
        words = [*self.rules("good.test", f"good.test:{ECHO_PORT}"), "--", "python3", "-c", code, self.marker]
        result = self.json("-C", "none", *words, preexec_fn=self.internet.enter)
        said = json.loads(result["stdout"])
        self.assertIn("hello", said[0])
        self.assertEqual(said[1:], ["hi", "ConnectionResetError", "gaierror", "ConnectionRefusedError"])
        self.assertEqual(result["enforced"]["network"], "net-ns+gate(ports)")
        self.assertIn("80, 443, 7000", result["notes"][0]["why"])


if __name__ == "__main__":
    unittest.main()
