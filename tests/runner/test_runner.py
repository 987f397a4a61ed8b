# SPDX-License-Identifier: Apache-2.0
"""The runner and the rules are tested too: a check that never fails is worth nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from harness import census
from lint import frames, rooms, rules
from runner import aftermath, frameworks, process, progress
from runner.groups import LONG_MODULES, QUICK_MODULES, Context, Group, all_groups, module_outcomes, unit_outcomes
from runner.main import Trials, choose, parse
from runner.module_child import describe
from runner.pace import Pace
from runner.progress import Progress, Screen
from runner.report import (
    FAILED,
    FLAKY,
    FLAKY_MAX,
    PASSED,
    SKIPPED,
    SLOWEST_COUNT,
    Outcome,
    Report,
    after_second_chance,
    without_forbidden_skip,
)
from runner.schedule import run_groups
from runner.stage import COPIED_FILES, PACKAGING, Stage


def finished(output: str = "", status: int = 0) -> process.Finished:
    """A program that has ended."""
    return process.Finished(status, output, 0.1, False)


def statuses(outcomes: list[Outcome]) -> dict[str, str]:
    """What became of each test."""
    return {outcome.name: outcome.status for outcome in outcomes}


class Frameworks(unittest.TestCase):
    """Tests that need a registry run where they are asked for, and are skipped where there is none."""

    def chosen(self, *words: str) -> list[str]:
        """What a command line chooses of three groups."""

        def run(_: Context) -> list[Outcome]:
            return []

        made = [
            Group("integration", "root test_a", (), run),
            Group("integrations", "root test_b", (), run, is_slow=True, is_fetching=True),
            Group("integrations", "user test_c", (), run, is_slow=True, is_fetching=True),
        ]
        return [group.name for group in choose(made, parse(list(words)))[0]]

    def test_they_are_asked_for_by_their_whole_name(self) -> None:
        self.assertEqual(self.chosen(), ["root test_a"])
        self.assertEqual(self.chosen("integration"), ["root test_a"])
        self.assertEqual(self.chosen("test_b"), ["root test_a"])  # a filter of single tests, for what it may choose
        self.assertEqual(self.chosen("integrations"), ["root test_b", "user test_c"])
        self.assertEqual(self.chosen("--only", "integrations", "test_c"), ["user test_c"])

    def prepare(self, pip: int, asked: int) -> tuple[str, list[list[str]]]:
        """Prepare an environment with a pip and an interpreter that end so; what is said, and what was run."""
        ran: list[list[str]] = []

        def run(command: list[str], **_: object) -> process.Finished:
            ran.append(command)
            if "--upgrade" in command:
                return finished("first line\nERROR: no route to the registry\n" if pip else "", pip)
            return finished("1.2.3\n" if "-c" in command and asked == 0 else "", asked if "-c" in command else 0)

        with tempfile.TemporaryDirectory() as folder, mock.patch("runner.frameworks.process.run", run):
            (pathlib.Path(folder) / "belljar-0-py3-none-any.whl").touch()
            environment = frameworks.Environment(pathlib.Path(folder), "langchain")
            said = []
            for _ in range(2):
                try:
                    said.append(environment.prepare(pathlib.Path(folder)))
                except frameworks.Absent as absent:
                    said.append(str(absent))
        self.assertEqual(said[0], said[1])
        return said[0], ran

    def test_an_environment_is_made_once(self) -> None:
        said, ran = self.prepare(0, 0)
        self.assertEqual(said, "langchain 1.2.3")
        self.assertEqual(len(ran), 4)

    def test_without_a_registry_an_older_one_will_do(self) -> None:
        self.assertEqual(self.prepare(1, 0)[0], "langchain 1.2.3, as it was: the registry cannot be reached")
        said = self.prepare(1, 1)[0]
        self.assertEqual(said, "needs:registry langchain cannot be installed: ERROR: no route to the registry")


class Quick(unittest.TestCase):
    """What `./dev test --quick` chooses."""

    def test_quick_takes_one_module_for_each_promise_and_no_sanitizers(self) -> None:
        def run(_: Context) -> list[Outcome]:
            return []

        names = [
            ("unit", "gcc test_a"),
            ("unit", "asan test_a"),
            ("lint", "words"),
            ("lint", "cppcheck"),
            ("integration", "root test_argv"),
            ("integration", "user test_argv"),
            ("integration", "root test_limits"),
        ]
        made = [Group(part, name, (), run) for part, name in names]
        with mock.patch("runner.groups.os.geteuid", lambda: 0):
            chosen = [group.name for group in choose(made, parse(["--quick"]))[0]]
        self.assertEqual(chosen, ["gcc test_a", "words", "root test_argv"])

    def test_quick_names_modules_that_exist(self) -> None:
        folder = pathlib.Path(__file__).resolve().parent.parent
        for part, modules in QUICK_MODULES.items():
            for module in modules:
                self.assertTrue((folder / part / f"{module}.py").is_file(), module)


class UnitOutput(unittest.TestCase):
    """Reading what unit test programs print."""

    def test_lines_are_counted(self) -> None:
        outcomes = unit_outcomes(finished("ok a\nx.c:1: wrong\nFAIL b\nskip c needs:root here\n", 1))
        self.assertEqual(statuses(outcomes), {"a": PASSED, "b": FAILED, "c": SKIPPED})
        self.assertEqual(outcomes[1].detail, "x.c:1: wrong")

    def test_a_crash_is_a_failure(self) -> None:
        outcomes = unit_outcomes(finished("ok a\n", -11))
        self.assertEqual(statuses(outcomes), {"a": PASSED, "the program itself": FAILED})

    def test_a_program_without_tests_is_a_failure(self) -> None:
        self.assertEqual(statuses(unit_outcomes(finished("hello\n"))), {"the program itself": FAILED})


class ModuleEvents(unittest.TestCase):
    """Putting the events of a module together."""

    @staticmethod
    def lines(*events: tuple[str, str]) -> list[str]:
        return [json.dumps({"name": name, "status": status, "detail": ""}) for name, status in events]

    def test_the_test_that_was_running_when_the_module_was_killed_fails(self) -> None:
        events = self.lines(("a", "started"), ("a", PASSED), ("b", "started"))
        self.assertEqual(statuses(module_outcomes(events, finished(status=-9))), {"a": PASSED, "b": FAILED})

    def test_a_failed_subtest_fails_its_test_once(self) -> None:
        events = self.lines(("a", "started"), ("a", FAILED), ("a", FAILED))
        self.assertEqual(statuses(module_outcomes(events, finished())), {"a": FAILED})


class Skips(unittest.TestCase):
    """BELLJAR_TEST_REQUIRE."""

    def test_a_required_feature_may_not_be_skipped(self) -> None:
        skip = Outcome("a", SKIPPED, "needs:userns which is off")
        with mock.patch.dict(os.environ, {"BELLJAR_TEST_REQUIRE": "landlock,userns"}):
            self.assertEqual(without_forbidden_skip(skip).status, FAILED)
        with mock.patch.dict(os.environ, {"BELLJAR_TEST_REQUIRE": "landlock"}):
            self.assertEqual(without_forbidden_skip(skip).status, SKIPPED)


class LastLine(unittest.TestCase):
    """What other programs read."""

    def last_line(self, *outcomes: Outcome) -> tuple[str, int]:
        report = Report()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            report.add("group", list(outcomes), 0.0)
            status = report.finish()
        return output.getvalue().splitlines()[-1], status

    def test_skips_are_named_only_where_there_are_some(self) -> None:
        passed, failed, skipped = Outcome("a", PASSED), Outcome("b", FAILED), Outcome("c", SKIPPED, "why")
        self.assertEqual(self.last_line(passed), ("1 passed, 0 failed", 0))
        self.assertEqual(self.last_line(passed, failed, skipped), ("1 passed, 1 failed, 1 skipped", 1))


class SecondChances(unittest.TestCase):
    """What fails once has failed, or is named; nothing is forgotten."""

    def run_twice(self, has_second_chance: bool, *runs: list[Outcome]) -> tuple[list[str], int, int]:
        """The lines that were printed, the exit status, and how often the group was run."""
        left = list(runs)
        group = Group("part", "group", (), lambda context: left.pop(0), has_second_chance=has_second_chance)
        stage = mock.create_autospec(Stage, instance=True)
        report = Report()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            trials = Trials(report, Context(stage, pathlib.Path("/"), [], 0, set()))
            trials.run(group)
            trials.run_again()
            status = report.finish()
        return output.getvalue().splitlines(), status, len(runs) - len(left)

    def test_one_failure_is_final_without_a_second_chance(self) -> None:
        lines, status, count = self.run_twice(False, [Outcome("a", FAILED)], [Outcome("a", PASSED)])
        self.assertEqual((lines[-1], status, count), ("0 passed, 1 failed", 1, 1))

    def test_what_passes_only_the_second_time_is_named(self) -> None:
        first = [Outcome("a", FAILED, "the first text"), Outcome("b", PASSED)]
        lines, status, count = self.run_twice(True, first, [Outcome("a", PASSED), Outcome("b", PASSED)])
        self.assertEqual((lines[-1], status, count), ("2 passed, 0 failed", 0, 2))
        at = lines.index("flaky: part group a")
        self.assertEqual(lines[at + 1], "the first text")

    def test_what_fails_twice_or_only_the_second_time_has_failed(self) -> None:
        first = [Outcome("a", FAILED), Outcome("b", PASSED)]
        self.assertEqual(self.run_twice(True, first, first)[1], 1)
        second = [Outcome("a", PASSED), Outcome("b", FAILED)]
        lines, status, _ = self.run_twice(True, first, second)
        self.assertEqual((lines[-1], status), ("1 passed, 1 failed", 1))
        self.assertIn("flaky: part group a", lines)

    def test_a_failure_that_is_not_heard_of_again_is_flaky_and_one_that_is_skipped_then_has_failed(self) -> None:
        first = [Outcome("the module itself", FAILED, "exit status -9"), Outcome("a", FAILED)]
        outcomes = after_second_chance(first, [Outcome("a", SKIPPED, "why"), Outcome("b", PASSED)])
        self.assertEqual(statuses(outcomes), {"the module itself": FLAKY, "a": FAILED, "b": PASSED})

    def test_only_a_few_may_be_flaky(self) -> None:
        for count in (FLAKY_MAX, FLAKY_MAX + 1):
            first = [Outcome(f"test {number}", FAILED) for number in range(count)]
            second = [Outcome(f"test {number}", PASSED) for number in range(count)]
            lines, status, _ = self.run_twice(True, first, second)
            is_wrong = count > FLAKY_MAX
            self.assertEqual((lines[-1], status), (f"{count} passed, {int(is_wrong)} failed", int(is_wrong)))

    def test_attacks_and_tests_that_nothing_disturbs_have_none(self) -> None:
        source = pathlib.Path(__file__).resolve().parents[2]
        stage = mock.create_autospec(Stage, instance=True)
        stage.kinds.return_value = ["root", "user"]
        groups = all_groups(stage, source)
        attacks = {path.stem for path in (source / "tests" / "adversarial").glob("test_*.py")}
        self.assertTrue(attacks)
        forgiven = {group.part for group in groups if group.has_second_chance}
        self.assertLessEqual(forgiven, {"bench", "golden", "integration", "node", "python", "sanitizer"})
        self.assertFalse([g.title for g in groups if g.has_second_chance and g.name.split()[-1] in attacks])


LOSING_MODULE = """
import asyncio, threading, unittest

