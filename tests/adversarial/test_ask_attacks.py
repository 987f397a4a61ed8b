# SPDX-License-Identifier: Apache-2.0
"""--ask net under attack: storms of questions, a gate that is killed or stopped, answers that are none."""

from __future__ import annotations

import os
import signal
import struct
import time
import unittest
from pathlib import Path

from harness import census, wire
from harness.ask_case import PROMPT, AskCase
from harness.bounds import BOUND
from harness.engine_case import EngineCase
from harness.gate_case import CLIENT
from harness.internet import ECHO_PORT
from harness.runner import NAMESPACE
from harness.wire import EVENT, FAILED, REPLY, STARTED, Channel


class Storm(AskCase):
    def test_ten_thousand_names_ask_sixteen_questions(self) -> None:
        terminal = self.ask(
            f"""
said = []
names = [f"n{{i}}.test" for i in range(10000)]
found = [name for name in names if isinstance(look(name), list)]
def one(name):
    said.append(talk(name, {ECHO_PORT}, b"hi"))
threads = [threading.Thread(target=one, args=(name,)) for name in found[:100] for _ in range(2)]
for t in threads: t.start()
deadline = time.monotonic() + 30
while len(said) < 168 and time.monotonic() < deadline: time.sleep(0.01)
early = [len(found), len(said), sorted(set(said)), look("good.test")]
open("ready", "w").close()
for t in threads: t.join()
print("early", early)
print("in all", len(said), sorted(set(said)))
""",
            "--allow-net", f"good.test:{ECHO_PORT}", workdir=str(self.work),
        )
        end = terminal.expect(PROMPT)
        # The others are refused while the first questions wait.
        deadline = time.monotonic() + BOUND
        while time.monotonic() < deadline and not (self.work / "ready").exists():
            terminal.pump()
        for _ in range(15):
            terminal.type(b"n\n")
            end = terminal.expect(PROMPT, after=end)
        terminal.type(b"n\n")
        # Of 100 names with two connections each, 16 are asked about; the others are refused at once. A name with a rule still finds room.
        terminal.expect(b"early [2048, 168, ['ConnectionResetError'], ['198.18.")
        terminal.expect(b"in all 200 ['ConnectionResetError']")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual((self.asked(), self.reached()), ([], []))


class Gate(AskCase):
    def test_a_gate_that_is_killed_or_stopped(self) -> None:
        for number, seen in ((signal.SIGKILL, b"b''"), (signal.SIGSTOP, b"TimeoutError")):
            terminal = self.ask(
                f"s = socket.create_connection(('good.test', {ECHO_PORT})); s.settimeout(3)\n"
                "print('made', flush=True)\ntry:\n    print(s.recv(1))\nexcept OSError as error:\n    print(type(error).__name__)"
            )
            terminal.expect(PROMPT)
            gates = [pid for pid in census.descendants(terminal.pid()) if b"gate-process" in Path(f"/proc/{pid}/cmdline").read_bytes()]
            self.assertEqual(len(gates), 1)
            os.kill(gates[0], number)
            if number == signal.SIGSTOP:
                terminal.type(b"o\n")
            terminal.expect(seen)
            self.assertEqual(terminal.end(), 0)
        self.assertEqual(self.internet.log(), [])


