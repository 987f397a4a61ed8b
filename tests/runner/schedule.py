# SPDX-License-Identifier: Apache-2.0
"""Which group runs when.

Tests wait a lot, and builds never do. So builds are made in the background while the groups that need none of them run,
several beside each other, whatever part they are of; each begins as soon as its own builds are over, the long ones first.
Then, one by one, come those that must be alone.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Sequence

from runner.groups import LONG_MODULES, Group


# Of a group that has never run here.
UNKNOWN_SECONDS, UNKNOWN_LONG_SECONDS = 10.0, 60.0


def expected_seconds(group: Group) -> float:
    """What a group took the last time, or a guess."""
    guess = UNKNOWN_LONG_SECONDS - LONG_MODULES.index(group.module) if group.is_long else UNKNOWN_SECONDS
    return group.expected_seconds or guess


class Queue:
    """Groups that wait for a worker, and for builds that are not over."""

    def __init__(self, groups: Iterable[Group], builds: Iterable[str]) -> None:
        self._waiting = sorted(groups, key=expected_seconds, reverse=True)
        self._unmade = set(builds)
        self._changed = threading.Condition()

    def made(self, build: str) -> None:
        """A build is over, for better or worse."""
        with self._changed:
            self._unmade.discard(build)
            self._changed.notify_all()

    def take(self) -> Group | None:
        """The next group that can run, once there is one; None where none is left."""
        with self._changed:
            while self._waiting:
                for group in self._waiting:
                    if self._unmade.isdisjoint((*group.builds, *group.after)):
                        self._waiting.remove(group)
                        return group
                self._changed.wait()
            return None


def run_groups(
    groups: Sequence[Group], builds: Sequence[str], jobs: int, make: Callable[[str], None], run: Callable[[Group], None]
) -> None:
    """Make the builds and run the groups; neither `make` nor `run` may raise."""
    queue = Queue([group for group in groups if not group.is_alone], builds)

    def make_all() -> None:
        for build in builds:
            make(build)
            queue.made(build)

    def work() -> None:
        while (group := queue.take()) is not None:
            run(group)

    with concurrent.futures.ThreadPoolExecutor(jobs + 1) as pool:
        for task in [pool.submit(make_all), *(pool.submit(work) for _ in range(jobs))]:
            task.result()
    for group in groups:
        if group.is_alone:
            run(group)
