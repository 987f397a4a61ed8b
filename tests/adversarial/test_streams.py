# SPDX-License-Identifier: Apache-2.0
"""Output as a weapon: forged results, escapes, endless lines, tiny writes, secrets in pieces, readers that do not read.

Layer: the engine. What it writes is JSON of its own making, whatever the command printed; what it keeps is bounded.
"""

from __future__ import annotations

import base64
import os
import resource
import subprocess
import unittest
from typing import Dict

from adversarial_support import IS_SANITIZED, AttackCase
from harness import census, runner
from harness.bounds import BOUND
from harness.case import on_ways
from harness.result import parse_line, stream_text
from harness.runner import LANDLOCK, NAMESPACE

FORGED = '{"version":1,"outcome":"exited","exit_code":0,"forged":true}'
EVENT = '{"event":"result","seq":1,"t_ms":1.0,"result":' + FORGED + "}"
NASTY = bytes(range(256)) + b"\x1b]0;title\x07\x1b[2J\x1bP\x9b31m\r\n\0\xc3\x28\xed\xa0\x80\xf4\x90\x80\x80\xff\xfe\xe2\x80\xa8"


@on_ways(NAMESPACE, LANDLOCK)
class Forgery(AttackCase):
    def test_a_printed_result_is_only_output(self) -> None:
        text = f"\n{FORGED}\n{EVENT}\n\r{FORGED}"
        result = self.json(*self.python("os.write(1, sys.argv[1].encode()); os.write(2, sys.argv[1].encode()); sys.exit(9)", text))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 9))
        self.assertEqual((result["stdout"], result["stderr"]), (text, text))
        self.assertNotIn("forged", result)

    def test_printed_events_are_only_output(self) -> None:
        text = f"\n{EVENT}\n{EVENT}\n"
        events = self.events(*self.python("os.write(1, sys.argv[1].encode()); sys.exit(9)", text))
        self.assertEqual([event["event"] for event in events].count("result"), 1)
        self.assertEqual(stream_text(events, "stdout"), text)
        self.assertEqual(events[-1]["result"]["exit_code"], 9)

    def test_no_other_descriptor_leads_to_the_result(self) -> None:
        script = """
for fd in range(3, 1024):
    try:
        os.write(fd, sys.argv[1].encode())
        print("wrote to", fd)
    except OSError:
        pass
for name in os.listdir("/proc"):
    for fd in range(0, 20):
        try:
            if name.isdigit() and int(name) != os.getpid():
                handle = os.open(f"/proc/{name}/fd/{fd}", os.O_WRONLY)
                os.write(handle, sys.argv[1].encode())
                print("wrote to", name, fd)
        except OSError:
            pass
"""
        for options in ([], ["--pty"]):
            done, result = self.status(*options, *self.python(script, FORGED))
            self.assertNotIn(b"wrote to", done.stdout)
            self.assertNotIn("forged", result)

    def test_a_forged_status_line_cannot_come_from_a_terminal(self) -> None:
        done, result = self.status("--pty", *self.sh(f"printf '%s\\n' '{FORGED}' > /dev/tty; exit 4"))
        self.assertEqual((done.status, result["exit_code"]), (4, 4))

    def test_nasty_bytes(self) -> None:
        script = "data = bytes.fromhex(sys.argv[1])\nos.write(1, data)\nos.write(2, data[::-1])"
        done = self.jar("--json", "--bytes", *self.python(script, NASTY.hex()))
        result = runner.check_answer(done, done.stdout)
        self.assertEqual(base64.b64decode(result["stdout_base64"]), NASTY)
        self.assertEqual(base64.b64decode(result["stderr_base64"]), NASTY[::-1])
        self.assertEqual(result["encoding"], "utf-8-lossy")
        self.assertNotIn(b"\x1b", done.stdout)
        events = self.events(*self.python(script, NASTY.hex()))
        self.assertEqual(events[-1]["result"]["stdout_bytes"], len(NASTY))

    def test_nasty_arguments_and_names_in_messages(self) -> None:
        for name in ("\x1b[31mred", "a\nb", "\x1b]0;x\x07", "nul\u2028", "\x9b2J"):
            with self.subTest(name=name):
                done = self.jar("--json", "--", f"/nowhere/{name}")
                result = parse_line(done.stdout)
                self.assertEqual((done.status, result["outcome"]), (127, "failed"))
                self.assertNotIn(b"\x1b", done.stderr, "an escape sequence of the command line reaches the terminal")

    def test_nasty_file_names_among_the_risky(self) -> None:
        done = self.jar("--json", *self.sh("echo x > .envrc"))
        self.assertIn(".envrc", str(parse_line(done.stdout)["risky"]))


