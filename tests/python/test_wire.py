# SPDX-License-Identifier: Apache-2.0
"""The package against an engine that does not keep to the protocol, and the frames by themselves. No jar is made."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import List, Sequence

import fake_engine
from belljar import _wire
from belljar._errors import EngineError

HERE = Path(__file__).resolve().parent


class Frames(unittest.TestCase):
    """Inbox puts frames together, however the bytes are cut."""

    def test_cuts_do_not_matter(self) -> None:
        frames = [(_wire.STARTED, b"{}"), (_wire.CLOSED, b""), (_wire.OUTPUT, b"\1" + bytes(7) + b"x" * 65536)]
        frames += [(_wire.RESULT, b"x" * 300_000), (_wire.CLOSED, b"")]
        data = b"".join(_wire.frame(kind, payload) for kind, payload in frames)
        source = random.Random(1)
        for most in (1, 7, 8, 9, 1000, 65536, len(data)):
            inbox, found, at = _wire.Inbox(), [], 0
            while at < len(data):
                step = source.randint(1, most) if most > 1 else 1
                found += inbox.feed(data[at : at + step])
                at += step
                if most == 1 and at > 70_000:
                    found += inbox.feed(data[at:])
                    break
            self.assertEqual(found, frames, most)

    def test_a_frame_beyond_its_bound_is_refused_before_it_is_read(self) -> None:
        for word in ("too_long", "too_long_output", "unknown_type"):
            with self.assertRaises(EngineError, msg=word):
                _wire.Inbox().feed(fake_engine.ANSWERS[word])


class FakeEngine(unittest.TestCase):
    """Each conversation in a process of its own, so that each has an engine of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="bjt-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.engine = Path(folder.name) / "engine"
        self.engine.write_text(f"#!/bin/sh\nexec {sys.executable} -S {HERE}/fake_engine.py\n")
        self.engine.chmod(self.engine.stat().st_mode | stat.S_IXUSR)
        self.record = Path(folder.name) / "request"

    def host(self, script: str) -> str:
        """Run a script with the fake engine; what it prints."""
        env = {**os.environ, "BELLJAR_BIN": str(self.engine), "BELLJAR_FAKE_RECORD": str(self.record)}
        env["PYTHONWARNINGS"] = "error::ResourceWarning"
        done = subprocess.run(
            [sys.executable, "-c", "import belljar\n" + script], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), script)
        return done.stdout

    def tell(self, words: Sequence[str], call: str) -> List[str]:
        """For each word, what the call gave: a line each."""
        script = (
            "import asyncio\n"
            "def spawn(word):\n    with belljar.spawn([word], capture=True) as process:\n        return process.wait()\n"
            f"for word in {list(words)!r}:\n"
            f"    try:\n        print({call}.stdout, end='')\n"
            "    except belljar.EngineError as error:\n        print('EngineError', error)\n"
        )
        return self.host(script).splitlines()

    CALLS = ("belljar.run([word])", "asyncio.run(belljar.run_async([word]))", "spawn(word)")

    def test_a_good_answer(self) -> None:
        for call in self.CALLS:
            self.assertEqual(self.tell(["good", "bytewise"], call), ["out", "out"], call)

    def test_a_callback_that_raises_when_all_was_said_already(self) -> None:
        script = (
            "def fail(stream, data):\n    raise KeyError(data)\n"
            "for word in ('good', 'loud', 'loud', 'good'):\n"
            "    try:\n        print(belljar.run([word], on_output=fail).stdout, end='')\n"
            "    except KeyError as error:\n        print('KeyError', error)\n"
        )
        self.assertEqual(self.host(script).splitlines(), ["out", "KeyError b'o'", "KeyError b'o'", "out"])

    def test_nonsense_is_an_engine_error(self) -> None:
        words = [word for word in fake_engine.ANSWERS if word not in ("good", "loud")]
        for call in self.CALLS:
            lines = self.tell(words, call)
            self.assertEqual(len(lines), len(words), lines)
            for word, line in zip(words, lines):
                self.assertTrue(line.startswith("EngineError "), f"{call} {word}: {line}")

    def test_a_dead_engine_is_an_engine_error_and_the_next_use_starts_another(self) -> None:
        for call in self.CALLS:
            first, second, third, fourth = self.tell(["die", "good", "exit", "good"], call)
            self.assertIn("signal 9", first)
            self.assertIn("exit status 7", third)
            self.assertEqual((second, fourth), ("out", "out"), call)

    def test_an_engine_that_hangs_does_not_keep_the_host(self) -> None:
        script = "import threading, os, time\nthreading.Thread(target=belljar.run, args=(['hang'],), daemon=True).start()\n"
        self.host(script + "time.sleep(0.5)\nos._exit(0)")

    def test_no_engine_is_an_engine_error(self) -> None:
        self.engine.unlink()
        self.assertIn("no engine to run", self.tell(["good"], self.CALLS[0])[0])
        self.engine.write_text("not a program")
        self.engine.chmod(0o755)
        self.assertIn("cannot start the engine", self.tell(["good"], self.CALLS[0])[0])

    def test_what_is_sent(self) -> None:
        script = (
            "import pathlib, os\nos.environ.clear()\nos.environ.update(BELLJAR_BIN=%r, BELLJAR_FAKE_RECORD=%r)\n"
            "os.environb[b'BYTES'] = b'a\\xffb'\n"
            "belljar.run([b'a\\xff', pathlib.Path('/b'), 'c\u00e9'], timeout=5, ro=[pathlib.Path('/data')], cwd='/tmp',"
            " policy={'extends': 'strict', 'memory': None}, env={'A': 'b'}, input='x')"
        ) % (str(self.engine), str(self.record))
        self.host(script)
        sent = json.loads(self.record.read_bytes())
        self.assertEqual(sent["version"], 2)
        self.assertEqual(sent["policy"], {"extends": "strict", "memory": None})
        self.assertEqual(sent["base"], os.getcwd())
        self.assertEqual(sent["cwd"], os.getcwd())
        self.assertEqual(sent["keys"], {"timeout": 5, "ro": ["/data"], "workdir": "/tmp", "env": {"A": "b"}})
        self.assertIn("BYTES=a\udcffb", sent["environ"])
        self.assertEqual(len(sent["environ"]), 3)
        self.assertEqual(sent["run"]["argv"], ["a\udcff", "/b", "c\u00e9"])
        self.assertEqual((sent["run"]["stdin"], sent["run"]["capture"]), ("descriptor", True))
        self.assertEqual([sent["run"].get(name) for name in ("sink", "shell", "pty", "merge", "started")], [None] + [False] * 4)
        self.assertTrue(self.record.read_bytes().isascii())

    def test_a_large_request_arrives_whole(self) -> None:
        self.host("belljar.run(['x'] + ['y' * 100_000] * 40)")
        self.assertEqual(len(json.loads(self.record.read_bytes())["run"]["argv"]), 41)
        script = "import asyncio\nasyncio.run(belljar.run_async(['x'] + ['y' * 100_000] * 40))"
        self.host(script)
        self.assertEqual(len(json.loads(self.record.read_bytes())["run"]["argv"]), 41)
        self.host("try: belljar.run(['y' * 6_000_000])\nexcept OSError as error: assert error.errno == 7")


if __name__ == "__main__":
    unittest.main()
