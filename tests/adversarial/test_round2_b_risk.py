# SPDX-License-Identifier: Apache-2.0
"""One judge of risk: what a command plants is refused by `apply` or named in `risky`, however and wherever it was planted.

Layers: the judge of a changed path (host_judge.c) with what the project's links and git's configuration name (host_rules.c),
and the search after a run, which compares times of change (host_tree.c).
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List, Set

from adversarial_support import AttackCase, needs_git
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

ONE_RUNG = NAMESPACE if os.geteuid() == 0 else LANDLOCK


class RiskCase(AttackCase):
    """A repository of the user's, and programs in it that tell on the host that they ran."""

    def setUp(self) -> None:
        needs_git()
        super().setUp()
        self.ran = self.base / "ran"
        for command in ("init -q -b main .", "config user.email a@b", "config user.name n"):
            self.git(*command.split(), cwd=self.work)
        (self.work / "file").write_text("one\n")
        self.git("add", "file", cwd=self.work)
        self.git("commit", "-q", "-m", "first", cwd=self.work)

    @property
    def evil(self) -> str:
        """Text of a program, in quotes of a shell."""
        return f"'#!/bin/sh\\ntouch {self.ran}\\n'"

    def host_git(self, *words: str) -> None:
        env = {**self.env, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_EDITOR": "true"}
        subprocess.run(["git", *words], cwd=self.work, env=env, capture_output=True, timeout=60)

    def risky(self, result: Dict[str, Any]) -> Set[str]:
        return {os.path.relpath(entry["path"], self.work) for entry in result["risky"]}


@on_ways(NAMESPACE, LANDLOCK)
class Applied(RiskCase):
    """What `apply` brings home from a layer or a copy."""

    def refused(self, script: str, *names: str) -> None:
        """None of @names comes home, and the others do."""
        result = self.json("--cow", *self.sh(f"{script}; echo x > harmless"))
        self.assertEqual(result["exit_code"], 0, result)
        left = json.loads(self.belljar("apply", "--json").stdout)
        told = {entry["path"]: entry["reason"] for entry in left["not_applied"]}
        for name in names:
            self.assertEqual(told.get(name), "refused", left)
            self.assertFalse(os.path.lexists(self.work / name), name)
        self.assertEqual((self.work / "harmless").read_text(), "x\n")

    def test_a_file_that_the_configuration_includes(self) -> None:
        self.git("config", "include.path", "../shared.gitconfig", cwd=self.work)
        self.refused(f"printf {self.evil} > tool; chmod +x tool; printf '[core]\\n\\tfsmonitor = ./tool\\n' > shared.gitconfig", "shared.gitconfig")
        self.host_git("status")
        self.assertFalse(self.ran.exists())

    def test_a_file_that_is_included_by_a_file_outside_of_git(self) -> None:
        (self.work / "first.gitconfig").write_text("[include]\n\tpath = deep/second.gitconfig\n")
        self.git("config", "include.path", "../first.gitconfig", cwd=self.work)
        self.refused("mkdir deep; printf '[core]\\n\\tfsmonitor = ./tool\\n' > deep/second.gitconfig", "deep/second.gitconfig")

    def test_hooks_below_the_directory_that_the_configuration_names(self) -> None:
        self.git("config", "core.hooksPath", "tools/hooks", cwd=self.work)
        self.refused(f"mkdir -p tools/hooks; printf {self.evil} > tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit", "tools/hooks/pre-commit")
        self.host_git("commit", "--allow-empty", "-m", "x")
        self.assertFalse(self.ran.exists())

    def test_the_targets_of_links_that_lead_nowhere_yet(self) -> None:
        (self.work / ".envrc").symlink_to("env/project.sh")
        (self.work / ".vscode").symlink_to("editor")
        (self.work / ".bashrc").symlink_to("one")
        (self.work / "one").symlink_to("two")
        self.refused(
            "mkdir env editor; echo x > env/project.sh; echo '{}' > editor/tasks.json; echo x > two; echo x > env/other",
            "env/project.sh", "editor/tasks.json", "two",
        )
        self.assertTrue((self.work / "env" / "other").exists())

    def test_a_link_above_what_is_named(self) -> None:
        self.git("config", "core.hooksPath", "tools/hooks", cwd=self.work)
        self.refused("mkdir -p own/hooks; echo x > own/hooks/pre-commit; ln -s own tools", "tools")

    def test_links_inside_of_git(self) -> None:
        self.refused("ln -s ../file .git/COMMIT_EDITMSG2; ln -s ../../file .git/refs/heads/hooks", ".git/COMMIT_EDITMSG2", ".git/refs/heads/hooks")

    def test_a_program_that_the_configuration_runs_and_that_is_missing(self) -> None:
        self.git("config", "core.fsmonitor", "tools/monitor", cwd=self.work)
        self.git("config", "core.sshCommand", "./ssh1 -x", cwd=self.work)
        self.refused(f"mkdir tools; printf {self.evil} > tools/monitor; chmod +x tools/monitor; cp tools/monitor ssh1", "tools/monitor", "ssh1")
        self.host_git("status")
        self.assertFalse(self.ran.exists())

    def test_names_that_mislead_are_shown_apart(self) -> None:
        result = self.json("--cow", "--", "python3", "-I", "-c", "for name in (b'-rf', b'a\\nb', b'\\xff', b'fine'): open(name, 'w').close()")
        self.assertEqual(result["exit_code"], 0, result)
        entries = {entry["path"]: entry for entry in json.loads(self.belljar("diff", "--json").stdout)["changes"]}
        apart = {name for name, entry in entries.items() if entry.get("apart")}
        self.assertIn("-rf", apart)
        self.assertIn("a\nb", apart)
        self.assertNotIn("fine", apart)
        self.assertEqual(len(apart), 3, entries)


@on_ways(NAMESPACE, LANDLOCK)
class Reported(RiskCase):
    """What is found after a run."""

    def run_later(self, script: str) -> Dict[str, Any]:
        time.sleep(0.03)
        return self.json(*self.sh(f"sleep 0.03; {script}"))

    def test_names_that_mislead(self) -> None:
        (self.work / "-old").write_text("")
        (self.work / "deep").mkdir()
        result = self.run_later("touch ./-rf \"deep/$(printf 'a\\033b')\" \"$(printf 'x\\377')\" fine 'schön'")
        found = {os.path.basename(entry["path"]) for entry in result["risky"]}
        self.assertTrue({"-rf", "a\033b"} <= found, result["risky"])
        self.assertEqual(len(found), 3, result["risky"])

    def test_a_flood_of_names_that_mislead_hides_nothing(self) -> None:
        result = self.run_later("mkdir z a; i=0; while [ $i -lt 600 ]; do : > a/-$i; i=$((i+1)); done; echo x > z/AGENTS.md")
        self.assertIn("z/AGENTS.md", self.risky(result))
        self.assertLess(len(result["risky"]), 100)
        self.assertTrue(result["risky_search"]["left_out"])

    def test_links_inside_of_git(self) -> None:
        result = self.run_later("ln -s ../file .git/NEW; ln -s ../../../file .git/refs/heads/x")
        self.assertTrue({".git/NEW", ".git/refs/heads/x"} <= self.risky(result), result["risky"])

    def test_what_is_changed_in_place_below(self) -> None:
        for name in ("a/AGENTS.md", "a/b/CLAUDE.md"):
            (self.work / name).parent.mkdir(exist_ok=True)
            (self.work / name).write_text("be kind\n")
        result = self.run_later("for name in a/AGENTS.md a/b/CLAUDE.md; do echo evil >> $name; done")
        self.assertEqual(self.risky(result), {"a/AGENTS.md", "a/b/CLAUDE.md"})

    def test_directories_that_move(self) -> None:
        """Everything in a directory that was moved is where no search has seen it."""
        (self.work / "a/b").mkdir(parents=True)
        result = self.run_later("mkdir -p t/x; echo x > t/x/AGENTS.md; mv t a/b/t; mv a c")
        self.assertIn("c/b/t/x/AGENTS.md", self.risky(result))

    def test_directories_that_move_out_of_one_that_tools_fill(self) -> None:
        """No search looks at them where they were made, and no time of what is in them changes when they move."""
        (self.work / "src").mkdir()
        self.run_later("mkdir -p node_modules/a/e/sub; echo x > node_modules/a/e/AGENTS.md; echo x > node_modules/a/e/sub/CLAUDE.md")
        result = self.run_later("sleep 0.5; mv node_modules/a/e src/e")
        self.assertTrue({"src/e/AGENTS.md", "src/e/sub/CLAUDE.md"} <= self.risky(result), result["risky"])
        self.assertEqual(self.risky(self.run_later("true")), set())

    def test_directories_that_tools_fill_are_judged_at_their_top(self) -> None:
        for name in ("node_modules", "vendor", "sub/.venv"):
            (self.work / name / "deep").mkdir(parents=True)
        result = self.run_later("for d in node_modules vendor sub/.venv; do echo x > $d/AGENTS.md; echo x > $d/deep/AGENTS.md; git init -q $d; git -C $d config core.fsmonitor x; done")
        told = self.risky(result)
        for name in ("node_modules", "vendor", "sub/.venv"):
            self.assertIn(f"{name}/AGENTS.md", told)
            self.assertNotIn(f"{name}/deep/AGENTS.md", told)
            self.assertTrue(any(path.startswith(f"{name}/.git") for path in told), told)

    def test_configurations_of_more_tools(self) -> None:
        names = [".iex.exs", ".octaverc", ".erlang", ".gclient", ".lazygit.yml", ".eslintrc.js", "eslint.config.mjs", ".pylintrc", ".rubocop.yml"]
        result = self.run_later(f"touch {' '.join(names)}; mkdir sub; touch sub/.rubocop.yml")
        self.assertTrue({*names, "sub/.rubocop.yml"} <= self.risky(result), result["risky"])

    def test_names_that_count_where_a_program_is_started(self) -> None:
        """direnv, editors and debuggers obey them in the directory that one enters or opens."""
        (self.work / "a/b").mkdir(parents=True)
        (self.work / "a/b/.vscode").mkdir()
        (self.work / "a/b/.vscode/settings.json").write_text("{}")
        names = ["a/.envrc", "a/b/.vscode/settings.json", "a/b/.idea/deep/x.xml", "a/.prettierrc.js", "a/stylelint.config.mjs", "prettier.config.ts", "a/b/.gdbinit"]
        result = self.run_later("mkdir -p a/b/.idea/deep; for name in " + " ".join(names) + "; do echo x >> $name; done; echo x > a/b/.bashrc; ln -s deep a/.config")
        self.assertEqual(self.risky(result), {*names, "a/.config"})
        self.assertEqual(self.risky(self.run_later("touch a/other")), set())

    def test_directories_that_are_closed_and_opened_later(self) -> None:
        """What is in one has no new time when it can be looked into again."""
        result = self.run_later("mkdir -p a/b/sub c d; echo x > a/b/AGENTS.md; echo x > a/b/sub/CLAUDE.md; echo x > c/AGENTS.md; echo x > d/AGENTS.md; chmod 0 a/b; chmod 444 c; chmod 311 d")
        told = self.risky(result)
        for closed in ("a/b", "c", "d"):
            self.assertTrue(any(path == closed or path.startswith(closed + "/") for path in told), result["risky"])
        self.assertEqual(self.risky(self.run_later("true")), set())
        self.work.joinpath("a/b").chmod(0o755)

    def test_what_programs_take_for_belljars_packages(self) -> None:
        (self.work / "b/node_modules/belljar/lib").mkdir(parents=True)
        (self.work / "b/node_modules/belljar/lib/old.js").write_text("1")
        names = ["belljar.py", "a/belljar/__init__.py", "a/belljar.so", "b/node_modules/belljar/lib/old.js", "c/node_modules/belljar/index.js", "c/node_modules/@belljar/linux-x64/bin/belljar", "node_modules/belljar.js"]
        result = self.run_later("mkdir -p a/belljar c/node_modules/belljar c/node_modules/@belljar/linux-x64/bin node_modules/x; for name in " + " ".join(names) + "; do echo x >> $name; done; touch node_modules/x/index.js; ln -s a/belljar belljar")
        self.assertEqual(self.risky(result), {*names, "belljar"})

    def test_floods_are_told_in_words(self) -> None:
        (self.work / "sub").mkdir()
        for script in ("while [ $i -lt 600 ]; do : > sub/-$i; i=$((i+1)); done", "while [ $i -lt 300 ]; do mkdir sub/$i; : > sub/$i/AGENTS.md; i=$((i+1)); done"):
            completed = self.jar(*self.sh(f"i=0; {script}"))
            self.assertIn(b"more files than are listed", completed.stderr, completed)

    def test_a_large_project_gets_no_warning(self) -> None:
        for number in range(3000):
            (self.work / f"d{number % 60}" / f"e{number}").mkdir(parents=True)
        time.sleep(0.05)
        result = self.json("--", "true")
        self.assertEqual((result["notes"], result["risky"]), ([], []))
        for entry in result.get("risky_search", {}).get("left_out", ()):
            self.assertTrue(entry.startswith(str(self.work)), entry)
        result = self.run_later("echo x > d59/e2999/AGENTS.md")
        self.assertEqual(self.risky(result), {"d59/e2999/AGENTS.md"})




if __name__ == "__main__":
    unittest.main()
