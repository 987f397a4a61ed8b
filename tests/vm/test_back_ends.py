# SPDX-License-Identifier: Apache-2.0
"""What holds each limit, on hosts of which it is known what they have; and what cgroup v2 does where it holds them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Dict, List

from harness import host
from harness.case import JarCase
from harness.result import limit_of
from harness.runner import LANDLOCK, send

CGROUPS = Path("/sys/fs/cgroup")
RUN_ALONE = True
OURS = re.compile(r"belljar-[0-9a-f]{16}(-engine)?")
MIB = 1 << 20
EXPECTED: Dict[str, str] = dict(word.split("=") for word in os.environ["BELLJAR_VM_EXPECTED"].split(","))
HAS_CGROUP2 = EXPECTED["memory"] == "cgroup2"
ALL_LIMITS = ("--memory", "256M", "--cpu-time", "60s", "--pids", "50", "--optional", "pids")
CONCURRENT = 24
SWAP_MIB = 96


def ours() -> List[Path]:
    """Cgroups of ours, anywhere."""
    return [Path(root) for root, _, _ in os.walk(CGROUPS) if OURS.fullmatch(Path(root).name)]


class BackEnds(JarCase):
    def test_each_limit_is_held_by_what_this_host_has(self) -> None:
        result = self.json(*ALL_LIMITS, "--", "true")
        self.assertEqual(result["outcome"], "exited", result)
        self.assertEqual({key: result["enforced"][key] for key in EXPECTED}, EXPECTED, result)
        missing = [item["name"] for item in result["missing"]]
        self.assertEqual("memory" in missing, not HAS_CGROUP2, result)

    def test_the_default_count_of_processes_is_held_where_it_can_be(self) -> None:
        result = self.json("--", "true")
        wanted = "rlimit" if EXPECTED["rung"] == "namespace" else EXPECTED["pids"]
        self.assertEqual(result["enforced"]["pids"], wanted, result)

    def test_a_count_that_cannot_be_held_is_refused(self) -> None:
        done, result = self.status("--pids", "50", "--", "true")
        self.assertEqual(result["outcome"], "failed" if EXPECTED["pids"] == "none" else "exited", result)
        if done.status == 125:
            self.assertEqual(result["error"]["stage"], "limits")

    def test_the_doctor_sees_what_runs_get(self) -> None:
        answer = json.loads(self.belljar("doctor", "--json").stdout)
        found = {item["name"]: item for item in answer["capabilities"]}
        self.assertEqual(found["cgroup2"]["found"], HAS_CGROUP2, found["cgroup2"])
        self.assertEqual(bool(found["cgroup2"]["remedy"]), not HAS_CGROUP2)
        self.assertEqual(answer["best_rung"], EXPECTED["rung"])

    def test_the_proof_on_this_kernel(self) -> None:
        done = self.belljar("doctor", "--prove", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual((done.status, answer["proved_rung"]), (0, EXPECTED["rung"]))
        through = [item for item in answer["attempts"] if item["covered"] and not (item["stopped"] and item["expected"])]
        self.assertEqual(through, [])


@unittest.skipUnless(HAS_CGROUP2, "no cgroup v2 of one's own here")
class Cgroup2(JarCase):
    def test_the_limits_are_in_the_kernel_while_it_runs(self) -> None:
        process = self.start(*ALL_LIMITS, "--", "/bin/sh", "-c", "echo up; sleep 1000", self.marker, stdout=subprocess.PIPE)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), b"up\n")
        (cgroup,) = ours()
        values = {
            name: (cgroup / name).read_text().strip()
            for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "pids.current")
            if (cgroup / name).exists()
        }
        self.assertEqual(values.pop("memory.swap.max", "0"), "0")
        # The jar's own first process, the shell and its sleep; the first is counted apart.
        self.assertEqual(values, {"memory.max": str(256 * MIB), "memory.oom.group": "1", "pids.max": "51", "pids.current": "3"})
        send(process, signal.SIGTERM)
        process.wait(20)
        self.assertEqual(ours(), [])

    def test_the_command_does_not_see_where_it_is(self) -> None:
        if EXPECTED["rung"] != "namespace":
            self.skipTest("needs:userns a cgroup namespace")
        self.assertEqual(self.json("--memory", "64M", "--", "cat", "/proc/self/cgroup")["stdout"], "0::/\n")

    def test_evidence_of_memory(self) -> None:
        result = self.json("--memory", "64M", "--", self.tool("limit_memory"), f"touch:{200 * MIB}")
        hit = limit_of(result, "memory")
        assert hit is not None, result
        self.assertEqual((result["outcome"], result["signal"], hit["enforced_by"]), ("memory", "SIGKILL", "cgroup2"))
        self.assertRegex(hit["evidence"], r"^memory\.events: oom [1-9]\d*, oom_kill [1-9]\d*$")
        self.assertLessEqual(hit["peak"], 64 * MIB)
        self.assertEqual(result["usage"]["peak_memory_bytes"], hit["peak"])

    def test_evidence_of_processes(self) -> None:
        result = self.json("--pids", "5", "--", self.tool("limit_count"), "fork:20")
        hit = limit_of(result, "pids")
        assert hit is not None, result
        self.assertRegex(hit["evidence"], r"^pids\.events: max [1-9]\d*$")
        self.assertEqual((result["stdout"], result["usage"]["peak_processes"]), ("forks 4\n", 5))

    def test_evidence_of_cpu_time(self) -> None:
        result = self.json("--cpu-time", "300ms", "--", self.tool("limit_cpu"), "self:0")
        hit = limit_of(result, "cpu_time")
        assert hit is not None, result
        self.assertEqual((result["outcome"], hit["enforced_by"]), ("cpu", "cgroup2"))
        self.assertRegex(hit["evidence"], r"^cpu\.stat: \d+ ms of CPU time in the tree$")

    def test_many_at_once_all_have_one(self) -> None:
        """Each sweeps beside the others: none may lose its new directory to them and go on with less."""
        processes = [self.start("--json", "--memory", "64M", "--", "true", stdout=subprocess.PIPE) for _ in range(CONCURRENT)]
        for process in processes:
            assert process.stdout is not None
            result = json.loads(process.stdout.read())
            process.wait(60)
            self.assertEqual((result["outcome"], result["enforced"]["memory"]), ("exited", "cgroup2"), result)
        self.assertEqual(ours(), [])

    def test_without_clone3_the_cgroup_is_joined(self) -> None:
        """As where a container answers ENOSYS: then there are no new namespaces either."""
        host.need("landlock")
        options = ("--rung", "landlock", "--memory", "64M", "--pids", "20")
        result = self.json(*options, "--", self.tool("limit_memory"), f"touch:{200 * MIB}", way=LANDLOCK)
        self.assertEqual((result["outcome"], result["enforced"]["memory"]), ("memory", "cgroup2"), result)


@unittest.skipUnless(HAS_CGROUP2 and os.geteuid() == 0, "needs root to have swap")
class Swap(JarCase):
    def test_swap_does_not_stretch_the_limit(self) -> None:
        swap = self.base / "swap"
        subprocess.run(["dd", "if=/dev/zero", f"of={swap}", "bs=1M", f"count={SWAP_MIB}", "status=none"], check=True)
        swap.chmod(0o600)
        subprocess.run(["mkswap", str(swap)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["swapon", str(swap)], check=True)
        self.addCleanup(subprocess.run, ["swapoff", str(swap)], check=True)
        result = self.json("--memory", "64M", "--", self.tool("limit_memory"), f"touch:{120 * MIB}", "say:done")
        self.assertEqual((result["outcome"], result["stdout"]), ("memory", ""), result)


if __name__ == "__main__":
    unittest.main()
