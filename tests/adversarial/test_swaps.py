# SPDX-License-Identifier: Apache-2.0
"""Names that change under the trusted side's hands, and links laid out for it.

Whoever can write a directory, an earlier or a parallel jar, can exchange a directory and a symbolic link in it at any
moment. Layer: the engine's own care: what it opened once it uses by descriptor, and no link made inside is followed.
"""

from __future__ import annotations

import os
import time
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, Set

from adversarial_support import AttackCase, contents, host, needs_git, picture
from harness import wire
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.runner import LANDLOCK, NAMESPACE, Arg, Completed
from harness.wire import CANCEL, STARTED

TRIES = 120
TRIES_MIN = 20
SECONDS = 10.0
# A try that meets one side only is a matter of luck; luck that lasts so long is a test that does not race.
LONGEST = 90.0


class SwapCase(AttackCase):
    """A race is proven: both objects stood at the name between tries, and what each leads to was met."""

    def race(
        self,
        attempt: Callable[[], Completed],
        is_breach: Callable[[Completed], bool],
        name: Path,
        sides: Dict[str, Callable[[Completed], bool]],
    ) -> None:
        """Try again and again while `name` is exchanged; no try may breach, and each of `sides` must be true of some try."""
        objects: Set[int] = set()
        met: "Counter[str]" = Counter()
        seen: "Counter[str]" = Counter()
        begun = time.monotonic()
        tries = 0
        while time.monotonic() < begun + LONGEST:
            done = attempt()
            tries += 1
            self.assertFalse(is_breach(done), f"breached after {tries} tries: {done}")
            objects.add(os.lstat(name).st_ino)
            met.update(side for side, is_met in sides.items() if is_met(done))
            seen[f"{done.status} {done.stderr[-60:]!r}"] += 1
            has_raced = len(objects) > 1 and len(met) == len(sides) and tries >= TRIES_MIN
            if has_raced and (tries >= TRIES or time.monotonic() > begun + SECONDS):
                return
        self.fail(f"no race: {len(objects)} objects, {dict(met)} of {list(sides)} in {tries} tries: {seen.most_common(5)}")


@on_ways(NAMESPACE, LANDLOCK)
class Swaps(SwapCase):
    def test_the_current_directory_is_the_one_belljar_was_started_in(self) -> None:
        """The workdir by default is the current directory: the object, not whatever has its name a moment later."""
        project = self.directory("parent/project")
        (project / "inside").write_text("")
        (project.parent / "link").symlink_to("../outside")
        descriptor = os.open(project, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, descriptor)
        self.swap(project, project.parent / "link")
        # Popen would change to a name; the test wants belljar to start in the directory itself.
        self.race(
            lambda: self.jar(*self.sh("echo *; cat secret 2>/dev/null"), cwd=None, preexec_fn=lambda: os.fchdir(descriptor)),
            lambda done: self.SECRET.encode() in done.stdout,
            project,
            {"it runs": lambda done: b"inside" in done.stdout, "it is refused": lambda done: b"no longer at" in done.stderr},
        )

    def test_a_source_that_turns_into_a_link_while_it_is_mounted(self) -> None:
        """--ro and --rw of a directory in a tree that others write: what is shown is what was looked at, or nothing."""
        tree = self.directory("tree")
        (tree / "data").mkdir()
        (tree / "data" / "good").write_text("good")
        (tree / "spare").mkdir()
        (tree / "spare" / "bad").write_text("bad")
        self.swap(tree / "data", tree / "spare")
        script = f"ls {tree}/data; ls {tree}/data"
        # Two directories of the caller's: either is fine, but never one at first and then the other.
        self.race(
            lambda: self.jar("--rw", tree / "data", *self.sh(script)),
            lambda done: b"good" in done.stdout and b"bad" in done.stdout and self.way is NAMESPACE,
            tree / "data",
            {"the one": lambda done: b"good" in done.stdout, "the other": lambda done: b"bad" in done.stdout},
        )

    def test_risky_files_are_looked_for_without_following_links(self) -> None:
        """What lies behind a link made inside is nobody's answer: the result is the same whatever is there."""
        target = self.directory("elsewhere")
        script = f"ln -s {target} .claude; ln -s {target} .git"
        empty = self.json(*self.sh(script))
        for name in (".claude", ".git"):
            (self.work / name).unlink()
        (target / "settings.json").write_text("{}")
        (target / "hooks").mkdir()
        full = self.json(*self.sh(script))
        self.assertEqual((empty["outcome"], full["outcome"]), ("exited", "exited"))
        self.assertEqual(full["risky"], empty["risky"], "links made inside were followed")

    def test_a_link_in_place_of_a_directory_of_protected_names_is_told(self) -> None:
        target = self.directory("elsewhere")
        result = self.json(*self.sh(f"ln -s {target} .claude; ln -s {target} .vscode; ln -s {target} .git"))
        found = {Path(entry["path"]).name for entry in result["risky"]}
        self.assertIn(".vscode", found)
        self.assertIn(".git", found, "a .git that leads elsewhere makes git obey a config of the command's choice")


