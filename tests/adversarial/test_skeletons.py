# SPDX-License-Identifier: Apache-2.0
"""A root that an earlier start has made is other jars' root too: what a command can do to it.

Layers: it is mounted read-only; where it lies nothing is shown, whatever the policy names, and the directories above are pinned;
the filter refuses leases, which a file's owner may otherwise take to let everybody else wait.
"""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from typing import List

from adversarial_support import AttackCase, picture
from harness.runner import NAMESPACE, Arg

BUILT = b"a root made before"

# Everything that could change it, tried from the inside.
CHANGES = """
for path in ("/", "/etc", "/etc/passwd", "/dev", "/etc/os-release"):
    attempt("chmod " + path, lambda: os.chmod(path, 0o777))
    attempt("utime " + path, lambda: os.utime(path))
    attempt("chown " + path, lambda: os.chown(path, os.getuid(), os.getgid()))
for path in ("/new", "/etc/ld.so.preload", "/dev/new"):
    attempt("create " + path, lambda: os.open(path, os.O_WRONLY | os.O_CREAT))
    attempt("mkdir " + path, lambda: os.mkdir(path))
for path in ("/etc/passwd", "/proc/self/root/etc/passwd"):
    attempt("write " + path, lambda: os.open(path, os.O_RDWR))
    attempt("truncate " + path, lambda: os.truncate(path, 0))
    attempt("remove " + path, lambda: os.unlink(path))
    attempt("link " + path, lambda: os.link(path, "stolen"))
held = os.open("/etc/passwd", os.O_RDONLY)
attempt("write by descriptor", lambda: os.open("/proc/self/fd/%d" % held, os.O_WRONLY))
attempt("link by descriptor", lambda: os.link("/proc/self/fd/%d" % held, "stolen", follow_symlinks=True))
attempt("attribute", lambda: os.setxattr("/etc/passwd", "user.x", b"x"))
for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
    attempt("lease %d" % kind, lambda: fcntl.fcntl(held, fcntl.F_SETLEASE, kind))
    attempt("delegation %d" % kind, lambda: fcntl.fcntl(held, 1040, kind))
attempt("rename", lambda: os.rename("/etc", "/cte"))
attempt("up", lambda: os.stat("/../../skeletons"))
"""

# From a directory around it that is writable.
REACH = """
top = sys.argv[1]
print("names", sorted(os.listdir(top + "/belljar/skeletons")))
attempt("create", lambda: os.open(top + "/belljar/skeletons/new", os.O_WRONLY | os.O_CREAT))
attempt("rename it", lambda: os.rename(top + "/belljar/skeletons", top + "/belljar/moved"))
attempt("rename above", lambda: os.rename(top + "/belljar", top + "/moved"))
os.mkdir(top + "/belljar/other")
attempt("exchange", lambda: call(316, -100, (top + "/belljar/skeletons").encode(), -100, (top + "/belljar/other").encode(), 2))
os.rmdir(top + "/belljar/other")
"""


class Skeletons(AttackCase):
    way = NAMESPACE

    def setUp(self) -> None:
        super().setUp()
        self.top = Path("/run") if os.getuid() == 0 else Path(f"/run/user/{os.getuid()}")
        if not self.top.is_dir():
            self.skipTest(f"needs:runtime-directory {self.top}")
        # A place that no other test has: a skeleton of its own.
        self.options: List[Arg] = ["--ro", f"{self.outside}:/{self.marker}"]

    def names(self) -> "set[str]":
        return {path.name for path in (self.top / "belljar/skeletons").iterdir()}

    def make(self) -> Path:
        """Start until it is made; where it is."""
        before = self.names() if (self.top / "belljar/skeletons").exists() else set()
        self.jar(*self.options, "--", "true")
        self.assertIn(BUILT, self.jar("--timing", *self.options, "--", "true").stderr)
        self.assertNotIn(BUILT, self.jar("--timing", *self.options, "--no-root-cache", "--", "true").stderr)
        made = [self.top / "belljar/skeletons" / name for name in self.names() - before]
        mine = [path for path in made if (path / self.marker).is_dir()]
        self.assertEqual(len(mine), 1, made)
        return mine[0]

    def test_nothing_inside_changes_it(self) -> None:
        made = self.make()
        before = picture(made)
        done = self.jar(*self.options, *self.python(CHANGES))
        answers = self.answers(done.stdout.decode())
        self.assertGreater(len(answers), 30, done)
        self.assertEqual({name: answer for name, answer in answers.items() if answer == "ok"}, {}, done)
        for kind in (0, 1):
            self.assertEqual((answers[f"lease {kind}"], answers[f"delegation {kind}"]), ("EACCES", "EACCES"))
        self.assertEqual(picture(made), before)

    def test_it_shows_what_a_root_of_its_own_shows(self) -> None:
        look = "cd /; find . -mindepth 1 -maxdepth 2 -path ./proc -prune -o -printf '%p %y %l\\n' | sort; sha256sum /etc/passwd /etc/hosts"
        self.make()
        kept, own = (self.jar(*self.options, *more, *self.sh(look)) for more in ([], ["--no-root-cache"]))
        self.assertGreater(kept.stdout.count(b"\n"), 20, kept)
        self.assertEqual(kept.stdout, own.stdout)

    def test_no_jar_reaches_it(self) -> None:
        made = self.make()
        before = picture(made)
        # The whole directory around it may be more than this test should touch.
        around = self.top / "belljar" if os.getuid() == 0 else self.top
        for option in ("--rw", "--ro"):
            for named in (made, made / "etc", made.parent):
                with self.subTest(option=option, named=named):
                    done = self.jar(option, f"{named}:/d", *self.sh("ls -A /d /d/etc; touch /d/x /d/etc/x"))
                    self.assertEqual(done.stdout, b"", done)
            with self.subTest(option=option, named=around):
                done = self.jar(option, f"{around}:/d", *self.sh("cd /d/skeletons || cd /d/belljar/skeletons; pwd; ls -A; touch x"))
                self.assertIn(done.stdout, (b"/d/skeletons\n", b"/d/belljar/skeletons\n"), done)
        self.assertEqual(picture(made), before)
        self.assertNotIn("x", self.names())

    @unittest.skipIf(os.getuid() == 0, "root's is in /run, which no test writes to")
    def test_no_jar_takes_its_place(self) -> None:
        """Neither where it is, nor where it would be made."""
        for is_made in (False, True):
            if is_made:
                self.make()
            done = self.jar("--rw", self.top, *self.python(REACH, self.top))
            answers = self.answers(done.stdout.decode())
            self.assertIn(b"names []\n", done.stdout, done)
            wrong = {name: answer for name, answer in answers.items() if answer not in ("EBUSY", "EROFS", "EACCES", "[]")}
            self.assertEqual(wrong, {}, done)
            # The caller does without; a jar that could write there finds the directory all the same.
            self.env["BELLJAR_CACHE"] = "off"
            done = self.jar("--rw", self.top, "--timing", *self.python(REACH, self.top))
            self.assertIn(b"names []\n", done.stdout, done)
            self.assertNotIn(BUILT, done.stderr)
            del self.env["BELLJAR_CACHE"]


if __name__ == "__main__":
    unittest.main()
