# SPDX-License-Identifier: Apache-2.0
"""What one process can do to another of the same user, tried on the engine, the jar's first process and strangers.

Layers: on the namespace rung the pid namespace (ESRCH, ENOENT) towards the host and process 1's not being dumpable (EPERM,
EACCES); on the landlock rung Landlock's scopes and its rule for tracing (EPERM, EACCES), and the filter (EPERM).
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Dict, List, Set

from adversarial_support import AttackCase, number
from harness import census, runner
from harness.bounds import LASTING
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE, finish, read_until

TRACING = ("attach", "seize", "vm_read", "vm_write", "pidfd_getfd", "robust_list")
# The filter refuses these before the kernel looks for the process.
FILTERED = ("kcmp", "migrate_pages")
FILES = ("mem", "environ", "fd", "cwd", "root", "exe", "exe_write", "ns", "oom_score_adj", "comm", "clear_refs")
SIGNALS = ("kill0", "kill", "kill_group", "tkill", "tgkill", "sigqueue", "tgsigqueue", "pidfd_signal", "proc_signal")
SETTINGS = (
    "prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr setpriority setpriority_group ioprio_set"
).split()


class ProcessCase(AttackCase):
    def setUp(self) -> None:
        super().setUp()
        self.victim = self.background("sleep", "120")

    def table(self, text: str) -> Dict[int, Dict[str, str]]:
        """The answers by process and call."""
        found: Dict[int, Dict[str, str]] = {}
        for line in text.splitlines():
            call, pid, answer = line.split()
            found.setdefault(int(pid), {})[call] = answer
        return found

    def expect(self, answers: Dict[str, str], calls: "tuple[str, ...] | List[str]", *allowed: str) -> None:
        good = {str(number(name)) for name in allowed}
        wrong = {call: answers[call] for call in calls if answers[call] not in good}
        self.assertEqual(wrong, {}, f"expected {allowed}")

    def state(self, pid: int) -> object:
        """What an attack on settings would change."""
        status = Path(f"/proc/{pid}/status").read_text()
        return (
            resource.prlimit(pid, resource.RLIMIT_CORE),
            os.getpriority(os.PRIO_PROCESS, pid),
            os.sched_getaffinity(pid),
            os.sched_getscheduler(pid),
            [line for line in status.splitlines() if line.startswith(("TracerPid", "SigPnd", "ShdPnd"))],
        )


@on_ways(NAMESPACE)
class InNamespaces(ProcessCase):
    def test_the_host_s_processes_do_not_exist(self) -> None:
        tool = self.tool("attack_process")
        before = self.state(self.victim.pid)
        words = [str(pid) for pid in (self.victim.pid, os.getpid(), os.getppid()) if pid > 40]
        result = self.json("--timeout", "20s", "--", tool, *words)
        for pid, answers in self.table(result["stdout"]).items():
            with self.subTest(pid=pid):
                self.expect(answers, [*SIGNALS, *TRACING, *FILES, *SETTINGS], "ESRCH", "ENOENT")
                self.expect(answers, ("timerslack_ns", "process_madvise", "sigio"), "ESRCH", "ENOENT")
                self.expect(answers, FILTERED, "ENOSYS", "EPERM")
        self.assertEqual(self.state(self.victim.pid), before)

    def test_process_one_gives_nothing_away(self) -> None:
        """It may be signalled, which it ignores; it cannot be traced, read or written."""
        result = self.json("--timeout", "20s", "--", self.tool("attack_process"), "1")
        answers = self.table(result["stdout"])[1]
        self.expect(answers, TRACING, "EPERM")
        self.expect(answers, FILTERED, "ENOSYS", "EPERM")
        self.expect(answers, FILES, "EACCES")
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))

    def test_process_one_shows_no_command_line_and_no_environment(self) -> None:
        env = {**self.env, "MY_TOKEN": self.SECRET}
        script = "cat /proc/1/cmdline /proc/1/environ /proc/1/stack /proc/1/comm 2>/dev/null; cat /proc/*/environ | tr '\\0' '\\n'"
        result = self.json(*self.sh(script), env=env)
        self.assertNotIn(self.SECRET, result["stdout"])
        self.assertNotIn(self.SECRET, self.json("--redact", self.SECRET, "--", "cat", "/proc/1/cmdline")["stdout"])

    def test_no_process_of_ours_shows_its_arguments(self) -> None:
        """Everybody on the host may read a command line; only the command's own is the command's."""
        words = ["--env", f"X={self.SECRET}", "--redact", self.SECRET, *self.sh("echo up; read x")]
        process = self.start(*words, stdin=subprocess.PIPE)
        assert process.stdout
        read_until(process.stdout, b"up\n")
        seen = {pid: census.command_line(pid) for pid in [process.pid, *census.descendants(process.pid)]}
        self.assertEqual(finish(process, b"\n").status, 0)
        self.assertIn("run", seen[process.pid])
        self.assertFalse([line for line in seen.values() if self.SECRET in line], seen)

    def test_only_the_jar_is_seen(self) -> None:
        result = self.json(*self.sh("ls -d /proc/[0-9]* | wc -l; cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
        self.assertLessEqual(int(result["stdout"].split()[0]), 4)
        self.assertNotIn("unittest", result["stdout"])

    def test_a_starved_first_process_still_ends_the_jar(self) -> None:
        """Limits, priority, affinity of process 1 can be changed by its own uid: the end must not depend on them."""
        tool = self.tool("attack_end")
        args = ["--timeout", "1s", "--grace", "300ms", "--", tool, "starve", "60", LASTING, self.marker]
        _, result = self.status(*args)
        self.assertEqual(result["outcome"], "timeout")


@on_ways(LANDLOCK)
class WithoutNamespaces(ProcessCase):
    def test_engine_keeper_and_strangers_are_out_of_reach(self) -> None:
        tool = self.tool("attack_process")
        before = self.state(self.victim.pid)
        script = f"""
