# SPDX-License-Identifier: Apache-2.0
"""What a command in a kept jar can do to its keeper, to the jar's first process, to other runs, and to the engine.

Layers: tracing and /proc, keepers' not being dumpable and Landlock's rule for tracing; signals, Landlock's scope, one for
each run (STEP_SCOPE); limits and priorities, the filter; what ends all the same, the first process, which hunts what a
keeper left, and the engine, which waits for nobody.
"""

from __future__ import annotations

import platform
import socket
import unittest
from typing import Dict, List

from adversarial_support import PYTHON, AttackCase, number
from harness import census, host, wire
from harness.case import on_ways
from harness.engine_case import KeptJarCase
from harness.runner import LANDLOCK, NAMESPACE
from harness.wire import CANCEL, CLOSE, CLOSED, RESULT, STARTED, Channel

SIGNALS = ("kill", "tkill", "tgkill", "sigqueue", "tgsigqueue", "pidfd_signal")
TRACING = ("attach", "seize", "vm_read", "vm_write", "pidfd_getfd")
SETTINGS = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "setpriority", "ioprio_set")


class KeptCase(KeptJarCase, AttackCase):
    """A kept jar on an engine's socket."""

    def check_well(self, jar: Channel) -> None:
        """The jar works, and can be closed."""
        self.assertEqual(self.run_in(jar, self.script("echo well")).stdout, b"well\n")
        self.assertEqual(wire.finish(jar.send(CLOSE)).kinds, [CLOSED])
        self.assertEqual(census.marked(self.marker), [])

    def lasting(self, jar: Channel) -> Channel:
        """Another run, that must not be touched."""
        other = self.join(jar, self.script("echo $$ > other; exec sleep 300"), {"timeout": None})
        self.assertEqual(other.read().kind, STARTED)
        while self.run_in(jar, self.script("test -s other")).result["exit_code"]:
            pass
        return other


class AgainstTheNextRun(KeptCase):
    way = NAMESPACE

    def test_what_waits_for_the_next_command_is_out_of_reach(self) -> None:
        """Spare keepers, and their children that will become commands: whatever is in the jar but oneself."""
        jar = self.open({"timeout": "20s"})
        tool = self.tool("attack_process")
        for _ in range(3):
            seen = self.run_in(jar, self.script(f"exec {tool} $(ls /proc | grep '^[0-9]' | grep -vx $$)"))
            self.assertEqual(seen.result["exit_code"], 0, seen.result)
            good = {str(number(name)) for name in ("EPERM", "ESRCH", "EACCES", "ENOSYS")}
            calls = [*TRACING, *SETTINGS, *(SIGNALS if host.landlock_abi() >= 6 else ())]
            lines = [line.split() for line in seen.stdout.decode().splitlines()]
            self.assertGreater(len({pid for _, pid, _ in lines}), 3)
            self.assertEqual([line for line in lines if line[0] in calls and line[2] not in good], [])
        self.check_well(jar)


