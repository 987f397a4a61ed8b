# SPDX-License-Identifier: Apache-2.0
"""Where the command starts: what it can write there, who owns it, and which places are refused."""

from __future__ import annotations

import os
import stat
import unittest
from pathlib import Path
from typing import List

from harness import runner
from harness.case import JarCase, every_way, on_ways
from harness.runner import LANDLOCK, NAMESPACE, Arg

ODD_NAMES = (b"a b", b"new\nline", b"co:lon", b"com,ma", b"back\\slash", b"\xff\xfe", b"%s", b"'\"$x", b"-dash")


@every_way
class Workdir(JarCase):
    def test_the_current_directory_is_the_default(self) -> None:
        done = self.jar(*self.sh("pwd; cat given; echo made > made"), stdin=None, cwd=self.make_given())
        self.assertEqual((done.status, done.stdout), (0, f"{self.work}\ngiven\n".encode()), done)
        self.assertEqual((self.work / "made").read_text(), "made\n")

    def make_given(self) -> Path:
        (self.work / "given").write_text("given\n")
        return self.work

    def test_a_named_directory(self) -> None:
        other = self.directory("other")
        done = self.jar("-C", other, *self.sh("pwd; touch here"))
        self.assertEqual((done.status, done.stdout), (0, f"{other}\n".encode()), done)
        self.assertTrue((other / "here").exists())

    def test_a_relative_name_starts_at_the_current_directory(self) -> None:
        inner = self.directory("work/inner")
        done = self.jar("--workdir", "inner", *self.sh("pwd; touch here"))
        self.assertEqual((done.status, done.stdout), (0, f"{inner}\n".encode()), done)
        self.assertTrue((inner / "here").exists())

    def test_odd_names(self) -> None:
        for name in ODD_NAMES:
            with self.subTest(name=name):
                path = os.fsencode(self.base) + b"/" + name
                os.mkdir(path)
                os.chmod(path, 0o755)
                done = self.jar("-C", path, *self.sh("pwd; touch here"))
                self.assertEqual((done.status, done.stdout), (0, path + b"\n"), done)
                self.assertTrue(os.path.exists(path + b"/here"))

    def test_a_directory_that_is_called_none_is_named_with_a_slash(self) -> None:
        none = self.directory("work/none")
        done = self.jar("-C", "./none", *self.sh("touch here"))
        self.assertEqual(done.status, 0, done)
        self.assertTrue((none / "here").exists())

    def test_a_symlink_leads_to_its_target(self) -> None:
        target = self.directory("target")
        (self.base / "link").symlink_to(target)
        done = self.jar("-C", self.base / "link", *self.sh("touch here"))
        self.assertEqual(done.status, 0, done)
        self.assertTrue((target / "here").exists())

    def test_new_files_belong_to_the_caller(self) -> None:
        done = self.jar(*self.sh("touch file; mkdir dir; touch dir/file; ln -s x link"))
        self.assertEqual(done.status, 0, done)
        for name, mode in (("file", 0o644), ("dir", 0o755), ("dir/file", 0o644), ("link", None)):
            facts = (self.work / name).lstat()
            self.assertEqual((facts.st_uid, facts.st_gid), (os.geteuid(), os.getegid()), name)
            if mode is not None:
                self.assertEqual(stat.S_IMODE(facts.st_mode), mode, name)

    def test_the_umask_is_022_whatever_the_caller_has(self) -> None:
        done = self.jar(*self.sh("umask; touch file"), preexec_fn=lambda: os.umask(0o077) and None)
        self.assertEqual((done.status, done.stdout.strip()), (0, b"0022"), done)
        self.assertEqual(stat.S_IMODE((self.work / "file").stat().st_mode), 0o644)

    def test_the_callers_private_files_are_its_own_inside(self) -> None:
        (self.work / "mine").write_text("mine\n")
        (self.work / "mine").chmod(0o600)
        done = self.jar(*self.sh("cat mine && echo more >> mine && chmod 640 mine && test -O mine"))
        self.assertEqual((done.status, done.stdout), (0, b"mine\n"), done)
        self.assertEqual((self.work / "mine").read_text(), "mine\nmore\n")

    def test_the_uid_inside_is_the_callers(self) -> None:
        done = self.jar(*self.sh("id -u; id -g; id -G"))
        want = f"{os.geteuid()}\n{os.getegid()}\n{os.getegid()}\n".encode()
        self.assertEqual((done.status, done.stdout), (0, want), done)

    def test_files_can_be_renamed_linked_and_removed(self) -> None:
        script = "mkdir a b && echo x > a/f && mv a/f b/g && ln b/g b/h && rm b/g && cat b/h && rmdir a && rm -r b"
        done = self.jar(*self.sh(script))
        self.assertEqual((done.status, done.stdout), (0, b"x\n"), done)
        self.assertEqual(list(self.work.iterdir()), [])

    def test_refused_directories_run_nothing(self) -> None:
        canary = self.directory("canary")
        (self.base / "file").write_text("")
        (self.base / "dangling").symlink_to("nowhere")
        (self.base / "usr").symlink_to("/usr")
        self.directory("home/below")
        unfit: List[Arg] = ["/", "/usr", "/usr/bin", "/etc", "/bin", "/proc", self.home, self.base, self.base / "usr"]
        broken: List[Arg] = [self.base / "missing", self.base / "file", self.base / "dangling", ""]
        for path in unfit + broken:
            with self.subTest(path=str(path)):
                done, result = self.status("-C", path, "--rw", canary, *self.sh(f"touch {canary}/ran"))
                self.assertEqual((done.status, result["outcome"], done.stdout), (125, "failed", b""), done)
                self.assertNotIn(result["error"]["stage"], ("exec", "engine"))
                self.assertNotEqual(done.stderr, b"")
                if path in unfit:
                    self.assertTrue(result["error"]["hint"], result["error"])
                self.assertEqual(list(canary.iterdir()), [])

    def test_home_may_be_named_twice(self) -> None:
        done = self.jar("-C", self.home, "--rw", self.home, *self.sh("touch here"))
        self.assertEqual(done.status, 0, done)
        self.assertTrue((self.home / "here").exists())

    def test_an_unfit_default_is_replaced_and_said(self) -> None:
        (self.home / "secret").write_text("secret")
        for place in ("/", "/usr", str(self.home)):
            with self.subTest(place=place):
                done, result = self.status(*self.sh("ls -A; touch here && cat here"), cwd=place)
                self.assertEqual((done.status, done.stdout), (0, b""), done)
                self.assertNotEqual(done.stderr, b"", "stderr does not say that the workdir is private")
                said = {key: value for key, value in result.items() if key not in ("stdout", "stderr", "usage")}
                self.assertRegex(str(said).lower(), "workdir|work directory|/workspace|private")
                self.assertFalse((Path(place) / "here").exists())

    def test_no_workdir_is_private_empty_and_gone_afterwards(self) -> None:
        first = self.jar("-C", "none", *self.sh("ls -A; touch here; ls -A; pwd"))
        self.assertEqual(first.status, 0, first)
        self.assertEqual(first.stdout.split(b"\n")[0], b"here", first)
        second = self.jar("-C", "none", *self.sh("ls -A"))
        self.assertEqual((second.status, second.stdout), (0, b""), second)
        self.assertEqual(list(self.work.iterdir()), [])


