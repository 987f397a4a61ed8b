# SPDX-License-Identifier: Apache-2.0
"""Run one unittest module and tell the runner about each test: module_child.py FOLDER MODULE FD [FILTER...].

One line of JSON goes to FD when a test begins and one when it ends, so that the runner can count, and can name the test
that was running when a module had to be killed. At the end no process may be left: whoever started it forgot it. An
exception that nobody caught, in a thread or anywhere else, fails the test during which it was lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pathlib
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from harness.lost_exceptions import LostExceptions  # noqa: E402
from runner import process  # noqa: E402

# Jars that were cut loose by a killed engine end by themselves, but not at once.
LEFT_BEHIND_GRACE_SECONDS = 5.0

HIGH_DESCRIPTOR = 500

# What Belljar passes on; a caller may ignore it (nohup does), and then so does Belljar. Tests are not about ours.
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Reporter(unittest.TestResult):
    """Passes every event on; keeps what unittest itself needs."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._is_settled = False
        self._lost = LostExceptions()

    def send(self, name: str, status: str, detail: str = "") -> None:
        """One event, in one write."""
        os.write(self._fd, (json.dumps({"name": name, "status": status, "detail": detail[-20_000:]}) + "\n").encode())

    def _settle(self, test: unittest.TestCase, status: str, detail: str = "") -> None:
        self._is_settled = True
        self.send(test.id(), status, detail)

    def startTest(self, test: unittest.TestCase) -> None:
        """A test begins."""
        super().startTest(test)
        self._is_settled = False
        self.send(test.id(), "started")

    def stopTest(self, test: unittest.TestCase) -> None:
        """A test has ended; where only subtests failed, unittest calls nothing else."""
        if not self._is_settled:
            self.send(test.id(), "failed", "the test ended without a verdict")
        self.send_lost(test.id())
        super().stopTest(test)

    def send_lost(self, name: str) -> None:
        """A failure of what `name` names, if an exception was lost meanwhile."""
        lost = self._lost.take()
        if lost:
            self.send(name, "failed", "\n".join(lost))

    def addSuccess(self, test: unittest.TestCase) -> None:
        """It held."""
        self._settle(test, "passed")

    def addFailure(self, test: unittest.TestCase, err) -> None:  # type: ignore[no-untyped-def]
        """A check did not hold."""
        super().addFailure(test, err)
        self._settle(test, "failed", self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err) -> None:  # type: ignore[no-untyped-def]
        """Something broke, perhaps before any test began."""
        super().addError(test, err)
        self._settle(test, "failed", self.errors[-1][1])

    def addSubTest(self, test, subtest, err) -> None:  # type: ignore[no-untyped-def]
        """A failing subtest fails its test; the runner counts the test once."""
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._settle(test, "failed", f"{subtest.id()}\n{(self.failures + self.errors)[-1][1]}")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        """It does not apply here."""
        self._settle(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err) -> None:  # type: ignore[no-untyped-def]
        """It failed, as announced."""
        self._settle(test, "passed")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        """It held although it was announced not to: the announcement is out of date."""
        super().addUnexpectedSuccess(test)
        self._settle(test, "failed", "passed, but is marked as an expected failure")


def chosen(suite: unittest.TestSuite, filters: list[str]) -> unittest.TestSuite:
    """The tests of a suite whose id contains one of the filters; all, without filters."""
    if not filters:
        return suite
    kept = unittest.TestSuite()
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            kept.addTest(chosen(item, filters))
        elif any(word in item.id() for word in filters):
            kept.addTest(item)
    return kept


def describe(pid: int) -> str:
    """A process as a person would want to see it."""
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return f"{pid} {words or stat.split(')')[0] + ')'}"
    return str(pid)


def left_behind() -> list[str]:
    """Processes that outlived the tests, after a grace; they are killed here."""
    deadline = time.monotonic() + LEFT_BEHIND_GRACE_SECONDS
    while True:
        process.reap_orphans()
        pids = process.descendants(os.getpid())
        if not pids:
            return []
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    words = [describe(pid) for pid in pids]
    process.signal_all(pids, signal.SIGKILL)
    return words


def main(arguments: list[str]) -> int:
    """See the file's header."""
    folder, name, given, *filters = arguments
    # Out of the way of tests that need a certain low number for themselves.
    fd = fcntl.fcntl(int(given), fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
    os.close(int(given))
    process.become_subreaper()
    for number in PASSED_ON:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    sys.path[:0] = [folder, str(pathlib.Path(folder).parent), str(pathlib.Path(folder).parent.parent)]
    reporter = Reporter(fd)
    try:
        suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
    except unittest.SkipTest as skip:
        reporter.send(name, "skipped", str(skip))
        return 0
    chosen(suite, filters).run(reporter)
    gc.collect()  # a task is found to have failed when it goes
    reporter.send_lost(f"{name} loses no exception")
    processes = left_behind()
    if processes:
        reporter.send(f"{name} leaves no process behind", "failed", "still there:\n" + "\n".join(processes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
