# SPDX-License-Identifier: Apache-2.0
"""The base of tests of the gate: belljar runs on the host of an internet of the test's own."""

from __future__ import annotations

import json
from typing import Any, Dict, List

from harness import internet
from harness.case import JarCase
from harness.result import Result
from harness.runner import NAMESPACE

# What programs in the jar begin with.
CLIENT = r"""
import json, os, socket, sys, threading, time
REQUEST = "GET / HTTP/1.1\r\nHost: %s\r\n\r\n"
said = {}
def talk(host, port, data=b"", count=4096, family=socket.AF_INET):
    "What came back, or the name of the error."
    with socket.socket(family) as s:
        s.settimeout(40)
        try:
            s.connect((host, port))
            if data:
                s.sendall(data)
            return s.recv(count).decode(errors="replace")
        except OSError as error:
            return type(error).__name__
def web(name, port=80, host=None):
    return talk(name, port, (REQUEST % (host or name)).encode())
def look(name):
    try:
        return sorted({entry[4][0] for entry in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})
    except OSError as error:
        return type(error).__name__
"""


class GateCase(JarCase):
    """A test whose belljar runs on the host of an internet."""

    way = NAMESPACE
    has_bad_weather = False
    internet: internet.Internet

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.internet = internet.Internet(cls.has_bad_weather).start()
        cls.addClassCleanup(cls.internet.stop)

    def setUp(self) -> None:
        super().setUp()
        self.internet.forget()

    def rules(self, *rules: str) -> List[str]:
        return [word for rule in rules for word in ("--allow-net", rule)]

    def gate(self, rules: List[str], code: str, *options: str, **more: Any) -> Result:
        """A program in a jar with these rules; the result."""
        return self.json(
            "-C", "none", *self.rules(*rules), *options, "--", "python3", "-c", CLIENT + code, self.marker,
            preexec_fn=self.internet.enter, **more,
        )

    def say(self, rules: List[str], code: str, *options: str, **more: Any) -> Dict[str, Any]:
        """What the program has put into `said`."""
        result = self.gate(rules, code + "\nprint(json.dumps(said))", *options, **more)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)
        self.result = result
        return json.loads(result["stdout"])  # type: ignore[no-any-return]

    def reached(self) -> List[str]:
        """The connections that servers of the world have seen."""
        return [line.split()[1] for line in self.internet.log() if line.startswith("tcp ")]

    def asked(self) -> List[str]:
        """The names that the world's name server was asked for."""
        return sorted({line.split()[1] for line in self.internet.log() if line.startswith("name ")})