class Dropped:
    def __del__(self):
        raise ValueError("in a destructor")

async def fail():
    raise ValueError("in a task")

async def forget():
    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)

class Losing(unittest.TestCase):
    def test_a_thread(self):
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()

    def test_b_destructor(self):
        Dropped()

    def test_c_task(self):
        asyncio.run(forget())

    def test_d_nothing(self):
        thread = threading.Thread(target=lambda: exec("raise SystemExit"))
        thread.start()
        thread.join()

    def test_e_cycle(self):
        dropped = Dropped()
        dropped.itself = dropped
"""


class LostExceptions(unittest.TestCase):
    """A test whose thread fell over has not passed."""

    def test_the_test_fails_during_which_one_was_lost(self) -> None:
        child = str(pathlib.Path(__file__).resolve().parent / "module_child.py")
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as events:
            pathlib.Path(folder, "test_losing.py").write_text(LOSING_MODULE)
            fd = events.fileno()
            done = process.run([sys.executable, child, folder, "test_losing", str(fd)], timeout_seconds=60, pass_fds=[fd])
            events.seek(0)
            outcomes = module_outcomes(events.read().splitlines(), done)
        found = {outcome.name.rpartition(".")[2]: outcome for outcome in outcomes}
        self.assertEqual({name for name, outcome in found.items() if outcome.status == PASSED}, {"test_d_nothing", "test_e_cycle"})
        self.assertIn("ZeroDivisionError", found["test_a_thread"].detail)
        self.assertIn("in a destructor", found["test_b_destructor"].detail)
        self.assertIn("in a task", found["test_c_task"].detail)
        self.assertIn("in a destructor", found["test_losing loses no exception"].detail)


class Costs(unittest.TestCase):
    """Where the time went."""

    def test_the_slowest_and_the_parts_are_named(self) -> None:
        report = Report()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            for number in range(SLOWEST_COUNT + 5):
                report.add(f"part{number % 2} group{number}", [Outcome("a", PASSED)], float(number), 0.25)
            report.finish()
        lines = output.getvalue().splitlines()
        slow = [line for line in lines if line.startswith("slow: ")]
        self.assertEqual(len(slow), SLOWEST_COUNT)
        self.assertEqual(slow[0], "slow: part0 group14: 14.0 s, 0.2 s of processors")
        self.assertIn("part: part0: 56.0 s, 2.0 s of processors", lines)


class Slow(unittest.TestCase):
    """A machine that is slow is given more time; nothing else ends a group."""

    def setUp(self) -> None:
        self.time, self.slowness = 100.0, 1.0
        self.pace = Pace(lambda: self.time, lambda: (self.slowness, 1.0))

    def pass_by(self, seconds: float, slowness: float) -> float:
        """So much of the clock passes there, in looks that find it so slow."""
        start = self.pace.now()
        self.slowness = slowness
        self.pace.look()
        for _ in range(10):
            self.time += seconds / 10
            self.pace.look()
        return self.pace.now() - start

    def test_a_second_is_one_of_a_quiet_machine(self) -> None:
        self.assertAlmostEqual(self.pass_by(50, 1), 50)
        self.assertAlmostEqual(self.pass_by(50, 10), 5)
        self.assertAlmostEqual(self.pass_by(50, 100), 0.5)
        self.assertAlmostEqual(self.pass_by(50, 1), 50)

    def test_between_two_looks_the_slower_one_counts(self) -> None:
        self.slowness = 10
        self.time += 50
        self.pace.look()
        self.assertAlmostEqual(self.pace.now(), 5)

    def test_a_program_is_killed_by_that_clock(self) -> None:
        """On a machine that stands still a program may take for ever."""
        with mock.patch("runner.process.PACE", self.pace):
            timer = threading.Timer(1.5, lambda: setattr(self, "time", 1000.0))
            timer.start()
            done = process.run(["sleep", "1000"], timeout_seconds=1)
            timer.join()
        self.assertTrue(done.is_timed_out)
        self.assertGreater(done.seconds, 1.4)


class Far(unittest.TestCase):
    """Progress is for people at a terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def show(self, stream: io.StringIO) -> str:
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"TERM": "xterm"}):
            path = pathlib.Path(folder) / "build" / "costs.json"
            progress.Costs(path).keep({"part a": 10.0, "part b": 30.0})
            times = iter([0.0, *[60.0] * 20])
            screen = Screen(stream)
            screen.progress = Progress(progress.Costs(path).seconds, lambda: next(times))
            screen.progress.done("part a")
            screen.show("  ok part a")
            screen.end()
            screen.show("the last line")
        return stream.getvalue()

    def test_on_a_terminal_one_line_is_written_over(self) -> None:
        text = self.show(self.Terminal())
        end = time.strftime("%H:%M", time.localtime(60 + 180))
        line = f"1 of 2 groups done, 1 left, about 3 min more, until {end}"
        self.assertEqual(text, f"\r\x1b[K  ok part a\n{line}\r\x1b[Kthe last line\n")

    def test_elsewhere_there_is_nothing_of_it(self) -> None:
        self.assertEqual(self.show(io.StringIO()), "  ok part a\nthe last line\n")

    def test_it_is_there_before_the_first_group_has_ended(self) -> None:
        report = Report()
        with mock.patch.dict(os.environ, {"TERM": "xterm"}):
            report.screen = Screen(self.Terminal())
        with mock.patch("runner.report.REFRESH_EVERY_SECONDS", 0.01):
            report.follow(Progress({"part a": 1.0}))
            stream = report.screen._stream
            while stream.getvalue().count("\r\x1b[K0 of 1 groups done, 1 left") < 3:  # type: ignore[attr-defined]
                time.sleep(0.01)
        report.screen.end()

    def test_it_fits_into_80_columns(self) -> None:
        times = iter([0.0, *[9e9] * 5])
        far = Progress({str(number): 10.0 for number in range(100_000)}, lambda: next(times))
        far.done("1")
        self.assertLess(len(far.line()), 80)


