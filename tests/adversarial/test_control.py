# SPDX-License-Identifier: Apache-2.0
"""Nothing that the untrusted side can write, or that lies about, loosens the policy.

Layer: the policy is what the command line says. No file is loaded that was not named, no variable is looked at.
"""

from __future__ import annotations

import json
import unittest
from typing import Any

from adversarial_support import AttackCase
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE, Way

LOOSE = {"rw": ["/"], "net": "host", "rung": "process", "protect": False, "pids": None, "timeout": None, "hide": []}
NAMES = (
    ".belljar.json belljar.json .belljarrc .config/belljar/policy.json .config/belljar.json policy.json agent "
    "agent.json .belljar/policy.json belljar.toml .belljar.toml"
).split()


@on_ways(NAMESPACE, LANDLOCK)
class Loosening(AttackCase):
    PROBE = """
attempt("read", lambda: open(sys.argv[1]).read())
attempt("net", lambda: socket.socket(socket.AF_INET).connect(("127.0.0.1", 9)))
"""

    def probe(self, **options: Any) -> Any:
        result = self.json(*self.python(self.PROBE, str(self.secret)), **options)
        answers = self.answers(result["stdout"])
        self.assertNotEqual(answers.get("read"), "ok")
        return result

    def test_files_in_the_workdir_and_at_home(self) -> None:
        plain = self.probe()
        for folder in (self.work, self.home):
            for name in NAMES:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(LOOSE))
        loosened = self.probe()
        self.assertEqual((loosened["enforced"], loosened["missing"]), (plain["enforced"], plain["missing"]))

    def test_variables_of_the_caller(self) -> None:
        plain = self.probe()
        env = dict(self.env)
        for name in ("POLICY", "RUNG", "NET", "RW", "OPTIONS", "ARGS", "DEBUG", "UNSAFE", "DISABLE", "NO_SANDBOX", "CONFIG", "TIGHTEN"):
            env["BELLJAR_" + name] = "process" if name == "RUNG" else "host" if name == "NET" else "1"
        env.update(NO_SANDBOX="1", SANDBOX="off", XDG_CONFIG_HOME=str(self.work), LD_PRELOAD="/nowhere.so", BASH_ENV="/nowhere")
        changed = self.probe(env=env)
        self.assertEqual((changed["enforced"], changed["missing"]), (plain["enforced"], plain["missing"]))
        self.assertNotIn("BELLJAR", self.json("--", "env", env=env)["stdout"])
        self.assertNotIn("LD_PRELOAD", self.json("--", "env", env=env)["stdout"])

    def test_a_preset_s_name_is_not_a_file_s(self) -> None:
        """A file called `agent` or `strict` in the workdir is not the preset."""
        for name in ("agent", "strict", "readonly"):
            (self.work / name).write_text(json.dumps(LOOSE))
        result = self.json("--policy", "readonly", *self.sh("touch x || echo refused"))
        self.assertIn("refused", result["stdout"])

    def test_a_tightening_file_cannot_loosen(self) -> None:
        for key, value in LOOSE.items():
            if key in ("hide", "timeout"):
                continue
            with self.subTest(key=key):
                path = self.work / "project.json"
                path.write_text(json.dumps({key: value}))
                done, result = self.status("--pids", "50", "--tighten", path, *self.sh("touch ran"))
                self.assertEqual((done.status, result["outcome"]), (125, "failed"), key)
                self.assertFalse((self.work / "ran").exists())

    def test_options_behind_the_command_are_the_command_s(self) -> None:
        for words in (["--net", "host"], ["--rw", "/"], ["--rung", "process"], ["--", "--rw", "/"]):
            result = self.json("--", "/bin/sh", "-c", "echo \"$@\"", "sh", *words)
            self.assertEqual(result["stdout"].split(), words)

    def test_the_command_is_never_an_option(self) -> None:
        done = self.jar("--json", "--rung", "nonsense", "--", "true")
        self.assertEqual(done.status, 125)

    def test_isolation_that_is_not_there_is_never_silent(self) -> None:
        """Fail closed: with neither namespaces nor Landlock nothing runs unless that was asked for by name."""
        way = Way("bare", ("userns", "landlock"))
        done, result = self.status(*self.sh("touch ran"), way=way)
        self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "failed", "host"))
        self.assertFalse((self.work / "ran").exists())

    def test_the_result_says_what_held(self) -> None:
        result = self.json("--", "true")
        enforced = result["enforced"]
        self.assertEqual(enforced["rung"], self.way.rung)
        if self.way is LANDLOCK:
            self.assertGreaterEqual(set(self.missing(result)), {"protect", "loopback", "process_names", "file_attributes"})
            self.assertTrue(enforced["filesystem"].startswith("landlock"))
        else:
            self.assertEqual((enforced["network"], enforced["processes"], result["missing"]), ("net-ns", "pid-ns", []))

    def test_limits_that_cannot_be_held_are_refused(self) -> None:
        """Asked for by name and not to be had: an error, not a shrug. (What can be had shows in `enforced`.)"""
        for option, value, key in (("--memory", "64M", "memory"), ("--cpu-time", "5s", "cpu_time"), ("--pids", "50", "pids")):
            with self.subTest(option=option):
                done, result = self.status(option, value, "--", "true")
                if result["outcome"] == "failed":
                    self.assertEqual((done.status, result["error"]["stage"]), (125, "limits"))
                else:
                    self.assertNotIn(result["enforced"][key], (None, "none"))

    def test_a_home_that_does_not_exist_is_no_reason_to_fail(self) -> None:
        result = self.json("--", "true", env={**self.env, "HOME": "/nonexistent"})
        self.assertEqual((result["outcome"], result["error"]), ("exited", None))


if __name__ == "__main__":
    unittest.main()
