# SPDX-License-Identifier: Apache-2.0
"""`belljar learn`: from a run that fails to a policy with which it works, and nothing is allowed without an answer."""

from __future__ import annotations

import json
import os
from typing import Any, Dict

from harness import census
from harness.case import JarCase
from harness.terminal import Terminal

# Three megabytes where one is allowed: twice the limit is not enough, four times is.
WRITER = ("--disk", "1M", "--", "sh", "-c", "echo ran >> runs; head -c 3000000 /dev/zero > /tmp/x")


class LearnCase(JarCase):
    """What `learn` says, and what it writes."""

    def learn(self, *words: str, status: int) -> Dict[str, Any]:
        done = self.belljar("learn", "--json", *words)
        self.assertEqual(done.status, status, done.stderr)
        self.answer: Dict[str, Any] = json.loads(done.stdout)
        return self.answer

    def person(self, *words: str) -> Terminal:
        terminal = Terminal(24, 80)
        self.addCleanup(terminal.close)
        terminal.start(words, way=self.way, verb="learn", env={**self.env, "TERM": "xterm"}, cwd=self.work)
        return terminal

    def check_policy(self, name: str) -> str:
        """It is tested and found right; its text."""
        done = self.belljar("policy", "test", f"./{name}")
        self.assertEqual((done.status, done.stdout), (0, b""), done)
        self.assertEqual(os.stat(self.work / name).st_mode & 0o777, 0o600)
        return (self.work / name).read_text()


class Programs(LearnCase):
    """Without a terminal: questions are data, options are answers."""

    def test_questions_are_answered_by_options(self) -> None:
        answer = self.learn("--out", "p.json", *WRITER, status=1)
        (question,) = answer["questions"]
        self.assertEqual((question["kind"], question["what"], question["cure"]["flag"]), ("limit", "disk", "--disk 2M"))
        self.assertEqual((answer["works"], answer["file"], question["directory"]), (False, None, None))
        self.assertIn([run["outcome"] for run in answer["runs"]], (["exited"], ["disk"]))
        self.assertFalse((self.work / "p.json").exists(), "a policy that was not asked for is not written")
        answer = self.learn("--out", "p.json", "--disk", "4M", *WRITER[2:], status=0)
        self.assertEqual((answer["works"], answer["questions"], answer["file"]), (True, [], "p.json"))
        self.assertEqual(answer["policy"]["disk"], "4M")
        self.check_policy("p.json")
        self.assertEqual(self.jar("--policy", "./p.json", *WRITER[2:]).status, 0)

    def test_nothing_is_allowed_where_nobody_can_be_asked(self) -> None:
        for more in ((), ("--yes",)):
            done = self.belljar("learn", *more, *WRITER)
            self.assertEqual((done.status, done.stdout), (1, b""), done)
            self.assertIn(b"to allow it, say --disk 2M", done.stderr)

    def test_what_cannot_be_seen_is_said(self) -> None:
        done = self.belljar("learn", "--", "sh", "-c", 'test -n "$WANTED"', env={**self.env, "WANTED": "x"})
        self.assertEqual(done.status, 1, done)
        self.assertIn(b"--pass-env", done.stderr)
        self.assertIn(b"WANTED", done.stderr)
        self.assertEqual(self.learn("--pass-env", "WANTED", "--", "sh", "-c", "exit 4", status=1)["questions"], [])

    def test_names_that_are_only_looked_for(self) -> None:
        """Another level tells them. The command is run once more for that, if running it again was agreed to."""
        place = self.directory("data")
        for more, runs, questions in ((), 1, []), (("--yes",), 2, [f"--ro {place}"]), (("--ledger", "files"), 1, [f"--ro {place}"]):
            answer = self.learn(*more, "--", "ls", str(place), status=1)
            self.assertEqual((len(answer["runs"]), [q["cure"]["flag"] for q in answer["questions"]]), (runs, questions), more)

    def test_the_policy_goes_where_nothing_was(self) -> None:
        (self.work / "p.json").write_text("{}")
        done = self.belljar("learn", "--out", "p.json", "--", "touch", "ran")
        self.assertEqual((done.status, (self.work / "ran").exists()), (125, False), done)
        # What the command puts in its place is not written to; the policy is not lost.
        done = self.belljar("learn", "--out", "q.json", "--", "ln", "-s", str(self.base / "elsewhere"), "q.json")
        self.assertEqual((done.status, (self.base / "elsewhere").exists()), (125, False), done)
        self.assertIn(b'"version": 1', done.stdout)

    def test_its_end_is_the_end_of_the_run(self) -> None:
        learning = self.start(*self.sh("echo on > on; exec sleep 1000"), verb="learn")
        self.wait_for((self.work / "on").exists, "the command runs")
        learning.kill()
        learning.wait()
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_a_policy_that_only_tightens_has_nothing_to_learn(self) -> None:
        (self.work / "t.json").write_text("{}")
        self.assertEqual(self.belljar("learn", "--tighten", "./t.json", "--", "true").status, 125)