class Aftermath(unittest.TestCase):
    """What is there afterwards is attributed."""

    def judge(self, *, others: set[str], mounts: set[str], folders: set[pathlib.Path]) -> Outcome:
        """With nothing before, and this afterwards."""
        fake = mock.Mock()
        fake.ours.return_value = set()
        patches = {"folders": lambda: made, "cgroups": set, "neighbours": lambda: others, "processes_of": lambda uid: set(), "GRACE_SECONDS": 0.2}
        made: set[pathlib.Path] = set()
        with contextlib.ExitStack() as stack:
            for name, value in patches.items():
                stack.enter_context(mock.patch.object(aftermath, name, value))
            picture = aftermath.Aftermath(fake, os.getuid())
            picture.others |= others
            made |= folders
            fake.ours.return_value = mounts
            return picture.outcome()

    def test_a_mount_of_ours_is_a_failure(self) -> None:
        self.assertEqual(self.judge(others={"belljar"}, mounts={"/mnt tmpfs none"}, folders=set()).status, FAILED)

    def test_what_our_own_user_leaves_is_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            outcome = self.judge(others={"belljar"}, mounts=set(), folders={pathlib.Path(folder)})
        self.assertEqual((outcome.status, outcome.detail), (FAILED, folder))

    def test_a_file_of_unknown_origin_counts_unless_another_belljar_was_at_work(self) -> None:
        unknown = {pathlib.Path("/proc/1")} if os.getuid() else {pathlib.Path("/nonexistent")}
        self.assertEqual(self.judge(others=set(), mounts=set(), folders=unknown).status, FAILED)
        outcome = self.judge(others={"belljar"}, mounts=set(), folders=unknown)
        self.assertEqual(outcome.status, PASSED)
        self.assertIn(str(next(iter(unknown))), outcome.detail)

    def test_processes_below_the_runner_are_ours(self) -> None:
        with subprocess.Popen(["sleep", "1000"]) as left:
            self.assertIn(left.pid, aftermath.processes_of(None))
            left.kill()

    def test_mounts_are_compared_with_the_hosts(self) -> None:
        line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n"
        self.assertEqual(aftermath.mount_lines(line), {"/mnt2 ext3 /dev/root"})


