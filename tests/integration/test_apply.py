# SPDX-License-Identifier: Apache-2.0
"""`diff`, `apply`, `discard` and `workspace`, of layers that real commands have written."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tarfile
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

from harness import paths
from harness.bounds import BOUND
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE, Completed
from harness.terminal import Terminal
from harness.workspace_case import CHANGES, RANDOM_CHANGES, WorkspaceCase, tree

# How long random changes are made and compared; more with BELLJAR_TEST_SOAK, in seconds.
PROPERTY_SECONDS = float(os.environ.get("BELLJAR_TEST_SOAK", "2"))

class ApplyCase(WorkspaceCase):
    """With the commands that decide."""

    def decide(self, *words: str, status: int = 0) -> Completed:
        done = self.belljar(*words)
        self.assertEqual(done.status, status, done)
        return done

    def diff(self, *words: str) -> List[str]:
        """The lines of a summary that are changes."""
        lines = self.decide("diff", *words).stdout.decode("utf-8", "surrogateescape").splitlines()
        return [line for line in lines if line[1:2] in set("AMTmDR") and line[2:3] == " "]

    def cow(self, script: str, *options: str) -> Dict[str, Any]:
        result = self.json("--cow", *options, *self.sh(script))
        self.assertEqual(result["exit_code"], 0, result)
        return self.layer(result)


@on_ways(NAMESPACE, LANDLOCK)
class Applied(ApplyCase):
    """Layer or copy: afterwards the workdir is as if the command had worked in it."""

    def test_the_same_changes_arrive(self) -> None:
        self.fill(self.work)
        native = self.base / "native"
        shutil.copytree(self.work, native, symlinks=True)
        (self.work / "hard2").unlink()  # a second name for a file is a file of its own in a layer
        (self.work / "hard2").write_text("hard1\n")
        subprocess.run(["sh", "-c", CHANGES], cwd=native, check=True)
        self.cow(CHANGES)
        self.decide("apply")
        self.assertEqual(tree(self.work), tree(native))
        self.assertEqual(self.stores(), [])

    def test_what_its_owner_may_not_read_arrives(self) -> None:
        (self.work / "old").write_text("old\n")
        self.cow("chmod 0 old; echo new > new; chmod 0200 new; ln new also")
        self.decide("apply")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in self.work.iterdir()}
        self.assertEqual(modes, {"old": 0, "new": 0o200, "also": 0o200})
        self.assertEqual((self.work / "new").stat().st_ino, (self.work / "also").stat().st_ino)
        for path in self.work.iterdir():
            path.chmod(0o600)
        self.assertEqual({path.read_text() for path in self.work.iterdir()}, {"old\n", "new\n"})
        self.assertEqual(self.stores(), [])

    def test_a_directory_that_nobody_may_look_into_is_not_lost(self) -> None:
        (self.work / "old").mkdir()
        made = self.cow("mkdir new; echo x > new/f; chmod 0 new; echo x > old/f; chmod 0 old")
        if os.geteuid() != 0:
            done = self.decide("apply", "--allow-risky", ".", status=1)
            self.assertIn(b"refused: new: its permissions keep Belljar from reading it", done.stderr)
            result = self.json("--workspace", made["id"], *self.sh("chmod 700 new old"))
            self.assertEqual(result["exit_code"], 0, result)
        self.decide("apply")
        for name in ("new", "old"):
            (self.work / name).chmod(0o700)
            self.assertEqual((self.work / name / "f").read_text(), "x\n")

    def test_directories_that_change_places_take_all_along(self) -> None:
        for path in ("a/e/b", "a/f/b", "s/e", "s/f"):
            (self.work / path).mkdir(parents=True)
        (self.work / "a/f/b/c").write_text("x\n")
        self.json("--cow", *self.sh("mv a t; mv s a; mv t s"))
        self.decide("apply")
        self.assertEqual(sorted(path.relative_to(self.work).as_posix() for path in self.work.rglob("*")), [
            "a", "a/e", "a/f", "s", "s/e", "s/e/b", "s/f", "s/f/b", "s/f/b/c",
        ])

    def test_random_changes_arrive(self) -> None:
        until = time.monotonic() + PROPERTY_SECONDS
        seed = random.SystemRandom().randrange(1 << 30)
        rounds = 0
        while rounds == 0 or time.monotonic() < until:
            seed += 1
            rounds += 1
            with self.subTest(seed=seed):
                native = self.base / "native"
                for top in (self.work, native):
                    subprocess.run(["rm", "-rf", top], check=True)
                    top.mkdir()
                for top in (self.work, native):
                    subprocess.run([sys.executable, "-c", RANDOM_CHANGES, str(seed), "60"], cwd=top, check=True)
                    # Links between what was there before are broken by a layer; begin without any.
                    for path in top.rglob("*"):
                        if path.is_file() and not path.is_symlink() and path.lstat().st_nlink > 1:
                            copy = path.with_name("copy")
                            shutil.copy2(path, copy)
                            copy.replace(path)
                self.assertEqual(tree(self.work), tree(native))
                change = [sys.executable, "-c", RANDOM_CHANGES, str(seed + (1 << 31)), "60"]
                subprocess.run(change, cwd=native, check=True)
                result = self.json("--cow", "--", "python3", *change[1:])
                self.assertEqual(result["exit_code"], 0, result)
                if self.layer(result)["id"]:
                    self.decide("apply")
                ours, theirs = tree(self.work), tree(native)
                different = {path: (ours.get(path), theirs.get(path)) for path in {*ours, *theirs} if ours.get(path) != theirs.get(path)}
                self.assertEqual(different, {})
                self.assertEqual(self.stores(), [])

    def test_a_conflict_is_told_and_nothing_of_it_written(self) -> None:
        self.fill(self.work)
        self.cow("echo theirs > changed; rm removed; echo new > new")
        (self.work / "changed").write_text("ours\n")
        (self.work / "removed").write_text("ours\n")
        self.assertEqual(
            [line[:10] for line in self.diff()], ["!M changed", " A new", "!D removed"]
        )
        done = self.decide("apply", status=1)
        self.assertIn(b"conflict: changed: changed in the workdir since", done.stderr)
        self.assertEqual((self.work / "changed").read_text(), "ours\n")
        self.assertEqual((self.work / "removed").read_text(), "ours\n")
        self.assertEqual((self.work / "new").read_text(), "new\n")
        self.decide("apply", "--theirs", "changed", "--ours", "removed")
        self.assertEqual((self.work / "changed").read_text(), "theirs\n")
        self.assertEqual((self.work / "removed").read_text(), "ours\n")

    def test_a_partial_apply_takes_only_what_was_named(self) -> None:
        self.fill(self.work)
        self.cow("rm removed changed; mkdir d; echo 1 > d/one; echo 2 > d/two; rm -r tree")
        self.decide("apply", "d/one", "removed")
        self.assertFalse((self.work / "removed").exists())
        self.assertTrue((self.work / "changed").exists())
        self.assertTrue((self.work / "tree/a/b").exists())
        self.assertEqual(os.listdir(self.work / "d"), ["one"])
        self.assertEqual(self.diff(), [" D changed", " A d/two", " D tree/", " D tree/a/", " D tree/a/b"])
        if self.way is NAMESPACE:
            self.decide("discard", "tree")
            self.assertEqual(self.diff(), [" D changed", " A d/two"])
        self.decide("discard")
        self.assertEqual(self.stores(), [])


@on_ways(NAMESPACE)
class Shown(ApplyCase):
    """What people and programs see of it."""

    def test_git_takes_the_patch(self) -> None:
        if not shutil.which("git"):
            self.skipTest("needs:git")
        self.fill(self.work)
        script = (
            "printf 'no end' > no_newline; printf 'a\\0b' > binary; head -c 100000 /dev/urandom > noise; chmod +x mode;"
            "ln -sf elsewhere symlink; rm removed; mkdir 'd e'; echo x > 'd e/f g'; echo x > \"$(printf 'q\"\\\\\\n\\303\\244\\377')\";"
            "seq 300 > lines; mv moved renamed; : > empty; seq 200 | sed s/77/x/ > grown; rm tree/a/b; ln -s x tree/a/b"
        )
        (self.work / "grown").write_text("".join(f"{i}\n" for i in range(1, 201)))
        twin = self.base / "twin"
        shutil.copytree(self.work, twin, symlinks=True)
        self.cow(script)
        patch = self.decide("diff", "--patch").stdout
        self.assertEqual(patch, self.decide("workspace", "export").stdout)
        subprocess.run(["git", "apply", "-"], input=patch, cwd=twin, check=True, timeout=BOUND, env={**self.env, "GIT_CEILING_DIRECTORIES": str(self.base)})
        self.decide("apply")
        self.assertEqual(
            {path: facts for path, facts in tree(twin).items()}, {path: facts for path, facts in tree(self.work).items()}
        )

    def git(self, *words: str, status: int = 0, **more: Any) -> bytes:
        env = {**self.env, "GIT_CEILING_DIRECTORIES": str(self.base), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            env.update({f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b.test"})
        done = subprocess.run(["git", *words], cwd=self.work, env=env, capture_output=True, timeout=BOUND, **more)
        self.assertEqual(done.returncode, status, done)
        return done.stdout

    def commit_texts(self, *names: str) -> None:
        for name in names:
            (self.work / name).write_text("".join(f"line {i}\n" for i in range(20)))
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.work / name
        path.write_text(path.read_text().replace(f"{old}\n", f"{new}\n"))

    def test_git_merges_the_patch_of_a_conflict(self) -> None:
        if not shutil.which("git"):
            self.skipTest("needs:git")
        self.commit_texts("apart", "same", "removed")
        self.cow("sed -i 's/^line 15$/theirs/' apart same; sed -i 's/^line 3$/theirs/' same")
        for name in ("apart", "same"):
            self.edit(name, "line 3", "ours")
        done = self.decide("apply", status=1)
        self.assertIn(b"| git apply --3way", done.stderr)
        self.git("add", "apart", "same")
        self.git("apply", "--3way", input=self.decide("diff", "--patch", "apart").stdout)
        expected = "".join(f"line {i}\n" for i in range(20)).replace("line 3\n", "ours\n").replace("line 15\n", "theirs\n")
        self.assertEqual((self.work / "apart").read_text(), expected)
        self.git("apply", "--3way", input=self.decide("diff", "--patch", "same").stdout, status=1)
        merged = (self.work / "same").read_text()
        self.assertIn("<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs\n", merged)
        self.assertEqual(merged.count("theirs\n"), 3, merged)
        self.decide("apply", "--ours", ".")
        self.assertEqual((self.work / "apart").read_text(), expected)
        self.assertEqual(self.stores(), [])

    def test_a_conflict_whose_first_version_was_not_kept_is_named(self) -> None:
        (self.work / "small").write_text("x\n")
        (self.work / "large").write_text("x\n" * 200000)
        self.cow("echo theirs >> small; echo theirs >> large")
        for name in ("small", "large"):
            (self.work / name).write_text("ours\n")
        said = self.decide("diff", "--patch").stderr
        self.assertIn(b"conflict: large: Belljar did not keep the version before both changes", said)
        self.assertNotIn(b"conflict: small", said)

    def test_git_checks_a_binary_file_by_its_name_in_the_patch(self) -> None:
        if not shutil.which("git"):
            self.skipTest("needs:git")
        (self.work / "binary").write_bytes(b"a\0b")
        self.commit_texts("text")
        self.cow("printf 'c\\0d' > binary")
        patch = self.decide("diff", "--patch").stdout
        self.git("apply", "--binary", "--3way", input=patch)
        self.assertEqual((self.work / "binary").read_bytes(), b"c\0d")
        (self.work / "binary").write_bytes(b"ours\0")
        self.git("apply", "--binary", input=patch, status=1)
        self.assertEqual((self.work / "binary").read_bytes(), b"ours\0")

    def test_every_deletion_has_a_line(self) -> None:
        (self.work / "many").mkdir()
        for index in range(300):
            (self.work / f"many/{index}").write_text("x")
        self.cow("rm -r many")
        self.assertEqual(len(self.diff()), 301)
        self.decide("apply")
        self.assertEqual(os.listdir(self.work), [])

    def test_json_has_digests_of_both_sides(self) -> None:
        self.fill(self.work)
        self.cow("printf abc > changed; chmod 600 mode; rm removed; mv moved elsewhere")
        found = json.loads(self.decide("diff", "--json").stdout)
        changes = {change["path"]: change for change in found["changes"]}
        self.assertEqual(found["workdir"], str(self.work))
        self.assertEqual(
            changes["changed"]["after"]["sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        )
        self.assertEqual(changes["removed"]["after"], None)
        self.assertEqual((changes["mode"]["change"], changes["mode"]["after"]["mode"]), ("mode", "0600"))
        self.assertEqual(changes["elsewhere"]["renamed_from"], "moved")

    def test_names_cannot_steer_a_terminal(self) -> None:
        self.cow("echo x > \"$(printf 'a\\033[2Jb\\nM c')\"")
        out = self.decide("diff").stdout
        self.assertNotIn(b"\x1b", out)
        self.assertEqual(len(self.diff()), 1)

    def test_the_archive_has_what_is_new(self) -> None:
        self.fill(self.work)
        self.cow("echo new > new; mkdir -p deep/er; ln -s new link; rm removed; echo more >> changed")
        archive = tarfile.open(fileobj=io.BytesIO(self.decide("workspace", "export", "--tar").stdout))
        self.assertEqual(archive.getnames(), ["changed", "deep", "deep/er", "link", "new"])
        member = archive.extractfile("changed")
        self.assertEqual(member.read() if member else b"", b"changed\nmore\n")

    def test_what_others_obey_is_refused_and_told_apart(self) -> None:
        self.cow("echo x > .envrc; echo x > Makefile; echo '#!/bin/sh' > tool; chmod +x tool; ln -s /etc/passwd out")
        out = self.decide("diff").stdout.decode()
        refused, apart = out.split("Look at these")
        self.assertIn(".envrc: ", refused.split("Not applied")[1])
        self.assertIn("out: the link leads out", refused.split("Not applied")[1])
        self.assertIn("Makefile: ", apart)
        self.assertIn("tool: a program that is new", apart)
        self.decide("apply", status=1)
        self.assertEqual(sorted(os.listdir(self.work)), ["Makefile", "tool"])
        self.decide("apply", "--allow-risky", "out", "--allow-risky", ".envrc")
        self.assertEqual(sorted(os.listdir(self.work)), [".envrc", "Makefile", "out", "tool"])


@on_ways(NAMESPACE)
class Named(ApplyCase):
    """Workspaces that stay."""

    def test_checkpoints_and_forks_on_disk(self) -> None:
        self.fill(self.work)
        self.cow("echo one > one", "--workspace", "w")
        first = self.decide("workspace", "checkpoint", "w", "first").stdout.decode().strip()
        self.cow("echo two > two; rm removed", "--workspace", "w")
        self.assertEqual(self.diff("w"), [" A one", " D removed", " A two"])
        forks = self.decide("workspace", "fork", "w", "3").stdout.decode().split()
        self.assertEqual(len(forks), 3)
        self.cow("echo three > three; rm two", "--workspace", forks[1])
        self.assertEqual(self.diff(forks[1]), [" A one", " D removed", " A three"])
        self.assertEqual(self.diff(forks[0]), [" A one", " D removed", " A two"])
        self.decide("workspace", "rollback", "w", first)
        self.assertEqual(self.diff("w"), [" A one"])
        self.assertIn("first", self.decide("workspace", "show", "w").stdout.decode())
        self.decide("apply", forks[1])
        self.assertEqual((self.work / "three").read_text(), "three\n")
        self.assertFalse((self.work / "removed").exists())
        for fork in (forks[0], forks[2]):
            self.decide("discard", fork)
        for words in (("show", "nosuch"), ("export", "nosuch"), ("remove", "nosuch"), ("checkpoint", "nosuch", "note"), ("show", "bab-bab")):
            done = self.decide("workspace", *words, status=125)
            self.assertIn(b"there is no workspace '" + words[1].encode(), done.stderr)
            self.assertIn(b"(w)", done.stderr)
        self.decide("workspace", "remove", "w")
        self.assertEqual(self.stores(), [])
        self.assertEqual(self.decide("workspace", "list").stdout, b"")

    def test_renamed_directories_and_checkpoints(self) -> None:
        """Each time as if all commands had worked in the directory itself; an ordinary user's `mv` copies."""
        for commands in (
            ("mv x a", "mv a/b c"),
            ("mv x a", "mv a z"),
            ("mv x a; mkdir x; echo o > x/o", "mv a z; mv x a"),
            ("rm -r x; mkdir -p x/b; echo 1 > x/b/1", "mv x/b c"),
            ("rm -r x/b; echo file > x/b", "mv x a; rm a/b; mkdir a/b; mv a/b y/b"),
            ("echo 1 > x/b/1; rm x/b/f", "mv x a; echo 2 > a/b/2", "mv a/b y; rm y/b/1"),
            ("mv x y/x", "mv y z", "mv z/x x; mv z y"),
        ):
            with self.subTest(commands=commands):
                self.belljar("discard", "steps")
                native = self.base / "native"
                for top in (self.work, native):
                    subprocess.run(["rm", "-rf", top], check=True)
                    for name in ("x/b/f", "x/g", "y/h"):
                        (top / name).parent.mkdir(parents=True, exist_ok=True)
                        (top / name).write_text(f"{name}\n")
                for command in commands:
                    subprocess.run(["sh", "-ec", command], cwd=native, check=True)
                    self.cow(f"set -e; {command}", "--workspace", "steps")
                    if command != commands[-1]:
                        self.decide("workspace", "checkpoint", "steps")
                self.decide("apply", "steps")
                self.assertEqual(tree(self.work), tree(native))

    def test_a_named_one_begins_anew_when_it_was_applied(self) -> None:
        (self.work / "f").write_text("0\n")
        self.cow("echo 1 >> f", "--workspace", "w")
        self.decide("apply", "w")
        self.assertEqual(self.diff("w"), [])
        self.cow("echo 2 >> f", "--workspace", "w")
        self.decide("apply", "w")
        self.assertEqual((self.work / "f").read_text(), "0\n1\n2\n")

    def test_one_in_use_is_neither_applied_nor_dropped(self) -> None:
        process = self.start("--workspace", "w", *self.sh("echo x > f; echo ready; read line"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin and process.stdout
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertEqual(self.diff("w"), [" A f"])
        for words in (("apply", "w"), ("discard", "w"), ("workspace", "remove", "w")):
            self.assertIn(b"is in use", self.decide(*words, status=125).stderr)
        process.stdin.write(b"\n")
        process.stdin.close()
        process.wait(BOUND)
        process.stdout.close()
        self.decide("apply", "w")
        self.assertEqual((self.work / "f").read_text(), "x\n")

    def test_the_workspace_of_a_directory_above_is_found(self) -> None:
        (self.work / "sub").mkdir()
        self.cow("echo x > sub/f; echo y > g")
        done = self.belljar("apply", "f", cwd=self.work / "sub")
        self.assertEqual(done.status, 0, done)
        self.assertEqual((self.work / "sub/f").read_text(), "x\n")
        self.assertFalse((self.work / "g").exists())
        self.assertIn(b"has no workspace", self.belljar("diff", cwd=self.home).stderr)


@on_ways(NAMESPACE)
class Tried(ApplyCase):
    """`try`: in a pipe, and with a person in front of it."""

    script = "echo more >> changed; rm removed; mkdir -p d; echo x > d/f; echo x > .envrc; exit 3"

    def attempt(self, *options: str) -> Completed:
        shutil.rmtree(self.work)
        self.work.mkdir()
        self.fill(self.work)
        return self.belljar("try", *options, *self.sh(self.script))

    def test_in_a_pipe_options_decide_and_nothing_is_asked(self) -> None:
        done = self.attempt("--discard")
        self.assertEqual((done.status, self.stores()), (3, []), done)
        self.assertEqual((self.work / "changed").read_text(), "changed\n")
        done = self.attempt("--apply", "d/*", "--apply", "removed")
        self.assertEqual((done.status, len(self.stores())), (3, 1), done)
        self.assertTrue((self.work / "d/f").exists())
        self.assertFalse((self.work / "removed").exists())
        self.assertEqual((self.work / "changed").read_text(), "changed\n")
        done = self.attempt("--yes")
        self.assertEqual(done.status, 1, done)
        self.assertIn(b"refused: .envrc", done.stderr)
        self.assertFalse((self.work / ".envrc").exists())
        self.assertEqual((self.work / "changed").read_text(), "changed\nmore\n")
        done = self.attempt("--yes", "--allow-risky", ".envrc")
        self.assertEqual(done.status, 3, done)
        self.assertTrue((self.work / ".envrc").exists())
        done = self.attempt()
        self.assertEqual(done.status, 3, done)
        self.assertIn(b" D removed\n", done.stdout)
        self.assertIn(b"kept as the workspace", done.stderr)
        self.assertTrue((self.work / "removed").exists())

    def test_patterns_are_taken_as_people_write_them(self) -> None:
        done = self.attempt("--apply", "./changed", "--apply", str(self.work / "d/*"), "--apply", "nothing")
        self.assertEqual(done.status, 3, done)
        self.assertEqual((self.work / "changed").read_text(), "changed\nmore\n")
        self.assertTrue((self.work / "d/f").exists())
        self.assertTrue((self.work / "removed").exists())
        self.assertIn(b"no change matches --apply 'nothing'", done.stderr)
        self.assertNotIn(b"./changed", done.stderr)

    def test_other_directories_are_decided_about_too(self) -> None:
        cache = self.base / "cache"
        cache.mkdir()
        options = ["--cow-dir", str(cache)]
        both = self.sh(f"echo x > new; echo x > {cache}/new")
        done = self.belljar("try", "--discard", *options, *both)
        self.assertEqual((done.status, self.stores()), (0, []), done)
        # Nothing was changed in the workdir.
        done = self.belljar("try", "--yes", *options, *self.sh(f"echo x > {cache}/only"))
        self.assertEqual((done.status, self.stores()), (0, []), done)
        self.assertTrue((cache / "only").exists())
        done = self.belljar("try", "--yes", *options, *both)
        self.assertEqual((done.status, self.stores()), (0, []), done)
        self.assertTrue((self.work / "new").exists() and (cache / "new").exists())

    def test_without_changes_nothing_is_asked(self) -> None:
        done = self.belljar("try", *self.sh("exit 4"))
        self.assertEqual((done.status, self.stores()), (4, []), done)
        self.assertIn(b"nothing was changed", done.stderr)

    def test_files_are_picked_by_keyboard(self) -> None:
        self.fill(self.work)
        terminal = Terminal(24, 80)
        self.addCleanup(terminal.close)
        terminal.start(self.sh(self.script), way=self.way, verb="try", env={**self.env, "TERM": "xterm"}, cwd=self.work)
        at = terminal.expect(b"[a/p/d/s/k/x] ")
        self.assertIn(b"D removed", terminal.output)
        terminal.type(b"d\r")
        at = terminal.expect(b"+more", after=at)
        at = terminal.expect(b"[a/p/d/s/k/x] ", after=at)
        terminal.type(b"p\r")
        at = terminal.expect(b"1 of 5", after=at)
        terminal.type(b" ")  # .envrc, which cannot be taken
        terminal.type(b"j")
        at = terminal.expect(b"2 of 5", after=at)
        terminal.type(b" ")  # changed
        at = terminal.expect(b"[x]", after=at)
        terminal.type(b"\x1b[B")
        at = terminal.expect(b"3 of 5", after=at)
        terminal.type(b"\r")
        self.assertEqual(terminal.end(), 3)
        self.assertEqual((self.work / "changed").read_text(), "changed\nmore\n")
        self.assertTrue((self.work / "removed").exists())
        self.assertFalse((self.work / "d").exists())
        self.assertFalse((self.work / ".envrc").exists())
        self.assertEqual(terminal.read_modes(), terminal.modes)

    def test_a_directory_is_picked_with_what_is_marked_in_it(self) -> None:
        terminal = Terminal(24, 80)
        self.addCleanup(terminal.close)
        script = "mkdir d; for i in 1 2 3; do echo x > d/$i; done; echo x > d.c; mkdir e; echo x > e/1"
        terminal.start(self.sh(script), way=self.way, verb="try", env={**self.env, "TERM": "xterm"}, cwd=self.work)
        at = terminal.expect(b"[a/p/d/s/k/x] ")
        terminal.type(b"p\r")
        at = terminal.expect(b"1 of 7", after=at)
        terminal.type(b" ")  # d, and all in it
        at = terminal.expect(b"[x]  A d/3", after=at)
        terminal.type(b"jjj")  # past d.c and d/1
        at = terminal.expect(b">[x]  A d/2", after=at)
        terminal.type(b" ")
        at = terminal.expect(b">[ ]  A d/2", after=at)
        terminal.type(b"\x1b[6~")
        at = terminal.expect(b"7 of 7", after=at)
        terminal.type(b"\r")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(sorted(os.listdir(self.work)), ["d"])
        self.assertEqual(sorted(os.listdir(self.work / "d")), ["1", "3"])

    def test_a_shell_goes_on_in_the_same_workspace(self) -> None:
        self.fill(self.work)
        terminal = Terminal(24, 80)
        self.addCleanup(terminal.close)
        terminal.start(self.sh("rm removed"), way=self.way, verb="try", env={**self.env, "TERM": "xterm", "SHELL": "/bin/sh"}, cwd=self.work)
        at = terminal.expect(b"[a/p/d/s/k/x] ")
        terminal.type(b"s\r")
        at = terminal.expect(b"a shell in a jar", after=at)
        terminal.type(b"ls removed; echo x > by_hand; exit\r")
        at = terminal.expect(b"A by_hand", after=at)
        at = terminal.expect(b"[a/p/d/s/k/x] ", after=at)
        terminal.type(b"a\r")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(((self.work / "by_hand").read_text(), (self.work / "removed").exists()), ("x\n", False))


class FullDisk(ApplyCase):
    """A small file system in a mount namespace of its own."""

    @unittest.skipUnless(os.geteuid() == 0, "needs:root")
    def test_what_does_not_fit_stays_in_the_workspace(self) -> None:
        script = (
            'set -e; mount -t tmpfs -o size=4M t "$1"; cd "$1"; "$2" run --cow -- sh -c '
            '"for i in 1 2 3 4 5 6 7 8; do head -c 900000 /dev/zero > f\\$i; done"; '
            '"$2" apply && exit 9; test $? = 125; ls; rm hog 2>/dev/null || true; mount -o remount,size=64M "$1"; "$2" apply; ls -a; wc -c f*'
        )
        # The layer is elsewhere, so that files are copied: the state directory is not on this file system.
        self.env["XDG_STATE_HOME"] = str(self.home)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", str(self.work), str(paths.belljar())],
            env=self.env, capture_output=True, timeout=BOUND, check=False,
        )
        self.assertEqual(done.returncode, 0, done)


if __name__ == "__main__":
    unittest.main()
