# SPDX-License-Identifier: Apache-2.0
"""Standard input is relayed: the caller's own pipe or file is out of the command's reach."""

from __future__ import annotations

import os
import stat
import unittest

from harness.case import JarCase, every_way

INJECT = "echo injected > /proc/self/fd/0; echo injected >&0; true"


@every_way
class Relay(JarCase):
    def test_nothing_can_be_written_into_the_callers_pipe(self) -> None:
        reader, writer = os.pipe()
        os.write(writer, b"the caller's\n")
        done = self.jar(*self.sh("read line; " + INJECT), stdin=reader)
        self.assertEqual(done.status, 0, done)
        os.close(writer)
        rest = os.read(reader, 1000)
        os.close(reader)
        self.assertNotIn(b"injected", rest)

    def test_a_file_of_the_callers_stays_as_it_is(self) -> None:
        path = self.base / "input.txt"
        path.write_text("one\ntwo\n")
        path.chmod(0o640)
        before = path.stat()
        for flags in (os.O_RDONLY, os.O_RDWR):
            descriptor = os.open(path, flags)
            script = f"chmod 777 /proc/self/fd/0; touch -d @1 /proc/self/fd/0; truncate -s 0 /proc/self/fd/0; {INJECT}"
            done = self.jar(*self.sh(script), stdin=descriptor)
            os.close(descriptor)
            self.assertEqual(done.status, 0, done)
            after = path.stat()
            self.assertEqual(path.read_text(), "one\ntwo\n")
            self.assertEqual(stat.S_IMODE(after.st_mode), 0o640)
            self.assertEqual(after.st_mtime_ns, before.st_mtime_ns)

    def test_the_position_in_a_file_is_where_the_command_stopped_reading(self) -> None:
        path = self.base / "input.txt"
        path.write_text("first\n" + "x" * 200_000 + "\nlast\n")
        descriptor = os.open(path, os.O_RDONLY)
        done = self.jar(*self.sh("read line; echo $line"), stdin=descriptor)
        self.assertEqual(done.stdout, b"first\n")
        self.assertEqual(os.lseek(descriptor, 0, os.SEEK_CUR), len("first\n"))
        done = self.jar("--", "cat", stdin=descriptor)
        self.assertEqual(done.stdout, b"x" * 200_000 + b"\nlast\n")
        self.assertEqual(os.lseek(descriptor, 0, os.SEEK_CUR), path.stat().st_size)
        os.close(descriptor)

    def test_a_command_that_reads_nothing_leaves_the_file_where_it_was(self) -> None:
        path = self.base / "input.txt"
        path.write_text("untouched\n")
        descriptor = os.open(path, os.O_RDONLY)
        self.jar("--", "true", stdin=descriptor)
        self.assertEqual(os.read(descriptor, 100), b"untouched\n")
        os.close(descriptor)


if __name__ == "__main__":
    unittest.main()
