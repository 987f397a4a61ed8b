# SPDX-License-Identifier: Apache-2.0
"""Run the scenes and say how each test ended."""

from __future__ import annotations

import collections
import os
import pathlib
import re
import tempfile
import threading
import time

from runner import process
from runner.groups import module_outcomes
from runner.report import FAILED, SKIPPED, Outcome
from vm.guest.scenes import SCENES, Scene
from vm.guest.setup import CGROUPS

HOME = pathlib.Path("/vm")
COMMAND = HOME / "command"
MODULE_SECONDS = 1800.0
RUN_ALONE = re.compile(r"^RUN_ALONE = True$", re.MULTILINE)
WORKERS = 2
# An emulated processor takes many times as long.
SLOWNESS = 8


class Report:
    """One line for each test that did not pass, one for each module, and the total."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.lock = threading.Lock()

    def add(self, scene: str, module: str, outcomes: list[Outcome], seconds: float) -> None:
        """How a module went."""
        counts = collections.Counter(outcome.status for outcome in outcomes)
        with self.lock:
            self.counts += counts
            print(f"{scene} {module}: " + ", ".join(f"{n} {word}" for word, n in counts.items()) + f" ({seconds:.0f} s)", flush=True)
            for outcome in outcomes:
                if outcome.status == FAILED:
                    print(f"FAIL {scene} {outcome.name}\n{outcome.detail}", flush=True)
                elif outcome.status == SKIPPED:
                    print(f"skip {scene} {outcome.name}: {outcome.detail}", flush=True)

    def end(self) -> None:
        """The last line."""
        passed, failed, skipped = (self.counts[word] for word in ("passed", "failed", "skipped"))
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)


def environment(scene: Scene) -> dict[str, str]:
    """As the runner on the host makes it, and what this scene is about."""
    home = "/root" if scene.uid == 0 else "/home/user"
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{HOME / 'tests'}:{HOME}",
        "BELLJAR_BIN": str(HOME / "bin" / "belljar"),
        "BELLJAR_TEST_UID_KIND": "root" if scene.uid == 0 else "user",
        "BELLJAR_TEST_TOOLS": str(HOME / "tools"),
        "BELLJAR_TEST_ROOT": str(HOME),
        "BELLJAR_TEST_SLOWNESS": str(SLOWNESS),
        "BELLJAR_TEST_PROCESSOR_SLOWNESS": str(SLOWNESS),
        "BELLJAR_VM_EXPECTED": ",".join(f"{key}={value}" for key, value in scene.expected),
    }


def in_place(scene: Scene, command: list[str]) -> list[str]:
    """A command line that runs another in the scene's cgroup, as its user."""
    enter = 'echo 0 > "$1" || exit 99; uid=$2; shift 2; exec setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"'
    return ["/bin/sh", "-c", enter, "sh", str(CGROUPS / scene.cgroup / "cgroup.procs"), str(scene.uid), *command]


def run_module(scene: Scene, module: str, words: list[str], report: Report) -> None:
    """One module, in the scene's cgroup, as its user: all of it, or the tests that the scene or the caller names."""
    module, _, part = module.partition(":")
    is_whole = not words
    words = words or [word for word in part.split(",") if word]
    path = HOME / "tests" / f"{module}.py"
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as events:
        fd = events.fileno()
        child = ["/usr/bin/python3", str(HOME / "tests" / "runner" / "module_child.py"), str(path.parent), path.stem, str(fd), *words]
        finished = process.run(
            in_place(scene, child),
            timeout_seconds=MODULE_SECONDS,
            env=environment(scene),
            cwd="/tmp",
            pass_fds=[fd],
        )
        events.seek(0)
        outcomes = module_outcomes(events.read().splitlines(), finished)
    if not outcomes and is_whole:
        outcomes = [Outcome("the module itself", FAILED, f"it has no test\n{finished.output}")]
    if outcomes:
        report.add(scene.name, module.rpartition("/")[2], outcomes, time.monotonic() - begun)


def run_command(scene: Scene, report: Report) -> None:
    """For a person who looks around: a script instead of the modules."""
    finished = process.run(in_place(scene, ["/bin/sh", str(COMMAND)]), timeout_seconds=MODULE_SECONDS, env=environment(scene), cwd="/tmp")
    print(f"--- {scene.name}\n{finished.output}", flush=True)
    report.counts["passed" if finished.status == 0 else "failed"] += 1


def chosen_modules(scene: Scene, words: list[str]) -> list[str]:
    """Those of a scene that the words name; all without words."""
    return [module for module in scene.modules if not words or any(word.partition(".")[0] in module for word in words)]


def run_modules(scene: Scene, modules: list[str], words: list[str], report: Report) -> None:
    """Modules beside one another but for those that want to be alone."""
    alone = [module for module in modules if RUN_ALONE.search((HOME / "tests" / f"{module.partition(':')[0]}.py").read_text())]
    queue = collections.deque(module for module in modules if module not in alone)

    def work() -> None:
        while True:
            try:
                module = queue.popleft()
            except IndexError:
                return
            run_module(scene, module, words, report)

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for module in alone:
        run_module(scene, module, words, report)


def run_scene(scene: Scene, modules: list[str], words: list[str], report: Report) -> None:
    """The modules, or a command, on the host that the scene is about."""
    old = {name: pathlib.Path("/proc/sys", name).read_text() for name, _ in scene.sysctl}
    for name, value in scene.sysctl:
        pathlib.Path("/proc/sys", name).write_text(value)
    if COMMAND.exists():
        run_command(scene, report)
    else:
        run_modules(scene, modules, words, report)
    for name, value in old.items():
        pathlib.Path("/proc/sys", name).write_text(value)


def share_of(scenes: list[tuple[Scene, list[str]]], share: int, shares: int) -> list[tuple[Scene, list[str]]]:
    """One machine's part of the modules of all scenes, which are dealt out in turn. A scene without a module is left out."""
    dealt = [(number, index) for number, (_, modules) in enumerate(scenes) for index in range(len(modules))][share::shares]
    parts = [(scene, [modules[index] for at, index in dealt if at == number]) for number, (scene, modules) in enumerate(scenes)]
    return [(scene, modules) for scene, modules in parts if modules]


def run_scenes(names: str, words: list[str], share: int, shares: int) -> None:
    """This machine's share of all that were asked for."""
    print(f"vm: Linux {os.uname().release} up after {time.clock_gettime(time.CLOCK_BOOTTIME):.0f} s", flush=True)
    report = Report()
    scenes = [(scene, chosen_modules(scene, words)) for scene in SCENES if names == "all" or scene.name in names.split(",")]
    for scene, modules in share_of(scenes, share, shares):
        run_scene(scene, modules, words, report)
    report.end()
