# SPDX-License-Identifier: Apache-2.0
"""Count what the tests said, show what failed, and print the last line that other programs read."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
import time

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

# A test that fails may say a lot; the end of it is what one needs.
DETAIL_MAX_CHARS = 20_000


@dataclasses.dataclass
class Outcome:
    """One test's end. `detail` is the output of a failure, the reason for a skip, or a remark of one that passed."""

    name: str
    status: str
    detail: str = ""


def required_features() -> set[str]:
    """Features whose tests may not be skipped here: BELLJAR_TEST_REQUIRE=userns,landlock,..."""
    return {name for name in os.environ.get("BELLJAR_TEST_REQUIRE", "").split(",") if name}


def without_forbidden_skip(outcome: Outcome) -> Outcome:
    """A skip for want of a required feature ("needs:NAME ...") is a failure."""
    if outcome.status == SKIPPED and outcome.detail.startswith("needs:"):
        words = outcome.detail[len("needs:") :].split(None, 1)
        feature = words[0].rstrip(":,;.") if words else ""
        if feature in required_features():
            return Outcome(outcome.name, FAILED, f"skipped, but BELLJAR_TEST_REQUIRE has it: {outcome.detail}")
    return outcome


class Report:
    """Collects outcomes from many threads. Progress goes to stdout, a line for each group of tests."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.parts: list[tuple[str, float]] = []
        self._lock = threading.Lock()
        self._start = time.monotonic()

    def add(self, group: str, outcomes: list[Outcome], seconds: float) -> None:
        """Take the outcomes of one group (a program, a module, a check) and show them."""
        outcomes = [without_forbidden_skip(outcome) for outcome in outcomes]
        counts = ", ".join(
            f"{count} {status}"
            for status in (PASSED, FAILED, SKIPPED)
            if (count := sum(outcome.status == status for outcome in outcomes))
        )
        mark = "FAIL" if any(outcome.status == FAILED for outcome in outcomes) else "  ok"
        lines = [f"{mark} {group}: {counts or 'nothing to do'} ({seconds:.1f} s)"]
        for outcome in outcomes:
            if outcome.status == PASSED and outcome.detail:
                lines.append(outcome.detail)
            if outcome.status == FAILED:
                lines.append(f"---- FAIL {outcome.name}")
                lines.append(outcome.detail.rstrip()[-DETAIL_MAX_CHARS:])
                lines.append("----")
        with self._lock:
            self.outcomes += [
                Outcome(
                    group if group.endswith(f" {outcome.name}") else f"{group} {outcome.name}",
                    outcome.status,
                    outcome.detail,
                )
                for outcome in outcomes
            ]
            print("\n".join(lines), flush=True)

    def note(self, text: str) -> None:
        """Say something that is no test."""
        with self._lock:
            print(text, flush=True)

    def part(self, name: str) -> _Part:
        """Time a part: with report.part("unit"): ..."""
        return _Part(self, name)

    def finish(self) -> int:
        """Print the summary and the last line; the exit status."""
        by_status = {status: [o for o in self.outcomes if o.status == status] for status in (PASSED, FAILED, SKIPPED)}
        print()
        reasons: dict[str, int] = {}
        for outcome in by_status[SKIPPED]:
            reasons[outcome.detail or "no reason given"] = reasons.get(outcome.detail or "no reason given", 0) + 1
        for reason, count in sorted(reasons.items()):
            print(f"skipped {count}: {reason}")
        for outcome in by_status[FAILED]:
            print(f"failed: {outcome.name}")
        times = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.parts)
        print(f"seconds: {times}, in all {time.monotonic() - self._start:.1f}")
        line = f"{len(by_status[PASSED])} passed, {len(by_status[FAILED])} failed"
        if by_status[SKIPPED]:
            line += f", {len(by_status[SKIPPED])} skipped"
        sys.stderr.flush()
        print(line, flush=True)
        return 1 if by_status[FAILED] else 0


class _Part:
    def __init__(self, report: Report, name: str) -> None:
        self._report = report
        self._name = name

    def __enter__(self) -> None:
        self._start = time.monotonic()
        self._report.note(f"== {self._name}")

    def __exit__(self, *_: object) -> None:
        self._report.parts.append((self._name, time.monotonic() - self._start))
