# SPDX-License-Identifier: Apache-2.0
"""Groups of tests: one unit test program, one host of the library, one unittest module, one lint, one fuzz target.

A group knows its name before anything is built, so that a filter can choose it, and which builds it needs.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable

import lint
from runner import process
from runner.adapters import Adapters, needs_of
from runner.clients import Clients
from runner.frameworks import REQUIREMENTS, Absent, Environment
from runner.interpreters import Interpreter, find_interpreters
from runner.report import FAILED, PASSED, SKIPPED, Outcome
from runner.stage import SYSTEM_PATH, Stage

SYSTEM_PYTHON = "/usr/bin/"
# What may differ between interpreters: run with the oldest and the newest beside the system's own, with which all modules run.
# Under --only python all run with each.
PORTABLE_MODULES = ("test_async", "test_classes", "test_codec", "test_integrations", "test_run", "test_send")
# They look at nothing that depends on who runs them: once is enough, unless all are asked for.
SAME_FOR_EVERYBODY = ("test_answer", "test_classes", "test_codec", "test_keys", "test_loops", "test_types", "test_wheel", "test_wire")
# `./dev test --quick`: one module for each promise of the README, as the user who starts the tests.
QUICK_PARTS = ("unit", "golden", "lint", "runner")
QUICK_MODULES = {
    "integration": ("test_argv", "test_cancel", "test_environment", "test_json", "test_passthrough", "test_paths", "test_redaction", "test_rungs", "test_usage_errors", "test_workdir"),
    "adversarial": ("test_descriptors", "test_kernel"),
    "python": ("test_codec",),
}
# Too long for --quick.
NOT_QUICK = ("cppcheck", "test_plan_seccomp", "test_run_session_limits")
# What takes longest, the longest first, for where no earlier run has told (schedule.py). Only for speed: one that is not here may be long.
LONG_MODULES = (
    "test_host_git",
    "test_doctor",
    "test_limits",
    "test_warm",
    "test_streams",
    "test_run_session_limits",
    "test_output_cap",
    "test_timeout",
    "test_interpreter",
    "test_files",
    "test_swaps",
    "test_quiet_ends",
    "test_engine_tasks",
    "test_stdin",
    "test_pty",
    "test_engine_jar",
    "test_end_of_run",
    "test_plan_seccomp",
    "test_apply",
    "test_inspect",
    "test_engine_socket",
    "test_conformance",
    "test_metadata",
    "test_pool",
    "test_mcp_server",
    "test_wheel",
    "test_run_session_runs",
)
# What takes long there; all run under --only sanitizer.
SLOW_SANITIZED = (
    "test_argv",
    "test_ask_attacks",
    "test_cancel",
    "test_compat",
    "test_descriptors",
    "test_doctor",
    "test_end_of_run",
    "test_ends",
    "test_engine_tasks",
    "test_gate_attacks",
    "test_gate_clients",
    "test_git",
    "test_host_git",
    "test_limits",
    "test_metadata",
    "test_output_cap",
    "test_output_gone",
    "test_passthrough",
    "test_pty",
    "test_publish",
    "test_publish_attacks",
    "test_quiet_ends",
    "test_residue",
    "test_seed_holes",
    "test_soak",
    "test_stdin",
    "test_storms",
    "test_streams",
    "test_swaps",
    "test_timeout",
    "test_usage",
    "test_why",
    "test_workspace_bounds",
)
# The library, and comparisons with libraries that the distribution has for glibc only.
UNIT_BUILDS = ("gcc", "asan")  # of gcc and of clang
# Bounds against waiting for ever, in seconds of a quiet machine; see pace.py.
UNIT_TIMEOUT_SECONDS = 300
BUILD_TIMEOUT_SECONDS = 600
MODULE_TIMEOUT_SECONDS = 600
SANITIZER_TIMEOUT_SECONDS = 600
ASAN_OPTIONS = "detect_stack_use_after_return=1"
UBSAN_OPTIONS = "print_stacktrace=1"
# Folders of tests where a failure is not final: they watch processes, memory and clocks of a machine that is busy with other
# tests. Attacks have none, whatever the engine is built with: one that succeeds once is a breach.
SECOND_CHANCE = ("bench", "golden", "integration", "node", "python")
# What a module says that needs a program which can leave out a wall.
TEST_BUILD = "BELLJAR_TEST_BIN"
# A line of its own in a test module: what it measures would be disturbed by other tests.
RUN_ALONE = re.compile(r"^RUN_ALONE = True$", re.MULTILINE)


@dataclasses.dataclass
class Context:
    """What a group needs to run."""

    stage: Stage
    source: pathlib.Path
    filters: list[str]  # names of single tests; empty: all
    fuzz_seconds: int
    good_builds: set[str]  # those that succeeded as a whole


@dataclasses.dataclass
class Group:
    """`run` returns the outcomes; none at all where a filter chose nothing in it."""

    part: str
    name: str
    builds: tuple[str, ...]
    run: Callable[[Context], list[Outcome]]
    is_alone: bool = False
    is_slow: bool = False  # only where it, or its part, is asked for
    after: tuple[str, ...] = ()  # builds that it does without where they fail, and does not begin before
    has_second_chance: bool = False  # see SECOND_CHANCE
    is_fetching: bool = False  # needs a registry: only where its part is asked for by its whole name
    expected_seconds: float = 0.0  # what it took the last time; 0: not known

    @property
    def module(self) -> str:
        """The last word of its name."""
        return self.name.split()[-1]

    @property
    def is_long(self) -> bool:
        """It should begin early."""
        return self.module in LONG_MODULES

    @property
    def title(self) -> str:
        """As shown, and as filters see it."""
        return f"{self.part} {self.name}"


def may_fail_once(path: pathlib.Path) -> bool:
    """A module's tests are run again where they fail."""
    return path.parent.name in SECOND_CHANCE


