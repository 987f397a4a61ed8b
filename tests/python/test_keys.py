# SPDX-License-Identifier: Apache-2.0
"""The keywords of the package are what the engine knows, and what help() and type checkers show is what is accepted."""

from __future__ import annotations

import inspect
import json
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
        self.assertEqual({*json.loads(text)["properties"], "cwd"}, set(_keys.PolicyKeys.__annotations__))

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
        functions = (belljar.run, belljar.run_async, belljar.spawn, belljar.spawn_async)
        methods = (belljar.Jar.run, belljar.Jar.run_async, belljar.Jar.spawn, belljar.Jar.spawn_async)
        for function in (*functions, *methods):
            shown = list(inspect.signature(function).parameters)
            expected = ["self"] * (function in methods) + ["args"] + ["check"] * ("run" in function.__name__) + shared
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
            with self.assertRaisesRegex(belljar.PolicyError, "memory='1.75G' is more than"):
                pool.call(len, "ab", memory="1.75G")

    def test_unknown_options(self) -> None:
        with self.assertRaisesRegex(TypeError, "did you mean 'timeout'"):
            belljar.tool(tiemout=3)
        with belljar.Pool() as pool:
            with self.assertRaisesRegex(TypeError, "did you mean 'memory'"):
                pool.map(len, ["a"], memry="1M")
            with self.assertRaisesRegex(TypeError, "functools.partial"):
                pool.map(len, ["a"], xyz=1)


if __name__ == "__main__":
    unittest.main()
