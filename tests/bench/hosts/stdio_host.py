# SPDX-License-Identifier: Apache-2.0
"""A Python program that speaks to the engine through both of its doors, frame by frame. Arguments: rounds, producer, mebibytes."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable, Dict, List

from bench.turns import Way, take_turns
from harness import doors, wire

VERSION = doors.stdio_client.VERSION
IDLE_SECONDS = 0.02
RATE_PART = 0.1


def request(**more: Any) -> Dict[str, Any]:
    """What RUN and OPEN have."""
    environ = [f"{name}={value}" for name, value in os.environ.items()]
    return {"version": VERSION, "cwd": os.getcwd(), "environ": environ, **more}


def finish(line: doors.Line, count: int = 0) -> None:
    """Read it to its end, and check that it went well."""
    result: Any = None
    for kind, payload in iter(line.read, None):
        if kind == wire.OUTPUT:
            count -= len(payload) - 8
        elif kind == wire.RESULT:
            result = json.loads(payload)
    if count or not result or result["exit_code"] != 0:
        raise RuntimeError(f"it did not go well: {result}")


def measure(rounds: int, command: List[str], count: int) -> Dict[str, Dict[str, List[float]]]:
    """Microseconds for /bin/true, in a jar of its own and in one that is kept; megabytes per second of output."""
    env = dict(os.environ)
    both = {"sockets": doors.SocketDoor(env, os.getcwd()), "stdio": doors.StreamDoor(env, os.getcwd())}
    jars = {name: door.begin(wire.OPEN, request()) for name, door in both.items()}
    for jar in jars.values():
        jar.read()
    true = {"argv": ["/bin/true"], "started": False}
    much = {"argv": command, "started": False, "sink": "frames", "capture": False}

    def alone(door: doors.Door) -> Callable[[], None]:
        return lambda: finish(door.begin(wire.RUN, request(run=true)))

    def kept(jar: doors.Line) -> Callable[[], None]:
        return lambda: finish(jar.ask(wire.JOIN, {"version": VERSION, **true}))

    def rate(door: doors.Door) -> Callable[[], float]:
        def run() -> float:
            begin = time.monotonic()
            finish(door.begin(wire.RUN, request(run=much, keys={"output": None})), count)
            return count / 1e6 / (time.monotonic() - begin)

        return run

    found = {
        "alone": take_turns([Way(name, alone(door)) for name, door in both.items()], rounds, IDLE_SECONDS),
        "kept": take_turns([Way(name, kept(jar)) for name, jar in jars.items()], rounds),
        "output": take_turns([Way(name, rate(door), has_own_value=True) for name, door in both.items()], max(round(rounds * RATE_PART), 1)),
    }
    for door in both.values():
        door.leave()
    return found


def main() -> None:
    """Print the values as JSON."""
    arguments = json.loads(sys.argv[1])
    command = [arguments["producer"], str(arguments["mebibytes"])]
    json.dump(measure(arguments["rounds"], command, arguments["mebibytes"] << 20), sys.stdout)


if __name__ == "__main__":
    main()
