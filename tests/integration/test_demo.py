# SPDX-License-Identifier: Apache-2.0
"""The README's picture shows what the program says today."""

from __future__ import annotations

import importlib.util
import unittest
from pathlib import Path

from harness import host, paths
from harness.case import JarCase

DEMO = Path(__file__).resolve().parent.parent.parent / "docs" / "demo"


class Demo(JarCase):
    def test_the_picture_is_of_a_run(self) -> None:
        host.need("userns")
        spec = importlib.util.spec_from_file_location("demo", DEMO / "demo.py")
        assert spec and spec.loader
        demo = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(demo)
        self.assertEqual(demo.draw(demo.session(paths.belljar())), (DEMO / "demo.svg").read_text())


if __name__ == "__main__":
    unittest.main()