@on_ways(NAMESPACE)
class MountSwaps(SwapCase):
    def test_a_protected_name_behind_a_link_that_comes_and_goes(self) -> None:
        """A file outside must not be mounted in the jar because a protected name led to it for a moment."""
        (self.work / ".claude").mkdir()
        (self.work / ".claude" / "settings.json").write_text("mine")
        (self.outside / "settings.json").write_text(self.SECRET)
        (self.work / "link").symlink_to("../outside")
        self.swap(self.work / ".claude", self.work / "link")
        self.race(
            lambda: self.jar(*self.sh("readlink .claude || echo directory; cat .claude/settings.json link/settings.json")),
            lambda done: self.SECRET.encode() in done.stdout,
            self.work / ".claude",
            {"the directory": lambda done: b"directory" in done.stdout, "the link": lambda done: b"outside" in done.stdout},
        )

    def test_a_hidden_name_that_comes_and_goes(self) -> None:
        (self.work / "a").mkdir()
        (self.work / "a" / "key").write_text(self.SECRET)
        (self.work / "b").mkdir()
        (self.work / "b" / "key").write_text("nothing")
        self.swap(self.work / "a" / "key", self.work / "b" / "key")
        hidden = ["--hide", self.work / "a" / "key", "--hide", self.work / "b" / "key"]
        self.race(
            lambda: self.jar(*hidden, *self.sh("cat a/key b/key")),
            lambda done: self.SECRET.encode() in done.stdout,
            self.work / "a" / "key",
            {"it runs": lambda done: b"cat: a/key: Permission denied" in done.stderr},
        )

    def test_links_laid_out_by_an_earlier_run_do_not_stop_the_next(self) -> None:
        """A directory of settings may well be a link; and a command must not be able to lock its project up."""
        self.json(*self.sh("mkdir x; echo '{}' > x/settings.json; ln -s x .claude; mkdir y; touch y/config; ln -s y .git"))
        result = self.json("--", "true")
        self.assertEqual((result["outcome"], result["error"]), ("exited", None))


