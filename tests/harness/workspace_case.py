# SPDX-License-Identifier: Apache-2.0
"""What tests of workspaces share: files to change, and a look at what is kept."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any, Dict, List, Tuple

from harness.case import JarCase
from harness.runner import NAMESPACE

# What a command may do to files: every line is one kind of change.
CHANGES = r"""
set -e
echo more >> changed
echo new > new
rm removed
chmod 600 mode
mv moved elsewhere
echo over > over.new; mv over.new over
ln new linked
ln -s new link
ln -sf other symlink
: > emptied
truncate -s 1M grown
mkdir -p made/deep/er; echo x > made/deep/er/file
rm -r tree
mkdir tree; echo again > tree/again
echo through >> hard2
touch -d @1000 times
mv swap/a swap/c; mv swap/b swap/a; mv swap/c swap/b
"""


def fingerprint(top: Path) -> Dict[str, Tuple[Any, ...]]:
    """What there is below a directory: kinds, modes, owners, times of change, contents."""
    found: Dict[str, Tuple[Any, ...]] = {}
    for directory, names, files in os.walk(top):
        for name in [*names, *files, "."]:
            path = os.path.join(directory, name)
            facts = os.lstat(path)
            content = ""
            if stat.S_ISLNK(facts.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(facts.st_mode):
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            found[path] = (facts.st_mode, facts.st_ino, facts.st_uid, facts.st_gid, facts.st_mtime_ns, facts.st_ctime_ns, content)
    return found


def tree(top: Path) -> Dict[bytes, Tuple[Any, ...]]:
    """What there is below a directory, as far as it can be the same in two places."""
    found: Dict[bytes, Tuple[Any, ...]] = {}
    for directory, names, files in os.walk(os.fsencode(top)):
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            facts = os.lstat(path)
            content: Any = None
            if stat.S_ISLNK(facts.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(facts.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            attributes = {
                name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)
                if name.startswith("user.")
            }
            mode = 0 if stat.S_ISLNK(facts.st_mode) else stat.S_IMODE(facts.st_mode)
            found[os.path.relpath(path, os.fsencode(top))] = (stat.S_IFMT(facts.st_mode), mode, content, attributes)
    return found


def fill(top: Path) -> None:
    """What CHANGES changes."""
    for name in ("changed", "removed", "mode", "moved", "over", "emptied", "grown", "hard1", "times"):
        (top / name).write_text(f"{name}\n")
    os.link(top / "hard1", top / "hard2")
    (top / "symlink").symlink_to("changed")
    for name in ("tree/a/b", "swap/a", "swap/b"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"{name}\n")


class WorkspaceCase(JarCase):
    """With files to change, and a look at what is kept."""

    way = NAMESPACE

    def fill(self, top: Path) -> None:
        fill(top)

    def stores(self) -> List[Path]:
        """What is kept, without what is being removed."""
        top = self.home / ".local/state/belljar/ws"
        return [path for path in top.glob("*") if not path.name.startswith(".")] if top.exists() else []

    def layer(self, result: Dict[str, Any]) -> Dict[str, Any]:
        layer: Dict[str, Any] = result["workspace"]
        self.assertEqual(sorted(layer), sorted("id added modified deleted bytes path kind complete dirs".split()), layer)
        return layer
