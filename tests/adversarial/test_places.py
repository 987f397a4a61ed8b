# SPDX-License-Identifier: Apache-2.0
"""What one run leaves for the next: directories that moved, links in their place, repositories and tools that are not.

Layers: the directories above every place are pinned (the kernel does not rename what something is mounted on); no path
that a policy names leads through a link in a directory that the same policy makes writable; links of projects show no tool;
a .git above the workdir counts only if it is the caller's.
"""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

from adversarial_support import AttackCase, host
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.runner import LANDLOCK, NAMESPACE, Arg

# Each directory named: rename it, put another in its place, exchange both, remove it.
MOVES = """
for name in sys.argv[1:-1]:
    spare = name + ".spare"
    print("there", os.path.isdir(name), flush=True)
    attempt("rename " + name, lambda: os.rename(name, name + ".moved"))
    try:
        os.mkdir(spare)
    except OSError:
        pass  # read-only there
    attempt("replace " + name, lambda: os.rename(spare, name))
    attempt("exchange " + name, lambda: call(316, -100, name.encode(), -100, spare.encode(), 2))
    attempt("remove " + name, lambda: os.rmdir(name))
    if os.path.isdir(spare):
        os.rmdir(spare)
"""

# Options, and the directories above the places: by their host path, below the test's own, and in the jar.
Case = Tuple[List[Arg], Dict[str, str]]


class PlaceCase(AttackCase):
    def setUp(self) -> None:
        super().setUp()
        for top in (self.work, self.directory("data")):
            (top / "a" / "b" / "c").mkdir(parents=True)
            (top / "a" / "b" / "key").write_text(self.SECRET)
        self.data = self.base / "data"

    def cases(self) -> Dict[str, Case]:
        """Every kind of place in something writable."""
        work, data, outside = self.work, self.data, self.outside
        own = {"work/a": f"{work}/a", "work/a/b": f"{work}/a/b"}
        named = {"data/a": f"{data}/a", "data/a/b": f"{data}/a/b"}
        moved = {"data/a": "/d/a", "data/a/b": "/d/a/b"}
        return {
            "hide": (["--hide", "a/b/key"], own),
            "hide a directory": (["--hide", "a/b"], {"work/a": f"{work}/a"}),
            "ro": (["--ro", "a/b/c"], own),
            "ro of a file": (["--ro", "a/b/key"], own),
            "rw": (["--rw", "a/b/c"], own),
            "tmpfs": (["--tmpfs", work / "a/b/c"], own),
            "dest in the workdir": (["--ro", f"{outside}:{work}/a/b/c"], own),
            "ro in rw": (["--rw", data, "--ro", data / "a/b/c"], named),
            "rw in rw": (["--rw", data, "--rw", data / "a/b/c"], named),
            "layer in rw": (["--rw", data, "--cow-dir", data / "a/b/c"], named),
            "ro in a layer": (["--cow-dir", data, "--ro", data / "a/b/c"], named),
            "hide in a layer": (["--cow-dir", data, "--hide", data / "a/b/key"], named),
            "rw with dest": (["--rw", data, "--rw", f"{data}/a/b/c:/out"], {**named, "data/a/b/c": f"{data}/a/b/c"}),
            "ro with dest": (["--rw", data, "--ro", f"{data}/a/b:/out"], named),
            "hide in rw": (["--rw", data, "--hide", data / "a/b/key"], named),
            "hide in dest": (["--rw", f"{data}:/d", "--hide", "/d/a/b/key"], moved),
            "hide by its other name": (["--rw", f"{data}:/d", "--rw", data, "--hide", data / "a/b/key"], {**moved, "data/a/b": f"{data}/a/b"}),
            "dest in dest": (["--rw", f"{data}:/d", "--ro", f"{outside}:/d/a/b/c"], moved),
            "tmpfs in dest": (["--rw", f"{data}:/d", "--tmpfs", "/d/a/b/c"], moved),
            "its own place, seen elsewhere": (["--rw", f"{data}:/d", "--ro", data / "a/b/c"], {**moved, "data/a/b/c": "/d/a/b/c"}),
            "hide below ro below rw": (["--rw", data, "--ro", data / "a", "--hide", data / "a/b/key"], named),
            "workdir in rw": (["-C", data / "a/b/c", "--rw", data], named),
            "private workdir": (["-C", "none", "--rw", data, "--ro", data / "a/b/c"], named),
            "not protected": (["--no-protect", "--hide", "a/b/key"], own),
        }

    def objects(self, above: Dict[str, str]) -> Dict[str, int]:
        """Which object each directory is."""
        return {name: os.lstat(self.base / name).st_ino for name in above}


