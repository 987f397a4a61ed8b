# SPDX-License-Identifier: Apache-2.0
"""A host that writes and reads files of a jar."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable, Dict, List

from bench.turns import Way, take_turns

SMALL_BYTES = 1000


def host_write(path: str, data: bytes) -> None:
    """As a program does."""
    with open(path, "wb") as file:
        file.write(data)


def host_read(path: str) -> bytes:
    """Likewise."""
    with open(path, "rb") as file:
        return file.read()


def small(jar: Any, path: str, rounds: int) -> Dict[str, List[float]]:
    """Microseconds."""
    data = os.urandom(SMALL_BYTES)
    host_write(path, data)
    jar.write_file("small", data)

    def make_and_remove() -> None:
        jar.mkdir("folder")
        jar.remove("folder")

    return take_turns(
        [
            Way("host write", lambda: host_write(path, data)),
            Way("host read", lambda: host_read(path)),
            Way("jar write", lambda: jar.write_file("small", data)),
            Way("jar read", lambda: jar.read_file("small")),
            Way("jar stat", lambda: jar.stat("small")),
            Way("jar mkdir, remove", make_and_remove),
            Way("jar cat", lambda: jar.run(["cat", "small"]), 10),
        ],
        rounds,
    )


def large(jar: Any, path: str, rounds: int, count: int) -> Dict[str, List[float]]:
    """Megabytes per second."""
    data = os.urandom(count)
    host_write(path, data)
    jar.write_file("large", data)

    def rate(work: Callable[[], Any]) -> Callable[[], float]:
        def run() -> float:
            begin = time.monotonic()
            work()
            return count / 1e6 / (time.monotonic() - begin)

        return run

    return take_turns(
        [
            Way("host write", rate(lambda: host_write(path, data)), has_own_value=True),
            Way("host read", rate(lambda: host_read(path)), has_own_value=True),
            Way("jar write", rate(lambda: jar.write_file("large", data)), has_own_value=True),
            Way("jar read", rate(lambda: jar.read_file("large", max_bytes=count)), has_own_value=True),
        ],
        rounds,
    )


def main() -> None:
    """Print the values as JSON."""
    import belljar

    arguments = json.loads(sys.argv[1])
    path = "/dev/shm/bjt-bench-file" if os.path.isdir("/dev/shm") else os.path.join(arguments["folder"], "file")
    try:
        with belljar.Jar(workdir=None, memory="1G") as jar:
            found = {
                "small": small(jar, path, arguments["rounds"]),
                "large": large(jar, path, arguments["large_rounds"], arguments["large"]),
            }
    finally:
        os.unlink(path)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
