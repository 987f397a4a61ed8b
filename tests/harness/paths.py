# SPDX-License-Identifier: Apache-2.0
"""Where the program under test and the helper programs are.

The runner says it in BELLJAR_BIN and BELLJAR_TEST_TOOLS; by hand, the build directory is used and the helpers are
compiled into a temporary directory once per process.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@functools.cache
def belljar() -> str:
    """The path of the belljar under test."""
    path = Path(os.environ.get("BELLJAR_BIN") or TESTS.parent / "build" / "belljar").absolute()
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"no belljar to test at {path}; build it, or set BELLJAR_BIN")
    return str(path)


@functools.cache
def tools() -> Path:
    """The directory with the helper programs of tests/tools."""
    given = os.environ.get("BELLJAR_TEST_TOOLS")
    if given:
        return Path(given).absolute()
    directory = Path(tempfile.mkdtemp(prefix="bjt-tools-", dir="/tmp"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    compiler = shutil.which("musl-gcc") or "cc"
    for source in sorted((TESTS / "tools").glob("*.c")):
        output = directory / source.stem
        subprocess.run([compiler, "-std=gnu17", "-O1", "-static", "-o", str(output), str(source)], check=True)
    return directory


def tool(name: str) -> str:
    """The path of one helper program, as seen outside a jar."""
    path = tools() / name
    if not path.exists():
        raise FileNotFoundError(f"no helper program {path}")
    return str(path)