def keep_named(outcomes: list[Outcome], filters: list[str]) -> list[Outcome]:
    """The outcomes that the filters name."""
    return [outcome for outcome in outcomes if not filters or any(word in outcome.name for word in filters)]


# --- unit tests ---


def unit_outcomes(finished: process.Finished) -> list[Outcome]:
    """Read "ok NAME", "FAIL NAME" and "skip NAME REASON"; what was printed before a FAIL belongs to it."""
    outcomes: list[Outcome] = []
    pending: list[str] = []
    for line in finished.output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "ok" and rest:
            outcomes.append(Outcome(rest, PASSED))
        elif word == "FAIL" and rest:
            outcomes.append(Outcome(rest, FAILED, "\n".join(pending)))
        elif word == "skip" and rest:
            name, _, reason = rest.partition(" ")
            outcomes.append(Outcome(name, SKIPPED, reason))
        else:
            pending.append(line)
            continue
        pending = []
    has_failure = any(outcome.status == FAILED for outcome in outcomes)
    if finished.status != 0 and not (has_failure and finished.status == 1 and not pending):
        outcomes.append(Outcome("the program itself", FAILED, "\n".join([*pending, f"exit status {finished.status}"])))
    elif not outcomes:
        outcomes.append(Outcome("the program itself", FAILED, "it ran no test"))
    return outcomes


def build_program(context: Context, target: str) -> Outcome | None:
    """Make one program: where the build as a whole fails, or was not asked for, much of it can still be tested."""
    if target.split("/")[0] in context.good_builds:
        return None
    made = process.run([str(context.source / "dev"), "build", target], timeout_seconds=BUILD_TIMEOUT_SECONDS)
    if made.status == 0:
        return None
    errors = [line for line in made.output.splitlines() if "error:" in line or "undefined reference" in line]
    return Outcome("all of it", FAILED, "\n".join(["cannot be built", *(errors[:20] or made.output.splitlines()[-20:])]))


