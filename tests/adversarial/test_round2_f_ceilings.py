# SPDX-License-Identifier: Apache-2.0
"""What the owner set for a jar holds for each run in it, whatever the run asks for and through whichever door."""

from __future__ import annotations

import unittest
from typing import Any, Dict

from harness import wire
from harness.case import every_way
from harness.engine_case import KeptJarCase
from harness.wire import RUN, STARTED

SECOND = 1000
# Each limit as its owner gave it, what a run asks for instead, and the members of `limits` that then hold.
LIMITS: Dict[str, Any] = {
    "timeout": ("5s", "1h", {"timeout_ms": 5 * SECOND}),
    "grace": ("200ms", "1h", {"grace_ms": 200}),
    "cpu_time": ("4s", "1h", {"cpu_time_ms": 4 * SECOND}),
    "memory": ("256M", "8G", {"memory": 256 << 20}),
    "pids": (60, 4000, {"pids": 60}),
    "disk": ("64M", "8G", {"disk": 64 << 20}),
    "file_size": ("1M", "8G", {"file_size": 1 << 20}),
    "fds": (32, 4000, {"fds": 32}),
    "core": (0, "1M", {"core": 0}),
    "output": ("1K", "1M", {"output": 1024}),
}
OWNERS = {name: given for name, (given, _, _) in LIMITS.items()}
HELD = {name: number for _, _, numbers in LIMITS.values() for name, number in numbers.items()}
HIGHER = {name: asked for name, (_, asked, _) in LIMITS.items()}
NONE = {name: None for name in LIMITS if name != "grace"}
KINDS: Dict[str, Dict[str, Any]] = {
    "run": {},
    "spawn": {"open_ended": True, "capture": False, "sink": "frames"},
    "detached": {"detach": True},
    "terminal": {"pty": True},
}


@every_way
class Ceilings(KeptJarCase):
    """At the engine, to which all doors lead."""

    def held(self, jar: wire.Channel, keys: Dict[str, Any], **run: Any) -> Dict[str, Any]:
        """The limits of a run, as its start says."""
        channel = self.join(jar, ["true"], keys, **run)
        frame = channel.read()
        self.assertEqual(frame.kind, STARTED, frame)
        wire.finish(channel)
        limits = frame.json["limits"]
        return {name: limits.get(name) for name in HELD}

    def test_no_kind_of_run_has_more_than_its_jar(self) -> None:
        jar = self.open(OWNERS)
        for kind, run in KINDS.items():
            for asked in ({}, HIGHER, NONE):
                with self.subTest(kind=kind, asked=asked):
                    self.assertEqual(self.held(jar, asked, **run), HELD)

    def test_a_run_may_have_less(self) -> None:
        jar = self.open(OWNERS)
        held = self.held(jar, {"timeout": "1s", "pids": 30, "output": 10, "memory": "128M", "fds": 16})
        self.assertEqual(held, {**HELD, "timeout_ms": SECOND, "pids": 30, "output": 10, "memory": 128 << 20, "fds": 16})

    def test_a_default_is_no_ceiling_but_what_holds_the_whole_jar_is(self) -> None:
        jar = self.open()
        held = self.held(jar, {**HIGHER, "pids": 4000})
        self.assertEqual((held["timeout_ms"], held["output"], held["fds"]), (3600 * SECOND, 1 << 20, 4000))
        self.assertEqual((held["memory"], held["pids"]), (512 << 20, 1024))
        jar = self.open({"timeout": None, "memory": None})
        held = self.held(jar, {"timeout": None, "memory": "8G"})
        self.assertEqual((held["timeout_ms"], held["memory"]), (None, 8 << 30))

    def test_a_preset_is_its_owners_word(self) -> None:
        if self.way.name != "namespace":
            raise unittest.SkipTest("the preset asks for the rung namespace")
        jar = self.open(policy="strict")
        held = self.held(jar, NONE)
        self.assertEqual((held["timeout_ms"], held["memory"], held["pids"], held["output"]), (10 * SECOND, 256 << 20, 64, 100 << 10))

    def test_output_of_each_stream_and_of_both_together(self) -> None:
        self.open()
        for owner, asked, held in (
            ("1K", {"stdout": "1M", "stderr": "1M"}, {"stdout": 512, "stderr": 512}),
            ("1K", {"stdout": 100, "stderr": "1M"}, {"stdout": 100, "stderr": 924}),
            ("1K", {"stdout": 100, "stderr": 100}, {"stdout": 100, "stderr": 100}),
            ({"stdout": "1K", "stderr": 100}, "1M", {"stdout": 1024, "stderr": 100}),
            ({"stdout": "1K", "stderr": 100}, 500, {"stdout": 400, "stderr": 100}),
            ({"stdout": "1K", "stderr": 100}, None, {"stdout": 1024, "stderr": 100}),
            ({"stdout": "1K", "stderr": 100}, {"stdout": 10, "stderr": "1M"}, {"stdout": 10, "stderr": 100}),
        ):
            with self.subTest(owner=owner, asked=asked):
                jar = self.open({"output": owner})
                self.assertEqual(self.held(jar, {"output": asked})["output"], held)

    def test_the_time_ends_what_asks_for_none(self) -> None:
        jar = self.open({"timeout": "300ms", "grace": "100ms"})
        for kind, run in KINDS.items():
            with self.subTest(kind=kind):
                result = self.run_in(jar, self.script("trap '' TERM; sleep 1000; sleep 1000"), {"timeout": None, "grace": "1h"}, **run).result
                self.assertEqual((result["outcome"], result["limits_hit"][0]["limit"]), ("timeout", 300))

    def test_a_timeout_brings_its_grace(self) -> None:
        jar = self.open({"timeout": "5s"})
        self.assertEqual(self.held(jar, {"grace": "1h"}), {**self.held(jar, {}), "grace_ms": 3 * SECOND})

    def test_a_run_alone_may_have_an_owner_too(self) -> None:
        request = self.engine.request(None, OWNERS, top={"run": {"argv": ["true"], "keys": HIGHER}})
        channel = self.engine.channel().send(RUN, request)
        frame = channel.read()
        self.assertEqual({name: frame.json["limits"].get(name) for name in HELD}, HELD)
        wire.finish(channel)
        request = self.engine.request(None, {}, top={"run": {"argv": ["true"], "keys": {"net": "host"}}})
        outcome = wire.finish(self.engine.channel().send(RUN, request))
        self.assertIn("fixed for the jar", outcome.error["message"])

    def test_the_sentence_says_whose_limit_it_was(self) -> None:
        jar = self.open({"timeout": "1s"})
        for asked, words in (({"timeout": "200ms"}, "this call allowed"), ({"timeout": "1h"}, "Trying again will not help")):
            result = self.run_in(jar, ["sleep", "1000"], asked).result
            self.assertEqual(result["outcome"], "timeout")
            self.assertIn(words, result["denied"][0]["sentence"])

    def test_of_a_run_with_cells_the_client_counts_time_and_output(self) -> None:
        jar = self.open(OWNERS)
        held = self.held(jar, NONE, cells=True, open_ended=True, capture=False)
        self.assertEqual(held, {**HELD, "timeout_ms": None, "output": None})


if __name__ == "__main__":
    unittest.main()
