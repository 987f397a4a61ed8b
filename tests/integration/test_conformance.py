# SPDX-License-Identifier: Apache-2.0
"""The protocol's promises, each kept through both doors of the engine: sockets, and one stream of bytes."""

from __future__ import annotations

import json
import os
import signal
import unittest
from typing import Any, Dict, List, Optional, Tuple

from harness import census, doors, host, wire
from harness.case import JarCase
from harness.doors import Line
from harness.result import check_result
from harness.wire import ANSWER, ASK, CANCEL, CAPTURED, CLOSE, CLOSED, CONNECT, DESCRIPTOR, EVENT, FAILED, FILE, HELLO, JOIN, KILL, OPEN, OPENED
from harness.wire import LAYER, LOOK, OUTPUT, PROCESSES, RESIZE, RESULT, RUN, SIGNAL, STARTED, USAGE, WORKSPACE

VERSION = doors.stdio_client.VERSION


class Conformance:
    """What every client can rely on."""

    door: doors.Door


    # --- requests ---

    def request(self, keys: Optional[Dict[str, Any]] = None, **more: Any) -> Dict[str, Any]:
        """What RUN and OPEN have."""
        environ = [f"{name}={value}" for name, value in self.env.items()]
        return {"version": VERSION, "keys": keys or {}, "cwd": str(self.work), "environ": environ, **more}

    def start(self, argv: List[str], keys: Optional[Dict[str, Any]] = None, **run: Any) -> Line:
        """A run in a jar of its own."""
        return self.door.begin(RUN, self.request(keys, run={"argv": argv, **run}))

    def finish(self, argv: List[str], keys: Optional[Dict[str, Any]] = None, **run: Any) -> doors.Frames:
        """The same to its end."""
        return self.start(argv, keys, **run).read_all()

    def open(self, keys: Optional[Dict[str, Any]] = None) -> Line:
        """A jar that stands."""
        jar = self.door.begin(OPEN, self.request(keys))
        self.assertEqual(self.next(jar), OPENED)
        return jar

    def join(self, jar: Line, argv: List[str], **run: Any) -> Line:
        """A run in it."""
        return jar.ask(JOIN, {"version": VERSION, "argv": argv, **run})

    def file(self, jar: Line, path: str, op: str = "read") -> Line:
        """A file in it."""
        return jar.ask(FILE, {"version": VERSION, "path": path, "op": op})

    def script(self, text: str) -> List[str]:
        """A script with the marker in its arguments."""
        return ["/bin/sh", "-c", text, self.marker]

    # --- answers ---

    def next(self, line: Line) -> int:
        """The kind of the next frame."""
        frame = line.read()
        assert frame is not None, "the channel has ended"
        return frame[0]

    def up(self, line: Line) -> None:
        """It has started, and its first words have come."""
        self.assertEqual((self.next(line), self.next(line)), (STARTED, OUTPUT))

    def output(self, frames: doors.Frames, kind: int = CAPTURED, stream: int = 1) -> bytes:
        """What came in frames of this kind."""
        return b"".join(payload[8:] for one, payload in frames if one == kind and payload[0] == stream)

    def result(self, frames: doors.Frames) -> Any:
        """The result, which is the last frame."""
        self.assertEqual(frames[-1][0], RESULT, frames)
        return json.loads(frames[-1][1])

    def error(self, frames: doors.Frames) -> Any:
        """The error, which is the only frame."""
        self.assertEqual([kind for kind, _ in frames], [FAILED], frames)
        return json.loads(frames[0][1])["error"]

    def answer(self, line: Line) -> Any:
        """The answer, which is the only frame."""
        frames = line.read_all()
        self.assertEqual([kind for kind, _ in frames], [ANSWER], frames)
        return json.loads(frames[0][1])

    def close(self, jar: Line) -> None:
        """A jar is closed, and nothing of it is left."""
        self.assertEqual([kind for kind, _ in jar.send(CLOSE).read_all()], [CLOSED])

    def test_a_look_says_what_a_process_left(self) -> None:
        jar = self.open()
        run = self.join(jar, self.script("echo x > AGENTS.md; touch there; exec sleep 600"))
        self.wait_for((self.work / "there").exists, "the command")
        found = self.answer(jar.ask(LOOK, {"version": VERSION}))
        self.assertEqual([[os.path.basename(entry["path"]) for entry in found[key]] for key in ("new", "risky")], [["AGENTS.md"]] * 2)
        self.assertEqual(self.answer(jar.ask(LOOK, {"version": VERSION}))["new"], [])
        self.assertEqual(self.error(jar.ask(LOOK, {"version": VERSION, "op": "x"}).read_all())["stage"], "engine")
        self.close(jar)
        run.close()

    # --- runs ---

    def test_frames_come_in_order_and_the_result_is_the_contracts(self) -> None:
        frames = self.finish(self.script("echo out; echo err >&2; exit 3"), sink="frames")
        self.assertEqual({kind for kind, _ in frames[1:3]}, {OUTPUT})
        self.assertEqual([kind for kind, _ in frames[:1] + frames[3:]], [STARTED, CAPTURED, CAPTURED, RESULT])
        self.assertEqual((self.output(frames), self.output(frames, OUTPUT, 2)), (b"out\n", b"err\n"))
        result = self.result(frames)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 3))
        check_result(result)

    def test_what_is_wrong_with_a_request_is_told_and_harms_nothing(self) -> None:
        good = self.request(run={"argv": ["true"]})
        for payload in (b"{", {**good, "version": 99}, {**good, "nope": 1}, {**good, "run": {"argv": []}}, {**good, "run": {"argv": ["x"], "extra": 1}}):
            self.assertEqual(self.error(self.door.begin(RUN, payload).read_all())["stage"], "engine", payload)
        self.assertEqual(self.error(self.finish(["true"], {"timeout": "5x"}))["stage"], "policy")
        self.assertEqual(self.result(self.finish(["/no/such"]))["error"]["stage"], "exec")
        self.assertEqual(self.output(self.finish(["echo", "alive"])), b"alive\n")

    def test_a_frame_without_a_place_ends_its_run_and_no_other(self) -> None:
        other = self.start(self.script("echo up; sleep 1000"), sink="frames")
        self.up(other)
        for kind, payload in ((RESULT, b"{}"), (CLOSE, b""), (SIGNAL, b"\1"), (99, b"x")):
            line = self.start(["sleep", "1000"])
            self.assertEqual(self.next(line), STARTED)
            self.assertEqual(self.error(line.send(kind, payload).read_all())["stage"], "engine", kind)
        other.send(CANCEL, wire.number(signal.SIGKILL))
        self.assertEqual(self.result(other.read_all())["outcome"], "cancelled")

    def test_signals_cancels_and_timeouts(self) -> None:
        line = self.start(self.script("trap 'echo usr1; exit 4' USR1; echo up; while :; do sleep 0.05; done"), sink="frames")
        self.up(line)
        frames = line.send(SIGNAL, wire.number(signal.SIGUSR1)).read_all()
        self.assertEqual((self.output(frames, OUTPUT), self.result(frames)["exit_code"]), (b"usr1\n", 4))
        line = self.start(self.script("trap '' TERM; echo up; while :; do sleep 0.05; done"), {"grace": "1h"}, sink="frames")
        self.up(line)
        line.send(CANCEL, wire.number(0)).send(CANCEL, wire.number(0))
        self.assertEqual(self.result(line.read_all())["outcome"], "cancelled")
        self.assertEqual(self.result(self.finish(["sleep", "1000"], {"timeout": "100ms"}))["outcome"], "timeout")

    def test_a_limit_is_told_as_it_is_reached(self) -> None:
        frames = self.finish(["head", "-c", "5000", "/dev/zero"], {"output": 1000}, events=True)
        kinds = [kind for kind, _ in frames]
        self.assertEqual((kinds[0], kinds[-1], kinds.count(EVENT)), (STARTED, RESULT, 1), kinds)
        event = json.loads(dict(frames)[EVENT])
        self.assertEqual((event["event"], "output" in event["limit"].values()), ("limit", True), event)
        jar = self.door.begin(OPEN, self.request(ttl="100ms"))
        self.assertEqual([kind for kind, _ in jar.read_all()], [OPENED, FAILED])

    def test_a_channel_that_is_closed_kills_its_run_at_once(self) -> None:
        line = self.start(self.script("trap '' TERM; echo up; sleep 1000"), {"grace": "1h"}, sink="frames")
        self.up(line)
        line.close()
        self.wait_for(lambda: not census.marked(self.marker), "the run is gone")

    def test_a_terminal_has_its_size_its_input_and_another_size(self) -> None:
        script = "stty size; trap 'stty size; exit 0' WINCH; read word; echo got $word; while :; do sleep 0.05; done"
        line = self.start(self.script(script), pty=True, rows=10, columns=33, sink="frames", stdin="descriptor")
        self.assertEqual(self.next(line), STARTED)
        line.write(b"typed\n")
        data = b""
        while b"got typed" not in data:
            data += (line.read() or (0, b"........"))[1][8:]
        self.assertIn(b"10 33", data)
        frames = line.send(RESIZE, wire.size(20, 44)).read_all()
        self.assertIn(b"20 44", self.output(frames, OUTPUT))
        line.close()

    def test_questions_are_answered(self) -> None:
        self.assertIn("belljar", self.answer(self.door.begin(ASK, {"version": VERSION, "what": "capabilities"})))
        hello = self.answer(self.door.begin(HELLO, {"version": 99}))
        self.assertEqual((hello["version"], "connect" in hello["features"]), (VERSION, True))

    # --- bytes ---

    def test_input_is_exact_however_long_and_ends(self) -> None:
        data = os.urandom(3_000_001)
        line = self.start(["cat"], {"output": "8M"}, sink="frames", stdin="descriptor", capture=False)
        thread = doors.feed(line, data)
        frames = line.read_all()
        thread.join()
        self.assertEqual(self.result(frames)["exit_code"], 0)
        self.assertTrue(self.output(frames, OUTPUT) == data, "other bytes came back")
        frames = self.finish(["wc", "-c"])
        self.assertEqual(self.output(frames), b"0\n")

    def test_input_that_nobody_reads_holds_nobody_up_and_is_told(self) -> None:
        sleeper = self.start(self.script("echo up; sleep 1000"), sink="frames", stdin="descriptor")
        self.up(sleeper)
        thread = doors.feed(sleeper, bytes(3_000_000))  # more than anything on the way holds
        self.assertEqual(self.output(self.finish(["echo", "quick"])), b"quick\n")
        sleeper.send(CANCEL, wire.number(signal.SIGKILL))
        self.assertEqual(self.result(sleeper.read_all())["outcome"], "cancelled")
        thread.join()
        deaf = self.start(["true"], stdin="descriptor")
        self.wait_for(lambda: not deaf.write(bytes(70000)), "the client learns that nobody reads")
        self.assertEqual(self.result(deaf.read_all())["exit_code"], 0)
        deaf.close()

    def test_a_slow_reader_stops_its_own_run_and_memory_stays_flat(self) -> None:
        slow = [self.start(self.script("exec cat /dev/zero"), {"output": None, "timeout": None}, sink="frames", capture=False) for _ in range(8)]
        for line in slow:
            self.up(line)
        self.assertEqual(self.output(self.finish(["echo", "quick"])), b"quick\n")
        before = self.memory()
        for _ in range(30):
            self.assertEqual(self.output(self.finish(["echo", "quick"])), b"quick\n")
        for line in slow:  # read a little, and it goes on
            got = 0
            while got < 1_000_000:
                got += len((line.read() or (0, b""))[1])
        if "BELLJAR_TEST_SANITIZER" not in os.environ:
            self.assertLess(self.memory() - before, 8 << 20)
        for line in slow:
            line.close()
        self.wait_for(lambda: not census.marked(self.marker), "the runs are gone")

    def memory(self) -> int:
        """What the engine holds, in bytes."""
        with open(f"/proc/{self.door.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    # --- jars ---

    def test_runs_in_a_jar_share_it_and_have_ends_of_their_own(self) -> None:
        jar = self.open()
        self.assertEqual(self.result(self.join(jar, self.script("echo kept > $HOME/x; exit 3")).read_all())["exit_code"], 3)
        self.assertEqual(self.output(self.join(jar, self.script("cat $HOME/x")).read_all()), b"kept\n")
        line = self.join(jar, ["cat"], stdin="descriptor")
        line.write(b"fed")
        line.end_data()
        self.assertEqual(self.output(line.read_all()), b"fed")
        self.assertEqual(self.error(self.join(jar, ["true"], nope=1).read_all())["stage"], "engine")
        self.assertEqual(self.result(self.join(jar, ["sleep", "1000"], keys={"timeout": "100ms"}).read_all())["outcome"], "timeout")
        last = self.join(jar, self.script("echo up; sleep 1000"), sink="frames")
        self.up(last)
        self.close(jar)
        self.assertEqual(self.result(last.read_all())["outcome"], "cancelled")
        self.assertEqual(census.marked(self.marker), [])

    def test_a_jar_ends_with_its_channel(self) -> None:
        jar = self.open()
        line = self.join(jar, self.script("echo up; sleep 1000"), sink="frames")
        self.up(line)
        jar.close()
        self.assertEqual(self.result(line.read_all())["outcome"], "cancelled")
        self.wait_for(lambda: not census.marked(self.marker), "everything is gone")

    def test_files_go_in_and_out_whole(self) -> None:
        jar = self.open()
        data = os.urandom(1_000_003)
        line = self.file(jar, "big", "write")
        self.assertEqual(self.next(line), DESCRIPTOR)
        self.assertTrue(line.write_file(data))
        self.assertIsNone(line.read())
        self.assertTrue((self.work / "big").read_bytes() == data, "other bytes were written")
        line = self.file(jar, "big")
        self.assertEqual(self.next(line), DESCRIPTOR)
        self.assertTrue(line.read_data() == data, "other bytes were read")
        self.assertIsNone(line.read())
        line.close()
        self.join(jar, self.script("mkdir d d/e; : > d/f; ln -s f d/l")).read_all()
        line = self.file(jar, "d", "list")
        self.assertEqual(self.next(line), DESCRIPTOR)
        self.assertEqual(line.names(), ["e", "f", "l"])
        line.close()
        for path, op in (("absent", "read"), ("d", "read"), ("big", "list"), ("d/l", "write")):
            error = self.error(self.file(jar, path, op).read_all())
            self.assertEqual((error["stage"], bool(error["errno"])), ("files", True), (path, op))
        self.close(jar)

    def test_more_is_done_with_files(self) -> None:
        jar = self.open()
        self.assertEqual(self.answer(jar.ask(FILE, {"version": VERSION, "op": "mkdir", "path": "a/b", "parents": True})), {})
        self.assertEqual(self.answer(jar.ask(FILE, {"version": VERSION, "op": "stat", "path": "a/b"}))["type"], "dir")
        watch = jar.ask(FILE, {"version": VERSION, "op": "watch", "path": "a"})
        self.assertEqual(self.next(watch), DESCRIPTOR)
        self.assertEqual(self.answer(jar.ask(FILE, {"version": VERSION, "op": "rename", "path": "a/b", "to": "a/seen"})), {})
        self.assertIn(b"seen\0", watch.read_piece())
        watch.close()
        self.assertEqual(self.answer(jar.ask(FILE, {"version": VERSION, "op": "remove", "path": "a", "recursive": True})), {})
        self.assertEqual(os.listdir(self.work), [])
        self.close(jar)

    def test_a_disk_that_is_full_is_told(self) -> None:
        jar = self.open({"tmpfs": ["/small:64K"]})
        line = self.file(jar, "/small/big", "write")
        self.assertEqual(self.next(line), DESCRIPTOR)
        self.assertFalse(line.write_file(bytes(1 << 20)))
        line.close()
        self.close(jar)

    def test_a_port_in_the_jar_is_connected_to_both_ways(self) -> None:
        jar = self.open()
        server = (
            "import socket\nwith socket.create_server(('127.0.0.1', 8080)) as s:\n print('up', flush=True)\n c, _ = s.accept()\n"
            " data = b''.join(iter(lambda: c.recv(65536), b''))\n c.sendall(data[::-1])\n c.close()\n"
        )
        run = self.join(jar, ["python3", "-c", server, self.marker], sink="frames")
        self.up(run)
        line = jar.ask(CONNECT, {"version": VERSION, "port": 8080})
        self.assertEqual(self.next(line), DESCRIPTOR)
        data = os.urandom(1_000_000)
        thread = doors.feed(line, data)
        self.assertTrue(line.read_data() == data[::-1], "other bytes came back")
        thread.join()
        line.close()
        self.assertEqual(self.result(run.read_all())["exit_code"], 0)
        self.assertEqual(self.error(jar.ask(CONNECT, {"version": VERSION, "port": 8081}).read_all())["errno_name"], "ECONNREFUSED")
        self.close(jar)

    def test_processes_and_usage(self) -> None:
        jar = self.open()
        run = self.join(jar, self.script("echo up; read x"), sink="frames", stdin="descriptor")
        self.up(run)
        (process,) = self.answer(jar.ask(PROCESSES, {"version": VERSION}))["processes"]
        self.assertEqual(self.answer(jar.ask(USAGE, {"version": VERSION}))["runs"], 1)
        self.assertEqual(self.answer(jar.ask(KILL, {"version": VERSION, "pid": process["pid"], "signal": 9})), {})
        self.assertEqual(self.result(run.read_all())["signal"], "SIGKILL")
        run.close()
        self.close(jar)

    # --- many, and the end ---

    # --- workspaces ---

    def decided(self, line: Line) -> Tuple[Dict[str, Any], bytes]:
        """What an order about a workspace brings: the jar as it is then, and the answer."""
        kind, payload = line.read() or (None, b"")
        self.assertEqual(kind, DESCRIPTOR, payload)
        data = line.read_data()
        line.close()
        return json.loads(payload), data

    def order(self, jar: Line, op: str, **more: Any) -> Any:
        """An order about a jar's own workspace that is answered with JSON, and the jar as it is then."""
        facts, data = self.decided(jar.ask(LAYER, {"version": VERSION, "op": op, **more}))
        return json.loads(data), facts.get("opened")

    def said(self, jar: Line, text: str) -> bytes:
        """What a script in the jar says."""
        frames = self.join(jar, self.script(text)).read_all()
        self.assertEqual(self.result(frames)["exit_code"], 0, frames)
        return self.output(frames)

    def test_a_jars_workspace_is_looked_at_and_decided_about(self) -> None:
        host.need("userns")  # copies have no checkpoints
        (self.work / "a").write_text("1\n")
        jar = self.open({"workspace": "cow"})
        mark, opened = self.order(jar, "checkpoint")
        self.assertEqual(mark, {"checkpoint": "origin"})
        self.said(jar, "echo 2 >> a; echo n > new; echo t > /tmp/private")
        diff, none = self.order(jar, "diff")
        self.assertEqual([(change["path"], change["change"]) for change in diff["changes"]], [("a", "modified"), ("new", "added")])
        self.assertIsNone(none)  # it goes on
        self.assertIn(b"+2\n", self.decided(jar.ask(LAYER, {"version": VERSION, "op": "patch", "paths": ["a"]}))[1])
        first, opened = self.order(jar, "checkpoint", note="first")
        self.assertEqual((opened["workspace"]["id"], opened["workspace"]["added"]), (diff["id"], 1))
        self.assertEqual(self.said(jar, "cat a; test ! -e /tmp/private; rm a"), b"1\n2\n")
        self.order(jar, "rollback", checkpoint=first["checkpoint"])
        self.assertEqual(self.said(jar, "cat a"), b"1\n2\n")
        forks, _ = self.order(jar, "fork", count=2)
        for id in forks["forks"]:
            twin = self.open({"workspace_name": id})
            self.assertEqual(self.said(twin, "cat new; echo x > new"), b"n\n")
            self.close(twin)
            self.decided(self.door.begin(WORKSPACE, {"version": VERSION, "op": "discard", "id": id, "environ": self.request()["environ"]}))
        self.assertEqual((self.work / "a").read_text(), "1\n")
        applied, opened = self.order(jar, "apply", paths=["a"])
        self.assertEqual((applied["applied"], applied["left"], applied["not_applied"]), (1, 1, []))
        self.assertEqual((self.work / "a").read_text(), "1\n2\n")
        self.assertEqual(self.order(jar, "discard")[0], {"kept": False, "not_dropped": []})
        self.assertEqual(self.said(jar, "ls"), b"a\n")
        self.close(jar)
        self.assertEqual(sorted(os.listdir(self.work)), ["a"])

    def test_what_cannot_be_decided_is_told_and_harms_nothing(self) -> None:
        host.need("userns")  # copies have no checkpoints
        jar = self.open()
        for op, more in (("diff", {}), ("fork", {"count": 1})):
            error = self.error(jar.ask(LAYER, {"version": VERSION, "op": op, **more}).read_all())
            self.assertIn("no workspace", error["message"])
        self.close(jar)
        jar = self.open({"workspace": "cow"})
        self.said(jar, "echo x > n")
        for members in ({"op": "show", "paths": ["n"]}, {"op": "fork"}, {"op": "apply", "note": "n"}, {"op": "rollback", "checkpoint": "nobody"}):
            frames = jar.ask(LAYER, {"version": VERSION, **members}).read_all()
            self.assertEqual([kind for kind, _ in frames], [FAILED], frames)
        error = self.error(jar.ask(LAYER, {"version": VERSION, "op": "apply", "paths": ["/etc/passwd"]}).read_all())
        self.assertIn("is outside the workspace", error["message"])
        self.assertEqual(self.said(jar, "cat n"), b"x\n")  # each of the last two began it afresh
        id = self.order(jar, "show")[0]["id"]
        ask = {"version": VERSION, "id": id, "environ": self.request()["environ"], "cwd": str(self.work)}
        self.assertIn(b'"path":"n"', self.decided(self.door.begin(WORKSPACE, {**ask, "op": "diff"}))[1])
        self.assertEqual(self.error(self.door.begin(WORKSPACE, {**ask, "op": "apply"}).read_all())["errno_name"], "EBUSY")
        self.order(jar, "discard")
        self.close(jar)
        self.assertEqual(self.error(self.door.begin(WORKSPACE, {**ask, "op": "show"}).read_all())["errno_name"], "ENOENT")

    def test_a_jar_that_begins_afresh_ends_what_runs_in_it_and_can_be_closed_meanwhile(self) -> None:
        host.need("userns")  # copies have no checkpoints
        jar = self.open({"workspace": "cow"})
        line = self.join(jar, self.script("echo x > n; echo up; sleep 1000"), sink="frames")
        self.up(line)
        asked = jar.ask(LAYER, {"version": VERSION, "op": "checkpoint"})
        late = self.join(jar, ["true"])
        self.assertEqual(self.result(line.read_all())["outcome"], "cancelled")
        self.assertEqual(self.error(late.read_all())["errno_name"], "EBUSY")
        self.decided(asked)
        asked = jar.ask(LAYER, {"version": VERSION, "op": "discard"})
        self.close(jar)
        self.assertIn([kind for kind, _ in asked.read_all()], ([FAILED], [DESCRIPTOR]))
        asked.close()
        self.assertEqual(census.marked(self.marker), [])

    def test_two_hundred_at_once(self) -> None:
        jar = self.open({"workdir": None, "pids": None, "memory": None, "timeout": None})
        lines = [self.join(jar, ["sh", "-c", f"read line; echo $line {number}"], stdin="descriptor") for number in range(200)]
        for line in lines:
            self.assertEqual(self.next(line), STARTED)  # all of them are there at the same time
        for number, line in reversed(list(enumerate(lines))):
            line.write(b"hello\n")
            self.assertEqual(self.output(line.read_all()), b"hello %d\n" % number)
            line.close()
        self.close(jar)

    def test_no_descriptor_stays(self) -> None:
        def some() -> None:
            self.finish(["true"], stdin="descriptor")
            self.finish(["true"], {"timeout": "bad"})
            self.start(["sleep", "1000"], stdin="descriptor").close()
            jar = self.open()
            self.file(jar, ".", "list").close()
            line = self.file(jar, "x", "write")
            line.read()
            line.close()
            self.join(jar, ["sleep", "1000"], stdin="descriptor").close()
            jar.close()

        counts: List[Tuple[int, int]] = []

        def settled() -> bool:
            counts.append((len(os.listdir(f"/proc/{self.door.pid}/fd")), len(os.listdir("/proc/self/fd"))))
            return counts[-8:] == counts[-1:] * 8

        some()
        self.wait_for(settled, "settled")
        before = counts[-1][0]
        for _ in range(5):
            some()
        self.wait_for(lambda: settled() and counts[-1][0] <= before, "descriptors are closed again")

    def test_a_client_that_leaves_takes_everything_along(self) -> None:
        lines = [self.start(self.script("trap '' TERM; (setsid sleep 1000 &); echo up; sleep 1000"), sink="frames") for _ in range(4)]
        jar = self.open()
        lines.append(self.join(jar, self.script("echo up; sleep 1000"), sink="frames"))
        for line in lines:
            self.up(line)
        self.assertEqual(self.door.leave(), 0)
        self.assertEqual(census.marked(self.marker), [])

    def test_an_engine_that_is_killed_takes_everything_along_and_the_channels_end(self) -> None:
        line = self.start(self.script("trap '' TERM; echo up; sleep 1000"), sink="frames")
        self.up(line)
        os.kill(self.door.pid, signal.SIGKILL)
        self.wait_for(lambda: not census.marked(self.marker), "everything is gone")
        try:
            self.assertIsNone(line.read())
        except doors.stdio_client.EngineGone:
            pass
        self.assertEqual(abs(self.door.leave()), signal.SIGKILL)


class OverSockets(Conformance, JarCase):
    """Descriptors over sockets."""

    def setUp(self) -> None:
        super().setUp()
        self.door = doors.SocketDoor(self.env, str(self.work))
        self.addCleanup(lambda: self.door.engine.status is None and self.door.leave())


class OverAStream(Conformance, JarCase):
    """Standard input and output."""

    def setUp(self) -> None:
        super().setUp()
        self.door = doors.StreamDoor(self.env, str(self.work))
        self.addCleanup(lambda: self.door.engine.process.returncode is None and self.door.leave())


if __name__ == "__main__":
    unittest.main()
