# SPDX-License-Identifier: Apache-2.0
"""git inside a jar: everyday commands work, and what the host's git would later execute cannot be changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any, List

from harness.case import JarCase, every_way, on_ways
from harness.runner import LANDLOCK, NAMESPACE, Completed

CONFIG = """\
; the caller's own
[core]
\tpager = /home/evil/pager
[user "work"]
\temail = other@example.org
[User]
\tname = "Ada \\"Countess\\" Lovelace" # quoted
\tEMAIL = ada@example.org ; and a comment
[credential]
\thelper = store
"""


class GitCase(JarCase):
    """A test with a repository, made outside, that has one commit on the branch main."""

    def setUp(self) -> None:
        super().setUp()
        if not shutil.which("git"):
            self.skipTest("needs:program git")
        (self.home / ".gitconfig").write_text(CONFIG)
        self.repository(self.work)

    def outside(self, *args: Any, cwd: Any = None, check: bool = True) -> str:
        """git on the host, with the caller's home."""
        done = subprocess.run(
            ["git", *map(str, args)], cwd=cwd or self.work, env=self.env, capture_output=True, text=True, timeout=30
        )
        if check and done.returncode:
            raise AssertionError(f"git {args}: {done.stderr}")
        return done.stdout.strip()

    def repository(self, path: Path) -> None:
        self.outside("init", "-q", "-b", "main", path, cwd=self.base)
        (path / "file").write_text("one\n")
        (path / "sub").mkdir()
        (path / "sub" / "inner").write_text("one\n")
        self.outside("add", ".", cwd=path)
        self.outside("commit", "-q", "-m", "first", cwd=path)

    def git(self, script: str, *options: Any, **more: Any) -> Completed:
        """A script in a jar that must succeed."""
        done = self.jar(*options, *self.sh("set -e; " + script), **more)
        self.assertEqual(done.status, 0, done)
        return done

    def subjects(self, *args: Any, cwd: Any = None) -> List[str]:
        return self.outside("log", "--format=%s", *args, "--", cwd=cwd).splitlines()


