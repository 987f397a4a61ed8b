#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev soak storms [SECONDS] [--untimed]: eight fork storms at once, and neighbours beside them, for 60 seconds.

Half of the storms are on each rung that the host has, in jars of their own and in kept ones, held by the meter to memory,
CPU time, disk and processes, or to time alone. All that are on one rung are in one engine, and so is a neighbour there who
runs `true` again and again. Each storm must come to what is right for it; nothing may be left, and the engines have as many descriptors
and about as much memory as before. Unless --untimed is given it must also be over within a second of its timeout and grace, and the neighbour's
median may be ten times what it is on the quiet host. Where the time went is printed. Exit status 0: all held.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import census, host, paths, runner, wire  # noqa: E402
from harness.result import Result, limit_of  # noqa: E402
from harness.runner import LANDLOCK, NAMESPACE, Way  # noqa: E402

AT_ONCE = 8
TIMEOUT = 2.0
LATE_SECONDS = 1.0
NEIGHBOUR_RATIO = 10
QUIET_RUNS = 40
BARE = "without Belljar"
ENGINE_GROWTH_KB = 4096
ENGINE_DESCRIPTORS = 8
# Of jars made ahead, which wait for half a minute: a short soak does not.
AHEAD_DESCRIPTORS = 56
# Anti-hang only.
BOUND = 120.0
STORM_SECONDS = "6"

# Without cgroups the meter holds what can be measured, for root too.
METERED = {way: Way(way.name, (*way.deny, "cgroup"), way.options, way.rung, way.needs) for way in (NAMESPACE, LANDLOCK)}


class Storm(NamedTuple):
    """Words for tests/tools/storm.c, keys of the policy, and what may come of it beside a timeout."""

    words: str
    keys: Dict[str, Any]
    others: List[str]


# Each keeps a few processors busy, no more: who shares two with hundreds that are always ready waits for his turn, and that
# is the scheduler's doing.
MENU = [
    Storm("6 hop ignore", {"memory": "256M"}, ["memory"]),
    Storm("6 hop setsid ignore", {"memory": "256M", "disk": "64M"}, ["memory"]),
    Storm("6 hop setpgid", {}, []),
    Storm("2 wide", {"memory": "256M"}, ["memory"]),
    Storm("2 wide ignore", {"disk": "64M"}, []),
    Storm("4 deep", {"memory": "256M"}, ["memory"]),
    Storm("4 deep setsid ignore", {"cpu_time": "60s"}, []),
    Storm("4 vfork", {"memory": "256M"}, ["memory"]),
    Storm("4 siblings ignore", {"memory": "256M", "cpu_time": "1s"}, ["cpu", "memory"]),
    Storm("1 threads", {"memory": "512M"}, ["memory"]),
    Storm("1 pool", {"memory": "512M"}, ["memory"]),
    Storm("4 hop write ignore", {"disk": "4M"}, ["disk"]),
    Storm("4 hop memory ignore", {"memory": "12M"}, ["memory"]),
]


def ways() -> List[Way]:
    """The rungs this host has."""
    found = [METERED[NAMESPACE]] if host.has_userns() else []
    return found + ([METERED[LANDLOCK]] if host.landlock_abi() > 0 else [])


LIMIT_OF_OUTCOME = {"memory": "memory", "cpu": "cpu_time", "disk": "disk", "timeout": "timeout"}


def is_right(storm: Storm, result: Result) -> bool:
    """Ended by its timeout or one of its limits, which is listed with evidence."""
    outcome = result["outcome"]
    if outcome == "signaled":
        hit = limit_of(result, "pids")
        return result["signal"] == "SIGKILL" and hit is not None and hit["enforced_by"] == "meter"
    hit = limit_of(result, LIMIT_OF_OUTCOME.get(outcome, "pids"))
    return (outcome == "timeout" or outcome in storm.others) and hit is not None and hit["evidence"] != ""


class Times(NamedTuple):
    """Of one storm that was ended by its timeout, in seconds: what of its lateness was spent where."""

    late: float
    outside: float  # before the command began and after it was over, as the client sees it
    noticed: float  # until the engine knew that its time was over
    ended: float  # until nothing of it was left


def true_without_belljar() -> float:
    """The same for a process that no jar is made for."""
    begun = time.monotonic()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    return time.monotonic() - begun


