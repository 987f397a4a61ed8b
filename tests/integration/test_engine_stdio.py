# SPDX-License-Identifier: Apache-2.0
"""`belljar engine --stdio`: the stream itself, with clients that do what no client should."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import unittest
from typing import Any, Dict, List, Optional, Tuple

from harness import census, paths, wire
from harness.bounds import BOUND
from harness.case import JarCase
from harness.doors import stdio_client
from harness.wire import ANSWER, CANCEL, CLOSE, CLOSED, DESCRIPTOR, FAILED, FILE, HELLO, JOIN, OPEN, OPENED, OUTPUT, RESULT, RUN, SIGNAL, STARTED
from lint.frames import of_page

DATA, DATA_END, DATA_STOP = stdio_client.DATA, stdio_client.DATA_END, stdio_client.DATA_STOP
CREDIT, END, VERSION = stdio_client.CREDIT, stdio_client.END, stdio_client.VERSION
WINDOW = 262144
Frame = Tuple[int, int, bytes]


def frame(channel: int, kind: int, payload: wire.Payload = None) -> bytes:
    """A whole frame."""
    data = wire.encode(payload)
    return struct.pack("<IB", len(data), kind) + channel.to_bytes(3, "little") + data


class StreamCase(JarCase):
    """An engine, its standard input and its standard output."""

    def setUp(self) -> None:
        super().setUp()
        words = [*self.before_engine(), paths.belljar(), "engine", "--stdio"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, bufsize=0)
        self.addCleanup(self.stop)
        self.left: List[Frame] = []

    def before_engine(self) -> List[str]:
        """What starts the engine, where that is not the test itself."""
        return []

    def stop(self) -> None:
        """Leave, if that was not done."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        try:
            self.process.wait(BOUND)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def greet(self) -> Dict[str, Any]:
        """HELLO, and what the engine answers."""
        self.send(frame(0, HELLO, {"version": VERSION}))
        channel, kind, payload = self.read()
        self.assertEqual((channel, kind), (0, ANSWER), payload)
        answer: Dict[str, Any] = json.loads(payload)
        return answer

    def send(self, data: bytes) -> None:
        """Any bytes. Whoever does not listen any more has said why."""
        assert self.process.stdin is not None
        view = memoryview(data)
        try:
            while len(view):
                view = view[self.process.stdin.write(view) :]
        except BrokenPipeError:
            pass

    def exactly(self, count: int) -> bytes:
        """So many bytes, or fewer at the end."""
        assert self.process.stdout is not None
        data = b""
        while len(data) < count:
            part = self.process.stdout.read(count - len(data))
            if not part:
                break
            data += part
        return data

    def next(self) -> Optional[Frame]:
        """The next frame of any channel; None at the end."""
        header = self.exactly(8)
        if not header:
            return None
        length, kind = struct.unpack("<IB", header[:5])
        return int.from_bytes(header[5:], "little"), kind, self.exactly(length)

    def read(self) -> Frame:
        """The next frame, which must come."""
        one = self.next()
        assert one is not None, "the engine has ended"
        return one

    def until(self, channel: int, kind: int) -> bytes:
        """Read up to a frame of this kind on this channel: its payload. Other channels' frames are kept in `left`."""
        while True:
            one = self.read()
            if one[:2] == (channel, kind):
                return one[2]
            self.assertNotEqual(one[:2], (channel, END), self.left[-1:])
            self.left.append(one)

    def request(self, argv: Optional[List[str]] = None, keys: Optional[Dict[str, Any]] = None, **run: Any) -> Dict[str, Any]:
        """What RUN has, or OPEN."""
        environ = [f"{name}={value}" for name, value in self.env.items()]
        payload: Dict[str, Any] = {"version": VERSION, "keys": keys or {}, "cwd": str(self.work), "environ": environ}
        return {**payload, "run": {"argv": argv, **run}} if argv is not None else payload

    def script(self, text: str) -> List[str]:
        """A script with the marker in its arguments."""
        return ["/bin/sh", "-c", text, self.marker]

    def assert_alive(self, channel: int = 0xFFFFFF) -> None:
        """The connection works."""
        self.send(frame(channel, RUN, self.request(["true"])))
        self.assertEqual(json.loads(self.until(channel, RESULT))["exit_code"], 0)
        self.until(channel, END)
        self.send(frame(channel, END))

    def assert_broken(self, *words: str) -> None:
        """The engine says why, ends with 125, and nothing is left."""
        error: Any = None
        for one in iter(self.next, None):
            if one[:2] == (0, FAILED):
                error = json.loads(one[2])["error"]
        self.assertIsNotNone(error, "it does not say why")
        self.assertEqual(error["stage"], "engine")
        for word in words:
            self.assertIn(word, error["message"])
        self.assertEqual(self.process.wait(BOUND), 125)
        assert self.process.stderr is not None
        self.assertIn(error["message"], self.process.stderr.read().decode())
        self.assertEqual(census.marked(self.marker), [])


