# SPDX-License-Identifier: Apache-2.0
"""Layers when the engine is killed, when too much is written, and when too much would have to be copied."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import unittest

from harness import trees
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


@on_ways(NAMESPACE, LANDLOCK)
class Holes(WorkspaceCase):
    """A file of a terabyte that takes no place."""

    def test_a_huge_hole_is_shown_exported_and_applied_as_a_hole(self) -> None:
        script = "truncate -s 1T huge; printf middle | dd of=huge bs=1 seek=1000000000 conv=notrunc; truncate -s 3M empty; echo x > f"
        self.assertEqual(self.json("--workspace", "w", *self.sh(script))["exit_code"], 0)
        for words in (("--stat",), ("--patch",), ("--json",)):
            self.assertEqual(self.belljar("diff", "w", *words).status, 0)
        data = self.belljar("workspace", "export", "w", "--tar").stdout
        self.assertLess(len(data), 1 << 20)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            found = {member.name: (member.size, member.issparse()) for member in archive}
            self.assertEqual(found, {"empty": (3 << 20, True), "f": (2, False), "huge": (1 << 40, True)})
            content = archive.extractfile("huge")
            assert content
            content.seek(999_999_998)
            self.assertEqual(content.read(10), b"\0\0middle\0\0")
        if shutil.which("tar"):
            subprocess.run(["tar", "-xf", "-"], input=data, cwd=self.directory("out"), check=True)
            self.assertEqual((self.base / "out/f").read_text(), "x\n")
            self.assertLess((self.base / "out/huge").stat().st_blocks, 1024)
        self.assertEqual(self.belljar("apply", "w").status, 0)
        self.assertEqual((self.work / "huge").stat().st_size, 1 << 40)
        self.assertLess((self.work / "huge").stat().st_blocks, 1024)


class Gone(WorkspaceCase):
    """A workspace whose file system is not there."""

    def test_it_is_marked_and_can_be_removed(self) -> None:
        for words in (("workspace", "remove"), ("discard",)):
            for name in ("gone", "whole"):
                self.jar("-q", "--workspace", name, *self.sh("echo x > f"))
            listed = json.loads(self.belljar("workspace", "list", "--json").stdout)
            self.assertEqual([entry["missing"] for entry in listed], [None, None])
            gone = next(entry["id"] for entry in listed if entry["name"] == "gone")
            meta = self.home / ".local/state/belljar/ws" / gone / "meta.json"
            facts = json.loads(meta.read_text())
            meta.write_text(json.dumps({**facts, "place": str(self.base / "nowhere")}))
            listed = json.loads(self.belljar("workspace", "list", "--json").stdout)
            self.assertEqual({entry["name"]: entry["missing"] for entry in listed}, {"gone": "layer", "whole": None})
            self.assertIn(b"its layer is not there", self.belljar("workspace", "list").stdout)
            self.assert_failed(self.belljar("diff", "gone"), "nowhere", "workspace remove")
            done = self.belljar(*words, "gone")
            self.assertEqual(done.status, 0, done)
            self.assertIn(os.fsencode(self.base / "nowhere" / gone), done.stderr)
            listed = json.loads(self.belljar("workspace", "list", "--json").stdout)
            self.assertEqual([entry["name"] for entry in listed], ["whole"])
            self.assertEqual(self.belljar(*words, "whole").status, 0)
            self.assertEqual(self.stores(), [])

    def test_a_removed_directory_is_marked(self) -> None:
        project = self.directory("project")
        self.jar("-q", "--workspace", "w", *self.sh("echo x > f"), cwd=project)
        project.rename(self.base / "moved")
        self.assertIn(b"its directory is not there", self.belljar("workspace", "list").stdout)
        self.assertEqual(self.belljar("workspace", "remove", "w").status, 0)
        self.assertEqual(self.stores(), [])

    def test_a_layer_that_was_removed_by_hand(self) -> None:
        self.jar("-q", "--workspace", "w", *self.sh("echo x > f"))
        trees.remove(str(self.stores()[0] / "upper"))
        self.assertIn(b"its layer is not there", self.belljar("workspace", "list").stdout)
        self.assertEqual(self.belljar("workspace", "remove", "w").status, 0)
        self.assertEqual(self.stores(), [])


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
