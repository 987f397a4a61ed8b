# SPDX-License-Identifier: Apache-2.0
"""Policies: files and flags mean the same, mistakes are told with their place, and a project can only tighten."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

from harness.case import JarCase
from harness.result import parse_json
from harness.runner import Completed

KEYS = (
    "workdir workdir_mode workspace workspace_name cow_dirs cd ro rw hide hide_secrets tmpfs system toolchains protect exec speculation machine_facts net allow_net ask ask_timeout secrets publish hostname pass_env env timeout grace "
    "cpu_time memory pids disk file_size fds core net_connections net_bytes output overflow keep ledger redact "
    "redact_secrets redact_env rung optional"
).split()


class PolicyCase(JarCase):
    """A test with policy files."""

    def file(self, text: str, name: str = "policy.json") -> Path:
        path = self.base / name
        path.write_text(text)
        return path

    def check(self, text: str) -> Completed:
        return self.belljar("policy", "check", self.file(text))

    def show(self, *args: Any) -> Dict[str, Any]:
        done = self.belljar("policy", "show", *args)
        self.assertEqual(done.status, 0, done)
        shown = parse_json(done.stdout)
        self.assertIsInstance(shown, dict)
        return dict(shown)


class Show(PolicyCase):
    def test_an_address_of_the_web_is_no_policy_file(self) -> None:
        """`net check` takes a file, too."""
        self.assert_failed(self.belljar("net", "check", "--allow-net", "example.org", "https://example.org/x"), "as HOST:PORT")

    def test_the_default_preset(self) -> None:
        shown = self.show("agent")
        self.assertLessEqual(set(shown), {*KEYS, "version", "extends"})
        want: Dict[str, Any] = {"net": "none", "pids": 1024, "fds": 1024, "rung": "landlock", "protect": True}
        want.update(hide=[], ro=[], rw=[], env={}, optional=[], overflow="truncate", redact=[], system=True)
        self.assertEqual({key: shown.get(key) for key in want}, want)
        for name in ("PATH", "LANG", "LC_*", "TERM", "TZ", "GIT_AUTHOR_*", "GIT_COMMITTER_*"):
            self.assertIn(name, shown["pass_env"])

    def test_the_readonly_preset(self) -> None:
        self.assertEqual(self.show("readonly")["workdir_mode"], "ro")

    def test_the_strict_preset(self) -> None:
        shown = self.show("strict")
        self.assertIsNone(shown["workdir"])
        self.assertEqual((shown["toolchains"], shown["rung"], shown["pids"]), (False, "namespace", 64))
        self.assertIn(shown["timeout"], ("10s", 10, 10.0))
        self.assertIn(shown["memory"], ("256M", 256 << 20))
        self.assertIn(shown["disk"], ("64M", 64 << 20))
        self.assertIn(shown["output"], ("100K", 100 << 10))

    def test_what_is_shown_can_be_loaded(self) -> None:
        for preset in ("agent", "readonly", "strict"):
            done = self.belljar("policy", "show", preset)
            path = self.file(done.stdout.decode(), f"{preset}.json")
            self.assertEqual(self.belljar("policy", "check", path).status, 0, preset)
            self.assertEqual(self.belljar("policy", "show", path).stdout, done.stdout, preset)

    def test_a_file(self) -> None:
        shown = self.show(self.file('{"extends": "strict", "pids": 7, "hide": ["/x"]}'))
        self.assertEqual((shown["pids"], shown["hide"], shown["toolchains"]), (7, ["/x"], False))

    def test_an_unknown_preset(self) -> None:
        done = self.belljar("policy", "show", "agnet")
        self.assert_failed(done, "agnet", "agent")


class Check(PolicyCase):
    def test_good_files(self) -> None:
        for text in (
            "{}",
            '{"version": 1}',
            '// comment\n{ /* inner */ "pids": 5, // rest\n "hide": ["/a", "/b",], }\n',
            '{"timeout": 5, "grace": 0, "core": 0, "output": 0}',
            '{"timeout": "500ms", "memory": "1G", "disk": 1000, "cpu_time": 0.5}',
            '{"timeout": null, "memory": null, "output": null}',
            '{"output": {"stdout": "1M", "stderr": null}}',
            '{"output": "stderr=5,stdout=none"}',
            '{"workdir": null}',
            '{"env": {"A": "b"}, "pass_env": ["CI_*"], "redact": ["four"], "optional": ["memory", "cpu_time"]}',
            '{"ro": ["/usr/share", {"path": "/usr/lib", "dest": "/models"}, {"path": "/no/such", "optional": true}]}',
            '{"hostname": "\\u0061b"}',
        ):
            with self.subTest(text=text):
                done = self.check(text)
                self.assertEqual(done.status, 0, done)

    def mistakes(self) -> List[Tuple[str, int, int, str]]:
        """Text, line, column (0: any), and a word of the message."""
        return [
            ('{"pidz": 5}', 1, 2, "pids"),
            ('{\n  "memroy": "1G"\n}', 2, 3, "memory"),
            ('{"pids": 5, "pids": 6}', 1, 13, "pids"),
            ('{"pids": "many"}', 1, 10, "pids"),
            ('{"pids": -1}', 1, 10, "pids"),
            ('{"pids": 0}', 1, 10, "pids"),
            ('{"timeout": 0}', 1, 13, "timeout"),
            ('{"timeout": "5 parsecs"}', 1, 13, "timeout"),
            ('{"memory": true}', 1, 12, "memory"),
            ('{"net": "hots"}', 1, 9, "host"),
            ('{"overflow": "drop"}', 1, 14, "truncate"),
            ('{"protect": "yes"}', 1, 13, "protect"),
            ('{"hide": "/x"}', 1, 10, "hide"),
            ('{"hide": [5]}', 1, 11, "hide"),
            ('{"output": {"stdout": 5}}', 1, 12, "stderr"),
            ('{"output": {"stdout": 5, "stder": 6}}', 1, 26, "stderr"),
            ('{"output": {"stdout": 5, "stderr": -6}}', 1, 36, "output"),
            ('{"output": {"stdout": 5, "stderr": "none"}}', 1, 36, "null"),
            ('{"output": {"stdout": 5, "stdout": 6}}', 1, 26, "stdout"),
            ('{"env": ["A=b"]}', 1, 9, "env"),
            ('{"env": {"A": 5}}', 1, 15, ""),
            ('{"redact": ["abc"]}', 1, 13, ""),
            ('{"optional": ["memroy"]}', 1, 15, "memory"),
            ('{"rung": "namspace"}', 1, 10, "namespace"),
            ('{"version": 2}', 1, 13, "version"),
            ('{"ro": [{"path": "/usr", "dset": "/x"}]}', 1, 26, "dest"),
            ('{"pids": 5', 1, 0, ""),
            ('{"pids": 5}\nx', 2, 1, ""),
            ("[]", 1, 1, ""),
            ("", 1, 1, ""),
            ("{'pids': 5}", 1, 2, ""),
            ('{"pids": 05}', 1, 10, ""),
            ('{"hostname": "a\nb"}', 1, 15, ""),
        ]

    def test_mistakes_are_told_with_their_place(self) -> None:
        for text, line, column, word in self.mistakes():
            with self.subTest(text=text):
                done = self.check(text)
                self.assert_failed(done, word)
                first = done.stderr.decode().splitlines()[0]
                place = f"{self.base / 'policy.json'}:{line}:"
                self.assertIn(place, first)
                told = first.split(place, 1)[1].split(":")[0]
                self.assertTrue(told.isdigit(), first)
                if column:
                    self.assertLessEqual(abs(int(told) - column), 2, f"column {column}: {first}")

    def test_the_same_mistakes_stop_a_run(self) -> None:
        for text, line, _, _ in self.mistakes()[:8]:
            path = self.file(text)
            done, result = self.status("--policy", path, *self.sh("touch ran"))
            self.assertEqual((done.status, result["error"]["stage"]), (125, "policy"))
            self.assertIn(f"{path}:{line}:", done.stderr.decode())
            self.assertFalse((self.work / "ran").exists())

    def test_a_guess_is_offered(self) -> None:
        self.assertIn(b"did you mean", self.check('{"memroy": "1G"}').stderr)

    def test_files_that_are_too_big(self) -> None:
        self.assert_failed(self.check("{" + " " * (1 << 20) + "}"))
        self.assertEqual(self.check(json.dumps({"hide": ["/x"] * 1000})).status, 0)
        self.assert_failed(self.check(json.dumps({"hide": ["/x"] * 1001})), "1000")

    def test_deep_nesting(self) -> None:
        self.assert_failed(self.check("[" * 100000))
        self.assert_failed(self.check('{"env":' * 50000))

    def test_bytes_that_are_not_text(self) -> None:
        path = self.base / "policy.json"
        path.write_bytes(b'{"hostname": "\xff"}')
        self.assert_failed(self.belljar("policy", "check", path))
        path.write_bytes(b'{"hostname": "a\\u0000b"}')
        self.assert_failed(self.belljar("policy", "check", path))

    def test_a_missing_file(self) -> None:
        self.assert_failed(self.belljar("policy", "check", self.base / "none.json"), "none.json")

    def test_odd_files_do_not_hang(self) -> None:
        self.assert_failed(self.belljar("policy", "check", self.base))
        self.assert_failed(self.belljar("policy", "check", "/dev/zero", timeout=15))

    def test_extending_itself(self) -> None:
        self.file('{"extends": "./b.json"}', "a.json")
        self.file('{"extends": "./a.json"}', "b.json")
        self.assert_failed(self.belljar("policy", "check", self.base / "a.json", timeout=10))


class Schema(PolicyCase):
    def test_the_schema_has_every_key(self) -> None:
        done = self.belljar("policy", "schema")
        self.assertEqual(done.status, 0, done)
        schema = parse_json(done.stdout)
        self.assertLessEqual(set(KEYS), set(schema["properties"]))
        self.assertEqual(set(schema["properties"]) - set(KEYS) - {"version", "extends", "$schema", "must_allow", "must_deny"}, set())
        self.assertIs(schema["additionalProperties"], False)


class Apply(PolicyCase):
    def test_a_file_holds_for_a_run(self) -> None:
        path = self.file('{"env": {"FROM_FILE": "yes"}, "timeout": "20s"}')
        events = self.events("--policy", path, *self.sh("exit 0"))
        self.assertEqual(events[0]["limits"]["timeout_ms"], 20000)
        self.assertEqual(self.jar("--policy", path, *self.sh("echo $FROM_FILE")).stdout, b"yes\n")

    def test_flags_come_after_the_file(self) -> None:
        path = self.file('{"pids": 50, "timeout": "20s", "env": {"A": "file", "B": "file"}}')
        flags = ["--pids", "60", "--env", "A=flag"]
        for args in (["--policy", str(path), *flags], [*flags, "--policy", str(path)]):
            events = self.events(*args, *self.sh("echo $A $B"))
            self.assertEqual((events[0]["limits"]["pids"], events[0]["limits"]["timeout_ms"]), (60, 20000))
            self.assertEqual(events[1]["text"], "flag file\n")

    def test_the_last_flag_wins(self) -> None:
        events = self.events("--pids", "50", "--pids", "70", "--timeout", "5s", "--timeout", "none", "--", "true")
        self.assertEqual(events[0]["limits"]["pids"], 70)
        self.assertIsNone(events[0]["limits"].get("timeout_ms"))

    def test_a_list_in_a_file_replaces_and_flags_append(self) -> None:
        path = self.file('{"pass_env": ["PATH", "ONE"]}')
        env = {**self.env, "ONE": "1", "TWO": "2", "TZ": "UTC"}
        done = self.jar("--policy", path, "--pass-env", "TWO", *self.sh("echo $ONE,$TWO,$TZ,$LANG"), env=env)
        self.assertEqual(done.stdout, b"1,2,,\n", done)

    def test_a_preset_is_a_base(self) -> None:
        (self.base / "one.json").write_text('{"extends": "readonly"}')
        done = self.jar("--policy", self.base / "one.json", *self.sh("touch x"))
        self.assertNotEqual(done.status, 0)
        (self.base / "two.json").write_text('{"extends": "./one.json", "workdir_mode": "rw"}')
        self.assertEqual(self.jar("--policy", self.base / "two.json", *self.sh("touch x")).status, 0)

    def test_relative_paths_start_at_the_file(self) -> None:
        data = self.directory("conf/data")
        (data / "f").write_text("found")
        path = self.file('{"ro": ["data"]}', "conf/p.json")
        self.assertEqual(self.jar("--policy", path, "--", "cat", data / "f").stdout, b"found")

    def test_a_missing_source_is_an_error(self) -> None:
        self.assert_failed(self.jar("--ro", "/no/such/path", "--", "true"), "/no/such/path")
        path = self.file('{"ro": [{"path": "/no/such/path", "optional": true}]}')
        self.assertEqual(self.jar("--policy", path, "--", "true").status, 0)

    def test_no_file_is_loaded_that_was_not_named(self) -> None:
        for name in (".belljar.json", "belljar.json", ".belljar", "policy.json", "agent.json", "agent"):
            (self.work / name).write_text('{"bogus": 1')
            (self.home / name).write_text('{"bogus": 1')
        self.assertEqual(self.jar("--", "true").status, 0)
        self.assertEqual(self.jar("--policy", "agent", "--", "true").status, 0)

    def test_a_name_that_ends_in_json_is_a_file(self) -> None:
        (self.work / "mine.json").write_text('{"env": {"A": "mine"}}')
        self.assertEqual(self.jar("--policy", "mine.json", *self.sh("echo $A")).stdout, b"mine\n")

    def test_an_environment_that_is_too_long_runs_nothing(self) -> None:
        path = self.file(json.dumps({"env": {"BIG": "x" * 200000}}))
        done, result = self.status("--policy", path, *self.sh("touch ran"))
        self.assertIn(done.status, (125, 126), done)
        self.assertEqual(result["outcome"], "failed")
        self.assertFalse((self.work / "ran").exists())


class Tighten(PolicyCase):
    def tighten(self, project: Dict[str, Any], *options: str, script: str = "exit 0") -> Completed:
        path = self.file(json.dumps(project), "project.json")
        return self.jar(*options, "--tighten", path, *self.sh(script))

    def test_what_may_be_tightened(self) -> None:
        options = ["--timeout", "20s", "--net", "host", "--output", "1M", "--pass-env", "CI"]
        for project in (
            {},
            {"timeout": "10s"},
            {"timeout": "20s"},
            {"pids": 100, "fds": 100, "file_size": "1G"},
            {"hide": ["/usr/share/doc"], "grace": "1s"},
            {"net": "none"},
            {"hide": ["/usr/share/doc"]},
            {"workdir_mode": "ro"},
            {"toolchains": False},
            {"redact_secrets": True},
            {"pass_env": ["PATH"]},
            {"output": 100},
        ):
            with self.subTest(project=project):
                done = self.tighten(project, *options)
                self.assertEqual(done.status, 0, done)

    def test_what_may_not_be_loosened(self) -> None:
        options = ["--timeout", "20s", "--output", "1M"]
        for key, value in (
            ("timeout", "30s"),
            ("timeout", None),
            ("pids", None),
            ("output", "2M"),
            ("pids", 5000),
            ("net", "host"),
            ("rw", ["/usr/share"]),
            ("ro", ["/root"]),
            ("rung", "process"),
            ("pass_env", ["PATH", "GITHUB_TOKEN"]),
            ("optional", ["filesystem"]),
            ("env", {"LD_PRELOAD": "./x.so"}),
            ("workdir", "/usr"),
            ("fds", 100000),
            ("core", "1G"),
        ):
            with self.subTest(key=key, value=value):
                done = self.tighten({key: value}, *options, script="touch ran")
                self.assert_failed(done, key)
                self.assertFalse((self.work / "ran").exists())

    def test_it_comes_last(self) -> None:
        path = self.file('{"pids": 50}', "project.json")
        events = self.events("--tighten", path, "--pids", "80", "--", "true")
        self.assertEqual(events[0]["limits"]["pids"], 50)

    def test_false_cannot_become_true(self) -> None:
        policy = self.file('{"protect": true, "toolchains": false, "redact_env": true}')
        for project in ({"protect": False}, {"toolchains": True}, {"redact_env": False}):
            with self.subTest(project=project):
                self.assert_failed(self.tighten(project, "--policy", str(policy)), next(iter(project)))


class Plan(PolicyCase):
    def test_a_plan_for_people(self) -> None:
        done = self.belljar("plan", "--", "touch", "ran")
        self.assertEqual(done.status, 0, done)
        self.assertIn(str(self.work).encode(), done.stdout)
        self.assertFalse((self.work / "ran").exists())

    def test_a_plan_for_programs(self) -> None:
        done = self.belljar("plan", "--json", "--timeout", "5s", "--", "touch", "ran")
        self.assertEqual(done.status, 0, done)
        self.assertIsInstance(parse_json(done.stdout), dict)
        self.assertFalse((self.work / "ran").exists())

    def test_a_plan_that_cannot_be(self) -> None:
        self.assert_failed(self.belljar("plan", "-C", "/no/such/dir", "--", "true"))
        self.assert_failed(self.belljar("plan", "--bogus", "--", "true"), "bogus")

    def test_a_plan_makes_nothing(self) -> None:
        before = sorted(entry.name for entry in self.base.rglob("*"))
        self.belljar("plan", "--tmpfs", "/scratch", "--ro", "/usr/share:/data", "--", "true")
        self.assertEqual(sorted(entry.name for entry in self.base.rglob("*")), before)


if __name__ == "__main__":
    unittest.main()
