# SPDX-License-Identifier: Apache-2.0
"""`belljar hook`: a coding agent's commands come back as commands in jars; whatever goes wrong blocks them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import unittest
from typing import Any, Dict, Tuple

from harness import paths
from harness.bounds import BOUND
from harness.case import JarCase

# As the agents send them, shortened.
EVENTS: Dict[str, Dict[str, Any]] = {
    "claude": {
        "session_id": "s1",
        "transcript_path": "/tmp/t.jsonl",
        "cwd": "/tmp",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "", "description": "List files", "timeout": 120000},
        "tool_use_id": "toolu_1",
    },
    "codex": {
        "session_id": "s2",
        "turn_id": "1",
        "cwd": "/tmp",
        "hook_event_name": "PreToolUse",
        "model": "m",
        "tool_name": "Bash",
        "tool_input": {"command": ""},
        "tool_use_id": "call_1",
    },
    "gemini": {
        "session_id": "s3",
        "cwd": "/tmp",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-16T12:00:00Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "", "description": "x"},
    },
}
REWRITTEN = {"claude": "updatedInput", "codex": "updatedInput", "gemini": "tool_input"}
SETTINGS = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}


class Hook(JarCase):
    def hook(self, *words: str, event: object = None) -> "subprocess.CompletedProcess[bytes]":
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        return subprocess.run([paths.belljar(), "hook", *words], input=data, capture_output=True, env=self.env, cwd=self.work, timeout=BOUND)

    def rewrite(self, agent: str, command: str, *options: str) -> Tuple[str, Dict[str, Any]]:
        event = json.loads(json.dumps(EVENTS[agent]))
        event["tool_input"]["command"] = command
        done = self.hook(agent, *options, event=event)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        self.assertEqual((answer["hookEventName"], answer["permissionDecision"]), (event["hook_event_name"], "allow"))
        given = answer[REWRITTEN[agent]]
        self.assertEqual({**given, "command": ""}, EVENTS[agent]["tool_input"])
        return given["command"], given

    def shell(self, command: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(["/bin/sh", "-c", command], capture_output=True, env=self.env, cwd=self.work, timeout=BOUND)

    def test_each_agent_gets_a_command_in_a_jar(self) -> None:
        (self.base / "outside").write_text("secret")
        for agent in EVENTS:
            line = f"""echo "a  'b' $((1 + 1))" '\\n' > out; cat out; cat {self.base}/outside; [[ -e out ]] && exit 3 # it's"""
            command, _ = self.rewrite(agent, line)
            done = self.shell(command)
            self.assertEqual((done.returncode, done.stdout), (3, b"a  'b' 2 \\n\n"), done)
            self.assertIn(b"outside", done.stderr)
            self.assertEqual((self.work / "out").read_text(), "a  'b' 2 \\n\n")

    def test_the_options_are_those_of_the_jar(self) -> None:
        (self.work / "policy.json").write_text('{"env": {"FROM_POLICY": "it is"}}')
        command, _ = self.rewrite("claude", "echo $FROM_POLICY $X; touch new", "--policy", "policy.json", "--env", "X=a 'b'", "--workdir-mode", "ro")
        done = self.shell(command)
        self.assertEqual(done.stdout, b"it is a 'b'\n", done)
        self.assertFalse((self.work / "new").exists())

    def test_the_user_can_be_asked_first(self) -> None:
        event = {**EVENTS["claude"], "tool_input": {"command": "echo asked"}}
        answer = json.loads(self.hook("claude", "--confirm", "--memory", "1G", event=event).stdout)["hookSpecificOutput"]
        self.assertEqual(answer["permissionDecision"], "ask")
        self.assertEqual(self.shell(answer["updatedInput"]["command"]).stdout, b"asked\n")
        for agent in ("codex", "gemini"):
            for words in ((agent,), ("install", agent)):
                refused = self.hook(*words, "--confirm", event=event)
                self.assertEqual((refused.returncode, refused.stdout), (2, b""), words)
        self.assertIn(b"hook claude '--confirm'", self.hook("install", "claude", "--confirm", event=b"").stdout)

    def test_other_tools_are_left_alone(self) -> None:
        done = self.hook("claude", event={"tool_name": "Write", "tool_input": {"file_path": "x"}})
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, {}))

    def test_whatever_goes_wrong_blocks(self) -> None:
        event = EVENTS["claude"]
        for words, data in (
            (("claude",), b""),
            (("claude",), b"nonsense"),
            (("claude",), b"[]"),
            (("claude",), b'{"tool_input":{}}'),
            (("claude",), {"tool_name": "Bash"}),
            (("claude",), {"tool_name": "Bash", "tool_input": {"command": 5}}),
            (("claude",), b'{"tool_name":"Bash","tool_input":{"command":"' + b"x" * (5 << 20) + b'"}}'),
            (("claude", "--no-such-option"), event),
            (("claude", "--policy", "absent.json"), event),
            (("claude", "codex"), event),
            (("nobody",), event),
            ((), event),
        ):
            done = self.hook(*words, event=data)
            self.assertEqual((done.returncode, done.stdout), (2, b""), (words, done))
            self.assertNotEqual(done.stderr, b"")

    def test_settings_are_shown_and_changed_only_when_told(self) -> None:
        for agent, name in SETTINGS.items():
            path = self.work / name
            path.parent.mkdir()
            path.write_text(json.dumps({"model": "m", "hooks": {"Stop": [], EVENTS[agent]["hook_event_name"]: [{"matcher": "Write"}]}}))
            before = path.read_bytes()
            shown = self.hook("install", agent, "--memory", "1G", event=b"")
            self.assertEqual((shown.returncode, path.read_bytes()), (0, before), shown)
            self.assertIn(b"nothing was changed", shown.stdout)
            path.chmod(0o600)
            done = self.hook("install", agent, "--memory", "1G", "--yes", event=b"")
            self.assertEqual(done.returncode, 0, done)
            settings = json.loads(path.read_text())
            entries = settings["hooks"][EVENTS[agent]["hook_event_name"]]
            self.assertEqual((settings["model"], settings["hooks"]["Stop"], entries[0]), ("m", [], {"matcher": "Write"}))
            self.assertEqual(entries[1]["matcher"], EVENTS[agent]["tool_name"])
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            # An agent that can be told so does not go on without the hook.
            self.assertEqual(entries[1]["hooks"][0].get("onFailure"), "block" if agent == "claude" else None)
            # What was written is what the agent will run.
            event = json.loads(json.dumps(EVENTS[agent]))
            event["tool_input"]["command"] = "echo through"
            event["cwd"] = str(self.work)
            ran = subprocess.run(["/bin/sh", "-c", entries[1]["hooks"][0]["command"]], input=json.dumps(event).encode(), capture_output=True, env=self.env, cwd=self.work, timeout=BOUND)
            rewritten = json.loads(ran.stdout)["hookSpecificOutput"][REWRITTEN[agent]]["command"]
            self.assertIn("'--memory' '1G'", rewritten)
            self.assertEqual(self.shell(rewritten).stdout, b"through\n")
            again = self.hook("install", agent, "--memory", "1G", "--yes", event=b"")
            self.assertIn(b"has it already", again.stdout)
            self.assertEqual(len(json.loads(path.read_text())["hooks"][EVENTS[agent]["hook_event_name"]]), 2)

    def test_settings_that_are_new(self) -> None:
        self.assertEqual(self.hook("install", "claude", "--yes", event=b"").returncode, 0)
        self.assertEqual(list(json.loads((self.work / SETTINGS["claude"]).read_text())), ["hooks"])
        self.assertEqual(sorted(os.listdir(self.work / ".claude")), ["settings.json"])

    def test_settings_that_nobody_understands_stay(self) -> None:
        path = self.work / SETTINGS["claude"]
        path.parent.mkdir()
        for text in ("[]", "{", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}'):
            path.write_text(text)
            self.assertEqual(self.hook("install", "claude", "--yes", event=b"").returncode, 2, text)
            self.assertEqual(path.read_text(), text)
        path.unlink()
        (self.base / "elsewhere.json").write_text("{}")
        path.symlink_to(self.base / "elsewhere.json")
        self.assertEqual(self.hook("install", "claude", "--yes", event=b"").returncode, 2)
        self.assertEqual((self.base / "elsewhere.json").read_text(), "{}")


    def test_paths_of_options_are_made_absolute(self) -> None:
        (self.work / "data").mkdir()
        (self.work / "sub").mkdir()
        given = ["-C./sub", "--ro", "././data:/srv/data", "--rw=data", "--hide", "~/x", "--tmpfs", "/mnt/t:1M", "--cd", "rel", "--env=A=b/c", "--redact=--odd", "-q", "--no-protect"]
        shown = self.hook("install", "claude", *given, event=b"")
        self.assertEqual(shown.returncode, 0, shown)
        command = json.loads(shown.stdout.decode().partition("one entry more:\n")[2].partition("\nnothing")[0])["hooks"][0]["command"]
        work = str(self.work)
        expected = ["--workdir", work + "/sub", "--ro", work + "/data:/srv/data", "--rw", work + "/data", "--hide", "~/x", "--tmpfs", "/mnt/t:1M"]
        expected += ["--cd", "rel", "--env", "A=b/c", "--redact=--odd", "--quiet", "--no-protect"]
        self.assertEqual(shlex.split(command)[3:], expected)
        (self.work / "p.json").write_text("{}")
        shown = self.hook("install", "claude", "--policy", ".//./p.json", "-C", ".", event=b"")
        self.assertIn(f"hook claude '--policy' '{work}/p.json' '--workdir' '{work}'\"".encode(), shown.stdout)

    def test_an_entry_can_be_taken_out_again(self) -> None:
        for agent, name in SETTINGS.items():
            event, path = EVENTS[agent]["hook_event_name"], self.work / name
            nothing = self.hook("uninstall", agent, "--yes", event=b"")
            self.assertEqual((nothing.returncode, path.exists()), (0, False), nothing)
            path.parent.mkdir()
            others = {"matcher": "Write", "hooks": [{"type": "command", "command": "lint --belljar hook"}]}
            mixed = [{"type": "command", "command": "/x/belljar hook " + agent}, {"type": "command", "command": "echo belljar hook"}]
            before = {"model": "m", "hooks": {"Stop": [], event: [others, {"matcher": "x", "hooks": mixed}]}}
            path.write_text(json.dumps(before))
            path.chmod(0o640)
            for options in ((), ("--memory", "1G")):
                self.assertEqual(self.hook("install", agent, *options, "--yes", event=b"").returncode, 0)
            installed = path.read_bytes()
            shown = self.hook("uninstall", agent, event=b"")
            self.assertEqual((shown.returncode, path.read_bytes(), shown.stdout.count(b" hook " + agent.encode())), (0, installed, 3), shown)
            self.assertIn(b"nothing was changed", shown.stdout)
            self.assertEqual(self.hook("uninstall", agent, "--yes", event=b"").returncode, 0)
            self.assertEqual(json.loads(path.read_text()), {"model": "m", "hooks": {"Stop": [], event: [others, {"matcher": "x", "hooks": mixed[1:]}]}})
            self.assertEqual((path.stat().st_mode & 0o777, path.stat().st_uid, os.listdir(path.parent)), (0o640, os.geteuid(), [path.name]))
            again = self.hook("uninstall", agent, "--yes", event=b"")
            self.assertIn(b"has no hook of belljar", again.stdout)
            # Of a file that held nothing else, nothing is left but the object.
            path.unlink()
            self.hook("install", agent, "--yes", event=b"")
            self.hook("uninstall", agent, "--yes", event=b"")
            self.assertEqual(json.loads(path.read_text()), {})

    def test_every_way_to_name_the_program_is_found(self) -> None:
        path = self.work / SETTINGS["claude"]
        path.parent.mkdir()
        lines = ("belljar hook claude", "'/a b/belljar' hook claude '--memory' '1G'", "python3 -m belljar hook claude", 'env X=1 "/x/belljar" "hook" claude')
        foreign = ("belljar run -- hook claude", "belljar hook codex", "belljars hook claude", "echo 'belljar hook claude'", "belljar belljar")
        path.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"command": line}]} for line in (*lines, *foreign)]}}))
        self.assertEqual(self.hook("uninstall", "claude", "--yes", event=b"").returncode, 0)
        left = [entry["hooks"][0]["command"] for entry in json.loads(path.read_text())["hooks"]["PreToolUse"]]
        self.assertEqual(left, list(foreign))

    def test_comments_are_not_lost(self) -> None:
        path = self.work / SETTINGS["claude"]
        path.parent.mkdir()
        text = '{"a": "//", // mine\n "hooks": {}}'
        path.write_text(text)
        for action in ("install", "uninstall"):
            done = self.hook(action, "claude", "--yes", event=b"")
            self.assertEqual((done.returncode, path.read_text()), (2, text))
            self.assertIn(b"comments", done.stderr)

    def test_a_program_in_a_virtual_environment_is_warned_about(self) -> None:
        program = self.base / "venv/lib/python3/site-packages/belljar/belljar"
        program.parent.mkdir(parents=True)
        shutil.copy(paths.belljar(), program)
        done = subprocess.run([program, "hook", "install", "claude"], capture_output=True, env=self.env, cwd=self.work, timeout=BOUND)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(b"inside a virtual environment", done.stdout)
        self.assertIn(b"belljar hook uninstall claude", done.stdout)
        self.assertNotIn(b"virtual environment", self.hook("install", "claude", event=b"").stdout)


if __name__ == "__main__":
    unittest.main()
