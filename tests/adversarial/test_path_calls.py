# SPDX-License-Identifier: Apache-2.0
"""Every call that takes a path, on what is absent, read-only, hidden or protected, by every way that leads there.

Layers: on the namespace rung the mounts (ENOENT, EROFS, EBUSY, EXDEV), on the landlock rung Landlock (EACCES), on both the
filter for the calls that go around either (EPERM, EOPNOTSUPP) and, towards process 1, its not being dumpable (EACCES).
"""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Dict, FrozenSet, List, Tuple

from adversarial_support import AttackCase, contents, host, needs_git, picture
from harness import paths
from harness.case import on_ways
from harness.result import Result
from harness.runner import LANDLOCK, NAMESPACE, Way

Answers = Dict[Tuple[str, str], str]

# Stopped by the filter whatever the target is.
FILTERED = {
    "name_to_handle_at": "EOPNOTSUPP",
    "open_by_handle_at": "EPERM",
    "fanotify": "EPERM",
    "bind_source": "EPERM",
    "open_tree": "EPERM",
    "mount_over": "EPERM",
    "remount": "EPERM",
    "umount": "EPERM",
}
OPEN = ("open", "openat", "openat2", "open_path")
LOOK = (*OPEN, "stat", "lstat", "statx", "access", "readlink", "chdir", "inotify", "listxattr")
WRITE = ("open_write", "open_append", "open_truncate", "openat2_write", "reopen_write", "truncate", "creat")
METADATA = ("chmod", "fchmodat2", "chown", "utimensat", "setxattr")
# What Landlock does not see before ABI 3; the filter refuses them, and the call whose flags it cannot read.
TRUNCATING = ("openat2", "openat2_write", "open_truncate", "truncate", "creat")
MAKE = ("symlink", "mkdir", "mknod", "bind_socket", "link_to")
MOVE = ("rename_from", "rename_to", "exchange", "whiteout", "link_from", "unlink", "rmdir")


def expected_here(call: str, expected: FrozenSet[str], way: Way) -> FrozenSet[str]:
    """An older kernel does not know a call at all, or its Landlock does not see it and the filter stands in."""
    # Refused by the filter, wherever the path leads, since they could leave marks of overlayfs; attributes in a writable jar only.
    if call == "whiteout":
        return frozenset(("EINVAL",))
    if call == "setxattr" and way is NAMESPACE:
        return expected | {"EOPNOTSUPP"}
    if call == "fchmodat2" and not host.has_fchmodat2():
        return frozenset(("ENOSYS",))
    if way is LANDLOCK and host.landlock_abi() < 3 and call in TRUNCATING:
        return expected | {"EPERM", "ENOSYS"}
    return expected


class PathCase(AttackCase):
    def attack(self, target: Path, *options: str, own: str = "") -> Tuple[Answers, Result]:
        """Run the table; the answers by call and route, and the result."""
        tool = self.tool("attack_paths")
        result = self.json("--output", "1M", *options, "--", tool, str(target), own or str(self.own), timeout=60)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result["stderr"])
        answers: Answers = {}
        for line in result["stdout"].splitlines():
            call, route, answer = line.split()
            answers[call, route] = answer
        self.assertGreater(len(answers), 250)
        self.check_common(answers)
        return answers, result

    def check_common(self, answers: Answers) -> None:
        """What holds for every target."""
        wrong = []
        for (call, route), answer in answers.items():
            if call in FILTERED:
                expected = frozenset((FILTERED[call],))
            elif route == "one-root":
                expected = frozenset(("EACCES",))
            else:
                continue
            if answer not in expected_here(call, expected, self.way):
                wrong.append(f"{call} by {route}: {answer}, not {' or '.join(sorted(expected))}")
        self.assertEqual(wrong, [])

    def expect(self, answers: Answers, calls: Tuple[str, ...], *allowed: str) -> None:
        """All of these calls, on every route but process 1's, got one of these answers."""
        good: FrozenSet[str] = frozenset(allowed)
        wrong: List[str] = [
            f"{call} by {route}: {answer}, not {' or '.join(sorted(good))}"
            for (call, route), answer in answers.items()
            if call in calls and route != "one-root" and answer not in expected_here(call, good, self.way)
        ]
        self.assertEqual(wrong, [])