keeper = os.getppid()
engine = int([line.split()[1] for line in open(f"/proc/{{keeper}}/status") if line.startswith("PPid")][0])
os.execv({tool!r}, [{tool!r}, str(keeper), str(engine), {str(self.victim.pid)!r}, {str(os.getpid())!r}])
"""
        result = self.json("--timeout", "20s", *self.python(script))
        table = self.table(result["stdout"])
        self.assertEqual(len(table), 4, result)
        strangers = (self.victim.pid, os.getpid())
        for pid, answers in table.items():
            with self.subTest(pid=pid):
                # Before Landlock ABI 6 the filter protects engine and keeper alone; the result says so.
                if pid not in strangers or "signals" not in self.missing(result):
                    self.expect(answers, SIGNALS, "EPERM", "ESRCH", "ENOSYS")
                    self.expect(answers, ("kill", "tkill", "tgkill", "sigqueue", "tgsigqueue"), "EPERM")
                self.expect(answers, TRACING, "EPERM")
                self.expect(answers, FILTERED, "ENOSYS", "EPERM")
                self.expect(answers, (*FILES, "timerslack_ns"), "EACCES")
                self.expect(answers, SETTINGS, "EPERM")
                self.expect(answers, ("process_madvise",), "EPERM", "EACCES")
        self.assertEqual(self.state(self.victim.pid), before)
        self.assertIn("process_names", self.missing(result))

    def test_a_signal_by_way_of_a_descriptor_does_not_arrive(self) -> None:
        """Layer: Landlock's scope, at the moment of sending. SIGUSR1 would end the victim."""
        script = """
a, b = socket.socketpair()
fcntl.fcntl(a, fcntl.F_SETOWN, int(sys.argv[1]))
fcntl.fcntl(a, 10, signal.SIGUSR1)
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
b.send(b"x")
time.sleep(0.2)
"""
        self.json(*self.python(script, str(self.victim.pid)))
        self.assertIsNone(self.victim.poll())

    def test_environments_cannot_be_read(self) -> None:
        secret = subprocess.Popen(["sleep", "60"], env={"MY_TOKEN": self.SECRET, "PATH": self.env["PATH"]})
        self.addCleanup(self._stop, secret)
        env = {**self.env, "OTHER_TOKEN": self.SECRET}
        script = f"cat /proc/{secret.pid}/environ /proc/*/environ 2>/dev/null; true"
        result = self.json(*self.sh(script), env=env)
        self.assertNotIn(self.SECRET, result["stdout"])

    def test_no_shared_memory_queues_or_semaphores_of_the_host(self) -> None:
        script = """
numbers = {"x86_64": dict(shmget=29, shmat=30, semget=64, msgget=68, mq_open=240)}.get(os.uname().machine, {})
for name, value in numbers.items():
    attempt(name, lambda: call(value, 0, 0, 0))
"""
        answers = self.answers(self.json(*self.python(script))["stdout"])
        self.assertTrue(set(answers.values()) <= {"ENOSYS"}, answers)