@every_way
class Git(GitCase):
    def test_status_add_and_commit(self) -> None:
        done = self.git(
            "git status --short; echo two > file; echo new > new; git add -A; git commit -q -m second; git log --format=%s"
        )
        self.assertEqual(done.stdout.split(), [b"second", b"first"])
        self.assertEqual(self.subjects(), ["second", "first"])
        self.assertEqual(self.outside("log", "-1", "--format=%an <%ae>"), 'Ada "Countess" Lovelace <ada@example.org>')
        self.assertEqual(self.outside("status", "--porcelain"), "")
        self.outside("fsck", "--strict")
        owners = {path.stat().st_uid for path in self.work.rglob("*")}
        self.assertEqual(owners, {os.getuid()})

    def test_branch_checkout_merge_stash_tag_and_rebase(self) -> None:
        self.git(
            "git branch topic; git checkout -q topic; echo topic > topic; git add .; git commit -q -m topic;"
            "git checkout -q main; echo main > main; git add .; git commit -q -m main;"
            "git merge -q -m merged topic; git tag v1; git tag -a -m annotated v2;"
            "echo dirty > file; git stash -q; git diff --quiet; git stash pop -q; ! git diff --quiet; git checkout -q file;"
            "git checkout -q -b moved HEAD~1; echo more > more; git add .; git commit -q -m more; git rebase -q main"
        )
        self.assertEqual(set(self.subjects("main")), {"first", "topic", "main", "merged"})
        self.assertEqual(self.subjects("-1", "moved"), ["more"])
        self.assertEqual(self.outside("tag").split(), ["v1", "v2"])

    def test_a_local_clone(self) -> None:
        self.git(
            "git clone -q . copy; cd copy; echo x > x; git add .; git commit -q -m inside; git push -q origin HEAD:refs/heads/pushed"
        )
        self.assertEqual(self.subjects("-1", "pushed"), ["inside"])
        self.git(
            "git clone -q --bare . $TMPDIR/bare.git; git clone -q $TMPDIR/bare.git $TMPDIR/again; cat $TMPDIR/again/file"
        )

    def test_gc_and_fsck(self) -> None:
        self.git("git gc -q; git fsck --strict; git pack-refs --all; git branch gone; git branch -q -d gone")
        self.outside("fsck", "--strict")

    def test_a_new_repository(self) -> None:
        plain = self.directory("plain")
        self.git("git init -q -b main .; echo x > x; git add .; git commit -q -m fresh", "-C", plain)
        self.assertEqual(self.subjects(cwd=plain), ["fresh"])

    def test_author_and_committer_of_the_environment(self) -> None:
        self.env.update(GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@x", GIT_COMMITTER_NAME="C", GIT_COMMITTER_EMAIL="c@x")
        self.git("git commit -q --allow-empty -m second")
        self.assertEqual(self.outside("log", "-1", "--format=%an %ae %cn %ce"), "A a@x C c@x")

    def test_nothing_else_of_the_callers_configuration(self) -> None:
        done = self.git("cat ~/.gitconfig; git config --global --list")
        self.assertNotIn(b"pager", done.stdout)
        self.assertNotIn(b"helper", done.stdout)
        self.assertIn(b"safe.directory=" + os.fsencode(self.work), done.stdout)

    def test_other_places_of_the_configuration(self) -> None:
        (self.home / ".gitconfig").unlink()
        config = self.home / ".config" / "git" / "config"
        config.parent.mkdir(parents=True)
        config.write_text("[user]\nname=X\nemail=x@dg\n")
        self.git('test "$(git config user.name)" = X')
        other = self.home / "other"
        other.write_text("[user]\nname=Other\n")
        self.env["GIT_CONFIG_GLOBAL"] = str(other)
        self.git('test "$(git config user.name)" = Other; test -z "$(git config user.email)"')
        self.env["GIT_CONFIG_GLOBAL"] = "/dev/null"
        self.git('test -z "$(git config user.name)"')

    def test_what_ci_says_to_git_brings_no_warning(self) -> None:
        environments = [
            {"GIT_CONFIG_GLOBAL": "/dev/null"}, {"GIT_CONFIG_SYSTEM": "/dev/null"}, {"GIT_CONFIG_NOSYSTEM": "1"},
            {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
            {"GIT_CONFIG_GLOBAL": ""}, {"GIT_CONFIG_GLOBAL": "/nonexistent"}, {"GIT_CONFIG_GLOBAL": str(self.base)},
            {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"},
            {"GIT_DIR": str(self.work / ".git")}, {"GIT_DIR": ".git", "GIT_WORK_TREE": "."},
            {"HOME": "/"}, {"HOME": ""}, {"HOME": "/nonexistent"}, {"HOME": "/dev/null"}, {"XDG_CONFIG_HOME": "/dev/null"},
            {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "echo", "GIT_EDITOR": ":", "GIT_PAGER": "cat", "CI": "true"},
        ]
        for environment in environments:
            with self.subTest(environment=environment):
                done = self.belljar("run", *self.way.options, "--", "true", env={**self.env, **environment})
                self.assertEqual((done.status, done.stderr), (0, b""))
        done = self.belljar("run", *self.way.options, "--", "true", env={"PATH": self.env["PATH"]})
        self.assertEqual((done.status, done.stderr), (0, b""))

    def test_odd_names_of_the_workdir_are_safe_directories(self) -> None:
        for name in ('q"uote', "back\\slash", "new\nline", "sp ace#;"):
            with self.subTest(name=name):
                self.repository(self.base / name)
                done = self.git("git config --global --get-all -z safe.directory", "-C", self.base / name)
                self.assertEqual(done.stdout, os.fsencode(self.base / name) + b"\0")

    def test_from_a_subdirectory(self) -> None:
        done = self.git(
            "echo two > inner; git add inner; git commit -q -m second; git status --short; cat ../file", "-C", "sub"
        )
        self.assertEqual(done.stdout, b"one\n")
        self.assertEqual(self.subjects(), ["second", "first"])

    def test_a_linked_worktree(self) -> None:
        tree = self.base / "tree"
        self.outside("worktree", "add", "-q", "-b", "linked", tree)
        self.git(
            "git status --short; echo two > file; git commit -q -a -m linked; git stash list; git log --oneline",
            "-C",
            tree,
        )
        self.assertEqual(self.subjects(cwd=tree), ["linked", "first"])
        self.assertEqual(self.subjects(), ["first"])
        self.git(
            "cd ..; echo three > sub/inner; git commit -q -a -m deeper", "-C", tree, "--rw", tree / "sub", "--cd", "sub"
        )
        self.assertEqual(self.subjects("-1", cwd=tree), ["deeper"])

    def test_a_subdirectory_of_a_linked_worktree(self) -> None:
        tree = self.base / "tree"
        self.outside("worktree", "add", "-q", "-b", "linked", tree)
        self.git("echo two > inner; git commit -q -a -m inner; cat ../file", "-C", tree / "sub")
        self.assertEqual(self.subjects("-1", cwd=tree), ["inner"])

    def test_a_worktree_of_a_bare_repository(self) -> None:
        bare, tree = self.base / "bare.git", self.base / "tree"
        self.outside("clone", "-q", "--bare", self.work, bare)
        self.outside("worktree", "add", "-q", tree, "main", cwd=bare)
        self.git("echo two > file; git commit -q -a -m bare", "-C", tree)
        self.assertEqual(self.subjects("-1", cwd=tree), ["bare"])

    def test_a_submodule(self) -> None:
        other = self.base / "other"
        self.repository(other)
        self.outside("-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "module")
        self.outside("commit", "-q", "-m", "module")
        module = self.work / "module"
        self.outside("checkout", "-q", "-B", "main", cwd=module)
        self.git("git status --short; echo two > file; git commit -q -a -m inside", "-C", module)
        self.assertEqual(self.subjects(cwd=module), ["inside", "first"])
        self.git("git status --short; git submodule status; git commit -q -a -m outer")
        self.assertEqual(self.subjects("-1"), ["outer"])


@on_ways(NAMESPACE, LANDLOCK)
class GitInSight(GitCase):
    def test_the_rest_of_the_repository_is_read_only(self) -> None:
        done = self.jar("-C", "sub", *self.sh("echo two > ../file"))
        self.assertNotEqual(done.status, 0)
        self.assertEqual((self.work / "file").read_text(), "one\n")

    def test_a_git_file_shows_nothing_that_does_not_point_back(self) -> None:
        """An earlier command wrote the .git file; what it names must stay out of sight."""
        victim, plain = self.base / "victim", self.directory("plain")
        self.repository(victim)
        self.outside("worktree", "add", "-q", "-b", "x", self.base / "tree", cwd=victim)
        for target in (victim / ".git", victim / ".git" / "worktrees" / "tree", self.home, victim):
            with self.subTest(target=target):
                (plain / ".git").write_text(f"gitdir: {target}\n")
                done = self.jar(
                    "-C", plain, *self.sh(f"git log; cat {victim}/file {victim}/.git/config {self.home}/.gitconfig")
                )
                self.assertNotIn(b"[core]", done.stdout)
                self.assertNotIn(b"first", done.stdout)
                self.assertNotIn(b"one", done.stdout)

    def test_a_read_only_workdir(self) -> None:
        tree = self.base / "tree"
        self.outside("worktree", "add", "-q", "-b", "linked", tree)
        for path in (self.work, tree):
            with self.subTest(path=path):
                done = self.jar(
                    "-C",
                    path,
                    "--workdir-mode",
                    "ro",
                    *self.sh("git log --format=%s; git commit -q --allow-empty -m no"),
                )
                self.assertNotEqual(done.status, 0, done)
                self.assertEqual(done.stdout, b"first\n")


@on_ways(NAMESPACE)
class GitGuard(GitCase):
    def test_from_a_subdirectory_under_a_layer(self) -> None:
        """A layer is another file system, which git does not leave by itself."""
        done = self.git("echo two > inner; git status --short; git diff --stat; git log --format=%s", "-C", "sub", "--cow")
        self.assertEqual(done.stdout.splitlines()[0], b" M inner")
        self.assertEqual(done.stdout.splitlines()[-1], b"first")
        self.assertEqual(self.outside("status", "--short"), "")

    def refused(self, script: str, *options: Any) -> None:
        done = self.jar(*options, *self.sh(script))
        self.assertNotEqual(done.status, 0, done)

    def test_the_homes_configuration_cannot_be_changed_or_replaced(self) -> None:
        for script in (
            "echo x >> ~/.gitconfig",
            "rm -f ~/.gitconfig",
            "mv ~/.gitconfig ~/x",
            "echo x > ~/x; mv ~/x ~/.gitconfig",
            "chmod 666 ~/.gitconfig",
            "git config --global a.b c",
            "ln -sf /dev/null ~/.gitconfig",
        ):
            with self.subTest(script=script):
                self.refused(script)

    def test_hooks_and_configuration_cannot_be_changed(self) -> None:
        for path in (".", "sub"):
            for script in (
                "echo x > $G/hooks/pre-commit",
                "rm -r $G/hooks",
                "mv $G/hooks $G/x",
                "echo x >> $G/config",
                "git config core.fsmonitor x",
                "mv $G/config $G/x",
                "mv $G $G.x",
                "rm -rf $G/hooks $G/config",
            ):
                with self.subTest(path=path, script=script):
                    self.refused(f"G=$(git rev-parse --git-dir); {script}", "-C", path)
        self.assertEqual(self.subjects(), ["first"])
        self.assertTrue((self.work / ".git" / "config").exists())

    def test_rw_lifts_the_protection(self) -> None:
        self.git("git config my.key value", "--rw", ".git/config")
        self.assertEqual(self.outside("config", "my.key"), "value")
        self.git("echo x > .git/hooks/pre-commit", "--rw", ".git/hooks")
        self.refused("echo x > .git/hooks/pre-commit", "--rw", ".git")

    def test_a_linked_worktrees_repository_is_guarded_too(self) -> None:
        tree, other = self.base / "tree", self.base / "other"
        self.outside("worktree", "add", "-q", "-b", "linked", tree)
        self.outside("worktree", "add", "-q", "-b", "other", other)
        for script in (
            "echo x > $C/hooks/pre-commit",
            "echo x >> $C/config",
            "git config core.fsmonitor x",
            "mv $C $C.x",
            "echo /tmp > $G/commondir",
            "echo /tmp > $G/gitdir",
            "rm $G/commondir",
            "mv $G $G.x",
            "echo x > $C/worktrees/other/HEAD",
            "mkdir $C/worktrees/new",
            "echo x > .git",
            "mv .git x",
            f"cat {self.work}/file",
        ):
            with self.subTest(script=script):
                self.refused(f"C=$(git rev-parse --git-common-dir); G=$(git rev-parse --git-dir); {script}", "-C", tree)
        self.assertEqual(self.subjects(cwd=tree), ["first"])
        self.assertEqual(self.subjects(cwd=other), ["first"])

    def test_a_submodules_repository_is_guarded_too(self) -> None:
        self.repository(self.base / "other")
        self.outside("-c", "protocol.file.allow=always", "submodule", "add", "-q", self.base / "other", "module")
        for script in ("echo x > $G/hooks/pre-commit", "git config a.b c", "mv $G $G.x", "echo x > .git"):
            with self.subTest(script=script):
                self.refused(f"G=$(git rev-parse --git-dir); {script}", "-C", "module")
        self.refused("echo x > .git/modules/module/config")

    def test_a_repository_in_a_directory_beside_its_git_file_is_guarded(self) -> None:
        project = self.directory("project")
        self.outside("clone", "-q", "--bare", self.work, project / ".bare")
        (project / ".git").write_text("gitdir: ./.bare\n")
        for script in ("echo x > .bare/hooks/pre-commit", "echo x >> .bare/config", "mv .bare x"):
            with self.subTest(script=script):
                self.refused(script, "-C", project)
        self.git("git branch new", "-C", project)

    def test_what_appears_in_a_repository_is_risky(self) -> None:
        shutil.rmtree(self.work / ".git" / "hooks")
        result = self.json(
            *self.sh(
                "cd .git; echo /tmp > commondir; mkdir hooks modules worktrees; touch config.worktree info/attributes"
            )
        )
        self.assertEqual(
            {Path(item["path"]).relative_to(self.work).as_posix() for item in result["risky"]},
            {
                ".git/commondir",
                ".git/hooks",
                ".git/modules",
                ".git/worktrees",
                ".git/config.worktree",
                ".git/info/attributes",
            },
        )

    def test_what_appears_in_a_linked_worktrees_repository_is_risky(self) -> None:
        tree = self.base / "tree"
        self.outside("worktree", "add", "-q", "-b", "linked", tree)
        shutil.rmtree(self.work / ".git" / "hooks")
        result = self.json(
            "-C",
            tree,
            *self.sh("cd $(git rev-parse --git-common-dir); mkdir hooks; cd worktrees/tree; touch config.worktree"),
        )
        self.assertEqual(result["exit_code"], 0, result)
        self.assertEqual(
            {Path(item["path"]).relative_to(self.work).as_posix() for item in result["risky"]},
            {".git/hooks", ".git/worktrees/tree/config.worktree"},
        )

    def test_a_new_git_file_is_risky(self) -> None:
        plain = self.directory("plain")
        result = self.json("-C", plain, *self.sh("echo gitdir: /tmp/x > .git"))
        self.assertEqual([item["path"] for item in result["risky"]], [str(plain / ".git")])


if __name__ == "__main__":
    unittest.main()