class MakingSwaps(KeptJarCase, SwapCase):
    """A directory of the workdir and a link to somewhere else change places all the time while jars are made.

    Whatever stands there at each moment, Belljar follows no link to outside the workdir, shows nothing of what is there,
    and creates nothing: neither there nor in the workdir.
    """

    way = NAMESPACE

    def setUp(self) -> None:
        super().setUp()
        for top, content in ((self.work / "d", "mine"), (self.outside, self.SECRET)):
            (top / "sub" / "deep").mkdir(parents=True)
            for name in ("key", "settings.json", "sub/file", "sub/deep/file"):
                (top / name).write_text(content)
        # Names that are in the directory only: what a jar needs to be there must not appear behind the link.
        (self.work / "d" / "only").mkdir()
        (self.work / "d" / "empty").write_text("")
        (self.work / "l").symlink_to("../outside")
        self.other = self.directory("other")
        (self.other / "file").write_text("other")

    def options(self) -> List[List[Arg]]:
        """Every kind of place, named by way of what changes."""
        d = self.work / "d"
        return [
            ["--ro", d / "sub"],
            ["--rw", d / "sub/deep"],
            ["--rw", f"{d}/sub:/out"],
            ["--ro", f"{d}/sub/file:/out/file"],
            ["--hide", d / "key"],
            ["--hide", d / "sub/deep/file"],
            ["--tmpfs", d / "only"],
            ["--tmpfs", d / "sub/deep"],
            ["--ro", f"{self.other}:{d}/only"],
            ["--ro", f"{self.other}/file:{d}/empty"],
            ["--rw", f"{d}:/out", "--ro", f"{self.other}:/out/sub/deep", "--hide", "/out/key"],
            ["-C", d / "sub", "--rw", self.work],
        ]

    def names(self) -> List[str]:
        """All names in the workdir, whichever of the two is the directory; but what commands make in /out."""
        found = (path.relative_to(self.work) for path in self.work.rglob("*") if path.name != "new")
        return sorted({str(Path("d", *path.parts[1:])) if path.parts[0] == "l" else str(path) for path in found})

    def check(self, stop: Callable[[], Any], names: List[str]) -> None:
        """Make jars of every kind, as long as it takes to meet both objects."""
        options = self.options()
        before = picture(self.outside)
        script = f"cd {self.work}; cat d/* d/*/* d/*/*/* l/* l/*/* /out /out/* /out/*/* 2>/dev/null; touch /out/new 2>/dev/null; true"
        turn = 0

        def attempt() -> Completed:
            nonlocal turn
            turn += 1
            return self.jar(*options[turn % len(options)], *self.sh(script))

        self.race(
            attempt,
            lambda done: self.SECRET.encode() in done.stdout,
            self.work / "d",
            {"it runs": lambda done: done.status == 0, "it is refused": lambda done: b"symbolic link" in done.stderr},
        )
        stop()
        self.assertGreaterEqual(turn, len(options))
        self.assertEqual(picture(self.outside), before, "something was done behind the link")
        self.assertEqual(self.names(), names, "something was made in the workdir")

    def test_another_program_exchanges_them(self) -> None:
        names = self.names()
        process = self.swap(self.work / "d", self.work / "l", seconds=100)

        def stop() -> None:
            process.kill()
            process.wait()

        self.check(stop, names)

    def test_a_run_in_a_kept_jar_exchanges_them(self) -> None:
        tool = self.tool("attack_swap")
        names = self.names()
        jar = self.open({"timeout": None})
        run = self.join(jar, [tool, "100", str(self.work / "d"), str(self.work / "l"), "0", self.marker], {"timeout": None})
        self.assertEqual(run.read().kind, STARTED)

        def stop() -> None:
            run.send(CANCEL, wire.number(9))
            self.assertEqual(wire.finish(run).result["outcome"], "cancelled")

        self.check(stop, names)

    def test_a_directory_of_protected_names(self) -> None:
        """.claude comes and goes; settings.json behind the link is outside."""
        (self.work / ".claude").mkdir()
        (self.work / ".claude" / "settings.json").write_text("mine")
        (self.work / ".github").symlink_to("../outside")
        self.swap(self.work / ".claude", self.work / ".github", seconds=100)
        before = picture(self.outside)
        self.race(
            lambda: self.jar(*self.sh("readlink .claude || echo directory; cat .claude/* .github/*; echo x > .claude/new; true")),
            lambda done: self.SECRET.encode() in done.stdout,
            self.work / ".claude",
            {"the directory": lambda done: b"directory" in done.stdout, "the link": lambda done: b"outside" in done.stdout},
        )
        self.assertEqual(picture(self.outside), before)


