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

# Makes random changes below the current directory, the same for the same seed. What the system refuses is refused alike.
RANDOM_CHANGES = r"""
import os, random, shutil, sys
dice = random.Random(int(sys.argv[1]))
may_link = sys.argv[3:] != ["no-links"]
names = ["a", "b", "c d", "e\n", "\udcff", "f.txt", "g", "h"]

def some(depth=3):
    return "/".join(dice.choice(names) for _ in range(dice.randint(1, depth)))

def write(path, text):
    with open(path, "w") as file:
        file.write(text)

def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)

def sparse(path):
    with open(path, "r+b" if os.path.isfile(path) else "wb") as file:
        file.truncate(dice.randint(0, 200000))
        file.seek(dice.randint(0, 100000))
        file.write(b"x" * dice.randint(0, 10))

def mapped(path):
    import mmap
    with open(path, "r+b") as file:
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[0:1] = b"Z"

def swap(one, two):
    shutil.move(one, "swap.tmp"); shutil.move(two, one); shutil.move("swap.tmp", two)

for step in range(int(sys.argv[2])):
    one, two = some(), some()
    # Also through links: where a rename of a directory is refused, a move copies, and would never end in itself.
    first, second = os.path.realpath(one) + "/", os.path.realpath(two) + "/"
    nested = first.startswith(second) or second.startswith(first)
    action = dice.choice([
        lambda: write(one, "%d" % dice.randint(0, 9) * dice.randint(0, 50)),
        lambda: write(one, "line\n" * dice.randint(0, 50)),
        lambda: os.makedirs(one),
        lambda: remove(one),
        lambda: None if nested else shutil.move(one, two),
        lambda: os.rename(one, two) if not os.path.isdir(one) else None,
        lambda: os.symlink(dice.choice(names), one),
        lambda: os.chmod(one, dice.choice([0o700, 0o755, 0o750, 0o711])) if not os.path.islink(one) else None,
        lambda: os.chmod(one, dice.choice([0o600, 0o644])) if os.path.isfile(one) and not os.path.islink(one) else None,
        lambda: os.setxattr(one, "user.x", b"%d" % dice.randint(0, 3), follow_symlinks=False),
        lambda: sparse(one),
        lambda: mapped(one),
        lambda: None if nested else swap(one, two),
        lambda: os.link(one, two, follow_symlinks=False) if dice.random() < 0.3 and may_link else None,
    ])
    try:
        action()
    except (OSError, ValueError, shutil.Error):
        pass
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