def unit_group(build: str, name: str, part: str = "unit") -> Group:
    """One program in one build."""

    def run(context: Context) -> list[Outcome]:
        failure = build_program(context, f"{build}/tests/unit/{name}")
        if failure is not None:
            return [failure]
        program = context.source / "build" / build / "tests" / "unit" / name
        env = {
            **context.stage.env("root" if context.stage.is_root else "user", program),
            "ASAN_OPTIONS": ASAN_OPTIONS,
            "UBSAN_OPTIONS": UBSAN_OPTIONS,
        }
        finished = process.run(
            [str(program)], timeout_seconds=UNIT_TIMEOUT_SECONDS, env=env, cwd=context.stage.root
        )
        return keep_named(unit_outcomes(finished), context.filters)

    return Group(part, f"{build if part == 'unit' else 'unit'} {name}", (), run, after=(build,))


# --- hosts of libbelljar ---


def library_group(build: str, name: str, kind: str) -> Group:
    """One host program in one build of the library, with the engine that users run."""

    def run(context: Context) -> list[Outcome]:
        failure = build_program(context, f"{build}/tests/library/{name}")
        if failure is not None:
            return [failure]
        built = context.source / "build" / build / "tests" / "library" / name
        program = context.stage.add_program(built, f"{build}-{kind}-{name}")
        env = {
            **context.stage.env(kind, context.stage.root / "bin" / "belljar"),
            "ASAN_OPTIONS": ASAN_OPTIONS,
            "UBSAN_OPTIONS": UBSAN_OPTIONS,
        }
        finished = process.run(
            [str(program)],
            timeout_seconds=MODULE_TIMEOUT_SECONDS,
            env=env,
            cwd=context.stage.root,
            uid=context.stage.uid_of(kind),
        )
        return keep_named(unit_outcomes(finished), context.filters)

    return Group("library", f"{build} {kind} {name}", ("release",), run, after=(build,))


def install_group(path: pathlib.Path, kind: str) -> Group:
    """A module that installs the library from its build; only we are sure to reach that."""

    def run(context: Context) -> list[Outcome]:
        env = {
            **context.stage.env(kind, context.stage.root / "bin" / "belljar"),
            "BELLJAR_TEST_LIBRARY": str(context.source / "build" / "lib"),
        }
        return run_module(context, path, kind, env, MODULE_TIMEOUT_SECONDS)

    return Group("library", f"{kind} {path.stem}", ("release", "library"), run)


def bench_group(path: pathlib.Path, kind: str) -> Group:
    """A module that runs ./dev bench's program in the checkout; only we are sure to reach that."""

    def run(context: Context) -> list[Outcome]:
        env = {
            **context.stage.env(kind, context.stage.root / "bin" / "belljar"),
            "BELLJAR_TEST_SOURCE": str(context.source),
        }
        return run_module(context, path, kind, env, MODULE_TIMEOUT_SECONDS)

    return Group("bench", f"{kind} {path.stem}", ("release", "library"), run, has_second_chance=may_fail_once(path))


def library_groups(stage: Stage, folder: pathlib.Path) -> list[Group]:
    """Each program in each build, as root and as an ordinary user."""
    names = [path.stem for path in sorted(folder.glob("test_*.c"))]
    groups = [library_group(build, name, kind) for build in UNIT_BUILDS for kind in stage.kinds() for name in names]
    return groups + [install_group(path, stage.kinds()[0]) for path in sorted(folder.glob("test_*.py"))]


# --- unittest modules: golden, integration, adversarial ---


def module_outcomes(lines: list[str], finished: process.Finished) -> list[Outcome]:
    """Put the events of module_child.py together: one outcome for each test, failures of subtests joined."""
    by_name: dict[str, Outcome] = {}
    started = ""
    for line in lines:
        event = json.loads(line)
        name, status, detail = event["name"], event["status"], event["detail"]
        if status == "started":
            started = name
            continue
        started = "" if started == name else started
        earlier = by_name.get(name)
        if earlier is None or earlier.status != FAILED:
            by_name[name] = Outcome(name, status, detail)
        elif status == FAILED:
            earlier.detail += "\n" + detail
    outcomes = list(by_name.values())
    if finished.status != 0:
        outcomes.append(Outcome(started or "the module itself", FAILED, f"exit status {finished.status}"))
    if any(outcome.status == FAILED for outcome in outcomes) and finished.output.strip():
        last = [outcome for outcome in outcomes if outcome.status == FAILED][-1]
        last.detail += f"\noutput of the module:\n{finished.output[-8000:]}"
    return outcomes