class Order(unittest.TestCase):
    """What runs when."""

    def setUp(self) -> None:
        self.said: list[str] = []
        self.lock = threading.Lock()

    def say(self, text: str) -> None:
        with self.lock:
            self.said.append(text)

    @staticmethod
    def group(name: str, **fields: object) -> Group:
        return Group("part", name, **{"builds": (), "run": lambda context: [], **fields})  # type: ignore[arg-type]

    def test_a_group_waits_for_its_builds_and_for_no_others(self) -> None:
        is_free = threading.Event()

        def make(name: str) -> None:
            self.assertTrue(name != "late" or is_free.wait(30))
            self.say(f"build {name}")

        def run(group: Group) -> None:
            self.say(group.name)
            if group.name == "free":
                is_free.set()

        groups = [self.group("needs", builds=("late",)), self.group("after", after=("late",)), self.group("free", builds=("early",))]
        run_groups(groups, ("early", "late"), 2, make, run)
        self.assertEqual(self.said[:3], ["build early", "free", "build late"])
        self.assertEqual(sorted(self.said[3:]), ["after", "needs"])

    def test_the_long_ones_begin_first(self) -> None:
        groups = [self.group("root test_short"), self.group(f"root {LONG_MODULES[0]}"), self.group("root test_other")]
        run_groups(groups, (), 1, self.say, lambda group: self.say(group.name))
        self.assertEqual(self.said, [f"root {LONG_MODULES[0]}", "root test_short", "root test_other"])

    def test_what_took_longest_the_last_time_begins_first(self) -> None:
        long = f"root {LONG_MODULES[0]}"
        groups = [self.group("short", expected_seconds=1.0), self.group("new"), self.group(long), self.group("known", expected_seconds=90.0)]
        run_groups(groups, (), 1, self.say, lambda group: self.say(group.name))
        self.assertEqual(self.said, ["known", long, "new", "short"])

    def test_those_that_must_be_alone_come_last_and_one_by_one(self) -> None:
        running: set[str] = set()
        beside: dict[str, set[str]] = {}

        def run(group: Group) -> None:
            with self.lock:
                running.add(group.name)
                beside[group.name] = set(running)
            time.sleep(0.01)
            with self.lock:
                running.discard(group.name)

        alone = [self.group(f"alone {number}", is_alone=True) for number in range(2)]
        run_groups([*alone, *(self.group(f"many {number}") for number in range(9))], (), 3, self.say, run)
        self.assertEqual(list(beside)[-2:], ["alone 0", "alone 1"])
        self.assertEqual([beside["alone 0"], beside["alone 1"]], [{"alone 0"}, {"alone 1"}])
        self.assertEqual(len(beside), 11)


