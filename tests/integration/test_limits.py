# SPDX-License-Identifier: Apache-2.0
"""Limits that hold for the whole tree, and the account that names the one that was reached.

Each limit is tried with each back end that this host and user have: the best one there is (a cgroup for root), and the
meter, with cgroups taken away. No test asserts how fast something is; what must end is bounded against for ever.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import socket
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

from harness.bounds import BOUND, PROCESSOR_SLOWNESS, SLOWNESS
from harness.case import JarCase, on_ways
from harness.result import Result, limit_of
from harness.runner import Way, send

MIB = 1 << 20
BEST = Way("best", (), ("--rung", "namespace"), "namespace", ("userns",))
METER = Way("meter", ("cgroup",), ("--rung", "namespace"), "namespace", ("userns",))
BARE = Way("bare", ("cgroup", "perf"), ("--rung", "namespace"), "namespace", ("userns",))
LANDLOCK = Way("landlock", ("cgroup", "userns"), ("--rung", "landlock"), "landlock", ("landlock",))
CGROUPS = ("cgroup1", "cgroup2")


class LimitCase(JarCase):
    """What the tests of all limits share."""

    def ended(self, result: Result, outcome: str, name: str) -> Dict[str, Any]:
        """The run was ended by a limit, and the account says so; the entry of limits_hit."""
        self.assertEqual((result["outcome"], result["killed"]), (outcome, True), result)
        hit = limit_of(result, name)
        assert hit is not None, result
        self.assertEqual(hit["enforced_by"], result["enforced"][name].split("+")[-1], result)
        self.assertGreaterEqual(hit["peak"], hit["limit"] - MIB, result)
        self.assertNotEqual(hit["evidence"], "")
        return hit

    def untouched(self, result: Result) -> None:
        """The command ended by itself and no limit was reached."""
        self.assertEqual((result["outcome"], result["exit_code"], result["limits_hit"]), ("exited", 0, []), result)

    def backend(self, result: Result, key: str) -> str:
        """What held a limit; it must be what this way is about."""
        word = result["enforced"][key]
        if self.way is not BEST:
            self.assertNotIn(word, CGROUPS, result)
        elif os.geteuid() == 0:
            self.assertIn(word, CGROUPS, result)
        return str(word)


@on_ways(BEST, METER, LANDLOCK)
class Memory(LimitCase):
    def memory(self, limit: str, *words: str, **options: Any) -> Result:
        result = self.json("--memory", limit, "--", self.tool("limit_memory"), *words, **options)
        if result["outcome"] != "failed":
            self.backend(result, "memory")
            self.assertEqual(result["usage"]["memory_by"], result["enforced"]["memory"])
        return result

    def test_one_process(self) -> None:
        result = self.memory("64M", "say:begun", f"touch:{2048 * MIB}", "say:done")
        hit = self.ended(result, "memory", "memory")
        self.assertEqual((hit["limit"], result["stdout"]), (64 * MIB, "begun\n"))
        self.assertEqual(result["signal"], "SIGKILL")

    def test_a_tree_of_small_processes(self) -> None:
        result = self.memory("64M", f"tree:40:{4 * MIB}", "wait:10000", "say:done")
        self.ended(result, "memory", "memory")
        self.assertNotIn("done", result["stdout"])

    def test_just_below_it_finishes(self) -> None:
        self.untouched(self.memory("64M", f"touch:{52 * MIB}", "wait:200", "say:done"))

    def test_a_tree_just_below_it_finishes(self) -> None:
        result = self.memory("64M", f"tree:10:{4 * MIB}", "wait:200")
        self.untouched(result)
        self.assertGreaterEqual(result["usage"]["peak_memory_bytes"], 34 * MIB)  # the kernel counts in batches

    def test_shared_pages_count_once(self) -> None:
        self.untouched(self.memory("64M", f"shared:20:{24 * MIB}", "wait:300"))

    def test_copies_of_shared_pages_count_each(self) -> None:
        self.ended(self.memory("64M", f"copies:20:{24 * MIB}", "wait:1000000"), "memory", "memory")

    def test_what_was_given_back_does_not_count(self) -> None:
        self.untouched(self.memory("64M", *[f"drop:{40 * MIB}"] * 8))

    def test_slow_growth(self) -> None:
        self.ended(self.memory("32M", f"slow:{500 * MIB}"), "memory", "memory")

    def test_an_allocation_that_failed_and_was_handled(self) -> None:
        result = self.memory("64M", f"try:{1 << 50}", "say:went on")
        self.untouched(result)
        self.assertEqual(result["stdout"], "refused\nwent on\n")

    def test_mapped_memory_files(self) -> None:
        self.ended(self.memory("64M", f"memfdmap:{500 * MIB}", "wait:1000000"), "memory", "memory")

    def test_unmapped_memory_files(self) -> None:
        self.counted(f"memfd:{200 * MIB}")

    def test_a_mapped_memory_file_counts_once(self) -> None:
        self.untouched(self.memory("64M", f"memfdmap:{40 * MIB}", "wait:300"))

    def test_private_files(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("private places are directories on the host here")
        words = (f"file:/tmp/big:{100 * MIB}", "wait:1000000")
        result = self.json("--memory", "64M", "--disk", "500M", "--", self.tool("limit_memory"), *words)
        self.ended(result, "memory", "memory")

    def test_a_mapped_private_file_counts_once(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("private places are directories on the host here")
        self.untouched(self.memory("64M", f"map:/tmp/big:{40 * MIB}", "wait:300"))

    def held(self, *words: str) -> None:
        """What is used in a way that shows in no process ends the run all the same."""
        self.ended(self.memory("64M", *words, "wait:20000", "say:done"), "memory", "memory")

    def counted(self, *words: str) -> None:
        """A cgroup counts what shows in no process. The meter does not, and `missing` names it."""
        result = self.memory("64M", "say:hello")
        if result["enforced"]["memory"] in CGROUPS:
            self.held(*words)
        else:
            self.assertIn("memory", [remark["name"] for remark in result["missing"]])

    def test_shared_memory_out_of_the_page_tables(self) -> None:
        self.counted(f"dontneed:4:{100 * MIB}")
        self.counted(f"dontneed:300:{MIB}")

    def test_shared_memory_of_which_the_last_page_is_left(self) -> None:
        self.counted(f"cut:300:{MIB}")

    def test_shared_memory_that_only_ended_processes_touched(self) -> None:
        self.counted(f"ended:300:{MIB}")

    def test_shared_memory_just_below_finishes(self) -> None:
        self.untouched(self.memory("64M", f"dontneed:40:{MIB}", "wait:300"))
        self.untouched(self.memory("64M", f"ended:2:{20 * MIB}", "wait:300"))

    def test_memory_files_that_are_only_mapped(self) -> None:
        self.counted(f"closed:300:{MIB}")

    def test_memory_files_in_a_socket(self) -> None:
        self.counted(f"flight:100:{4 * MIB}")

    def test_memory_files_that_are_gone_do_not_count(self) -> None:
        self.untouched(self.memory("64M", *[f"gone:{40 * MIB}", "wait:50"] * 6))

    def test_many_memory_files(self) -> None:
        self.counted(f"files:200:{2 * MIB}")

    def test_page_tables(self) -> None:
        self.counted(f"tables:{400 * MIB}")

    def test_memory_behind_a_first_thread_that_has_ended(self) -> None:
        """By the number of such a process the kernel shows no memory; by those of its other threads it does."""
        script = (
            "import ctypes, os, threading, time\n"
            "def hold():\n"
            "    kept = [bytearray(b'x' * 1048576) for i in range(400)]; time.sleep(20); print('done', flush=True); os._exit(0)\n"
            "threading.Thread(target=hold).start()\n"
            "ctypes.CDLL(None).syscall(93 if os.uname().machine == 'aarch64' else 60, 0)\n"
        )
        result = self.json("--memory", "64M", "--", "/usr/bin/python3", "-I", "-c", script)
        self.ended(result, "memory", "memory")
        self.assertNotIn("done", result["stdout"])

    def test_secret_memory_is_refused(self) -> None:
        result = self.memory("64M", f"secret:{400 * MIB}")
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", "memfd_secret: Function not implemented\n"))

    def test_pages_in_pipes(self) -> None:
        result = self.memory("64M", f"splice:{400 * MIB}", "wait:500")
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", "vmsplice: Function not implemented\n"))

    def test_a_process_that_forbids_looking_at_it(self) -> None:
        self.held("hide", f"touch:{400 * MIB}")

    def test_a_program_that_may_not_be_read(self) -> None:
        result = self.memory("64M", f"hidden:4:{100 * MIB}")
        self.assertEqual((result["outcome"], result["killed"]), ("memory", True), result)
        self.assertIsNotNone(limit_of(result, "memory"))

    def test_the_first_process_stays_closed(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("the first process is outside")
        result = self.json("--memory", "64M", *self.sh("cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/maps"))
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", ""), result)
        self.assertEqual(result["stderr"].count("ermission denied"), 3, result)

    def test_what_the_meter_does_not_see_is_named(self) -> None:
        result = self.memory("64M", "say:hello")
        why = " ".join(remark["why"] for remark in result["missing"] if remark["name"] == "memory")
        if result["enforced"]["memory"] not in CGROUPS:
            for word in ("sockets and pipes", "memory files (memfd)", "page tables", "swap", "tmpfs"):
                self.assertIn(word, why)

    def test_what_system_v_keeps(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("System V's objects are the host's here, and refused")
        self.held(f"segments:300:{MIB}")
        self.held("queues:20000")
        self.held("semaphores:300")

    def test_system_v_shared_memory(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("System V shared memory is the host's here")
        self.ended(self.memory("64M", f"shm:{100 * MIB}", "wait:1000000"), "memory", "memory")

    def test_a_child_that_is_ended_for_memory_ends_the_run(self) -> None:
        hog = self.tool("limit_memory")
        script = f'"{hog}" touch:{500 * MIB}; echo survived; sleep 1000'
        result = self.json("--memory", "64M", *self.sh(script))
        self.ended(result, "memory", "memory")

    def test_a_main_process_that_leaves_after_its_child_was_ended(self) -> None:
        hog = self.tool("limit_memory")
        result = self.json("--memory", "64M", *self.sh(f'"{hog}" touch:{500 * MIB}; exit 0'))
        self.ended(result, "memory", "memory")

    def test_it_wins_over_a_later_timeout(self) -> None:
        args = ("--memory", "64M", "--timeout", "20s", "--", self.tool("limit_memory"), f"touch:{500 * MIB}")
        result = self.json(*args)
        self.ended(result, "memory", "memory")
        self.assertIsNone(limit_of(result, "timeout"))

    def test_too_little_to_start_anything(self) -> None:
        result = self.json("--memory", "1M", "--", "true", *["x" * 100000] * 12)
        if result["outcome"] == "failed":
            self.assertEqual(result["error"]["stage"], "limits")

    def test_an_engine_with_few_descriptors(self) -> None:
        def few() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

        words = ("--memory", "64M", "--fds", "40", "--", self.tool("limit_memory"), f"tree:60:{2 * MIB}", "wait:1000000")
        self.ended(self.json(*words, preexec_fn=few), "memory", "memory")

    def test_descriptors_that_the_user_has_under_way(self) -> None:
        """The kernel passes no descriptor while more than the sender's soft limit are under way for its user."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        for ours, theirs in pairs:
            self.addCleanup(ours.close)
            self.addCleanup(theirs.close)
            socket.send_fds(ours, [b"x"], [0] * 200)

        def few() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

        result = self.json("--memory", "64M", "--", self.tool("limit_memory"), "wait:1", "say:done", preexec_fn=few)
        self.untouched(result)

    def test_events(self) -> None:
        events = self.events("--memory", "64M", "--", self.tool("limit_memory"), f"touch:{500 * MIB}")
        limits = [event["limit"]["name"] for event in events if event["event"] == "limit"]
        self.assertEqual(limits, ["memory"])


