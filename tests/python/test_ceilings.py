# SPDX-License-Identifier: Apache-2.0
"""A jar's limits hold for every kind of run that a program or a framework can ask the package for."""

from __future__ import annotations

import time
import unittest

import belljar
from belljar.integrations._common import with_output
from package_case import PackageCase, tearDownModule  # noqa: F401


class Ceilings(PackageCase):
    """The engine's own tests are tests/adversarial/test_round2_f_ceilings.py."""

    def test_every_kind_of_run_ends_with_the_owners_time(self) -> None:
        with belljar.Jar(workdir=None, timeout=0.4, grace=0.1) as jar:
            for asked in (None, 60):
                with self.subTest(asked=asked):
                    for more in ({}, {"detach": True}, {"pty": True}, {"on_output": lambda stream, data: None}):
                        self.assertEqual(jar.run(["sleep", "600"], timeout=asked, grace=60, **more).outcome, "timeout")
                    with jar.spawn(["sleep", "600"], timeout=asked) as process:
                        self.assertEqual(process.wait(30).outcome, "timeout")
                    with self.assertRaises(belljar.CallTimeout):
                        jar.call(time.sleep, 600, timeout=asked)
            with jar.shell(timeout=60) as shell:
                self.assertEqual(shell.run("x=kept; sleep 600").outcome, "timeout")
                self.assertEqual(shell.run("sleep 600", timeout="none").outcome, "timeout")
                self.assertEqual(shell.run("echo $x").stdout, "kept\n")
            with jar.python(timeout=60) as python:
                self.assertEqual(python.run("import time; time.sleep(600)", timeout=60).error.kind, "timeout")
                self.assertEqual(python.run("1 + 1").value, 2)

    def test_output_of_every_kind_is_the_owners(self) -> None:
        with belljar.Jar(workdir=None, output=100) as jar:
            for asked in (None, "1M"):
                done = jar.run("head -c 5000 /dev/zero", shell=True, output=asked)
                self.assertEqual((len(done.stdout), done.truncated), (100, True))
            with jar.shell(output="1M") as shell:
                self.assertEqual(len(shell.run("head -c 5000 /dev/zero").stdout), 100)

    def test_pools_and_interpreters_are_jars_too(self) -> None:
        with belljar.Pool(timeout=0.4, grace=0.1) as pool, self.assertRaises(belljar.CallTimeout):
            pool.call(time.sleep, 600, timeout=None)
        with belljar.Interpreter(timeout=0.4) as python:
            self.assertEqual(python.run("import time; time.sleep(600)", timeout="none").error.kind, "timeout")

    def test_a_framework_allows_no_more_output_than_the_policy(self) -> None:
        most = 64 << 20
        for policy, keys, output in (
            (None, {}, most),
            ({"memory": "1G"}, {}, most),
            (None, {"output": "1K"}, "1K"),
            ({"output": "1K"}, {}, None),
            (belljar.Policy(extends="strict"), {}, None),
            ("strict", {}, None),
            ({"output": "1K"}, {"output": "2K"}, "2K"),
        ):
            with self.subTest(policy=policy, keys=keys):
                self.assertEqual(with_output(policy, keys, most).get("output"), output)

    def test_a_pool_refuses_what_no_jar_could_have_when_it_is_made(self) -> None:
        for keys in ({"timeot": 1}, {"memory": "much"}, {"policy": {"timeot": 1}}):
            with self.subTest(keys=keys), self.assertRaises(belljar.PolicyError):
                belljar.Pool(**keys)


if __name__ == "__main__":
    unittest.main()