@on_ways(NAMESPACE)
class Hiding(AttackCase):
    """Layer: an empty mount over the place; it must be there whatever way the path was written, or the run be refused."""

    def hide(self, path: Path, *options: str, cat: str) -> None:
        done, result = self.status(*options, "--hide", path, *self.sh(f"cat {cat}"))
        self.assertNotIn(self.SECRET.encode(), done.stdout, result["error"])

    def test_a_hidden_path_through_a_link_of_the_system(self) -> None:
        done, result = self.status("--hide", "/bin/cat", *self.sh("/bin/cat /etc/passwd; /usr/bin/cat /etc/passwd"))
        self.assertNotIn(b"root", done.stdout, result["error"])

    def test_a_hidden_path_through_a_link_of_the_caller(self) -> None:
        (self.work / ".env").write_text(self.SECRET)
        (self.base / "link").symlink_to(self.work)
        self.hide(self.base / "link" / ".env", "-C", str(self.base / "link"), cat=str(self.work / ".env"))

    def test_a_hidden_path_in_a_shown_directory_through_its_link(self) -> None:
        (self.base / "shown").symlink_to(self.outside)
        self.hide(self.base / "shown" / "secret", "--ro", str(self.base / "shown"), cat=str(self.secret))

    def test_a_hidden_link_hides_what_it_leads_to_or_is_refused(self) -> None:
        (self.work / "real").write_text(self.SECRET)
        (self.work / "link").symlink_to("real")
        self.hide(self.work / "link", cat="link")

    def test_a_hidden_path_below_a_destination(self) -> None:
        self.hide(Path("/data/secret"), "--ro", f"{self.outside}:/data", cat="/data/secret")

    def test_dots_and_slashes(self) -> None:
        (self.work / "sub").mkdir()
        (self.work / "sub" / "key").write_text(self.SECRET)
        for path in ("sub/../sub/key", "./sub//key", f"{self.work}//sub/./key", "sub/key/"):
            with self.subTest(path=path):
                self.hide(Path(path) if path[-1] != "/" else path, cat="sub/key")  # type: ignore[arg-type]

    def test_a_hidden_thing_moves_with_its_parent(self) -> None:
        (self.work / "sub").mkdir()
        (self.work / "sub" / "key").write_text(self.SECRET)
        done = self.jar("--hide", "sub/key", *self.sh("mv sub x; cat x/key; mkdir sub; ln x/key sub/key; cat sub/key"))
        self.assertNotIn(self.SECRET.encode(), done.stdout)