@on_ways(BEST, METER, BARE, LANDLOCK)
class CpuTime(LimitCase):
    def cpu(self, limit: str, *words: str) -> Result:
        result = self.json("--cpu-time", limit, "--", self.tool("limit_cpu"), *words, timeout=60)
        self.backend(result, "cpu_time")
        return result

    def over(self, limit_ms: int, *words: str) -> None:
        result = self.cpu(f"{limit_ms}ms", "say:begun", *words, "say:done")
        hit = self.ended(result, "cpu", "cpu_time")
        self.assertEqual((hit["limit"], result["stdout"]), (limit_ms, "begun\n"))
        self.assertLess(hit["peak"], limit_ms + 2000 * SLOWNESS)

    # A slow processor needs much of a small limit to start the program.
    def test_one_process(self) -> None:
        self.over(int(250 * PROCESSOR_SLOWNESS), "self:0")

    def test_time_in_the_kernel(self) -> None:
        self.over(int(250 * PROCESSOR_SLOWNESS), "kernel:0")

    def test_a_tree_of_small_processes(self) -> None:
        self.over(300, "tree:20:100")

    def test_processes_that_have_ended(self) -> None:
        self.over(250, "one:200:25")

    def test_threads(self) -> None:
        self.over(int(250 * PROCESSOR_SLOWNESS), "thread:4:0")

    def test_orphans_in_sessions_of_their_own(self) -> None:
        self.over(250, "orphan:20:50")

    def test_children_that_nobody_waits_for(self) -> None:
        self.over(250, "ignored:400:60")

    def test_sleeping_costs_nothing(self) -> None:
        result = self.json("--cpu-time", f"{500 * PROCESSOR_SLOWNESS:.0f}ms", "--", "sleep", f"{PROCESSOR_SLOWNESS:.0f}")
        self.untouched(result)

    def test_just_below_it_finishes(self) -> None:
        self.untouched(self.cpu(f"{600 + 400 * PROCESSOR_SLOWNESS:.0f}ms", "self:200", "tree:4:100"))

    def test_making_the_jar_is_not_the_commands(self) -> None:
        self.untouched(self.json("--cpu-time", f"{50 * PROCESSOR_SLOWNESS:.0f}ms", "--", "true"))


