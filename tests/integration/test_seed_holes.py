# SPDX-License-Identifier: Apache-2.0
"""The holes of the modules that Belljar replaces, one by one, at the level of the engine.

The numbers are those of the list of holes; what concerns function calls and their results comes with the Python package.
"""

from __future__ import annotations

import os
import time
import unittest
from pathlib import Path

from harness import census
from harness.bounds import BOUND
from harness.case import JarCase, every_way, on_ways
from harness.runner import LANDLOCK, NAMESPACE

SLEEP = 1000


@every_way
class Holes(JarCase):
    def test_hole_2_grandchildren_do_not_survive_a_timeout(self) -> None:
        leftover = [self.tool("leftover"), "setsid", "double", "ignore", "stay", self.marker]
        result = self.json("--timeout", "1s", "--grace", "200ms", "--", *leftover)
        self.assertEqual(result["outcome"], "timeout")
        self.assertEqual(census.marked(self.marker), [])

    def test_hole_3_a_background_child_that_holds_the_pipe_is_no_timeout(self) -> None:
        result = self.json("--timeout", "60s", *self.sh(f"setsid sleep {SLEEP} & echo done"))
        self.assertEqual((result["outcome"], result["exit_code"], result["stdout"]), ("exited", 0, "done\n"))

    def test_hole_4_output_beyond_the_cap_is_not_kept_in_memory(self) -> None:
        process = self.start("--output", "1000", *self.sh("head -c 200000000 /dev/zero; sleep 0.3"))
        peak = 0
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                break
            peak = max([peak, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))])
            time.sleep(0.01)
        stdout, _ = process.communicate(timeout=BOUND)
        self.assertEqual(len(stdout), 1000)
        if "BELLJAR_TEST_SANITIZER" not in os.environ and "asan" not in os.environ.get("BELLJAR_BIN", ""):
            self.assertLess(peak, 1024, "kB of its own")

    def test_hole_4_the_cap_counts_bytes(self) -> None:
        result = self.json("--output", "9", "--bytes", *self.sh("printf '€€€€'"))
        self.assertEqual((result["stdout"], result["stdout_bytes"], result["truncated"]), ("€€€", 12, True))

    def test_hole_5_both_streams_at_the_cap_do_not_hang(self) -> None:
        script = "yes out | head -c 3000000 & yes err | head -c 3000000 >&2; wait; echo end >> ended"
        result = self.json("--output", "100", "--timeout", "60s", *self.sh(script))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        self.assertEqual(len(result["stdout"]) + len(result["stderr"]), 100)
        self.assertTrue((self.work / "ended").exists())

    def test_hole_8_output_before_a_timeout_is_kept(self) -> None:
        result = self.json("--timeout", "1s", "--grace", "0", *self.sh(f"echo out; echo err >&2; sleep {SLEEP}"))
        self.assertEqual((result["outcome"], result["stdout"], result["stderr"]), ("timeout", "out\n", "err\n"))

    def test_hole_8_output_that_is_not_utf_8_raises_nothing(self) -> None:
        result = self.json(*self.sh(r"printf 'a\377b'"))
        self.assertEqual((result["stdout"], result["encoding"]), ("a\ufffdb", "utf-8-lossy"))

    def test_hole_8_live_chunks_never_split_a_character(self) -> None:
        script = r"printf '\342'; sleep 0.1; printf '\202'; sleep 0.1; printf '\254'"
        texts = [event["text"] for event in self.events(*self.sh(script)) if event["event"] == "output"]
        self.assertEqual(texts, ["€"])

    def test_hole_10_a_bad_working_directory_is_an_error(self) -> None:
        done, result = self.status("-C", self.base / "missing", "--", "true")
        self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "failed", "files"))

    def test_hole_10_isolation_that_is_not_there_is_not_passed_over(self) -> None:
        done, result = self.status("--rung", "namespace", *self.sh("touch ran"))
        if self.way is NAMESPACE:
            self.assertEqual(result["enforced"]["rung"], "namespace")
            return
        self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "failed", "host"))
        self.assertFalse((self.work / "ran").exists())


@on_ways(NAMESPACE, LANDLOCK)
class HolesInWalls(JarCase):
    def test_hole_7_the_callers_environment_cannot_be_read_back(self) -> None:
        environment = {**os.environ, "HIDDEN_VALUE": "the-hidden-value"}
        script = "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c the-hidden-value; env | grep -c HIDDEN; true"
        done = self.jar(*self.sh(script), env=environment)
        self.assertEqual(done.stdout, b"0\n0\n")

    def test_hole_10_no_network_means_none(self) -> None:
        script = "exec 3<>/dev/tcp/127.0.0.1/1 && echo connected; exec 3<>/dev/udp/192.0.2.1/9 && echo x >&3 && echo sent"
        done = self.jar("--", "bash", "-c", script)
        self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
