# SPDX-License-Identifier: Apache-2.0
"""A model behind an agent's hook wants more than the project, or no hook at all."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from adversarial_support import contents
from harness import paths
from harness.bounds import BOUND
from harness.case import JarCase, on_ways
from harness.runner import LANDLOCK, NAMESPACE

# The event, the tool, the member with the new input, the agent's directory, its settings, the variable that names the project.
AGENTS = {
    "claude": ("PreToolUse", "Bash", "updatedInput", ".claude", "settings.json", "CLAUDE_PROJECT_DIR"),
    "codex": ("PreToolUse", "Bash", "updatedInput", ".codex", "hooks.json", ""),
    "gemini": ("BeforeTool", "run_shell_command", "tool_input", ".gemini", "settings.json", "GEMINI_PROJECT_DIR"),
}
# A layer takes what a command writes, so that the rung landlock can hold the agent's directory too.
COW = ("--cow",)


class Agent(JarCase):
    """One agent in a project, beside a directory that is none of its business."""

    def setUp(self) -> None:
        super().setUp()
        self.outside = self.base / "outside"
        self.outside.mkdir()
        (self.outside / "key").write_text("secret")

    def hook(self, *words: str, cwd: Optional[Path] = None, event: object = None, **variables: str) -> "subprocess.CompletedProcess[bytes]":
        command = [paths.belljar(), "hook", *words]
        return subprocess.run(command, input=json.dumps(event).encode(), capture_output=True, env={**self.env, **variables}, cwd=cwd or self.work, timeout=BOUND)

    def install(self, agent: str, *options: str) -> str:
        """Put the hook into the project's settings; the line that the agent will run."""
        done = self.hook("install", agent, *options, "--yes")
        self.assertEqual(done.returncode, 0, done)
        event, _, _, directory, name, _ = AGENTS[agent]
        line: str = json.loads((self.work / directory / name).read_text())["hooks"][event][-1]["hooks"][0]["command"]
        return line

    def ask(self, line: str, agent: str, command: str, cwd: Path, place: Optional[Path] = None, **variables: str) -> Tuple[int, str]:
        """Start the hook in @cwd, with an event that names @place; the status, and the command in a jar or what it said."""
        event, tool, rewritten, *_ = AGENTS[agent]
        data: Dict[str, Any] = {"hook_event_name": event, "cwd": str(place or cwd), "tool_name": tool, "tool_input": {"command": command}}
        done = subprocess.run(["/bin/sh", "-c", line], input=json.dumps(data).encode(), capture_output=True, env={**self.env, **variables}, cwd=cwd, timeout=BOUND)
        if done.returncode:
            return done.returncode, done.stderr.decode()
        return 0, json.loads(done.stdout)["hookSpecificOutput"][rewritten]["command"]

    def shell(self, line: str, cwd: Path) -> "subprocess.CompletedProcess[bytes]":
        """What the agent does with it: its shell is in the directory that the model names."""
        deny = [paths.tool("deny"), *self.way.deny, "--"] if self.way.deny else []
        return subprocess.run([*deny, "/bin/sh", "-c", line], capture_output=True, env=self.env, cwd=cwd, timeout=BOUND)

    def attack(self, line: str, agent: str, command: str, cwd: Optional[Path] = None, **variables: str) -> "subprocess.CompletedProcess[bytes]":
        """The event in the project, the command wherever the model wants it."""
        status, rewritten = self.ask(line, agent, command, self.work, **variables)
        self.assertEqual(status, 0, rewritten)
        return self.shell(rewritten, cwd or self.work)


