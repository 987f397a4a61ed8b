# SPDX-License-Identifier: Apache-2.0
"""What the host's git, and other tools of the user, run or obey after a run: it cannot be planted, or `risky` names it.

Each attack is carried out whole: a jar lays the trap, then the real git of the host walks into it. Layers: read-only mounts
over what exists at the start (namespace rung), and the search after the run, which looks where git would look (both rungs).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List, Set

from adversarial_support import AttackCase, needs_git
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

# The engine searches after the run, and looks at the host's files in the same way on either rung: one is enough for each user.
ONE_RUNG = NAMESPACE if os.geteuid() == 0 else LANDLOCK


class HostGitCase(AttackCase):
    """A repository of the user's, a jar in it, and the host's git afterwards."""

    # A repository with a monitor, and many directories around it.
    NEST = "git init -q N && cd N && git -c user.email=a -c user.name=b commit -q --allow-empty -m x && git config core.fsmonitor ../evil && cd ..; "
    MANY = "mkdir $(seq -f a%g 600); mkdir deep; "

    # One entry, with the object of the repository in deep/sub.
    ENTRY = '''
import hashlib, os, struct, subprocess, sys
mode, name, sha = int(sys.argv[1], 8), sys.argv[2].encode(), subprocess.check_output(["git", "-C", "deep/sub", "rev-parse", "HEAD"]).strip()
flags = struct.pack(">HH", len(name) | 0x4000, 0x4000) if mode == 0o40000 else struct.pack(">H", len(name))
if mode == 0o40000:
    sha = subprocess.run(["git", "mktree", "--missing"], input=b"160000 commit " + sha + b"\\tsub\\n", stdout=subprocess.PIPE).stdout.strip()
entry = bytes(24) + struct.pack(">I", mode) + bytes(12) + bytes.fromhex(sha.decode()) + flags + name
index = b"DIRC" + struct.pack(">II", 3, 1) + entry + bytes(8 - len(entry) % 8)
index += b"sdir" + bytes(4) if mode == 0o40000 else b""
open(".git/index", "wb").write(index + hashlib.sha1(index).digest())
'''

    def setUp(self) -> None:
        needs_git()
        super().setUp()
        self.ran = self.base / "ran"
        self.git("init", "-q", "-b", "main", ".", cwd=self.work)
        self.git("config", "user.email", "a@b", cwd=self.work)
        self.git("config", "user.name", "n", cwd=self.work)
        (self.work / "file").write_text("one\n")
        self.git("add", "file", cwd=self.work)
        self.git("commit", "-q", "-m", "first", cwd=self.work)

    @property
    def trap(self) -> str:
        """Shell that makes `evil`, a program that tells on the host that it ran. Inside the jar it can tell nobody."""
        return f"printf '#!/bin/sh\\ntouch {self.ran}\\n' > evil; chmod +x evil; "

    def host_git(self, *commands: str, cwd: "Path | None" = None) -> bool:
        """Run the host's git; has any program of the attacker's run?"""
        env: Dict[str, str] = {**self.env, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_EDITOR": "true"}
        for command in commands:
            subprocess.run(["git", *command.split()], cwd=cwd or self.work, env=env, capture_output=True, timeout=60)
        return self.ran.exists()

    def risky(self, result: Any) -> Set[str]:
        """Paths below the workdir."""
        for entry in result["risky"]:
            self.assertRegex(entry["why"], r"^it .* during the run; .{15}")
        return {os.path.relpath(entry["path"], self.work) for entry in result["risky"]}

    def attack(self, script: str, *names: str, commands: "List[str] | None" = None, cwd: "Path | None" = None) -> Any:
        """Lay a trap; then either nothing of it runs, or all of @names are told. Mostly both rungs tell."""
        result = self.json(*self.sh(f"{self.trap}\n{script}"))
        ran = self.host_git(*(commands or ["status", "add -A", "commit -q -a -m host", "status", "log -p", "diff HEAD~1"]), cwd=cwd)
        told = self.risky(result)
        self.assertTrue(not ran or told, "the host's git ran the attacker's program, and nobody was told")
        for name in names:
            self.assertIn(name, told, result["risky"])
        return result


@on_ways(NAMESPACE, LANDLOCK)
class Planted(HostGitCase):
    """What did not exist when the run began."""

    def test_a_gitlink_and_a_repository_with_a_monitor(self) -> None:
        result = self.attack(self.NEST.replace("N", "sub") + "git add sub 2>/dev/null", "sub/.git/config")
        self.assertTrue(self.ran.exists(), "the attack does not work: git no longer looks into gitlinks")
        self.assertIn("git uses it", str(result["risky"]))

    def test_a_submodule_that_the_command_adds(self) -> None:
        """In a directory that tools fill, which the search after a run does not walk: `.gitmodules` leads to it."""
        nest = self.NEST.replace("N", "node_modules/a/sub").replace("../evil", "../../../evil").replace("cd ..;", "cd ../../..;")
        add = "printf '[submodule \"x\"]\n path = node_modules/a/sub\n' > .gitmodules; git add -f node_modules/a/sub 2>/dev/null"
        result = self.attack(f"mkdir -p node_modules/a; {nest}{add}", "node_modules/a/sub/.git/config", commands=["status"])
        self.assertTrue(self.ran.exists(), "the attack does not work: git no longer looks into gitlinks")
        self.assertIn("git status", str(result["risky"]))

    def test_a_submodules_git_file(self) -> None:
        script = self.NEST.replace("N", "x") + "mkdir sub; cp -r x/.git .real; echo 'gitdir: ../.real' > sub/.git; git add sub 2>/dev/null"
        self.attack(script, "sub/.git", ".real/config")

    def test_a_repository_in_a_submodule_that_was_empty(self) -> None:
        """The gitlink is the user's; only the directory behind it was filled."""
        self.git("update-index", "--add", "--cacheinfo", "160000,1234567890123456789012345678901234567890,sub", cwd=self.work)
        self.git("commit", "-q", "-m", "link", cwd=self.work)
        (self.work / "sub").mkdir()
        self.attack("cd sub && git init -q . && git config core.fsmonitor ../evil", "sub/.git/config")

    def test_a_gitlink_in_a_gitlink(self) -> None:
        inner = self.NEST.replace("N", "inner").replace("../evil", "../../evil")
        script = f"git init -q sub; cd sub; {inner} git add inner 2>/dev/null; git -c user.email=a -c user.name=b commit -q -m x; cd ..; git add sub 2>/dev/null"
        self.attack(script, "sub/inner/.git/config")


    def test_a_nested_repository_that_is_in_no_index(self) -> None:
        result = self.attack("mkdir -p a/b; cd a/b; " + self.NEST.replace("N", "c"), "a/b/c/.git/config")
        self.assertEqual(result["notes"], [])

    def test_a_bare_repository_in_the_workdir(self) -> None:
        for top, name in (("deep/er", "deep/er/config"), (".", "HEAD")):
            with self.subTest(top=top):
                script = f"git init -q --bare {top}; cd {top}; git config core.fsmonitor $OLDPWD/evil; git config core.worktree $PWD; git config core.bare false"
                self.attack(script, name, commands=["status"], cwd=self.work / top)

    def test_a_bare_repository_in_place_of_the_one_that_is_broken(self) -> None:
        script = "cp -r .git/HEAD .git/objects .git/refs .; printf '[core]\\nfsmonitor=./evil\\nworktree=.\\nbare=false\\n' > config; rm .git/HEAD"
        self.attack(script, "HEAD", "config", ".git/HEAD")

    def test_a_bare_repository_whose_head_is_a_link_to_nothing(self) -> None:
        """HEAD may be a link to a branch that has no commits."""
        for breaking in ("rm .git/HEAD", "echo garbage > .git/HEAD", "mv .git/refs .git/r"):
            with self.subTest(breaking=breaking):
                script = f"mkdir -p objects refs/heads; ln -s refs/heads/main HEAD; printf '[core]\\nrepositoryformatversion=0\\nfsmonitor=%s/evil\\nworktree=%s\\nbare=false\\n' $PWD $PWD > config; {breaking}"
                self.attack(script, "HEAD", "config", commands=["status"])
                self.assertTrue(self.ran.exists(), "the attack does not work: git wants more of a HEAD")
                self.ran.unlink()
                for name in ("objects", "refs", ".git"):
                    shutil.rmtree(self.work / name)
                for name in ("HEAD", "config"):
                    (self.work / name).unlink()
                self.git("init", "-q", ".", cwd=self.work)

    def test_a_bare_repository_whose_parts_lie_elsewhere(self) -> None:
        """HEAD and `commondir` are enough for git: objects, refs and configuration are where that points."""
        script = "mkdir -p x real/objects real/refs; echo ../real > x/commondir; echo 'ref: refs/heads/m' > x/HEAD; printf '[alias]\nst=!%s/evil\n' $PWD > real/config"
        self.attack(script, "x/HEAD", "x/commondir", commands=["st"], cwd=self.work / "x")
        self.assertTrue(self.ran.exists(), "the attack does not work: git wants objects and refs in the directory itself")

    def test_what_git_goes_on_with(self) -> None:
        """A rebase that was begun says what is to be executed; old files say where to push to."""
        script = (
            "mkdir .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD | tee orig-head onto; echo refs/heads/main > head-name; touch interactive done;"
            " echo \"exec $PWD/../../evil\" > git-rebase-todo; echo 1 | tee msgnum end; mkdir -p ../remotes ../branches; echo 'URL: ./x' > ../remotes/origin; echo ./x > ../branches/origin"
        )
        self.attack(script, ".git/rebase-merge/git-rebase-todo", ".git/remotes/origin", ".git/branches/origin", commands=["rebase --continue"])
        self.assertTrue(self.ran.exists(), "the attack does not work: git no longer executes what its list says")

    def test_a_merge_program_that_a_rebase_or_a_pick_goes_on_with(self) -> None:
        """The user has begun it; the command adds a strategy, which is the name of a program: git-merge-NAME, and NAME may have slashes."""
        for begin, go_on, name, text in (
            ("rebase main", "rebase --continue", "rebase-merge/strategy", "x/../evil"),
            ("cherry-pick main~1 main", "cherry-pick --continue", "sequencer/opts", "[options]\n strategy = x/../evil"),
        ):
            with self.subTest(name=name):
                self.git("checkout", "-q", "-f", "-B", "main", "main~0", cwd=self.work)
                for branch in ("main", "side"):
                    self.git("checkout", "-q", "-f", "-B", branch, "main" if branch == "main" else "main~2", cwd=self.work)
                    (self.work / "file").write_text(f"{branch} {name}\n")
                    self.git("commit", "-q", "-a", "-m", branch, cwd=self.work)
                    (self.work / branch).write_text(f"{name}\n")
                    self.git("add", branch, cwd=self.work)
                    self.git("commit", "-q", "-m", "more", cwd=self.work)
                self.host_git(begin)
                (self.work / "file").write_text("solved\n")
                self.git("add", "file", cwd=self.work)
                time.sleep(0.05)
                self.attack(f"mkdir -p git-merge-x; printf '{text}\\n' > .git/{name}", f".git/{name.split('/')[0]}", commands=[go_on])
                self.assertTrue(self.ran.exists(), "the attack does not work: git no longer runs strategies")
                self.ran.unlink()
                for path in (".git/rebase-merge", ".git/sequencer"):
                    shutil.rmtree(self.work / path, ignore_errors=True)

    def test_a_repository_that_objects_are_borrowed_from(self) -> None:
        self.attack("git init -q --bare other; echo $PWD/other/objects > .git/objects/info/alternates", ".git/objects/info/alternates", commands=["status"])

    def test_what_was_named_writable_is_searched_too(self) -> None:
        other = self.directory("other")
        self.git("init", "-q", ".", cwd=other)
        (other / "CLAUDE.md").write_text("one\n")
        names = ["CLAUDE.md", ".envrc", ".git/COMMIT_EDITMSG", ".git/hooks", "in/n/.git/config"]
        for workdir in (self.work, "none"):
            with self.subTest(workdir=str(workdir)):
                result = self.json("-C", workdir, "--rw", other, *self.sh(
                    f"cd {other}; rm -rf .envrc .git/COMMIT_EDITMSG in; echo two > CLAUDE.md; echo > .envrc; ln -s /x .git/COMMIT_EDITMSG; echo > .git/hooks/new{len(str(workdir))};"
                    " mkdir in; git init -q in/n"
                ))  # fmt: skip
                told = {os.path.relpath(entry["path"], other) for entry in result["risky"]}
                self.assertLessEqual(set(names), told)
                self.assertEqual(self.json("-C", workdir, "--rw", other, "--", "true")["risky"], [])

    def test_who_reads_no_result_is_told_too(self) -> None:
        done = self.jar(*self.sh("echo > .envrc; for i in 1 2 3 4 5 6; do mkdir $i; echo > $i/AGENTS.md; done"))
        self.assertEqual((done.status, done.stdout), (0, b""))
        self.assertIn(f"belljar: look at '{self.work}/.envrc': it appeared during the run; ".encode(), done.stderr)
        self.assertEqual(done.stderr.count(b"look at"), 5)
        self.assertIn(b"2 more such files", done.stderr)
        self.assertNotIn(b"look at", self.jar("--json", *self.sh("echo > .envrc.local")).stderr)
        self.assertNotIn(b"look at", self.jar("--", "true").stderr)

    def test_other_version_control(self) -> None:
        script = (
            "mkdir -p .hg .jj/repo .sl in/.hg in/.sl; echo '[hooks]' | tee .hg/hgrc .jj/repo/config.toml .sl/config in/.hg/hgrc in/.sl/config"
        )
        self.attack(script, ".hg/hgrc", ".jj/repo/config.toml", ".sl/config", "in/.hg/hgrc", "in/.sl/config")

    def test_a_repository_of_jj_that_is_elsewhere_now(self) -> None:
        """Instead of the directory a file that names another one, or a link to it."""
        for script in ("mv .jj/repo .jj/r; mkdir -p x; echo ../x > .jj/repo", "mv .jj/repo .jj/r; ln -s ../x .jj/repo"):
            with self.subTest(script=script):
                (self.work / ".jj" / "repo").mkdir(parents=True)
                self.attack(script, ".jj/repo")
                shutil.rmtree(self.work / ".jj")

    def test_links_at_names_that_git_writes(self) -> None:
        victim = self.base / "victim"
        names = ["COMMIT_EDITMSG", "logs/HEAD", "packed-refs", "ORIG_HEAD", "logs/refs/heads/main", "refs/heads", "objects/ab", "description"]
        for name in names:
            with self.subTest(name=name):
                victim.write_text("mine\n")
                result = self.json(*self.sh(f"rm -rf .git/{name}; mkdir -p $(dirname .git/{name}); ln -s {victim} .git/{name}"))
                self.assertIn(f".git/{name}", self.risky(result))
                (self.work / ".git" / name).unlink()

    def test_git_would_follow_such_a_link(self) -> None:
        """What the test before is about: without the warning git writes to a file of the attacker's choice."""
        victim = self.base / "victim"
        victim.write_text("mine\n")
        result = self.json(*self.sh(f"rm -f .git/COMMIT_EDITMSG; ln -s {victim} .git/COMMIT_EDITMSG"))
        self.host_git("commit -q --allow-empty -m host")
        self.assertNotEqual(victim.read_text(), "mine\n", "git no longer follows the link: the test has nothing to show")
        self.assertIn(".git/COMMIT_EDITMSG", self.risky(result))

    def test_links_behind_branches_called_as_gits_own_directories(self) -> None:
        """A branch may be called `hooks/x` or `objects/x/y`; git appends to the file of its name in `logs`."""
        victim = self.base / "victim"
        for branch in ("hooks/x", "modules/x", "worktrees/x", "objects/ab/x", "objects/some/x", "refs/objects/ab/x"):
            with self.subTest(branch=branch):
                victim.write_text("mine\n")
                log = f".git/logs/refs/heads/{branch}"
                result = self.json(*self.sh(f"git checkout -q -b {branch}; rm {log}; ln -s {victim} {log}"))
                self.host_git("commit -q --allow-empty -m host")
                self.assertNotEqual(victim.read_text(), "mine\n", "git no longer follows the link: the test has nothing to show")
                self.assertIn(log, self.risky(result))
                self.host_git("checkout -q --detach", f"branch -q -D {branch}")
                shutil.rmtree(self.work / ".git/logs/refs/heads" / branch.split("/")[0], ignore_errors=True)

    def test_links_in_the_repositories_of_submodules(self) -> None:
        """Where mounts are to be had, they are read-only."""
        victim = self.base / "victim"
        victim.write_text("mine\n")
        other = self.directory("other")
        self.git("init", "-q", ".", cwd=other)
        self.git("-c", "user.email=a", "-c", "user.name=b", "commit", "-q", "--allow-empty", "-m", "x", cwd=other)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "objects", cwd=self.work)
        log = ".git/modules/objects/logs/HEAD"
        result = self.json(*self.sh(f"rm {log}; ln -s {victim} {log}"))
        self.host_git("-c user.email=a -c user.name=b commit --allow-empty -m host", cwd=self.work / "objects")
        self.assertEqual(victim.read_text() != "mine\n", self.way is LANDLOCK)
        self.assertEqual(log in self.risky(result), self.way is LANDLOCK)

    def test_instructions_for_agents(self) -> None:
        (self.work / "CLAUDE.md").write_text("be kind\n")
        (self.work / "GEMINI.md").write_text("be kind\n")
        result = self.attack(
            "echo evil >> CLAUDE.md; echo evil > AGENTS.md; mkdir -p a/b; echo x > a/b/CLAUDE.md; echo x > .cursorrules; cat GEMINI.md",
            "CLAUDE.md", "AGENTS.md", "a/b/CLAUDE.md", ".cursorrules",
        )  # fmt: skip
        self.assertNotIn("GEMINI.md", self.risky(result))

    def test_a_change_of_the_same_size_in_no_time(self) -> None:
        for turn in range(10):
            (self.work / "AGENTS.md").write_text(f"good {turn}\n")
            result = self.json(*self.sh(f"printf 'evil {turn}\\n' > x; touch -r AGENTS.md x; cat x > AGENTS.md; touch -r x AGENTS.md"))
            self.assertIn("AGENTS.md", self.risky(result))

    def test_names_of_the_table_that_are_new(self) -> None:
        names = [
            ".pre-commit-config.yaml", "lefthook.yml", ".claude/hooks/x", ".claude/skills/x", ".gemini/settings.json", ".opencode/x",
            ".windsurf/x", ".aider.conf.yml", ".github/hooks/x", ".npmrc", ".yarnrc.yml", ".zed/tasks.json", ".devcontainer/x",
            ".exrc", ".nvim.lua", ".mise.toml", ".tool-versions", ".pnpmfile.cjs", ".envrc",
        ]  # fmt: skip
        result = self.attack("for f in " + " ".join(names) + "; do mkdir -p $(dirname $f); echo evil > $f; done")
        told = self.risky(result)
        for name in names:
            self.assertTrue(any(name == path or name.startswith(path + "/") for path in told), name)

    def test_a_directory_prepared_under_another_name(self) -> None:
        self.json(*self.sh("mkdir x; echo '{}' > x/settings.json; git init -q y; git -C y config core.fsmonitor ../evil"))
        time.sleep(0.05)
        self.attack("mv x .claude; mkdir z; mv y z/y", ".claude/settings.json", "z/y/.git")

    def test_what_comes_after_the_names_were_noted(self) -> None:
        """Belljar reads directories while the command runs: what is put there, changed or swapped later is found all the same."""
        for name in ("in-place/AGENTS.md", "swapped/AGENTS.md", "added/file", "nest/file"):
            (self.work / name).parent.mkdir()
            (self.work / name).write_text("old\n")
        time.sleep(0.1)
        told = self.risky(
            self.json(
                *self.sh(
                    "sleep 0.2; echo new > in-place/AGENTS.md; mv swapped away; mkdir swapped; echo new > swapped/AGENTS.md;"
                    "echo new > added/CLAUDE.md; mkdir -p nest/deep/.git; echo '[core]fsmonitor=x' > nest/deep/.git/config"
                )
            )
        )
        self.assertLessEqual(
            {"in-place/AGENTS.md", "swapped/AGENTS.md", "added/CLAUDE.md", "nest/deep/.git/config"}, told, told
        )


    def test_a_directory_that_is_closed_is_told(self) -> None:
        if os.geteuid() == 0 and self.way is LANDLOCK:
            self.skipTest("root reads every directory")
        result = self.json(*self.sh("mkdir -p a/b; git init -q a/b; chmod 0 a"))
        (self.work / "a").chmod(0o755)
        if os.geteuid() == 0:
            self.assertIn("a/b/.git/config", self.risky(result))
        else:
            self.assertEqual(result["risky_search"]["left_out"], [str(self.work / "a")])

    def test_files_that_keep_the_search_busy(self) -> None:
        """Configurations that include each other, thousands of submodules: the search gives up soon, and says so."""
        script = """
os.makedirs("n/.git/objects"), os.makedirs("n/.git/refs"), os.makedirs("n/.git/hooks")
open("n/.git/HEAD", "w").write("ref: refs/heads/main")
open("n/.git/config", "w").write("[include]\\n" + "path = config\\n" * 15000)
open("n/a", "w").close()
for i in range(100):
    os.makedirs(f"m{i}/.git")
    open(f"m{i}/.git/config", "w").write("[core]\\npager = x" + " ../n/a/b/../../a/c" * 12000)
with open(".gitmodules", "w") as file:
    for i in range(5000):
        file.write(f'[submodule "{i}"]\\n path = {i}\\n')
os.makedirs("long"); open("long/real", "w").close()
os.symlink("long/../" * 450 + "long/real", ".bashrc")
"""
        (self.work / ".envrc").write_text("mine")
        for turn in range(2):
            result = self.json(*self.python(script) if turn == 0 else self.sh("echo evil >> .git/config; echo evil > .envrc"), timeout=60)
            self.assertIn(str(self.work / ".git"), result["risky_search"]["left_out"], result["stderr"])
            changed = "evil" in (self.work / ".git" / "config").read_text() or (self.work / ".envrc").read_text() != "mine"
            self.assertTrue(self.way is LANDLOCK or not changed, "a flood of names has used up the protection")
            self.assertTrue(not changed or {".git/config", ".envrc"} <= self.risky(result))