@on_ways(NAMESPACE)
class Parents(PlaceCase):
    def test_nothing_above_a_place_moves(self) -> None:
        for name, (options, above) in self.cases().items():
            with self.subTest(place=name):
                before = self.objects(above)
                result = self.json(*options, *self.python(MOVES, *above.values()))
                self.assertEqual(result["stdout"].count("there True"), len(above), result)
                answers = self.answers(result["stdout"])
                self.assertEqual(len(answers), 1 + 4 * len(above))
                self.assertNotIn("ok", answers.values(), answers)
                self.assertEqual(self.objects(above), before)

    def test_the_next_run_finds_what_is_hidden_where_it_was(self) -> None:
        for name, (options, above) in self.cases().items():
            if "--hide" not in options:
                continue
            with self.subTest(place=name):
                script = f"for p in {' '.join(above.values())}; do mv $p $p.moved; done; true"
                self.json(*options, *self.sh(script))
                found = self.jar(*options, *self.sh(f"grep -rs {self.SECRET} {self.work}/a* /d {self.data}/a*; echo looked"))
                if "--rw" in options or "--cow-dir" in options:
                    # The workdir has a key of its own that nobody hid.
                    found = self.jar(*options, *self.sh(f"grep -rs {self.SECRET} /d {self.data}; echo looked"))
                self.assertEqual(found.stdout, b"looked\n", found)

    def test_files_go_in_and_out_of_what_is_pinned(self) -> None:
        """Only the directory stays; what is in it can be renamed, linked and removed as ever."""
        script = "set -e; echo x > a/b/new; mv a/b/new out; ln out a/linked; mv a/b/c c; mv c a/b/d; rmdir a/b/d; rm a/linked; test a/.. -ef ."
        result = self.json("--hide", "a/b/key", *self.sh(script))
        self.assertEqual((result["exit_code"], result["stderr"]), (0, ""))

    def test_links_in_what_is_writable_are_not_followed(self) -> None:
        work = self.work
        (work / "link").symlink_to(self.outside)
        (work / "a" / "inner").symlink_to("b")
        (work / "dangling").symlink_to("nowhere")
        cases: Dict[str, List[Arg]] = {
            "ro": ["--ro", "link"],
            "rw": ["--rw", "link"],
            "with dest": ["--ro", "link:/out"],
            "a file behind it": ["--ro", "link/secret:/out"],
            "inside": ["--ro", "a/inner/c"],
            "hide": ["--hide", "a/inner/key"],
            "hide a link": ["--hide", "a/inner"],
            "hide a dangling link": ["--hide", "dangling"],
            "tmpfs": ["--tmpfs", work / "a/inner/c"],
            "dest": ["--ro", f"{self.outside}:{work}/a/inner/c"],
            "dest in dest": ["--rw", f"{work}:/d", "--ro", f"{self.outside}:/d/a/inner/c"],
            "hide in dest": ["--rw", f"{work}:/d", "--hide", "/d/a/inner/key"],
            "workdir": ["-C", work / "a/inner", "--rw", work],
            "read-only workdir": ["--workdir-mode", "ro", "--ro", "link"],
            "layer": ["--cow-dir", "link"],
            "standard input": ["--stdin", work / "link/secret"],
            "standard input, relative": ["--stdin", "link/secret"],
        }
        for name, options in cases.items():
            with self.subTest(case=name):
                self.assert_failed(self.jar(*options, "--", "true"), "symbolic link", "an earlier command may have put")

    def test_links_that_no_command_can_have_put_there_are_followed(self) -> None:
        (self.base / "link").symlink_to("outside")
        for options, path in ((["--ro", self.base / "link"], f"{self.base}/link/secret"), (["--ro", f"{self.base}/link:/out"], "/out/secret")):
            with self.subTest(options=options):
                self.assertEqual(self.jar(*options, "--", "cat", path).stdout.decode(), self.SECRET)
        for name in ("link/secret", "outside/secret"):
            self.assertEqual(self.jar("--stdin", self.base / name, "--", "cat").stdout.decode(), self.SECRET)
        self.assertEqual(self.jar("--stdin", "/dev/stdin", "--", "cat", stdin=b"given").stdout, b"given")

    def test_what_is_not_there_to_be_hidden_is_told(self) -> None:
        result = self.json("--hide", "a/b/gone", "--hide", "a/b/key", "--", "true")
        notes = [note for note in result["notes"] if note["name"] == "hide"]
        self.assertEqual(len(notes), 1, notes)
        self.assertIn("a/b/gone", notes[0]["why"])

    def test_the_three_of_the_report(self) -> None:
        """hide; read-only in writable, replaced by a link; the same, writable and elsewhere."""
        hidden: List[Arg] = ["--hide", "a/b/key"]
        self.jar(*hidden, *self.sh("mv a c2; mkdir a"))
        done = self.jar(*hidden, *self.sh("cat a/b/key c2/b/key"))
        self.assertNotIn(self.SECRET.encode(), done.stdout)
        for options, place in ((["--ro", self.data / "a/b/c"], f"{self.data}/a/b/c"), (["--rw", f"{self.data}/a/b/c:/out"], "/out")):
            planted = f"cd {self.data}; mv a old; mkdir -p a/b; ln -s {self.outside} a/b/c; true"
            self.jar("--rw", self.data, *options, *self.sh(planted))
            done = self.jar("--rw", self.data, *options, *self.sh(f"cat {place}/secret; touch {place}/new"))
            self.assertNotIn(self.SECRET.encode(), done.stdout)
            self.assertFalse((self.outside / "new").exists())


