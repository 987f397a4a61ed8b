# SPDX-License-Identifier: Apache-2.0
"""A Python program that reads what a command writes, in pieces and in lines. Arguments: rounds, producer, mebibytes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List

from bench.turns import Way, take_turns

PIECE_BYTES = 64 << 10


def pieces(stream: Any) -> int:
    """All of it, as it comes."""
    return sum(len(piece) for piece in iter(lambda: stream.read1(PIECE_BYTES), b""))


def lines(stream: Any) -> int:
    """All of it, line by line."""
    return sum(len(line) for line in iter(stream.readline, b""))


async def read_async(command: List[str]) -> int:
    """All of it, in an event loop."""
    import belljar

    async with await belljar.spawn_async(command) as process:
        assert process.stdout
        count = 0
        while True:
            piece = await process.stdout.read(PIECE_BYTES)
            count += len(piece)
            if not piece:
                await process.wait()
                return count


def measure(rounds: int, command: List[str], count: int) -> Dict[str, Dict[str, List[float]]]:
    """Megabytes per second of each way."""
    import belljar

    def rate(read: Callable[[], int]) -> Callable[[], float]:
        def run() -> float:
            begin = time.monotonic()
            if read() != count:
                raise RuntimeError("not all of it came")
            return count / 1e6 / (time.monotonic() - begin)

        return run

    def popen(read: Callable[[Any], int]) -> int:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            return read(process.stdout)

    def spawn(read: Callable[[Any], int], **options: Any) -> int:
        with belljar.spawn(command, **options) as process:
            count = read(process.stdout)
            process.wait()
            return count

    def way(name: str, read: Callable[[], int]) -> Way:
        return Way(name, rate(read), has_own_value=True)

    secret = {"redact": ["correct-horse-battery"]}
    return {
        "pieces": take_turns(
            [
                way("Popen", lambda: popen(pieces)),
                way("spawn", lambda: spawn(pieces)),
                way("spawn, redact", lambda: spawn(pieces, **secret)),
                way("spawn_async", lambda: asyncio.run(read_async(command))),
            ],
            rounds,
        ),
        "lines": take_turns([way("Popen", lambda: popen(lines)), way("spawn", lambda: spawn(lines))], rounds),
    }


def main() -> None:
    """Print the values as JSON."""
    arguments = json.loads(sys.argv[1])
    command = [arguments["producer"], str(arguments["mebibytes"])]
    json.dump(measure(arguments["rounds"], command, arguments["mebibytes"] << 20), sys.stdout)


if __name__ == "__main__":
    main()