@on_ways(ONE_RUNG)
class Searched(HostGitCase):
    """What is large or takes many runs."""

    def test_gitlinks_whose_names_lead_about(self) -> None:
        """git goes where the name leads, as the kernel resolves it."""
        nest = self.NEST.replace("N", "deep/sub").replace("../evil", "../../evil").replace("cd ..;", "cd ../..;")
        names = (f"{self.work}/deep/sub", f"../{self.work.name}/deep/sub", "deep/../deep/sub", "deep/./sub", "./deep//sub")
        for name in names:
            with self.subTest(name=name):
                script = f"{self.MANY}{nest} python3 -c '{self.ENTRY}' 160000 {name}"
                self.attack(script, "deep/sub/.git/config", commands=["status"])
                self.assertTrue(self.ran.exists() or name == names[-1], "the attack does not work: git no longer goes there")
                self.ran.unlink(missing_ok=True)
                for path in (*self.work.glob("a[0-9]*"), self.work / "deep"):
                    shutil.rmtree(path)

    def test_a_gitlink_in_what_a_sparse_index_leaves_out(self) -> None:
        for key, value in {"core.sparseCheckout": "true", "core.sparseCheckoutCone": "true", "index.sparse": "true"}.items():
            self.git("config", key, value, cwd=self.work)
        nest = self.NEST.replace("N", "deep/sub").replace("../evil", "../../evil").replace("cd ..;", "cd ../..;")
        cone = "mkdir -p .git/info; printf '/*\\n!/*/\\n' > .git/info/sparse-checkout; "
        self.attack(f"{self.MANY}{nest}{cone} python3 -c '{self.ENTRY}' 40000 deep/", "deep/sub/.git/config", commands=["status"])
        self.assertTrue(self.ran.exists(), "the attack does not work: git no longer unfolds its index")

    def test_thousands_of_directories_are_searched(self) -> None:
        result = self.json(*self.python("for i in range(3000): os.makedirs(f'd{i}/e')\nopen('d2999/e/AGENTS.md', 'w').close()\n"))
        self.assertEqual((self.risky(result), result["notes"]), ({"d2999/e/AGENTS.md"}, []))
        self.assertNotIn("risky_search", result)

    def test_floods_of_repositories_are_bounded(self) -> None:
        result = self.json(*self.python("for i in range(400):\n os.makedirs(f'{i}/.git/hooks'); open(f'{i}/.git/config', 'w').close()\n"))
        self.assertLessEqual(len(result["risky"]), 256)
        self.assertTrue(result["risky_search"]["left_out"])


