# SPDX-License-Identifier: Apache-2.0
"""`belljar engine`: jars made ahead are used once, and only if they show what one made now would show."""

from __future__ import annotations

import os
import shutil
import time
import unittest
from typing import Any, Dict, List, Optional

from harness import census, wire
from harness.engine_case import EngineCase
from harness.runner import NAMESPACE
from harness.wire import CANCEL, OUTPUT, STARTED


class ReadyCase(EngineCase):
    """An engine that has one jar ready."""

    way = NAMESPACE
    keys: Dict[str, Any] = {}

    def children(self) -> List[int]:
        """The engine's own children: first processes of jars."""
        return census.children(self.engine.pid)

    def prepare(self, keys: Optional[Dict[str, Any]] = None) -> int:
        """Run once, wait until another jar stands: its first process."""
        self.keys = keys or {}
        outcome = self.engine.run(["/bin/true"], self.keys)
        self.assertEqual(outcome.result["exit_code"], 0, outcome.frames)
        found: List[int] = []
        self.wait_for(lambda: self.waiting(found), "a jar is made ahead")
        return found[0]

    def waiting(self, found: List[int]) -> bool:
        """Do all jars wait for something to do? Then the oldest is found: it is used first."""
        children = self.children()
        if children and all(census.state(pid) == "S" for pid in children):
            time.sleep(0.02)  # one that is being ended is gone by then
            if children == self.children():
                found.append(children[0])
        return bool(found)

    def run_script(self, text: str, **options: Any) -> bytes:
        """A script under the policy that a jar was made ahead for; its output."""
        outcome = self.engine.run(["/bin/sh", "-c", text, self.marker], self.keys, **options)
        self.assertEqual(outcome.result["outcome"], "exited", outcome.frames)
        return outcome.stdout

    def parent_of_run(self) -> int:
        """Which first process a run gets."""
        channel = self.engine.start(["/bin/sh", "-c", "echo up; sleep 1000", self.marker], self.keys, sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        shell = min(pid for pid in census.marked(self.marker) if "echo up" in census.command_line(pid))
        with open(f"/proc/{shell}/stat", encoding="ascii") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        channel.send(CANCEL, wire.number(9))
        self.assertEqual(wire.finish(channel).result["outcome"], "cancelled")
        return parent


class UsedOnce(ReadyCase):
    """What is made ahead is used, for one run."""

    def test_a_run_gets_the_jar_that_stands_and_no_second_one_does(self) -> None:
        ready = self.prepare()
        self.assertEqual(self.parent_of_run(), ready)
        self.assertNotEqual(self.parent_of_run(), ready)

    def test_nothing_of_an_earlier_command_is_there(self) -> None:
        self.prepare()
        for _ in range(4):
            self.assertEqual(self.run_script("ls -A $HOME /tmp | grep -v gitconfig | grep mine; echo x > /tmp/mine; echo x > $HOME/mine"), b"")

    def prepare_two(self) -> List[int]:
        """Have a run use the jar that was made ahead, so that two are made; the first processes of both."""
        self.prepare()
        self.engine.run(["/bin/true"], self.keys)

        def are_two() -> bool:
            children = self.children()
            return len(children) == 2 and all(census.state(pid) == "S" for pid in children)

        self.wait_for(are_two, "two jars are made ahead")
        return self.children()

    def test_two_are_made_after_one_was_used_and_each_is_used_once(self) -> None:
        ready = self.prepare_two()
        parents = [self.parent_of_run() for _ in range(4)]
        self.assertEqual(set(parents[:2]), set(ready))
        self.assertEqual(len(set(parents)), 4)

    def test_the_second_one_is_checked_as_the_first_is(self) -> None:
        self.prepare_two()
        (self.work / ".envrc").write_text("x")
        for _ in range(3):
            self.assertEqual(self.run_script("echo y > .envrc || echo refused"), b"refused\n")

    def test_with_a_layer_none_is_made_ahead(self) -> None:
        """It would be older than its run: what the host changed in between would look like a conflict."""
        ready = self.prepare()
        (self.work / "a").write_text("1\n")
        for keys in ({"workspace": "cow"}, {"cow_dirs": [str(self.directory("other"))]}):
            for _ in range(2):
                result = self.engine.run(["/bin/sh", "-c", "echo 2 >> a", self.marker], keys).result
                self.assertEqual(result["exit_code"], 0, result)
                self.assertEqual(result["workspace"]["kind"], "overlay")
        self.wait_for(lambda: self.children() == [ready], "nothing waits but what did before")
        stores = self.home / ".local/state/belljar/ws"
        # What has no change in it is removed after the result.
        self.wait_for(lambda: len([path for path in stores.iterdir() if not path.name.startswith(".")]) == 2, "two layers are left")

    def test_other_policies_and_directories_do_not_get_it(self) -> None:
        ready = self.prepare()
        self.keys = {"net": "host"}
        self.assertNotEqual(self.parent_of_run(), ready)
        self.keys = {"memory": "300M"}
        self.assertNotEqual(self.parent_of_run(), ready)
        self.keys = {}
        other = self.directory("other")
        self.assertEqual(self.run_script("pwd", top={"cwd": str(other)}).decode().strip(), str(other))

    def test_keys_of_a_run_are_its_own(self) -> None:
        ready = self.prepare()
        self.keys = {"timeout": "20s", "env": {"A": "b"}, "fds": 77, "output": 3}
        self.assertEqual(self.parent_of_run(), ready)
        self.prepare(self.keys)
        self.assertEqual(self.run_script("printf %s%s $A $(ulimit -n)"), b"b77")

    def test_the_environment_is_the_runs_own(self) -> None:
        self.prepare({"pass_env": ["MINE"]})
        request = self.engine.request(["/bin/sh", "-c", "printf %s $MINE"], self.keys)
        request["environ"].append("MINE=now")
        self.assertEqual(wire.finish(self.engine.channel().send(wire.RUN, request)).stdout, b"now")

    def test_a_command_that_is_not_there_fails_as_ever(self) -> None:
        self.prepare()
        result = self.engine.run(["/no/such"], self.keys).result
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "exec"))

    def test_a_jar_that_was_killed_meanwhile_is_not_missed(self) -> None:
        os.kill(self.prepare(), 9)
        self.assertEqual(self.run_script("echo fine"), b"fine\n")