@on_ways(NAMESPACE)
class Git(AttackCase):
    """What the host's next git, shell or editor would execute."""

    def setUp(self) -> None:
        needs_git()
        super().setUp()

    def repository(self, path: Path) -> Path:
        path.mkdir(exist_ok=True)
        self.git("init", "-q", ".", cwd=path)
        (path / ".git" / "hooks").mkdir(exist_ok=True)
        return path

    def risky(self, result: Any) -> Set[str]:
        return {os.path.relpath(entry["path"], self.work) for entry in result["risky"]}

    def test_the_repository_cannot_be_moved_away(self) -> None:
        """Layer: .git is a mount of its own: EBUSY."""
        self.repository(self.work)
        before = contents(self.work / ".git" / "hooks")
        for move in ("mv .git x", "mv .git/hooks .git/x", "rm -rf .git/hooks", "mv -T /tmp .git", "rmdir .git/hooks"):
            with self.subTest(move=move):
                result = self.json(*self.sh(f"{move} || echo refused"))
                self.assertIn("refused", result["stdout"])
                self.assertRegex(result["stderr"], "busy|Read-only|Busy|not empty|cross-device|same file|exists|overwrite")
        self.assertEqual(contents(self.work / ".git" / "hooks"), before)

    def test_names_that_git_obeys_are_told_when_they_appear(self) -> None:
        self.repository(self.work)
        commands = {
            ".git/commondir": "mkdir evil; echo ../evil > .git/commondir",
            ".git/config.worktree": "echo '[core]' > .git/config.worktree",
            ".git/modules": "mkdir -p .git/modules/x",
            ".git/worktrees": "mkdir -p .git/worktrees/x",
            ".git/info/attributes": "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
            ".gitmodules": "echo > .gitmodules",
        }
        for name, command in commands.items():
            with self.subTest(name=name):
                result = self.json(*self.sh(command))
                if (self.work / name).exists():
                    self.assertIn(name, self.risky(result))

    def test_a_new_repository_is_told(self) -> None:
        result = self.json(*self.sh("git init -q . 2>/dev/null || mkdir -p .git/hooks; echo x >> .git/config"))
        self.assertIn(".git/config", self.risky(result))

    def test_a_git_file_that_leads_elsewhere_is_told(self) -> None:
        """A `.git` file that is made during the run makes git obey another configuration: the result names it."""
        result = self.json(*self.sh("mkdir evil; echo 'gitdir: evil' > .git"))
        self.assertIn(".git", self.risky(result))

    def test_a_git_file_that_was_there_is_read_only(self) -> None:
        (self.work / ".git").write_text("gitdir: /nowhere\n")
        result = self.json(*self.sh("echo 'gitdir: evil' > .git; rm -f .git; mv .git x; echo x >> .git"))
        self.assertEqual((self.work / ".git").read_text(), "gitdir: /nowhere\n")
        self.assertEqual(result["risky"], [])

    def test_parents_of_protected_files_in_the_repository_around(self) -> None:
        """From a subdirectory, the repository's .git is writable: its protected files and their parents still are not."""
        self.repository(self.work)
        (self.work / ".git" / "info").mkdir(exist_ok=True)
        attributes = self.work / ".git" / "info" / "attributes"
        attributes.write_text("# mine\n")
        sub = self.work / "sub"
        sub.mkdir()
        script = "cd ../.git; mv info x; mkdir info; echo '* filter=evil' > info/attributes; mv hooks y; mv config z; mv ../.git ../g"
        self.json(*self.sh(script), cwd=sub)
        self.assertEqual(attributes.read_text(), "# mine\n")
        self.assertTrue((self.work / ".git" / "hooks").is_dir())
        self.assertTrue((self.work / ".git" / "config").is_file())

    def test_the_rest_of_the_repository_around_is_read_only(self) -> None:
        self.repository(self.work)
        (self.work / "file").write_text("mine")
        (self.work / ".env").write_text("mine")
        sub = self.work / "sub"
        sub.mkdir()
        result = self.json(*self.sh("echo x > ../file; echo x > ../new; rm ../file; mv ../sub ../s; echo x > ok"), cwd=sub)
        self.assertEqual(((self.work / "file").read_text(), (self.work / "new").exists()), ("mine", False))
        self.assertTrue((sub / "ok").exists(), result["stderr"])

    def test_hooks_that_are_a_link_into_the_project(self) -> None:
        """.git/hooks -> ../githooks is a widespread habit; what git will run is then in the project itself."""
        self.repository(self.work)
        hooks = self.work / ".git" / "hooks"
        for path in hooks.iterdir():
            path.unlink()
        hooks.rmdir()
        (self.work / "githooks").mkdir()
        (self.work / "githooks" / "pre-commit").write_text("#!/bin/sh\n")
        hooks.symlink_to("../githooks")
        result = self.json(*self.sh("echo evil >> githooks/pre-commit; echo evil > .git/hooks/post-checkout"))
        changed = "evil" in (self.work / "githooks" / "pre-commit").read_text() or (hooks / "post-checkout").exists()
        self.assertTrue(not changed or result["risky"], "hooks were changed through the link's target, and nobody is told")

    def test_protected_files_that_are_links_into_the_project(self) -> None:
        (self.work / "dotfiles").mkdir()
        (self.work / "dotfiles" / "envrc").write_text("mine")
        (self.work / ".envrc").symlink_to("dotfiles/envrc")
        result = self.json(*self.sh("echo evil > .envrc"))
        changed = (self.work / "dotfiles" / "envrc").read_text() != "mine"
        self.assertTrue(not changed or result["risky"], "a protected file was changed through its link, and nobody is told")

    def test_a_link_that_is_replaced_is_told(self) -> None:
        """Also where the file system gives the new file the number of the old one, as ext4 does."""
        (self.work / "real").write_text("mine")
        (self.work / ".bashrc").symlink_to("real")
        result = self.json(*self.sh("rm .bashrc; echo evil > .bashrc"))
        self.assertIn(".bashrc", self.risky(result))

    def test_nothing_is_left_on_the_host_as_a_stub(self) -> None:
        self.repository(self.work)
        before = picture(self.work)
        self.json("--", "true")
        self.assertEqual(picture(self.work), before)