@on_ways(BEST, METER)
class Pids(LimitCase):
    def held_by(self, result: Result) -> str:
        """What held it; without a cgroup that is the user namespace's count."""
        word = self.backend(result, "pids")
        if word not in CGROUPS:
            self.assertEqual(word, "rlimit", result)
        return word

    def check_refusal(self, result: Result, limit: int) -> None:
        """The refused fork is listed, unless an rlimit refused it, which leaves no trace."""
        word = self.held_by(result)
        hit = limit_of(result, "pids")
        if word == "rlimit":
            self.assertIsNone(hit, result)
            return
        assert hit is not None, result
        self.assertEqual((hit["limit"], hit["peak"], hit["enforced_by"]), (limit, limit, word))
        if word in CGROUPS:
            self.assertEqual(result["usage"]["peak_processes"], limit)

    def test_refused_and_survived(self) -> None:
        for word, name in (("fork", "forks"), ("thread", "threads")):
            result = self.json("--pids", "10", "--", self.tool("limit_count"), f"{word}:50", "say:went on")
            self.assertEqual((result["outcome"], result["stdout"]), ("exited", f"{name} 9\nwent on\n"), result)
            self.check_refusal(result, 10)

    def test_a_tree_of_small_processes(self) -> None:
        """No process has more than one child of its own: only together are they too many."""
        script = '[ "$1" -eq 0 ] || sh -c "$0" "$0" $(($1 - 1)); exit $?'
        result = self.json("--pids", "10", "--", "/bin/sh", "-c", script, script, "20")
        self.assertEqual((result["outcome"], result["exit_code"] == 0), ("exited", False), result)
        self.check_refusal(result, 10)

    def test_just_below_it_finishes(self) -> None:
        result = self.json("--pids", "10", "--", self.tool("limit_count"), "fork:9")
        self.assertEqual((result["outcome"], result["stdout"], result["limits_hit"]), ("exited", "forks 9\n", []))

    def test_processes_that_ended_do_not_count(self) -> None:
        script = "i=0; while [ $i -lt 60 ]; do /bin/true || exit 1; i=$((i + 1)); done"
        self.untouched(self.json("--pids", "4", *self.sh(script)))

    def test_one_process_alone(self) -> None:
        result = self.json("--pids", "1", "--", self.tool("limit_count"), "fork:3")
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", "forks 0\n"))

    def test_making_the_jar_is_no_limit_reached(self) -> None:
        result = self.json("--pids", "1", "--", "true")
        self.assertEqual((result["outcome"], result["limits_hit"]), ("exited", []), result)

    def test_a_fork_bomb(self) -> None:
        args = ("--pids", "50", "--timeout", "500ms", "--grace", "0", "--", self.tool("limit_count"), "bomb")
        result = self.json(*args)
        self.assertEqual(result["outcome"], "timeout")

    def test_a_fork_bomb_of_the_default_size(self) -> None:
        result = self.json("--timeout", "500ms", "--grace", "100ms", "--", self.tool("limit_count"), "bomb")
        self.assertEqual(result["outcome"], "timeout")

    def test_a_fork_bomb_under_every_limit(self) -> None:
        args = ("--memory", "256M", "--cpu-time", "500ms", "--disk", "10M", "--timeout", f"{20 * SLOWNESS:.0f}s", "--grace", "0")
        result = self.json(*args, "--pids", "200", "--", self.tool("limit_count"), "bomb")
        self.assertIn(result["outcome"], ("cpu", "memory"))


