# SPDX-License-Identifier: Apache-2.0
"""`belljar learn` and `run --suggest`: one run, and a policy with a reason for each line that it was refused."""

from __future__ import annotations

import json
import os
import socket
from typing import Any, Dict, Optional

from harness import census
from harness.case import JarCase
from harness.terminal import Terminal

# Three megabytes where one is allowed.
WRITER = ("--disk", "1M", "--", "sh", "-c", "echo ran >> runs; head -c 3000000 /dev/zero > /tmp/x")


class LearnCase(JarCase):
    """What `learn` says, and what it writes."""

    def learn(self, *words: str, status: Optional[int] = None) -> str:
        """The policy that it writes; its messages are in self.said."""
        done = self.belljar("learn", "--out", "p.json", *words)
        self.assertIn(b"belljar run --policy ./p.json", done.stderr)
        if status is not None:
            self.assertEqual(done.status, status, done)
        self.said = done.stderr.decode()
        return self.take_policy("p.json")

    def person(self, *words: str) -> Terminal:
        terminal = Terminal(24, 80)
        self.addCleanup(terminal.close)
        terminal.start(words, way=self.way, verb="learn", env={**self.env, "TERM": "xterm"}, cwd=self.work)
        return terminal

    def take_policy(self, name: str) -> str:
        """It is tested and found right; its text. The name is free again."""
        done = self.belljar("policy", "test", f"./{name}")
        self.assertEqual((done.status, done.stdout), (0, b""), done)
        self.assertEqual(os.stat(self.work / name).st_mode & 0o777, 0o600)
        (self.work / name).rename(self.work / "used.json")
        return (self.work / "used.json").read_text()

    def data_of(self, text: str) -> Dict[str, Any]:
        """The policy without its comments, which have lines of their own."""
        data: Dict[str, Any] = json.loads("".join(line for line in text.splitlines() if not line.strip().startswith("//")))
        return data


class Runs(LearnCase):
    """Without a terminal: one run, one file."""

    def test_a_limit_that_was_reached_is_a_line(self) -> None:
        text = self.learn(*WRITER)
        self.assertIn('// use disk: the limit of 1M was reached\n  "disk": "2M"', text)
        self.assertEqual((self.work / "runs").read_text(), "ran\n", "it is run once")

    def test_the_printed_command_uses_the_file(self) -> None:
        self.learn("--", "sh", "-c", "echo \"$1\"", "sh", "it's", status=0)
        self.assertIn("belljar run --policy ./p.json -- sh -c 'echo \"$1\"' sh 'it'\\''s'", self.said)

    def test_without_a_file_the_policy_is_the_output(self) -> None:
        done = self.belljar("learn", "--disk", "4M", "--", "echo", "said")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(self.data_of(done.stdout.decode())["disk"], "4M")
        self.assertIn(b"said\n", done.stderr)

    def test_one_socket_takes_both_streams(self) -> None:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                done = self.belljar("learn", "--", "echo", "said", stdout=theirs, stderr=theirs)
            self.assertEqual(done.status, 0)
            said = b""
            while piece := ours.recv(65536):
                said += piece
        self.assertIn(b"said\n", said)
        self.assertIn(b"must_deny", said)

    def test_run_suggests_beside_its_result(self) -> None:
        result = self.json("--suggest", "p.json", *WRITER)
        self.assertIn("disk", [entry["what"] for entry in result["denied"]])
        data = self.data_of(self.take_policy("p.json"))
        self.assertEqual((data["disk"], "output" in data), ("2M", False))

    def test_what_cannot_be_seen_is_said(self) -> None:
        self.env["WANTED"] = "x"
        self.learn("--", "sh", "-c", 'test -n "$WANTED"', status=1)
        self.assertRegex(self.said, "--pass-env NAME.*WANTED")

    def test_the_policy_goes_where_nothing_was(self) -> None:
        (self.work / "p.json").write_text("{}")
        for words in (("learn", "--out"), ("run", "--suggest")):
            done = self.belljar(*words, "p.json", "--", "touch", "ran")
            self.assertEqual((done.status, (self.work / "ran").exists()), (125, False), done)
        self.assertEqual(self.json("--suggest", "p.json", "--", "true")["error"]["stage"], "usage")
        # Belljar does not follow a link that the command puts there.
        done = self.belljar("learn", "--out", "q.json", "--", "ln", "-s", str(self.base / "elsewhere"), "q.json")
        self.assertEqual((done.status, (self.base / "elsewhere").exists()), (125, False), done)

    def test_a_command_that_never_ran_leaves_no_policy(self) -> None:
        done = self.belljar("learn", "--out", "p.json", "--", "/nowhere/program")
        self.assertEqual((done.status, (self.work / "p.json").exists()), (127, False), done)

    def test_its_end_is_the_end_of_the_run(self) -> None:
        learning = self.start(*self.sh("echo on > on; exec sleep 1000"), verb="learn")
        self.wait_for((self.work / "on").exists, "the command runs")
        learning.kill()
        learning.wait()
        self.assertEqual(census.wait_until_none(marker=self.marker), [])

    def test_a_policy_that_only_tightens_has_nothing_to_learn(self) -> None:
        (self.work / "t.json").write_text("{}")
        for words in (("learn",), ("run", "--suggest", "p.json")):
            self.assertEqual(self.belljar(*words, "--tighten", "./t.json", "--", "true").status, 125)


