# SPDX-License-Identifier: Apache-2.0
"""The event stream: live, ordered, and complete. Its form is checked by the harness in every test."""

from __future__ import annotations

import os
import subprocess
import unittest

from harness.case import JarCase, every_way
from harness.result import check_events, parse_line, stream_bytes, stream_text
from harness.runner import StatusPipe, check_answer, finish, read_until


@every_way
class Events(JarCase):
    def test_a_run_from_start_to_result(self) -> None:
        events = self.events("--timeout", "20s", "--memory", "none", *self.sh("echo out; echo err >&2; exit 3"))
        start, result = events[0], events[-1]["result"]
        self.assertEqual(start["argv"], ["/bin/sh", "-c", "echo out; echo err >&2; exit 3", self.marker])
        self.assertEqual((start["workdir"], start["rung"]), (str(self.work), self.way.rung))
        self.assertEqual((start["limits"]["timeout_ms"], start["limits"]["pids"]), (20000, 1024))
        self.assertEqual((stream_text(events, "stdout"), stream_text(events, "stderr")), ("out\n", "err\n"))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 3))
        self.assertEqual((result["stdout_bytes"], result["stderr_bytes"]), (4, 4))

    def test_events_arrive_while_the_command_runs(self) -> None:
        process = self.start("--events", *self.sh("echo one; read x; echo two; read y"), stdin=subprocess.PIPE)
        assert process.stdin and process.stdout
        seen = read_until(process.stdout, b"one")
        self.assertIn(b'"start"', seen)
        process.stdin.write(b"\n")
        process.stdin.flush()
        seen += read_until(process.stdout, b"two")
        done = finish(process, b"\n")
        check_events(seen + done.stdout)

    def test_the_start_arrives_before_any_output(self) -> None:
        process = self.start("--events", *self.sh("read x"), stdin=subprocess.PIPE)
        assert process.stdout
        seen = read_until(process.stdout, b"\n")
        self.assertEqual(parse_line(seen)["event"], "start")
        self.assertEqual(finish(process, b"\n").status, 0)

    def test_a_limit_is_told_once(self) -> None:
        events = self.events("--output", "1000", "--", self.tool("writer"), "b:500000:1000")
        self.assertEqual([e["limit"]["name"] for e in events if e["event"] == "limit"], ["output"])
        self.assertEqual(sum(e["bytes"] for e in events if e["event"] == "output"), 1000)

    def test_a_timeout_is_told(self) -> None:
        events = self.events("--timeout", "300ms", *self.sh("echo before; sleep 1000"))
        self.assertEqual(stream_text(events, "stdout"), "before\n")
        self.assertEqual([e["limit"]["name"] for e in events if e["event"] == "limit"], ["timeout"])
        self.assertEqual(events[-1]["result"]["outcome"], "timeout")

    def test_a_run_that_never_started_is_a_result_alone(self) -> None:
        for args in (["--", "no-such-command"], ["--bogus", "--", "true"], ["-C", "/no/such", "--", "true"]):
            events = self.events(*args)
            self.assertEqual([event["event"] for event in events], ["result"])


class EventText(JarCase):
    def test_a_big_output_comes_in_parts(self) -> None:
        events = self.events("--output", "2M", "--", self.tool("writer"), "b:700000")
        self.assertEqual((len(stream_text(events, "stdout")), len(stream_text(events, "stderr"))), (700000, 700000))

    def test_characters_are_never_split(self) -> None:
        text = "aé中😀" * 3
        events = self.events("--", self.tool("drip"), "15", text.encode().hex())
        self.assertEqual(stream_text(events, "stdout"), text)
        outputs = [event for event in events if event["event"] == "output"]
        self.assertGreater(len(outputs), 1)
        for event in outputs:
            self.assertEqual(len(event["text"].encode()), event["bytes"])

    def test_characters_are_never_split_at_the_biggest_size(self) -> None:
        (self.work / "data").write_text("a" + "中" * 200000, encoding="utf-8")
        events = self.events("--output", "none", "--", "cat", "data")
        self.assertEqual(stream_text(events, "stdout"), "a" + "中" * 200000)

    def test_half_a_character_at_the_end_arrives(self) -> None:
        events = self.events(*self.sh("printf 'a\\303'"))
        self.assertRegex(stream_text(events, "stdout"), "\\Aa\ufffd\\Z")
        self.assertEqual(events[-1]["result"]["stdout_bytes"], 2)

    def test_half_a_character_does_not_hold_back_the_rest(self) -> None:
        process = self.start("--events", *self.sh("printf 'abc\\303'; read x"), stdin=subprocess.PIPE)
        assert process.stdout
        seen = read_until(process.stdout, b"abc")
        done = finish(process, b"\n")
        self.assertRegex(stream_text(check_events(seen + done.stdout), "stdout"), "\\Aabc\ufffd\\Z")

    def test_other_bytes_become_replacement_characters(self) -> None:
        events = self.events("--", self.tool("drip"), "5", b"a\xffb\x80\xf0\x9fc".hex())
        self.assertRegex(stream_text(events, "stdout"), "\\Aa\ufffdb\ufffd+c\\Z")

    def test_bytes_come_as_base64(self) -> None:
        data = bytes(range(256)) * 1000 + os.urandom(1000)
        (self.work / "data").write_bytes(data)
        events = self.events("--bytes", "--output", "none", "--", "cat", "data")
        self.assertTrue(stream_bytes(events, "stdout") == data)

    def test_order_within_a_stream_is_kept(self) -> None:
        events = self.events("--output", "none", *self.sh("for i in $(seq 1 500); do echo $i; done"))
        self.assertEqual(stream_text(events, "stdout").split(), [str(i) for i in range(1, 501)])

    def test_control_characters_are_escaped(self) -> None:
        events = self.events(*self.sh("printf 'a\\0b\\033[31m\\r\\n\\177'"))
        self.assertEqual(stream_text(events, "stdout"), "a\0b\x1b[31m\r\n\x7f")

    def test_words_that_are_not_text_are_repaired(self) -> None:
        events = self.events("--", "true", b"\xff\xfe", "é\n")
        self.assertEqual(events[0]["argv"][2], "é\n")
        self.assertIn("\ufffd", events[0]["argv"][1])

    def test_the_status_descriptor_goes_along(self) -> None:
        status = StatusPipe()
        process = self.start("--events", *status.option, *self.sh("echo out"), pass_fds=(status.writer,))
        status.started()
        done = finish(process)
        events = check_events(done.stdout)
        self.assertEqual(check_answer(done, status.read()), events[-1]["result"])

    def test_a_private_workdir_has_a_name(self) -> None:
        events = self.events("-C", "none", "--", "pwd")
        self.assertEqual(stream_text(events, "stdout"), events[0]["workdir"] + "\n")


if __name__ == "__main__":
    unittest.main()