@on_ways(LANDLOCK)
class MeteredPids(LimitCase):
    """Where neither a cgroup nor a user namespace counts: what has more is killed, and there is no outcome for that."""

    def killed(self, result: Result, limit: int) -> None:
        hit = limit_of(result, "pids")
        assert hit is not None, result
        self.assertEqual((result["outcome"], result["signal"], result["killed"]), ("signaled", "SIGKILL", False), result)
        self.assertEqual((hit["limit"], hit["enforced_by"]), (limit, "meter"), result)
        self.assertGreater(hit["peak"], limit)
        self.assertIn("killed", hit["evidence"])

    def test_more_than_may_be_are_killed(self) -> None:
        for word in ("fork:300", "thread:1500"):
            with self.subTest(word=word):
                result = self.json("--pids", "64", "--", self.tool("limit_count"), word, "wait:60000")
                self.killed(result, 64)

    def test_a_fork_bomb(self) -> None:
        result = self.json("--pids", "50", "--timeout", "20s", "--", self.tool("limit_count"), "bomb")
        self.killed(result, 50)

    def test_just_below_it_finishes(self) -> None:
        result = self.json("--pids", "10", "--", self.tool("limit_count"), "fork:9", "wait:300")
        self.assertEqual((result["outcome"], result["stdout"], result["limits_hit"]), ("exited", "forks 9\n", []))
        self.assertEqual(result["usage"]["peak_processes"], 10)

    def test_the_default_is_held_and_the_overshoot_said(self) -> None:
        result = self.json("--", "true")
        self.assertEqual((result["outcome"], result["enforced"]["pids"]), ("exited", "meter"))
        self.assertIn("pids", [remark["name"] for remark in result["missing"]])