@on_ways(NAMESPACE)
class Mounts(PathCase):
    def test_absent_files_are_absent_for_every_call(self) -> None:
        """Layer: the mount namespace. Nothing of the host's is there, so there is nothing to refuse."""
        before = picture(self.outside)
        answers, _ = self.attack(self.secret)
        self.expect(answers, (*LOOK, "execve", *WRITE, *METADATA, *MAKE, *MOVE, "tmpfile"), "ENOENT")
        self.assertEqual(picture(self.outside), before)

    def test_the_engine_s_own_executable_is_absent_or_read_only(self) -> None:
        before = Path(paths.belljar()).read_bytes()
        answers, _ = self.attack(Path(paths.belljar()))
        self.expect(answers, WRITE, "ENOENT", "EROFS")
        self.assertEqual(Path(paths.belljar()).read_bytes(), before)

    def test_read_only_files_cannot_be_changed(self) -> None:
        """Layer: the read-only mount: EROFS, not the permissions of the file, which the caller owns."""
        (self.outside / "own").write_text("")
        before = picture(self.outside)
        answers, _ = self.attack(self.secret, "--ro", str(self.outside))
        self.expect(answers, LOOK, "ok")
        self.expect(answers, (*WRITE, *METADATA, "unlink"), "EROFS")
        self.expect(answers, MAKE, "EEXIST", "EADDRINUSE", "EROFS")
        self.expect(answers, ("rename_from", "rename_to", "exchange", "whiteout", "link_from"), "EXDEV")
        # Both ends in the read-only mount: now only its being read-only is in the way.
        answers, _ = self.attack(self.secret, "--ro", str(self.outside), own=str(self.outside))
        self.expect(answers, ("rename_from", "rename_to", "exchange", "whiteout", "link_from", "unlink"), "EROFS")
        self.assertEqual(picture(self.outside), before)

    def test_nothing_can_be_added_to_a_read_only_directory(self) -> None:
        before = picture(self.outside)
        answers, _ = self.attack(self.outside / "new", "--ro", str(self.outside))
        self.expect(answers, (*MAKE, "creat", "rename_to"), "EROFS", "EXDEV")
        self.expect(answers, ("symlink", "mkdir", "mknod", "creat", "bind_socket"), "EROFS")
        self.assertEqual(picture(self.outside), before)

    def test_a_read_only_workdir(self) -> None:
        (self.work / "file").write_text("x")
        tool = self.tool("attack_paths")
        before = picture(self.work)
        result = self.json("--policy", "readonly", "--", tool, str(self.work / "file"), "/tmp")
        answers = {tuple(line.split()[:2]): line.split()[2] for line in result["stdout"].splitlines()}
        self.expect(answers, (*WRITE, *METADATA, "unlink"), "EROFS")
        self.assertEqual(picture(self.work), before)

    def test_the_system_and_the_root_are_read_only(self) -> None:
        for target in ("/usr/bin/env", "/etc/passwd", "/new-at-the-root", "/etc/new", "/dev/new", "/usr/new"):
            with self.subTest(target=target):
                answers, _ = self.attack(Path(target))
                self.expect(answers, (*WRITE, "mkdir", "mknod", "symlink"), "EROFS", "EACCES", "EEXIST", "ENOENT")

    def test_hidden_directories_are_empty_and_stay_so(self) -> None:
        """Layer: an empty read-only mount over the place."""
        inside = self.work / "private"
        inside.mkdir()
        (inside / "key").write_text(self.SECRET)
        before = picture(inside)
        for options in (["--hide", str(inside)], ["--hide", "private"], ["--rw", str(inside), "--hide", str(inside)]):
            answers, _ = self.attack(inside / "key", *options)
            self.expect(answers, (*LOOK, "execve"), "ENOENT")
            self.expect(answers, ("creat", "mkdir", "symlink", "mknod", "bind_socket"), "EROFS")
        self.assertEqual(picture(inside), before)

    def test_hidden_files_cannot_be_read_or_replaced(self) -> None:
        hidden = self.work / ".env"
        hidden.write_text(self.SECRET)
        before = contents(hidden)
        answers, result = self.attack(hidden, "--hide", str(hidden))
        self.expect(answers, OPEN, "EACCES")
        self.expect(answers, (*WRITE, "truncate"), "EACCES", "EROFS")
        self.expect(answers, ("rename_from", "rename_to", "exchange", "unlink", "whiteout"), "EBUSY", "EXDEV", "EROFS")
        self.expect(answers, ("link_from",), "EXDEV")
        self.assertNotIn(self.SECRET, result["stdout"])
        self.assertEqual(contents(hidden), before)

    def test_protected_files_cannot_be_changed(self) -> None:
        """Layer: a read-only mount of the file onto itself: EROFS to write it, EBUSY to move it."""
        needs_git()
        self.git("init", "-q", ".", cwd=self.work)
        hooks = self.work / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        (hooks / "pre-commit").write_text("#!/bin/sh\n")
        for name in (".bashrc", ".envrc", ".mcp.json", ".gitmodules"):
            (self.work / name).write_text("mine\n")
        (self.work / ".vscode").mkdir()
        (self.work / ".vscode" / "tasks.json").write_text("{}")
        (self.work / ".claude").mkdir()
        (self.work / ".claude" / "settings.json").write_text("{}")
        tool = self.tool("attack_paths")
        for name in (".git/config", ".bashrc", ".envrc", ".mcp.json", ".gitmodules", ".claude/settings.json"):
            with self.subTest(name=name):
                before = picture(self.work / name)
                # The other end of a rename in the same directory, so that only the mount on the file is in the way.
                answers, result = self.attack(self.work / name, own=str((self.work / name).parent))
                self.expect(answers, (*WRITE, *METADATA), "EROFS")
                self.expect(answers, ("rename_from", "rename_to", "exchange", "unlink", "whiteout"), "EBUSY")
                self.expect(answers, ("link_from",), "EXDEV")
                answers, _ = self.attack(self.work / name)
                self.expect(answers, ("rename_from", "rename_to", "exchange", "unlink", "whiteout"), "EBUSY", "EXDEV")
                self.assertEqual(picture(self.work / name), before)
                self.assertEqual(result["risky"], [])
        for name in (".git/hooks/pre-commit", ".vscode/tasks.json"):
            with self.subTest(name=name):
                before = picture((self.work / name).parent)
                answers, _ = self.attack(self.work / name)
                self.expect(answers, (*WRITE, *METADATA, "unlink"), "EROFS")
                self.expect(answers, ("rename_from", "rename_to", "exchange", "whiteout", "link_from"), "EXDEV")
                answers, _ = self.attack(self.work / name.replace("pre-commit", "new").replace("tasks", "new"))
                self.expect(answers, ("creat", "mkdir", "symlink", "mknod"), "EROFS")
                self.assertEqual(picture((self.work / name).parent), before)
        self.assertTrue(Path(tool).exists())