class Connections(StreamCase):
    """How it begins and ends."""

    def test_the_engine_says_what_it_is_only_when_it_is_asked(self) -> None:
        answer = self.greet()
        self.assertEqual((answer["version"], answer["window"], answer["channels"]), (VERSION, WINDOW, 4096))
        self.assertIn("files", answer["features"])

    def test_who_does_not_begin_with_hello_is_refused(self) -> None:
        first = {
            "a run": frame(1, RUN, self.request(["true"])),
            "hello elsewhere": frame(1, HELLO, {"version": VERSION}),
            "another version": frame(0, HELLO, {"version": VERSION + 1}),
            "no version": frame(0, HELLO, {}),
            "no JSON": frame(0, HELLO, b"{"),
            "text": b"GET / HTTP/1.1\r\n\r\n",
            "a hello too long": struct.pack("<IBBBB", 65537, HELLO, 0, 0, 0),
        }
        for name, data in first.items():
            with self.subTest(name):
                self.send(data)
                self.assert_broken()
                self.stop()
                self.setUp()

    def test_the_end_of_input_ends_everything(self) -> None:
        self.greet()
        for channel in range(1, 4):
            self.send(frame(channel, RUN, self.request(self.script("trap '' TERM; (setsid sleep 1000 &); echo up; sleep 1000"), sink="frames")))
        for channel in range(1, 4):
            self.until_heard(channel)
        self.send(frame(4, RUN, self.request(["true"]))[:20])  # half a frame is no reason to wait
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.assertEqual(self.process.wait(BOUND), 0)
        self.assertEqual(census.marked(self.marker), [])

    def until_heard(self, channel: int) -> None:
        """Its first output, which may have come before that of another."""
        if not any(one[:2] == (channel, OUTPUT) for one in self.left):
            self.left.append((channel, OUTPUT, self.until(channel, OUTPUT)))

    def test_a_client_that_cannot_hear_any_more_is_gone(self) -> None:
        self.greet()
        self.send(frame(1, RUN, self.request(self.script("echo up; sleep 1000"), sink="frames")))
        self.until(1, OUTPUT)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.assertEqual(self.process.wait(BOUND), 0)
        self.assertEqual(census.marked(self.marker), [])

    def test_what_is_no_pipe_is_refused(self) -> None:
        terminal, other = pty.openpty()
        with open("/dev/null", "rb") as null:
            for stdin in (terminal, null.fileno()):
                done = subprocess.run([paths.belljar(), "engine", "--stdio"], stdin=stdin, capture_output=True, env=self.env, timeout=BOUND, check=False)
                self.assertEqual((done.returncode, done.stdout), (125, b""))
                self.assertIn(b"pipes or sockets", done.stderr)
        os.close(terminal)
        os.close(other)

    def test_one_socket_can_be_both(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = subprocess.Popen([paths.belljar(), "engine", "--stdio"], stdin=theirs, stdout=theirs, env=self.env)
            theirs.close()
            ours.settimeout(BOUND)
            ours.sendall(frame(0, HELLO, {"version": VERSION}))
            self.assertEqual(ours.recv(65536)[4], ANSWER)
            ours.close()
            self.assertEqual(process.wait(BOUND), 0)

    def test_commands_have_nothing_of_the_stream(self) -> None:
        self.greet()
        self.send(frame(1, RUN, self.request(["sh", "-c", "ls -l /proc/self/fd; grep Sig[BI] /proc/self/status"], stdin="descriptor", sink="frames")))
        listing = self.until(1, OUTPUT)[8:].decode()
        self.assertEqual(sorted(line.split()[-3] for line in listing.splitlines() if "->" in line), ["0", "1", "2", "3"], listing)
        own = {os.readlink(f"/proc/self/fd/{stream.fileno()}") for stream in (self.process.stdin, self.process.stdout) if stream}
        self.assertFalse([name for name in own if name in listing], listing)


class Transcript(StreamCase):
    """The page of the protocol shows what really happens."""

    page = (paths.TESTS.parent / "docs" / "protocol.md").read_text()

    def payload(self, text: str) -> bytes:
        """What a line has behind the type."""
        if text.startswith("+"):
            number, text = text[1:].split(" ", 1)
            return wire.number(int(number)) + self.payload(text)
        return bytes(ast.literal_eval("b" + text)) if text.startswith('"') else text.replace("/tmp/demo", str(self.work)).encode()

    def assert_like(self, shown: Any, real: Any, where: str) -> None:
        """The same, but for what the page leaves open."""
        if shown == "…":
            return
        if not isinstance(shown, dict) or not isinstance(real, dict):
            self.assertEqual(shown, real, where)
            return
        if "…" not in shown:
            self.assertEqual(set(shown), set(real), where)
        for name in set(shown) - {"…"}:
            self.assert_like(shown[name], real[name], where)

    def test_the_transcript_is_true(self) -> None:
        numbers = {name: number for name, (number, _, _) in of_page(self.page).items()}
        lines = [line.split(" ", 3) for line in self.page.splitlines() if line.startswith(("> ", "< "))]
        self.assertGreater(len(lines), 30)
        for sign, channel, name, *rest in lines:
            payload = self.payload(rest[0]) if rest else b""
            where = " ".join((sign, channel, name, *rest))
            if sign == ">":
                self.send(frame(int(channel), numbers[name], payload))
                continue
            number, kind, real = self.read()
            self.assertEqual((number, kind), (int(channel), numbers[name]), where)
            if payload.startswith(b"{"):
                self.assert_like(json.loads(payload), json.loads(real), where)
            else:
                self.assertEqual(payload, real, where)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.assertIsNone(self.next(), "more came than the page shows")
        self.assertEqual(self.process.wait(BOUND), 0)

    def test_the_first_frame_in_bytes(self) -> None:
        line = next(line for line in self.page.splitlines() if line.startswith("The first frame in bytes"))
        shown = bytes.fromhex("".join(re.findall(r"`([0-9a-f ]+)`", line)))
        self.assertEqual(shown, frame(0, HELLO, b'{"version":%d}' % VERSION))


class Rules(StreamCase):
    """Who breaks a rule of the stream ends it."""

    def setUp(self) -> None:
        super().setUp()
        self.greet()

    def test_what_breaks_the_stream(self) -> None:
        run = frame(1, RUN, self.request(self.script("sleep 1000"), stdin="descriptor"))
        deaf = frame(1, RUN, self.request(self.script("sleep 1000")))
        jar = frame(1, OPEN, self.request())
        join = json.dumps({"version": VERSION, "argv": ["true"]}).encode()
        cases: Dict[str, Tuple[List[bytes], Tuple[str, ...]]] = {
            "a frame on channel 0": ([frame(0, RUN, self.request(["true"]))], ("channel 0",)),
            "a second hello": ([frame(0, HELLO, {"version": VERSION})], ("channel 0",)),
            "a length without bounds": ([struct.pack("<IBBBB", 0xFFFFFFFF, RUN, 1, 0, 0)], ("RUN", "4294967295")),
            "one byte too many": ([struct.pack("<IBBBB", (5 << 20) + 1, RUN, 1, 0, 0)], ("RUN",)),
            "too much data": ([run, struct.pack("<IBBBB", 65537, DATA, 1, 0, 0)], ("DATA",)),
            "no such channel": ([frame(7, SIGNAL, wire.number(15))], ("SIGNAL", "7", "not open")),
            "an unknown type begins": ([frame(7, 99, b"")], ("not open",)),
            "the end of nothing": ([frame(7, END)], ("END", "not open")),
            "credit for nothing": ([frame(7, CREDIT, wire.number(1))], ("not open",)),
            "data for nothing": ([frame(7, DATA, b"x")], ("not open",)),
            "an end with words": ([run, frame(1, END, b"x")], ("END",)),
            "no credit": ([run, frame(1, CREDIT, wire.number(0))], ("credit",)),
            "half a credit": ([run, frame(1, CREDIT, b"\1")], ("CREDIT",)),
            "credit beyond measure": ([run, frame(1, CREDIT, wire.number(0x3FFF0000)), frame(1, CREDIT, wire.number(0x3FFF0000))], ("credit",)),
            "data beyond credit": ([run, *[frame(1, DATA, bytes(65536))] * 12], ("credit",)),
            "data for a run without input": ([deaf, frame(1, DATA, b"x")], ("takes none",)),
            "data for a jar": ([jar, frame(1, DATA, b"x")], ("takes none",)),
            "an end of data for a jar": ([jar, frame(1, DATA_END)], ("DATA_END",)),
            "data after its end": ([run, frame(1, DATA_END), frame(1, DATA, b"x")], ("DATA",)),
            "two ends of data": ([run, frame(1, DATA_END), frame(1, DATA_END)], ("DATA_END",)),
            "what only the engine says": ([run, frame(1, DATA_STOP)], ("DATA_STOP",)),
            "a request without a channel": ([jar, frame(1, JOIN, b"\1")], ("JOIN", "new channel")),
            "a request with channel 0": ([jar, frame(1, JOIN, wire.number(0) + join)], ("new channel",)),
            "a request with its own channel": ([jar, frame(1, JOIN, wire.number(1) + join)], ("new channel",)),
            "a request with no channel at all": ([jar, frame(1, JOIN, wire.number(0x1000000) + join)], ("new channel",)),
        }
        for name, (frames, words) in cases.items():
            with self.subTest(name):
                self.send(b"".join(frames))
                self.assert_broken(*words)
                self.stop()
                self.setUp()

    def test_too_many_channels_break_it(self) -> None:
        self.send(b"".join(frame(number, OPEN, b"{") for number in range(1, 4098)))
        self.assert_broken("4096")

    def test_what_only_a_channel_breaks_ends_that_channel(self) -> None:
        self.send(frame(1, RUN, self.request(self.script("sleep 1000"))))
        self.until(1, STARTED)
        self.send(frame(1, OUTPUT, b"x") + frame(1, SIGNAL, b"late"))
        self.assertEqual(json.loads(self.until(1, FAILED))["error"]["stage"], "engine")
        self.until(1, END)
        self.assert_alive()


class Channels(StreamCase):
    """What is between two channels, and between frames."""

    def setUp(self) -> None:
        super().setUp()
        self.greet()

    def test_frames_may_come_byte_by_byte_and_in_any_pieces(self) -> None:
        data = b"".join(frame(number, RUN, self.request(["echo", str(number)], {}, started=False)) for number in (1, 2, 3))
        data += frame(4, RUN, self.request(["cat"], stdin="descriptor", started=False)) + frame(4, DATA, b"in pieces") + frame(4, DATA_END)
        for at in range(0, 300):
            self.send(data[at : at + 1])
        for at in range(300, len(data), 777):
            self.send(data[at : at + 777])
        ended = set()
        output: Dict[int, bytes] = {}
        while len(ended) < 4:
            channel, kind, payload = self.read()
            if kind == END:
                ended.add(channel)
            elif kind == wire.CAPTURED:
                output[channel] = payload[8:]
        self.assertEqual(output, {1: b"1\n", 2: b"2\n", 3: b"3\n", 4: b"in pieces"})

    def test_a_number_can_be_used_again_after_both_ends(self) -> None:
        for _ in range(50):
            self.send(frame(5, RUN, self.request(["true"])))
            self.until(5, END)
            self.send(frame(5, SIGNAL, wire.number(15)) + frame(5, CREDIT, wire.number(9)) + frame(5, DATA, b"late") + frame(5, END))
        self.send(frame(5, RUN, self.request(self.script("sleep 1000"))))
        self.until(5, STARTED)
        self.send(frame(5, END))
        self.until(5, END)
        self.wait_for(lambda: not census.marked(self.marker), "the run is gone")
        self.assert_alive(5)

    def sizes(self, channel: int) -> List[int]:
        """Of the OUTPUT frames so far."""
        return [len(payload) for number, kind, payload in self.left if (number, kind) == (channel, OUTPUT)]

    def test_no_more_than_the_credit_comes_and_nobody_else_waits(self) -> None:
        self.send(frame(1, RUN, self.request(self.script("head -c 3000000 /dev/zero"), {"output": "8M"}, sink="frames", capture=False)))
        while sum(self.sizes(1)) <= WINDOW - 65544:  # another frame may still fit
            self.assert_alive()
        self.assert_alive()
        self.assertLessEqual(sum(self.sizes(1)), WINDOW)
        self.send(frame(1, CREDIT, wire.number(1)))
        self.assert_alive()
        self.assertLessEqual(sum(self.sizes(1)), WINDOW + 1)
        self.send(frame(1, CREDIT, wire.number(8_000_000)))
        self.until(1, RESULT)
        self.assertEqual(sum(size - 8 for size in self.sizes(1)), 3_000_000)

    def test_a_request_to_a_jar_that_is_gone_just_ends(self) -> None:
        self.send(frame(1, OPEN, self.request()))
        self.until(1, OPENED)
        self.send(frame(1, CLOSE))
        self.until(1, CLOSED)
        self.until(1, END)
        self.send(frame(1, JOIN, wire.number(2) + json.dumps({"version": VERSION, "argv": ["true"]}).encode()))
        self.assertEqual(self.read(), (2, END, b""))
        self.send(frame(2, END) + frame(1, END))
        self.assert_alive(1)

    def test_data_may_come_before_the_file_is_open(self) -> None:
        self.send(frame(1, OPEN, self.request()))
        self.until(1, OPENED)
        ask = json.dumps({"version": VERSION, "op": "write", "path": "early"}).encode()
        self.send(frame(1, FILE, wire.number(2) + ask) + frame(2, DATA, b"early bird") + frame(2, DATA_END))
        self.assertEqual([self.read()[:2] for _ in range(3)], [(2, DESCRIPTOR), (2, DATA_END), (2, END)])
        self.assertEqual((self.work / "early").read_bytes(), b"early bird")
        ask = json.dumps({"version": VERSION, "op": "write", "path": "absent/early"}).encode()
        self.send(frame(1, FILE, wire.number(3) + ask) + frame(3, DATA, b"early bird") + frame(3, DATA_END))
        self.assertEqual([self.read()[:2] for _ in range(2)], [(3, FAILED), (3, END)])
        ask = json.dumps({"version": VERSION, "op": "read", "path": "early"}).encode()
        self.send(frame(1, FILE, wire.number(4) + ask) + frame(4, DATA, b"x"))
        self.assert_broken("takes none")

    def test_a_file_that_may_not_grow_is_told_and_ends_nothing(self) -> None:
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        self.send(frame(1, OPEN, self.request()))
        self.until(1, OPENED)
        ask = json.dumps({"version": VERSION, "op": "write", "path": "large"}).encode()
        self.send(frame(1, FILE, wire.number(2) + ask) + frame(2, DATA, bytes(65536)) * 3)
        self.assertEqual(json.loads(self.until(2, FAILED))["error"]["errno_name"], "EFBIG")
        self.until(2, END)
        self.send(frame(2, DATA, bytes(65536)) + frame(2, END))
        self.assert_alive()

    def test_a_signal_storm_on_a_channel_nobody_reads_holds_nothing_up(self) -> None:
        self.send(frame(1, RUN, self.request(self.script("head -c 3000000 /dev/zero"), {"output": "8M"}, sink="frames", capture=False)))
        self.until(1, STARTED)
        self.send(frame(1, SIGNAL, wire.number(signal.SIGCONT)) * 50_000)
        self.assert_alive()
        self.send(frame(1, CANCEL, wire.number(9)) + frame(1, CREDIT, wire.number(8_000_000)))
        self.until(1, RESULT)
        self.send(frame(1, SIGNAL, wire.number(signal.SIGCONT)) * 50_000)
        self.assert_alive()

    def test_when_descriptors_run_out_channels_are_told_and_others_live(self) -> None:
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (120, 120))
        for number in range(1, 61):
            self.send(frame(number, RUN, self.request(self.script("sleep 1000"), stdin="descriptor")))
        first: Dict[int, Tuple[int, bytes]] = {}
        while len(first) < 60:
            channel, kind, payload = self.read()
            # Of a run that fails late, its input ends before that is told.
            if kind != DATA_STOP:
                first.setdefault(channel, (kind, payload))
        started = [number for number, (kind, _) in first.items() if kind == STARTED]
        refused = [json.loads(payload)["error"] for kind, payload in first.values() if kind != STARTED]
        self.assertTrue(started)
        self.assertTrue(refused)
        self.assertTrue(all(error["message"] for error in refused))
        self.assertIn("EMFILE", {error["errno_name"] for error in refused})
        for number in first:
            self.send(frame(number, END))
        self.wait_for(self.runs_again, "runs are served again")

    def runs_again(self) -> bool:
        """Whether a run is served, and not refused."""
        self.send(frame(99, RUN, self.request(["true"], started=False)))
        self.left.clear()
        self.until(99, END)
        self.send(frame(99, END))
        return any(one[:2] == (99, RESULT) for one in self.left)


class InFlight(StreamCase):
    """The kernel refuses to pass descriptors on where their user has more on the way than the sender may have open."""

    def setUp(self) -> None:
        super().setUp()
        self.greet()

    def before_engine(self) -> List[str]:
        if os.geteuid() != 0:
            return []
        if not shutil.which("setpriv"):
            self.skipTest("needs:setpriv as root")
        return ["setpriv", "--bounding-set=-sys_resource,-sys_admin", "--inh-caps=-all"]  # with these the kernel lets them through

    def test_descriptors_of_which_too_many_are_on_their_way_are_no_silence(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            for _ in range(4):
                socket.send_fds(ours, [b"x"], [self.process.stdin.fileno()] * 60)  # type: ignore[union-attr]
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (200, 200))
            self.send(frame(1, RUN, self.request(["true"], stdin="descriptor")))
            error = json.loads(self.until(1, FAILED))["error"]
            self.until(1, END)
        self.assertIn("too many", error["message"])
        self.assertEqual(error["errno_name"], "ETOOMANYREFS")
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