@on_ways(NAMESPACE, LANDLOCK)
class Place(Agent):
    """The directory of a command gives no rights."""

    def test_a_directory_outside_the_project(self) -> None:
        (self.work / "build").symlink_to(self.outside)
        before = contents(self.outside)
        for agent in AGENTS:
            line = self.install(agent, *COW)
            for place in (self.outside, self.work / "build", Path("/"), self.base):
                done = self.attack(line, agent, "echo x > planted; cat key; echo x >> key", place)
                self.assertNotIn(b"secret", done.stdout)
                self.assertEqual(contents(self.outside), before, (agent, place))
                # An agent that says so itself is told why.
                status, words = self.ask(line, agent, "true", self.work, place)
                self.assertEqual(status, 2, words)
                self.assertIn("outside the project", words)

    def test_the_hook_starts_where_the_model_wants(self) -> None:
        (self.outside / "policy.json").write_text(json.dumps({"rw": [str(self.outside)], "net": "host"}))
        (self.work / "policy.json").write_text(json.dumps({"env": {"WHICH": "of the project"}}))
        before = contents(self.outside)
        for agent in AGENTS:
            line = self.install(agent, "--policy", "./policy.json", *COW)
            status, rewritten = self.ask(line, agent, 'echo "$WHICH"; echo x > planted; echo x > key', self.outside, self.work)
            self.assertEqual(status, 0, rewritten)
            for place in (self.work, self.outside):
                done = self.shell(rewritten, place)
                self.assertEqual(contents(self.outside), before, (agent, done))
                # On the rung landlock it starts outside, and may do nothing there.
                self.assertEqual(done.stdout, b"of the project\n" if place == self.work or self.way.deny else b"", done)
            # By hand, with a relative path.
            status, words = self.ask(f"{paths.belljar()} hook {agent} -C {self.work} --policy ./policy.json", agent, "true", self.outside, self.work)
            self.assertEqual(status, 2, words)
            self.assertIn("relative path", words)

    def test_a_shell_that_came_by_a_link(self) -> None:
        link, sub = self.base / "link", self.work / "sub"
        sub.mkdir()
        link.symlink_to(self.work)
        line = self.install("claude", *COW)
        status, rewritten = self.ask(line, "claude", "echo here > file; cat file", self.work)
        self.assertEqual(status, 0, rewritten)
        for place in (link, link / "sub", sub):
            # A shell keeps a $PWD that leads to its directory.
            done = subprocess.run(["/bin/sh", "-c", rewritten], capture_output=True, env={**self.env, "PWD": str(place)}, cwd=place, timeout=BOUND)
            self.assertEqual((done.returncode, done.stdout), (0, b"here\n"), done)

    def test_without_options_the_agent_names_the_project(self) -> None:
        before = contents(self.outside)
        for agent, (*_, variable) in AGENTS.items():
            variables = {variable: str(self.work)} if variable else {}
            line = f"{paths.belljar()} hook {agent} --cow"
            start = self.outside if variable else self.work
            status, rewritten = self.ask(line, agent, "echo x > planted; echo x > key; pwd", start, self.work, **variables)
            self.assertEqual(status, 0, rewritten)
            self.assertIn(str(self.work), rewritten)
            self.shell(rewritten, self.outside)
            self.assertEqual(contents(self.outside), before, agent)
            if variable:
                self.assertEqual(self.ask(line, agent, "true", self.outside, self.outside, **variables)[0], 2)

    def test_hidden_directories_of_the_home_are_no_projects(self) -> None:
        keys = self.home / ".ssh"
        keys.mkdir()
        (keys / "id").write_text("secret")
        before = contents(keys)
        for agent, (*_, variable) in AGENTS.items():
            for variables in ({variable: str(keys)} if variable else {}, {}):
                status, words = self.ask(f"{paths.belljar()} hook {agent}", agent, "echo x > planted", keys, **variables)
                self.assertEqual(status, 2, words)
                self.assertIn("hidden directory", words)
            # The home directory itself: commands have a private one.
            status, rewritten = self.ask(f"{paths.belljar()} hook {agent}", agent, "echo x > .ssh/planted; cat .ssh/id; echo x > planted", self.home)
            self.assertEqual(status, 0, rewritten)
            self.assertNotIn(b"secret", self.shell(rewritten, self.home).stdout)
            self.assertFalse((self.home / "planted").exists())
        self.assertEqual(contents(keys), before)