@on_ways(NAMESPACE, LANDLOCK)
class Order(AttackCase):
    """A command that writes at once, on a busy machine: its output may be there before the news that it has started."""

    def setUp(self) -> None:
        super().setUp()
        for _ in range(3):
            self.background("/bin/sh", "-c", "while :; do :; done")

    def test_the_start_comes_first(self) -> None:
        for _ in range(40):
            self.events("--output", "100K", "--", self.tool("writer"), "o:100")

    def test_a_run_that_is_ended_at_its_first_byte_has_started(self) -> None:
        for _ in range(40):
            args = ["--output", "10", "--overflow", "kill", "--", self.tool("writer"), "b:0"]
            self.assertEqual(self.json(*args)["outcome"], "output")
            self.events(*args)


@on_ways(NAMESPACE, LANDLOCK)
class Volume(AttackCase):
    def memory_of(self, *args: str) -> Dict[str, int]:
        """Run with --json and measure the engine's own memory."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        result = self.json(*args, timeout=2 * BOUND)
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        peak = 0 if IS_SANITIZED else after
        return {"grown": max(0, after - before), "peak": peak, "bytes": result["stdout_bytes"] + result["stderr_bytes"]}

    def test_one_line_of_300_megabytes(self) -> None:
        found = self.memory_of("--output", "10K", *self.sh("head -c 300000000 /dev/zero"))
        self.assertEqual(found["bytes"], 300000000)
        self.assertLess(found["peak"], 64 << 10, "the engine kept more than it may")

    def test_both_streams_at_once(self) -> None:
        writer = self.tool("writer")
        found = self.memory_of("--output", "10K", "--", writer, "b:50000000:4096")
        self.assertEqual(found["bytes"], 100000000)
        self.assertLess(found["peak"], 64 << 10)

    def test_a_million_writes_of_one_byte(self) -> None:
        found = self.memory_of("--output", "2M", "--keep", "both", "--", self.tool("writer"), "b:500000:1")
        self.assertEqual(found["bytes"], 1000000)
        self.assertLess(found["peak"], 64 << 10)

    def test_endless_output_and_a_timeout(self) -> None:
        writer = self.tool("writer")
        for options in (["--json"], ["--events", "--output", "1M"], ["--json", "--redact-secrets", "--keep", "tail"]):
            with self.subTest(options=options):
                done = self.jar(*options, "--timeout", "1s", "--grace", "200ms", "--", writer, "b:0")
                self.assertEqual(done.status, 124)

    def test_shapes_that_never_end_do_not_fill_the_memory(self) -> None:
        """A secret that has begun and does not end must not be held back for ever."""
        for start in ("-----BEGIN RSA PRIVATE KEY-----\\n", "password=", "Bearer ", "ghp_", "api_key: \\\"", "AKIA"):
            with self.subTest(start=start):
                script = f'printf "{start}"; head -c 60000000 /dev/zero | tr "\\0" A'
                found = self.memory_of("--output", "10K", "--redact-secrets", *self.sh(script))
                self.assertLess(found["peak"], 96 << 10)

    def test_a_reader_that_does_not_read(self) -> None:
        """Nobody takes the output: the timeout holds all the same, and the engine's memory is bounded."""
        for options in ([], ["--events"]):
            reader, writer = os.pipe()
            process = self.start(
                *options, "--timeout", "1s", "--grace", "200ms", "--", self.tool("writer"), "b:0", stdout=writer, stderr=subprocess.DEVNULL
            )
            os.close(writer)
            try:
                if options:
                    # A program that asked for events must get the last one: here belljar waits for its reader.
                    self.wait_for(lambda: runner.unread(reader), "the command writes")
                    self.wait_for(lambda: not census.descendants(process.pid), "the jar ends when its time is over")
                    self.assertIsNone(process.poll())
                else:
                    process.wait(BOUND)
                peak = self.peak_of(process.pid)
                self.assertTrue(IS_SANITIZED or peak < 64 << 10, peak)
            finally:
                os.close(reader)
                process.wait(BOUND)

    @staticmethod
    def peak_of(pid: int) -> int:
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
                return next((int(line.split()[1]) for line in status if line.startswith("VmHWM")), 0)
        except OSError:
            return 0

    def test_huge_arguments(self) -> None:
        for words in (["x" * 131072], ["x" * 200000], ["x" * 100000] * 80, [""] * 100000):
            with self.subTest(count=len(words), size=len(words[0])):
                try:
                    done = self.jar("--json", "--", "true", *words)
                except OSError:
                    continue
                result = parse_line(done.stdout)
                self.assertIn(result["outcome"], ("exited", "failed"))
                if result["outcome"] == "failed":
                    self.assertEqual(done.status, 126 if result["error"]["stage"] == "exec" else 125)


