# SPDX-License-Identifier: Apache-2.0
"""--ask net: what no rule decides is asked on the terminal, and the connection waits for the answer."""

from __future__ import annotations

import json
import os
import signal
import unittest
from pathlib import Path

from harness.ask_case import ASKED, PROMPT, TALK, AskCase
from harness.gate_case import CLIENT
from harness.internet import ECHO_PORT, PRIVATE, SERVER
from harness.terminal import Terminal

CTRL_C, CTRL_D, CTRL_Z = b"\x03", b"\x04", b"\x1a"


class Prompt(AskCase):
    def test_once_is_for_this_connection_only(self) -> None:
        terminal = self.ask(f"print(1, {TALK}, flush=True)\nprint(2, {TALK}, flush=True)")
        end = terminal.expect(PROMPT, after=terminal.expect(ASKED))
        self.assertEqual(self.asked(), [])
        terminal.type(b"o\n")
        end = terminal.expect(PROMPT, after=terminal.expect(ASKED, after=terminal.expect(b"1 hi", after=end)))
        terminal.type(b"n\n")
        terminal.expect(b"2 ConnectionResetError", after=end)
        self.assertEqual(terminal.end(), 0)
        self.assertEqual((self.reached(), self.asked()), ([f"{SERVER}:{ECHO_PORT}"], ["good.test"]))

    def test_events_tell_that_somebody_is_asked(self) -> None:
        reader, writer = os.pipe()
        with open(reader, "rb") as events:
            with open(writer, "wb") as out:
                terminal = self.ask(f"print({TALK}, flush=True)", "--events", out=out)
            terminal.expect(PROMPT)
            self.assertEqual(json.loads(events.readline())["event"], "start")
            question = json.loads(events.readline())
            terminal.type(b"o\n")
            rest = [json.loads(events.readline()), json.loads(events.readline())]
        self.assertEqual((question.pop("event"), question.pop("seq")), ("ask", 1))
        self.assertGreater(question.pop("t_ms"), 0)
        self.assertEqual(
            question,
            {"id": question["id"], "kind": "net", "host": "good.test", "port": ECHO_PORT, "address": None, "rule": f"good.test:{ECHO_PORT}",
             "timeout_ms": 60000.0},
        )
        self.assertEqual([event["event"] for event in rest], ["output", "result"])
        self.assertEqual((rest[0]["text"], terminal.end()), ("hi\n", 0))

    def test_an_answer_for_this_run_is_not_asked_again(self) -> None:
        terminal = self.ask(f"print([{TALK} for _ in range(3)], flush=True)\nprint([talk('other.test', {ECHO_PORT}) for _ in range(3)])")
        end = terminal.expect(PROMPT, after=terminal.expect(ASKED))
        terminal.type(b"r\n")
        end = terminal.expect(b"['hi', 'hi', 'hi']", after=end)
        end = terminal.expect(PROMPT, after=terminal.expect(f"reach other.test:{ECHO_PORT}.".encode(), after=end))
        terminal.type(b"\n")  # no is what Enter means
        terminal.expect(b"['ConnectionResetError', 'ConnectionResetError', 'ConnectionResetError']", after=end)
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(terminal.screen().count(b"Allow it?"), 2)
        self.assertEqual(self.asked(), ["good.test"])

    def test_what_is_no_answer_is_asked_again_and_the_end_of_input_is_no(self) -> None:
        terminal = self.ask(f"print({TALK})")
        end = terminal.expect(PROMPT)
        for wrong in (b"x\n", b"a\n", b"once\n", b"\x1b[A\n"):
            terminal.type(wrong)
            end = terminal.expect(PROMPT, after=terminal.expect(b"one of the letters", after=end))
        terminal.type(CTRL_D)
        terminal.expect(b"ConnectionResetError", after=end)
        self.assertEqual((terminal.end(), self.internet.log()), (0, []))

    def test_what_was_typed_before_is_no_answer(self) -> None:
        terminal = self.ask(f"print('ready', flush=True)\nsys.stdin.readline()\nprint({TALK})")
        terminal.expect(b"ready")
        terminal.type(b"go\nr\no\n")
        end = terminal.expect(PROMPT)
        self.assertNotIn(b"hi", terminal.screen()[end:])
        terminal.type(b"n\n")
        terminal.expect(b"ConnectionResetError", after=end)

    def test_the_commands_input_waits_and_goes_on(self) -> None:
        terminal = self.ask(f"print('A', repr(sys.stdin.readline()), flush=True)\nprint({TALK}, flush=True)\nprint('B', repr(sys.stdin.readline()))")
        terminal.type(b"one\n")
        end = terminal.expect(PROMPT, after=terminal.expect(b"A 'one\\n'"))
        terminal.type(b"o\n")
        end = terminal.expect(b"hi", after=end)
        terminal.type(b"two\n")
        terminal.expect(b"B 'two\\n'", after=end)
        self.assertEqual(terminal.end(), 0)

    def test_a_command_with_a_terminal_of_its_own(self) -> None:
        terminal = self.ask(f"print({TALK}, flush=True)\nprint(repr(sys.stdin.readline()))", "--pty")
        end = terminal.expect(PROMPT, after=terminal.expect(ASKED))
        terminal.type(b"o\n")
        end = terminal.expect(b"hi", after=end)
        terminal.type(b"key\r")
        terminal.expect(b"'key\\n'", after=end)
        self.assertEqual(terminal.end(), 0)
        self.wait_for(lambda: terminal.read_modes() == terminal.modes, "the terminal is as it was")

    def test_addresses_are_told_apart(self) -> None:
        """One of the host's own, a private one; metadata, loopback and addresses of names are not asked about."""
        out = self.work / "out"
        with out.open("wb") as stream:
            terminal = self.ask(
                self.show([f"talk('{host}', {ECHO_PORT}, b'hi')" for host in
                           ("169.254.169.254", "198.18.77.77", "host.belljar.internal", PRIVATE, "203.0.113.1", SERVER)]),
                out=stream,
            )
            for words, answer in (
                (f"{PRIVATE}:{ECHO_PORT} (a private address). Allow it?", b"o\n"),
                (f"203.0.113.1:{ECHO_PORT} (an address of this host). Allow it?", b"n\n"),
                (f"{SERVER}:{ECHO_PORT} (an address). Allow it?", b"o\n"),
            ):
                terminal.expect(PROMPT, after=terminal.expect(words.encode()))
                terminal.type(answer)
            self.assertEqual(terminal.end(), 0)
        said = [line.split(" = ")[1] for line in out.read_text().splitlines()]
        self.assertEqual(said, ["ConnectionResetError", "ConnectionResetError", "gaierror", "hi", "ConnectionResetError", "hi"])
        self.assertNotIn(b"Allow", out.read_bytes())

    def test_a_name_never_leads_to_a_private_address(self) -> None:
        terminal = self.ask(f"print([talk(name, {ECHO_PORT}, b'hi') for name in ('private.test', 'meta.test', 'loop.test', 'own.test')])")
        for name in (b"private", b"meta", b"loop", b"own"):
            terminal.expect(PROMPT, after=terminal.expect(name + b".test"))
            terminal.type(b"r\n")
        terminal.expect(str(["ConnectionResetError"] * 4).encode())
        self.assertEqual(self.reached(), [])

    def test_control_c_ends_the_run_and_control_z_asks_again(self) -> None:
        terminal = self.ask(f"print({TALK})")
        end = terminal.expect(PROMPT)
        terminal.type(CTRL_Z)
        terminal.report("stopped")
        terminal.resume()
        end = terminal.expect(PROMPT, after=terminal.expect(ASKED, after=end))
        terminal.type(CTRL_C)
        self.assertEqual(terminal.end(), 128 + signal.SIGINT)
        self.assertEqual(self.internet.log(), [])


