# SPDX-License-Identifier: Apache-2.0
"""The ledger: what was refused is in the result, with the reason and the smallest change that would allow it."""

from __future__ import annotations

import json
import unittest
from typing import Any, Dict, List

from harness.gate_case import CLIENT, GateCase
from harness.internet import ECHO_PORT, PRIVATE
from harness.runner import LANDLOCK, Way
from harness.case import JarCase


def flags(result: Any) -> Dict[str, Any]:
    """What was refused, and the option that would allow it."""
    return {entry["what"]: entry["cure"] and entry["cure"]["flag"] for entry in result["denied"]}


class Gate(GateCase):
    """What the gate sees."""

    def denied(self, rules: List[str], code: str, *options: str) -> List[Dict[str, Any]]:
        result = self.gate(rules, code, *options)
        self.result = result
        return result["denied"]  # type: ignore[no-any-return]

    def test_a_name_that_no_rule_is_about(self) -> None:
        (entry,) = self.denied(["good.test"], "look('other.test'), look('other.test')")
        self.assertEqual((entry["kind"], entry["what"], entry["access"]), ("name", "other.test", "resolve"))
        self.assertEqual((entry["count"], entry["certainty"], entry["process"]), (2, "seen", None))
        self.assertEqual(entry["why"], "no rule of allow_net matches it")
        self.assertEqual(entry["cure"], {"flag": "--allow-net other.test", "policy": {"allow_net": ["other.test"]}})

    def test_the_cure_works(self) -> None:
        """A port that no rule has, whether some other name has it or not; the option is taken as it stands."""
        for rules in (["good.test"], ["good.test", f"other.test:{ECHO_PORT}"]):
            code = f"said = talk('good.test', {ECHO_PORT}, b'hi')\nprint(json.dumps(said))"
            (entry,) = self.denied(rules, code)
            self.assertEqual((entry["kind"], entry["what"], entry["count"]), ("net", f"good.test:{ECHO_PORT}", 1))
            self.assertNotEqual(json.loads(self.result["stdout"]), "hi")
            self.assertEqual(self.denied(rules, code, *entry["cure"]["flag"].split()), [])
            self.assertEqual(json.loads(self.result["stdout"]), "hi")
            path = self.base / "cured.json"
            path.write_text(json.dumps({**entry["cure"]["policy"], "workdir": None}))
            self.assertEqual(self.denied(rules, code, "--policy", str(path)), [])

    def test_addresses_where_nobody_listens(self) -> None:
        self.denied(
            ["good.test"],
            "for to in ('9.9.9.9', '10.1.2.3', '169.254.169.254', '127.0.0.1', '198.18.0.1'): talk(to, 9)\n"
            "talk('2001:db8::1', 443, family=socket.AF_INET6), talk('::1', 9, family=socket.AF_INET6)",
        )
        self.assertEqual(flags(self.result), {
            "9.9.9.9:9": "--allow-net 9.9.9.9:9",
            "10.1.2.3:9": "--allow-net 10.1.2.3:9",
            "169.254.169.254:9": None,
            "[2001:db8::1]:443": "--allow-net [2001:db8::1]:443",
        })
        (machine,) = [entry for entry in self.result["denied"] if entry["cure"] is None]
        self.assertIn("credentials", machine["warning"])

    def test_datagrams_come_last_and_are_not_said(self) -> None:
        code = (
            "look('other.test')\ns = socket.socket(type=socket.SOCK_DGRAM)\n"
            "s.sendto(b'x', ('good.test', 443))\nsys.exit(3)"
        )
        first, last = self.denied(["good.test"], code)
        self.assertEqual((first["what"], last["what"], last["access"]), ("other.test", "good.test:443", "send"))
        self.assertIsNone(last["cure"])
        done = self.jar("-C", "none", *self.rules("good.test"), "--", "python3", "-c", CLIENT + code, self.marker)
        self.assertIn("refused: look up other.test", done.stderr.decode())
        self.assertNotIn("443", done.stderr.decode())

    def test_the_last_refusal_comes_first(self) -> None:
        self.denied(["good.test"], "look('a.test'), look('b.test'), look('c.test'), look('a.test')")
        self.assertEqual([entry["what"] for entry in self.result["denied"]], ["a.test", "c.test", "b.test"])

    def test_another_host_in_the_first_bytes(self) -> None:
        (entry,) = self.denied(["good.test"], "web('good.test', host='evil.test')")
        self.assertEqual((entry["what"], entry["cure"]), ("good.test:80", None))
        self.assertIn("evil.test", entry["why"])
        (entry,) = self.denied(["good.test"], "talk('good.test', 80, b'neither one nor the other\\r\\n\\r\\n')")
        self.assertIn("first bytes must say", entry["why"])

    def test_a_private_address_and_its_cure(self) -> None:
        code = f"said = talk('private.test', {ECHO_PORT}, b'hi')\nprint(json.dumps(said))"
        (entry,) = self.denied([f"private.test:{ECHO_PORT}"], code)
        self.assertIn(PRIVATE, entry["why"])
        (rule,) = entry["cure"]["policy"]["allow_net"]
        self.assertEqual(rule, {"host": "private.test", "ports": str(ECHO_PORT), "private": True})
        self.assertEqual(self.denied([json.dumps(rule)], code), [])
        self.assertEqual(json.loads(self.result["stdout"]), "hi")

    def test_the_sentence_of_a_rule_reaches_whoever_is_refused(self) -> None:
        deny = json.dumps({"host": "ads.good.test", "deny": True, "reason": "use the mirror"})
        (entry,) = self.denied(["*.good.test", deny], "look('ads.good.test')")
        self.assertIn("use the mirror", entry["why"])
        self.assertIsNone(entry["cure"])
        self.assertIn("a rule denies it", entry["warning"])

    def test_bounded_whatever_is_tried(self) -> None:
        self.denied(["good.test"], "for i in range(300): look('n%d.test' % i)")
        self.assertEqual(len(self.result["denied"]), 256)
        self.assertEqual(self.result["denied_more"], 44 * 2)  # for both kinds of address

    def test_what_is_to_be_redacted_is(self) -> None:
        (entry,) = self.denied(["good.test"], "look('tops3cretword.test')", "--redact", "tops3cretword")
        self.assertEqual((entry["what"], entry["cure"]), ("[REDACTED].test", None))

    def test_an_event_when_it_happens_and_only_once(self) -> None:
        code = CLIENT + "look('a.test'), look('a.test'), print('x', flush=True), talk('good.test', 99)"
        events = self.events(
            "-C", "none", *self.rules("good.test"), "--", "python3", "-c", code, self.marker, preexec_fn=self.internet.enter
        )
        told = [event for event in events if event["event"] == "denied"]
        self.assertEqual([event["denied"]["what"] for event in told], ["a.test", "good.test:99"])
        self.assertEqual((events[0]["event"], events[-1]["event"]), ("start", "result"))

    def test_words_on_stderr(self) -> None:
        code = CLIENT + "for i in range(7): look('n%d.test' % i)\nsys.exit(int(sys.argv[1]))"
        words = ["-C", "none", *self.rules("good.test"), "--", "python3", "-c", code]
        failed = self.jar(*words, "3", self.marker).stderr.decode().splitlines()
        self.assertEqual(len(failed), 5)
        self.assertEqual(
            failed[0], "belljar: refused: look up n6.test: no rule of allow_net matches it; --allow-net n6.test allows it"
        )
        self.assertEqual(self.jar(*words, "0", self.marker).stderr.decode(), "")
        self.assertEqual(self.jar("-q", *words, "3", self.marker).stderr.decode(), "")


class Ports(GateCase):
    """Without nf_tables the listener sees some of it, and the watching sockets the rest."""

    way = Way("ports", ("nftables",), ("--rung", "namespace"), "namespace", ("userns",))

    def test_each_attempt_counts_once(self) -> None:
        result = self.gate(["good.test"], "talk('9.9.9.9', 80), talk('9.9.9.9', 22), talk('good.test', 22)")
        self.assertEqual({entry["what"]: entry["count"] for entry in result["denied"]}, {
            "9.9.9.9:80": 1, "9.9.9.9:22": 1, "good.test:22": 1,
        })


class Elsewhere(JarCase):
    """Every result has the list."""

    way = LANDLOCK

    def test_empty_where_nothing_was_refused(self) -> None:
        result = self.json("--", "true")
        self.assertEqual((result["denied"], result["denied_more"]), ([], 0))

    def test_empty_where_nothing_ran(self) -> None:
        result = self.json("--", "/nowhere")
        self.assertEqual((result["denied"], result["denied_more"]), ([], 0))


if __name__ == "__main__":
    unittest.main()