@on_ways(NAMESPACE, LANDLOCK)
class Changed(HostGitCase):
    """What existed: it is read-only where mounts are to be had, and told where not."""

    def changed(self, script: str, *names: str) -> None:
        """@names change only on the rung that cannot hold them, and then they are told."""
        before = {name: (self.work / name).read_bytes() for name in names}
        result = self.attack(script)
        told = self.risky(result)
        for name in names:
            now = (self.work / name).read_bytes() if (self.work / name).exists() else b"gone"
            if self.way is NAMESPACE:
                self.assertEqual(now, before[name], f"{name} is not protected")
            elif now not in (before[name], b"gone"):
                self.assertTrue(any(name == path or name.startswith(path + "/") for path in told), (name, told))

    def test_what_the_configuration_names(self) -> None:
        for directory in ("githooks", "tools/deep"):
            (self.work / directory).mkdir(parents=True)
        files = ["githooks/pre-commit", "included", "monitor.sh", "attributes", "tools/deep/ssh", "tools/clean.py", "conv", "inner"]
        for name in files:
            (self.work / name).write_text("#!/bin/sh\n")
            (self.work / name).chmod(0o755)
        (self.work / "included").write_text("[core]\n\tpager = sh inner\n")
        for key, value in {
            "core.hooksPath": "githooks",
            "include.path": "../included",
            "includeIf.gitdir:/nowhere.path": str(self.work / "included"),
            "core.fsmonitor": "./monitor.sh",
            "core.attributesFile": "attributes",
            "core.sshCommand": f"{self.work}/tools/deep/ssh -x",
            "filter.x.clean": "python3 tools/clean.py %f",
            "diff.y.textconv": "env A=b ./conv",
        }.items():
            self.git("config", key, value, cwd=self.work)
        # Where `included` can be overwritten, it no longer names the last of them.
        script = "; ".join(f"cat evil > {name}; cp evil x; mv x {name}" for name in files)
        self.changed(script + "; mv tools t; mv githooks g; mkdir tools githooks; cp evil githooks/pre-commit", *files[: None if self.way is NAMESPACE else -1])

    def test_what_commands_of_the_configuration_name(self) -> None:
        """Every `dir/file` in them, whatever the quoting, also behind a variable or a substitution."""
        (self.work / "tools").mkdir()
        commands = {
            '"$(git rev-parse --show-toplevel)/tools/x"': "tools/x",
            "`git rev-parse --show-toplevel`/tools/x": "tools/x",
            "sh ${PWD}/tools/x": "tools/x",
            '"$PWD"/tools/x': "tools/x",
            "env A=b sh -c 'exec \"tools/x\"'": "tools/x",
            "sh -c \"sh -c 'tools/x'\"": "tools/x",
        }
        (self.work / ".gitattributes").write_text("* filter=f\n")
        for command, name in commands.items():
            with self.subTest(command=command):
                (self.work / name).write_text("#!/bin/sh\ncat\n")
                (self.work / name).chmod(0o755)
                self.git("config", "filter.f.clean", command, cwd=self.work)
                self.changed(f"cat evil > '{name}'; echo more >> file", name)
                self.assertEqual(self.ran.exists(), self.way is LANDLOCK)
                self.ran.unlink(missing_ok=True)

    def test_what_the_configuration_names_and_is_not_there_yet(self) -> None:
        self.git("config", "core.hooksPath", "later/hooks", cwd=self.work)
        self.git("config", "include.path", "../more", cwd=self.work)
        self.attack("mkdir -p later/hooks; cp evil later/hooks/pre-commit; echo '[core]' > more", "later/hooks", "more")

    def test_what_the_callers_own_configuration_names(self) -> None:
        """In ~/.gitconfig, in a file that it includes, and in one that a link of the home directory leads to."""
        (self.work / "githooks").mkdir()
        for name in ("githooks/pre-commit", "monitor.sh", "gitconfig", "bashrc"):
            (self.work / name).write_text("#!/bin/sh\n")
        (self.home / ".gitconfig").write_text("[core]\n\thooksPath = githooks\n[include]\n\tpath = more\n")
        (self.home / "more").write_text(f"[core]\n\tfsmonitor = ./monitor.sh\n[include]\n\tpath = {self.work}/gitconfig\n")
        (self.home / ".bashrc").symlink_to(self.work / "bashrc")
        (self.work / "gitconfig").write_text("[user]\n\tname = n\n")
        files = ["githooks/pre-commit", "monitor.sh", "gitconfig", "bashrc"]
        self.changed("; ".join(f"cat evil > {name}; cp evil x; mv x {name}" for name in files), *files)

    def test_what_links_of_the_home_directory_lead_to_is_told(self) -> None:
        (self.work / "nvim").mkdir()
        (self.home / ".config").mkdir(exist_ok=True)
        (self.home / ".config" / "nvim").symlink_to(self.work / "nvim")
        (self.home / ".dotfiles").symlink_to(self.work)
        self.assertEqual(self.risky(self.json(*self.sh("echo > other"))), set())
        self.assertEqual(self.risky(self.json(*self.sh("echo > nvim/init.lua"))), {"nvim"})

    def test_submodules(self) -> None:
        other = self.directory("other")
        self.git("init", "-q", ".", cwd=other)
        self.git("-c", "user.email=a", "-c", "user.name=b", "commit", "-q", "--allow-empty", "-m", "x", cwd=other)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "module", cwd=self.work)
        self.git("commit", "-q", "-m", "module", cwd=self.work)
        script = (
            "mkdir r; git init -q r; cp evil .git/modules/module/hooks/pre-commit; echo '[core]\n fsmonitor=../evil' >> .git/modules/module/config;"
            "echo 'gitdir: ../r/.git' > module/.git; mv module m; cp .git/config r/.git/config"
        )
        self.changed(script, "module/.git", ".git/modules/module/config")

    def test_a_nested_repository_with_a_gitlink(self) -> None:
        sub = self.work / "sub"
        sub.mkdir()
        self.git("init", "-q", ".", cwd=sub)
        self.git("-c", "user.email=a", "-c", "user.name=b", "commit", "-q", "--allow-empty", "-m", "x", cwd=sub)
        (self.work / ".gitmodules").write_text('[submodule "x"]\n\tpath = sub\n')
        self.git("add", "sub", ".gitmodules", cwd=self.work)
        self.git("commit", "-q", "-m", "sub", cwd=self.work)
        result = self.json(*self.sh("cd sub && echo x > x && git add x && git -c user.email=a -c user.name=b commit -q -m x && echo done"))
        self.assertEqual((result["stdout"], result["risky"]), ("done\n", []), "everyday work in it")
        self.changed("printf '[core]\\nfsmonitor=../evil\\n' >> sub/.git/config; mv sub s; cp evil sub/.git/hooks/pre-commit", "sub/.git/config")

    def test_a_gitlink_that_gitmodules_does_not_name(self) -> None:
        """It is not protected; the search after the run reports a change."""
        sub = self.work / "sub"
        sub.mkdir()
        self.git("init", "-q", ".", cwd=sub)
        self.git("-c", "user.email=a", "-c", "user.name=b", "commit", "-q", "--allow-empty", "-m", "x", cwd=sub)
        self.git("add", "sub", cwd=self.work)
        time.sleep(0.05)
        self.attack("git -C sub config core.fsmonitor ../evil", "sub/.git/config", commands=["status"])

    def test_a_bare_workdir(self) -> None:
        bare = self.directory("bare")
        self.git("clone", "-q", "--bare", str(self.work), ".", cwd=bare)
        before = (bare / "config").read_bytes()
        script = f"cd {bare}; echo '[core]\n fsmonitor = x' >> config; echo x > hooks/pre-receive; mv config c; git branch new && echo works"
        result = self.json("-C", bare, *self.sh(script))
        self.assertIn("works", result["stdout"] + result["stderr"] if self.way is LANDLOCK else result["stdout"])
        if self.way is NAMESPACE:
            self.assertEqual((bare / "config").read_bytes(), before)
            self.assertFalse((bare / "hooks" / "pre-receive").exists())
        else:
            self.assertIn(str(bare / "hooks"), {str(Path(entry["path"])) for entry in result["risky"]})

    def test_protected_names_behind_links(self) -> None:
        (self.work / "x").mkdir()
        for name in ("x/settings.json", "b", "real"):
            (self.work / name).write_text("mine\n")
        for link, target in ((".claude", "x"), (".envrc", "a"), ("a", "b"), (".npmrc", str(self.work / "real")), (".exrc", "later")):
            (self.work / link).symlink_to(target)
        self.changed("echo evil > x/settings.json; echo evil > b; echo evil > real; mv x y", "x/settings.json", "b", "real")
        result = self.attack("rm a; echo evil > a; echo evil > later", "a", "later")
        self.assertNotIn(".envrc", self.risky(result))

    def test_a_second_name_of_a_protected_file(self) -> None:
        (self.work / ".bashrc").write_text("mine\n")
        os.link(self.work / ".bashrc", self.work / "other")
        hook = self.work / ".git" / "hooks" / "pre-push"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("mine\n")
        os.link(hook, self.work / "hook")
        time.sleep(0.05)
        self.attack("echo evil > other; echo evil > hook", ".bashrc", ".git/hooks/pre-push")

    def test_nothing_is_told_of_what_stays_as_it_was(self) -> None:
        nested = self.work / "vendor" / "lib"
        nested.mkdir(parents=True)
        self.git("init", "-q", ".", cwd=nested)
        (self.work / "AGENTS.md").write_text("be kind\n")
        (self.work / ".vscode").mkdir()
        (self.work / ".vscode" / "settings.json").write_text("{}")
        (self.work / ".envrc").symlink_to("nowhere")
        if self.way is LANDLOCK:
            time.sleep(0.05)
        script = (
            "set -e; echo x > new; git add new; git commit -q -m x; git checkout -q -b b; echo y > new; git stash -q; git stash pop -q;"
            "git commit -q -a -m y; git checkout -q main; git merge -q b; git rebase -q HEAD~1; git gc -q; git status; git submodule status;"
            "git worktree list; mkdir -p vendor/more; echo x > vendor/more/file; git tag t; git pack-refs --all"
        )
        result = self.json(*self.sh(script))
        self.assertEqual((result["exit_code"], result["risky"], result["notes"]), (0, [], []), result["stderr"])

    def test_removing_and_making_anew_on_the_rung_without_mounts(self) -> None:
        if self.way is NAMESPACE:
            self.skipTest("nothing can be removed there")
        for name in (".envrc", ".vscode/tasks.json"):
            (self.work / name).parent.mkdir(exist_ok=True)
            (self.work / name).write_text("mine\n")
        time.sleep(0.05)
        self.attack(
            "cp evil .git/hooks/pre-commit; git config core.fsmonitor ./evil; echo evil > .envrc; echo evil > .vscode/tasks.json",
            ".git/config", ".envrc", ".vscode/tasks.json",
        )  # fmt: skip
        self.assertIn("protect", self.missing(self.json("--", "true")))


