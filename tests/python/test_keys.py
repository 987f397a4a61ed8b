# SPDX-License-Identifier: Apache-2.0
"""The keywords of the package are what the engine knows, and what help() and type checkers show is what is accepted."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import pickle
import subprocess
import sys
import typing
import unittest
from typing import Any

import belljar
from belljar import _keys
from belljar._program import ask_program
from package_case import PackageCase, tearDownModule  # noqa: F401


class Keywords(PackageCase):
    """One table."""

    def test_policy_keys_are_those_of_the_schema(self) -> None:
        status, text = ask_program(["policy", "schema"], stream=1)
        self.assertEqual(status, 0)
        # What a policy file says for `belljar policy test` allows and forbids nothing: no keyword has it.
        keys = {*json.loads(text)["properties"]} - {"must_allow", "must_deny"}
        self.assertEqual({*keys, "cwd"}, set(_keys.PolicyKeys.__annotations__))

    def test_run_keys_are_those_that_the_engine_takes_for_a_run_in_a_jar(self) -> None:
        with belljar.Jar(workdir=None) as jar:
            for name in sorted({*_keys.PolicyKeys.__annotations__} - {"cwd", "version", "extends"}):
                is_fixed = False
                try:
                    jar.run(["true"], **{name: {"not": 1}})  # type: ignore[misc]
                except belljar.PolicyError as error:
                    is_fixed = "fixed for the jar" in str(error)
                self.assertEqual(is_fixed, name not in _keys.RUN_KEYS, name)

    def test_help_shows_every_keyword(self) -> None:
        shared = list(_keys.CommandOptions.__annotations__)
        shared.insert(shared.index("errors"), "text")
        functions = (belljar.run, belljar.run_async, belljar.spawn, belljar.spawn_async)
        methods = (belljar.Jar.run, belljar.Jar.run_async, belljar.Jar.spawn, belljar.Jar.spawn_async)
        for function in (*functions, *methods):
            shown = list(inspect.signature(function).parameters)
            expected = ["self"] * (function in methods) + ["args"] + ["check"] * ("run" in function.__name__)
            expected += ["detach"] * (function in methods[:2]) + shared
            self.assertEqual(shown, expected + ["policy"] * (function in functions) + ["keys"], function)
        self.assertIs(inspect.signature(belljar.run).parameters["text"].default, True)

    def test_sizes_are_read_as_the_engine_reads_them(self) -> None:
        good: "list[tuple[Any, int]]" = [(1, 1), ("7", 7), ("64M", 64 << 20), ("1.5G", 3 << 29), ("0.5k", 512), ("2T", 2 << 40)]
        for text, size in good:
            self.assertEqual(_keys.parse_size(text, "disk"), size)
        for bad in (0, -1, True, None, 1.5, "", "M", "1.5", "0.0001K", "1,5G", "1e3", "٣M", "1G ", "1GB"):
            with self.assertRaises(belljar.PolicyError, msg=bad):
                _keys.parse_size(bad, "disk")
        for text in ("1.5G", "0.5k", "1.5", "0.0001K", "1GB"):
            try:
                belljar.run(["true"], file_size=text)
                is_good = True
            except belljar.PolicyError:
                is_good = False
            self.assertEqual(is_good, text in dict(good), text)

    def test_a_call_may_ask_for_less_than_a_pool_with_a_fractional_limit(self) -> None:
        with belljar.Pool(memory="1.5G") as pool:
            self.assertEqual(pool.call(len, "ab", memory="1.25G"), 2)
            self.assertEqual(pool.call(len, "ab", memory="1.75G"), 2)

    def test_what_is_clear_is_taken(self) -> None:
        (self.work / "f").write_text("x")
        folder, inner = str(self.base), str(self.work)
        for value in (folder, self.base, folder.encode()):
            self.assertEqual(belljar.run(["cat", f"{inner}/f"], workdir=None, ro=value).stdout, "x")
        with belljar.Jar(workdir=None, ro=folder, hide=f"{inner}/f") as jar:
            self.assertEqual(jar.run(["cat", f"{inner}/f"], env=None).stdout, "")
        self.assertEqual(belljar.run(["true"], env=None, redact="word").outcome, "exited")
        self.assertEqual(belljar.Policy(ro="/data", env=None).to_dict(), {"ro": ["/data"]})
        with belljar.Pool(workdir=None, ro=folder) as pool:
            self.assertEqual(pool.call(os.listdir, inner, env=None), ["f"])

    def test_what_is_not_taken_says_what_to_write(self) -> None:
        hints: "list[tuple[dict[str, Any], str]]" = [
            ({"capture_output": True}, "leave it out"),
            ({"universal_newlines": True}, "text=True"),
            ({"stdout": belljar.PIPE}, "in the result"),
            ({"stderr": subprocess.STDOUT}, "stderr_to_stdout=True"),
            ({"encoding": "utf-8"}, "text=False"),
            ({"timeout": -1}, "None means no limit"),
            ({"memory": -1.5}, "None means no limit"),
        ]
        for keys, hint in hints:
            for function in (lambda **keys: belljar.run(["true"], **keys), belljar.Jar, belljar.Policy):
                with self.assertRaisesRegex(belljar.PolicyError, hint, msg=keys):
                    function(**keys)
        with self.assertRaisesRegex(belljar.PolicyError, "None means no limit"):
            belljar.call(len, "", timeout=-1)
        for stdin in ("abc", b"abc", object()):
            with self.assertRaisesRegex(TypeError, "input="):
                belljar.run(["cat"], stdin=stdin)  # type: ignore[call-overload]
        with self.assertRaisesRegex(TypeError, "text or bytes"):
            belljar.run(["cat"], input=3)  # type: ignore[call-overload]

    def test_unknown_options(self) -> None:
        with self.assertRaisesRegex(TypeError, "did you mean 'timeout'"):
            belljar.tool(tiemout=3)
        with belljar.Pool() as pool:
            with self.assertRaisesRegex(TypeError, "did you mean 'memory'"):
                pool.map(len, ["a"], memry="1M")
            with self.assertRaisesRegex(TypeError, "functools.partial"):
                pool.map(len, ["a"], xyz=1)


class Names(PackageCase):
    """Public classes are called by the name that callers know."""

    def test_classes_are_those_of_the_package(self) -> None:
        classes = [value for value in (getattr(belljar, name) for name in belljar.__all__) if isinstance(value, type)]
        self.assertGreater(len(classes), 15)
        for cls in classes:
            self.assertEqual(cls.__module__, "belljar", cls)
            self.assertIs(pickle.loads(pickle.dumps(cls)), cls)
            if dataclasses.is_dataclass(cls):
                self.assertFalse([hint for hint in typing.get_type_hints(cls).values() if isinstance(hint, str)])

    def test_tracebacks_and_pickles_in_another_process(self) -> None:
        script = (
            "import pickle, sys, belljar\n"
            "try: belljar.run(['false'], check=True)\n"
            "except belljar.RunError as error: data = pickle.dumps((error, error.result))\n"
            "sys.stdout.write(data.hex())"
        )
        script_2 = "import pickle, sys; found = pickle.loads(bytes.fromhex(sys.argv[2])); print(*map(repr, found), found[0].result == found[1])"
        said = self.host(script_2, self.host(script))
        self.assertRegex(said, r"^RunError\(.*\) Result\(args=\['false'\].* True\n$")
        done = subprocess.run(
            [sys.executable, "-c", "import belljar; belljar.run(['false'], check=True)"], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.stderr.splitlines()[-1], "belljar.RunError: 'false' ended with exit status 1")


if __name__ == "__main__":
    unittest.main()
