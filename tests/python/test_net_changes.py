# SPDX-License-Identifier: Apache-2.0
"""Jar.allow_net and Jar.deny_net: a jar's rules change while it lives. The program runs on a host of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import internet  # noqa: E402
from harness.bounds import BOUND  # noqa: E402
from harness.host import need  # noqa: E402
from package_case import PackageCase, tearDownModule  # noqa: E402, F401

PROGRAM = r"""
import asyncio, json, os, signal
import belljar

TALK = '''
import json, socket, sys
def talk(host, port=7000, family=socket.AF_INET):
    try:
        with socket.socket(family) as s:
            s.settimeout(40)
            s.connect((host, port))
            s.sendall(b"hi")
            return s.recv(9).decode()
    except OSError as error:
        return type(error).__name__
'''
V6 = 10
said = {}


def talk(jar, *targets):
    result = jar.run(["python3", "-c", TALK + f"print(json.dumps([talk(*target) for target in {list(targets)!r}]))"])
    return json.loads(result.stdout)


def failure(function, *arguments):
    try:
        function(*arguments)
    except belljar.BelljarError as error:
        return [type(error).__name__, str(error)]


def is_gate(pid):
    try:
        words, status = open(f"/proc/{pid}/cmdline", "rb").read(), open(f"/proc/{pid}/stat", "rb").read()
    except OSError:
        return False
    return b"gate-process" in words and int(status.rpartition(b")")[2].split()[1]) == belljar._engine.current().pid


NAMES = [("good.test",), ("www.good.test",), ("good.test", 80)]
ADDRESSES = [("203.0.113.10",), ("203.0.113.10", 7022), ("203.0.113.53",), ("2001:db8:1::10", 7000, V6), ("10.9.9.9",), ("169.254.169.254",)]
with belljar.Jar(net="gate", workdir=None) as jar:
    said["nothing"] = talk(jar, *NAMES, *ADDRESSES)
    jar.allow_net("good.test:7000")
    said["name"] = talk(jar, *NAMES)
    jar.allow_net({"host": "*.good.test", "ports": 7000})
    said["below"] = talk(jar, *NAMES)
    jar.allow_net("203.0.113.8/29:7000")
    jar.allow_net("[2001:db8:1::/48]:7000")
    said["addresses"] = talk(jar, *ADDRESSES)
    # A rule about everything does not mean the addresses that are special.
    jar.allow_net("0.0.0.0/0:7000")
    said["everything"] = talk(jar, *ADDRESSES)
    jar.deny_net("0.0.0.0/0")
    said["nothing again"] = talk(jar, *ADDRESSES)
    jar.allow_net("203.0.113.0/24:7000")
    said["last word"] = talk(jar, *ADDRESSES)
    jar.deny_net("good.test")
    said["denied"] = talk(jar, *NAMES)

    async def change():
        await jar.allow_net_async("good.test:7000")
        first = talk(jar, *NAMES)
        await jar.deny_net_async("good.test:7000")
        return [first, talk(jar, *NAMES)]

    said["async"] = asyncio.run(change())
    said["bad"] = [failure(jar.allow_net, rule) for rule in ("10.0.0.1", "", {"host": "a.test", "deny": True}, 7)]
    said["still"] = talk(jar, ("www.good.test",))

# Two runs hold connections; the denial of one host ends those to it, and no others.
HOLD = TALK + '''
s = socket.create_connection((sys.argv[1], 7000))
s.settimeout(40)
s.sendall(b"x")
s.recv(1)
print("open", flush=True)
try:
    print(repr(s.recv(1)) if sys.argv[1] == "good.test" else "", flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
sys.stdin.readline()
s.sendall(b"y") if sys.argv[1] != "good.test" else None
print(s.recv(1) if sys.argv[1] != "good.test" else "", flush=True)
'''
with belljar.Jar(allow_net=["*.test:7000", {"host": "dead.test", "deny": True}], workdir=None) as jar:
    with jar.spawn(["python3", "-c", HOLD, "good.test"], stdin=belljar.PIPE) as one, jar.spawn(
        ["python3", "-c", HOLD, "www.good.test"], stdin=belljar.PIPE
    ) as two:
        opened = [one.stdout.readline(), two.stdout.readline()]
        jar.deny_net("good.test:7000")
        reset = one.stdout.readline().decode().strip()
        two.stdout.readline()
        two.stdin.write(b"go\n")
        said["open"] = [[line.decode().strip() for line in opened], reset, two.stdout.readline().decode().strip()]
    jar.allow_net("dead.test:7000")
    said["policy"] = talk(jar, ("dead.test",), ("other.test",))
    # More than a gate can have; the same one again takes no room.
    for _ in range(3):
        jar.allow_net("other.test:7000")
    said["full of names"] = failure(lambda: [jar.allow_net(f"n{i}.test:1") for i in range(1100)])
    said["full"] = failure(lambda: [jar.allow_net(f"10.0.{i}.1:1") for i in range(300)])
    said["after"] = talk(jar, ("other.test",))
    gates = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_gate(pid)]
    said["gates"] = len(gates)
    os.kill(int(gates[0]), signal.SIGKILL)
    said["killed"] = failure(lambda: [jar.allow_net("a.test") for _ in range(1000)])