@on_ways(ONE_RUNG)
class Found(HostGitCase):
    """Files that appear at names that a command in the configuration has."""

    EVIL = "#!/bin/sh\ntouch RAN\ncat\n"

    def found(self, command: str, files: "Dict[str, str]", told: "List[str] | None" = None, ran: bool = True) -> None:
        """The configuration stays as it was, @files appear: git runs one of them, and all of @told are told."""
        (self.work / ".gitattributes").write_text("file filter=f\n")
        self.git("config", "filter.f.clean", command, cwd=self.work)
        script = "echo more >> file; "
        for name, text in files.items():
            script += f"mkdir -p \"$(dirname '{name}')\"; cat > '{name}' <<'END'\n{text.replace('RAN', str(self.ran))}END\nchmod +x '{name}'\n"
        result = self.json(*self.sh(script))
        self.assertEqual(result["exit_code"], 0, result["stderr"])
        self.assertEqual(self.host_git("add file"), ran, "the attack does not work here" if ran else "it runs all the same")
        self.assertEqual(set(told if told is not None else files) - self.risky(result), set(), result["risky"])
        self.ran.unlink(missing_ok=True)
        for name in files:
            (self.work / name).unlink()
        self.git("reset", "-q", "--hard", cwd=self.work)

    def test_files_that_a_command_names(self) -> None:
        for command in ("sh tools/run", "sh -c 'sh \"tools/run\"'", '"$PWD"/tools/run'):
            with self.subTest(command=command):
                self.found(command, {"tools/run": self.EVIL})

    def test_aliases_that_are_no_shell(self) -> None:
        self.git("config", "alias.x", "rebase -x ./tool1 HEAD~0", cwd=self.work)
        self.assertIn("tool1", self.risky(self.json(*self.sh("echo x > tool1"))))

    def test_what_variables_make_git_run(self) -> None:
        env = {**self.env, "GIT_EDITOR": "./tools/editor -x", "GIT_SSH_COMMAND": "ssh -F tools/config"}
        result = self.json(*self.sh("mkdir tools; echo x > tools/editor; echo x > tools/config; echo x > tools/other"), env=env)
        self.assertEqual(self.risky(result), {"tools/editor", "tools/config"})

    def test_a_work_tree_that_is_elsewhere(self) -> None:
        (self.work / "tree").mkdir()
        self.git("config", "core.worktree", "../tree", cwd=self.work)
        self.git("config", "core.fsmonitor", "./tool", cwd=self.work)
        result = self.json(*self.sh(f"printf '#!/bin/sh\\ntouch {self.ran}\\n' > tree/tool; chmod +x tree/tool"))
        self.assertTrue(self.host_git("status"), "the attack does not work: git no longer changes to its work tree")
        self.assertIn("tree/tool", self.risky(result))

    def test_a_configuration_with_a_long_name_is_read_to_its_end(self) -> None:
        self.git("config", "section." + "x" * 90, "1", cwd=self.work)
        self.found("sh tool", {"tool": self.EVIL})

    def test_a_configuration_that_is_too_long_is_told(self) -> None:
        with (self.work / ".git" / "config").open("a") as config:
            config.write("# long\n" * 50000)
        result = self.json("--", "true")
        self.assertEqual(result["risky_search"]["left_out"], [str(self.work / ".git")])


