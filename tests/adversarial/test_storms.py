# SPDX-License-Identifier: Apache-2.0
"""Forking faster than anybody can look: no storm holds the engine up, outlives its time, or is told as what it was not.

Layers: the meter's looks, in pieces; the signal scope of whoever is in charge of a tree (Landlock ABI 6), or the hunt where
there is none; the engine's clock. `./dev soak storms` measures times; here nothing does, beyond bounds against a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List

from adversarial_support import AttackCase
from harness import census, wire
from harness.bounds import BOUND, SLOWNESS
from harness.case import on_ways
from harness.result import Result
from harness.runner import LANDLOCK, NAMESPACE, Way

# Storms disturb whoever measures time beside them.
RUN_ALONE = True

SOAK = Path(__file__).resolve().parent.parent / "soak" / "storms.py"
METER = Way("meter", ("cgroup",), ("--rung", "namespace"), "namespace", ("userns",))
METER_LANDLOCK = Way("meter-landlock", ("cgroup", "userns"), ("--rung", "landlock"), "landlock", ("landlock",))
# A storm that nobody ends goes on so long.
SECONDS = "5"
KINDS = ("8 hop ignore", "8 hop setsid", "6 wide", "4 deep setsid ignore", "4 siblings ignore", "4 vfork", "2 threads")


def left_of(marker: str) -> List[str]:
    """What still lives of a storm, after a while."""
    deadline = time.monotonic() + 5.0 * SLOWNESS
    while census.marked(marker) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [census.command_line(pid) for pid in census.marked(marker)]


class StormCase(AttackCase):
    def parse(self, process: "subprocess.Popen[bytes]") -> Result:
        assert process.stdout is not None
        text = process.stdout.read()
        process.wait(BOUND)
        return json.loads(text)

    def join(self, engine: wire.Engine, jar: wire.Channel, argv: List[str], keys: Dict[str, Any]) -> wire.Channel:
        ours, theirs = socket.socketpair()
        environ = [f"{name}={value}" for name, value in self.env.items()]
        jar.send(wire.JOIN, {"version": wire.VERSION, "argv": argv, "keys": keys, "environ": environ}, [theirs.fileno()])
        theirs.close()
        channel = wire.Channel(ours)
        channel.sock.settimeout(120 * SLOWNESS)
        return channel


@on_ways(METER, METER_LANDLOCK)
class Storms(StormCase):
    def storm(self, words: str) -> List[str]:
        return [self.tool("storm"), SECONDS, *words.split(), "--", self.marker]

    def check_ended(self, result: Result) -> None:
        """By its timeout, or sooner by a limit; too many processes have no outcome of their own."""
        if result["outcome"] == "signaled":
            self.assertIn("pids", [hit["name"] for hit in result["limits_hit"]], result)
        else:
            self.assertIn(result["outcome"], ("timeout", "memory", "disk"), result)

    def test_a_storm_ends_with_its_timeout(self) -> None:
        for words in KINDS:
            with self.subTest(words=words):
                args = ["--memory", "512M", "--timeout", "500ms", "--grace", "0", "--", *self.storm(words)]
                result = self.json(*args, timeout=60 * SLOWNESS)
                self.check_ended(result)
                self.assertEqual(left_of(self.marker), [])

    def test_what_a_storm_leaves_ends_with_its_main_process(self) -> None:
        """Nobody looks at it: only the end of the main process ends it."""
        for words in ("8 hop setsid ignore quit", "4 deep ignore quit"):
            with self.subTest(words=words):
                result = self.json("--timeout", "40s", "--", *self.storm(words), timeout=60 * SLOWNESS)
                self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)
                self.assertEqual(left_of(self.marker), [])

    def test_a_storm_in_a_kept_jar(self) -> None:
        engine = wire.Engine(self.env, self.work, self.way)
        self.addCleanup(engine.close)
        jar = engine.channel().send(wire.OPEN, engine.request(keys={"memory": "512M", "disk": "256M"}))
        opened = jar.read()
        assert opened is not None
        self.assertEqual(opened.kind, wire.OPENED, opened)
        for words in ("8 hop setsid ignore", "4 deep ignore"):
            with self.subTest(words=words):
                result = self.joined(engine, jar, self.storm(words), {"timeout": 0.5, "grace": 0})
                self.check_ended(result)
                self.assertEqual(left_of(self.marker), [])
                # The jar is as good as before.
                result = self.joined(engine, jar, ["/bin/true"], {})
                self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)
        jar.close()

    def joined(self, engine: wire.Engine, jar: wire.Channel, argv: List[str], keys: Dict[str, Any]) -> Result:
        return wire.finish(self.join(engine, jar, argv, keys)).result


@on_ways(NAMESPACE, LANDLOCK)
class Clock(StormCase):
    def test_an_engine_that_notices_late_says_timeout(self) -> None:
        """The command ends after its time; the news of both reach the engine together."""
        args = ["--timeout", "1s", "--grace", "0", "--json", "--", "/bin/sh", "-c", "sleep 1.1; exit 3", self.marker]
        process = self.start(*args)
        time.sleep(0.4)
        # `deny` executes belljar: it is the same process.
        os.kill(process.pid, signal.SIGSTOP)
        try:
            self.wait_for(lambda: not census.living(process.pid, "sh", "sleep"), "the command has ended")
        finally:
            os.kill(process.pid, signal.SIGCONT)
        result = self.parse(process)
        self.assertEqual((result["outcome"], result["timed_out"], result["exit_code"]), ("timeout", True, None), result)
        self.assertEqual([hit["name"] for hit in result["limits_hit"]], ["timeout"], result)


@on_ways(METER_LANDLOCK)
class Orphans(AttackCase):
    def test_the_first_process_is_killed_in_a_storm(self) -> None:
        """Its orphans are the engine's then, which ends them and serves others meanwhile."""
        engine = wire.Engine(self.env, self.work, self.way)
        self.addCleanup(engine.close)
        for words in ("8 hop setsid ignore", "4 deep setsid ignore"):
            with self.subTest(words=words):
                argv = [self.tool("storm"), SECONDS, *words.split(), "--", self.marker]
                storm = engine.start(argv, {"timeout": 60, "pids": None}, sink="frames")
                storm.sock.settimeout(90 * SLOWNESS)
                while True:
                    frame = storm.read()
                    assert frame is not None
                    if frame.kind == wire.OUTPUT:
                        break
                    self.assertEqual(frame.kind, wire.STARTED, frame)
                time.sleep(0.2)
                # Beside it there may be some that only look, and leave.
                for first in census.children(engine.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(first, signal.SIGKILL)
                neighbour = engine.run(["/bin/true"], {"timeout": 60})
                self.assertEqual((neighbour.result["outcome"], neighbour.result["exit_code"]), ("exited", 0))
                result = wire.finish(storm).result
                self.assertEqual((result["outcome"], result["signal"]), ("signaled", "SIGKILL"), result)
                self.assertEqual(left_of(self.marker), [])


@on_ways(METER, METER_LANDLOCK)
class Lookers(AttackCase):
    """Another process looks for the engine, and may have to wait for the command's: whatever becomes of it, limits hold."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = wire.Engine(self.env, self.work, self.way)
        self.addCleanup(self.engine.close)

    def begin(self, keys: Dict[str, Any]) -> wire.Channel:
        before = set(census.children(self.engine.pid))
        channel = self.engine.start(["/bin/sleep", "600"], {"memory": "64M", **keys})
        channel.sock.settimeout(60 * SLOWNESS)
        self.first_and_looker = lambda: [pid for pid in census.children(self.engine.pid) if pid not in before]
        return channel

    def looker(self, than: int = 0) -> int:
        """The second process that a metered run makes the engine have; another one @than that."""
        deadline = time.monotonic() + 60 * SLOWNESS
        while time.monotonic() < deadline:
            found = self.first_and_looker()
            if len(found) == 2 and found[1] != than:
                return found[1]
            time.sleep(0.002)
        raise AssertionError("nobody looks")

    def test_one_that_stands_still_holds_nobody_up(self) -> None:
        channel = self.begin({"timeout": 2, "grace": 0})
        looker = self.looker()
        os.kill(looker, signal.SIGSTOP)
        neighbour = self.engine.run(["/bin/true"], {"timeout": 60})
        self.assertEqual((neighbour.result["outcome"], neighbour.result["exit_code"]), ("exited", 0))
        self.assertEqual(wire.finish(channel).result["outcome"], "timeout")
        self.check_gone(looker)

    def test_one_that_is_killed_is_made_anew(self) -> None:
        channel = self.begin({"timeout": 60})
        first = self.looker()
        os.kill(first, signal.SIGKILL)
        second = self.looker(than=first)
        channel.close()
        self.check_gone(second)

    def check_gone(self, looker: int) -> None:
        deadline = time.monotonic() + 60 * SLOWNESS
        while looker in census.children(self.engine.pid) and time.monotonic() < deadline:
            time.sleep(0.005)
        self.assertNotIn(looker, census.children(self.engine.pid))


class Soak(unittest.TestCase):
    def test_eight_storms_at_once(self) -> None:
        if os.environ.get("BELLJAR_TEST_SANITIZER"):
            self.skipTest("a sanitizer needs memory of its own")
        done = subprocess.run(
            [sys.executable, str(SOAK), "2", "--untimed"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400
        )
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])


if __name__ == "__main__":
    unittest.main()
