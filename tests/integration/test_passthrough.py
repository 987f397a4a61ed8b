# SPDX-License-Identifier: Apache-2.0
"""Output that is passed through arrives at once, whole, and unchanged."""

from __future__ import annotations

import hashlib
import os
import subprocess
import unittest

from harness.bounds import BOUND
from harness.case import JarCase, every_way
from harness.runner import finish, read_until


@every_way
class PassThrough(JarCase):
    def test_a_line_arrives_while_the_command_runs(self) -> None:
        process = self.start(*self.sh("echo one; read x; echo two $x; read y; printf three"), stdin=subprocess.PIPE)
        assert process.stdin and process.stdout
        read_until(process.stdout, b"one\n")
        process.stdin.write(b"go\n")
        process.stdin.flush()
        read_until(process.stdout, b"two go\n")
        done = finish(process, b"\n")
        self.assertEqual((done.status, done.stdout), (0, b"three"), done)

    def test_half_a_line_arrives_too(self) -> None:
        process = self.start(*self.sh("printf prompt:; printf err: >&2; read x"), stdin=subprocess.PIPE)
        assert process.stdout and process.stderr
        read_until(process.stdout, b"prompt:")
        read_until(process.stderr, b"err:")
        self.assertEqual(finish(process, b"\n").status, 0)

    def test_binary_output_is_exact(self) -> None:
        block = os.urandom(1 << 20) + bytes(range(256)) + b"\xff\xfe\0"
        data = block * 50
        (self.work / "data").write_bytes(data)
        done = self.jar("--", "cat", "data", timeout=60)
        self.assertEqual((done.status, len(done.stdout), done.stderr), (0, len(data), b""))
        self.assertEqual(hashlib.sha256(done.stdout).digest(), hashlib.sha256(data).digest())

    def test_binary_input_and_output_are_exact(self) -> None:
        data = os.urandom(1 << 20) * 10
        done = self.jar("--", "cat", stdin=data, timeout=60)
        self.assertTrue(done.stdout == data, "the copy differs")

    def test_both_streams_at_once(self) -> None:
        done = self.jar("--", self.tool("writer"), "b:10000000:3000", timeout=60)
        self.assertEqual((done.status, len(done.stdout), len(done.stderr)), (0, 10000000, 10000000))
        period = bytes(range(ord("a"), ord("a") + 23))
        self.assertTrue(done.stdout == (period * (10000000 // 23 + 1))[:10000000])
        self.assertTrue(done.stderr == (period.upper() * (10000000 // 23 + 1))[:10000000])

    def test_the_streams_can_be_opened_by_name(self) -> None:
        script = "echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin; echo again >>/proc/self/fd/1"
        done = self.jar(*self.sh(script), stdin=b"in\n")
        self.assertEqual((done.status, done.stdout, done.stderr), (0, b"out\nin\nagain\n", b"err\n"), done)

    def test_the_streams_inside_are_pipes(self) -> None:
        with open(self.base / "out", "wb") as out, open(self.base / "err", "wb") as err:
            process = self.start(
                *self.sh("test -p /dev/fd/1 && test -p /dev/fd/2 && echo pipes"), stdout=out, stderr=err
            )
            self.assertEqual(process.wait(BOUND), 0)
        self.assertEqual((self.base / "out").read_bytes(), b"pipes\n")

    def test_output_is_appended_where_the_caller_appends(self) -> None:
        path = self.base / "log"
        path.write_text("before\n")
        with open(path, "ab") as log:
            process = self.start("--", "echo", "after", stdout=log)
            self.assertEqual(process.wait(BOUND), 0)
        self.assertEqual(path.read_text(), "before\nafter\n")

    def test_a_stream_the_command_closes(self) -> None:
        done = self.jar(*self.sh("exec >&-; sleep 0.2; echo still >&2; exit 3"))
        self.assertEqual((done.status, done.stderr), (3, b"still\n"), done)

    def test_a_slow_reader_slows_the_command_and_loses_nothing(self) -> None:
        process = self.start("--", self.tool("writer"), "o:3000000")
        assert process.stdout
        first = os.read(process.stdout.fileno(), 10)
        done = finish(process)
        self.assertEqual(len(first) + len(done.stdout), 3000000)

    def test_output_right_before_the_end_arrives(self) -> None:
        for _ in range(20):
            done = self.jar("--", self.tool("writer"), "o:60000", "e:60000")
            self.assertEqual((len(done.stdout), len(done.stderr)), (60000, 60000))

    def test_a_quiet_run_says_nothing(self) -> None:
        done = self.jar("--", "true")
        self.assertEqual((done.status, done.stdout, done.stderr), (0, b"", b""))


if __name__ == "__main__":
    unittest.main()