@on_ways(NAMESPACE)
class Parents(AttackCase):
    def test_read_only_in_a_writable_directory_holds_at_its_path(self) -> None:
        """--ro of a file in the workdir: moving the directories above it must not put another file in its place."""
        (self.work / "conf" / "deep").mkdir(parents=True)
        guarded = self.work / "conf" / "deep" / "policy"
        guarded.write_text("mine")
        script = "mv conf x && mkdir -p conf/deep && echo evil > conf/deep/policy; mv conf/deep y; echo evil > conf/deep/policy"
        self.json("--ro", str(guarded), *self.sh(script))
        self.assertEqual(guarded.read_text() if guarded.exists() else "gone", "mine")

    def test_read_only_directly_in_the_workdir(self) -> None:
        guarded = self.work / "policy"
        guarded.write_text("mine")
        self.json("--ro", "policy", *self.sh("mv policy x; rm policy; echo evil > policy; ln -f /etc/passwd policy"))
        self.assertEqual(guarded.read_text(), "mine")


@on_ways(NAMESPACE)
class Strangers(AttackCase):
    def test_a_file_system_that_cannot_map_ids_is_told(self) -> None:
        """For root, uid 0 inside stands for an unprivileged id. Where it cannot, the result must say so."""
        host.need("root")
        result = self.json("--ro", "/sys/kernel", "--", "cat", "/proc/self/uid_map")
        if result["outcome"] == "failed":
            return
        outside = int(result["stdout"].split()[1])
        names: List[str] = self.missing(result)
        said = [name for name in names if name not in ("pids", "memory", "cpu_time", "disk")] or result.get("notes")
        self.assertTrue(outside != 0 or said, f"the command is the host's root, and the result does not say it: {names}")

    def test_proc_is_not_writable_even_then(self) -> None:
        host.need("root")
        script = """
for top, folders, files in os.walk("/proc", followlinks=False):
    if top == "/proc":
        folders[:] = [f for f in folders if not f.isdigit() and f not in ("self", "thread-self")]
    for name in files:
        try:
            os.close(os.open(os.path.join(top, name), os.O_WRONLY | os.O_NONBLOCK))
            print(os.path.join(top, name))
        except OSError:
            pass
"""
        for options in ([], ["--ro", "/sys/kernel"]):
            with self.subTest(options=options):
                found = set(self.json(*options, *self.python(script))["stdout"].split())
                # Those ask for a capability at each write, or concern the jar's own pid namespace.
                harmless = {"/proc/mtrr", "/proc/sys/kernel/ns_last_pid"}
                harmless |= {f"/proc/pressure/{name}" for name in ("cpu", "io", "memory", "irq")}
                self.assertEqual(found - harmless, set())


if __name__ == "__main__":
    unittest.main()
