# SPDX-License-Identifier: Apache-2.0
"""Every measure of ./dev bench works and is written down; no number is looked at."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import tempfile
import types
import unittest
import xml.etree.ElementTree
from pathlib import Path
from typing import NoReturn
from unittest import mock

from bench import compare, main, report, svg
from bench.goals import GOALS
from bench.measures import MEASURES
from bench.table import make_table

SOURCE = Path(os.environ.get("BELLJAR_TEST_SOURCE", Path(__file__).resolve().parent.parent.parent))
DOCUMENT_KEYS = {"version", "machine", "versions", "options", "seconds", "measures"}
MACHINE_KEYS = {"date", "processor", "cores", "memory_gib", "kernel", "distribution", "user", "load_before"}
TABLE_KEYS = {"title", "unit", "reference", "rows", "is_rate", "missing", "commands", "notes"}
ROW_KEYS = {"median", "p95", "p99", "best", "count", "ratio"}
QUICK_TIMEOUT_SECONDS = 240


class WholeRun(unittest.TestCase):
    """One quick run of everything."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = Path(folder.name) / "out"
        cls.json = Path(folder.name) / "numbers.json"
        cls.done = subprocess.run(
            [str(SOURCE / "tests" / "bench" / "run"), "--quick", "--out", str(cls.out), "--json", str(cls.json)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=QUICK_TIMEOUT_SECONDS,
            check=False,
        )

    def setUp(self) -> None:
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.document = json.loads(self.json.read_text())

    def test_every_measure_has_tables_with_all_keys(self) -> None:
        self.assertEqual(set(self.document), DOCUMENT_KEYS)
        self.assertEqual(set(self.document["machine"]), MACHINE_KEYS)
        self.assertEqual(set(self.document["measures"]), set(MEASURES))
        for name, tables in self.document["measures"].items():
            self.assertTrue(tables, name)
            for key, table in tables.items():
                with self.subTest(measure=name, table=key):
                    self.assertEqual(set(table), TABLE_KEYS)
                    self.assertTrue(table["rows"])
                    for row in table["rows"].values():
                        self.assertEqual(set(row), ROW_KEYS)
                    self.assertLessEqual(set(table["rows"]), set(table["commands"]), "it is said what was run")

    def test_every_goal_is_about_something_measured(self) -> None:
        measures = main.tables_of(self.document)
        for goal in GOALS:
            for measure, table, row in filter(None, (goal.place, goal.other)):
                with self.subTest(goal=goal.words):
                    found = measures[measure][table]
                    self.assertIn(row, {**found.rows, **found.missing})

    def test_pictures_are_well_formed_and_name_every_candidate(self) -> None:
        for name, tables in self.document["measures"].items():
            root = xml.etree.ElementTree.parse(self.out / f"{name}.svg").getroot()
            texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
            for table in tables.values():
                self.assertLessEqual(set(table["rows"]), texts)
            self.assertTrue(any(self.document["machine"]["date"] in (text or "") for text in texts))

    def test_tables_are_written_and_who_is_missing_is_named(self) -> None:
        text = (self.out / "README.md").read_text()
        for tables in self.document["measures"].values():
            for table in tables.values():
                self.assertIn(table["title"], text)
                for name in table["missing"]:
                    self.assertIn(f"- {name}: ", text)

    def test_a_stored_run_is_shown_and_compared_without_measuring(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as shown:
            with contextlib.redirect_stderr(io.StringIO()):
                main.main(["--from", str(self.json), "--out", folder, "--compare", str(self.json)])
            again = json.loads((Path(folder) / "latest.json").read_text())
        self.assertEqual(again, self.document)
        self.assertIn("cold/true belljar", shown.getvalue())
        self.assertIn("+0.0 %", shown.getvalue())


class Parts(unittest.TestCase):
    """What can be seen without measuring."""

    def test_the_far_quantiles_are_on_the_bad_side(self) -> None:
        values = {"it": [float(number) for number in range(1, 101)]}
        self.assertGreater(make_table("t", "µs", "it", values).rows["it"].p99, 95)
        self.assertLess(make_table("t", "runs/s", "it", values, is_rate=True).rows["it"].p99, 5)

    def test_there_is_no_ratio_without_the_reference(self) -> None:
        table = make_table("t", "µs", "bare", {"it": [1.0]})
        self.assertIsNone(table.rows["it"].ratio)
        self.assertIn("–", "\n".join(report.table_lines(table)))

    def test_a_difference_is_told_by_ratio_and_never_fails(self) -> None:
        def run(value: float, is_rate: bool) -> compare.Measures:
            table = make_table("t", "u", "bare", {"bare": [10.0], "it": [value]}, is_rate=is_rate)
            return {"cold": {"true": table}}

        for is_rate, word in ((False, "worse"), (True, "better")):
            lines = compare.compare(run(20.0, is_rate), run(10.0, is_rate))
            self.assertIn("+100.0 %", lines[1])
            self.assertTrue(lines[1].endswith(word), lines[1])

    def test_names_cannot_break_a_picture(self) -> None:
        table = make_table('<&"', "µs", "a<b", {"a<b": [1.0, 2.0], "far": [1000.0]})
        root = xml.etree.ElementTree.fromstring(svg.draw("<t>", {"x": table}, ["&"]))
        self.assertIn("a<b", [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")])

    def test_an_unknown_measure_is_refused(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as caught:
            main.parse(["warmth"])
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("cold", said.getvalue())


    def test_a_baseline_is_never_of_a_quick_or_partial_run(self) -> None:
        for words in (["--quick"], ["cold"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as caught:
                main.parse(["--store-baseline", *words])
            self.assertEqual(caught.exception.code, 2)

    def test_what_cannot_be_measured_is_said_and_loses_nothing_else(self) -> None:
        def fail(_: object) -> NoReturn:
            raise RuntimeError("no such luck")

        table = make_table("a title", "µs", "bare", {"bare": [1.0]})
        good = types.SimpleNamespace(measure=lambda _: {"one": table}, __doc__="Good.")
        measures = {"bad": types.SimpleNamespace(measure=fail, __doc__="Bad."), "good": good}
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(main, "MEASURES", measures):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
                status = main.main(["--out", folder])
            document = json.loads((Path(folder) / "latest.json").read_text())
        self.assertEqual(status, 1)
        self.assertIn("no such luck", said.getvalue())
        self.assertEqual(list(document["measures"]), ["good"])


if __name__ == "__main__":
    unittest.main()
