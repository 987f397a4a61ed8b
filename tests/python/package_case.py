# SPDX-License-Identifier: Apache-2.0
"""The base of the package's tests: a work directory of its own, and nothing left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator, List

from belljar import _engine
from harness import census, trees
from harness.bounds import BOUND as BOUND_SECONDS


def engine_pid() -> int:
    """The engine of this process."""
    return _engine.current().pid


def open_fds() -> List[str]:
    """What this process has open, for leak checks."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:
            pass  # the directory itself
    return found


@contextlib.contextmanager
def again_and_again(action: Callable[[], Any], seconds: float) -> Iterator[None]:
    """Do something from another thread every so often: the first time may be too early on a busy machine."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(seconds):
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class PackageCase(unittest.TestCase):
    """Each test has a fresh current directory, which is the default work directory."""

    maxDiff = 4000

    def setUp(self) -> None:
        warnings.simplefilter("error", ResourceWarning)
        self.base = Path(tempfile.mkdtemp(prefix="bjt-", dir="/tmp"))
        self.addCleanup(trees.remove, self.base)
        self.base.chmod(0o755)
        self.work = self.base / "work"
        self.work.mkdir()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.work)
        self.marker = "bjt" + secrets.token_hex(12)
        self.addCleanup(self.check_nothing_left)

    def check_nothing_left(self) -> None:
        """No process with the test's marker among its arguments lives."""
        gc.collect()
        self.assertEqual(self.marked(), [], "processes are left")

    def marked(self) -> List[int]:
        """Processes of this test's commands, jars' own or not."""
        return census.marked(self.marker)

    def sh(self, script: str) -> List[str]:
        """A command with the marker in its arguments."""
        return ["/bin/sh", "-c", script, self.marker]

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = BOUND_SECONDS) -> None:
        """Poll until the condition holds; fail after the bound."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"did not happen within {seconds} s: {what}")
            time.sleep(0.005)

    def host(self, script: str, *arguments: str, status: int = 0) -> str:
        """A program of its own that uses the package; what it prints. Warnings about resources are errors."""
        done = subprocess.run(
            [sys.executable, "-W", "error::ResourceWarning", "-c", script, self.marker, *arguments],
            capture_output=True,
            text=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return done.stdout


def tearDownModule() -> None:  # noqa: N802
    """For test modules to import: their engine leaves before the runner looks at what they left."""
    _engine._at_exit()