def python_for(uid: int | None) -> str:
    """The interpreter for a module; another user may not be able to reach ours."""
    return sys.executable if uid is None else "/usr/bin/python3"


def run_module(
    context: Context, path: pathlib.Path, kind: str, env: dict[str, str], timeout: float, python: str | None = None
) -> list[Outcome]:
    """Run one module as root or as an ordinary user."""
    stage = context.stage
    uid = stage.uid_of(kind)
    folder = stage.root / path.parent.relative_to(context.source)
    child = str(stage.root / "tests" / "runner" / "module_child.py")
    python = python or python_for(uid)
    stage.compile_for(python)
    with tempfile.TemporaryFile("w+") as events:
        fd = events.fileno()
        finished = process.run(
            [python, child, str(folder), path.stem, str(fd), *context.filters],
            timeout_seconds=timeout,
            env=env,
            cwd=stage.root,
            uid=uid,
            pass_fds=[fd],
        )
        events.seek(0)
        outcomes = module_outcomes(events.read().splitlines(), finished)
    if not outcomes and not context.filters:
        outcomes.append(Outcome("the module itself", FAILED, f"it has no test\n{finished.output}"))
    return outcomes


def module_group(part: str, path: pathlib.Path, kind: str) -> Group:
    """One module with the program users run."""

    def run(context: Context) -> list[Outcome]:
        env = context.stage.env(kind, context.stage.root / "bin" / "belljar")
        return run_module(context, path, kind, env, MODULE_TIMEOUT_SECONDS)

    is_alone = bool(RUN_ALONE.search(path.read_text()))
    name = f"{kind} {path.stem}"
    return Group(part, name, ("release", "tools"), run, is_alone, after=("gcc",) if TEST_BUILD in path.read_text() else (), has_second_chance=may_fail_once(path))


def python_group(path: pathlib.Path, kind: str, interpreter: Interpreter, is_edge: bool) -> Group:
    """One module of the Python package's tests with one of the machine's interpreters."""

    def run(context: Context) -> list[Outcome]:
        root = context.stage.root
        env = context.stage.env(kind, root / "bin" / "belljar")
        env["PYTHONPATH"] = f"{root / 'tests'}:{root / 'python'}"
        env["BELLJAR_TEST_WHEELS"] = str(root / "wheel")
        return run_module(context, path, kind, env, MODULE_TIMEOUT_SECONDS, interpreter.path)

    is_alone = bool(RUN_ALONE.search(path.read_text()))
    name = f"{kind} {interpreter.version} {path.stem}"
    if interpreter.path.startswith(SYSTEM_PYTHON):
        is_slow = kind == "root" and path.stem in SAME_FOR_EVERYBODY
    else:
        is_slow = not is_edge or path.stem not in PORTABLE_MODULES
    return Group("python", name, ("release", "tools", "wheel"), run, is_alone, is_slow, has_second_chance=may_fail_once(path))


def framework_group(environment: Environment, kind: str) -> Group:
    """The tests of one integration with its framework's newest release, and with the wheel as users install it."""

    def run(context: Context) -> list[Outcome]:
        root = context.stage.root
        path = context.source / "tests" / "integrations" / f"test_{environment.name}.py"
        try:
            version = environment.prepare(root / "wheel")
            if context.stage.uid_of(kind) is not None and not environment.is_open:
                raise Absent("needs:open the environment, or its interpreter, is not open to other users")
        except Absent as absent:
            return [Outcome(path.stem, SKIPPED, str(absent))]
        env = context.stage.env(kind, root / "bin" / "belljar")
        env["PYTHONPATH"] = f"{root / 'tests'}:{root / 'tests' / 'python'}"
        outcomes = run_module(context, path, kind, env, MODULE_TIMEOUT_SECONDS, str(environment.python))
        return [*outcomes, Outcome(f"with {version}", PASSED)]

    name = f"{kind} test_{environment.name}"
    return Group("integrations", name, ("release", "tools", "wheel"), run, is_slow=True, is_fetching=True)


