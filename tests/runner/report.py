# SPDX-License-Identifier: Apache-2.0
"""Count what the tests said, show what failed, and print the last line that other programs read."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
import time

from runner.progress import Progress, Screen

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# It failed, and passed when it was run again. It counts as passed, is named at the end, and there may be only a few.
FLAKY = "flaky"
FLAKY_MAX = 3

# A test that fails may say a lot; the end of it is what one needs.
DETAIL_MAX_CHARS = 20_000
FLAKY_DETAIL_MAX_CHARS = 2000
SLOWEST_COUNT = 10
REFRESH_EVERY_SECONDS = 2.0


@dataclasses.dataclass
class Outcome:
    """One test's end. `detail` is the output of a failure (of a flaky test: the first one), the reason for a skip, or a remark."""

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


def after_second_chance(first: list[Outcome], second: list[Outcome]) -> list[Outcome]:
    """What became of a group that was run twice.

    The second verdict counts. A test that failed only the first time is flaky, also where the second run does not name it,
    as with a module that was killed; a failure that turns into a skip stays a failure.
    """
    outcomes = {outcome.name: outcome for outcome in second}
    for outcome in first:
        if outcome.status == FAILED:
            now = outcomes.get(outcome.name)
            if now is None or now.status == PASSED:
                outcomes[outcome.name] = Outcome(outcome.name, FLAKY, outcome.detail)
            elif now.status == SKIPPED:
                outcomes[outcome.name] = outcome
    return list(outcomes.values())


@dataclasses.dataclass
class Cost:
    """What a group took: time that passed, and time of processors, which is less where it waits and more where it is many."""

    group: str
    seconds: float
    processor_seconds: float


class Report:
    """Collects outcomes from many threads. Progress goes to stdout, a line for each group of tests."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.costs: list[Cost] = []
        self.screen = Screen(sys.stdout)
        self._lock = threading.Lock()
        self._start = time.monotonic()

    def follow(self, progress: Progress) -> None:
        """Show on a terminal how far all is: at once, and then as time goes by, since the first group may take a minute."""
        self.screen.progress = progress
        self.screen.refresh()

        def keep_refreshing() -> None:
            while self.screen.progress is not None:
                time.sleep(REFRESH_EVERY_SECONDS)
                with self._lock:
                    self.screen.refresh()

        threading.Thread(target=keep_refreshing, daemon=True).start()

    def add(self, group: str, outcomes: list[Outcome], seconds: float, processor_seconds: float = 0.0) -> None:
        """Take the outcomes of one group (a program, a module, a check) and show them."""
        outcomes = [without_forbidden_skip(outcome) for outcome in outcomes]
        counts = ", ".join(
            f"{count} {status}"
            for status in (PASSED, FAILED, FLAKY, SKIPPED)
            if (count := sum(outcome.status == status for outcome in outcomes))
        )
        mark = "FAIL" if any(outcome.status == FAILED for outcome in outcomes) else "  ok"
        lines = [f"{mark} {group}: {counts or 'nothing to do'} ({seconds:.1f} s, {processor_seconds:.1f} of processors)"]
        for outcome in outcomes:
            if outcome.status == PASSED and outcome.detail:
                lines.append(outcome.detail)
            if outcome.status in (FAILED, FLAKY):
                lines.append(f"---- {'FAIL' if outcome.status == FAILED else FLAKY} {outcome.name}")
                lines.append(outcome.detail.rstrip()[-DETAIL_MAX_CHARS:])
                lines.append("----")
        with self._lock:
            self.costs.append(Cost(group, seconds, processor_seconds))
            self.outcomes += [
                Outcome(
                    group if group.endswith(f" {outcome.name}") else f"{group} {outcome.name}",
                    outcome.status,
                    outcome.detail,
                )
                for outcome in outcomes
            ]
            if self.screen.progress is not None:
                self.screen.progress.done(group)
            self.screen.show("\n".join(lines))

    def leave_out(self, group: str) -> None:
        """A filter chose nothing in this group."""
        with self._lock:
            if self.screen.progress is not None:
                self.screen.progress.done(group)

    def has_run(self, part: str) -> bool:
        """Whether any test of a part ran to its end, well or not."""
        with self._lock:
            return any(o.name.startswith(f"{part} ") and o.status != SKIPPED for o in self.outcomes)

    def note(self, text: str) -> None:
        """Say something that is no test."""
        with self._lock:
            self.screen.show(text)

    def _print_costs(self) -> None:
        """Where the time went: the longest groups, and the sums of the parts, which overlap."""
        for cost in sorted(self.costs, key=lambda cost: cost.seconds, reverse=True)[:SLOWEST_COUNT]:
            print(f"slow: {cost.group}: {cost.seconds:.1f} s, {cost.processor_seconds:.1f} s of processors")
        parts: dict[str, list[Cost]] = {}
        for cost in self.costs:
            parts.setdefault(cost.group.split()[0], []).append(cost)
        for part, costs in parts.items():
            seconds, processor_seconds = sum(c.seconds for c in costs), sum(c.processor_seconds for c in costs)
            print(f"part: {part}: {seconds:.1f} s, {processor_seconds:.1f} s of processors")
        print(f"seconds in all: {time.monotonic() - self._start:.1f}")

    def finish(self) -> int:
        """Print the summary and the last line; the exit status."""
        with self._lock:
            self.screen.end()
        flaky = [outcome for outcome in self.outcomes if outcome.status == FLAKY]
        if len(flaky) > FLAKY_MAX:
            self.outcomes.append(Outcome(f"{len(flaky)} tests are flaky; {FLAKY_MAX} may be", FAILED))
        by_status = {status: [o for o in self.outcomes if o.status == status] for status in (PASSED, FAILED, SKIPPED)}
        print()
        reasons: dict[str, int] = {}
        for outcome in by_status[SKIPPED]:
            reasons[outcome.detail or "no reason given"] = reasons.get(outcome.detail or "no reason given", 0) + 1
        for reason, count in sorted(reasons.items()):
            print(f"skipped {count}: {reason}")
        for outcome in flaky:
            print(f"flaky: {outcome.name}\n{outcome.detail.rstrip()[-FLAKY_DETAIL_MAX_CHARS:]}")
        for outcome in by_status[FAILED]:
            print(f"failed: {outcome.name}")
        self._print_costs()
        line = f"{len(by_status[PASSED]) + len(flaky)} passed, {len(by_status[FAILED])} failed"
        if by_status[SKIPPED]:
            line += f", {len(by_status[SKIPPED])} skipped"
        sys.stderr.flush()
        print(line, flush=True)
        return 1 if by_status[FAILED] else 0

