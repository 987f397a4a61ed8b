# SPDX-License-Identifier: Apache-2.0
"""The base of every test: its own directories, its own environment, and nothing left behind."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple, Type

from harness import census, host, paths, runner, trees
from harness.bounds import BOUND
from harness.result import Event, Result
from harness.runner import ANY, WAYS, Arg, Completed, StatusPipe, Way


class JarCase(unittest.TestCase):
    """One test with a fresh workdir (the current directory of belljar) and an empty home beside it.

    `way` says how belljar is made to isolate; `every_way` makes one class for each.
    """

    way: Way = ANY
    maxDiff = 4000

    def setUp(self) -> None:
        host.need(*self.way.needs)
        census.adopt_orphans()
        self.base = Path(tempfile.mkdtemp(prefix="bjt-", dir="/tmp"))
        self.addCleanup(trees.remove, self.base)
        self.base.chmod(0o755)
        self.work = self.directory("work")
        self.home = self.directory("home")
        self.env: Dict[str, str] = runner.clean_env(self.home)
        self.marker = "bjt" + secrets.token_hex(12)
        # Added last, so it runs first: the census comes before the directories go.
        self.addCleanup(self.check_nothing_left)

    def directory(self, name: str) -> Path:
        """A new directory beside the workdir, mode 755."""
        path = self.base / name
        path.mkdir(parents=True)
        path.chmod(0o755)
        return path

    def check_nothing_left(self) -> None:
        """Fail if any process of the test still lives; end it."""
        left = census.wait_until_none(marker=self.marker)
        if left:
            census.kill_all()
            for pid in census.marked(self.marker):
                try:
                    os.kill(pid, 9)
                except OSError:
                    pass
        self.assertEqual(left, [], "processes are left")

    def tool(self, name: str) -> str:
        """A helper program, copied into the workdir so that every jar of this test can run it."""
        path = self.work / "tools" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            shutil.copy(paths.tool(name), path)
            path.chmod(0o755)
        return str(path)

    def _options(self, options: Dict[str, Any]) -> Dict[str, Any]:
        return {"way": self.way, "cwd": self.work, "env": self.env, **options}

    def jar(self, *args: Arg, **options: Any) -> Completed:
        """`belljar run ARGS...` to its end, output passed through."""
        return runner.run(args, **self._options(options))

    def json(self, *args: Arg, **options: Any) -> Result:
        """`belljar run --json ARGS...`: the checked result."""
        result = runner.run_json(args, **self._options(options))
        self.check_rung(result)
        return result

    def status(self, *args: Arg, **options: Any) -> Tuple[Completed, Result]:
        """`belljar run --status-fd N ARGS...`: what was passed through, and the checked result."""
        done, result = runner.run_status(args, **self._options(options))
        self.check_rung(result)
        return done, result

    def events(self, *args: Arg, **options: Any) -> List[Event]:
        """`belljar run --events ARGS...`: the checked events."""
        events = runner.run_events(args, **self._options(options))
        self.check_rung(events[-1]["result"])
        return events

    def check_rung(self, result: Result) -> None:
        """A test on a way must really have run that way."""
        if self.way.rung is not None and result["outcome"] != "failed":
            self.assertEqual(result["enforced"]["rung"], self.way.rung)

    def start(self, *args: Arg, **options: Any) -> "subprocess.Popen[bytes]":
        """Start `belljar run ARGS...` and return at once."""
        process = runner.start(args, **self._options(options))
        self.addCleanup(self._stop, process)
        return process

    def start_status(self, *args: Arg, **options: Any) -> "Tuple[subprocess.Popen[bytes], StatusPipe]":
        """Start `belljar run --status-fd N ARGS...`."""
        status = StatusPipe()
        process = self.start(*status.option, *args, pass_fds=(status.writer,), **options)
        status.started()
        return process, status

    @staticmethod
    def _stop(process: "subprocess.Popen[bytes]") -> None:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()
        process.wait(BOUND)

    def kill_at_moments(self, count: int, said: bytes, *args: Arg, **options: Any) -> None:
        """Kill belljar at many moments of as many runs, half of them after the command has said something.

        The command must have been met in both states: not there yet, and running.
        """
        early = 0
        for turn in range(count):
            process = self.start(*args, **options)
            assert process.stdout
            heard = runner.read_until(process.stdout, said) if turn % 2 else b""
            time.sleep(random.random() * 0.02 if turn % 4 > 1 else 0)
            process.kill()
            # Whoever is left holds the streams.
            heard += process.communicate(timeout=BOUND)[0]
            early += said not in heard
        self.assertGreater(early, 0, "the command ran every time before belljar was killed")

    def belljar(self, *args: Arg, **options: Any) -> Completed:
        """`belljar ARGS...`, any command."""
        return runner.run(args, **self._options({"verb": "", **options}))

    def sh(self, script: str) -> List[str]:
        """The words that run a script in the jar's shell, with the marker in its arguments."""
        return ["--", "/bin/sh", "-c", script, self.marker]

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = BOUND) -> None:
        """Poll until the condition holds; fail after the bound."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"did not happen within {seconds} s: {what}")
            time.sleep(0.005)

    def assert_failed(self, done: Completed, *words: str) -> None:
        """Exit status 125 with a message on stderr that holds the words, and nothing on stdout."""
        self.assertEqual((done.status, done.stdout), (125, b""), done)
        message = done.stderr.decode(errors="replace")
        self.assertNotEqual(message.strip(), "", "no message")
        for word in words:
            self.assertIn(word.lower(), message.lower())


def on_ways(*ways: Way) -> Callable[[Type[JarCase]], Tuple[Type[JarCase], ...]]:
    """Replace a test class by one for each way, named with the way: EndOfRun becomes EndOfRunOnNamespace, ..."""

    def make(base: Type[JarCase]) -> Tuple[Type[JarCase], ...]:
        module = sys.modules[base.__module__]
        made = []
        for way in ways:
            name = f"{base.__name__}On{way.name.capitalize()}"
            made.append(type(name, (base,), {"way": way, "__module__": base.__module__, "__doc__": base.__doc__}))
            setattr(module, name, made[-1])
        return tuple(made)

    return make


every_way = on_ways(*WAYS)