@on_ways(NAMESPACE, LANDLOCK)
class WalledWorkdir(JarCase):
    def test_a_directory_below_home_is_fit(self) -> None:
        project = self.directory("home/project")
        (self.home / "secret").write_text("secret")
        done = self.jar("-C", project, *self.sh("pwd; touch here; cat ../secret"))
        self.assertEqual(done.stdout, f"{project}\n".encode(), done)
        self.assertTrue((project / "here").exists())

    def test_the_readonly_preset_keeps_the_workdir_as_it_is(self) -> None:
        (self.work / "file").write_text("old\n")
        script = "cat file; echo new > file; touch other; rm -f file; mkdir d; mv file gone; ln file hard; true"
        done = self.jar("--policy", "readonly", *self.sh(script))
        self.assertEqual((done.status, done.stdout), (0, b"old\n"), done)
        self.assertEqual([entry.name for entry in self.work.iterdir()], ["file"])
        self.assertEqual((self.work / "file").read_text(), "old\n")


class NamespaceWorkdir(JarCase):
    way = NAMESPACE

    def test_no_workdir_is_called_workspace(self) -> None:
        done = self.jar("-C", "none", "--", "pwd")
        self.assertEqual((done.status, done.stdout), (0, b"/workspace\n"), done)

    def test_an_unfit_default_is_called_workspace(self) -> None:
        done = self.jar("--", "pwd", cwd="/")
        self.assertEqual((done.status, done.stdout), (0, b"/workspace\n"), done)

    def test_neighbours_of_the_workdir_do_not_exist(self) -> None:
        (self.home / "secret").write_text("secret")
        self.directory("other")
        done = self.jar(*self.sh(f"ls -A {self.base}; ls -A {self.home}; cat {self.base}/other; ls /tmp"))
        self.assertNotIn(b"other\n", done.stdout)
        self.assertNotIn(b"secret", done.stdout)
        self.assertEqual(done.stdout.split(b"\n")[-2], self.base.name.encode())

    def test_a_workdir_below_home_hides_the_rest_of_home(self) -> None:
        project = self.directory("home/a/project")
        (self.home / "secret").write_text("secret")
        (self.home / "a" / "secret").write_text("secret")
        done = self.jar("-C", project, *self.sh("pwd; ls -A .. ; cat ../secret ../../secret; touch ok"))
        self.assertIn(b"project\n", done.stdout)
        self.assertNotIn(b"secret", done.stdout)
        self.assertTrue((project / "ok").exists())

    def test_a_hidden_workdir_is_refused_wherever_it_lies(self) -> None:
        """Below a private home nothing need be put over it."""
        for directory in (self.work, self.directory("home/below")):
            with self.subTest(directory=directory):
                self.assert_failed(self.jar("--hide", ".", "--", "true", cwd=directory), "is hidden")


class NoCurrentDirectory(JarCase):
    """Its directory was removed: a relative path means nothing then, and no path below the root directory either."""

    def refuse(self, verb: str, *words: str) -> None:
        gone = self.directory(f"gone{self.count}")
        self.count += 1
        done = runner.run(words, verb=verb, env=self.env, cwd=gone, preexec_fn=gone.rmdir)
        self.assert_failed(done, "the current directory no longer exists")

    def test_relative_paths_are_refused(self) -> None:
        self.count = 0
        self.refuse("run", "-C", "srv", "--", "true")
        self.refuse("run", "-C", "none", "--ro", "etc", "--", "true")
        self.refuse("run", "-C", "none", "--tighten", "etc/x.json", "--", "true")
        self.refuse("why", "./etc")

    def test_absolute_ones_and_none_will_do(self) -> None:
        gone = self.directory("gone")
        done = self.jar("-C", "none", "--ro", "/usr", "--cd", ".", "--", "true", cwd=gone, preexec_fn=gone.rmdir)
        self.assertEqual(done.status, 0, done)


if __name__ == "__main__":
    unittest.main()
