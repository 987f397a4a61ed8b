#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Much from one Node program: a reader that stops in the middle of 10 GiB of output, without memory growing. Needs ./dev build.

    node_hosts.py [MEBIBYTES]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEFAULT_MEBIBYTES = 10240


def main() -> int:
    """The exit status."""
    node = shutil.which("node")
    if node is None:
        print("there is no node: nothing was tried")
        return 0
    tests = ROOT / "node" / "test"
    env = {
        **os.environ,
        "BELLJAR_BIN": str(ROOT / "build" / "belljar"),
        "BELLJAR_TEST_NODE_MEBIBYTES": (sys.argv[1:] or [str(DEFAULT_MEBIBYTES)])[0],
    }
    words = ["--test-name-pattern=a reader that stops", f"--test-reporter={tests / 'reporter.js'}", str(tests / "life.test.js")]
    return subprocess.run([node, *words], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