@on_ways(NAMESPACE)
class Runs(HostGitCase):
    def test_a_path_directory_in_a_writable_grant_gets_a_note(self) -> None:
        bin_directory = self.directory("tools/bin")
        env = {**self.env, "PATH": f"{bin_directory}:{self.work}/bin:{self.env['PATH']}"}
        result = self.json("--rw", bin_directory.parent, "--", "true", env=env)
        self.assertEqual([note["name"] for note in result["notes"]], ["path"])
        self.assertIn(str(bin_directory), result["notes"][0]["why"])
        self.assertIn(f"{self.work}/bin", result["notes"][0]["why"])
        result = self.json("--ro", bin_directory.parent, "--workdir-mode", "ro", "--", "true", env=env)
        self.assertEqual(result["notes"], [])

    def test_a_link_that_leads_out_is_not_followed(self) -> None:
        """Whether a file outside exists must not be read from `risky`."""
        for script in ("ln -s {0} .claude; ln -s {0}/x .envrc", "git init -q n; rm -rf n/.git; ln -s {0} n/.git", "echo 'gitdir: {0}' > n2"):
            empty, full = self.directory(f"empty{len(script)}"), self.directory(f"full{len(script)}")
            (full / "settings.json").write_text("{}")
            (full / "x").write_text("")
            (full / "config").write_text("[core]\n fsmonitor = x\n")
            told = []
            for target in (empty, full):
                result = self.json(*self.sh(script.format(target)))
                told.append(self.risky(result))
                for name in (".claude", ".envrc", "n", "n2"):
                    path = self.work / name
                    if path.is_symlink() or path.is_file():
                        path.unlink()
                    elif path.exists():
                        shutil.rmtree(path)
            self.assertEqual(told[0], told[1], script)


if __name__ == "__main__":
    unittest.main()
