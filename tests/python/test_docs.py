# SPDX-License-Identifier: Apache-2.0
"""What docs/python.md, docs/files.md, docs/calls.md, docs/integrations.md and the README show is what happens."""

from __future__ import annotations

import doctest
import unittest
from pathlib import Path

from package_case import PackageCase, tearDownModule  # noqa: F401

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


class Examples(PackageCase):
    """Every example is run."""

    def examples(self, path: Path, least: int) -> None:
        """Run the examples of a text; what they print must be what it says."""
        test = doctest.DocTestParser().get_doctest(path.read_text(), {}, path.name, str(path), 0)
        self.assertGreaterEqual(len(test.examples), least)
        said: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test, out=said.append)
        self.assertEqual("".join(said), "")

    def test_the_guide(self) -> None:
        self.examples(DOCS / "python.md", 15)

    def test_files(self) -> None:
        self.examples(DOCS / "files.md", 15)

    def test_calls(self) -> None:
        self.examples(DOCS / "calls.md", 6)

    def test_integrations(self) -> None:
        self.examples(DOCS / "integrations.md", 5)

    def test_interpreters(self) -> None:
        self.examples(DOCS / "interpreter.md", 7)

    def test_the_readme(self) -> None:
        self.examples(DOCS.parent / "README.md", 4)


if __name__ == "__main__":
    unittest.main()