class Nobody(AskCase):
    """No answer, and nobody there."""

    def test_no_answer_in_time_is_a_refusal_and_the_next_is_asked(self) -> None:
        terminal = self.ask(f"print({TALK}, flush=True)\nprint({TALK})", "--ask-timeout", "300ms")
        asked = terminal.expect(PROMPT)
        # Two programs write to the terminal: what each says is in order, no more.
        terminal.expect(PROMPT, after=terminal.expect(b"no longer waits", after=asked))
        terminal.expect(b"ConnectionResetError", after=terminal.expect(b"ConnectionResetError", after=asked))
        self.assertEqual((terminal.end(), self.internet.log()), (0, []))

    def test_a_question_goes_with_who_asked(self) -> None:
        """The program gives up; the next question is the only one left."""
        terminal = self.ask(
            f"s = socket.create_connection(('good.test', {ECHO_PORT}))\ns.close()\nprint(talk('other.test', {ECHO_PORT}, b'hi'))"
        )
        end = terminal.expect(PROMPT, after=terminal.expect(b"reach other.test"))
        terminal.type(b"o\n")
        terminal.expect(b"hi", after=end)
        self.assertEqual(self.reached(), [f"203.0.113.11:{ECHO_PORT}"])

    def test_without_a_terminal_it_is_refused_at_once_and_said(self) -> None:
        done = self.jar(
            "-C", "none", "--ask", "net", "--allow-net", f"good.test:{ECHO_PORT}", "--", "python3", "-c",
            CLIENT + f"print({TALK}, look('other.test'), talk('{SERVER}', 80))",
            preexec_fn=lambda: (self.internet.enter(), os.setsid()),
        )
        self.assertEqual((done.status, done.stdout), (0, b"hi gaierror ConnectionResetError\n"))
        self.assertIn(b"no terminal to ask on", done.stderr)

    def test_the_end_of_the_run_does_not_wait_for_an_answer(self) -> None:
        terminal = self.ask(f"print({TALK})", "--timeout", "600ms", "--grace", "0")
        terminal.expect(PROMPT)
        self.assertEqual(terminal.end(), 124)


