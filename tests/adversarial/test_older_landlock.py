# SPDX-License-Identifier: Apache-2.0
"""Kernels whose Landlock knows less: what it does not govern is stopped by another wall, or the result says so.

The kernel's answer to "which ABI?" is forged downwards; what belljar then leaves out, the kernel leaves ungoverned.
"""

from __future__ import annotations

import os
import signal
import subprocess
import unittest
from typing import Dict, Tuple

from adversarial_support import AttackCase, contents, host
from harness import paths, runner
from harness.case import on_ways
from harness.result import Result
from harness.runner import LANDLOCK, NAMESPACE, Arg

PROBE = """
outside, victim = sys.argv[1], int(sys.argv[2])
attempt("read", lambda: os.open(outside, os.O_RDONLY))
attempt("write", lambda: os.open(outside, os.O_WRONLY))
attempt("truncate", lambda: os.truncate(outside, 1))
attempt("rename", lambda: os.rename(outside, "stolen"))
attempt("link", lambda: os.link(outside, "linked"))
attempt("unlink", lambda: os.unlink(outside))
import stat
print("stdin", "relay" if stat.S_ISFIFO(os.fstat(0).st_mode) else "direct")
attempt("stdin_write", lambda: os.open("/proc/self/fd/0", os.O_RDWR))
attempt("stdin_truncate", lambda: os.truncate("/proc/self/fd/0", 1))
attempt("kill", lambda: os.kill(victim, signal.SIGURG))
attempt("kill0", lambda: os.kill(victim, 0))
def setown():
    a, b = socket.socketpair()
    fcntl.fcntl(a, fcntl.F_SETOWN, victim)
    fcntl.fcntl(a, 10, signal.SIGUSR1)
    fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
    b.send(b"x")
attempt("sigio", setown)
def abstract(kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect("\\0" + sys.argv[3])
attempt("abstract", lambda: abstract(socket.SOCK_STREAM))
"""


@on_ways(NAMESPACE, LANDLOCK)
class OlderLandlock(AttackCase):
    def setUp(self) -> None:
        host.need("landlock")
        super().setUp()
        self.input = self.base / "input"
        self.input.write_text("input of the host")
        self.victim = self.background("sleep", "120")

    def run_with(self, abi: int, *options: Arg) -> Tuple[Dict[str, str], Result]:
        if abi > host.landlock_abi():
            self.skipTest("needs:landlock this kernel's is older still")
        args = ["--json", *options, *self.python(PROBE, str(self.secret), str(self.victim.pid), self.marker)]
        words = [os.fsencode(w) for w in (paths.tool("attack_abi"), str(abi))] + runner.command(args, self.way)
        with open(self.input, "rb") as stream:
            process = subprocess.Popen(
                words, stdin=stream, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work, env=self.env
            )
            self.addCleanup(self._stop, process)
            done = runner.finish(process)
        result = runner.check_answer(done, done.stdout)
        self.assertEqual(result["outcome"], "exited", result["error"])
        return self.answers(result["stdout"]), result

    def check_outside(self, answers: Dict[str, str], before: object) -> None:
        self.assertEqual(contents(self.outside), before, answers)
        wrong = [call for call in ("read", "write", "truncate", "rename", "link", "unlink") if answers[call] == "ok"]
        self.assertEqual(wrong, [], "files outside could be reached")

    def test_files_outside(self) -> None:
        """Before ABI 3 Landlock does not see truncate(): "nothing outside can be written" needs another wall there."""
        for abi in (1, 2, 3, 5):
            with self.subTest(abi=abi):
                self.secret.write_text(self.SECRET)
                before = contents(self.outside)
                answers, _ = self.run_with(abi)
                self.check_outside(answers, before)

    def test_standard_input(self) -> None:
        """A file handed over as standard input is kept from being written by Landlock alone: no Landlock, no such file."""
        for abi in (1, 2, 3):
            with self.subTest(abi=abi):
                self.input.write_text("input of the host")
                answers, _ = self.run_with(abi)
                self.assertEqual(self.input.read_text(), "input of the host")
                if answers["stdin"] == "direct":
                    self.assertNotIn("ok", (answers["stdin_write"], answers["stdin_truncate"]))

    def test_signals(self) -> None:
        """Landlock keeps signals in from ABI 6 on; before, the result must not keep quiet about it."""
        for abi in (1, 5, 6):
            with self.subTest(abi=abi):
                answers, result = self.run_with(abi)
                reached = [call for call in ("kill", "kill0", "sigio") if answers[call] == "ok"]
                if abi >= 6 or self.way is NAMESPACE:
                    self.assertNotIn("kill", reached)
                    continue
                said = any("signal" in str(entry).lower() for entry in result["missing"])
                self.assertTrue(not reached or said, f"{reached} reach other processes, missing: {self.missing(result)}")
                self.assertNotIn("sigio", reached)

    def test_a_plain_kernel(self) -> None:
        answers, result = self.run_with(host.landlock_abi())
        self.assertNotIn("ok", (answers["truncate"], answers["read"]))
        self.assertTrue(answers["kill"] != "ok" or "signals" in self.missing(result), answers)
        self.assertIsNone(self.victim.poll())
        self.victim.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