@on_ways(NAMESPACE, LANDLOCK)
class Policies(PlaceCase):
    """A command that could change what the policy was read from would choose what the next run may do."""

    def setUp(self) -> None:
        super().setUp()
        (self.data / "a" / "p.json").write_text('{"version": 1}')
        (self.data / "q.json").write_text('{"version": 1, "extends": "./a/p.json"}')

    def test_a_command_does_not_change_the_policy_of_the_next(self) -> None:
        planted = f'{{"version": 1, "ro": ["{self.outside}"]}}'
        script = f"cd {self.data}; mv a b; rm -f a/p.json; echo '{planted}' > new; cat new > a/p.json; mv new a/p.json; ln -sf new a/p.json; true"
        cases: Dict[str, List[Arg]] = {
            "workdir": ["-C", self.data, "--policy", self.data / "a/p.json"],
            "extended": ["-C", self.data, "--policy", self.data / "q.json"],
            "tighten": ["-C", self.data, "--tighten", self.data / "a/p.json"],
            "rw": ["--rw", self.data, "--policy", self.data / "a/p.json"],
            "private workdir": ["-C", "none", "--rw", self.data, "--policy", self.data / "a/p.json"],
            "not protected": ["-C", self.data, "--no-protect", "--policy", self.data / "a/p.json"],
        }
        for name, options in cases.items():
            with self.subTest(case=name):
                before = (self.data / "a" / "p.json").read_text()
                if self.way is NAMESPACE:
                    self.json(*options, *self.sh(script))
                    self.assertEqual((self.data / "a" / "p.json").read_text(), before)
                    (self.data / "new").unlink(missing_ok=True)
                    continue
                result = self.json(*options, *self.sh(f"echo '{planted}' > {self.data}/a/p.json"))
                self.assertIn("policy", [note["name"] for note in result["notes"]])
                self.assertIn(str(self.data / "a/p.json"), [entry["path"] for entry in result["risky"]])
                (self.data / "a" / "p.json").write_text(before)

    def test_a_policy_by_a_planted_link_is_refused(self) -> None:
        (self.work / "p.json").symlink_to(self.data / "a/p.json")
        for option in ("--policy", "--tighten"):
            self.assert_failed(self.jar(option, self.work / "p.json", "--", "true"), "symbolic link", "an earlier command may have put")
        outside = self.base / "p.json"
        outside.symlink_to(self.data / "a/p.json")
        self.assertEqual(self.json("--policy", outside, "--", "true")["notes"], [])