@on_ways(NAMESPACE, LANDLOCK)
class Settings(Agent):
    """A command cannot change what the agent obeys."""

    def plant(self, line: str, agent: str, *more: str, **variables: str) -> None:
        directory, name = AGENTS[agent][3:5]
        place, before = self.work / directory, contents(self.work / directory) if (self.work / directory).exists() else {}
        script = (
            "mkdir -p D; for file in settings.local.json N new new/settings.json sub/hooks.json; do mkdir -p D/$(dirname $file); echo '{\"disableAllHooks\":true}' > D/$file; done;"
            "mv D moved; rm -rf D; ln -s . D/link; ln D/N hard && echo x > hard; mkdir swapped; echo x > swapped/settings.local.json;"
            "mv -T swapped D; mv --exchange swapped D; ln -sfn swapped D; chmod 777 D; rmdir D; cd ..; mv work work2"
        ).replace("D", directory).replace("N", name)
        for extra in ("", *more):
            self.attack(line, agent, extra + script, **variables)
            self.assertTrue(place.is_dir() and not place.is_symlink())
            self.assertEqual(before or {str(place): contents(place)[str(place)]}, contents(place), (agent, line))

    def test_settings_that_are_new(self) -> None:
        for agent in AGENTS:
            self.plant(self.install(agent), agent)
            # Whatever else the user allows.
            for options in (["--rw", str(self.work / AGENTS[agent][3])], ["--no-protect"], ["--rw", f"{self.work}:/mnt/other"], ["--rw", str(self.base)]):
                line = self.install(agent, *options)
                self.plant(line, agent, "cd /mnt/other 2>/dev/null;")

    def test_settings_in_a_project_that_has_none(self) -> None:
        for agent, (*_, variable) in AGENTS.items():
            variables = {variable: str(self.work)} if variable else {}
            self.plant(f"{paths.belljar()} hook {agent}", agent, **variables)

    def test_a_link_in_place_of_the_directory_blocks(self) -> None:
        for agent in AGENTS:
            place = self.work / AGENTS[agent][3]
            for target in (self.outside, self.base / "absent", Path(".")):
                place.symlink_to(target)
                status, words = self.ask(f"{paths.belljar()} hook {agent} -C {self.work}", agent, "true", self.work)
                self.assertEqual(status, 2, words)
                self.assertIn("is not a directory", words)
                place.unlink()
            place.write_text("")
            self.assertEqual(self.ask(f"{paths.belljar()} hook {agent} -C {self.work}", agent, "true", self.work)[0], 2)

    def test_a_layer_does_not_reach_them_either(self) -> None:
        for agent in AGENTS:
            line = self.install(agent, *COW)
            self.plant(line, agent)
            done = self.attack(line, agent, "echo kept > file; cat file")
            self.assertEqual(done.stdout, b"kept\n", done)

    def test_the_policy_of_the_hook(self) -> None:
        policy = self.work / "policy.json"
        policy.write_text('{"memory": "1G"}')
        base = self.work / "base.json"
        base.write_text('{"memory": "1G"}')
        (self.work / "extending.json").write_text('{"extends": "./base.json"}')
        extending = self.work / "extending.json"
        for options, files in ((["--policy", "./policy.json"], [policy]), (["--tighten", "policy.json"], [policy]), (["--policy", "./extending.json"], [base, extending])):
            line = self.install("claude", *options)
            for file in files:
                before = contents(file)
                self.attack(line, "claude", f"echo '{{\"net\": \"host\"}}' > {file.name}; echo x > new; mv -f new {file.name}; rm -f {file.name}; ln -sf /etc/passwd {file.name}")
                self.assertEqual(contents(file), before, options)

    def test_the_home_of_the_settings(self) -> None:
        settings = self.home / ".claude"
        settings.mkdir()
        (settings / "settings.json").write_text("{}")
        line = self.install("claude", "--rw", str(self.home))
        self.attack(line, "claude", f"cd {self.home}/.claude; echo x > settings.json; echo x > settings.local.json; cd ..; mv .claude x")
        self.assertEqual((os.listdir(settings), (settings / "settings.json").read_text()), (["settings.json"], "{}"))


if __name__ == "__main__":
    unittest.main()