class Processes(unittest.TestCase):
    """Nothing outlives its time."""

    def test_time_of_processors_is_counted(self) -> None:
        before = process.processor_seconds()
        process.run(["/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done"], timeout_seconds=30)
        self.assertGreater(process.processor_seconds(), before)

    def test_what_gives_way_has_a_low_priority_and_so_have_its_children(self) -> None:
        script = f"while [ $(nice) -lt {process.LOW_PRIORITY} ]; do :; done; cat /proc/self/autogroup"
        done = process.run(["/bin/sh", "-c", script], timeout_seconds=30, gives_way=True)
        self.assertFalse(done.is_timed_out)
        switch = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")
        if switch.is_file() and switch.read_text().strip() == "1":
            self.assertTrue(done.output.endswith(f" nice {process.LOW_PRIORITY}\n"), done.output)

    def test_a_process_with_a_name_that_is_no_text_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(os.fsencode(folder), b"\xff) 1 2 \xfe")
            os.symlink(b"/bin/sleep", program)
            made = subprocess.Popen([program, b"100"])
            try:
                deadline = time.monotonic() + 30
                while census.name(made.pid) != "\ufffd) 1 2 \ufffd" and time.monotonic() < deadline:
                    time.sleep(0.01)
                self.assertEqual(census.name(made.pid), "\ufffd) 1 2 \ufffd")
                self.assertEqual(census.parent(made.pid), os.getpid())
                self.assertIn(made.pid, process.descendants(os.getpid()))
                self.assertIn(str(made.pid), describe(made.pid))
            finally:
                made.kill()
                made.wait()

    def test_a_daemon_is_killed_with_its_starter(self) -> None:
        process.become_subreaper()
        script = "setsid sh -c 'while :; do sleep 0.1; done' & sleep 100"
        done = process.run(["/bin/sh", "-c", script], timeout_seconds=0.5)
        self.assertTrue(done.is_timed_out)
        deadline = time.monotonic() + 30
        while process.descendants(os.getpid()) and time.monotonic() < deadline:
            process.reap_orphans()
            time.sleep(0.02)
        self.assertEqual(process.descendants(os.getpid()), [])


