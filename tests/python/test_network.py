# SPDX-License-Identifier: Apache-2.0
"""allow_net in every door of the package: run, prepared runs, Jar, Pool. The program runs on a host of the test's own."""

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
import asyncio, json, os, sys, threading
import belljar

TALK = '''
import socket, sys
def talk(host, data=b"hi"):
    try:
        with socket.create_connection((host, 7000)) as s:
            s.settimeout(40)
            s.sendall(data)
            got = b""
            while len(got) < len(data):
                got += s.recv(65536)
            return len(got)
    except OSError as error:
        return type(error).__name__
'''
SCRIPT = TALK + "print(talk('good.test'), talk('other.test'))"
exec(TALK)
RULES = ["good.test:7000"]
said = {}


def short(result):
    return [result.stdout.strip(), result.enforced["network"], result.network]


def fill(count):
    return talk("good.test", bytes(count))


def both():
    return [talk("good.test"), talk("other.test")]


command = ["python3", "-c", SCRIPT]
said["runs"] = [short(belljar.run(command, allow_net=RULES, workdir=None)) for _ in range(4)]
said["object"] = short(belljar.run(command, allow_net=[{"host": "good.test", "ports": 7000}], workdir=None))[0]
said["single"] = short(belljar.run(command, allow_net="good.test:7000", workdir=None))[0]
said["none"] = belljar.run(command, workdir=None).network
with belljar.Jar(allow_net=RULES, workdir=None) as jar:
    said["jar"] = [short(jar.run(command)) for _ in range(2)]
    limited = jar.run(["python3", "-c", TALK + "print(talk('good.test', bytes(1000000)))"], net_bytes=5000)
    said["limited"] = [limited.outcome, limited.killed, [hit["name"] for hit in limited.limits_hit]]
    said["after"] = short(jar.run(command))
    events = []
    told = jar.run(command, on_event=events.append)
    said["told"] = [event["denied"]["what"] for event in events if event["event"] == "denied"]
    said["denied"] = [entry.to_dict() for entry in told.denied]
    said["same"] = told.to_dict()["denied"] == said["denied"] and told.denied[0].cure.policy == {"allow_net": ["other.test"]}
    said["sentence"] = told.denied[0].sentence
    said["nothing"] = jar.run(["true"]).denied
with belljar.Pool(allow_net=RULES) as pool:
    said["calls"] = [pool.call(both) for _ in range(3)]
    try:
        pool.call(fill, 100000, net_bytes=1000)
    except belljar.CallEnded as error:
        said["call"] = error.result.outcome
    said["called"] = pool.call(fill, 1000)
try:
    belljar.run(["true"], allow_net=["10.0.0.1"])
except belljar.PolicyError as error:
    said["bad"] = str(error)
try:
    belljar.run(["true"], allow_net=["a.test"], net="host")
except belljar.PolicyError as error:
    said["host"] = str(error)
print(json.dumps(said))
"""


class Network(PackageCase):
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

    HOST = {"host": "good.test", "port": 7000, "connections": 1, "bytes_out": 2, "bytes_in": 2}
    FINE = ["2 gaierror", "net-ns+gate", {"hosts": [HOST], "published": []}]

    def test_runs_prepared_or_not_have_a_gate(self) -> None:
        self.assertEqual(self.said["runs"], [self.FINE] * 4)
        self.assertEqual((self.said["object"], self.said["single"]), ("2 gaierror", "2 gaierror"))
        self.assertIsNone(self.said["none"])

    def test_a_jar_has_one_for_all_its_runs_and_counts_each(self) -> None:
        self.assertEqual(self.said["jar"], [self.FINE] * 2)

    def test_a_limit_ends_one_run_and_not_the_next(self) -> None:
        self.assertEqual(self.said["limited"], ["net", True, ["net_bytes"]])
        self.assertEqual(self.said["after"], self.FINE)

    def test_each_run_is_told_what_it_was_refused(self) -> None:
        (entry,) = self.said["denied"]
        self.assertEqual((entry["kind"], entry["what"], entry["count"]), ("name", "other.test", 1))
        self.assertTrue(self.said["same"])
        self.assertEqual((self.said["told"], self.said["nothing"]), (["other.test"], []))
        self.assertEqual(
            self.said["sentence"],
            "The sandbox refused to look up other.test: no rule of allow_net matches it. "
            "Trying again will not help; the owner of the sandbox can allow it with --allow-net other.test, in a policy "
            '{"allow_net":["other.test"]}.',
        )

    def test_calls_have_one_each(self) -> None:
        self.assertEqual(self.said["calls"], [[2, "gaierror"]] * 3)
        self.assertEqual((self.said["call"], self.said["called"]), ("net", 1000))

    def test_bad_rules_are_policy_errors(self) -> None:
        self.assertIn("an address needs a port", self.said["bad"])
        self.assertIn("allow_net names hosts", self.said["host"])


if __name__ == "__main__":
    unittest.main()
