# SPDX-License-Identifier: Apache-2.0
"""A Python program that keeps an interpreter and a shell. Arguments: rounds, burst.

The answer has three sets of values: cells back to back, commands back to back, and starts after a moment of idleness.
"""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from typing import Any, Callable, Dict, List

from bench.hosts.call_host import IDLE_SECONDS, repeated
from bench.turns import Way, take_turns

BARE_LOOP = """
import sys
space = {}
for line in sys.stdin:
    exec(compile(line, "<line>", "exec"), space)
    print("done", flush=True)
"""


class Echo:
    """A process that answers each line with one, through bare pipes."""

    def __init__(self, command: List[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def ask(self, line: bytes) -> None:
        """There and back."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(line)
        os.read(self._process.stdout.fileno(), 100)

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def way(name: str, call: Callable[[], Any], count: int) -> Way:
    """Back to back."""
    return Way(name, repeated(call, count), has_own_value=True)


def start(belljar: Any) -> float:
    """Microseconds until an interpreter is there; its end is not counted."""
    made: List[Any] = []
    value = repeated(lambda: made.append(belljar.Interpreter()), 1)()
    for interpreter in made:
        interpreter.close()
    return value


def measure(rounds: int, burst: int) -> Dict[str, Dict[str, List[float]]]:
    """All sets of values."""
    import belljar

    pipe, python, bare = Echo(["cat"]), Echo([sys.executable, "-c", BARE_LOOP]), Echo(["/bin/sh"])
    with belljar.Interpreter() as it, belljar.Jar() as jar, jar.shell() as shell, belljar.Pool() as pool:
        cells = [
            way("pipe", lambda: pipe.ask(b"x\n"), burst),
            way("bare Python loop", lambda: python.ask(b"x = 1\n"), burst),
            way("belljar cell", lambda: it.run("x = 1"), burst),
            way("belljar cell with value and output", lambda: it.run("print(x)\nx"), burst),
        ]
        commands = [
            way("bare sh", lambda: bare.ask(b"echo\n"), burst),
            way("belljar shell", lambda: shell.run("echo"), burst),
            way("belljar kept jar", lambda: jar.run(["/bin/sh", "-c", "echo"]), max(burst // 20, 1)),
        ]
        starts = [
            way("belljar call", lambda: pool.call(operator.add, 1, 2), 1),
            Way("belljar Interpreter()", lambda: start(belljar), has_own_value=True),
            Way("fork()", lambda: it.fork().close()),
        ]
        values = {
            "cells": take_turns(cells, rounds),
            "commands": take_turns(commands, rounds),
            "starts": take_turns(starts, rounds, IDLE_SECONDS),
        }
    for echo in (pipe, python, bare):
        echo.close()
    return values


if __name__ == "__main__":
    json.dump(measure(**json.loads(sys.argv[1])), sys.stdout)
