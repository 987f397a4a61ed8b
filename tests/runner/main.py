# SPDX-License-Identifier: Apache-2.0
"""The runner behind ./dev test: choose the tests, build what they need, run them in parallel (see schedule.py), count.

The suites run as root and as an ordinary user when started as root, and once otherwise. The last line of the output is
always "N passed, N failed" or "N passed, N failed, N skipped", and the exit status is 1 if anything failed. Tests that passed
only the second time are among those that passed, and are named before; too many of them are a failure.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys
import time
import traceback

from runner import process
from runner.aftermath import Aftermath, Mounts
from runner.groups import BUILD_TIMEOUT_SECONDS, Context, Group, all_groups, is_quick
from runner.pace import PACE
from runner.progress import Costs, Progress
from runner.report import FAILED, PASSED, Outcome, Report, after_second_chance
from runner.schedule import expected_seconds, run_groups
from runner.stage import Stage

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
# Those that nearly every test needs, and those for which few wait.
FIRST_BUILDS = ("release", "wheel", "tools")
LATER_BUILDS = ("gcc", "asan", "library")
# What tests of the program need beside it: belljar-gate is made with the library's compiler.
ALSO_BUILT = {"release": ["library/belljar-gate"]}
# Parts whose tests run the engine, and so could leave something behind.
ENGINE_PARTS = ("golden", "integration", "adversarial", "library", "bench", "python", "node", "node-adapters", "integrations", "clients", "sanitizer")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev test", description="run the tests, or those whose name has a FILTER in it")
    parser.add_argument("filters", metavar="FILTER", nargs="*")
    parts = "unit, lint, golden, integration, adversarial, library, bench, python, node, node-adapters, integrations, clients, sanitizer or fuzz"
    parser.add_argument("--only", metavar="PART", help=parts)
    parser.add_argument("--jobs", type=int, default=3 * len(os.sched_getaffinity(0)) + 1)
    parser.add_argument("--fuzz-seconds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="less than 90 seconds: unit tests, golden plans, fast lints, one module for each promise")
    parser.add_argument("--list", action="store_true", help="name the groups of tests, run nothing")
    return parser.parse_args(arguments)


def choose(groups: list[Group], options: argparse.Namespace) -> tuple[list[Group], list[str]]:
    """The groups to run, and the filters left for the single tests in them.

    A filter that is in the name of a group chooses the group. If none is, it is part of the name of single tests.
    """
    if options.only:
        groups = [group for group in groups if group.part == options.only]
    else:
        groups = [group for group in groups if not group.is_fetching or group.part in options.filters]
    if options.quick:
        groups = [group for group in groups if is_quick(group)]
    if not options.filters:
        return [group for group in groups if options.only or not group.is_slow], []
    named = [group for group in groups if any(word in group.title for word in options.filters)]
    if named:
        return named, []
    return [group for group in groups if group.part not in ("lint", "fuzz")], options.filters


def fill(stage: Stage, name: str) -> None:
    """Put what a build has made where the tests find it."""
    made = SOURCE / "build"
    program = made / ("belljar" if name == "release" else f"{name}/belljar")
    if name in ("release", "gcc", "asan") and program.exists():
        for made_beside in (program, program.with_name("belljar-prove"), program.with_name("belljar-mcp-http")):
            if made_beside.exists():
                stage.add_program(made_beside, made_beside.name.replace("belljar", "belljar" if name == "release" else f"belljar-{name}"))
    if name == "release" and (made / "belljar-gate").exists():
        stage.add_program(made / "belljar-gate", "belljar-gate")
    folder = {"release": "python", "wheel": "wheel"}.get(name)
    if folder is not None and (made / folder).is_dir():
        stage.add_folder(made / folder, folder)
    if name == "tools" and (made / "tests" / "tools").is_dir():
        stage.add_tools(made / "tests" / "tools")


def build(report: Report, context: Context, name: str, is_counted: bool) -> None:
    """Make a build, in the time that tests leave unless they all wait for it. A build is a test too, where all are run."""
    start, used = time.monotonic(), process.processor_seconds()
    try:
        command = [str(SOURCE / "dev"), "build", name]
        command += ALSO_BUILT.get(name, [])
        finished = process.run(command, timeout_seconds=BUILD_TIMEOUT_SECONDS, gives_way=name not in FIRST_BUILDS)
        failure = "" if finished.status == 0 else finished.output or f"exit status {finished.status}"
        if not failure:
            fill(context.stage, name)
            context.good_builds.add(name)
    except Exception:
        failure = traceback.format_exc()
    if is_counted or failure:
        outcome = Outcome(name, FAILED, failure) if failure else Outcome(name, PASSED)
        report.add(f"build {name}", [outcome], time.monotonic() - start, process.processor_seconds() - used)


def reason_not_to_run(context: Context, group: Group) -> str:
    """Empty where it can run."""
    # A lint needs a build's description of how files are compiled; that is there even where they do not compile.
    lacking = [name for name in group.builds if name not in context.good_builds and group.part != "lint"]
    return f"not run: the build '{lacking[0]}' failed" if lacking else ""


def try_group(context: Context, group: Group) -> list[Outcome]:
    """Run one group; whatever goes wrong is a failure of it and not of the runner."""
    try:
        return group.run(context)
    except Exception:
        return [Outcome("the runner", FAILED, traceback.format_exc())]


class Trials:
    """Runs groups, and those that may fail once a second time at the end, each by itself."""

    def __init__(self, report: Report, context: Context) -> None:
        self._report = report
        self._context = context
        self._again: list[tuple[Group, list[Outcome]]] = []

    def run(self, group: Group) -> None:
        """The first time. A failure is final, unless the group has a second chance."""
        start, used = time.monotonic(), process.processor_seconds()
        reason = reason_not_to_run(self._context, group)
        outcomes = [Outcome("all of it", FAILED, reason)] if reason else try_group(self._context, group)
        failed = [outcome for outcome in outcomes if outcome.status == FAILED]
        if failed and group.has_second_chance and not reason:
            words = "; ".join(f"{outcome.name}: {outcome.detail[-600:]}" for outcome in failed)
            self._report.note(f"once more, alone: {group.title}: {words}")
            self._again.append((group, outcomes))
        elif outcomes:
            self._report.add(group.title, outcomes, time.monotonic() - start, process.processor_seconds() - used)
        else:
            self._report.leave_out(group.title)

    def run_again(self) -> None:
        """The second time, which decides."""
        for group, first in self._again:
            start, used = time.monotonic(), process.processor_seconds()
            reason = reason_not_to_run(self._context, group)
            outcomes = first if reason else after_second_chance(first, try_group(self._context, group))
            self._report.add(group.title, outcomes, time.monotonic() - start, process.processor_seconds() - used)
        if self._again:
            self._report.note(f"{len(self._again)} groups were run twice")


def run_all(report: Report, options: argparse.Namespace, stage: Stage, mounts: Mounts) -> None:
    """Everything but the last lines.

    A breach that succeeds once is a breach: where tests are attacks, or nothing outside them can make them fail, one failure is
    a failure. Others watch processes and memory of a machine that is busy with other tests: a group of those that fails is run
    once more by itself, and what passes only then is named as flaky.
    """
    groups, filters = choose(all_groups(stage, SOURCE), options)
    if options.list:
        report.note("\n".join(group.title for group in groups))
        return
    is_whole = not options.filters and not options.only and not options.quick
    wanted = {name for group in groups for name in group.builds}
    wanted |= {name for group in groups if group.part in ("integration", "adversarial") for name in group.after}
    builds = [name for name in (*FIRST_BUILDS, *LATER_BUILDS) if is_whole or name in wanted]
    context = Context(stage, SOURCE, filters, options.fuzz_seconds, set())
    costs = Costs(SOURCE / "build" / "test-costs.json")
    for group in groups:
        group.expected_seconds = costs.seconds.get(group.title, 0.0)
    report.follow(Progress({group.title: expected_seconds(group) for group in groups}))
    aftermath = Aftermath(mounts, stage.uid_of("user"))
    trials = Trials(report, context)
    run_groups(groups, builds, options.jobs, lambda name: build(report, context, name, is_whole), trials.run)
    trials.run_again()
    if not filters:
        costs.keep({cost.group: round(cost.seconds, 1) for cost in report.costs})
    for part in sorted({group.part for group in groups if group.is_fetching}):
        if not report.has_run(part):
            report.add(part, [Outcome("the suite", FAILED, "no test of it ran; the reasons are those of what was skipped")], 0.0)
    if is_whole and any(group.part in ENGINE_PARTS for group in groups):
        report.add("aftermath", [aftermath.outcome()], 0.0)


def interrupted(number: int, _frame: object) -> None:
    """Told to end: what is running is killed, and the temporary folder removed on the way out."""
    process.stop_everything()
    sys.exit(128 + number)


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    options = parse(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    process.become_subreaper()
    mounts = Mounts()
    PACE.start()
    report = Report()
    with Stage(SOURCE) as stage:
        run_all(report, options, stage, mounts)
        process.reap_orphans()
    return 0 if options.list else report.finish()