@on_ways(BEST, METER, LANDLOCK)
class Disk(LimitCase):
    def stored(self) -> int:
        """Bytes in the workdir, the tools left out."""
        return sum(path.stat().st_size for path in self.work.rglob("*") if path.is_file() and "tools" not in path.parts)

    def setUp(self) -> None:
        super().setUp()
        self.count = self.tool("limit_count")

    def test_one_writer_in_a_host_directory(self) -> None:
        result = self.json("--disk", "20M", "--", self.count, f"write:big:{4096 * MIB}", "say:done")
        hit = self.ended(result, "disk", "disk")
        self.assertEqual((hit["limit"], result["stdout"]), (20 * MIB, ""))
        self.assertLess(self.stored(), 2048 * MIB)

    def test_a_tree_of_small_writers(self) -> None:
        result = self.json("--disk", "20M", "--", self.count, f"many:small:2000:{MIB}")
        self.ended(result, "disk", "disk")

    def test_just_below_it_finishes(self) -> None:
        result = self.json("--disk", "20M", "--", self.count, f"write:big:{8 * MIB}", f"many:small:8:{MIB}", "wait:300")
        self.assertEqual((result["outcome"], result["limits_hit"]), ("exited", []), result)

    def test_writers_that_nobody_waits_for(self) -> None:
        result = self.json("--disk", "20M", "--", self.count, f"lost:small:40:{16 * MIB}", "wait:500")
        self.ended(result, "disk", "disk")

    def test_a_private_place_is_exact(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("private places are directories on the host here")
        words = (self.count, f"write:/tmp/big:{64 * MIB}", "say:went on", "wait:300")
        result = self.json("-C", "none", "--disk", "4M", "--ro", str(self.work), "--", *words)
        self.assertEqual(result["outcome"], "exited", result)
        wrote, why = result["stdout"].split("\n")[0].split()[1:]
        self.assertEqual(why, "ENOSPC")
        self.assertLessEqual(int(wrote), 4 * MIB)
        self.assertGreater(int(wrote), 4 * MIB - 65536)
        hit = limit_of(result, "disk")
        assert hit is not None, result
        self.assertEqual((hit["enforced_by"], result["enforced"]["disk"]), ("tmpfs", "tmpfs"))

    def test_space_cannot_be_had_without_writing(self) -> None:
        result = self.json("--disk", "20M", "--", "fallocate", "-l", "100M", "reserved")
        self.assertEqual((result["outcome"], self.stored() < 20 * MIB), ("exited", True), result)
        self.assertNotEqual(result["exit_code"], 0)

    def test_nor_by_the_older_names_of_that(self) -> None:
        result = self.json("--disk", "20M", "--", self.count, f"reserve:big:{200 * MIB}", "wait:100")
        self.assertEqual((result["outcome"], self.stored() < 20 * MIB), ("exited", True), result)
        blocks = sum(path.stat().st_blocks * 512 for path in self.work.glob("big*"))
        self.assertLess(blocks, 20 * MIB)
        self.assertEqual(result["stdout"].split(), ["EOPNOTSUPP"] * 7)

    def test_a_program_that_may_not_be_read(self) -> None:
        result = self.json("--disk", "20M", "--", self.count, f"hidden:big:{200 * MIB}", "wait:20000")
        self.assertEqual((result["outcome"], result["killed"]), ("disk", True), result)

    def test_a_directory_in_memory_is_refused(self) -> None:
        place = Path(tempfile.mkdtemp(prefix="bjt-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        self.assert_failed(self.jar("--disk", "20M", "-C", str(place), "--", "true"), "disk", str(place))

    def test_reading_and_pipes_cost_nothing(self) -> None:
        script = "head -c 50000000 /dev/zero | cat > /dev/null"
        self.untouched(self.json("--disk", "5M", *self.sh(script)))


@on_ways(BEST, METER, LANDLOCK)
class Shares(LimitCase):
    """What the kernel counts for a user on the whole host: a jar gets a part of it."""

    def inside(self, script: str, *options: str) -> str:
        result = self.json(*options, "--", "/usr/bin/python3", "-c", script)
        self.assertEqual(result["outcome"], "exited", result)
        return str(result["stdout"])

    def test_queued_signals(self) -> None:
        script = (
            "import ctypes, os, signal\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMAX])\n"
            "count = 0\n"
            "while count < 3000 and libc.sigqueue(os.getpid(), signal.SIGRTMAX, None) == 0: count += 1\n"
            "print(count)"
        )
        self.assertLessEqual(int(self.inside(script)), 1024)

    def test_pseudo_terminals(self) -> None:
        script = (
            "import os\n"
            "fds = []\n"
            "try:\n"
            "    while len(fds) < 400: fds.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))\n"
            "except OSError: pass\n"
            "print(len(fds))"
        )
        self.assertEqual(int(self.inside(script)), 0 if self.way is LANDLOCK else 128)

    def test_inotify(self) -> None:
        script = (
            "import ctypes\n"
            "libc = ctypes.CDLL(None)\n"
            "count = 0\n"
            "while count < 200 and libc.inotify_init1(0) >= 0: count += 1\n"
            "print(count, open('/proc/sys/fs/inotify/max_user_instances').read())"
        )
        if self.way is LANDLOCK:
            self.assertIn("user_limits", [remark["name"] for remark in self.json("--", "true")["missing"]])
            return
        count, everybodys = map(int, self.inside(script).split())
        if os.geteuid() != 0:  # root's jars are a user each
            self.assertLessEqual(count, max(everybodys // 4, 1))

    def test_watches(self) -> None:
        script = "print(open('/proc/sys/user/max_inotify_watches').read(), open('/proc/sys/fs/inotify/max_user_watches').read())"
        if self.way is LANDLOCK or os.geteuid() == 0:
            self.skipTest("nothing is shared, or nothing can be limited")
        own, everybodys = map(int, self.inside(script).split())
        self.assertLessEqual(own, max(everybodys // 4, 1))

    def test_message_queues(self) -> None:
        script = (
            "import ctypes\n"
            "libc = ctypes.CDLL(None)\n"
            "count = 0\n"
            "while count < 20 and libc.mq_open(b'/bjt%d' % count, 0o102, 0o600, None) >= 0: count += 1\n"
            "print(count)"
        )
        self.assertLessEqual(int(self.inside(script)), 3)

    def test_memory_that_is_pinned(self) -> None:
        """RLIMIT_MEMLOCK counts it for the user, but for that of mlock()."""
        script = (
            "import ctypes, socket\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "def tell(name, rc): print(name, 'ok' if rc >= 0 else ctypes.get_errno())\n"
            "segment = libc.shmget(0, 4096, 0o1600)\n"
            "tell('segment', segment)\n"
            "tell('locked', libc.shmctl(segment, 11, None))\n"
            "tell('huge', libc.shmget(0, 2 << 20, 0o5600))\n"
            "sock = socket.socketpair()[0]\n"
            "tell('zero copy', libc.setsockopt(sock.fileno(), 1, 60, ctypes.byref(ctypes.c_int(1)), 4))\n"
            "tell('mlock', libc.mlock(ctypes.create_string_buffer(4096), 4096))\n"
        )
        answers = dict(line.rsplit(" ", 1) for line in self.inside(script).splitlines())
        refused, absent = str(errno.EPERM), str(errno.ENOSYS)
        self.assertEqual(answers.pop("zero copy"), str(errno.ENOPROTOOPT), answers)
        expected = {"segment": absent, "locked": absent, "huge": absent} if self.way is LANDLOCK else {"segment": "ok", "locked": refused, "huge": refused}
        self.assertEqual(answers, {**expected, "mlock": "ok"})

    def test_rings_of_the_whole_host(self) -> None:
        script = "import ctypes, os\nctypes.CDLL(None, use_errno=True).syscall(206, 1, None)\nprint(ctypes.get_errno())"
        if os.uname().machine == "x86_64":
            self.assertEqual(int(self.inside(script)), errno.ENOSYS)


@on_ways(BEST, METER, LANDLOCK)
class PerProcess(LimitCase):
    def test_file_size(self) -> None:
        result = self.json("--file-size", "1M", "--", self.tool("limit_count"), f"write:big:{4 * MIB}")
        self.assertEqual((result["outcome"], result["signal"]), ("signaled", "SIGXFSZ"))
        hit = limit_of(result, "file_size")
        assert hit is not None, result
        self.assertEqual((hit["limit"], hit["peak"], hit["enforced_by"]), (MIB, None, "rlimit"))
        self.assertEqual((self.work / "big").stat().st_size, MIB)

    def test_file_size_handled(self) -> None:
        result = self.json("--file-size", "1M", "--", self.tool("limit_count"), "allow", f"write:big:{4 * MIB}")
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", f"wrote {MIB} EFBIG\n"))

    def test_descriptors(self) -> None:
        result = self.json("--fds", "20", "--", self.tool("limit_count"), "fd:100", "say:went on")
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", "fds 17\nwent on\n"))

    def test_the_fewest_descriptors_leave_room_for_the_walls(self) -> None:
        result = self.json("--fds", "4", "--ledger", "trace", *self.sh("ulimit -n; ulimit -Hn"))
        self.assertEqual((result["outcome"], result["stdout"]), ("exited", "4\n4\n"))


@on_ways(BEST, METER, LANDLOCK)
class NoLimit(LimitCase):
    """Ends that look like a limit and are none."""

    LIMITS = ("--memory", "256M", "--cpu-time", "100s")

    def check(self, script: str, outcome: str, **wanted: Any) -> None:
        result = self.json(*self.LIMITS, *self.sh(script))
        self.assertEqual((result["outcome"], result["killed"], result["limits_hit"]), (outcome, False, []), result)
        for key, value in wanted.items():
            self.assertEqual(result[key], value)

    def test_a_self_inflicted_sigkill(self) -> None:
        self.check("kill -KILL $$", "signaled", signal="SIGKILL")

    def test_exit_statuses_of_signals(self) -> None:
        for status in (137, 139, 124, 152):
            self.check(f"exit {status}", "exited", exit_code=status)

    def test_a_crash(self) -> None:
        self.check("kill -SEGV $$", "signaled", signal="SIGSEGV")

    def test_a_signal_of_another_limit(self) -> None:
        self.check("kill -XCPU $$", "signaled", signal="SIGXCPU")
        self.check("kill -XFSZ $$", "signaled", signal="SIGXFSZ")

    def test_what_the_command_says(self) -> None:
        self.check("echo MemoryError; echo Out of memory: Killed process >&2; exit 1", "exited", exit_code=1)

    def test_a_killed_child(self) -> None:
        self.check("sh -c 'kill -KILL $$'; exit 0", "exited", exit_code=0)


@on_ways(BEST, METER)
class Together(LimitCase):
    def test_the_strict_preset(self) -> None:
        result = self.json("--policy", "strict", "--", "/bin/sh", "-c", "echo hello; exit 3")
        self.assertEqual((result["outcome"], result["exit_code"], result["stdout"]), ("exited", 3, "hello\n"), result)
        for key in ("memory", "pids", "disk"):
            self.assertNotIn(result["enforced"][key], (None, "none"), result)

    def test_the_first_in_time_wins(self) -> None:
        words = ("self:1000",)
        args = ("--cpu-time", "300ms", "--timeout", "30s", "--memory", "256M", "--", self.tool("limit_cpu"), *words)
        result = self.json(*args)
        self.ended(result, "cpu", "cpu_time")
        self.assertEqual([hit["name"] for hit in result["limits_hit"]], ["cpu_time"])

    def test_a_refused_fork_is_listed_beside_the_cause(self) -> None:
        words = (self.tool("limit_count"), "fork:20", "wait:60000")
        result = self.json("--pids", "5", "--timeout", "500ms", "--grace", "0", "--", *words)
        self.assertEqual(result["outcome"], "timeout")
        names = {hit["name"] for hit in result["limits_hit"]}
        self.assertEqual(names, {"timeout", "pids"} if result["enforced"]["pids"] in CGROUPS else {"timeout"})

    def test_a_stopped_tree_is_ended(self) -> None:
        hog = f'"{self.tool("limit_memory")}" touch:{40 * MIB} wait:1000000'
        pages = 40 * MIB // os.sysconf("SC_PAGE_SIZE")
        script = f"{hog} & until [ $(cut -d' ' -f2 /proc/$!/statm) -ge {pages} ]; do sleep 0.05; done; kill -STOP $!; {hog}"
        result = self.json("--memory", "64M", *self.sh(script))
        self.ended(result, "memory", "memory")

    def test_a_jar_is_the_oom_killers_choice_before_the_engine(self) -> None:
        process = self.start("--", "sleep", "1000")
        children: List[int] = []

        def find() -> bool:
            lists = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            children[:] = [int(word) for word in lists.read_text().split()]
            return bool(children) and Path(f"/proc/{children[0]}/oom_score_adj").read_text().strip() == "500"

        self.wait_for(find, "the jar has a higher score")
        own = Path(f"/proc/{process.pid}/oom_score_adj").read_text()
        self.assertEqual(own, Path("/proc/self/oom_score_adj").read_text())
        send(process, signal.SIGTERM)
        process.wait(BOUND)


if __name__ == "__main__":
    unittest.main()
