# SPDX-License-Identifier: Apache-2.0
"""Refused system calls are refused as ever, told in the result, and hold nothing up.

Layer: seccomp, asked by the filter and answered by whoever watches over the command (answer/). The command's own listener, a storm
of refused calls, a stopped engine and names that pretend to be something else are what an attacker has.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import time
import unittest
from pathlib import Path
from typing import Any, Dict

from adversarial_support import AttackCase
from harness.bounds import BOUND, LASTING, SLOWNESS
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

# Both architectures: x86-64's number, and that of all others.
CALLS = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "swapon": (167, 224),
    "reboot": (169, 142), "init_module": (175, 105), "delete_module": (176, 106), "kexec_load": (246, 104), "bpf": (321, 280),
    "perf_event_open": (298, 241), "setns": (308, 268), "unshare": (272, 97), "open_by_handle_at": (304, 265),
}
UNSHARE_USER = 0x10000000
COLUMN = 0 if platform.machine() == "x86_64" else 1
# With arguments that no kernel would take.
REBOOT = CALLS["reboot"][COLUMN]
# What makes a host without user namespaces for a test refuses these itself, and nobody hears of that.
REFUSED_BY_HOST = {"mount", "umount2", "pivot_root", "unshare", "setns"}
SECCOMP = (317, 277)[COLUMN]
CLONE3 = 435


@on_ways(NAMESPACE, LANDLOCK)
class RefusedCalls(AttackCase):
    """What a command learns, and what its caller does."""

    def denied(self, result: Any) -> Dict[str, Any]:
        return {entry["what"]: entry for entry in result["denied"] if entry["kind"] == "syscall"}

    def test_each_is_refused_and_told_once(self) -> None:
        script = "".join(
            f"attempt('{name}', lambda: call({numbers[COLUMN]}, {UNSHARE_USER if name == 'unshare' else 0}, 0, 0, 0, 0))\n"
            for name, numbers in CALLS.items()
        )
        result = self.json(*self.python(script))
        self.assertEqual(self.answers(result["stdout"]), {name: "EPERM" for name in CALLS})
        told = self.denied(result)
        self.assertEqual(set(told), set(CALLS) - (REFUSED_BY_HOST if self.way is LANDLOCK else set()))
        for name, entry in told.items():
            self.assertEqual((entry["count"], entry["access"], entry["certainty"], entry["cure"]), (1, "call", "seen", None), name)
            self.assertTrue(entry["process"].startswith("python"), entry)
            self.assertIn("EPERM", entry["why"])

    def test_what_programs_do_without_is_not_told(self) -> None:
        result = self.json(*self.python(f"attempt('clone3', lambda: call({CLONE3}, 0, 0))"))
        self.assertEqual((self.answers(result["stdout"]), result["denied"]), ({"clone3": "ENOSYS"}, []))

    def test_events_come_at_once_and_the_count_at_the_end(self) -> None:
        events = self.events(*self.python(
            f"for i in range(3): attempt('reboot', lambda: call({REBOOT}, 0, 0, 0, 0, 0))\nprint('said', flush=True)"
        ))
        told = [event["denied"] for event in events if event["event"] == "denied"]
        self.assertEqual([(entry["what"], entry["count"] >= 1) for entry in told], [("reboot", True)])
        self.assertEqual(self.denied(events[-1]["result"])["reboot"]["count"], 3)

    def test_a_storm_ends_in_time(self) -> None:
        """Threads and processes that do nothing else; what they do at the end of their time is counted, and nobody waits for it."""
        result = self.json("--timeout", f"{SLOWNESS:.0f}s", "--grace", "0", *self.python(
            f"os.fork(); os.fork()\nwhile True: libc.syscall({REBOOT}, 0, 0, 0, 0, 0)"
        ))
        self.assertEqual(result["outcome"], "timeout")
        self.assertGreater(self.denied(result)["reboot"]["count"], 1000)

    def test_a_stopped_engine_holds_nothing_up(self) -> None:
        done = self.work / "done"
        process, status = self.start_status(*self.python(
            f"open('ready', 'w').close(); time.sleep(0.3)\n"
            f"for i in range(1000): libc.syscall({REBOOT}, 0, 0, 0, 0, 0)\nopen('done', 'w').close()"
        ))
        self.wait_for(self.work / "ready")
        engine = self.engine_of(process.pid)
        os.kill(engine, signal.SIGSTOP)
        try:
            self.wait_for(done)
        finally:
            os.kill(engine, signal.SIGCONT)
        self.assertEqual(process.wait(BOUND), 0)
        self.assertEqual(self.denied(json.loads(status.read()))["reboot"]["count"], 1000)

    def engine_of(self, pid: int) -> int:
        """`deny` becomes belljar, so this is belljar itself."""
        self.assertTrue(Path(f"/proc/{pid}/comm").read_text().startswith("belljar"))
        return pid

    def wait_for(self, path: Path) -> None:
        until = time.monotonic() + BOUND
        while not path.exists():
            self.assertLess(time.monotonic(), until, f"{path} never came")
            time.sleep(0.01)

    def test_a_listener_of_its_own_is_refused(self) -> None:
        """Whoever answers the filter's questions is never another.

        The kernel knows one for each process, as long as somebody holds it: the filter refuses before the kernel looks at anything.
        """
        result = self.json(*self.python(
            "libc.prctl(38, 1, 0, 0, 0)\n"
            "program = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))\n"
            "head = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 1, ctypes.addressof(program)))\n"
            f"attempt('listener', lambda: call({SECCOMP}, 1, 8, head))\n"
            f"attempt('nothing', lambda: call({SECCOMP}, 1, 8, 0))\n"
            f"attempt('filter', lambda: call({SECCOMP}, 1, 0, head))\n"
            f"attempt('reboot', lambda: call({REBOOT}, 0, 0, 0, 0, 0))"
        ))
        self.assertEqual(self.answers(result["stdout"]), {"listener": "EBUSY", "nothing": "EBUSY", "filter": "ok", "reboot": "EPERM"})
        self.assertEqual(self.denied(result)["reboot"]["count"], 1)

    def test_a_name_cannot_steer_a_terminal(self) -> None:
        script = f"libc.prctl(15, b'\\x1b[2J\\n\\xff', 0, 0, 0)\nlibc.syscall({REBOOT}, 0, 0, 0, 0, 0)\nsys.exit(3)"
        self.assertEqual(self.denied(self.json(*self.python(script)))["reboot"]["process"], "\\x1b[2J\\n\\xff")
        said = self.jar(*self.python(script)).stderr
        self.assertIn(b"refused: the system call reboot by \\x1b[2J\\n\\xff: ", said)
        self.assertNotIn(b"\x1b", said)

    def test_who_is_left_when_the_command_ends_is_not_waited_for(self) -> None:
        result = self.json(*self.python(
            f"if os.fork() == 0:\n    os.setsid()\n    end = time.time() + {LASTING}\n"
            f"    while time.time() < end: libc.syscall({REBOOT}, 0, 0, 0, 0, 0)\n"
        ))
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))


if __name__ == "__main__":
    unittest.main()
