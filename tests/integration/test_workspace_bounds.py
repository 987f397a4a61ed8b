# SPDX-License-Identifier: Apache-2.0
"""Layers when the engine is killed, when too much is written, and when too much would have to be copied."""

from __future__ import annotations

import os
import unittest

from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE
from harness.workspace_case import WorkspaceCase, fingerprint


@on_ways(NAMESPACE, LANDLOCK)
class Bounds(WorkspaceCase):
    """Layer or copy."""

    def test_killed_at_any_moment(self) -> None:
        """What is left is unlocked: either it has changes and can be used on, or it is swept."""
        self.fill(self.work)
        before = fingerprint(self.work)
        self.kill_at_moments(12, b"up", "--workspace", "name", *self.sh("echo x >> changed; echo up; exec sleep 1000"))
        self.check_nothing_left()
        self.assertEqual(fingerprint(self.work), before)
        result = self.json("--workspace", "name", *self.sh("tail -n 1 changed"))
        self.assertEqual(result["stdout"], "x\n", result)

    def test_the_disk_limit_counts_the_layer(self) -> None:
        (self.work / "big").write_bytes(bytes(1 << 20))
        result = self.json("--cow", "--disk", "4M", *self.sh("head -c 64M /dev/zero > new; echo written"))
        self.assertEqual((result["outcome"], result["stdout"]), ("disk", ""), result)
        if self.way is NAMESPACE:
            result = self.json("--cow", "--disk", "64K", *self.sh("echo x >> big; sleep 1000"))
            self.assertEqual(result["outcome"], "disk", "copying up writes, too")


class Copies(WorkspaceCase):
    """What is too large to be copied is refused before anything is."""

    way = LANDLOCK

    def test_too_many_entries_are_refused_with_the_numbers(self) -> None:
        (self.work / "0").touch()
        for number in range(1, 20_001):
            os.link(self.work / "0", self.work / str(number))  # making files would take a minute
        self.assert_failed(self.jar("--cow", *self.sh("true")), "20001 entries", "20000")
        self.assertEqual(self.stores(), [])

    def test_too_many_bytes_are_refused_with_the_numbers(self) -> None:
        with open(self.work / "big", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 513 << 20)
        self.assert_failed(self.jar("--cow", *self.sh("true")), "513 MB", "512")


if __name__ == "__main__":
    unittest.main()