class Stages(unittest.TestCase):
    """The copy of what tests need."""

    def test_python_files_are_compiled_for_an_interpreter(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            source = pathlib.Path(name)
            for file in (*COPIED_FILES, *PACKAGING, "tests/a.py", "package/b.py"):
                (source / file).parent.mkdir(exist_ok=True)
                (source / file).write_text("")
            with Stage(source) as stage:
                stage.compile_for(sys.executable)
                self.assertEqual(len(list((stage.root / "tests" / "__pycache__").glob("a.*.pyc"))), 1)
                stage.add_folder(source / "package", "python")
                stage.compile_for(sys.executable)
                self.assertEqual(len(list((stage.root / "python" / "__pycache__").glob("b.*.pyc"))), 1)


class Rules(unittest.TestCase):
    """Each rule finds what it is there for, in a project made for the purpose."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_lower_folder_may_not_include_an_upper_one(self) -> None:
        self.write("src/plan/plan.h", "")
        self.write("src/base/text.h", "")
        self.write("src/policy/policy.c", '#include "base/text.h"\n#include "plan/plan.h"\n')
        self.assertEqual(rooms.includes(self.root), ["src/policy/policy.c:2: policy/ may not include plan/"])

    def test_a_frame_that_a_page_or_a_client_has_otherwise_is_found(self) -> None:
        self.write("src/door/wire/frame.h", "X(RUN, 1, FRAME_FROM_CLIENT, FRAME_BEGINS | FRAME_FEEDS) X(OUTPUT, 66, FRAME_FROM_ENGINE, 0)")
        self.write("docs/protocol.md", "| 1 | `RUN` | client | first, input | JSON |\n| 66 | `OUTPUT` | engine |  | bytes |\n")
        for client in frames.CLIENTS:
            self.write(client, "RUN, OPEN = range(1, 3)\nOUTPUT = 66\n")
        self.assertEqual(frames.frames(self.root), [])
        self.write("docs/protocol.md", "| 1 | `RUN` | client | first | JSON |\n| 67 | `CAPTURED` | engine |  | bytes |\n")
        self.write(frames.CLIENTS[0], "RUN, OPEN = range(1, 3)\nOUTPUT = 67\n")
        self.assertEqual(len(frames.frames(self.root)), 4)

    def test_a_core_that_grows_is_found(self) -> None:
        self.write("src/inside/build/a.c", "\n" * (rooms.CORE_MAX_LINES - 1))
        self.write("src/base/sys/a.h", "\n")
        self.write("src/inside/init/a.c", '#include "inside/build/build.h"\n')
        self.assertEqual(rooms.core(self.root), [])
        self.write("src/base/sys/a.h", "\n\n")
        self.write("src/plan/b.c", '#include "inside/build/build.h"\n')
        problems = rooms.core(self.root)
        self.assertEqual(len(problems), 2)
        self.assertIn(f"{rooms.CORE_MAX_LINES + 1} lines", problems[0])
        self.assertIn("src/plan/b.c", problems[1])

    def test_an_exported_name_begins_with_its_room(self) -> None:
        self.write("src/survey/a.c", "static int help(void)\n{\n\treturn 0;\n}\n\nint survey_look(void)\n{\n\treturn help();\n}\n")
        self.write("src/base/a.c", "int anything(void)\n{\n\treturn 0;\n}\n")
        self.assertEqual(rooms.prefixes(self.root), [])
        self.write("src/survey/b.c", "const char *const names[] = {\n\t\"a\",\n};\n\nstruct x *look(int (*f)(int))\n{\n\treturn 0;\n}\n")
        self.assertEqual([problem.split()[1] for problem in rooms.prefixes(self.root)], ["names", "look"])

    def test_a_room_that_grows_is_found(self) -> None:
        self.write("src/survey/a.c", "\n" * rooms.ROOMS["survey"][1])
        self.assertEqual(rooms.budgets(self.root), [])
        self.write("src/survey/b.h", "\n")
        self.assertEqual(len(rooms.budgets(self.root)), 1)
        self.assertIn("src/survey", rooms.budgets(self.root)[0])

    def test_a_page_for_auditors_with_other_numbers_is_found(self) -> None:
        audited = [room for room in rooms.ROOMS if room.split("/")[0] in ("inside", "gate") or room in ("helper", "engine/gate")]
        for room in audited:
            self.write(f"src/{room}/a.c", "\n" * 100)
        rows = [f"| words: `{room}/` | 100 | the caller |" for room in audited]
        self.write(rooms.PAGE, "\n".join(["## For an auditor", *rows, "## More"]))
        self.assertEqual(rooms.auditor_page(self.root), [])
        self.write(rooms.PAGE, "\n".join(["## For an auditor", *rows[2:], rows[1].replace("100", "150"), "## More"]))
        self.assertEqual(len(rooms.auditor_page(self.root)), 2)

    def test_a_file_says_what_it_is_for(self) -> None:
        self.write("src/base/a.c", f"/* {rules.SPDX} */\n/*\n * base/a.c - something\n */\n")
        self.assertEqual(rules.headers(self.root), [])
        self.write("src/base/b.c", f"/* {rules.SPDX} */\n/*\n * base/a.c - something\n */\n")
        self.write("src/base/c.c", "int x;\n")
        self.assertEqual(len(rules.headers(self.root)), 2)

    def test_a_script_says_what_it_is_for(self) -> None:
        self.write("tools/a.py", f'# {rules.SPDX}\n"""Something."""\n')
        self.write("tools/a.sh", f"#!/bin/sh\n# {rules.SPDX}\n#\n# tools/a.sh - something\n")
        self.assertEqual(rules.headers(self.root), [])
        self.write("tools/b.py", f"# {rules.SPDX}\nx = 1\n")
        self.write("tools/b.sh", f"#!/bin/sh\n# {rules.SPDX}\n#\n# tools/a.sh - something\n")
        self.write("tools/c", "#!/bin/sh\n")
        problems = rules.headers(self.root)
        self.assertEqual([problem.split(":")[0] for problem in problems], ["tools/b.sh", "tools/c", "tools/b.py"])

    def test_words_that_do_not_belong_here_are_found(self) -> None:
        self.write("README.md", "fine\n")
        self.assertEqual(rules.words(self.root), [])
        for word in rules.WORDS_EVERYWHERE:
            self.write("README.md", f"see {word}\n")
            self.assertEqual(len(rules.words(self.root)), 1, word)


if __name__ == "__main__":
    unittest.main()
