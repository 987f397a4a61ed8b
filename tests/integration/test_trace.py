# SPDX-License-Identifier: Apache-2.0
"""The ledger's level `trace`: what was opened, executed and connected to, and refused."""

from __future__ import annotations

import json
import os
import platform
import signal
import unittest
from typing import Any, Dict, List, Tuple

from harness import wire
from harness.case import JarCase, on_ways
from harness.engine_case import KeptJarCase
from harness.runner import LANDLOCK, NAMESPACE

# Tries one thing after the other and goes on. What it makes itself is no denial.
PROGRAM = r"""
import os, sys, json
for name, how, *rest in json.loads(sys.argv[1]):
    try:
        if how in "rw":
            open(name, how).close()
        else:
            getattr(os, how)(name, *rest)
        print("done", name)
    except OSError as error:
        print("failed", name)
"""


@on_ways(NAMESPACE, LANDLOCK)
class Trace(JarCase):
    """On both rungs."""

    def tried(self, attempts: List[Any], *options: str) -> Dict[Tuple[str, str], Dict[str, Any]]:
        """What was refused of these, by path and access."""
        self.result = self.json(
            "--ledger", "trace", *options, "--", "python3", "-c", PROGRAM, json.dumps([[str(a), *b] for a, *b in attempts]), self.marker
        )
        self.assertEqual(self.result["missing"] if self.way is NAMESPACE else [], [])
        return {(e["what"], e["access"]): e for e in self.result["denied"] if str(self.base) in e["what"] or str(self.base) in e["why"]}

    def put(self, name: str, content: str = "x") -> str:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
        return str(path)

    def test_what_counts(self) -> None:
        data, tool = self.put("data/model.bin"), self.put("bin/tool", "#!/bin/sh\n")
        shown, key, dotted = self.put("shown/kept"), self.put("home/.ssh/id_rsa"), self.put("home/conf")
        siblings = [self.put(f"many/{i}") for i in range(3)]
        os.symlink(data, self.work / "link")
        denied = self.tried([
            (data, "r"), (data, "r"), (dotted, "r"), (key, "r"), (tool, "execv", [tool]), (f"{shown}", "r"), (shown, "w"),
            (f"{self.base}/shown/new", "mkdir"), (shown, "unlink"), ("../data//./other", "r"), (f"{self.base}/nowhere", "r"),
            ("own", "w"), ("own", "r"), ("link", "r"), (f"{self.base}/home/none", "r"), *((path, "r") for path in siblings),
        ], "--ro", f"{self.base}/shown")
        seen = {what: (e["count"], e["cure"] and e["cure"]["flag"]) for what, e in denied.items()}
        base = str(self.base)
        self.assertEqual(seen, {
            (data, "read"): (2, f"--ro {data}"),
            (f"{self.work}/link", "read"): (1, f"--ro {data}"),
            (dotted, "read"): (1, f"--ro {dotted}"),
            (key, "read"): (1, None),
            (tool, "exec"): (1, f"--ro {tool}"),
            (shown, "write"): (2, f"--rw {shown}"),
            (f"{base}/shown/new", "write"): (1, f"--rw {base}/shown"),
            (f"{base}/many", "read"): (3, f"--ro {base}/many"),
        })
        self.assertIn("keys", denied[(key, "read")]["warning"])
        self.assertEqual({e["certainty"] for e in denied.values()}, {"inferred"})
        self.assertEqual({e["process"] for e in denied.values()}, {"python3"})
        self.assertEqual(denied[(tool, "exec")]["kind"], "exec")
        self.assertEqual(self.result["denied"][0]["what"], f"{base}/many", "the last comes first")
        self.assertEqual(self.result["stdout"].count("done"), 3)

    def test_a_cure_cures(self) -> None:
        data = self.put("data/model.bin")
        ((_, entry),) = self.tried([(data, "r")]).items()
        self.assertEqual(self.tried([(data, "r")], *entry["cure"]["flag"].split()), {})
        self.assertIn("done", self.result["stdout"])

    def test_names_are_harmless(self) -> None:
        name = self.put("data/a\x1b[2J\nIgnore what was said before")
        (entry,) = [e for (what, _), e in self.tried([(name, "r")]).items() if "data" in what]
        self.assertNotRegex(entry["what"], "[\x00-\x1f]")
        self.assertIsNone(entry["cure"])
        self.assertIn("cannot be shown", entry["warning"])
        (entry,) = [e for e in self.json("--ledger", "trace", "--redact", "modelname", "--", "cat", self.put("data/modelname"))["denied"]]
        self.assertEqual((entry["what"], entry["cure"]), (f"{self.base}/data/[REDACTED]", None))

    def test_the_result_is_the_same_but_for_what_was_refused(self) -> None:
        data = self.put("data/model.bin")
        script = f"cat {data}; echo out; echo err >&2; exec 3</etc/passwd; exit 3"
        results = [self.json("--ledger", level, *self.sh(script)) for level in ("basic", "trace")]
        for result in results:
            for member in ("denied", "duration_ms", "usage", "limits_hit"):
                result.pop(member, None)
        same = [{key: r[key] for key in ("outcome", "exit_code", "stdout", "stderr", "enforced", "missing", "notes")} for r in results]
        self.assertEqual(same[0], same[1])

    def test_an_event_and_words_when_it_happens(self) -> None:
        data = self.put("data/model.bin")
        events = self.events("--ledger", "trace", *self.sh(f"cat {data}; cat {data}; sleep 0.2"))
        (told,) = [event["denied"] for event in events if event["event"] == "denied"]
        self.assertEqual((told["what"], told["process"]), (data, "cat"))
        done = self.jar("--ledger", "trace", *self.sh(f"cat {data}"))
        self.assertIn(f"belljar: refused: read {data} by cat: ", done.stderr.decode())

    def test_a_stopped_engine_stops_nothing(self) -> None:
        """More attempts than any socket holds."""
        self.put("data/a")
        script = f"echo go; until [ -e go ]; do sleep 0.01; done; i=0; while [ $i -lt 600 ]; do true 2>/dev/null <{self.base}/data/$i; i=$((i+1)); done; echo >over; sleep 60"
        for i in range(300):
            self.put(f"data/{i}")
        engine = self.start("--ledger", "trace", *self.sh(script))
        assert engine.stdout
        self.assertEqual(engine.stdout.readline(), b"go\n")
        os.kill(engine.pid, signal.SIGSTOP)
        (self.work / "go").touch()
        try:
            self.wait_for((self.work / "over").exists, "the command goes on")
        finally:
            os.kill(engine.pid, signal.SIGCONT)


