# SPDX-License-Identifier: Apache-2.0
"""What ./dev vm does around the machines: deal out modules, read what machines say, end them."""

from __future__ import annotations

import os
import tempfile
import unittest
from typing import List

from vm import machine
from vm.guest.driver import share_of
from vm.guest.scenes import SCENES


class Shares(unittest.TestCase):
    def test_each_module_of_each_scene_is_in_one_share(self) -> None:
        scenes = [(scene, list(scene.modules)) for scene in SCENES]
        wanted = sorted((scene.name, module) for scene, modules in scenes for module in modules)
        for shares in (1, 3, 16):
            dealt = [share_of(scenes, share, shares) for share in range(shares)]
            found = sorted((scene.name, module) for part in dealt for scene, modules in part for module in modules)
            self.assertEqual(found, wanted)
            sizes = [sum(len(modules) for _, modules in part) for part in dealt]
            self.assertLessEqual(max(sizes) - min(sizes), 1)

    def test_a_share_has_no_scene_without_modules(self) -> None:
        scenes = [(scene, list(scene.modules)) for scene in SCENES]
        self.assertTrue(all(modules for share in range(40) for _, modules in share_of(scenes, share, 40)))


class Machines(unittest.TestCase):
    def test_machines_run_beside_one_another_and_their_lines_are_kept_apart(self) -> None:
        lines: List[List[str]] = [[], []]
        # Each ends only once the other has begun.
        meet = "exec 3<>$1 4<>$2; echo $3; echo >&4; read x <&3; printf 'end\\r\\n'"
        with tempfile.TemporaryDirectory() as folder:
            ways = [f"{folder}/a", f"{folder}/b"]
            for way in ways:
                os.mkfifo(way)
            commands = [["/bin/sh", "-c", meet, "sh", *ways, "one"], ["/bin/sh", "-c", meet, "sh", *reversed(ways), "two"]]
            are_over = machine.run([(command, own.append) for command, own in zip(commands, lines)], 600)
        self.assertEqual((are_over, lines), ([True, True], [["one", "end"], ["two", "end"]]))

    def test_a_machine_that_does_not_end_is_killed(self) -> None:
        lines: List[str] = []
        are_over = machine.run([(["/bin/sh", "-c", "echo begun; exec sleep 600"], lines.append)], 1)
        self.assertEqual(are_over, [False])