class Always(AskCase):
    """The rule goes into the policy file, and everything else in it stays."""

    POLICY = """{
  // who may be reached
  "ask": "net",
  "allow_net": [
    "www.good.test:%d", // the mirror
    {"host": "dead.test", "deny": true} /* not this one */
  ],
  "timeout": "1m", // not longer
}
"""

    def always(self, file: Path) -> Terminal:
        terminal = self.ask(f"print({TALK}, {TALK})", "--policy", str(file))
        end = terminal.expect(f'a: always, which adds "good.test:{ECHO_PORT}" to allow_net in'.encode())
        terminal.expect(PROMPT, after=end)
        terminal.type(b"a\n")
        terminal.expect(b"hi hi")
        self.assertEqual(terminal.end(), 0)
        return terminal

    def test_comments_and_layout_stay(self) -> None:
        file = self.work / "policy.json"
        file.write_text(self.POLICY % ECHO_PORT)
        file.chmod(0o640)
        terminal = self.always(file)
        self.assertIn(b'added "good.test:7000" to allow_net', terminal.screen())
        added = self.POLICY.replace('"deny": true} /* not this one */', '"deny": true}, /* not this one */\n    "good.test:7000"')
        self.assertEqual(file.read_text(), added % ECHO_PORT)
        self.assertEqual(file.stat().st_mode & 0o777, 0o640)
        self.assertEqual([name for name in os.listdir(self.work) if "policy" in name], ["policy.json"])
        # The next run is not asked.
        done = self.jar("--policy", str(file), "-C", "none", "--", "python3", "-c", CLIENT + f"print({TALK})",
                        preexec_fn=lambda: (self.internet.enter(), os.setsid()))
        self.assertEqual(done.stdout, b"hi\n")

    def test_a_file_without_a_list_gets_one(self) -> None:
        file = self.work / "policy.json"
        file.write_text('{"ask": "net"}')
        link = self.work / "link.json"
        link.symlink_to(file)
        self.always(link)
        self.assertEqual(json.loads(file.read_text()), {"allow_net": ["good.test:7000"], "ask": "net"})
        self.assertTrue(link.is_symlink())

    def test_a_list_of_another_file_is_not_replaced(self) -> None:
        (self.work / "base.json").write_text('{"allow_net": ["other.test"]}')
        file = self.work / "policy.json"
        file.write_text('{"extends": "./base.json", "ask": "net"}')
        terminal = self.always(file)
        self.assertIn(b"has no list allow_net of its own", terminal.screen())
        self.assertEqual(file.read_text(), '{"extends": "./base.json", "ask": "net"}')


if __name__ == "__main__":
    unittest.main()