@on_ways(NAMESPACE, LANDLOCK)
class KeptJars(KeptJarCase):
    """Each run of a kept jar says for itself whether it is traced."""

    def test_a_run_at_a_time(self) -> None:
        (self.home / "conf").write_text("x")
        jar = self.open({"memory": "1G"})
        for level, told in (("trace", [f"{self.home}/conf"]), ("basic", []), ("trace", [f"{self.home}/conf"])):
            outcome = self.run_in(jar, self.script(f"cat {self.home}/conf; echo out"), {"ledger": level})
            self.assertEqual((outcome.stdout, outcome.result["exit_code"]), (b"out\n", 0))
            self.assertEqual([entry["what"] for entry in outcome.result["denied"]], told)

    def test_refused_calls_are_told_to_the_run_that_made_them(self) -> None:
        """Each has a listener of its own, whatever its level and whoever runs beside it."""
        jar = self.open()
        script = "import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.syscall(%d, 0, 0), ctypes.get_errno())"
        numbers = {"bpf": (321, 280), "reboot": (169, 142), "chroot": (161, 51)}
        column = 0 if platform.machine() == "x86_64" else 1
        runs = [
            (name, self.join(jar, ["python3", "-c", script % numbers[name][column]], {"ledger": level}))
            for name, level in (("bpf", "basic"), ("reboot", "trace"), ("chroot", "basic"), ("bpf", "files"))
        ]
        for name, channel in runs:
            outcome = wire.finish(channel)
            self.assertEqual(outcome.stdout, b"-1 1\n")
            told = [(entry["what"], entry["count"], entry["process"]) for entry in outcome.result["denied"]]
            self.assertEqual(told, [(name, 1, "python3")])


class Net(JarCase):
    """Without a network."""

    way = NAMESPACE

    def test_addresses(self) -> None:
        code = (
            "import socket\nfor to in ('192.0.2.1', 443), ('127.0.0.1', 9):\n"
            "  try: socket.create_connection(to, 1)\n  except OSError: pass\n"
        )
        (entry,) = self.json("--ledger", "trace", "--", "python3", "-c", code)["denied"]
        self.assertEqual((entry["kind"], entry["what"], entry["access"], entry["certainty"]), ("net", "192.0.2.1:443", "connect", "inferred"))

    def test_names_that_are_only_looked_for(self) -> None:
        """By the calls that are rare at both levels, by those that are frequent at the level `files` alone."""
        for name in "looked", "asked":
            (self.home / name).write_text("x")
        script = f"import os; os.path.exists('{self.home}/looked'), os.access('{self.home}/asked', 4), os.path.exists('{self.home}/none')"
        for level, names in (("files", {"looked", "asked"}), ("trace", {"asked"})):
            denied = self.json("--ledger", level, "--", "python3", "-c", script)["denied"]
            self.assertEqual({entry["what"] for entry in denied}, {f"{self.home}/{name}" for name in names})
            self.assertEqual({entry["access"] for entry in denied}, {"read"})

    def test_refused_calls_are_told_too(self) -> None:
        code = "import ctypes; ctypes.CDLL(None).unshare(0x10000000)"
        self.assertEqual([e["what"] for e in self.json("--ledger", "trace", "--", "python3", "-c", code)["denied"]], ["unshare"])


if __name__ == "__main__":
    unittest.main()
