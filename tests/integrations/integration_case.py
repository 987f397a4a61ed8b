# SPDX-License-Identifier: Apache-2.0
"""The base of the integrations' tests: the examples of docs/integrations.md, and the frameworks' own suites."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Callable, Coroutine, Dict, List, Tuple

import belljar
from package_case import PackageCase

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "integrations.md"
BLOCKS = re.compile(r"^```python\n((?:(?!```).*\n)*)```\n```text\n((?:(?!```).*\n)*)```", re.MULTILINE)
BOUND_SECONDS = 300

# Each limit as the owner gives it, a command that needs more, and what the model must see. Nothing else is said about the
# limit: the framework asks for none, or for more.
LIMITS: Dict[str, Tuple[Any, str, str]] = {
    "timeout": ("1s", "sleep 1000", r"limit 'timeout' of 1s|limit of 1s was|longer than 1 s"),
    "cpu_time": ("1s", "while :; do :; done", r"limit 'cpu_time' of 1s|limit of 1s was"),
    "memory": ("100M", "python3 -c \"x = b'x' * (1 << 30)\"", r"of 100M"),
    "pids": (24, "for i in $(seq 200); do sleep 20 & done; exit 9", r"of 24\b|Cannot fork"),
    "fds": (300, "ulimit -n", r"\b300\b"),
    "core": (0, "ulimit -c", r"\b0\b"),
    "file_size": ("1M", "ulimit -f", r"\b(1024|2048)\b"),
}


# Keywords that no jar can have, and what the error says.
MISTAKES: Tuple[Tuple[Dict[str, Any], str], ...] = (
    ({"memroy": "1G"}, "did you mean 'memory'"),
    ({"pids": "many"}, "pids"),
    ({"timeout": "soon"}, "timeout"),
    ({"output": "much"}, "output"),
    ({"ro": 5}, "ro"),
    ({"net": "some"}, "net"),
    ({"capture_output": True}, "capture_output"),
    ({"policy": {"tiemout": 3}}, "did you mean 'timeout'"),
    ({"policy": "strickt"}, "strickt"),
    ({"policy": "./absent.json"}, "absent"),
)


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

    def check_limits(self, see: Callable[[Dict[str, Any], str], str]) -> None:
        """The owner's limits hold, and the model reads which one ended its command. see(keys, command): what the model sees."""
        for name, (given, command, seen) in LIMITS.items():
            with self.subTest(name):
                begun = time.monotonic()
                self.assertRegex(see({name: given}, command), seen)
                self.assertLess(time.monotonic() - begun, 25, "the owner's limit ended nothing")

    def check_mistakes(self, make: Callable[..., Any]) -> None:
        """Wrong keywords are errors when the object is made; one text stands for a list of one."""
        self.check_wrong_keys(make)
        make(pass_env="FOO", hide="/usr/games", publish=8123)

    def check_wrong_keys(self, make: Callable[..., Any]) -> None:
        """Each is an error when the object is made, with the engine's suggestion."""
        for keys, words in MISTAKES:
            with self.subTest(keys=keys), self.assertRaisesRegex(belljar.PolicyError, words):
                make(**keys)

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
