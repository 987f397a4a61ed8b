# SPDX-License-Identifier: Apache-2.0
"""Cells of a notebook: their classes and functions in calls, and await at the top."""

from __future__ import annotations

import unittest
from typing import Any, List

from integration_case import BOUND_SECONDS, IntegrationCase
from jupyter_client.manager import KernelManager
from package_case import tearDownModule  # noqa: F401
from test_classes import CLASSES, EXPECTED, EXPRESSIONS, FUNCTIONS


class Notebook(IntegrationCase):
    """A kernel as Jupyter starts it."""

    def setUp(self) -> None:
        super().setUp()
        manager = KernelManager()
        manager.start_kernel()
        self.addCleanup(manager.shutdown_kernel, now=True)
        self.client: Any = manager.client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.client.wait_for_ready(BOUND_SECONDS)

    def cell(self, code: str) -> str:
        """What a cell prints, or how it fails."""
        said: List[str] = []

        def hear(message: Any) -> None:
            content = message["content"]
            said.append(content["text"] if message["msg_type"] == "stream" else "\n".join(content.get("traceback", [])))

        self.client.execute_interactive(code, timeout=BOUND_SECONDS, output_hook=hear)
        return "".join(said)

    def test_classes_and_functions_of_cells(self) -> None:
        self.assertEqual(self.cell(CLASSES), "")
        self.assertEqual(self.cell(f"EXPRESSIONS = {EXPRESSIONS!r}"), "")
        self.assertEqual(self.cell(FUNCTIONS), EXPECTED.replace("MODULE", "__main__"))

    def test_a_cell_that_is_run_again(self) -> None:
        point = "from typing import NamedTuple\nclass Point(NamedTuple):\n    x: int\n"
        self.cell(point + "def make() -> Point: return Point(1)")
        self.cell(point)
        self.assertEqual(self.cell("import belljar\nprint(type(belljar.call(make)) is Point)"), "True\n")

    def test_await_at_the_top(self) -> None:
        code = "import belljar\nprint((await belljar.run_async(['echo', 'x'])).stdout, await belljar.call_async(len, 'ab'))"
        self.assertEqual(self.cell(code), "x\n 2\n")


if __name__ == "__main__":
    unittest.main()
