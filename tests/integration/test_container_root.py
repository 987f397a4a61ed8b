# SPDX-License-Identifier: Apache-2.0
"""Root that is not the machine's root: in a user namespace (rootless containers), without CAP_SYS_ADMIN (Docker), and without any capability."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import unittest
from typing import List

from harness import host, paths, runner
from harness.case import JarCase
from harness.result import Result, check_result


class ContainerRoot(JarCase):
    def run_as(self, prefix: List[str], script: str, rung: str = "namespace") -> Result:
        host.need("userns" if rung == "namespace" else "landlock")
        command = [*prefix, paths.belljar(), "run", "--json", "--rung", rung, "--", "/bin/sh", "-c", script, self.marker]
        done = subprocess.run(command, env=self.env, cwd=self.work, capture_output=True, timeout=runner.BOUND, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        check_result(result)
        return result

    def check(self, prefix: List[str]) -> None:
        result = self.run_as(prefix, "id -u; grep CapEff /proc/self/status; echo made > made && rm made && echo gone")
        self.assertEqual(result["outcome"], "exited", result)
        self.assertEqual(result["stdout"].split()[0], "0")
        self.assertIn("0000000000000000", result["stdout"])
        self.assertEqual(result["enforced"]["rung"], "namespace")
        self.assertIn("identity", [item["name"] for item in result["missing"]])

    def test_root_of_a_user_namespace_gets_a_full_jar(self) -> None:
        self.check(["unshare", "--map-root-user"])

    def test_root_without_the_system_capability_gets_a_full_jar(self) -> None:
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs:setpriv as root")
        self.check(["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"])

    def test_root_without_any_capability_gets_what_is_left(self) -> None:
        # As in the sandboxes of other programs, and with `docker run --cap-drop ALL`.
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs:setpriv as root")
        result = self.run_as(["setpriv", "--bounding-set=-all", "--inh-caps=-all"], "grep -h Cap /proc/self/status", "landlock")
        self.assertEqual((result["outcome"], set(result["stdout"].split()[1::2])), ("exited", {"0" * 16}), result)


if __name__ == "__main__":
    unittest.main()
