# SPDX-License-Identifier: Apache-2.0
"""Workspaces before Linux 6.6, whose tmpfs has no user attributes: a layer is kept elsewhere, and where there is no other place,
the command gets a copy."""

from __future__ import annotations

import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict

from harness import paths, trees
from harness.bounds import BOUND
from harness.case import JarCase

# Everything that Belljar would try is a tmpfs. What --keep-caps sets is not for Belljar.
MOUNT = "mount -t tmpfs t /tmp && mount -t tmpfs t /var/tmp && exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\""
SCRIPT = "rm -r d; mkdir d; touch d/new; ls d"


class NoAttributes(JarCase):
    def setUp(self) -> None:
        super().setUp()
        self.memory = Path(tempfile.mkdtemp(prefix="bjt-", dir="/dev/shm"))
        self.addCleanup(trees.remove, self.memory)
        (self.memory / "w/d").mkdir(parents=True)
        (self.memory / "w/d/old").touch()

    def check(self, result: Dict[str, Any], kind: str) -> None:
        self.assertEqual((result["exit_code"], result["stdout"]), (0, "new\n"), result)
        self.assertEqual([result["workspace"][key] for key in ("kind", "added", "deleted")], [kind, 1, 1], result)
        self.assertEqual([path.name for path in (self.memory / "w/d").iterdir()], ["old"])

    def test_a_layer_is_kept_elsewhere(self) -> None:
        self.check(self.json("--cow", "-C", self.memory / "w", *self.sh(SCRIPT)), "overlay")

    def test_a_copy_where_there_is_no_other_place(self) -> None:
        words = [paths.belljar(), "run", "--json", "--cow", "-C", str(self.memory / "w"), *self.sh(SCRIPT)]
        done = subprocess.run(
            ["unshare", "-Urm", "--map-current-user", "--keep-caps", "/bin/sh", "-c", MOUNT, "sh", *words],
            capture_output=True, cwd=self.memory, env={**self.env, "HOME": str(self.memory)}, timeout=BOUND, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done)
        result = json.loads(done.stdout)
        self.check(result, "copy")
        self.assertIn("copy", json.dumps(result["notes"]))


if __name__ == "__main__":
    unittest.main()