with belljar.Jar(workdir=None) as jar:
    said["none"] = failure(jar.allow_net, "good.test")
print(json.dumps(said))
"""

REFUSED, RESET, NO_NAME = "ConnectionRefusedError", "ConnectionResetError", "gaierror"


class Changes(PackageCase):
    """One program with everything in it: the engine must be started inside the host of the test's own."""

    said: Dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        need("userns")
        net = internet.Internet().start()
        cls.addClassCleanup(net.stop)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], preexec_fn=net.enter, env=env, capture_output=True, text=True, timeout=4 * BOUND
        )
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.said = json.loads(done.stdout)

    def test_an_empty_list_reaches_nothing(self) -> None:
        self.assertEqual(self.said["nothing"], [NO_NAME] * 3 + [REFUSED] * 6)

    def test_names_are_added(self) -> None:
        self.assertEqual(self.said["name"], ["hi", NO_NAME, RESET])
        self.assertEqual(self.said["below"], ["hi", "hi", RESET])

    def test_addresses_are_added_and_all_else_is_still_refused_at_once(self) -> None:
        self.assertEqual(self.said["addresses"], ["hi", REFUSED, REFUSED, "hi", REFUSED, REFUSED])

    def test_everything_does_not_mean_what_is_special(self) -> None:
        self.assertEqual(self.said["everything"], ["hi", REFUSED, "hi", "hi", RESET, RESET])

    def test_the_last_word_counts(self) -> None:
        self.assertEqual(self.said["nothing again"], [RESET, REFUSED, RESET, "hi", RESET, RESET])
        self.assertEqual(self.said["last word"], ["hi", REFUSED, "hi", "hi", RESET, RESET])
        self.assertEqual(self.said["denied"], [NO_NAME, "hi", NO_NAME])
        self.assertEqual(self.said["async"], [["hi", "hi", RESET], [NO_NAME, "hi", NO_NAME]])

    def test_denying_resets_what_is_open_to_that_host(self) -> None:
        self.assertEqual(self.said["open"], [["open", "open"], RESET, "b'y'"])

    def test_what_the_policy_denies_stays_denied(self) -> None:
        self.assertEqual(self.said["policy"], [NO_NAME, "hi"])

    def test_what_is_no_rule_changes_nothing(self) -> None:
        self.assertEqual([bad[0] for bad in self.said["bad"]], ["PolicyError"] * 4)
        self.assertIn("an address needs a port", self.said["bad"][0][1])
        self.assertEqual(self.said["still"], ["hi"])

    def test_there_is_an_end_to_rules(self) -> None:
        for full in (self.said["full"], self.said["full of names"]):
            self.assertEqual(full[0], "PolicyError")
            self.assertIn("as many rules", full[1])
        self.assertEqual(self.said["after"], ["hi"])

    def test_a_gate_that_is_gone_is_told(self) -> None:
        self.assertEqual((self.said["gates"], self.said["killed"][0]), (1, "EngineError"))
        self.assertIn("gate is gone", self.said["killed"][1])

    def test_without_a_gate_the_error_says_what_to_open_it_with(self) -> None:
        self.assertEqual(self.said["none"][0], "PolicyError")
        self.assertIn("no gate", self.said["none"][1])


if __name__ == "__main__":
    unittest.main()
