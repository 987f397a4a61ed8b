# SPDX-License-Identifier: Apache-2.0
"""Patterns in `hide`, `ro` and `rw`, and `hide_secrets`: what a command tries so that a file that matches can be read or written.

The layers: masks over everything that matches when the jar is made (mount namespace), the other names of a file and the targets of
links among them; directories above cannot be moved; bounds that refuse the policy; and `risky` for what appears later.
"""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path
from typing import Any, Dict, List

from adversarial_support import AttackCase
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.runner import LANDLOCK, NAMESPACE

SECRET = "the-token-of-this-project"


class GlobCase(AttackCase):
    way = NAMESPACE

    def setUp(self) -> None:
        super().setUp()
        for name in (".env", "sub/.env", "sub/deep/er/.env", "node_modules/x/.env", "notes.txt"):
            self.make(name)

    def make(self, name: str, text: str = SECRET) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def seen(self, *options: Any) -> List[str]:
        """The files below the work directory in which the command finds the secret, by whatever name."""
        script = "find -L . -type f 2>/dev/null | sort | while read -r f; do grep -qs the-token \"$f\" && echo \"$f\"; done; true"
        result = self.json(*options, *self.sh(script))
        self.assertEqual(result["outcome"], "exited", result)
        return str(result["stdout"]).split()

    def risky(self, result: Dict[str, Any]) -> Dict[str, str]:
        return {os.path.relpath(item["path"], self.work): item["why"] for item in result["risky"]}


class Hidden(GlobCase):
    def test_what_matches_is_hidden_at_any_depth(self) -> None:
        self.assertEqual(self.seen("--hide", "**/.env"), ["./notes.txt"])
        self.assertEqual(self.seen("--hide", "sub/**"), ["./.env", "./node_modules/x/.env", "./notes.txt"])
        self.assertEqual(self.seen("--hide", "s?b/[.]env"), ["./.env", "./node_modules/x/.env", "./notes.txt", "./sub/deep/er/.env"])
        self.assertEqual(self.seen("--hide", f"{self.work}/**/.env", "--hide", "*.txt"), [])

    def test_a_pattern_that_matches_nothing_is_no_error(self) -> None:
        result = self.json("--hide", "**/*.pem", "--", "true")
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)

    def test_braces_that_hide_nothing_are_told(self) -> None:
        result = self.json("--hide", "**/*.{pem,key}", "--", "true")
        self.assertEqual([note["name"] for note in result["notes"]], ["hide"], result)
        self.make("a.{pem,key}")
        self.assertNotIn("./a.{pem,key}", self.seen("--hide", "*.{pem,key}", "--hide", "**/.env"))

    def test_other_names_of_a_file_are_hidden_too(self) -> None:
        os.link(self.work / "sub/.env", self.work / "node_modules/innocent")
        (self.work / "led").symlink_to("sub/deep/er/.env")
        (self.work / "real.txt").write_text(SECRET)
        (self.work / "sub/deep/.env").symlink_to("../../real.txt")
        (self.work / "turn").symlink_to("sub")
        self.assertEqual(self.seen("--hide", "**/.env"), ["./notes.txt"])

    def test_other_names_of_a_file_that_is_named_are_hidden_too(self) -> None:
        os.link(self.work / "notes.txt", self.work / "sub/copy")
        self.assertNotIn("./sub/copy", self.seen("--hide", self.work / "notes.txt"))

    def test_links_on_the_way_lead_to_what_is_hidden(self) -> None:
        (self.work / "alias").symlink_to("sub")
        self.assertNotIn("./sub/.env", self.seen("--hide", "al*/.env"))
        self.assertNotIn("./sub/.env", self.seen("--hide", "alias/.e*"))
        outer = self.base / "outer"
        outer.symlink_to(self.work)
        self.assertEqual(self.seen("--hide", f"{outer}/**/.env"), ["./notes.txt"])

    def test_a_command_cannot_move_what_is_hidden(self) -> None:
        script = "mv sub other; mv sub/deep other; rm -rf sub; mv sub/.env x; ln sub/.env y; cat other/.env x y sub/.env; true"
        result = self.json("--hide", "**/.env", *self.sh(script))
        self.assertNotIn(SECRET, result["stdout"], result)
        self.assertEqual((self.work / "sub/.env").read_text(), SECRET)
        self.assertEqual(self.seen("--hide", "**/.env"), ["./notes.txt"])

    def test_names_with_such_characters_can_be_named(self) -> None:
        self.make("pages/[id].tsx")
        self.make("pages/i.tsx")
        self.make("odd*name")
        self.make("oddXname")
        self.assertFalse({"./pages/[id].tsx", "./pages/i.tsx"} & set(self.seen("--hide", "pages/[id].tsx")))
        quoted = self.seen("--hide", "odd\\*name", "--hide", "pages/\\[id].tsx")
        self.assertTrue({"./oddXname", "./pages/i.tsx"} <= set(quoted), quoted)
        self.assertFalse({"./odd*name", "./pages/[id].tsx"} & set(quoted), quoted)

    def test_places_with_names_of_their_own_are_searched(self) -> None:
        shown = self.outside / "shown"
        shown.mkdir()
        (shown / "api.key").write_text(SECRET)
        for pattern in ("/data/*.key", "/**/api.key", "/d*/**/*.key"):
            result = self.json("--ro", f"{shown}:/data", "--hide", pattern, *self.sh("cat /data/api.key"))
            self.assertNotIn(SECRET, result["stdout"], pattern)
        result = self.json("--ro", f"{shown}:/data", *self.sh("cat /data/api.key"))
        self.assertIn(SECRET, result["stdout"])

    def test_layers_hide_it_too(self) -> None:
        script = "mv sub/deep elsewhere; cp -r sub copied; find . -name .env -exec cat {} +; grep -rs the-token sub copied; true"
        for options in ((), ("--workspace", "kept"), ("--workspace", "kept")):
            result = self.json("--cow", *options, "--hide", "**/.env", *self.sh(script))
            self.assertEqual(result["outcome"], "exited", result)
            self.assertNotIn(SECRET, result["stdout"], result)
        self.belljar("workspace", "remove", "kept")

    def test_the_plan_and_why_name_the_pattern(self) -> None:
        plan = json.loads(self.belljar("plan", "--json", "--hide", "**/.env", "--", "true").stdout)
        found = {item["path"] for item in plan["matches"]}
        self.assertEqual(found, {str(self.work / name) for name in (".env", "sub/.env", "sub/deep/er/.env", "node_modules/x/.env")})
        self.assertEqual({(item["key"], item["pattern"]) for item in plan["matches"]}, {("hide", "**/.env")})
        self.assertIn(b"**/.env", self.belljar("plan", "--hide", "**/.env", "--", "true").stdout)
        why = self.belljar("why", "--hide", "**/.env", "sub/.env", "read")
        self.assertEqual((why.status, b"'**/.env' in `hide`" in why.stdout), (1, True), why)


