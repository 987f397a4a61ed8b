# SPDX-License-Identifier: Apache-2.0
"""Mode, owner, times and attributes of files outside, on the rung where they can be seen: by every call and every way, and raced.

Layer: the filter, which asks, and the process that answers: it opens the object itself and changes it only in a writable place.
Files are changed inside as ever.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

from adversarial_support import AttackCase
from harness import paths
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.result import Result
from harness.runner import LANDLOCK, NAMESPACE

# What may be said to somebody who has no business there. Never "ok".
REFUSALS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ELOOP, errno.EBADF, errno.ENOENT}
# Of names that mean nothing.
NOT_FOUND = {errno.EFAULT, errno.ENAMETOOLONG, errno.EINVAL, errno.E2BIG, errno.ERANGE, errno.ENOTDIR}
GARBAGE = ("null", "bad-pointer", "kernel-pointer", "negative-pointer", "unterminated", "endless", "long", "bad-name", "bad-value")
GARBAGE += ("huge-value", "bad-times", "bad-descriptor", "negative-descriptor")


def whole_picture(top: Path) -> Dict[str, Tuple[Any, ...]]:
    """Everything about each file that can be changed; the time of the last change betrays what is not listed."""
    found: Dict[str, Tuple[Any, ...]] = {}
    for path in [top, *sorted(top.rglob("*"))]:
        status = path.lstat()
        attributes = [(name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False)]
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_ctime_ns, attributes)
    return found


@on_ways(LANDLOCK)
class Metadata(AttackCase):
    def setUp(self) -> None:
        super().setUp()
        self.inside = self.own / "secret"
        self.inside.write_text("mine")
        self.has_attributes = True
        try:
            os.setxattr(self.secret, "user.there", b"1")
        except OSError:
            self.has_attributes = False
        self.before = whole_picture(self.outside)
        self.devices = {name: os.stat(name).st_mode for name in ("/dev/null", "/dev")}

    def check_outside(self) -> None:
        self.assertEqual(whole_picture(self.outside), self.before)
        self.assertEqual({name: os.stat(name).st_mode for name in self.devices}, self.devices)

    def check_matrix(self, *options: str) -> Result:
        tool = self.tool("attack_metadata")
        result = self.json("--output", "1M", *options, "--", tool, "matrix", str(self.secret), timeout=60)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result["stderr"])
        wrong: List[str] = []
        lines = result["stdout"].splitlines()
        self.assertGreater(len(lines), 400)
        for line in lines:
            _, route, answer = line.split()
            allowed = REFUSALS | NOT_FOUND if route in GARBAGE else REFUSALS
            if answer == "ok" or int(answer) not in allowed:
                wrong.append(line)
        self.assertEqual(wrong, [])
        self.check_outside()
        return result

    def test_no_call_reaches_a_file_outside(self) -> None:
        result = self.check_matrix()
        self.assertNotIn("metadata", self.missing(result))

    def test_no_call_changes_a_file_that_is_shown_read_only(self) -> None:
        self.check_matrix("--ro", str(self.outside))

    def test_it_is_said_that_attributes_outside_can_be_seen(self) -> None:
        self.assertIn("file_attributes", self.missing(self.json("--", "true")))

    def race(self, way: str) -> None:
        tool = self.tool("attack_metadata")
        words = [tool, way, "3", str(self.inside), str(self.secret)]
        result = self.json("--ro", str(self.outside), "--timeout", "60s", "--", *words, timeout=90)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result["stderr"])
        counts = {word: int(number) for word, number in (line.split() for line in result["stdout"].splitlines())}
        # Both were met, or it was no race.
        self.assertGreater(counts["met"], 10, counts)
        self.assertGreater(counts["refused"], 10, counts)
        self.check_outside()

    def test_a_path_that_changes_in_memory(self) -> None:
        self.race("memory")

    def test_a_link_that_changes(self) -> None:
        self.race("link")

    def test_a_directory_that_changes_places_with_a_link(self) -> None:
        self.race("directory")

    def test_a_descriptor_that_changes(self) -> None:
        self.race("descriptor")

    def test_a_directory_s_descriptor_that_changes(self) -> None:
        self.race("base")

    def test_a_current_directory_that_changes(self) -> None:
        self.race("work")

    def test_what_is_not_readable_is_not_changed_outside(self) -> None:
        """A process that hides its memory can be refused, or served; nothing outside is changed either way."""
        script = """
        libc.prctl(4, 0, 0, 0, 0)
        attempt("inside", lambda: os.chmod(sys.argv[1], 0o600))
        attempt("outside", lambda: os.chmod(sys.argv[2], 0o600))
        fd = os.open(sys.argv[2], os.O_PATH)
        attempt("descriptor", lambda: os.chmod(fd, 0o600))
        """
        lines = "\n".join(line[8:] for line in script.splitlines())
        result = self.json(*self.python(lines, str(self.inside), str(self.secret)))
        answers = self.answers(result["stdout"])
        self.assertIn(answers["inside"], ("ok", "EPERM", "EACCES"))
        self.assertNotEqual(answers["outside"], "ok")
        self.assertNotEqual(answers["descriptor"], "ok")
        self.check_outside()

    def test_files_inside_are_changed_as_ever(self) -> None:
        script = """
        def check(name, what):
            print(name, "ok" if what else "wrong", flush=True)
        os.mkdir("d"); open("d/f", "w").close(); os.symlink("f", "d/l")
        os.chmod("d/f", 0o640); check("chmod", os.stat("d/f").st_mode & 0o777 == 0o640)
        os.chmod("d/l", 0o604); check("by-link", os.stat("d/f").st_mode & 0o777 == 0o604)
        os.utime("d/f", (5, 7)); check("utime", os.stat("d/f").st_mtime == 7 and os.stat("d/f").st_atime == 5)
        os.utime("d/l", (5, 9), follow_symlinks=False); check("link-time", os.lstat("d/l").st_mtime == 9 and os.stat("d/f").st_mtime == 7)
        os.utime("d"); check("now", os.stat("d").st_mtime > 1000)
        os.chown("d/f", os.getuid(), os.getgid()); check("chown", True)
        fd = os.open("d/f", os.O_RDONLY)
        os.fchmod(fd, 0o600); check("fchmod", os.fstat(fd).st_mode & 0o777 == 0o600)
        os.chmod("/proc/self/fd/%d" % fd, 0o644); check("own-descriptor", os.fstat(fd).st_mode & 0o777 == 0o644)
        os.utime(fd, (1, 2)); check("futimens", os.fstat(fd).st_mtime == 2)
        base = os.open("d", os.O_PATH)
        os.chmod("f", 0o666, dir_fd=base); check("fchmodat", os.fstat(fd).st_mode & 0o777 == 0o666)
        os.chdir("d"); os.chmod("f", 0o600); check("relative", os.fstat(fd).st_mode & 0o777 == 0o600); os.chdir("..")
        os.chmod("d", 0); os.chmod("d", 0o755); check("closed-directory", os.stat("d").st_mode & 0o777 == 0o755)
        os.unlink("d/f"); os.fchmod(fd, 0o640); check("unlinked", os.fstat(fd).st_mode & 0o777 == 0o640)
        memory = os.memfd_create("m"); os.fchmod(memory, 0o600); check("memory-file", os.fstat(memory).st_mode & 0o777 == 0o600)
        for place in (os.environ["HOME"], os.environ["TMPDIR"]):
            open(place + "/x", "w").close(); os.chmod(place + "/x", 0o640); check(place, os.stat(place + "/x").st_mode & 0o777 == 0o640)
        long = "d/" + "/".join(["n" * 200] * 15); os.makedirs(long); os.chmod(long, 0o700); check("long", os.stat(long).st_mode & 0o777 == 0o700)
        try:
            os.setxattr("d", "user.a", b"v" * 1000); check("setxattr", os.getxattr("d", "user.a") == b"v" * 1000)
            os.removexattr("d", "user.a"); check("removexattr", os.listxattr("d") == [])
        except OSError as error:
            check("setxattr", error.errno == errno.EOPNOTSUPP)
        for name, call in (("none", lambda: os.chmod("none", 0o600)), ("set-id", lambda: os.chmod("d", 0o4755))):
            attempt(name, call)
        """
        lines = "\n".join(line[8:] for line in script.splitlines())
        result = self.json(*self.python(lines))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result["stderr"])
        answers = self.answers(result["stdout"])
        self.assertEqual((answers.pop("none"), answers.pop("set-id")), ("ENOENT", "EPERM"))
        self.assertEqual({name: answer for name, answer in answers.items() if answer != "ok"}, {})
        self.assertGreater(len(answers), 18)

    def test_storms_are_answered_and_do_not_keep_the_run_from_ending(self) -> None:
        storm = "(while :; do chmod 600 attacker/secret; chmod 600 ../outside/secret; done) 2>/dev/null"
        script = f"i=0; while [ $i -lt 16 ]; do {storm} & i=$((i+1)); done; wait"
        done, result = self.status("--timeout", "2s", "--grace", "200ms", *self.sh(script), timeout=60)
        self.assertEqual(result["outcome"], "timeout", done.stderr)
        self.check_outside()

    def test_programs_that_change_metadata_a_lot(self) -> None:
        (self.work / "source").mkdir()
        for i in range(50):
            (self.work / "source" / f"f{i}").write_text(str(i))
            os.utime(self.work / "source" / f"f{i}", (1000 + i, 2000 + i))
        script = "tar cf a.tar source && mkdir out && tar xpf a.tar -C out && cp -a source copy && install -m 755 source/f1 tool"
        result = self.json(*self.sh(script))
        self.assertEqual((result["exit_code"], result["stderr"]), (0, ""))
        for top in (self.work / "out" / "source", self.work / "copy"):
            self.assertEqual([int((top / f"f{i}").stat().st_mtime) for i in range(50)], [2000 + i for i in range(50)])
        self.assertEqual((self.work / "tool").stat().st_mode & 0o777, 0o755)

    def test_a_filter_around_it_that_has_a_listener(self) -> None:
        """Then nothing can be asked, and the result says what does not hold."""
        words = [paths.tool("deny"), "userns", "listener", "--", paths.belljar(), "run", "--json", "--rung", "landlock", "--"]
        words += ["sh", "-c", "touch x; chmod 600 x; stat -c %a x"]
        done = subprocess.run(words, cwd=self.work, env=self.env, stdout=subprocess.PIPE, check=True, timeout=60)
        result = json.loads(done.stdout)
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", "600\n"))
        self.assertIn("metadata", self.missing(result))


@on_ways(LANDLOCK)
class KeptMetadata(KeptJarCase):
    """The same in a jar for many runs: each has a filter and a listener of its own."""

    def test_runs_change_their_own_files_only(self) -> None:
        outside = self.directory("outside")
        (outside / "secret").write_text("host")
        before = whole_picture(outside)
        jar = self.open()
        for i in range(3):
            script = f"touch f{i} && chmod 64{i} f{i} && stat -c %a f{i}; touch -d @5 $HOME/x; stat -c %Y $HOME/x; chmod 600 ../outside/secret"
            outcome = self.run_in(jar, self.script(script))
            self.assertEqual((outcome.stdout, outcome.result["exit_code"]), (f"64{i}\n5\n".encode(), 1), outcome.result)
            self.assertNotIn("metadata", [entry["name"] for entry in outcome.result["missing"]])
        self.assertEqual(whole_picture(outside), before)


@on_ways(NAMESPACE, LANDLOCK)
class FirstProcess(AttackCase):
    def test_nobody_changes_how_process_1_runs(self) -> None:
        """Layer: the filter. Process 1 keeps the time of the run; elsewhere it is the host's."""
        script = """
        import resource
        target = 1
        attempt("prlimit", lambda: resource.prlimit(target, resource.RLIMIT_CPU, (1, 1)))
        attempt("affinity", lambda: os.sched_setaffinity(target, {0}))
        attempt("scheduler", lambda: os.sched_setscheduler(target, os.SCHED_BATCH, os.sched_param(0)))
        attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, target, 19))
        attempt("group", lambda: os.setpriority(os.PRIO_PGRP, target, 19))
        attempt("user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
        attempt("own", lambda: os.setpriority(os.PRIO_PROCESS, 0, 5))
        attempt("own-limit", lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (100, 100)))
        """
        lines = "\n".join(line[8:] for line in script.splitlines())
        answers = self.answers(self.json(*self.python(lines))["stdout"])
        self.assertEqual((answers.pop("own"), answers.pop("own-limit")), ("ok", "ok"))
        self.assertEqual(set(answers.values()), {"EPERM"}, answers)
        self.assertEqual(len(answers), 6)


if __name__ == "__main__":
    unittest.main()