def clients_group(clients: Clients, path: pathlib.Path, kind: str) -> Group:
    """Programs that know nothing of a gate, run through one; some of them are fetched."""

    def run(context: Context) -> list[Outcome]:
        clients.fill()
        env = context.stage.env(kind, context.stage.root / "bin" / "belljar")
        env["PYTHONPATH"] = f"{env['PYTHONPATH']}:{context.stage.root / 'tests' / 'clients'}"
        env["BELLJAR_TEST_CLIENTS"] = str(clients.folder)
        # Whoever runs the tests may have newer ones than the distribution, and registries of their own.
        env["BELLJAR_TEST_PATH"] = os.environ.get("PATH", "")
        env["BELLJAR_TEST_HOME"] = os.environ.get("HOME", "")
        return run_module(context, path, kind, env, MODULE_TIMEOUT_SECONDS)

    return Group("clients", f"{kind} {path.stem}", ("release", "tools"), run, is_slow=True, is_fetching=True)


# --- the Node package ---


SAME_FOR_EVERYBODY_IN_NODE = ("docs.test.js", "package.test.js")


def find_node() -> str | None:
    """The distribution's, which everybody can use, else the first one."""
    return shutil.which("node", path=SYSTEM_PATH) or shutil.which("node")


def node_group(path: pathlib.Path, kind: str) -> Group:
    """One file of the Node package's tests, with the program users run."""

    def run(context: Context) -> list[Outcome]:
        program = find_node()
        if program is None:
            return [Outcome(path.stem, SKIPPED, "needs:node")]
        root = context.stage.root
        folder = root / path.parent.relative_to(context.source)
        finished = process.run(
            [program, f"--test-reporter={folder / 'reporter.js'}", str(folder / path.name)],
            timeout_seconds=MODULE_TIMEOUT_SECONDS,
            env=context.stage.env(kind, root / "bin" / "belljar"),
            cwd=root,
            uid=context.stage.uid_of(kind),
        )
        return keep_named(unit_outcomes(finished), context.filters)

    return Group("node", f"{kind} {path.name[: -len('.test.js')]}", ("release",), run, has_second_chance="node" in SECOND_CHANCE)


def node_groups(stage: Stage, folder: pathlib.Path) -> list[Group]:
    """Each file, as root and as an ordinary user; those that are the same for everybody once."""
    return [
        node_group(path, kind)
        for kind in stage.kinds()
        for path in sorted(folder.glob("*.test.js"))
        if kind == stage.kinds()[-1] or path.name not in SAME_FOR_EVERYBODY_IN_NODE
    ]


def adapter_group(adapters: Adapters, path: pathlib.Path, kind: str) -> Group:
    """The tests of one adapter with its framework's newest release, or what a strict type checker says."""

    def run(context: Context) -> list[Outcome]:
        engine = context.stage.root / "bin" / "belljar"
        try:
            versions = adapters.prepare(engine, "types") if path.suffix == ".ts" else ""
            versions = adapters.prepare(engine, needs_of(path)) or versions
            if context.stage.uid_of(kind) is not None and not adapters.is_open:
                raise Absent("needs:open the folder is not open to other users")
        except Absent as absent:
            return [Outcome(path.stem, SKIPPED, str(absent))]
        tests = adapters.folder / "tests"
        words = [f"--test-reporter={tests / 'reporter.js'}", str(tests / path.name)]
        if path.suffix == ".ts":
            words = [str(adapters.folder / "node_modules/typescript/bin/tsc"), "-p", str(tests / f"tsconfig-{path.stem}.json"), "--pretty", "false"]
            config = {"extends": "./tsconfig.json", "files": [path.name]}
            (tests / f"tsconfig-{path.stem}.json").write_text(json.dumps(config))
        env = {
            **context.stage.env(kind, engine),
            "BELLJAR_TEST_NODE_SOURCE": str(context.stage.root / "node"),
            "BELLJAR_TEST_NODE_TARBALLS": str(adapters.tarballs),
        }
        finished = process.run(
            [str(adapters.node), *words],
            timeout_seconds=MODULE_TIMEOUT_SECONDS,
            env=env,
            cwd=adapters.folder,
            uid=context.stage.uid_of(kind),
        )
        if path.suffix == ".ts":
            # The frameworks' own types are not ours to mend. What names no file is about the settings.
            ours = [line for line in finished.output.splitlines() if line.startswith(("tests/", "node_modules/belljar/", "error "))]
            return [Outcome(f"{path.stem} with {versions}", FAILED if ours or finished.is_timed_out else PASSED, "\n".join(ours))]
        return [*keep_named(unit_outcomes(finished), context.filters), Outcome(f"with {versions}", PASSED)]

    name = f"{kind} {path.name.split('.')[0]}"
    return Group("node-adapters", name, ("release",), run, is_slow=True, is_fetching=True)


