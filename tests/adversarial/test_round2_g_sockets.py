# SPDX-License-Identifier: Apache-2.0
"""Unix sockets by path on the rung `landlock`: a socket outside is refused by Landlock from ABI 9 on, by the filter before.

The filter's part may go only where the ruleset that the command really has governs the right. So a kernel that claims ABI 9 and
does not know the right must not get a command to run.
"""

from __future__ import annotations

import os
import socket
import subprocess
import unittest
from pathlib import Path
from typing import Dict

from adversarial_support import AttackCase, host
from harness import paths, runner
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.result import Result
from harness.runner import LANDLOCK, NAMESPACE, Arg

PROBE = """
def reach(kind, path):
    s = socket.socket(socket.AF_UNIX, kind)
    s.sendto(b"x", path) if kind == socket.SOCK_DGRAM else s.connect(path)
def pair(path):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b"x", path)
for place in sys.argv[1:3]:
    attempt("stream " + place, lambda: reach(socket.SOCK_STREAM, place + "/stream"))
    attempt("datagram " + place, lambda: reach(socket.SOCK_DGRAM, place + "/datagram"))
    attempt("pair " + place, lambda: pair(place + "/datagram"))
# A name of our own does not make it ours.
own = os.environ["TMPDIR"]
attempt("link", lambda: os.link(sys.argv[2] + "/stream", own + "/linked"))
attempt("rename", lambda: os.rename(sys.argv[2] + "/stream", own + "/moved"))
os.symlink(sys.argv[2] + "/stream", own + "/led")
attempt("symlink", lambda: reach(socket.SOCK_STREAM, own + "/led"))
"""
OWN = """
import os, socket
path = os.environ["TMPDIR"] + "/own"
try:
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    socket.socket(socket.AF_UNIX).connect(path)
    print("own ok", flush=True)
except OSError as error:
    print("own", error.errno, flush=True)
"""


class SocketCase(AttackCase):
    def setUp(self) -> None:
        super().setUp()
        for place in (self.outside, self.work):
            for name, kind in (("stream", socket.SOCK_STREAM), ("datagram", socket.SOCK_DGRAM)):
                server = socket.socket(socket.AF_UNIX, kind)
                self.addCleanup(server.close)
                self.bind(server, place / name)
                if kind is socket.SOCK_STREAM:
                    server.listen()

    def bind(self, server: socket.socket, path: Path) -> None:
        """The directories of tests have longer names than a socket's address may have."""
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            server.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)


@on_ways(NAMESPACE, LANDLOCK)
class Outside(SocketCase):
    def test_sockets_of_the_host_are_out_of_reach(self) -> None:
        if len(os.fsencode(self.outside)) > 90:
            self.skipTest("needs:space the names of this test's directories are too long for sockets")
        for options in ((), ("--net", "host")):
            with self.subTest(options=options):
                result = self.json(*options, *self.python(PROBE, self.outside, self.work))
                self.check(self.answers(result["stdout"]), result, bool(options))

    def check(self, answers: Dict[str, str], result: Result, has_network: bool) -> None:
        self.assertEqual(result["outcome"], "exited", result)
        if self.way is NAMESPACE:
            self.assertEqual({answers[f"{kind} {self.outside}"] for kind in ("stream", "datagram", "pair")}, {"ENOENT"}, answers)
            return
        reached = [name for name, answer in answers.items() if answer == "ok" and name not in ("link", "rename")]
        if has_network and host.landlock_abi() < 9:
            self.assertIn("unix_sockets", self.missing(result), result)
            return
        self.assertNotIn("unix_sockets", self.missing(result), result)
        self.assertEqual(reached, [], answers)

    def test_a_kernel_that_only_claims_the_right_runs_nothing(self) -> None:
        """Both walls would be missing there: the filter's part, and Landlock's."""
        host.need("landlock")
        words = [os.fsencode(word) for word in (paths.tool("attack_abi"), "9")]
        words += runner.command(["--json", *self.python(PROBE, self.outside, self.work)], self.way)
        done = runner.finish(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work, env=self.env))
        result = runner.check_answer(done, done.stdout)
        answers = self.answers(result["stdout"] or "")
        if self.way is LANDLOCK and host.landlock_abi() < 9:
            self.assertEqual((result["outcome"], answers), ("failed", {}), result)
        else:
            self.assertEqual(answers[f"stream {self.outside}"], "ENOENT" if self.way is NAMESPACE else "EACCES", result)


@on_ways(NAMESPACE, LANDLOCK)
class Inside(KeptJarCase, SocketCase):
    def words(self, script: str) -> "list[Arg]":
        return ["/usr/bin/python3", "-I", "-c", script, self.marker]

    def test_runs_of_a_jar_reach_each_other_in_its_private_places(self) -> None:
        jar = self.open({"timeout": "20s"})
        alone = self.run_in(jar, self.words(OWN))
        works = self.way is NAMESPACE or host.landlock_abi() >= 9
        self.assertEqual(alone.stdout, b"own ok\n" if works else b"own 13\n", alone.result)
        if not works:
            return
        server = OWN.replace("/own", "/kept") + "server.accept()\nserver.accept()\n"
        kept = self.join(jar, self.words(server), {"timeout": None})
        client = OWN.replace("/own", "/kept").split("server =")[0] + "socket.socket(socket.AF_UNIX).connect(path)\n"
        client += "except OSError as error:\n    raise SystemExit(error.errno)\n"
        self.wait_for(lambda: self.run_in(jar, self.words(client)).result["exit_code"] == 0, "the server of another run")
        kept.close()


if __name__ == "__main__":
    unittest.main()
