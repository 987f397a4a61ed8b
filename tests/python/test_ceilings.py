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

    def test_what_a_cell_answers_is_held_to_the_output_that_was_given(self) -> None:
        def check(python: belljar.Interpreter, most: int) -> None:
            for code, kept in (("'x' * 5000", "x" * most), ("['é' * 3000]", None), ("b'y' * 5000", None), ("range(10 ** 400, 10 ** 401)", None)):
                cell = python.run(code)
                self.assertTrue(cell.truncated and not cell.is_data and len(cell.value.encode()) <= most, cell)
                self.assertEqual(cell.value, kept or cell.value)
            cell = python.run("v = 'x' * 5000\nraise ValueError('é' * 3000)")
            self.assertTrue(cell.truncated and cell.error.type_name == "ValueError", cell)
            self.assertLessEqual(max(len(cell.error.message.encode()), len(cell.error.traceback.encode())), most)
            self.assertTrue(cell.error.traceback.rstrip().endswith("é"))
            cell = python.run("display('a' * 5000)\ndisplay('b')\n7")
            self.assertEqual((cell.value, cell.is_data, cell.truncated, [shown["text/plain"] for shown in cell.display]), (7, True, True, ["'b'", "7"]))
            with self.assertRaisesRegex(belljar.ResultError, f"limit of output allows {most}"):
                python.get("v")
            cell = python.run("[1, 'two']")
            self.assertEqual((cell.value, cell.is_data, cell.truncated), ([1, "two"], True, False))

        with belljar.Jar(workdir=None, output=100) as jar:
            for keys in ({}, {"output": "1M"}):
                with jar.python(**keys) as python:
                    check(python, 100)
        with belljar.Interpreter(policy={"output": 300}) as python:
            check(python, 300)
        with belljar.Jar(workdir=None) as jar, jar.python(output=200) as python:
            check(python, 200)
        with belljar.Interpreter() as python:
            self.assertEqual(python.run("'x' * 500000").value, "x" * 500000)

    def test_a_policy_and_a_tool_refuse_what_no_jar_could_have_when_they_are_made(self) -> None:
        plain = belljar.Policy(timeout=1)
        for make, words in (
            (lambda: belljar.Policy(tiemout=3), "did you mean 'timeout'"),
            (lambda: belljar.Policy(timeout="x"), "timeout 'x': not a duration"),
            (lambda: belljar.Policy(net="some"), "net"),
            (lambda: belljar.Policy(extends="strickt"), "strickt"),
            (lambda: belljar.Policy.preset("strickt"), "strickt"),
            (lambda: plain.replace(memroy="1G"), "did you mean 'memory'"),
            (lambda: belljar.tool(timeout="x"), "timeout 'x': not a duration"),
            (lambda: belljar.tool(memory="much")(len), "memory 'much'"),
            (lambda: belljar.tool(ro=3), "ro"),
            (lambda: belljar.tool(max_result="x"), "max_result"),
            (lambda: belljar.tool(policy={"tiemout": 1}), "did you mean 'timeout'"),
            (lambda: belljar.tool(policy="strickt", pids=3), "strickt"),
        ):
            with self.assertRaisesRegex(belljar.PolicyError, words):
                make()
        for make in (lambda: belljar.tool(tiemout=3), lambda: belljar.tool(on_output=3), lambda: belljar.tool(types=3)):
            with self.assertRaises(TypeError):
                make()

    def test_modules_that_make_policies_can_be_imported_in_a_jar(self) -> None:
        (self.base / "made").mkdir()
        (self.base / "made" / "made_here.py").write_text(
            "import belljar\nPOLICY = belljar.Policy(timeout=3)\n\n@belljar.tool(timeout=3)\ndef double(x):\n    return 2 * x\n"
        )
        script = "import sys; sys.path.insert(0, sys.argv[2])\nimport made_here\nprint(made_here.double(4))\n"
        self.assertEqual(self.host(script, str(self.base / "made")), "8\n")

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