@on_ways(NAMESPACE, LANDLOCK)
class Everybody(ProcessCase):
    def test_a_flood_of_signals_stays_inside(self) -> None:
        """kill(0), kill(-1), the parent, its group, process 1: nobody outside gets any."""
        mine: Set[int] = set()
        old = {}
        for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM, signal.SIGURG, signal.SIGCONT):
            old[sig] = signal.signal(sig, lambda number, frame: mine.add(number))
        self.addCleanup(lambda: [signal.signal(sig, handler) for sig, handler in old.items()])
        # In our process group on purpose: a jar that stayed in it could reach us with kill(0).
        result = self.json("--", self.tool("attack_end"), "flood", timeout=20)
        self.assertEqual((result["outcome"], result["exit_code"], result["stdout"]), ("exited", 6, "flooded\n"))
        self.assertEqual(mine, set())
        self.assertIsNone(self.victim.poll())

    def test_the_session_and_group_are_the_jar_s_own(self) -> None:
        script = "print(os.getpgrp() != int(sys.argv[1]), os.getsid(0) != int(sys.argv[2]), os.getpgid(0) == os.getsid(0))"
        result = self.json(*self.python(script, str(os.getpgrp()), str(os.getsid(0))))
        self.assertEqual(result["stdout"].split(), ["True", "True", "True"])

    def test_the_priority_of_everybody_is_not_changed(self) -> None:
        before = os.getpriority(os.PRIO_PROCESS, self.victim.pid), os.getpriority(os.PRIO_PROCESS, 0)
        script = """
attempt("user", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt("group", lambda: os.setpriority(os.PRIO_PGRP, 0, 19))
"""
        self.json(*self.python(script))
        self.assertEqual((os.getpriority(os.PRIO_PROCESS, self.victim.pid), os.getpriority(os.PRIO_PROCESS, 0)), before)

    def test_set_user_id_programs_give_nothing(self) -> None:
        """Layers: no new privileges, nosuid mounts, no capabilities."""
        script = """
status = open("/proc/self/status").read()
print([line.split()[1] for line in status.splitlines() if line.startswith(("NoNewPrivs", "CapEff", "CapPrm", "CapBnd", "CapAmb"))])
import glob, stat
for path in ("/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd", "/usr/bin/sudo", "/usr/bin/newgrp"):
    if os.path.exists(path):
        print(path, os.statvfs(path).f_flag & 2)
"""
        result = self.json(*self.python(script))
        lines = result["stdout"].splitlines()
        capabilities = lines[0]
        self.assertIn("'1'", capabilities)
        self.assertEqual(capabilities.count("'0000000000000000'") >= 3, True, capabilities)
        if self.way is NAMESPACE:
            self.assertEqual(capabilities.count("'0000000000000000'"), 4, capabilities)
            for line in lines[1:]:
                self.assertTrue(line.endswith(" 2"), line)

    def test_no_set_user_id_file_can_be_made(self) -> None:
        """Layer: the filter for chmod; the kernel takes the bit away from a file that was made with it."""
        script = """
open("program", "w").write("x")
attempt("chmod", lambda: os.chmod("program", 0o4755))
def by_descriptor():
    fd = os.open("program", os.O_RDWR); os.fchmod(fd, 0o4755)
attempt("fchmod", by_descriptor)
attempt("fchmodat2", lambda: call(452, -100, b"program", 0o4755, 0))
fd = os.open("made", os.O_CREAT | os.O_RDWR, 0o4755)
try:
    os.posix_fallocate(fd, 0, 4096)
    import mmap
    mmap.mmap(fd, 4096)[:4] = b"evil"
except OSError:
    pass
fd = os.open("written", os.O_CREAT | os.O_RDWR, 0o4755)
os.write(fd, b"evil")
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4755)
os.posix_fallocate(fd, 0, 4096)
attempt("link", lambda: os.link(f"/proc/self/fd/{fd}", "linked", follow_symlinks=True))
"""
        result = self.json(*self.python(script))
        self.assertEqual(self.answers(result["stdout"]).get("chmod"), "EPERM", result["stderr"])
        for path in self.work.rglob("*"):
            self.assertFalse(path.is_file() and path.stat().st_mode & 0o4000 and path.stat().st_size, path)

    def test_the_engine_lives_while_it_is_attacked(self) -> None:
        process, status = self.start_status("--timeout", "10s", "--", self.tool("attack_end"), "flood")
        done = runner.finish(process)
        result = runner.check_answer(done, status.read())
        self.assertEqual(result["exit_code"], 6)


if __name__ == "__main__":
    unittest.main()