class Files(LearnCase):
    """What a trace tells."""

    def put(self, name: str) -> str:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
        return str(path)

    def test_the_file_or_its_directory(self) -> None:
        model = self.put("data/model.bin")
        command = ("--", "cat", model)
        (question,) = self.learn(*command, status=1)["questions"]
        self.assertEqual((question["what"], question["process"]), (model, "cat"))
        self.assertEqual([question[name]["flag"] for name in ("cure", "directory")], [f"--ro {model}", f"--ro {self.home}/data"])
        self.assertIn("Ask whoever may decide", self.answer["next"])
        answer = self.learn("--out", "p.json", "--ro", f"{self.home}/data", *command, status=0)
        self.assertEqual((answer["questions"], answer["policy"]["ro"]), ([], [f"{self.home}/data"]))
        self.check_policy("p.json")
        self.assertEqual(self.jar("--policy", "./p.json", *command).status, 0)

    def test_a_directory_to_write_to(self) -> None:
        old = self.put("results/old")
        (question,) = self.learn("--", "sh", "-c", f"echo y >> {old}", status=1)["questions"]
        self.assertEqual([question[name]["flag"] for name in ("cure", "directory")], [f"--rw {old}", f"--rw {self.home}/results"])
        self.assertEqual(question["directory"]["policy"], {"rw": [f"{self.home}/results"]})
        self.learn("--rw", f"{self.home}/results", "--", "sh", "-c", f"echo y >> {old}", status=0)
        self.assertEqual((self.home / "results" / "old").read_text(), "x\ny\n")

    def test_secrets_are_explained_and_never_proposed(self) -> None:
        key, beside = self.put(".ssh/id"), self.put(".netrc")
        answer = self.learn("--yes", "--out", "p.json", "--", "sh", "-c", f"cat {key} {beside}; true", status=0)
        self.assertEqual((answer["questions"], answer["allowed"]), ([], []))
        self.assertEqual({entry["what"] for entry in answer["refused"]}, {key, beside})
        for entry in answer["refused"]:
            self.assertRegex(entry["warning"], "no change is proposed")
        self.assertIn(f"{key} read", answer["policy"]["must_deny"])
        self.check_policy("p.json")

    def test_yes_is_for_reading_of_toolchains_only(self) -> None:
        self.put(".pyenv/lib/module")
        tool, data = self.put(".rustup/settings"), self.put("data")
        answer = self.learn("--yes", "--", "sh", "-c", f"cat {tool} && cat {data} && echo x > {tool}", status=1)
        self.assertEqual([entry["what"] for entry in answer["allowed"]], [tool])
        self.assertEqual([entry["what"] for entry in answer["questions"]], [data])
        self.assertEqual(len(answer["runs"]), 2)


class People(LearnCase):
    """On a terminal of 80 columns and 24 lines."""

    def test_lines_are_taken_until_it_works(self) -> None:
        terminal = self.person("--out", "p.json", *WRITER)
        at = terminal.expect(b"run again after each round")
        at = terminal.expect(b"q: not at all > ", after=at)
        terminal.type(b"c\r")
        for flag in (b"--disk 2M", b"--disk 4M"):
            at = terminal.expect(b"y: yes, " + flag, after=at)
            at = terminal.expect(b"q: stop asking > ", after=at)
            terminal.type(b"y\r")
        at = terminal.expect(b"the command works; lines that were learned: 2", after=at)
        at = terminal.expect(b"written: p.json", after=at)
        self.assertEqual(terminal.end(), 0)
        text = self.check_policy("p.json")
        self.assertIn("// use disk, refused in run 2: the limit of 2M was reached\n  \"disk\": \"4M\"", text)
        self.assertNotIn("workspace", text)
        self.assertFalse((self.work / "runs").exists(), "each run was on a layer")
        self.assertEqual(terminal.read_modes(), terminal.modes)

    def test_the_whole_directory_with_a_reason_for_each_line(self) -> None:
        data = self.directory("home/data")
        for name in ("a", "b"):
            (data / name).write_text("x\n")
        (data / "evil\x1b[2J").write_text("x\n")
        script = f"cat {data}/evil*; cat {data}/a || exit 1; cat {data}/b"
        terminal = self.person("--out", "p.json", "-C", str(self.work), "--", "sh", "-c", script)
        at = terminal.expect(b"q: not at all > ")
        terminal.type(b"r\r")
        at = terminal.expect(f"d: the whole directory, --ro {data}\r\n".encode(), after=at)
        at = terminal.expect(b"q: stop asking > ", after=at)
        terminal.type(b"d\r")
        at = terminal.expect(b"written: p.json", after=at)
        self.assertEqual(terminal.end(), 0)
        text = self.check_policy("p.json")
        self.assertIn(f"// read {data}/a by cat, refused in run 1: ", text)
        self.assertIn(f'"must_allow": [\n    "{data}/a read"', text)
        self.assertNotIn(b"evil\x1b", terminal.output[at:])

    def test_no_is_no(self) -> None:
        terminal = self.person("--out", "p.json", *WRITER)
        at = terminal.expect(b"q: not at all > ")
        terminal.type(b"r\r")
        at = terminal.expect(b"q: stop asking > ", after=at)
        terminal.type(b"yes please\r")
        at = terminal.expect(b"answer with one of the letters", after=at)
        terminal.type(b"n\r")
        self.assertEqual(terminal.end(), 1)
        self.assertFalse((self.work / "p.json").exists())

    def test_nothing_runs_without_consent(self) -> None:
        terminal = self.person("--", "touch", "ran")
        terminal.expect(b"q: not at all > ")
        terminal.type(b"\x04")
        self.assertEqual((terminal.end(), (self.work / "ran").exists()), (1, False))