class StandingJars(KeptJarCase, PlaceCase):
    """Jars that are kept, and jars that were made ahead."""

    way = NAMESPACE

    def test_nothing_above_a_place_moves(self) -> None:
        keys: Dict[str, Any] = {"rw": [str(self.data)], "ro": [str(self.data / "a/b/c")], "hide": [str(self.work / "a/b/key")]}
        above = [str(top / name) for top in (self.work, self.data) for name in ("a", "a/b")]
        argv = [str(word) for word in self.python(MOVES, *above)[1:]]
        jar = self.open(keys)
        for way in ("kept", "kept", "ahead", "ahead"):
            with self.subTest(way=way):
                done = self.run_in(jar, argv) if way == "kept" else self.engine.run(argv, keys)
                answers = self.answers(done.stdout.decode())
                self.assertEqual(len(answers), 1 + 4 * len(above), done.frames)
                self.assertNotIn("ok", answers.values(), answers)

    def test_no_jar_sees_what_is_kept_for_others(self) -> None:
        """Workspaces, in a home that is writable."""
        kept = [self.home / ".local/state/belljar/ws"]
        for path in kept:
            path.mkdir(parents=True, mode=0o700)
            (path / "own").write_text(self.SECRET)
        keys: Dict[str, Any] = {"rw": [str(self.home)]}
        words = " ".join(map(str, kept))
        argv = ["/bin/sh", "-c", f"ls -A {words}; for d in {words}; do touch $d/x; mv $d $d.moved; mv $d/.. $d/../../moved; done", self.marker]
        jar = self.open(keys)
        for way in ("kept", "ahead", "ahead", "ahead"):
            with self.subTest(way=way):
                done = self.run_in(jar, argv) if way == "kept" else self.engine.run(argv, keys)
                self.assertNotIn("own", done.stdout.decode(), done.frames)
                self.assertEqual([((path / "own").exists(), (path / "x").exists()) for path in kept], [(True, False)] * len(kept))


@on_ways(LANDLOCK)
class WithoutMounts(PlaceCase):
    """Nothing can be pinned: what would need it is refused, and what a command planted is not followed."""

    def test_less_inside_more_is_refused(self) -> None:
        for options in (["--ro", self.data / "a/b/c"], ["--hide", self.data / "a/b/key"], ["--rw", f"{self.data}/a/b/c:/out"]):
            with self.subTest(options=options):
                self.assert_failed(self.jar("--rw", self.data, *options, "--", "true"), "namespace")

    def test_a_planted_link_is_not_followed(self) -> None:
        options: List[Arg] = ["--rw", self.data, "--rw", self.data / "a/b/c"]
        self.json(*options, *self.sh(f"cd {self.data}; mv a old; mkdir -p a/b; ln -s {self.outside} a/b/c"))
        done = self.jar(*options, *self.sh(f"cat {self.data}/a/b/c/secret"))
        self.assertNotIn(self.SECRET.encode(), done.stdout)
        self.assert_failed(done, "symbolic link", "an earlier command may have put")
        (self.work / "link").symlink_to(self.outside)
        for planted in (["--cow-dir", "link"], ["--stdin", "link/secret"]):
            self.assert_failed(self.jar(*planted, "--", "cat"), "symbolic link", "an earlier command may have put")