@on_ways(NAMESPACE, LANDLOCK)
class AgainstOthers(KeptCase):
    def test_keeper_first_process_and_other_runs_are_out_of_reach(self) -> None:
        jar = self.open({"timeout": "20s"})
        other = self.lasting(jar)
        tool = self.tool("attack_process")
        seen = self.run_in(jar, self.script(f"exec {tool} $PPID $(cat other) $(awk '/^PPid/ {{print $2}}' /proc/$PPID/status)"))
        self.assertEqual(seen.result["exit_code"], 0, seen.result)
        table: Dict[int, Dict[str, str]] = {}
        for line in seen.stdout.decode().splitlines():
            call, pid, answer = line.split()
            table.setdefault(int(pid), {})[call] = answer
        self.assertEqual(len(table), 3, table)
        good = {str(number(name)) for name in ("EPERM", "ESRCH", "EACCES", "ENOSYS")}
        for pid, answers in table.items():
            calls = [*TRACING, *SETTINGS, *(SIGNALS if host.landlock_abi() >= 6 else ())]
            wrong = {call: answers[call] for call in calls if call in answers and answers[call] not in good}
            self.assertEqual(wrong, {}, f"process {pid}")
        other.send(CANCEL, wire.number(9)).send(CANCEL, wire.number(9))
        self.assertEqual(wire.finish(other).result["outcome"], "cancelled")
        self.check_well(jar)

    def test_a_child_given_to_the_keeper_goes_with_its_run(self) -> None:
        """clone(CLONE_PARENT): the keeper, which may have another run after this one, is the parent."""
        jar = self.open({"timeout": "20s", "memory": "600M"})
        number_of_clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
        attack = (
            "import ctypes, os, sys, time\n"
            f"pid = ctypes.CDLL(None).syscall({number_of_clone}, 0x8000 | 17, 0, 0, 0, 0)\n"
            "if pid == 0: os.setsid(); time.sleep(300)\n"
            "print(pid > 0, flush=True); os._exit(4)\n"
        )
        for _ in range(4):
            outcome = self.run_in(jar, [PYTHON, "-c", attack, self.marker])
            self.assertEqual((outcome.result["exit_code"], outcome.stdout), (4, b"True\n"), outcome.result)
            self.assertEqual(census.marked(self.marker), [])
        self.check_well(jar)

    def test_daemons_stopped_and_traced_processes_go_with_their_run(self) -> None:
        jar = self.open({"timeout": "20s"})
        leaver = "(setsid sh -c 'kill -STOP $$' &); (setsid sleep 300 &); for i in 1 2 3 4 5; do (setsid sh -c 'sleep 300 & sleep 300' &); done; exit 3"
        for _ in range(3):
            outcome = self.run_in(jar, self.script(leaver))
            self.assertEqual(outcome.result["exit_code"], 3)
            self.assertEqual(census.marked(self.marker), [])
        self.check_well(jar)

    def test_a_chain_that_forks_away_is_caught(self) -> None:
        jar = self.open({"timeout": "2s", "grace": 0})
        outcome = self.run_in(jar, [self.tool("hopper"), self.marker])
        self.assertEqual(outcome.kinds[-1], RESULT)
        self.assertEqual(census.marked(self.marker), [])
        self.check_well(jar)

    def test_an_output_pipe_held_by_another_run_does_not_hold_the_result(self) -> None:
        """A descriptor handed from run to run through a socket in the jar's files."""
        jar = self.open({"timeout": "20s"})
        holder = self.join(
            jar,
            self.py(
                "import socket, array, time\n"
                "s = socket.socket(socket.AF_UNIX); s.bind('door'); s.listen(1); c, _ = s.accept()\n"
                "c.recvmsg(1, socket.CMSG_SPACE(4)); open('held', 'w').close(); time.sleep(300)"
            ),
            {"timeout": None},
        )
        self.assertEqual(holder.read().kind, STARTED)
        giver = (
            "import socket, array, time, os\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "while True:\n"
            "    try: s.connect('door'); break\n"
            "    except FileNotFoundError: time.sleep(0.01)\n"
            "    except ConnectionRefusedError: time.sleep(0.01)\n"
            "    except PermissionError: os._exit(9)\n"
            "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [1]))])\n"
            "while not os.path.exists('held'): time.sleep(0.01)\n"
            "os.write(1, b'given')"
        )
        outcome = self.run_in(jar, self.py(giver))
        # Where nobody can connect, nobody can have a name to connect to either, and the holder ends by itself.
        has_names = outcome.result["exit_code"] != 9
        if has_names:
            self.assertEqual(outcome.stdout, b"given", outcome.result)
        holder.send(CANCEL, wire.number(9)).send(CANCEL, wire.number(9))
        self.assertIn(wire.finish(holder).result["outcome"], ("cancelled",) if has_names else ("cancelled", "exited"))
        self.check_well(jar)

    def py(self, text: str) -> List[str]:
        """A Python program with the marker in its arguments."""
        return [PYTHON, "-c", text, self.marker]


@on_ways(NAMESPACE)
class AgainstTheJar(KeptCase):
    """Only where a pid namespace holds what a failing test would do."""

    def test_killing_everybody_ends_only_oneself(self) -> None:
        if host.landlock_abi() < 6:
            raise unittest.SkipTest("needs:landlock6 signals are scoped from ABI 6 on")
        jar = self.open({"timeout": "20s"})
        other = self.lasting(jar)
        for words in ("kill -9 -1", "kill -STOP -1", "kill -9 $PPID", "kill -STOP $PPID", "kill -9 1"):
            with self.subTest(words=words):
                result = self.run_in(jar, self.script(f"{words}; exit 7")).result
                self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 7), result)
        other.send(CANCEL, wire.number(9)).send(CANCEL, wire.number(9))
        self.assertEqual(wire.finish(other).result["outcome"], "cancelled")
        self.check_well(jar)

    def test_a_jar_full_of_processes_refuses_a_run_and_recovers(self) -> None:
        jar = self.open({"pids": 20, "timeout": "30s"})
        bomb = self.join(jar, self.script("while :; do sleep 300 & done 2>/dev/null"), {"timeout": None})
        self.assertEqual(bomb.read().kind, STARTED)
        for _ in range(3):
            self.assertEqual(self.run_in(jar, self.script("true")).kinds[-1], RESULT)
        bomb.send(CANCEL, wire.number(9)).send(CANCEL, wire.number(9))
        wire.finish(bomb)
        self.check_well(jar)


if __name__ == "__main__":
    unittest.main()
