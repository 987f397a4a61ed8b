# SPDX-License-Identifier: Apache-2.0
"""`belljar engine`: kept jars - OPEN, JOIN, FILE, CLOSE."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
import unittest
from typing import Any, Tuple

from harness import census, wire
from harness.case import every_way, on_ways
from harness.engine_case import KeptJarCase
from harness.result import check_result
from harness.runner import Way
from harness.wire import CANCEL, CLOSE, CLOSED, DESCRIPTOR, FAILED, FILE, GO, JOIN, CAPTURED, OPEN, RESULT, STARTED, Channel, Outcome


class JarOnAChannel(KeptJarCase):
    """A test with an engine of its own, and jars in it."""

    def file(self, jar: Channel, path: str, op: str = "read", **more: Any) -> Outcome:
        """Ask for a file."""
        ours, theirs = socket.socketpair()
        jar.send(FILE, {"version": wire.VERSION, "path": path, "op": op, **more}, [theirs.fileno()])
        theirs.close()
        return wire.finish(Channel(ours))

    def descriptor(self, jar: Channel, path: str, op: str = "read", **more: Any) -> int:
        """A file, open."""
        outcome = self.file(jar, path, op, **more)
        self.assertEqual(outcome.kinds, [DESCRIPTOR], outcome.frames)
        (fd,) = outcome.last.fds
        self.addCleanup(os.close, fd)
        return fd

    def close(self, jar: Channel) -> None:
        """Close the jar, and see it closed."""
        outcome = wire.finish(jar.send(CLOSE))
        self.assertEqual(outcome.kinds, [CLOSED], outcome.frames)


@every_way
class KeptJars(JarOnAChannel):
    """Many runs in one jar."""

    def test_runs_share_private_files_and_have_results_of_their_own(self) -> None:
        jar = self.open()
        self.assertEqual(self.opened["workdir"], str(self.work))
        self.assertEqual(set(self.opened), {"rung", "enforced", "missing", "limits", "workdir", "workspace", "searched"})
        first = self.run_in(jar, self.script("echo secret > $HOME/x; echo made > made; exit 3"))
        self.assertEqual(first.kinds, [STARTED, RESULT])
        self.assertEqual((first.result["outcome"], first.result["exit_code"]), ("exited", 3))
        second = self.run_in(jar, self.script("cat $HOME/x made"))
        self.assertEqual(second.kinds, [STARTED, CAPTURED, RESULT])
        self.assertEqual(second.stdout, b"secret\nmade\n")
        check_result(second.result)
        self.assertEqual((self.work / "made").read_text(), "made\n")
        other = self.open()
        self.assertEqual(self.run_in(other, self.script("cat $HOME/x")).result["exit_code"], 1)
        self.close(jar)
        self.close(other)

    def test_links_and_renames_across_directories(self) -> None:
        """The scope around a keeper says nothing of files, and must forbid nothing there."""
        jar = self.open()
        text = "mkdir a b; echo x > a/file; ln a/file b/link && mkdir a/d && python3 -c 'import os; os.rename(\"a/d\", \"b/d\")' && echo moved"
        outcome = self.run_in(jar, self.script(text))
        self.assertEqual((outcome.stdout, outcome.result["exit_code"]), (b"moved\n", 0), outcome.stderr)

    def test_runs_at_the_same_time_and_what_one_leaves_behind_goes(self) -> None:
        jar = self.open()
        # No other process on the host sleeps as long.
        lasting = f"1001.{secrets.randbelow(10**9):09}"
        slow = self.join(jar, self.script("echo up; sleep 1000"), sink="frames")
        self.assertEqual([slow.read().kind, slow.read().kind], [STARTED, wire.OUTPUT])
        for _ in range(3):
            quick = self.run_in(jar, self.script(f"(setsid sleep {lasting} &); echo quick"))
            self.assertEqual(quick.stdout, b"quick\n")
        self.assertFalse([pid for pid in census.marked(lasting) if census.command_line(pid).startswith("sleep")])
        slow.send(CANCEL, wire.number(0))
        self.assertEqual(wire.finish(slow).result["outcome"], "cancelled")
        self.close(jar)

    def test_closing_kills_what_runs_and_the_runs_are_cancelled(self) -> None:
        jar = self.open()
        runs = [self.join(jar, self.script("trap '' TERM; echo up; sleep 1000"), sink="frames") for _ in range(3)]
        for run in runs:
            self.assertEqual([run.read().kind, run.read().kind], [STARTED, wire.OUTPUT])
        self.close(jar)
        self.assertEqual(census.marked(self.marker), [])
        for run in runs:
            self.assertEqual(wire.finish(run).result["outcome"], "cancelled")

    def test_a_run_ends_in_time_though_the_engine_is_stopped(self) -> None:
        jar = self.open()
        other = self.join(jar, self.script("echo up; exec sleep 1001"), sink="frames")
        run = self.join(
            jar, self.script("trap '' TERM; echo up; while :; do sleep 1000; done"), {"timeout": 1, "grace": 0.1}, sink="frames"
        )
        for channel in (other, run):
            self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, wire.OUTPUT])
        os.kill(self.engine.pid, signal.SIGSTOP)
        try:
            self.wait_for(lambda: len(census.living(self.engine.pid, "sleep", "sh")) == 1, "all but the other run has ended")
        finally:
            os.kill(self.engine.pid, signal.SIGCONT)
        result = wire.finish(run).result
        self.assertEqual((result["outcome"], result["signal"]), ("timeout", "SIGKILL"))
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")
        other.send(CANCEL, wire.number(0))
        self.assertEqual(wire.finish(other).result["outcome"], "cancelled")

    def test_a_channel_that_is_closed_closes_its_jar(self) -> None:
        jar = self.open()
        run = self.join(jar, self.script("echo up; sleep 1000"), sink="frames")
        self.assertEqual([run.read().kind, run.read().kind], [STARTED, wire.OUTPUT])
        jar.close()
        self.assertEqual(wire.finish(run).result["outcome"], "cancelled")
        self.wait_for(lambda: not census.marked(self.marker), "everything is gone")

    def test_a_run_whose_channel_is_closed_is_killed_and_the_jar_lives(self) -> None:
        jar = self.open()
        run = self.join(jar, self.script("trap '' TERM; echo up; sleep 1000"), {"grace": "1h"}, sink="frames")
        self.assertEqual([run.read().kind, run.read().kind], [STARTED, wire.OUTPUT])
        run.close()
        self.wait_for(lambda: not census.marked(self.marker), "the run is gone")
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")
        self.close(jar)

    def test_limits_of_a_run_are_its_own_and_never_above_the_jars(self) -> None:
        jar = self.open({"timeout": "1h", "memory": "256M"})
        outcome = self.run_in(jar, ["sleep", "1000"], {"timeout": "200ms"})
        self.assertEqual(outcome.result["outcome"], "timeout")
        started = self.run_in(jar, ["/bin/true"], {"memory": "1G"}).frames[0].json
        self.assertEqual(started["limits"]["memory"], 256 << 20)
        outcome = self.run_in(jar, ["/bin/true"], {"net": "host"})
        self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "policy"))
        self.assertIn("net", outcome.error["message"])
        self.assertEqual(self.run_in(jar, self.script("printf %s $A"), {"env": {"A": "b"}}).stdout, b"b")
        self.close(jar)

    def test_the_time_of_a_run_that_is_held_begins_with_go(self) -> None:
        jar = self.open({"timeout": "1h"})
        channel = self.join(jar, ["sh", "-c", "read line; sleep 1000"], {"timeout": "200ms"}, held=True)
        self.assertEqual(channel.read().kind, STARTED)
        channel.sock.settimeout(0.6)
        with self.assertRaises(socket.timeout):
            channel.read()
        channel.sock.settimeout(wire.BOUND)
        go = time.monotonic()
        result = wire.finish(channel.send(GO)).result
        self.assertEqual(result["outcome"], "timeout")
        # What it had waited before does not count: there is no more than what we waited since.
        self.assertLessEqual(result["usage"]["wall_ms"], (time.monotonic() - go) * 1000)
        # Before it has begun, too; and a second time it means nothing.
        outcome = wire.finish(self.join(jar, ["sleep", "1000"], {"timeout": "200ms"}, held=True).send(GO).send(GO))
        self.assertEqual(outcome.result["outcome"], "timeout")
        held = self.join(jar, ["sleep", "1000"], held=True)
        held.close()
        self.assertEqual(self.run_in(jar, ["true"]).result["outcome"], "exited")

    def test_files_in_and_out(self) -> None:
        jar = self.open()
        writer = self.descriptor(jar, "sub.txt", "write", mode=0o600)
        os.write(writer, b"from outside")
        self.assertEqual((self.work / "sub.txt").read_bytes(), b"from outside")
        self.assertEqual(self.run_in(jar, ["cat", "sub.txt"]).stdout, b"from outside")
        self.run_in(jar, self.script("mkdir d; echo inside > d/x; mkfifo f; ln -s /etc/passwd out; ln -s sub.txt in"))
        self.assertEqual(os.read(self.descriptor(jar, "d/x"), 100), b"inside\n")
        self.assertEqual(os.listdir(self.descriptor(jar, "d", "list")), ["x"])
        for path, access in (("f", "read"), ("f", "write"), ("d", "read"), ("absent", "read"), ("d/x", "list"), ("in", "write"), ("", "read")):
            outcome = self.file(jar, path, access)
            self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "files"), (path, access))
            self.assertTrue(outcome.error["errno"])
        self.close(jar)

    def test_requests_that_are_wrong_harm_nothing_else(self) -> None:
        jar = self.open()
        ours, theirs = socket.socketpair()
        jar.send(JOIN, b"{", [theirs.fileno()])
        theirs.close()
        self.assertEqual(wire.finish(Channel(ours)).error["stage"], "engine")
        self.assertEqual(self.file(jar, "x", "read", mode=99999).error["stage"], "engine")
        outcome = wire.finish(self.join(jar, ["/bin/true"], fds=[0]))
        self.assertEqual(outcome.error["stage"], "engine")
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")
        self.assertEqual(wire.finish(jar.send(JOIN, {"version": wire.VERSION, "argv": ["x"]})).error["stage"], "engine")

    def test_a_jar_that_cannot_be_made_says_why(self) -> None:
        outcome = wire.finish(self.engine.channel().send(OPEN, self.engine.request(keys={"ro": ["/no/such/place"]})))
        self.assertEqual(outcome.kinds, [FAILED])
        self.assertIn("/no/such/place", outcome.error["message"])
        outcome = wire.finish(self.engine.channel().send(OPEN, self.engine.request(["x"])))
        self.assertIn("'run'", outcome.error["message"])

    def test_a_host_that_leaves_takes_its_jars_along(self) -> None:
        jars = [self.open() for _ in range(3)]
        for jar in jars:
            run = self.join(jar, self.script("echo up; sleep 1000"), sink="frames")
            self.assertEqual([run.read().kind, run.read().kind], [STARTED, wire.OUTPUT])
        self.assertEqual(self.engine.close(), 0)
        self.assertEqual(census.marked(self.marker), [])


@on_ways(
    Way("meter", ("cgroup",), ("--rung", "namespace"), "namespace", ("userns",)),
    Way("metered_landlock", ("cgroup", "userns"), ("--rung", "landlock"), "landlock", ("landlock",)),
)
class LittleMemory(JarOnAChannel):
    """What Belljar itself has in a jar, a copy of it or two for each run, is not the commands'."""

    def test_many_runs_at_once_fit_into_little_memory(self) -> None:
        jar = self.open({"memory": "12M"})
        for _ in range(3):
            runs = [self.join(jar, self.script("exec sleep 0.5")) for _ in range(24)]
            for run in runs:
                result = wire.finish(run).result
                self.assertEqual((result["outcome"], result["exit_code"], result["limits_hit"]), ("exited", 0, []), result)
        self.close(jar)

    def test_a_run_that_takes_more_is_ended(self) -> None:
        jar = self.open({"memory": "12M"})
        lasting = self.join(jar, self.script("echo up; sleep 1000"), sink="frames")
        self.assertEqual([lasting.read().kind, lasting.read().kind], [STARTED, wire.OUTPUT])
        result = self.run_in(jar, self.script("head -c 20M /dev/zero | tail -c 20M | sleep 1000")).result
        self.assertEqual((result["outcome"], result["limits_hit"][0]["name"]), ("memory", "memory"), result)
        self.assertEqual(self.run_in(jar, self.script(": goes on")).result["exit_code"], 0)
        lasting.send(CANCEL, wire.number(0))
        self.assertEqual(wire.finish(lasting).result["outcome"], "cancelled")
        self.close(jar)


class ManyJars(JarOnAChannel):
    """Few descriptors and little memory each."""

    def measure(self) -> Tuple[int, int]:
        """Descriptors, and resident bytes of the engine's own."""
        with open(f"/proc/{self.engine.pid}/statm", encoding="ascii") as file:
            return self.engine.descriptors(), int(file.read().split()[1]) * 4096

    def test_fifty_jars_cost_little_and_leave_nothing(self) -> None:
        self.close(self.open())
        self.wait_for(lambda: self.engine.descriptors() < 12, "settled")
        before = self.measure()
        jars = [self.open({"workdir": None}) for _ in range(50)]
        opened = self.measure()
        self.assertLess((opened[0] - before[0]) / 50, 15, "descriptors of an idle jar")
        if "BELLJAR_TEST_SANITIZER" not in os.environ:
            self.assertLess((opened[1] - before[1]) / 50, 256 << 10, "memory of an idle jar")
        for number, jar in enumerate(jars):
            self.assertEqual(self.run_in(jar, ["echo", str(number)]).stdout, b"%d\n" % number)
        for jar in jars:
            self.close(jar)
        self.wait_for(lambda: self.engine.descriptors() <= before[0], "descriptors are closed")


if __name__ == "__main__":
    unittest.main()