class Spoofing(AskCase):
    """A command that would have another question answered, or another file edited, than is shown."""

    def test_nothing_is_written_over_a_question(self) -> None:
        """What was begun before is cancelled, and the command's output waits for the answer."""
        terminal = self.ask(
            f"""
def lie():
    while not done:
        os.write(1, b"LIE" * 5000)
        time.sleep(0.01)
done = False
thread = threading.Thread(target=lie)
os.write(1, b"\\x1b]0;title" + b"\\x1b[8m")
s = socket.create_connection(("good.test", {ECHO_PORT}))
time.sleep(0.3)
thread.start()
s.settimeout(50)
try:
    s.recv(1)
except OSError as error:
    said = type(error).__name__
done = True
thread.join()
print("said", said, flush=True)
""",
            env={**self.env, "TERM": "xterm"},
        )
        end = terminal.expect(PROMPT)
        plain = b"\x18\x1b\\\x1b[!p\x1b[0m\x1b(B\r\n"
        begin = terminal.output.rindex(b"belljar: the command wants")
        self.assertTrue(terminal.output[:begin].replace(b"\r\r\n", b"\r\n").endswith(plain), terminal.output)
        for _ in range(20):
            terminal.pump(0.05)
        self.assertEqual(terminal.output[end:], b"")
        terminal.type(b"n\n")
        terminal.expect(b"said ConnectionResetError", after=terminal.expect(b"LIE", after=end))
        self.assertEqual(terminal.end(), 0)

    def test_the_file_that_was_read_is_the_one_that_is_edited(self) -> None:
        """The command itself cannot put another one there; somebody else of the user's may."""
        policy, other = self.work / "policy.json", self.work / "other.json"
        for swap in (lambda: os.symlink("other.json", policy), lambda: os.link(other, policy), lambda: policy.write_text("{}")):
            policy.write_text('{"ask": "net"}')
            other.write_text('{"net": "gate"}')
            terminal = self.ask(f"print(talk('good.test', {ECHO_PORT}, b'hi'))", "--policy", str(policy), workdir=str(self.work))
            asked = terminal.expect(PROMPT)
            policy.unlink()
            swap()
            terminal.type(b"a\n")
            terminal.expect(b"hi", after=terminal.expect(b"policy.json", after=asked))
            self.assertRegex(terminal.output, b"another program replaced.*; allowed in this run")
            self.assertEqual(terminal.end(), 0)
            self.assertEqual(other.read_text(), '{"net": "gate"}')
            self.assertNotIn("good.test", policy.read_text())
            policy.unlink()


class Replies(EngineCase):
    """Answers that no client of ours sends. Nothing leaves the host: the only answers are denials."""

    way = NAMESPACE
    DENY, ONCE = 0, 1
    COMMAND = ["python3", "-c", CLIENT + "print(talk('203.0.113.10', 7, b'hi'), flush=True)"]

    def ask(self) -> "tuple[Channel, int]":
        """A run whose connection waits for the answer to this question."""
        channel = self.engine.start([*self.COMMAND, self.marker], {"workdir": None}, ask=True)
        self.assertEqual(channel.read().kind, STARTED)
        event = channel.read()
        self.assertEqual((event.kind, event.json["event"], event.json["host"]), (EVENT, "ask", "203.0.113.10"))
        self.assertEqual((event.json["address"], event.json["rule"]), ("public", "203.0.113.10:7"))
        return channel, event.json["id"]

    def test_answers_to_other_questions_are_nothing(self) -> None:
        channel, number = self.ask()
        for other in (0, number + 1, 2**32 - 1):
            channel.send(REPLY, struct.pack("<II", other, self.ONCE))
        for answer in (self.DENY, self.ONCE, self.ONCE):  # the first counts
            channel.send(REPLY, struct.pack("<II", number, answer))
        outcome = wire.finish(channel)
        self.assertEqual((outcome.result["exit_code"], outcome.stdout), (0, b"ConnectionResetError\n"))

    def test_what_is_no_answer_ends_the_run(self) -> None:
        for payload in (b"", b"1234567", b"123456789", struct.pack("<II", 1, 3), struct.pack("<II", 1, 2**32 - 1)):
            channel, _ = self.ask()
            channel.send(REPLY, payload)
            self.assertEqual(channel.read_all()[-1].kind, FAILED)
            channel.close()
        self.wait_for(lambda: not census.marked(self.marker), "nothing is left of the runs")

    def test_who_is_not_asked_cannot_answer(self) -> None:
        channel = self.engine.start(["sleep", "60"], {"workdir": None})
        channel.send(REPLY, struct.pack("<II", 1, self.ONCE))
        self.assertEqual(channel.read_all()[-1].kind, FAILED)
        channel.close()

    def test_a_client_that_hangs_up_leaves_nothing(self) -> None:
        channel, _ = self.ask()
        channel.close()
        self.wait_for(lambda: not census.marked(self.marker), "nothing is left of the run")


if __name__ == "__main__":
    unittest.main()
