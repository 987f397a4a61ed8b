# SPDX-License-Identifier: Apache-2.0
"""`belljar engine`: what a jar does for its client beside runs - FILE, CONNECT, PROCESSES, KILL, USAGE, ttl, HELLO."""

from __future__ import annotations

import errno
import os
import socket
import stat
import unittest
from typing import Any, Dict, List

from harness import census, wire
from harness.case import every_way
from harness.engine_case import EngineCase, KeptJarCase
from harness.result import check_result
from harness.wire import ANSWER, CANCEL, CLOSE, CONNECT, DESCRIPTOR, FAILED, FILE, HELLO, KILL, OUTPUT, PROCESSES, STARTED, USAGE, Channel

SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 0), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print(listener.getsockname()[1], flush=True)
while True:
    peer, _ = listener.accept()
    peer.sendall(b"hello " + peer.recv(100))
    peer.close()
"""


class Tasks(KeptJarCase):
    """Requests with one answer."""

    def done(self, jar: Channel, kind: int, **members: Any) -> Dict[str, Any]:
        """The answer to what must work."""
        outcome = self.ask(jar, kind, **members)
        self.assertEqual(outcome.kinds, [ANSWER], outcome.frames)
        return outcome.last.json

    def refused(self, jar: Channel, kind: int, **members: Any) -> int:
        """The errno of what must not."""
        outcome = self.ask(jar, kind, **members)
        self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "files"), outcome.frames)
        return int(outcome.error["errno"])

    def spawn(self, jar: Channel, argv: List[str]) -> Channel:
        """A run that has written something."""
        run = self.join(jar, argv, sink="frames")
        self.assertEqual(run.read().kind, STARTED)
        self.first = run.read()
        self.assertEqual(self.first.kind, OUTPUT)
        return run


@every_way
class FileOperations(Tasks):
    """Made, looked at, renamed and removed inside."""

    def test_directories_are_made_with_those_above_if_asked(self) -> None:
        jar = self.open()
        self.assertEqual(self.done(jar, FILE, op="mkdir", path="a"), {})
        self.assertEqual(stat.S_IMODE((self.work / "a").stat().st_mode), 0o755)
        self.assertEqual(self.refused(jar, FILE, op="mkdir", path="a"), errno.EEXIST)
        self.assertEqual(self.refused(jar, FILE, op="mkdir", path="x/y"), errno.ENOENT)
        self.done(jar, FILE, op="mkdir", path="a//b/./c/../d/", parents=True, mode=0o700)
        self.assertEqual(sorted(os.listdir(self.work / "a/b")), ["c", "d"])
        self.assertEqual(stat.S_IMODE((self.work / "a/b/d").stat().st_mode), 0o700)
        self.done(jar, FILE, op="mkdir", path="a/b/d", parents=True)
        self.done(jar, FILE, op="mkdir", path=".", parents=True)
        (self.work / "file").write_text("")
        self.assertEqual(self.refused(jar, FILE, op="mkdir", path="file", parents=True), errno.EEXIST)
        self.assertEqual(self.refused(jar, FILE, op="mkdir", path="file/x", parents=True), errno.ENOTDIR)

    def test_places_that_the_jar_may_not_change_stay_as_they_are(self) -> None:
        jar = self.open()
        if self.opened["rung"] == "process":
            self.skipTest("the rung process has no walls")
        outside = self.directory("outside")
        (outside / "file").write_text("")
        (self.work / "mine").write_text("")
        os.symlink(outside, self.work / "link")
        for members in (
            {"op": "mkdir", "path": str(outside / "new")}, {"op": "mkdir", "path": "link/new", "parents": True},
            {"op": "write", "path": "link/new", "parents": True}, {"op": "remove", "path": "link/file"},
            {"op": "remove", "path": str(outside), "recursive": True}, {"op": "rename", "path": "mine", "to": "link/mine"},
            {"op": "rename", "path": "link/file", "to": "file"}, {"op": "watch", "path": str(outside)}, {"op": "list", "path": str(outside)},
            {"op": "mkdir", "path": "/usr/share/belljar-was-here"}, {"op": "mkdir", "path": "/usr/share/belljar-was-here/x", "parents": True},
        ):
            self.assertIn(self.refused(jar, FILE, **members), (errno.EROFS, errno.EACCES, errno.ENOENT, errno.EXDEV), members)
        self.assertEqual(os.listdir(outside), ["file"])
        self.assertTrue((self.work / "mine").exists())
        self.assertFalse(os.path.exists("/usr/share/belljar-was-here"))

    def test_a_file_is_written_below_directories_that_are_made_for_it(self) -> None:
        jar = self.open()
        self.assertEqual(self.refused(jar, FILE, op="write", path="p/q/file"), errno.ENOENT)
        outcome = self.ask(jar, FILE, op="write", path="p/q/file", parents=True, mode=0o600)
        self.assertEqual(outcome.kinds, [DESCRIPTOR])
        os.write(outcome.last.fds[0], b"content")
        os.close(outcome.last.fds[0])
        self.assertEqual(self.run_in(jar, ["cat", "p/q/file"]).stdout, b"content")

    def test_stat_looks_at_the_link_itself_unless_told_to_follow(self) -> None:
        jar = self.open()
        (self.work / "file").write_bytes(b"12345")
        os.chmod(self.work / "file", 0o640)
        os.utime(self.work / "file", ns=(10**18, 10**18 + 7))
        os.symlink("file", self.work / "link")
        os.symlink("absent", self.work / "dangling")
        os.mkfifo(self.work / "fifo")
        expected = {"type": "file", "size": 5, "mode": 0o640, "mtime_ns": 10**18 + 7}
        self.assertEqual(self.done(jar, FILE, op="stat", path="file"), expected)
        self.assertEqual(self.done(jar, FILE, op="stat", path="link")["type"], "symlink")
        self.assertEqual(self.done(jar, FILE, op="stat", path="link", follow=True), expected)
        self.assertEqual(self.done(jar, FILE, op="stat", path="dangling")["type"], "symlink")
        self.assertEqual(self.refused(jar, FILE, op="stat", path="dangling", follow=True), errno.ENOENT)
        self.assertEqual(self.done(jar, FILE, op="stat", path="fifo")["type"], "other")
        self.assertEqual(self.done(jar, FILE, op="stat", path=".")["type"], "dir")
        self.assertEqual(self.refused(jar, FILE, op="stat", path="/proc/self/status"), errno.EACCES)

    def test_remove_takes_files_links_and_empty_directories_and_trees_if_asked(self) -> None:
        jar = self.open()
        self.run_in(jar, self.script("mkdir -p t/u/v e; echo x > t/u/v/file; ln -s /etc t/out; ln -s t link; mkfifo t/fifo; echo y > keep"))
        self.assertEqual(self.refused(jar, FILE, op="remove", path="t"), errno.ENOTEMPTY)
        self.done(jar, FILE, op="remove", path="link", recursive=True)
        self.assertTrue((self.work / "t/u/v/file").exists())
        self.done(jar, FILE, op="remove", path="e")
        self.done(jar, FILE, op="remove", path="t", recursive=True)
        self.assertEqual(os.listdir(self.work), ["keep"])
        self.assertEqual(self.refused(jar, FILE, op="remove", path="t", recursive=True), errno.ENOENT)
        for path in (".", "..", "/", "keep/.."):
            self.assertIn(self.refused(jar, FILE, op="remove", path=path, recursive=True), (errno.EINVAL, errno.ENOTDIR), path)
        self.done(jar, FILE, op="remove", path="keep")

    def test_rename_replaces_and_never_follows_the_last_component(self) -> None:
        jar = self.open()
        self.run_in(jar, self.script("echo a > a; echo b > b; mkdir d; ln -s d link; ln -s /etc/passwd out"))
        self.done(jar, FILE, op="rename", path="a", to="b")
        self.assertEqual((self.work / "b").read_text(), "a\n")
        self.done(jar, FILE, op="rename", path="b", to="link/c")
        self.done(jar, FILE, op="rename", path="out", to="d/out")
        self.assertEqual(os.readlink(self.work / "d/out"), "/etc/passwd")
        self.done(jar, FILE, op="rename", path="d/c", to="link")
        self.assertEqual((self.work / "link").read_text(), "a\n")
        self.assertEqual(self.refused(jar, FILE, op="rename", path="absent", to="x"), errno.ENOENT)

    def test_names_with_newlines_and_stray_bytes(self) -> None:
        jar = self.open()
        name = os.fsdecode(b"new\nline\xff\x80")
        self.done(jar, FILE, op="mkdir", path=name)
        self.assertEqual(os.listdir(os.fsencode(self.work)), [b"new\nline\xff\x80"])
        self.done(jar, FILE, op="rename", path=name, to="plain")
        self.assertEqual(self.refused(jar, FILE, op="stat", path="x" * 5000), errno.ENAMETOOLONG)
        self.assertEqual(self.refused(jar, FILE, op="rename", path="x/" * 1500, to="y/" * 1500), errno.ENAMETOOLONG)

    def test_a_watch_tells_what_happens_in_a_directory(self) -> None:
        jar = self.open()
        outcome = self.ask(jar, FILE, op="watch", path=".")
        self.assertEqual(outcome.kinds, [DESCRIPTOR])
        fd = outcome.last.fds[0]
        self.addCleanup(os.close, fd)
        self.run_in(jar, self.script("echo x > seen"))
        os.set_blocking(fd, True)
        self.assertIn(b"seen", os.read(fd, 4096))
        os.mkfifo(self.work / "fifo")
        self.assertEqual(self.refused(jar, FILE, op="watch", path="fifo"), errno.EINVAL)
        self.assertEqual(self.refused(jar, FILE, op="watch", path="/proc"), errno.EACCES)

    def test_what_no_operation_takes_is_refused(self) -> None:
        jar = self.open()
        for members in (
            {"path": "x"}, {"op": "read"}, {"op": "truncate", "path": "x"}, {"op": "rename", "path": "x"}, {"op": "stat", "path": "x", "to": "y"},
            {"op": "read", "path": "x", "parents": True}, {"op": "mkdir", "path": "x", "recursive": True}, {"op": "stat", "path": "x", "mode": 1},
            {"op": "remove", "path": "x", "follow": True}, {"op": "read", "path": "x", "port": 1},
        ):
            outcome = self.ask(jar, FILE, **members)
            self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "engine"), members)
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")

    def test_many_at_once_are_all_answered_and_leave_no_descriptor(self) -> None:
        jar = self.open()
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")
        for turn in range(3):
            channels = []
            for number in range(200):
                ours, theirs = socket.socketpair()
                jar.send(FILE, {"version": wire.VERSION, "op": "mkdir", "path": f"d{turn}.{number}"}, [theirs.fileno()])
                theirs.close()
                channels.append(Channel(ours))
            for number, channel in enumerate(channels):
                if number % 3 == 0:
                    channel.close()  # some do not wait
                else:
                    self.assertEqual(wire.finish(channel).kinds, [ANSWER])
        if os.access(f"/proc/{self.engine.pid}/fd", os.R_OK):
            self.wait_for(lambda: self.engine.descriptors() < 50, "descriptors are closed")
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")

    def test_a_client_that_leaves_with_many_tasks_under_way(self) -> None:
        jar = self.open()
        self.run_in(jar, self.script("mkdir many; cd many; seq 1 3000 | xargs touch"))
        channels = []
        for number in range(120):
            ours, theirs = socket.socketpair()
            jar.send(FILE, {"version": wire.VERSION, "op": "remove", "path": "many", "recursive": True}, [theirs.fileno()])
            theirs.close()
            channels.append(ours)
        self.assertEqual(self.engine.close(), 0)
        for channel in channels:
            channel.close()

    def test_a_jar_that_closes_answers_those_who_wait(self) -> None:
        jar = self.open()
        ours, theirs = socket.socketpair()
        jar.send(FILE, {"version": wire.VERSION, "op": "stat", "path": "."}, [theirs.fileno()])
        jar.send(CLOSE)
        theirs.close()
        self.assertIn(wire.finish(Channel(ours)).last.kind, (ANSWER, FAILED))


@every_way
class Swaps(Tasks):
    """A command that swaps directories and links while the client works with them."""

    def test_nothing_outside_is_touched_whatever_is_swapped(self) -> None:
        jar = self.open()
        if self.opened["rung"] == "process":
            self.skipTest("the rung process has no walls")
        outside = self.directory("outside")
        (outside / "sub").mkdir()
        (outside / "sub" / "precious").write_text("x")
        swap = f"mkdir -p d/sub; mv d x; ln -s {outside} d; rm -f d; mv x d; rm -rf d/sub; ln -s {outside}/sub d/sub; rm -f d/sub"
        run = self.spawn(jar, self.script(f"echo up; while :; do {swap}; done 2>/dev/null"))
        kinds = set()
        for number in range(100):
            for members in (
                {"op": "remove", "path": "d", "recursive": True}, {"op": "mkdir", "path": "d/sub/a/b", "parents": True},
                {"op": "write", "path": "d/sub/new", "parents": True}, {"op": "rename", "path": "d/sub", "to": f"moved{number}"},
                {"op": "rename", "path": "d/sub/precious", "to": "d/sub/taken"}, {"op": "remove", "path": "d/sub/precious"},
            ):
                outcome = self.ask(jar, FILE, **members)
                kinds.add((members["op"], outcome.last.kind))
                for fd in outcome.last.fds:
                    os.close(fd)
        run.close()
        self.assertIn(("remove", ANSWER), kinds)
        self.assertEqual((os.listdir(outside), os.listdir(outside / "sub")), (["sub"], ["precious"]))


@every_way
class Processes(Tasks):
    """Who runs in a jar, and a signal to one."""

    def test_every_process_of_a_run_is_told_and_can_be_ended_by_number(self) -> None:
        jar = self.open()
        self.assertEqual(self.done(jar, PROCESSES), {"processes": []})
        run = self.spawn(jar, self.script("sleep 1000 & echo up; wait; echo over"))
        other = self.spawn(jar, self.script("echo up; exec sleep 1001"))
        found: List[Dict[str, Any]] = []

        def are_all_there() -> bool:
            found[:] = self.done(jar, PROCESSES)["processes"]
            return sorted(entry["name"] for entry in found) == ["sh", "sleep", "sleep"] and {entry["state"] for entry in found} == {"S"}

        self.wait_for(are_all_there, "two sleep, one waits")
        shell = next(entry for entry in found if entry["name"] == "sh")
        sleeper = next(entry for entry in found if entry["argv"] == ["sleep", "1000"])
        self.assertEqual((sleeper["ppid"], sleeper["run"], sleeper["state"]), (shell["pid"], shell["run"], "S"))
        self.assertEqual(shell["argv"][-1], self.marker)
        self.assertNotEqual(next(entry for entry in found if entry["argv"] == ["sleep", "1001"])["run"], shell["run"])
        self.assertEqual(self.done(jar, KILL, pid=sleeper["pid"], signal=0), {})
        self.assertEqual(self.done(jar, KILL, pid=sleeper["pid"], signal=9), {})
        self.assertEqual(wire.finish(run).result["outcome"], "exited")
        other.send(CANCEL, wire.number(0))
        wire.finish(other)
        self.assertEqual(self.done(jar, PROCESSES), {"processes": []})

    def test_nothing_else_can_be_signalled(self) -> None:
        jar = self.open()
        run = self.spawn(jar, self.script("echo up; exec sleep 1000"))
        pids = [1, 2, 3, 4, os.getpid(), self.engine.pid, 2**31 - 1]
        mine = {entry["pid"] for entry in self.done(jar, PROCESSES)["processes"]}
        for pid in pids:
            if pid not in mine:
                self.assertEqual(self.refused(jar, KILL, pid=pid, signal=9), errno.ESRCH, pid)
        self.assertEqual({entry["pid"] for entry in self.done(jar, PROCESSES)["processes"]}, mine)
        run.close()
        for members in ({"pid": 0, "signal": 9}, {"pid": -1, "signal": 9}, {"pid": 5}, {"pid": 5, "signal": 65}):
            self.assertEqual(self.ask(jar, KILL, **members).error["stage"], "engine")

    def test_a_jar_that_is_full_of_processes_can_be_looked_at_and_emptied(self) -> None:
        jar = self.open({"pids": 12})
        fill = "import os, time\nwhile True:\n    try:\n        os.fork() or time.sleep(1000)\n    except OSError:\n        break\nprint('full', flush=True)\ntime.sleep(1000)"
        run = self.join(jar, ["python3", "-c", fill, self.marker], sink="frames")
        self.assertEqual(run.read().kind, STARTED)
        if run.read().kind == OUTPUT:  # else nobody refuses the processes, and the run was ended for them
            found = self.done(jar, PROCESSES)["processes"]
            self.assertGreater(len(found), 2)
            for entry in found:
                self.ask(jar, KILL, pid=entry["pid"], signal=9)
            self.assertEqual(wire.finish(run).result["outcome"], "signaled")
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")

    def test_names_and_arguments_may_be_any_bytes(self) -> None:
        jar = self.open()
        os.symlink("/bin/sleep", os.fsencode(self.work) + b"/a) R 1\n\xff")
        path = os.fsdecode(os.fsencode(self.work) + b"/a) R 1\n\xff")
        run = self.join(jar, [path, "1000"])
        self.assertEqual(run.read().kind, STARTED)
        self.wait_for(lambda: self.done(jar, PROCESSES)["processes"][0]["state"] == "S", "it sleeps")
        (entry,) = self.done(jar, PROCESSES)["processes"]
        self.assertEqual((entry["name"], entry["argv"]), (os.fsdecode(b"a) R 1\n\xff"), [path, "1000"]))

    def test_usage_of_the_whole_jar(self) -> None:
        jar = self.open({"memory": "256M"}, ttl="1h")
        run = self.spawn(jar, self.script("echo up; sleep 1000"))
        usage = self.done(jar, USAGE)
        self.assertEqual(set(usage), {"age_ms", "ttl_ms", "runs", "memory_bytes", "peak_memory_bytes", "processes", "peak_processes", "cpu_ms"})
        self.assertEqual(usage["runs"], 1)
        self.assertGreater(usage["age_ms"], 0)
        self.assertLess(usage["ttl_ms"], 3600_000)
        self.assertIsNotNone(usage["memory_bytes"])
        self.assertIsNone(self.done(self.open(), USAGE)["ttl_ms"])
        run.close()


@every_way
class Detached(Tasks):
    """What a command leaves running."""

    def leave(self, jar: Channel, script: str, keys: Any = None, **run: Any) -> Dict[str, Any]:
        """Run a script to its end; the result."""
        outcome = self.run_in(jar, self.script(script), keys, detach=True, **run)
        self.output = outcome.stdout
        return outcome.result

    def left(self, jar: Channel) -> List[str]:
        """What goes on."""
        return sorted(entry["name"] for entry in self.done(jar, PROCESSES)["processes"])

    def test_what_the_command_started_goes_on_and_the_result_comes_at_its_end(self) -> None:
        jar = self.open()
        result = self.leave(jar, "(setsid sleep 1000 &) ; sleep 1001 & echo done; exit 3")
        self.assertEqual((result["outcome"], result["exit_code"], self.output), ("exited", 3, b"done\n"))
        check_result(result)
        self.wait_for(lambda: self.left(jar) == ["sleep", "sleep"], "both are there")
        self.assertEqual(self.done(jar, USAGE)["runs"], 1)
        # Others come and go beside it.
        self.assertEqual(self.run_in(jar, ["echo", "other"]).stdout, b"other\n")
        self.assertEqual(self.left(jar), ["sleep", "sleep"])
        for entry in self.done(jar, PROCESSES)["processes"]:
            self.done(jar, KILL, pid=entry["pid"], signal=15)
        self.wait_for(lambda: self.done(jar, USAGE)["runs"] == 0, "the run is forgotten")
        self.assertEqual(self.left(jar), [])

    def test_what_is_left_ends_with_the_jar(self) -> None:
        jar = self.open()
        self.leave(jar, "sh -c 'trap \"\" TERM HUP; while :; do sleep 1000; done' \"$0\" & sleep 0.1")
        self.assertTrue(census.marked(self.marker))
        self.assertEqual(wire.finish(jar.send(CLOSE)).kinds, [wire.CLOSED])
        self.assertEqual(census.marked(self.marker), [])

    def test_a_command_that_leaves_nothing_is_a_run_as_any_other(self) -> None:
        jar = self.open()
        self.assertEqual(self.leave(jar, "echo x")["exit_code"], 0)
        self.assertEqual((self.output, self.done(jar, USAGE)["runs"]), (b"x\n", 0))
        outcome = self.run_in(jar, ["/no/such/program"], detach=True)
        self.assertEqual(outcome.result["outcome"], "failed")

    def test_what_others_write_after_the_end_is_dropped_and_hurts_nobody(self) -> None:
        jar = self.open()
        script = "(i=0; while test $i -lt 300; do echo $i; head -c 4096 /dev/zero >&2; i=$((i + 1)); done; echo all > written; exec sleep 1000) & echo first"
        result = self.leave(jar, script, {"output": "10K"})
        self.assertEqual(result["exit_code"], 0)
        self.wait_for(lambda: (self.work / "written").exists(), "it could write all")
        self.wait_for(lambda: self.left(jar) == ["sleep"], "it goes on")

    def test_a_timeout_or_a_cancel_before_the_end_ends_everything(self) -> None:
        jar = self.open()
        self.assertEqual(self.leave(jar, "sleep 1000 & sleep 1001", {"timeout": "300ms"})["outcome"], "timeout")
        self.assertEqual(self.left(jar), [])
        run = self.join(jar, self.script("sleep 1000 & echo up; sleep 1001"), sink="frames", detach=True)
        self.assertEqual([run.read().kind, run.read().kind], [STARTED, OUTPUT])
        run.close()
        self.wait_for(lambda: not census.marked(self.marker), "all is gone")

    def test_limits_go_on_holding(self) -> None:
        jar = self.open({"memory": "256M"})
        hog = "import time; time.sleep(0.2); x = bytearray(200 << 20); time.sleep(1000)"
        self.leave(jar, f"python3 -c '{hog}' \"$0\" & echo", {"memory": "64M"})
        self.wait_for(lambda: not census.marked(self.marker), "it was ended", 60)
        self.wait_for(lambda: self.done(jar, USAGE)["runs"] == 0, "the run is forgotten")
        self.assertEqual(self.run_in(jar, ["echo", "alive"]).stdout, b"alive\n")

    def test_what_does_not_go_together(self) -> None:
        jar = self.open()
        for members in ({"pty": True}, {"sink": "pipes"}):
            self.assertEqual(self.run_in(jar, ["true"], detach=True, **members).error["stage"], "engine")
        outcome = self.engine.run(["true"], detach=True)
        self.assertEqual(outcome.error["stage"], "engine")


@every_way
class Connections(Tasks):
    """A stream to a port inside."""

    def test_a_server_inside_is_reached_where_the_jar_has_a_loopback(self) -> None:
        jar = self.open()
        if self.opened["rung"] != "namespace":
            self.assertEqual(self.refused(jar, CONNECT, port=80), errno.EOPNOTSUPP)
            jar = self.open({"net": "host"})
        for address in ("127.0.0.1", "::1"):
            run = self.spawn(jar, ["python3", "-c", SERVER, address, self.marker])
            port = int(self.first.payload[8:])
            outcome = self.ask(jar, CONNECT, port=port)
            self.assertEqual(outcome.kinds, [DESCRIPTOR], outcome.frames)
            with socket.socket(fileno=outcome.last.fds[0]) as peer:
                peer.sendall(b"you")
                self.assertEqual(peer.recv(100), b"hello you")
            run.send(CANCEL, wire.number(9))
            wire.finish(run)
            self.assertEqual(self.refused(jar, CONNECT, port=port), errno.ECONNREFUSED)
        for port in (0, 65536, -1, "80"):
            self.assertEqual(self.ask(jar, CONNECT, port=port).error["stage"], "engine")

    def test_the_hosts_loopback_is_not_the_jars(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            number = self.refused(self.open(), CONNECT, port=listener.getsockname()[1])
        self.assertIn(number, (errno.ECONNREFUSED, errno.EOPNOTSUPP))


@every_way
class TimeToLive(Tasks):
    """A jar that ends by itself."""

    def test_a_jar_whose_time_is_over_is_closed_and_says_so(self) -> None:
        jar = self.open(ttl="300ms")
        run = self.spawn(jar, self.script("trap '' TERM; echo up; sleep 1000"))
        outcome = wire.finish(jar)
        self.assertEqual((outcome.kinds, outcome.error["errno"]), ([FAILED], errno.ETIME))
        self.assertIn("time to live", outcome.error["message"])
        self.assertEqual(wire.finish(run).result["outcome"], "cancelled")
        self.assertEqual(census.marked(self.marker), [])

    def test_durations(self) -> None:
        for ttl in ("1h", 3600, 0.5, 1e3, None):
            self.open(ttl=ttl).close()
        for ttl in ("soon", 0, -1, "", True, [], {}):
            outcome = wire.finish(self.engine.channel().send(wire.OPEN, self.engine.request(top={"ttl": ttl})))
            self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "policy"), ttl)


class Hello(EngineCase):
    """What the engine says of itself."""

    def test_hello_tells_version_and_features_to_clients_of_any_version(self) -> None:
        for version in (1, 2, 99, "next"):
            outcome = wire.finish(self.engine.channel().send(HELLO, {"version": version}))
            self.assertEqual(outcome.kinds, [ANSWER])
            answer = outcome.last.json
            self.assertEqual((set(answer), answer["version"]), ({"version", "belljar", "features"}, wire.VERSION))
            self.assertLessEqual({"files", "connect", "processes", "usage", "ttl"}, set(answer["features"]))
        for payload in (b"{}", b"", b"[]", {"version": 2, "x": 1}):
            self.assertEqual(wire.finish(self.engine.channel().send(HELLO, payload)).kinds, [FAILED])


if __name__ == "__main__":
    unittest.main()