@on_ways(LANDLOCK)
class Landlock(PathCase):
    def test_files_outside_cannot_be_read_or_written(self) -> None:
        """Layer: Landlock: EACCES. Metadata are not its business: who answers what the filter asks refuses them."""
        before = picture(self.outside)
        answers, result = self.attack(self.secret)
        self.expect(answers, (*OPEN, "execve", *WRITE), "EACCES")
        self.expect(answers, ("rename_from", "rename_to", "exchange", "whiteout", "unlink", "rmdir"), "EACCES")
        self.expect(answers, ("link_from",), "EACCES", "EXDEV")
        self.expect(answers, MAKE, "EACCES", "EEXIST", "EADDRINUSE")
        # The descriptors of other processes are not looked through.
        self.expect(answers, METADATA, "EPERM", "ELOOP")
        self.assertNotIn("metadata", self.missing(result))
        self.assertEqual(picture(self.outside), before)

    def test_nothing_can_be_made_outside(self) -> None:
        before = contents(self.outside)
        answers, _ = self.attack(self.outside / "new")
        self.expect(answers, ("creat", "symlink", "mkdir", "mknod", "bind_socket", "rename_to"), "EACCES")
        self.expect(answers, ("link_to",), "EACCES", "EXDEV")
        self.assertEqual(contents(self.outside), before)

    def test_read_only_paths_cannot_be_written(self) -> None:
        (self.outside / "own").write_text("")
        before = contents(self.outside)
        answers, _ = self.attack(self.secret, "--ro", str(self.outside))
        self.expect(answers, LOOK, "ok")
        self.expect(answers, (*WRITE, "unlink"), "EACCES")
        answers, _ = self.attack(self.secret, "--ro", str(self.outside), own=str(self.outside))
        self.expect(answers, ("rename_from", "exchange", "unlink", "link_from"), "EACCES")
        self.assertEqual(contents(self.outside), before)

    def test_what_cannot_be_hidden_or_protected_is_said(self) -> None:
        (self.work / ".env").write_text(self.SECRET)
        done, result = self.status("--hide", ".env", "--", "cat", ".env")
        self.assertEqual((done.status, done.stdout, result["outcome"]), (125, b"", "failed"))
        self.assertIn("protect", self.missing(self.json("--", "true")))

    def test_what_appears_is_listed_here_too(self) -> None:
        result = self.json(*self.sh("mkdir -p .git/hooks && echo x > .git/hooks/post-checkout; echo x > .envrc"))
        found = {Path(entry["path"]).relative_to(self.work).as_posix() for entry in result["risky"]}
        self.assertGreaterEqual(found, {".git/hooks", ".envrc"})


if __name__ == "__main__":
    unittest.main()