class Files(LearnCase):
    """What a trace tells."""

    def put(self, name: str) -> str:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
        return str(path)

    def test_one_line_shows_the_directory_of_several_files(self) -> None:
        models = [self.put(f"data/{name}") for name in ("a", "b")]
        text = self.learn("--", "cat", *models, status=1)
        self.assertEqual(self.data_of(text)["ro"], [f"{self.home}/data"])
        self.assertRegex(text, f"// read {self.home}/data/. by cat, and 1 more: .*\n    \"{self.home}/data\"")
        self.assertEqual(sorted(self.data_of(text)["must_allow"]), [f"{model} read" for model in models])
        self.assertEqual(self.jar("--policy", "./used.json", "--", "cat", *models).status, 0)

    def test_one_line_shows_a_cache_of_many_directories(self) -> None:
        entries = [self.put(f".cache/build/{number:02x}/entry") for number in range(12)]
        text = self.learn("--", "sh", "-c", f"cat {' '.join(entries)}; for entry in {' '.join(entries)}; do echo y >> $entry; done", status=2)
        self.assertEqual(self.data_of(text)["rw"], [f"{self.home}/.cache/build"])
        self.assertEqual(self.jar("--policy", "./used.json", "--", "sh", "-c", f"echo y >> {entries[-1]}").status, 0)

    def test_a_home_or_a_system_directory_is_never_shown_for_a_file(self) -> None:
        path = self.put("model")
        text = self.learn("--", "sh", "-c", f"cat {path}; echo x > /usr/share/belljar-test", status=2)
        self.assertEqual(self.data_of(text)["ro"], [path])
        self.assertNotIn('"/usr/share"', text)

    def test_a_directory_to_write_to(self) -> None:
        old = self.put("results/old")
        text = self.learn("--", "sh", "-c", f"cat {old}; echo y >> {old}", status=2)
        self.assertEqual(self.data_of(text)["rw"], [f"{self.home}/results"])
        self.assertEqual(self.jar("--policy", "./used.json", "--", "sh", "-c", f"echo y >> {old}").status, 0)
        self.assertEqual((self.home / "results" / "old").read_text(), "x\ny\n")

    def test_secrets_are_named_and_never_in_the_file(self) -> None:
        places = [self.put(name) for name in (".ssh/id", ".netrc", ".config/gcloud/token", ".config/tool")]
        text = self.learn("--", "sh", "-c", f"cat {' '.join(places)}; true", status=0)
        self.assertEqual(self.data_of(text)["ro"], [f"{self.home}/.config/tool"])
        for word in (".ssh", ".netrc", "gcloud"):
            self.assertNotIn(word, text)
            self.assertIn(word, self.said)

    def test_names_of_files_cannot_leave_their_comment(self) -> None:
        path = self.put("data/a\n\"rw\": [\"/\"], //\x1b[2J")
        text = self.learn("--", "cat", path, status=1)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("rw", self.data_of(text))


class People(LearnCase):
    """On a terminal of 80 columns and 24 lines: one question about each line, after the one run."""

    def test_each_line_is_asked_about_once(self) -> None:
        for name in ("one", "two"):
            self.directory(f"home/{name}")
            for file in ("a", "b"):
                (self.home / name / file).write_text("x\n")
        files = [f"{self.home}/{name}/{file}" for name in ("one", "two") for file in ("a", "b")]
        terminal = self.person("--out", "p.json", "-C", str(self.work), "--", "cat", *files)
        at = terminal.expect(b"n: no  q: no, and no to the rest > ")
        terminal.type(b"yes please\r")
        at = terminal.expect(b"answer with one of the letters", after=at)
        terminal.type(b"y\r")
        at = terminal.expect(b"n: no  q: no, and no to the rest > ", after=at)
        terminal.type(b"n\r")
        terminal.expect(b"wrote p.json: 1 line learned", after=at)
        self.assertEqual(terminal.end(), 1)
        self.assertEqual(len(self.data_of(self.take_policy("p.json"))["ro"]), 1)
        self.assertEqual(terminal.read_modes(), terminal.modes)

    def test_the_end_of_the_input_is_no(self) -> None:
        terminal = self.person("--out", "p.json", *WRITER)
        terminal.expect(b"allow it with --disk 2M  n: no")
        terminal.type(b"\x04")
        self.assertNotEqual(terminal.end(), 0)
        self.assertNotIn("2M", self.take_policy("p.json"))
        self.assertEqual((self.work / "runs").read_text(), "ran\n")