@on_ways(NAMESPACE, LANDLOCK)
class Secrets(AttackCase):
    VALUE = "s3cr3t-value-0123456789"

    def check_hidden(self, text: str) -> None:
        self.assertNotIn(self.VALUE, text)

    def test_a_secret_in_pieces(self) -> None:
        """Byte by byte, in halves, over the border of the engine's own reads, with pauses."""
        for cut in (1, 2, 7, 11, 22):
            script = f"""
value = sys.argv[1]
value = value[:{cut}], value[{cut}:]
os.write(1, b"x" * (65536 - {cut}))
for part in value:
    os.write(1, part.encode()); time.sleep(0.02)
for byte in sys.argv[1].encode():
    os.write(2, bytes([byte]))
"""
            with self.subTest(cut=cut):
                result = self.json("--output", "1M", "--redact", self.VALUE, *self.python(script, self.VALUE))
                self.check_hidden(result["stdout"] + result["stderr"])
                events = self.events("--redact", self.VALUE, *self.python(script, self.VALUE))
                self.check_hidden(stream_text(events, "stdout") + stream_text(events, "stderr"))
                done = self.jar("--redact", self.VALUE, *self.python(script, self.VALUE))
                self.check_hidden((done.stdout + done.stderr).decode())

    def test_a_secret_that_the_cap_or_the_end_cuts(self) -> None:
        for size in range(1, 24, 3):
            result = self.json("--output", str(size), "--redact", self.VALUE, *self.python("os.write(1, sys.argv[1].encode())", self.VALUE))
            self.assertNotIn(self.VALUE[: max(4, size)], result["stdout"], size)
        script = "os.write(1, sys.argv[1].encode()[:-1]); os.kill(os.getpid(), 9)"
        self.json("--redact", self.VALUE, *self.python(script, self.VALUE))
        script = "os.write(1, sys.argv[1].encode()); os.write(1, b'\\n'); time.sleep(100)"
        result = self.json("--timeout", "500ms", "--grace", "0", "--redact", self.VALUE, *self.python(script, self.VALUE))
        self.check_hidden(result["stdout"])

    def test_withheld_variables(self) -> None:
        env = {**self.env, "MY_API_KEY": self.VALUE}
        result = self.json("--redact-env", *self.python("os.write(1, bytes.fromhex(sys.argv[1]))", self.VALUE.encode().hex()), env=env)
        self.check_hidden(result["stdout"])
        self.assertNotIn(self.VALUE, self.json("--", "env", env=env)["stdout"])

    def test_secrets_do_not_stand_in_messages_or_events(self) -> None:
        events = self.events("--redact", self.VALUE, "--", "true")
        self.assertNotIn(self.VALUE, str(events[0].get("limits")))
        done = self.jar("--redact", self.VALUE, "-v", "--", "true")
        self.check_hidden(done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