def adapter_groups(stage: Stage, source: pathlib.Path) -> list[Group]:
    """Each adapter as root and as an ordinary user; the types once."""
    adapters = Adapters(source)
    folder = source / "node" / "test" / "adapters"
    groups = [adapter_group(adapters, path, kind) for kind in stage.kinds() for path in sorted(folder.glob("*.test.js"))]
    return [*groups, *(adapter_group(adapters, path, stage.kinds()[0]) for path in sorted(folder.glob("types*.test.ts")))]


def runner_group(path: pathlib.Path) -> Group:
    """The runner's own tests; they need no program."""

    def run(context: Context) -> list[Outcome]:
        env = context.stage.env("user", pathlib.Path("/nonexistent"))
        return run_module(context, path, "user", env, MODULE_TIMEOUT_SECONDS)

    return Group("runner", path.stem, (), run)


def instrumented_group(part: str, build: str, path: pathlib.Path, kind: str) -> Group:
    """One module with a program that finds its own mistakes."""

    def run(context: Context) -> list[Outcome]:
        program = context.stage.root / "bin" / f"belljar-{build}"
        env = {
            **context.stage.env(kind, program),
            "BELLJAR_TEST_BIN": str(program),
            "BELLJAR_TEST_SANITIZER": "1",
        }
        return run_module(context, path, kind, env, SANITIZER_TIMEOUT_SECONDS)

    is_alone = bool(RUN_ALONE.search(path.read_text()))
    is_slow = part != "sanitizer" or path.stem in SLOW_SANITIZED
    builds = (build, "release", "tools")
    return Group(part, path.stem, builds, run, is_alone, is_slow, has_second_chance=may_fail_once(path))


def reports_group(part: str, build: str, pattern: str) -> Group:
    """What the program itself said in all of those modules. Alone, that is: after them."""

    def run(context: Context) -> list[Outcome]:
        logs = sorted((context.stage.root / "sanitizer-logs").glob(pattern))
        text = "\n".join(log.read_text(errors="replace") for log in logs)
        return [Outcome("no report", FAILED if logs else PASSED, text)]

    return Group(part, "reports", (build,), run, is_alone=True)


def sanitizer_groups(paths: list[pathlib.Path]) -> list[Group]:
    """Modules with the program built under the sanitizers, as an ordinary user; see sanitizer_options.c."""
    groups = [instrumented_group("sanitizer", "asan", path, "user") for path in paths]
    return [*groups, reports_group("sanitizer", "asan", "report*")] if groups else []


# --- fuzzing and lint ---


