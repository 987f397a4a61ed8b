# SPDX-License-Identifier: Apache-2.0
"""The base of the integrations' tests: the examples of docs/integrations.md, and the frameworks' own suites."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Coroutine, Dict, List

from package_case import PackageCase

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "integrations.md"
BLOCKS = re.compile(r"^```python\n((?:(?!```).*\n)*)```\n```text\n((?:(?!```).*\n)*)```", re.MULTILINE)
BOUND_SECONDS = 300


class IntegrationCase(PackageCase):
    """Each test has a fresh current directory, and leaves no process and no jar."""

    def setUp(self) -> None:
        super().setUp()
        # Frameworks leave files and children for the collector; what Belljar's own objects say stays an error.
        warnings.filterwarnings("ignore", message="unclosed|subprocess .* is still running", category=ResourceWarning)

    def check_example(self, name: str) -> None:
        """The page's program that imports belljar.integrations.NAME, or else NAME, prints what the page says."""
        blocks = BLOCKS.findall(PAGE.read_text())
        found = [block for block in blocks if f"from belljar.integrations.{name} import" in block[0]]
        found = found or [block for block in blocks if f"from {name} import" in block[0]]
        self.assertEqual(len(found), 1, f"one example for {name}")
        program, wanted = found[0]
        path = self.base / "example.py"
        path.write_text(program)
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=BOUND_SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, wanted), done.stderr)

    def run_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in a loop of its own, within the bound."""
        return asyncio.run(asyncio.wait_for(work, BOUND_SECONDS))

    def run_suite(self, name: str) -> Dict[str, List[str]]:
        """Run a framework's own suite with pytest: the names of its tests by "passed", "failed" and "skipped"."""
        report = self.base / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(HERE / name)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False)
        outcomes: Dict[str, List[str]] = {"passed": [], "failed": [], "skipped": []}
        self.assertTrue(report.exists(), done.stdout + done.stderr)
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            status = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            outcomes[status].append(str(case.get("name")))
        self.assertEqual(outcomes["failed"], [], done.stdout[-6000:])
        return outcomes