class Bounds(GlobCase):
    def refused(self, *options: Any) -> str:
        result = self.json(*options, "--", "true")
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "files"), result)
        return str(result["error"]["message"])

    def test_too_many_files_refuse_the_policy(self) -> None:
        crowd = self.work / "crowd"
        crowd.mkdir()
        for number in range(1001):
            (crowd / f"{number}.key").touch()
        self.assertIn("1000", self.refused("--hide", "**/*.key"))
        result = self.json("--hide", "crow?", "--", "true")
        self.assertEqual(result["outcome"], "exited", "a directory counts as one")

    def test_a_directory_that_the_command_could_open_refuses_the_policy(self) -> None:
        if os.getuid() == 0:
            self.skipTest("root lists every directory")
        closed = self.work / "sub/deep"
        closed.chmod(0)
        self.addCleanup(closed.chmod, 0o755)
        self.assertIn("sub/deep", self.refused("--hide", "**/.env"))
        opened = self.json("--hide", "*.txt", *self.sh("cat notes.txt; true"))
        self.assertEqual((opened["outcome"], opened["stdout"]), ("exited", ""), "no pattern looks in there")


class Later(KeptJarCase, GlobCase):
    def test_what_appears_later_is_risky(self) -> None:
        result = self.json("--hide", "**/.env", *self.sh("mkdir new; echo x > new/.env; echo y > new/other"))
        self.assertEqual(list(self.risky(result)), ["new/.env"], result["risky"])
        self.assertIn("'**/.env' in `hide`", self.risky(result)["new/.env"])
        again = self.json("--hide", "**/.env", *self.sh("cat new/.env; true"))
        self.assertEqual((again["stdout"], again["risky"]), ("", []), "it is hidden from the next jar")

    def test_a_kept_jar_tells_what_it_does_not_hide(self) -> None:
        jar = self.open({"hide": ["**/.env"], "timeout": "20s"})
        self.assertEqual(self.run_in(jar, self.script("true")).result["risky"], [])
        self.make("fresh/.env")
        result = self.run_in(jar, self.script("cat sub/.env; true"))
        self.assertNotIn(SECRET.encode(), result.stdout)
        self.assertEqual(list(self.risky(result.result)), ["fresh/.env"], result.result)

    def test_a_jar_made_ahead_is_not_used_when_something_new_matches(self) -> None:
        keys = {"hide": ["**/.env"], "workdir": str(self.work)}
        for number in range(4):
            self.make(f"made{number}/.env")
            result = self.engine.run(self.script("cat made*/.env; true"), keys)
            self.assertEqual(result.stdout, b"", f"run {number}")