class Scene:
    """One engine with its storms, its kept jar, and its neighbour."""

    def __init__(self, folder: Path, way: Way, env: Dict[str, str]) -> None:
        self.work = folder / way.name
        self.work.mkdir()
        self.way = way
        self.env = env
        self.engine = wire.Engine(env, self.work, way)
        self.neighbour = self.open({"timeout": BOUND})

    def open(self, keys: Dict[str, Any]) -> wire.Channel:
        jar = self.engine.channel().send(wire.OPEN, self.engine.request(keys=keys))
        frame = jar.read()
        assert frame is not None and frame.kind == wire.OPENED, frame
        return jar

    def join(self, jar: wire.Channel, argv: List[str], keys: Dict[str, Any]) -> wire.Channel:
        ours, theirs = socket.socketpair()
        environ = [f"{name}={value}" for name, value in self.env.items()]
        jar.send(wire.JOIN, {"version": wire.VERSION, "argv": argv, "keys": keys, "environ": environ}, [theirs.fileno()])
        theirs.close()
        return wire.Channel(ours)

    def size(self) -> Tuple[int, int]:
        """Resident kilobytes and open descriptors of the engine."""
        status = Path(f"/proc/{self.engine.pid}/status").read_text()
        # An engine cannot be traced: only root sees its descriptors.
        return int(status.partition("VmRSS:")[2].split()[0]), self.engine.descriptors() if os.geteuid() == 0 else 0

    def true(self, is_kept: bool) -> float:
        """How long the neighbour's command takes; it always works."""
        begun = time.monotonic()
        keys = {"timeout": BOUND}
        channel = self.join(self.neighbour, ["/bin/true"], keys) if is_kept else self.engine.start(["/bin/true"], keys)
        channel.sock.settimeout(BOUND)
        result = wire.finish(channel).result
        assert (result["outcome"], result["exit_code"]) == ("exited", 0), result
        return time.monotonic() - begun

    def close(self) -> None:
        self.neighbour.close()
        self.engine.close()