def fuzz_group(name: str) -> Group:
    """One libFuzzer target, started from its seeds. What it finds new is kept below build/ for the next time."""

    def run(context: Context) -> list[Outcome]:
        failure = build_program(context, f"asan/tests/fuzz/{name}")
        if failure is not None:
            return [failure]
        kept = context.source / "build" / "fuzz"
        found = kept / "corpus" / name
        crashes = kept / "crashes"
        found.mkdir(parents=True, exist_ok=True)
        crashes.mkdir(exist_ok=True)
        corpus = context.source / "tests" / "fuzz" / "corpus"
        seeds = [folder for folder in (corpus / name, corpus / name[len("fuzz_") :]) if folder.is_dir()]
        command = [
            str(context.source / "build" / "asan" / "tests" / "fuzz" / name),
            f"-max_total_time={context.fuzz_seconds}",
            "-timeout=10",
            "-rss_limit_mb=1024",
            "-print_final_stats=1",
            f"-artifact_prefix={crashes}/{name}-",
            str(found),
            *map(str, seeds),
        ]
        dictionary = context.source / "tests" / "fuzz" / f"{name}.dict"
        if dictionary.is_file():
            command.insert(1, f"-dict={dictionary}")
        env = {**os.environ, "ASAN_OPTIONS": ASAN_OPTIONS, "UBSAN_OPTIONS": UBSAN_OPTIONS}
        finished = process.run(command, timeout_seconds=context.fuzz_seconds + 60, env=env, cwd=context.stage.root)
        if finished.status == 0:
            return [Outcome(name, PASSED)]
        return [Outcome(name, FAILED, finished.output)]

    return Group("fuzz", name, (), run, after=("asan",))


def lint_group(check: lint.Check) -> Group:
    """One lint is one test."""

    def run(context: Context) -> list[Outcome]:
        missing = [program for program in check.programs if shutil.which(program) is None]
        if missing:
            return [Outcome(check.name, SKIPPED, f"needs:{missing[0]} which is not installed")]
        problems = check.find_problems(context.source)
        is_serious = any(not problem.startswith(lint.WARNING) for problem in problems)
        return [Outcome(check.name, FAILED if is_serious else PASSED, "\n".join(problems))]

    return Group("lint", check.name, check.builds, run, is_slow=check.is_slow)


# --- all of them ---


def all_groups(stage: Stage, source: pathlib.Path) -> list[Group]:
    """Every group there is."""
    tests = source / "tests"
    units = sorted([*(tests / "unit").glob("test_*.c"), *(tests / "unit").glob("oracle_*.c")])
    groups = [unit_group(build, path.stem) for build in UNIT_BUILDS for path in units]
    groups += [runner_group(path) for path in sorted((tests / "runner").glob("test_*.py"))]
    groups += [lint_group(check) for check in lint.CHECKS]
    groups += [module_group("golden", path, "user") for path in sorted((tests / "golden").glob("test_*.py"))]
    suites = {part: sorted((tests / part).glob("test_*.py")) for part in ("integration", "adversarial")}
    for part, paths in suites.items():
        groups += [module_group(part, path, kind) for kind in stage.kinds() for path in paths]
    groups += library_groups(stage, tests / "library")
    groups += [bench_group(path, stage.kinds()[0]) for path in sorted((tests / "bench").glob("test_*.py"))]
    interpreters = find_interpreters()
    for kind in stage.kinds():
        groups += [
            python_group(path, kind, interpreter, interpreter in (interpreters[0], interpreters[-1]))
            for interpreter in interpreters
            if interpreter.is_open or stage.uid_of(kind) is None
            for path in sorted((tests / "python").glob("test_*.py"))
        ]
    groups += node_groups(stage, source / "node" / "test")
    groups += adapter_groups(stage, source)
    environments = [Environment(source, name) for name in REQUIREMENTS]
    groups += [framework_group(environment, kind) for environment in environments for kind in stage.kinds()]
    clients = Clients(source)
    groups += [clients_group(clients, path, kind) for kind in stage.kinds() for path in sorted((tests / "clients").glob("test_*.py"))]
    groups += sanitizer_groups([path for paths in suites.values() for path in paths])
    groups += [fuzz_group(path.stem) for path in sorted((tests / "fuzz").glob("fuzz_*.c"))]
    return groups


def is_quick(group: Group) -> bool:
    """Tell whether `./dev test --quick` runs this group."""
    kind, _, module = group.name.rpartition(" ")
    if group.is_slow or module in NOT_QUICK:
        return False
    if group.part in QUICK_PARTS:
        return "asan" not in kind.split()
    return module in QUICK_MODULES.get(group.part, ()) and (os.geteuid() != 0 or "user" not in kind.split())
