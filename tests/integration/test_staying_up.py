# SPDX-License-Identifier: Apache-2.0
"""What a jar can use up, and what the host may lack: belljar goes on, ends the run, and tells what happened."""

from __future__ import annotations

import os
import resource
import subprocess
import unittest
from typing import List

from harness import host, paths, runner
from harness.case import JarCase, on_ways
from harness.result import check_result, limit_of, parse_json
from harness.runner import LANDLOCK, NAMESPACE, Way

MIB = 1 << 20
METER = Way("meter", ("cgroup",), ("--rung", "namespace"), "namespace", ("userns",))
UNPRIVILEGED = 47123


@on_ways(NAMESPACE, METER)
class UsedUp(JarCase):
    def test_inodes_of_the_private_places(self) -> None:
        """Empty files have no size, and are not free."""
        script = "i=0; while : > /tmp/f$i; do i=$((i + 1)); done 2> /dev/null; echo $i"
        result = self.json("-C", "none", "--disk", "1M", "--", "/bin/sh", "-c", f"({script}); exit 0")
        self.assertEqual(result["outcome"], "exited", result)
        hit = limit_of(result, "disk")
        assert hit is not None, result
        self.assertEqual(hit["enforced_by"], "tmpfs")

    def test_inodes_count_as_memory(self) -> None:
        script = "cd /tmp; i=0; while [ $i -lt 6000 ]; do : > f$i; i=$((i + 1)); done; sleep 0.3"
        result = self.json("--memory", "64M", *self.sh(script))
        self.assertEqual(result["outcome"], "exited", result)
        self.assertGreater(result["usage"]["peak_memory_bytes"], 5 * MIB)

    def test_many_small_writers_in_a_private_place(self) -> None:
        count = self.tool("limit_count")
        words = ("-C", "none", "--disk", "4M", "--ro", str(self.work), "--", count, f"many:/tmp/small:16:{MIB}", "wait:300")
        result = self.json(*words)
        self.assertEqual(result["outcome"], "exited", result)
        hit = limit_of(result, "disk")
        assert hit is not None, result
        self.assertLessEqual(hit["peak"], 4 * MIB)

    def test_just_below_in_a_private_place(self) -> None:
        count = self.tool("limit_count")
        words = ("-C", "none", "--disk", "4M", "--ro", str(self.work), "--", count, f"write:/tmp/big:{3 * MIB}", "wait:300")
        result = self.json(*words)
        self.assertEqual((result["outcome"], result["limits_hit"]), ("exited", []), result)


@on_ways(NAMESPACE, LANDLOCK)
class Several(JarCase):
    """More than one limit: the first that ends the run is the outcome, all are listed."""

    def test_cut_output_is_listed_beside_the_cause(self) -> None:
        script = f'head -c 20000 /dev/zero; exec "{self.tool("limit_memory")}" touch:{500 * MIB}'
        result = self.json("--output", "10K", "--memory", "64M", *self.sh(script))
        self.assertEqual(result["outcome"], "memory", result)
        self.assertEqual({entry["name"] for entry in result["limits_hit"]}, {"output", "memory"})

    def test_output_first_then_no_other(self) -> None:
        script = f'head -c 20000 /dev/zero; exec "{self.tool("limit_cpu")}" self:0'
        result = self.json("--output", "10K", "--overflow", "kill", "--cpu-time", "20s", *self.sh(script))
        self.assertEqual(result["outcome"], "output", result)
        self.assertEqual([entry["name"] for entry in result["limits_hit"]], ["output"])

    def test_a_limit_within_the_grace(self) -> None:
        """The grace is for the timeout alone; the cause stays the first."""
        script = f"trap '\"{self.tool('limit_memory')}\" touch:{500 * MIB}; sleep 1000' TERM; sleep 1000 & wait; sleep 1000"
        args = ("--timeout", "500ms", "--grace", "1000s", "--memory", "64M")
        result = self.json(*args, *self.sh(script), timeout=60)
        self.assertEqual(result["outcome"], "timeout", result)
        self.assertEqual({entry["name"] for entry in result["limits_hit"]}, {"timeout", "memory"})

    def test_files_and_descriptors_just_below(self) -> None:
        count = self.tool("limit_count")
        result = self.json("--file-size", "1M", "--fds", "20", "--", count, f"write:big:{MIB}", "fd:17")
        self.assertEqual((result["outcome"], result["limits_hit"]), ("exited", []), result)
        self.assertEqual(result["stdout"].split("\n")[-2], "fds 17")

    def test_a_process_table_without_room(self) -> None:
        if os.geteuid() == 0:
            self.skipTest("needs:user root's processes cannot be bounded")

        def full() -> None:
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

        done = self.jar("--json", "--", "true", preexec_fn=full)
        result = check_result(parse_json(done.stdout))
        self.assertEqual((done.status, result["outcome"]), (125, "failed"))

    def test_a_tree_that_stops_itself(self) -> None:
        script = "sleep 1000 & kill -STOP $! ; kill -STOP $$"
        result = self.json("--timeout", "500ms", "--grace", "100ms", *self.sh(script))
        self.assertEqual(result["outcome"], "timeout")


class HiddenProcesses(unittest.TestCase):
    """A host whose /proc shows nobody but those who may be traced (hidepid)."""

    def setUp(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("needs:root to mount a /proc")
        host.need("landlock")

    def run_hidden(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        inner: List[str] = ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
        inner += [str(paths.tool("deny")), "userns", "--", str(paths.belljar()), "run", "--rung", "landlock", "--json"]
        script = 'mount -t proc -o hidepid=2 proc /proc && cd / && exec "$@"'
        outer = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh", *inner, *words]
        return subprocess.run(
            outer, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
            env=runner.clean_env("/nonexistent"),
        )

    def test_a_limit_that_needs_to_see_them_is_refused(self) -> None:
        for option in (("--memory", "64M"), ("--cpu-time", "10s"), ("--pids", "10")):
            done = self.run_hidden("-C", "none", *option, "--", "echo", "began")
            result = check_result(parse_json(done.stdout))
            self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "limits"), done)
            self.assertIn("hidepid", result["error"]["message"])

    def test_optional_goes_on_and_says_so(self) -> None:
        done = self.run_hidden("-C", "none", "--memory", "64M", "--optional", "memory", "--", "true")
        result = check_result(parse_json(done.stdout))
        self.assertEqual((result["outcome"], result["enforced"]["memory"]), ("exited", "none"), done)
        self.assertIn("memory", [remark["name"] for remark in result["missing"]])

    def test_without_such_a_limit_all_is_as_ever(self) -> None:
        done = self.run_hidden("-C", "none", "--timeout", "20s", "--", "/bin/sh", "-c", "sleep 1000 & exit 3")
        result = check_result(parse_json(done.stdout))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 3), done)


if __name__ == "__main__":
    unittest.main()
