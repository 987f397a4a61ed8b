# SPDX-License-Identifier: Apache-2.0
"""A traced command that lies, storms and disturbs: it is refused as ever, deadlines hold, and the ledger stays honest.

Layer: none; nothing is decided by a trace. What is attacked are the process that answers (inside/answer/answer_trace.c) and the one that
looks at the host (helper/ledger_look.c).
"""

from __future__ import annotations

import contextlib
import os
import signal
import unittest
from pathlib import Path
from typing import List

from adversarial_support import AttackCase
from harness import census
from harness.bounds import BOUND
from harness.case import on_ways
from harness.result import check_result, parse_line
from harness.runner import LANDLOCK, NAMESPACE

FORGE = r"""
import ctypes, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
fine, secret = (sys.argv[i].encode().ljust(200, b"\0") for i in (1, 2))
name, over, opened = ctypes.create_string_buffer(200), [], []
def flip():
    while not over:
        ctypes.memmove(name, fine, 200), ctypes.memmove(name, secret, 200)
thread = threading.Thread(target=flip)
thread.start()
for _ in range(300):
    fd = libc.open(name, 0)
    if fd >= 0:
        opened.append(libc.read(fd, ctypes.create_string_buffer(64), 64)), libc.close(fd)
over.append(1)
thread.join()
print(sorted(set(opened)))
"""

GARBAGE = r"""
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
page = mmap.mmap(-1, 8192)
view = ctypes.addressof(ctypes.c_char.from_buffer(page))
page[:] = b"/" * 8192
libc.mprotect(ctypes.c_void_p(view + 4096), 4096, 0)
pointers = [0, 1, 2**63, 2**64 - 1, view, view + 4095, view + 4096]
for pointer in map(ctypes.c_void_p, pointers):
    libc.open(pointer, 0), libc.openat(-5, pointer, 64, 0), libc.openat(10**6, pointer, 0), libc.execve(pointer, pointer, pointer)
    libc.connect(0, pointer, 110), libc.connect(0, pointer, 2**31 - 1), libc.connect(-1, pointer, -1), libc.rename(pointer, pointer)
    libc.syscall(437, -100, pointer, pointer, 24), libc.mkdir(pointer, 0), libc.symlink(pointer, pointer)
libc.open(b"x" * 5000, 0), libc.open(b"/" + b"y/" * 511, 0), libc.open(b"", 0), libc.open(b"///", 0), libc.open(b"/..", 0)
print("alive")
"""

LISTENER = r"""
import ctypes, struct
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
program = Program(1, ctypes.addressof(code))
import platform
print(libc.syscall(317 if platform.machine() == "x86_64" else 277, 1, 8, ctypes.byref(program)), ctypes.get_errno())
print(open("/etc/passwd").read() != "")
"""


def filters(pid: int) -> int:
    """How many filters it is behind; 0 where it is gone."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/status").read_text(errors="replace").partition("\nSeccomp_filters:\t")[2].split()[0])
    return 0


def lookers(engine: int) -> List[int]:
    """Who looks at the host for the ledger is behind a filter of its own, which neither a traced jar's first process is nor who measures."""
    return [pid for pid in census.children(engine) if filters(pid) > filters(engine)]


@on_ways(NAMESPACE, LANDLOCK)
class TraceAttacks(AttackCase):
    """Whoever is traced knows it, and does what it can."""

    def traced(self, *words: str) -> List[str]:
        return ["--ledger", "trace", "--", "python3", "-c", *words, self.marker]

    def test_paths_that_another_thread_changes(self) -> None:
        fine, key = self.work / "fine", self.home / ".ssh/key"
        fine.write_text("abc")
        key.parent.mkdir(mode=0o755)
        key.write_text("secret")
        key.chmod(0o644)
        result = self.json(*self.traced(FORGE, str(fine), str(key)))
        self.assertIn(result["stdout"], ("[3]\n", "[]\n"), result)
        for entry in result["denied"]:
            self.assertIsNone(entry["cure"], entry)

    def test_arguments_that_mean_nothing(self) -> None:
        self.assertEqual(self.json(*self.traced(GARBAGE))["stdout"], "alive\n")

    def test_a_listener_of_its_own(self) -> None:
        self.assertEqual(self.json(*self.traced(LISTENER))["stdout"], "-1 16\nTrue\n")

    def test_a_storm_ends_at_its_deadline(self) -> None:
        script = f"while :; do true </nowhere/$i; true <{self.secret}; i=$((i+1)); done 2>/dev/null"
        result = self.json("--ledger", "trace", "--timeout", "300ms", "--grace", "0", *self.sh(f"({script}) & ({script}) & {script}"))
        self.assertEqual(result["outcome"], "timeout")
        self.assertLessEqual(len(result["denied"]), 320)

    def test_a_process_that_looks_and_is_stopped(self) -> None:
        """It is a child of the engine, made at the first attempt that is told."""
        script = f"cat {self.secret}; until [ -e end ]; do sleep 0.01; done; cat {self.secret}2; exit 3"
        engine, status = self.start_status("--ledger", "trace", *self.sh(script))
        self.wait_for(lambda: lookers(engine.pid), "somebody looks")
        stopped = lookers(engine.pid)
        self.assertEqual(len(stopped), 1)
        for looker in stopped:
            os.kill(looker, signal.SIGSTOP)
        (self.work / "end").touch()
        engine.communicate(timeout=BOUND)
        result = check_result(parse_line(status.read()))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 3))
        self.assertGreaterEqual(result["denied_more"], 1)
        self.wait_for(lambda: not any(Path(f"/proc/{looker}").exists() for looker in stopped), "they are gone")


if __name__ == "__main__":
    unittest.main()