@on_ways(NAMESPACE, LANDLOCK)
class Tools(AttackCase):
    """Links of the caller's PATH that lead to a project, in which a command plants its own."""

    def setUp(self) -> None:
        super().setUp()
        self.project = self.home / "proj"
        self.bin = self.home / ".local" / "bin"
        self.bin.mkdir(parents=True)
        (self.home / "private" / "bin").mkdir(parents=True)
        (self.home / "private" / "bin" / "tool").write_text("#!/bin/sh\n")
        (self.home / "private" / "bin" / "tool").chmod(0o755)
        (self.home / "private" / "key").write_text(self.SECRET)
        self.env["PATH"] = f"{self.bin}:{self.env['PATH']}"

    def program(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\necho tool\n")
        path.chmod(0o755)

    def check(self, planted: str) -> None:
        done = self.jar("-C", self.project, *self.sh(planted))
        self.assertEqual(done.status, 0, done)
        for workdir in (self.work, self.project):
            done = self.jar("-C", workdir, *self.sh(f"cat {self.home}/private/key; grep -rs {self.SECRET} {self.home}"))
            self.assertNotIn(self.SECRET.encode(), done.stdout, planted)

    def test_a_planted_link_shows_nothing(self) -> None:
        for planted in (
            f"ln -sf {self.home}/private/bin/tool cli",
            "ln -sf ../private/bin/tool cli",
            f"rm cli; ln -s {self.home}/private cli",
            f"rm cli; ln -s {self.home} cli",
        ):
            with self.subTest(planted=planted):
                (self.project / "cli").unlink(missing_ok=True)
                self.program(self.project / "cli")
                (self.bin / "cli").unlink(missing_ok=True)
                (self.bin / "cli").symlink_to(self.project / "cli")
                self.assertEqual(self.jar("--", "cli").stdout, b"tool\n")
                self.check(planted)

    def test_a_planted_directory_shows_nothing(self) -> None:
        self.program(self.project / "venv" / "bin" / "cli")
        (self.bin / "cli").symlink_to(self.project / "venv" / "bin" / "cli")
        self.check(f"mv venv old; ln -s {self.home}/private venv; ln -s tool old/bin/x")

    def test_of_a_project_only_the_program_is_shown(self) -> None:
        self.program(self.project / "bin" / "cli")
        (self.project / ".env").write_text(self.SECRET)
        (self.bin / "cli").symlink_to(self.project / "bin" / "cli")
        done = self.jar(*self.sh(f"cli; cat {self.project}/.env"))
        self.assertEqual(done.stdout, b"tool\n", done)


@on_ways(NAMESPACE, LANDLOCK)
class Repositories(AttackCase):
    """A .git above the workdir makes the directory around it visible, and itself writable."""

    def setUp(self) -> None:
        super().setUp()
        self.top = self.directory("top")
        self.sub = self.top / "sub"
        self.sub.mkdir()
        (self.top / "private").write_text(self.SECRET)

    def repository(self, path: Path, *left_out: str) -> None:
        path.mkdir()
        for name in ("objects", "refs"):
            if name not in left_out:
                (path / name).mkdir()
        if "HEAD" not in left_out:
            (path / "HEAD").write_text("ref: refs/heads/main\n")

    def sees_top(self) -> bool:
        done, result = self.status("-C", self.sub, *self.sh(f"cat {self.top}/private"))
        self.assertIsNone(result["error"])
        seen = self.SECRET.encode() in done.stdout
        told = [note for note in result["notes"] if note["name"] == "git"]
        self.assertEqual(len(told), 0 if seen else 1, result["notes"])
        return seen

    def test_the_callers_own_is_taken(self) -> None:
        self.repository(self.top / ".git")
        self.assertTrue(self.sees_top())

    def test_what_is_no_repository_is_not(self) -> None:
        for left_out in ("HEAD", "objects", "refs"):
            with self.subTest(left_out=left_out):
                self.repository(self.top / ".git", left_out)
                self.assertFalse(self.sees_top())
                for path in sorted((self.top / ".git").iterdir()):
                    path.unlink() if path.is_file() else path.rmdir()
                (self.top / ".git").rmdir()

    def test_links_in_place_of_its_parts_do_not_count(self) -> None:
        self.repository(self.top / ".git", "objects", "refs")
        for name in ("objects", "refs"):
            (self.top / ".git" / name).symlink_to("/usr")
        self.assertFalse(self.sees_top())

    def test_a_spoilt_one_does_not_show_the_next(self) -> None:
        """rm .git/HEAD must not make a repository further above visible."""
        self.repository(self.base / ".git")
        self.repository(self.top / ".git", "HEAD")
        self.assertFalse(self.sees_top())
        done = self.jar("-C", self.sub, *self.sh(f"cat {self.secret}"))
        self.assertNotIn(self.SECRET.encode(), done.stdout)

    def test_somebody_elses_is_not_taken(self) -> None:
        host.need("root")
        self.repository(self.top / ".git")
        for path in (self.top / ".git", self.top):
            with self.subTest(path=path.name):
                os.chown(path, 12345, 12345)
                self.assertFalse(self.sees_top())
                os.chown(path, 0, 0)
        self.assertTrue(self.sees_top())

    def test_somebody_elses_git_file_is_not_taken(self) -> None:
        """A linked worktree: the file, its directory, the repository and the worktree's part of it."""
        host.need("root")
        repository = self.directory("elsewhere") / ".git"
        self.repository(repository)
        own = repository / "worktrees" / "w"
        own.mkdir(parents=True)
        (own / "HEAD").write_text("ref: refs/heads/w\n")
        (own / "gitdir").write_text(f"{self.top}/.git\n")
        (own / "commondir").write_text("../..\n")
        (self.top / ".git").write_text(f"gitdir: {own}\n")
        self.assertTrue(self.sees_top())
        for path in (self.top / ".git", self.top, repository, own):
            with self.subTest(path=path):
                os.chown(path, 12345, 12345)
                self.assertFalse(self.sees_top())
                os.chown(path, 0, 0)
        (own / "HEAD").unlink()
        self.assertFalse(self.sees_top())


if __name__ == "__main__":
    unittest.main()
