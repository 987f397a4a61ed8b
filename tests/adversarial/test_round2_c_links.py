# SPDX-License-Identifier: Apache-2.0
"""Links that lead a later run to secrets, places that are no work directory, and files that come back to light.

Layers: no place of secrets is a work directory; no path to a work directory leads through a link that a command may have made;
no change of a policy is proposed that reaches a secret.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict

from adversarial_support import AttackCase
from harness import census
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.result import Result
from harness.runner import LANDLOCK, NAMESPACE, Completed, StatusPipe, check_answer, finish

SECRET_PLACES = [
    ".ssh", ".ssh/deep/er", ".aws", ".gnupg", ".kube", ".config/gcloud", ".config/gh", ".docker", ".password-store", ".mozilla/firefox",
    ".config/google-chrome/Default", ".local/share/keyrings", ".claude", ".claude/projects/x", ".codex", ".gemini", ".config/github-copilot",
    ".local/share/opencode",
]  # fmt: skip


class LinkCase(AttackCase):
    def setUp(self) -> None:
        super().setUp()
        # A home with a project in it.
        self.project = self.directory("home/proj")
        (self.project / "build").mkdir()
        self.keys = self.directory("home/.ssh")
        (self.keys / "id").write_text(self.SECRET)

    def refused(self, *words: Any, **options: Any) -> str:
        """The message of a run that must not begin."""
        done = self.jar(*words, *self.sh(f"cat {self.keys}/id id; ls -a; touch ran"), **options)
        self.assertEqual((done.status, done.stdout), (125, b""), done)
        self.assertFalse((self.keys / "ran").exists())
        return done.stderr.decode()


@on_ways(NAMESPACE, LANDLOCK)
class Workdirs(LinkCase):
    def test_a_link_that_a_run_put_in_place_of_a_directory_is_not_followed(self) -> None:
        script = f"rmdir build && ln -s {self.keys} build"
        self.assertEqual(self.jar("-C", self.project, *self.sh(script)).status, 0)
        self.assertEqual((self.project / "build").readlink(), self.keys)
        self.refused("-C", "build", cwd=self.project)
        self.refused("-C", self.project / "build")
        self.refused("-C", "build", "--rw", "build", cwd=self.project)
        self.refused("-C", self.project / "build/../build/.", "--no-protect")

    def test_no_link_of_a_project_leads_to_a_work_directory(self) -> None:
        """Also where no secret is: what it leads to was not chosen by the caller."""
        other = self.directory("home/other")
        (other / "deep").mkdir()
        (self.project / "link").symlink_to(other)
        (self.project / "inner").symlink_to("build")
        (self.project / "build/up").symlink_to("../link/deep")
        for name, real in (("link", other), ("link/deep", other / "deep"), ("inner", self.project / "build"), ("build/up", other / "deep")):
            with self.subTest(link=name):
                message = self.refused("-C", self.project / name)
                self.assertIn("symbolic link", message)
                self.assertIn(f"'{real}'", message)
                self.assertEqual(self.jar("-C", real, *self.sh("pwd")).stdout, f"{real}\n".encode())

    def test_a_link_in_the_home_directory_is_the_callers(self) -> None:
        (self.home / "work").symlink_to(self.project)
        done = self.jar("-C", self.home / "work/build", *self.sh("pwd"))
        self.assertEqual((done.status, done.stdout), (0, f"{self.project}/build\n".encode()), done)

    def test_no_place_of_secrets_is_a_work_directory(self) -> None:
        for name in SECRET_PLACES:
            place = self.home / name
            place.mkdir(parents=True, exist_ok=True)
            with self.subTest(place=name):
                self.assertIn("as the work directory: it holds", self.refused("-C", place))
                done = self.jar(*self.sh("pwd; ls -A"), cwd=place)
                self.assertEqual((done.status, str(self.home).encode() in done.stdout), (0, False), done)
        for name in (".config", ".local/share"):
            with self.subTest(around=name):
                self.assertIn("it holds", self.refused("-C", self.home / name))
        fit = self.directory("home/.config/nvim")
        self.assertEqual(self.jar("-C", fit, *self.sh("pwd")).stdout, f"{fit}\n".encode())

    def test_no_grant_reaches_secrets_by_a_link_of_a_project(self) -> None:
        (self.project / "data").symlink_to(self.keys)
        for option in ("--ro", "--rw"):
            message = self.refused("-C", "none", option, self.project / "data")
            self.assertIn("symbolic link", message)
        # A link that the caller made, to something else.
        (self.project / "else").symlink_to(self.directory("home/else"))
        self.assertEqual(self.jar("-C", "none", "--ro", self.project / "else", *self.sh("true")).status, 0)


@on_ways(NAMESPACE, LANDLOCK)
class Proposals(LinkCase):
    def why(self, path: Path, access: str = "read") -> Dict[str, Any]:
        done = self.belljar("why", *self.way.options, "--json", path, access, verb="", cwd=self.project)
        answer: Dict[str, Any] = json.loads(done.stdout)
        return answer

    def test_no_cure_reaches_a_secret_through_a_link(self) -> None:
        (self.home / "innocent").symlink_to(".ssh")
        (self.home / "single").symlink_to(".ssh/id")
        (self.project / "planted").symlink_to(self.keys)
        (self.directory("home/.claude") / "x").write_text("{}")
        (self.home / ".claude.json").write_text("{}")
        for path in ("innocent", "innocent/id", "single", "proj/planted/id", ".ssh/id", ".claude/x", ".claude.json"):
            with self.subTest(path=path):
                answer = self.why(self.home / path)
                self.assertEqual((answer["allowed"], answer["cure"]), (False, None), answer)
                self.assertIn("Belljar proposes no change", answer["warning"])
        (self.home / "plain").write_text("x")
        (self.home / "link").symlink_to("plain")
        self.assertIsNotNone(self.why(self.home / "link")["cure"])

    def test_no_cure_reaches_the_agent(self) -> None:
        place = self.directory("home/agents")
        agent = socket.socket(socket.AF_UNIX)
        self.addCleanup(agent.close)
        os.chdir(place)
        self.addCleanup(os.chdir, "/")
        agent.bind("agent.1")
        self.env["SSH_AUTH_SOCK"] = str(self.home / "agent")
        (self.home / "agent").symlink_to(place / "agent.1")
        for path in (place / "agent.1", place, self.home / "agent"):
            for access in ("read", "write"):
                with self.subTest(path=path, access=access):
                    self.assertIsNone(self.why(path, access)["cure"])


@on_ways(NAMESPACE)
class Learned(LinkCase):
    def test_learn_writes_no_line_that_reaches_a_secret(self) -> None:
        (self.home / "innocent").symlink_to(".ssh")
        (self.home / "plain").write_text("x")
        out = self.directory("learned") / "policy.json"
        command = self.sh(f"cat {self.home}/innocent/id; cat {self.home}/plain")
        done = self.belljar("learn", *self.way.options, "--out", out, *command, verb="", cwd=self.project)
        policy = out.read_text()
        self.assertIn("plain", policy, done.stderr)
        self.assertNotIn("innocent", policy)
        self.assertNotIn(".ssh", policy)

    def test_learn_proposes_no_secret_variable(self) -> None:
        self.env.update(SSH_AUTH_SOCK="/x", ANTHROPIC_API_KEY="x" * 20, GITHUB_TOKEN="y" * 20, PLAIN_NAME="z")
        done = self.belljar("learn", *self.way.options, *self.sh("exit 1"), verb="", cwd=self.project)
        self.assertIn(b"PLAIN_NAME", done.stderr)
        for name in (b"SSH_AUTH_SOCK", b"ANTHROPIC_API_KEY", b"GITHUB_TOKEN"):
            self.assertNotIn(name, done.stderr)


# How programs save, and what else takes the cover off a file.
SAVES = {
    "rename over": lambda path: ((path.parent / "new").write_text("the-new-secret"), os.rename(path.parent / "new", path)),
    "remove and create": lambda path: (path.unlink(), path.write_text("the-new-secret")),
    "backup": lambda path: (os.rename(path, path.parent / "old"), path.write_text("the-new-secret")),
    "moved and linked": lambda path: (os.rename(path, path.parent / "old"), os.link(path.parent / "old", path)),
    "directory": lambda path: (os.rename(path.parent, f"{path.parent}.old"), path.parent.mkdir(), path.write_text("the-new-secret")),
}  # fmt: skip


@on_ways(NAMESPACE)
class Covers(AttackCase):
    """What is hidden stays hidden, or the jar ends."""

    def setUp(self) -> None:
        super().setUp()
        (self.work / "conf").mkdir()
        self.hidden = self.work / "conf/.env"
        self.hidden.write_text(self.SECRET)

    def result(self, done: Completed, status: StatusPipe) -> Result:
        """What is told of a run that has ended."""
        return check_answer(done, status.read())

    def test_the_jar_ends_when_the_host_takes_the_cover_off(self) -> None:
        for name, save in SAVES.items():
            with self.subTest(how=name):
                process, status = self.start_status("--hide", "conf/.env", *self.sh("echo ready; sleep 60"))
                assert process.stdout
                self.assertEqual(process.stdout.readline(), b"ready\n")
                save(self.hidden)
                done = finish(process)
                result = self.result(done, status)
                self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "cancelled", "isolate"), result)
                self.assertIn(str(self.hidden), result["error"]["message"])
                self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_a_short_run_says_so_too(self) -> None:
        """Whichever comes first, the end of the command or the news: the result does not call it well."""
        for turn in range(4):
            script = "touch ready; while ! test -e go; do :; done"
            process, status = self.start_status("--hide", "conf/.env", *self.sh(script))
            self.wait_for((self.work / "ready").exists, "the command runs")
            SAVES["rename over"](self.hidden)
            (self.work / "go").touch()
            result = self.result(finish(process), status)
            self.assertEqual(result["error"]["stage"], "isolate", turn)
            for name in ("ready", "go"):
                (self.work / name).unlink()

    def test_writing_in_place_and_touching_is_no_reason_to_end(self) -> None:
        process, status = self.start_status("--hide", "conf/.env", *self.sh("echo ready; while ! test -e go; do :; done; cat conf/.env"))
        assert process.stdout
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.hidden.write_text("the-new-secret")
        os.utime(self.hidden)
        self.hidden.chmod(0o640)
        (self.work / "conf/other").write_text("x")
        (self.work / "go").touch()
        done = finish(process)
        self.assertEqual((done.stdout, self.result(done, status)["error"]), (b"", None))

    def test_a_file_that_the_caller_cannot_read_is_watched_too(self) -> None:
        self.hidden.chmod(0)
        self.test_the_jar_ends_when_the_host_takes_the_cover_off()

    def test_a_layer_is_not_the_hosts(self) -> None:
        process, status = self.start_status("--cow", "--hide", "conf/.env", *self.sh("echo ready; while ! test -e /proc/self/nothing && read x; do :; done; cat conf/.env"), stdin=subprocess.PIPE)
        assert process.stdout
        self.assertEqual(process.stdout.readline(), b"ready\n")
        SAVES["rename over"](self.hidden)
        done = finish(process, b"")
        self.assertNotIn(b"secret", done.stdout)
        self.assertIsNone(self.result(done, status)["error"])


class KeptCovers(AttackCase, KeptJarCase):
    """The same in a jar that is kept."""

    way = NAMESPACE

    def test_a_kept_jar_ends(self) -> None:
        hidden = self.work / ".env"
        hidden.write_text("old")
        jar = self.open({"hide": [".env"]})
        self.assertEqual(self.run_in(jar, ["/bin/cat", ".env"]).stdout, b"")
        SAVES["rename over"](hidden)
        done = self.run_in(jar, ["/bin/cat", ".env"])
        self.assertNotIn(b"secret", done.stdout)
        self.assertNotEqual(done.result["outcome"], "exited")

    def test_a_kept_jar_says_what_it_no_longer_protects(self) -> None:
        protected = self.work / ".bashrc"
        protected.write_text("old")
        jar = self.open()
        self.assertNotIn("protect", self.missing(self.run_in(jar, ["/bin/true"]).result))
        SAVES["rename over"](protected)
        result = self.run_in(jar, ["/bin/true"]).result
        (missing,) = [entry for entry in result["missing"] if entry["name"] == "protect"]
        self.assertIn(str(protected), missing["why"])
        jar = self.open()
        result = self.run_in(jar, ["/bin/sh", "-c", "echo > .bashrc"]).result
        self.assertNotIn("protect", self.missing(result))
        self.assertEqual((result["exit_code"], protected.read_text()), (2, "the-new-secret"), result)


if __name__ == "__main__":
    unittest.main()