class Shown(GlobCase):
    def test_what_ro_matches_cannot_be_changed(self) -> None:
        script = "for f in notes.txt sub/.env other.cfg; do echo changed > $f; done; mv notes.txt gone; rm -f notes.txt; true"
        self.json("--ro", "*.txt", "--ro", "**/.env", *self.sh(script))
        self.assertEqual((self.work / "notes.txt").read_text(), SECRET)
        self.assertEqual((self.work / "sub/.env").read_text(), SECRET)
        self.assertEqual((self.work / "other.cfg").read_text(), "changed\n")

    def test_rw_follows_no_link(self) -> None:
        """A link in a place that an earlier command could write would make anything writable."""
        data = self.outside / "data"
        data.mkdir()
        (data / "a.log").write_text("")
        (data / "b.log").symlink_to(self.secret)
        result = self.json("--rw", f"{data}/*.log", *self.sh(f"echo x > {data}/a.log; echo x > {data}/b.log; echo x > {self.secret}"))
        self.assertEqual((data / "a.log").read_text(), "x\n", result)
        self.assertEqual(self.secret.read_text(), self.SECRET)

    def test_a_pattern_that_shows_nothing_is_an_error(self) -> None:
        for key in ("--ro", "--rw"):
            result = self.json(key, "*.nothing", "--", "true")
            self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "files"), result)
            self.assertIn("nothing matches", result["error"]["message"])
        self.assertIn("DEST", self.json("--ro", "*.txt:/x", "--", "true")["error"]["message"])


class Secrets(GlobCase):
    def test_what_usually_holds_secrets_is_hidden(self) -> None:
        for name in (".env.local", "a/server.pem", "b/credentials.json", "c/terraform.tfstate", ".netrc", ".pypirc", "k/x.kdbx"):
            self.make(name)
        self.make("ssh/id_ed25519", f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}")
        self.make(".npmrc", f"//registry/:_authToken={SECRET}")
        kept = [".env.example", "ssh/id_ed25519.pub", "src/id_names.py", "node_modules/x/.env", "notes.txt", "web/.npmrc"]
        for name in kept:
            self.make(name)
        self.assertEqual(self.seen("--hide-secrets"), sorted(f"./{name}" for name in kept))
        policy = self.base / "policy.json"
        policy.write_text('{"hide_secrets": true}')
        self.assertEqual(self.seen("--policy", policy), sorted(f"./{name}" for name in kept))

    def test_the_repository_around_and_shown_directories_count(self) -> None:
        shown = self.outside / "shown"
        shown.mkdir()
        (shown / ".env").write_text(SECRET)
        result = self.json("--ro", shown, "--hide-secrets", *self.sh(f"cat {shown}/.env"))
        self.assertNotIn(SECRET, result["stdout"])
        self.git("init", "-q", ".", cwd=self.work)
        result = self.json("-C", self.work / "sub/deep", "--hide-secrets", *self.sh("cat ../.env ../../.env; true"))
        self.assertNotIn(SECRET, result["stdout"], result)

    def test_the_policy_shows_the_globs_and_doctor_proposes_them(self) -> None:
        policy = self.base / "policy.json"
        policy.write_text('{"hide_secrets": true}')
        done = self.belljar("policy", "show", policy)
        shown = json.loads(done.stdout)
        self.assertTrue({"**/.env", "**/*.pem", "!**/.env.example"} <= set(shown["hide_secrets_globs"]), shown)
        policy.write_bytes(done.stdout)
        self.assertEqual(self.belljar("policy", "show", policy).stdout, done.stdout)
        shown["hide_secrets_globs"].remove("**/.env")
        policy.write_text(json.dumps(shown))
        self.assert_failed(self.belljar("policy", "check", policy), "hide_secrets_globs")
        self.assertIn(b"--hide-secrets", self.belljar("doctor").stdout)

    def test_a_policy_that_tightens_may_hide_more_and_not_less(self) -> None:
        tight, loose = self.base / "tight.json", self.base / "loose.json"
        tight.write_text('{"hide_secrets": true, "hide": ["*.txt"]}')
        loose.write_text('{"hide_secrets": false}')
        self.assertEqual(self.seen("--tighten", tight), ["./node_modules/x/.env"])
        self.assertEqual(self.json("--hide-secrets", "--tighten", loose, "--", "true")["outcome"], "failed")
        loose.write_text(json.dumps({"ro": []}))
        uncovers = self.json("--ro", "*.txt", "--tighten", loose, "--", "true")
        self.assertEqual((uncovers["outcome"], uncovers["error"]["stage"]), ("failed", "policy"), "the files would become writable")
        loose.write_text(json.dumps({"rw": [f"{self.outside}/*"]}))
        widens = self.json("--rw", f"{self.outside}/\\*", "--tighten", loose, "--", "true")
        self.assertEqual((widens["outcome"], widens["error"]["stage"]), ("failed", "policy"), widens)


@on_ways(LANDLOCK)
class WithoutMounts(GlobCase):
    way = LANDLOCK

    def test_hiding_is_refused(self) -> None:
        for options in (("--hide", "**/.env"), ("--hide", "**/nothing"), ("--hide-secrets",)):
            result = self.json(*options, "--", "true")
            self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "host"), options)
            self.assertIn("namespace", result["error"]["message"])


if __name__ == "__main__":
    unittest.main()
