# SPDX-License-Identifier: Apache-2.0
"""`belljar engine`: every frame, every option, every error, and what ends what."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
from typing import Any, List

from harness import census, paths, runner, wire
from harness.case import JarCase, every_way
from harness.result import check_result
from harness.wire import CANCEL, FAILED, KEPT, OUTPUT, RESIZE, RESULT, RUN, SIGNAL, STARTED


class EngineCase(JarCase):
    """A test with an engine of its own."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = wire.Engine(self.env, self.work, self.way)
        self.addCleanup(self.close_engine)

    def close_engine(self) -> None:
        """Every test ends as a host does that leaves: the engine leaves too, with status 0."""
        if self.engine.status is None:
            self.assertEqual(self.engine.close(), 0)

    def script(self, text: str) -> List[str]:
        """A script with the marker in its arguments."""
        return ["/bin/sh", "-c", text, self.marker]

    def assert_exited(self, outcome: wire.Outcome, code: int = 0) -> None:
        """The run ended by itself."""
        self.assertEqual((outcome.result["outcome"], outcome.result["exit_code"]), ("exited", code), outcome.frames)


@every_way
class Runs(EngineCase):
    """A run in a jar of its own."""

    def test_frames_come_in_order_and_the_result_is_the_contracts(self) -> None:
        outcome = self.engine.run(self.script("echo out; echo err >&2; exit 3"))
        self.assertEqual(outcome.kinds, [STARTED, KEPT, KEPT, RESULT])
        self.assert_exited(outcome, 3)
        result = outcome.result
        self.assertEqual((outcome.stdout, outcome.stderr), (b"out\n", b"err\n"))
        self.assertEqual((result["stdout"], result["stderr"], result["stdout_bytes"]), (None, None, 4))
        check_result(result)
        started = outcome.frames[0].json
        self.assertEqual(started["argv"], self.script("echo out; echo err >&2; exit 3"))
        self.assertEqual(started["workdir"], result["workdir"])
        self.assertEqual(started["limits"]["timeout_ms"], 30000)
        self.assertEqual(started["limits"]["memory"], 512 << 20)

    def test_a_shell_string_runs(self) -> None:
        outcome = self.engine.run(["echo $((1 + 2))"], shell=True)
        self.assertEqual(outcome.stdout, b"3\n")

    def test_one_that_is_not_found_fails_as_a_result(self) -> None:
        outcome = self.engine.run(["/no/such/program"])
        self.assertEqual(outcome.kinds, [RESULT])
        self.assertEqual((outcome.result["outcome"], outcome.result["error"]["stage"]), ("failed", "exec"))

    def test_output_comes_as_it_is_written_and_in_whole_characters(self) -> None:
        channel = self.engine.start(self.script(r"printf 'a\303'; read x; printf '\244b'"), sink="frames", stdin="descriptor",
                                    fds=[self.pipe_reader()])
        self.assertEqual(channel.read().kind, STARTED)
        self.assertEqual(channel.read().payload[8:], b"a")
        os.write(self.writer, b"go\n")
        outcome = wire.finish(channel)
        self.assertEqual(outcome.streamed(), "äb".encode())
        self.assertEqual(outcome.stdout, "aäb".encode())

    def pipe_reader(self) -> int:
        """A pipe for standard input; its writing end is self.writer."""
        reader, self.writer = os.pipe()
        self.addCleanup(os.close, self.writer)
        self.addCleanup(os.close, reader)
        return reader

    def test_cancel_ends_it_with_the_signal_and_after_the_grace_with_another(self) -> None:
        channel = self.engine.start(self.script("trap 'echo term; exit 5' TERM; echo up; while :; do sleep 0.05; done"), sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.send(CANCEL, wire.number(0))
        outcome = wire.finish(channel)
        self.assertEqual(outcome.result["outcome"], "cancelled")
        self.assertIn(b"term", outcome.streamed())
        channel = self.engine.start(self.script("trap '' TERM; echo up; while :; do sleep 0.05; done"), {"grace": "100ms"}, sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.send(CANCEL, wire.number(signal.SIGTERM))
        result = wire.finish(channel).result
        self.assertEqual((result["outcome"], result["signal"]), ("cancelled", "SIGKILL"))

    def test_a_second_cancel_waits_for_no_grace(self) -> None:
        channel = self.engine.start(self.script("trap '' TERM; echo up; while :; do sleep 0.05; done"), {"grace": "1h"}, sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.send(CANCEL, wire.number(0)).send(CANCEL, wire.number(0))
        self.assertEqual(wire.finish(channel).result["outcome"], "cancelled")

    def test_a_closed_channel_kills_the_run_at_once(self) -> None:
        channel = self.engine.start(self.script("trap '' TERM; echo up; while :; do sleep 0.05; done"), {"grace": "1h"}, sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.close()
        self.wait_for(lambda: not census.marked(self.marker), "the run is gone")

    def test_a_host_that_leaves_takes_everything_along(self) -> None:
        channels = [self.engine.start(self.script("trap '' TERM; (setsid sleep 1000 &); echo up; sleep 1000"), sink="frames") for _ in range(5)]
        for channel in channels:
            self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        self.assertEqual(self.engine.close(), 0)
        self.assertEqual(census.marked(self.marker), [])

    def test_an_engine_that_is_killed_takes_everything_along(self) -> None:
        channels = [self.engine.start(self.script("trap '' TERM; (setsid sleep 1000 &); echo up; sleep 1000"), sink="frames") for _ in range(3)]
        for channel in channels:
            self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        os.kill(self.engine.pid, signal.SIGKILL)
        self.engine.wait()
        self.wait_for(lambda: not census.marked(self.marker), "everything is gone")
        self.assertIsNone(channels[0].read())


class Requests(EngineCase):
    """What is malformed ends its channel, and nothing else."""

    def test_what_is_no_request_is_refused_and_says_why(self) -> None:
        good = self.engine.request(["/bin/true"])
        bad = {
            "not JSON": (b"{", "ends"),
            "no object": (b"[]", "object"),
            "another version": ({**good, "version": 2}, "version 1"),
            "no version": ({"run": good["run"]}, "version"),
            "an unknown key": ({**good, "extra": 1}, "'extra'"),
            "an unknown key of run": ({**good, "run": {"argv": ["x"], "sinc": "none"}}, "'sinc'"),
            "no command": ({**good, "run": {"argv": []}}, "argv"),
            "no run": ({key: value for key, value in good.items() if key != "run"}, "argv"),
            "another type": ({**good, "run": {"argv": "true"}}, "argv"),
            "a bad word": ({**good, "run": {"argv": ["x"], "sink": "drain"}}, "drain"),
            "too many descriptors": ({**good, "run": {"argv": ["x"], "extra": 65}}, "64"),
            "a NUL": (b'{"version":1,"run":{"argv":["a\\u0000b"]}}', "NUL"),
            "two words for a shell": ({**good, "run": {"argv": ["a", "b"], "shell": True}}, "shell"),
            "a key twice": (b'{"version":1,"version":1}', "version"),
        }
        for name, (payload, word) in bad.items():
            with self.subTest(name):
                outcome = wire.finish(self.engine.channel().send(RUN, payload))
                self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "engine"))
                self.assertIn(word, outcome.error["message"])
        self.assert_exited(self.engine.run(["/bin/true"]))

    def test_a_policy_that_is_wrong_names_the_key_and_nothing_runs(self) -> None:
        cases: Any = (({"timeout": "5x"}, "timeout '5x'"), ({"timout": 5}, "did you mean 'timeout'"), ({"extends": "agent"}, "extends"))
        for keys, words in cases:
            outcome = self.engine.run(["/bin/true"], keys)
            self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "policy"))
            self.assertIn(words, outcome.error["message"])
            self.assertNotIn(":1:", outcome.error["message"])
        for policy, words in (("nope", "preset"), ({"tmeout": 1}, "timeout"), (5, "preset"), ("/no/such.json", "cannot open")):
            outcome = self.engine.run(["/bin/true"], top={"policy": policy})
            self.assertEqual(outcome.error["stage"], "policy")
            self.assertIn(words, outcome.error["message"])

    def test_frames_that_are_no_frames(self) -> None:
        good = wire.frame(RUN, self.engine.request(["/bin/true"]))
        bad = {
            "too long": struct.pack("<IB3x", (5 << 20) + 1, RUN),
            "not zero": good[:5] + b"\1\0\0" + good[8:],
            "an unknown type": wire.frame(200, {}),
            "one of the engine's own": wire.frame(STARTED, {}),
            "a signal without a run": wire.frame(SIGNAL, wire.number(2)),
        }
        for name, data in bad.items():
            with self.subTest(name):
                outcome = wire.finish(self.engine.channel().send_raw(data))
                self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "engine"))
        self.assert_exited(self.engine.run(["/bin/true"]))


if __name__ == "__main__":
    unittest.main()