class Storms:
    """Counts what happened and notes what must not."""

    def __init__(self, folder: Path, is_timed: bool) -> None:
        env = runner.clean_env(folder / "home")
        (folder / "home").mkdir()
        self.tools = folder / "tools"
        shutil.copytree(paths.tools(), self.tools)
        self.scenes = [Scene(folder, way, env) for way in ways()]
        self.is_timed = is_timed
        self.seen: Counter[str] = Counter()
        self.wrong: List[str] = []
        self.lates: List[float] = []
        self.times: List[Times] = []
        self.neighbours: Dict[str, List[float]] = {}
        self.quiet: Dict[str, float] = {}
        self.lock = threading.Lock()

    def note(self, text: str) -> None:
        with self.lock:
            self.wrong.append(text)

    def storm(self, scene: Scene, storm: Storm, is_kept: bool, grace: float) -> None:
        words = [str(self.tools / "storm"), STORM_SECONDS, *storm.words.split()]
        keys: Dict[str, Any] = {**storm.keys, "timeout": TIMEOUT, "grace": grace}
        jar: Optional[wire.Channel] = None
        name = f"{scene.way.name} {'kept' if is_kept else 'own'} {storm.words} {storm.keys}"
        if is_kept:
            jar = scene.open({**storm.keys, "ro": [str(self.tools)]})
            channel = scene.join(jar, words, keys)
        else:
            channel = scene.engine.start(words, {**keys, "ro": [str(self.tools)]})
        channel.sock.settimeout(BOUND)
        begun = time.monotonic()
        result = wire.finish(channel).result
        taken = time.monotonic() - begun
        late = taken - TIMEOUT - grace
        hit = limit_of(result, "timeout")
        with self.lock:
            self.seen[f"{name}: {result['outcome']}"] += 1
            self.lates.append(late)
            if hit:
                wall, noticed = result["usage"]["wall_ms"] / 1000, hit["peak"] / 1000
                self.times.append(Times(late, taken - wall, noticed - TIMEOUT, max(wall - noticed - grace, 0.0)))
        if not is_right(storm, result):
            self.note(f"{name} is not right: {str(result)[:900]}")
        if self.is_timed and late > LATE_SECONDS:
            self.note(f"{name} was over {late:.2f} s after its time: {result['outcome']}")
        if jar:
            jar.close()

    def work(self, number: int, end: float) -> None:
        """One storm after the other."""
        turn = number
        try:
            while time.monotonic() < end:
                scene = self.scenes[turn % len(self.scenes)]
                storm = MENU[(turn * 5 + number) % len(MENU)]
                self.storm(scene, storm, turn // len(self.scenes) % 2 == 1, (0.0, 0.2)[turn % 3 == 0])
                turn += AT_ONCE + 1
        except Exception as error:  # noqa: BLE001 - a thread must not end without a word
            self.note(f"storm {number}: {error!r}")

    def live_beside(self, name: str, true: Callable[[], float], is_over: threading.Event) -> None:
        taken: List[float] = []
        try:
            while not is_over.wait(0.05):
                taken.append(true())
        except Exception as error:  # noqa: BLE001
            self.note(f"neighbour {name}: {error!r}")
        with self.lock:
            self.neighbours[name] = taken

    def run(self, seconds: float) -> None:
        neighbours: Dict[str, Callable[[], float]] = {BARE: true_without_belljar}
        for scene in self.scenes:
            neighbours[f"{scene.way.name} kept"] = functools.partial(scene.true, True)
            neighbours[f"{scene.way.name} own"] = functools.partial(scene.true, False)
        for name, true in neighbours.items():
            self.quiet[name] = statistics.median(true() for _ in range(QUIET_RUNS))
        before = [scene.size() for scene in self.scenes]
        is_over = threading.Event()
        end = time.monotonic() + seconds
        beside = [threading.Thread(target=self.live_beside, args=(name, true, is_over)) for name, true in neighbours.items()]
        storms = [threading.Thread(target=self.work, args=(number, end)) for number in range(AT_ONCE)]
        for thread in [*beside, *storms]:
            thread.start()
        for thread in storms:
            thread.join()
        is_over.set()
        for thread in beside:
            thread.join()
        self.judge()
        for scene, (kilobytes, descriptors) in zip(self.scenes, before):
            self.compare(scene, kilobytes, descriptors)
            scene.close()

    def compare(self, scene: Scene, kilobytes: int, descriptors: int) -> None:
        """With what the engine had before the storms, as soon as what they were given is given back."""
        deadline = time.monotonic() + 30
        allowed = descriptors + ENGINE_DESCRIPTORS + (0 if self.is_timed else AHEAD_DESCRIPTORS)
        while scene.size()[1] > allowed and time.monotonic() < deadline:
            time.sleep(0.1)
        now = scene.size()
        print(f"engine {scene.way.name}: {kilobytes} KB and {descriptors} descriptors before, {now[0]} and {now[1]} after")
        if now[0] > kilobytes + ENGINE_GROWTH_KB or now[1] > allowed:
            self.note(f"engine {scene.way.name} has grown: {kilobytes} KB, {descriptors} descriptors; now {now}")

    def judge(self) -> None:
        for name, taken in sorted(self.neighbours.items()):
            median, quiet = statistics.median(taken or [0.0]), self.quiet[name]
            print(
                f"neighbour {name}: quiet {quiet * 1000:.1f} ms; beside storms {len(taken)} runs, median {median * 1000:.1f}, "
                f"longest {max(taken or [0.0]) * 1000:.0f}"
            )
            if self.is_timed and (not taken or median > quiet * NEIGHBOUR_RATIO):
                self.note(f"neighbour {name}: {median * 1000:.1f} ms beside storms, {quiet * 1000:.1f} without")
        over = sum(late > LATE_SECONDS for late in self.lates)
        print(f"storms: {over} of {len(self.lates)} were over more than {LATE_SECONDS} s late")
        for name, values in zip(Times._fields, zip(*self.times)):
            ordered = sorted(values)
            print(
                f"storms, {name}: median {statistics.median(ordered) * 1000:.0f} ms, nine of ten "
                f"{ordered[len(ordered) * 9 // 10] * 1000:.0f}, all {ordered[-1] * 1000:.0f}"
            )


def main(arguments: List[str]) -> int:
    """See the file's header."""
    is_timed = "--untimed" not in arguments
    numbers = [int(word) for word in arguments if word != "--untimed"]
    census.adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="bjt-storms-", dir="/tmp"))
    try:
        storms = Storms(folder, is_timed)
        print(f"storms: {numbers[0] if numbers else 60} s, {AT_ONCE} at once on {[scene.way.name for scene in storms.scenes]}", flush=True)
        storms.run(numbers[0] if numbers else 60)
        deadline = time.monotonic() + 30
        while census.descendants(os.getpid()) and time.monotonic() < deadline:
            census.reap()
            time.sleep(0.1)
        below = census.descendants(os.getpid())
        for name, count in sorted(storms.seen.items()):
            print(f"{count:6} {name}")
        for text in storms.wrong:
            print(f"WRONG {text}")
        if below:
            print(f"LEFT below us: {[census.command_line(pid) for pid in below][:20]}")
            census.kill_all()
        return 1 if storms.wrong or below else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
