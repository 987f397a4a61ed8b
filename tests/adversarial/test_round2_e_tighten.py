# SPDX-License-Identifier: Apache-2.0
"""An MCP client, which is a model, learns nothing about the host from what it adds to a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import List

from harness.runner import NAMESPACE
from integration.test_mcp_server import McpCase


class Tighten(McpCase):
    """What a client adds to `hide` asks the host nothing."""

    way = NAMESPACE

    def answers(self, *paths: str) -> List[str]:
        """What jar_open says to each, with the path left out."""
        server = self.server("--hide", str(self.work / "kept"))
        said = []
        for path in paths:
            result = server.tool("jar_open", tighten={"hide": [path]})
            # The mark of Belljar's lines is another one each time.
            marks = {block["_meta"]["belljar/mark"] for block in result["content"] if "_meta" in block}
            words = json.dumps(result).replace(path, "PATH")
            for mark in marks:
                words = words.replace(mark, "MARK")
            said.append(words)
        return said

    def test_hide_does_not_tell_what_the_host_has(self) -> None:
        outside = self.directory("outside")
        (outside / "there").write_text("x")
        (self.work / "kept").mkdir()
        (self.work / "kept" / "there").write_text("x")
        (self.work / "link").symlink_to(outside / "there")
        (self.work / "loose").symlink_to(outside / "gone")
        (self.work / "way").symlink_to(outside)
        for first, second in (
            (outside / "there", outside / "gone"),
            (self.home / ".ssh", self.home / ".nothing"),
            (Path("/root/.ssh"), Path("/root/.nothing")),
            (self.work / "link", self.work / "loose"),
            (self.work / "way" / "there", self.work / "way" / "gone"),
            (self.work / ".." / "outside" / "there", self.work / ".." / "outside" / "gone"),
        ):
            said = self.answers(str(first), str(second))
            self.assertIn("the jar does not show it", said[0])
            self.assertEqual(said[0], said[1])

    def test_hide_still_hides(self) -> None:
        server = self.server("--hide", str(self.work / "kept"))
        (self.work / "kept").mkdir()
        (self.work / "kept" / "there").write_text("x")
        (self.work / "mine").write_text("x")
        for path, hidden in ((self.work / "mine", True), (self.work / "kept" / "there", False), (self.work / "kept" / "gone", False)):
            opened = server.data("jar_open", tighten={"hide": [str(path)]})
            self.assertEqual(str(path) in opened["policy"]["hide"], hidden)
            self.assertNotIn("there", json.dumps(opened["in_force"]))
            self.assertNotEqual(server.data("run", command=f"cat {path}", jar=opened["jar"])["exit_code"], 0)
