# SPDX-License-Identifier: Apache-2.0
"""What the whole machine's processors did meanwhile: the only account that has what the kernel tears down later."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Callable, Tuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# user, nice, system, irq, softirq of the first line of /proc/stat
BUSY_FIELDS = (1, 2, 3, 6, 7)
SETTLE_SECONDS = 0.3


def busy_seconds() -> float:
    """Since the machine started, of all processors."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()
    return sum(int(words[field]) for field in BUSY_FIELDS) / TICKS_PER_SECOND


def background(seconds: float) -> float:
    """Busy seconds in each second in which nothing is measured."""
    before, begin = busy_seconds(), time.monotonic()
    time.sleep(seconds)
    return (busy_seconds() - before) / (time.monotonic() - begin)


def cost(work: Callable[[], object], idle_seconds: float) -> Tuple[float, float]:
    """Busy seconds of some work, what comes after its end included and what goes on anyway subtracted; and that rate."""
    rate = background(idle_seconds)
    before, begin = busy_seconds(), time.monotonic()
    work()
    time.sleep(min(SETTLE_SECONDS, idle_seconds))
    spent = busy_seconds() - before - rate * (time.monotonic() - begin)
    return spent, rate
