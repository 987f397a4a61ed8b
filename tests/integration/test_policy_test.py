# SPDX-License-Identifier: Apache-2.0
"""`belljar policy test` and `policy diff`: a policy that says what it must do, and what two policies do otherwise."""

from __future__ import annotations

import json
import unittest
from typing import Any

from harness.case import JarCase


class PolicyTest(JarCase):
    """In the style of CI: nothing is said where all holds, else the line."""

    def write(self, name: str, text: Any) -> str:
        path = self.base / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return str(path)

    def check(self, text: Any, status: int) -> str:
        done = self.belljar("policy", "test", self.write("policy.json", text))
        self.assertEqual(done.status, status, done.stderr)
        return (done.stdout + done.stderr).decode()

    def test_what_holds_is_not_said(self) -> None:
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id").write_text("x")
        self.assertEqual(self.check({
            "ro": ["/etc/hostname"],
            "must_allow": ["/usr/bin/env exec", "/etc/passwd read", f"{self.work} write", "openat"],
            "must_deny": ["/etc/shadow read", "~/.ssh/id read", "example.org:443", "mount", "/usr/bin/env write"],
        }, 0), "")

    def test_the_line_that_does_not_hold(self) -> None:
        said = self.check('{\n  "must_allow": ["/etc/passwd read",\n    "example.org:443"],\n  "must_deny": ["openat"]\n}', 1)
        self.assertIn("policy.json:3:5: must_allow: example.org:443 is refused: net is 'none'\n", said)
        self.assertIn("  allowed with: --allow-net example.org:443\n", said)
        self.assertIn("policy.json:4:17: must_deny: openat is allowed: ", said)
        self.assertNotIn("passwd", said)

    def test_mistakes_are_errors_and_nothing_is_tested(self) -> None:
        for text, words in (
            ({"must_allow": ["/etc/passwd"]}, "policy.json:1:17: a path begins with"),
            ({"must_allow": ["passwd read"]}, "a path begins with"),
            ({"must_allow": "/etc/passwd read"}, "this key is a list"),
            ({"must_deny": [3]}, "is a text"),
            ({"must_deny": ["no such thing!"]}, "neither a path, nor a host"),
            ({"must_deni": []}, "unknown key 'must_deni'"),
            ({"ro": []}, "nothing to test"),
        ):
            self.assertIn(words, self.check(text, 125), text)
        for words in (["policy", "test"], ["policy", "test", "a", "b"], ["policy", "diff", "agent"]):
            self.assertEqual(self.belljar(*words).status, 125)

    def test_a_run_takes_the_same_file_and_does_not_mind(self) -> None:
        path = self.write("policy.json", {"must_allow": ["mount"], "must_deny": []})
        self.assertEqual(self.jar("--policy", path, "--", "true").status, 0)
        self.assertEqual(self.belljar("policy", "check", path).status, 0)
        self.assertNotIn(b"must_allow", self.belljar("policy", "show", path).stdout)
        schema = json.loads(self.belljar("policy", "schema").stdout)
        self.assertEqual(schema["properties"]["must_deny"]["items"], {"type": "string"})

    def test_differences_in_words(self) -> None:
        a = self.write("a.json", {"ro": ["/data"], "timeout": "30s", "allow_net": ["example.org"]})
        b = self.write("b.json", {"ro": ["/data", "/models"], "rw": ["/out"], "timeout": "1m", "memory": "1G", "redact": ["abcdef"]})
        done = self.belljar("policy", "diff", a, b)
        self.assertEqual(done.status, 1, done.stderr)
        self.assertEqual(sorted(done.stdout.decode().splitlines()), sorted([
            f"{b} also lets the jar read /models",
            f"{b} also lets the jar write /out",
            f"{b} no longer has the rule example.org",
            f"{b}: net is none instead of gate",
            f"{b}: timeout is 1m instead of 30s",
            f"{b}: memory is 1G instead of none",
            f"{b} also redacts a text",
        ]))
        self.assertEqual(self.belljar("policy", "diff", a, a).stdout, b"")
        self.assertEqual(self.belljar("policy", "diff", "agent", "agent").status, 0)
        self.assertEqual(self.belljar("policy", "diff", a, str(self.base / "none.json")).status, 125)


if __name__ == "__main__":
    unittest.main()
