# SPDX-License-Identifier: Apache-2.0
"""What the command reads, and that it has no other descriptors."""

from __future__ import annotations

import os
import subprocess
import unittest

from harness.bounds import BOUND
from harness.case import JarCase, every_way, on_ways
from harness.runner import LANDLOCK, NAMESPACE, finish

BIG = 50 << 20


@every_way
class Stdin(JarCase):
    def test_inherit_is_the_default(self) -> None:
        for options in ([], ["--stdin", "inherit"]):
            done = self.jar(*options, "--", "cat", stdin=b"in\0\xffput")
            self.assertEqual((done.status, done.stdout), (0, b"in\0\xffput"), done)

    def test_null_is_empty(self) -> None:
        done = self.jar("--stdin", "null", "--", "cat", stdin=b"input")
        self.assertEqual((done.status, done.stdout), (0, b""), done)

    def test_a_file_of_the_caller(self) -> None:
        outside = self.base / "outside.txt"
        outside.write_bytes(b"from the file\0\xff")
        done = self.jar("--stdin", outside, "--", "cat", stdin=b"not this")
        self.assertEqual((done.status, done.stdout), (0, b"from the file\0\xff"), done)

    def test_a_relative_file_starts_at_the_current_directory(self) -> None:
        (self.base / "input.txt").write_text("relative")
        done = self.jar("-C", self.work, "--stdin", "input.txt", "--", "cat", cwd=self.base)
        self.assertEqual((done.status, done.stdout), (0, b"relative"), done)

    def test_a_file_called_null_is_named_with_a_slash(self) -> None:
        (self.work / "null").write_text("contents")
        done = self.jar("--stdin", "./null", "--", "cat")
        self.assertEqual((done.status, done.stdout), (0, b"contents"), done)

    def test_unfit_files_run_nothing(self) -> None:
        (self.base / "secret").write_text("")
        for path in (self.base / "missing", self.base, "/", self.base / "secret" / "x", ""):
            with self.subTest(path=str(path)):
                done, result = self.status("--stdin", path, *self.sh("touch ran"))
                self.assertEqual((done.status, result["outcome"]), (125, "failed"), done)
                self.assertFalse((self.work / "ran").exists())

    def test_a_directory_as_inherited_stdin_is_refused(self) -> None:
        descriptor = os.open(self.base, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, descriptor)
        done, result = self.status(*self.sh("touch ran"), stdin=descriptor)
        self.assertEqual((done.status, result["outcome"]), (125, "failed"), done)
        self.assertFalse((self.work / "ran").exists())

    def test_big_input_arrives_whole(self) -> None:
        block = os.urandom(1 << 20)
        data = block * (BIG >> 20)
        for _ in range(3):
            done = self.jar("--", "wc", "-c", stdin=data)
            self.assertEqual((done.status, done.stdout.strip()), (0, str(BIG).encode()), done)

    def test_the_end_of_the_input_arrives_every_time(self) -> None:
        data = os.urandom(200000)
        for _ in range(30):
            done = self.jar("--", "cat", stdin=data)
            self.assertTrue(done.stdout == data, f"{len(done.stdout)} of {len(data)} bytes")

    def test_input_that_nobody_reads_does_not_matter(self) -> None:
        done = self.jar("--", "true", stdin=b"x" * (4 << 20))
        self.assertEqual(done.status, 0, done)

    def test_an_open_stdin_does_not_hold_the_run(self) -> None:
        process = self.start(*self.sh("exit 4"), stdin=subprocess.PIPE)
        self.assertEqual(process.wait(BOUND), 4)

    def test_only_what_the_command_took_of_a_file_is_gone(self) -> None:
        path = self.base / "input"
        path.write_bytes(b"one\ntwo\n" + b"x" * 500000)
        with open(path, "rb", buffering=0) as file:
            done = self.jar(*self.sh("dd bs=4 count=1 2>/dev/null"), stdin=file)
            self.assertEqual(done.stdout, b"one\n", done)
            self.assertEqual(file.read(4), b"two\n")

    def test_only_what_the_command_took_of_a_pipe_is_gone(self) -> None:
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        os.write(writer, b"one\ntwo\n")
        os.close(writer)
        done = self.jar(*self.sh("dd bs=4 count=1 2>/dev/null"), stdin=reader)
        self.assertEqual(done.stdout, b"one\n", done)
        self.assertEqual(os.read(reader, 100), b"two\n")

    def test_a_closed_stdin(self) -> None:
        process = self.start(*self.sh("cat; echo ran"), preexec_fn=lambda: os.close(0))
        done = finish(process)
        self.assertEqual((done.status, done.stdout), (0, b"ran\n"), done)

    def test_closed_descriptors_are_not_mistaken_for_others(self) -> None:
        def close_all() -> None:
            os.close(0)
            os.close(1)

        process = self.start("--stdin", "null", *self.sh("echo err >&2; cat"), preexec_fn=close_all)
        done = finish(process)
        self.assertIn(b"err", done.stderr, done)

    def test_the_command_has_three_descriptors(self) -> None:
        extra = [os.open(self.base, os.O_RDONLY), *os.pipe()]
        for descriptor in extra:
            self.addCleanup(os.close, descriptor)
        high = os.dup2(extra[0], 900)
        self.addCleanup(os.close, high)
        for options in ([], ["--stdin", "null"], ["--pty"]):
            with self.subTest(options=options):
                done = self.jar(*options, "--", self.tool("fdlist"), pass_fds=[*extra, high])
                self.assertEqual((done.status, done.stdout.strip()), (0, b"0 1 2"), done)

    def test_the_status_descriptor_does_not_reach_the_command(self) -> None:
        done, _ = self.status("--", self.tool("fdlist"))
        self.assertEqual(done.stdout, b"0 1 2\n", done)


@on_ways(NAMESPACE, LANDLOCK)
class Walled(JarCase):
    def test_no_descriptor_of_belljar_can_be_reached_through_proc(self) -> None:
        descriptor = os.open(self.base, os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        names = " ".join(f"/proc/$PPID/{name}" for name in ("fd/0", "fd/3", "fd/4", "fd/5", "cwd", "root", "exe"))
        script = f"readlink {names} || head -c 1 {names} /proc/$PPID/mem /proc/$PPID/maps || echo refused"
        done = self.jar(*self.sh(script), pass_fds=(descriptor,))
        self.assertEqual(done.stdout, b"refused\n", done)


if __name__ == "__main__":
    unittest.main()