class Stale(ReadyCase):
    """The host changes between preparing and use: the command sees it as it is now."""

    def test_the_workdir_was_replaced(self) -> None:
        (self.work / "x").write_text("old")
        self.prepare()
        self.work.rename(self.base / "moved")
        self.work.mkdir()
        (self.work / "x").write_text("new")
        self.assertEqual(self.run_script("cat x"), b"new")

    def test_a_protected_file_appeared(self) -> None:
        self.prepare()
        (self.work / ".envrc").write_text("mine\n")
        self.assertEqual(self.run_script("echo yours >> .envrc || echo refused"), b"refused\n")
        self.assertEqual((self.work / ".envrc").read_text(), "mine\n")

    def test_a_command_makes_protected_names_for_the_next_one(self) -> None:
        self.prepare()
        made = "echo mine > .envrc; mkdir .claude .dir; echo mine > .claude/settings.json; ln -s .dir .vscode; echo mine > .dir/tasks.json"
        self.run_script(made)
        self.prepare()
        script = "for f in .envrc .claude/settings.json .vscode/tasks.json; do echo yours >> $f || echo refused; done 2> /dev/null"
        for _ in range(2):
            self.assertEqual(self.run_script(script), b"refused\n" * 3)
        self.assertEqual((self.work / ".envrc").read_text(), "mine\n")

    def test_a_protected_file_was_replaced(self) -> None:
        (self.work / ".envrc").write_text("old\n")
        self.prepare()
        (self.work / "new").write_text("new\n")
        (self.work / "new").rename(self.work / ".envrc")
        self.assertEqual(self.run_script("cat .envrc; echo yours >> .envrc || echo refused"), b"new\nrefused\n")

    def test_a_source_was_replaced(self) -> None:
        data = self.directory("data")
        (data / "x").write_text("old")
        self.prepare({"ro": [str(data)]})
        data.rename(self.base / "moved")
        data.mkdir()
        (data / "x").write_text("new")
        self.assertEqual(self.run_script(f"cat {data}/x"), b"new")

    def test_a_source_was_removed(self) -> None:
        data = self.directory("data")
        self.prepare({"ro": [str(data)]})
        data.rmdir()
        result = self.engine.run(["/bin/true"], self.keys).result
        self.assertEqual(result["outcome"], "failed")
        self.assertIn(str(data), result["error"]["message"])

    def test_a_link_leads_elsewhere_now(self) -> None:
        for name in ("one", "two"):
            (self.directory(name) / "x").write_text(name)
        link = self.base / "link"
        link.symlink_to(self.base / "one")
        self.prepare({"ro": [f"{link}:/data"]})
        link.unlink()
        link.symlink_to(self.base / "two")
        self.assertEqual(self.run_script("cat /data/x"), b"two")

    def test_a_hidden_path_appeared(self) -> None:
        self.prepare({"hide": [str(self.work / "secret")]})
        (self.work / "secret").write_text("secret")
        self.assertEqual(self.run_script("cat secret 2> /dev/null || echo hidden"), b"hidden\n")

    def test_a_toolchain_was_replaced(self) -> None:
        tools = self.home / ".cargo" / "bin"
        self.make_tool(tools, "old")
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"
        self.engine.env["PATH"] = self.env["PATH"]
        self.prepare()
        shutil.rmtree(self.home / ".cargo")
        self.make_tool(tools, "new")
        self.assertEqual(self.run_script("mytool"), b"new\n")

    def make_tool(self, directory: Any, says: str) -> None:
        """A program that says something."""
        directory.mkdir(parents=True)
        (directory / "mytool").write_text(f"#!/bin/sh\necho {says}\n")
        (directory / "mytool").chmod(0o755)

    def test_a_repository_appeared_in_the_workdir(self) -> None:
        self.prepare()
        for name in ("hooks", "objects", "refs"):
            (self.work / ".git" / name).mkdir(parents=True)
        (self.work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.assertEqual(self.run_script("echo x > .git/hooks/post-commit || echo refused"), b"refused\n")

    def test_the_callers_name_for_git_changed(self) -> None:
        (self.home / ".gitconfig").write_text("[user]\n\tname = Old\n\temail = o@example.org\n")
        self.prepare()
        (self.home / ".gitconfig").write_text("[user]\n\tname = New\n\temail = n@example.org\n")
        self.assertIn(b"New", self.run_script("cat $HOME/.gitconfig"))

    def test_a_protected_file_was_replaced(self) -> None:
        (self.work / ".envrc").write_text("old\n")
        self.prepare()
        (self.work / "new").write_text("new\n")
        (self.work / "new").rename(self.work / ".envrc")
        self.assertEqual(self.run_script("cat .envrc; echo yours >> .envrc || echo refused"), b"new\nrefused\n")

    def test_the_environment_leads_to_other_tools(self) -> None:
        for name in ("one", "two"):
            self.make_tool(self.home / name / "bin", name)
        before = self.engine.env["PATH"]
        self.engine.env["PATH"] = f"{self.home}/one/bin:{before}"
        self.prepare()
        self.engine.env["PATH"] = f"{self.home}/two/bin:{before}"
        self.assertEqual(self.run_script("mytool"), b"two\n")

    def test_a_file_of_etc_was_replaced_or_rewritten(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can change /etc")
        path = "/etc/gai.conf"
        before = open(path, "rb").read() if os.path.exists(path) else None
        self.addCleanup(self.restore, path, before)
        self.restore(path, b"# one\n")
        self.prepare()
        with open(path + ".bjt", "wb") as file:
            file.write(b"# two\n")
        os.chmod(path + ".bjt", 0o644)
        os.rename(path + ".bjt", path)
        self.assertEqual(self.run_script(f"cat {path}"), b"# two\n")
        self.prepare()
        with open(path, "r+b") as file:
            file.write(b"# 333\n")
        self.assertEqual(self.run_script(f"cat {path}"), b"# 333\n")

    @staticmethod
    def restore(path: str, content: Optional[bytes]) -> None:
        """Put a file back as it was."""
        if content is None:
            if os.path.exists(path):
                os.unlink(path)
            return
        with open(path, "wb") as file:
            file.write(content)


if __name__ == "__main__":
    unittest.main()
