# SPDX-License-Identifier: Apache-2.0
"""Taking turns: what disturbs the machine for a while shall disturb all candidates alike."""

from __future__ import annotations

import dataclasses
import random
import time
from typing import Any, Callable, Dict, List


@dataclasses.dataclass
class Way:
    """One candidate: the microseconds that `run` takes are the value, or with `has_own_value` what it returns."""

    name: str
    run: Callable[[], Any]
    every: int = 1  # only in every so many rounds: it takes so long that the others would have few
    has_own_value: bool = False


def value_of(way: Way) -> float:
    """One value."""
    begin = time.perf_counter()
    value = way.run()
    elapsed = (time.perf_counter() - begin) * 1e6
    return float(value) if way.has_own_value else elapsed


def take_turns(ways: List[Way], rounds: int, idle_seconds: float = 0.0) -> Dict[str, List[float]]:
    """The values of each, in random order within each round; before every one a moment of idleness, the same for all."""
    chance = random.Random(1)
    values: Dict[str, List[float]] = {way.name: [] for way in ways}
    for way in ways:
        # What is slow has no caches worth warming, and a single round says nothing anyway.
        if way.every == 1 and rounds > 1:
            way.run()
    for number in range(rounds):
        for way in chance.sample(ways, len(ways)):
            if number % way.every == 0:
                if idle_seconds:
                    time.sleep(idle_seconds)
                values[way.name].append(value_of(way))
    return values
