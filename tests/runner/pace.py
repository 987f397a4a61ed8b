# SPDX-License-Identifier: Apache-2.0
"""How fast the machine is just now, and a clock that goes by it.

A bound against waiting for ever must not measure the machine. So bounds are seconds of this clock: one passes in a second on a
quiet machine of the usual speed, and in ten where a processor is ten times slower, or has ten programs to run.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

# What the piece of work below takes of a processor of the usual speed.
USUAL_SECONDS = 0.02
WORK_TURNS = 1_000_000
LOOK_EVERY_SECONDS = 10.0


def slowness_of_processor() -> float:
    """How many times longer than usual a piece of work takes of the processor's own time."""
    start = time.thread_time()
    for _ in range(WORK_TURNS):
        pass
    return (time.thread_time() - start) / USUAL_SECONDS


def programs_for_each_processor() -> float:
    """How many programs want to run, or wait for a disk, for each processor that may run ours."""
    try:
        return os.getloadavg()[0] / len(os.sched_getaffinity(0))
    except OSError:
        return 1.0


def measure() -> tuple[float, float]:
    """How many times slower than a quiet machine of the usual speed this one is, and what its processors have to do with it; never
    less than 1."""
    processor = max(1.0, slowness_of_processor())
    return processor * max(1.0, programs_for_each_processor()), processor


class Pace:
    """The clock, and what was measured last. Until it is started a second is a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, look: Callable[[], tuple[float, float]] = measure) -> None:
        self._clock, self._look = clock, look
        self._lock = threading.Lock()
        self._at, self._passed = clock(), 0.0
        self.slowness = 1.0
        self.processor_slowness = 1.0  # of work that is counted in time of processors: others do not slow that down

    def look(self) -> None:
        """Measure. What has passed since the last time counts by the slower of the two measurements."""
        slowness, self.processor_slowness = self._look()
        with self._lock:
            now = self._clock()
            self._passed += (now - self._at) / max(slowness, self.slowness)
            self._at, self.slowness = now, slowness

    def now(self) -> float:
        """Seconds of a quiet machine since the beginning."""
        with self._lock:
            return self._passed + (self._clock() - self._at) / self.slowness

    def start(self) -> None:
        """Measure now, and from now on for as long as the program lives."""

        def keep_looking() -> None:
            while True:
                time.sleep(LOOK_EVERY_SECONDS)
                self.look()

        self.look()
        threading.Thread(target=keep_looking, daemon=True).start()


PACE = Pace()
