# SPDX-License-Identifier: Apache-2.0
"""`belljar engine`: every frame, every option, every error, and what ends what."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import time
import unittest
from typing import Any, Optional, Tuple

from harness import census, wire
from harness.case import every_way
from harness.engine_case import EngineCase
from harness.result import check_result
from harness.wire import CANCEL, EVENT, FAILED, CAPTURED, OUTPUT, RESIZE, RESULT, RUN, SIGNAL, STARTED


class SocketCase(EngineCase):
    """Runs in jars of their own."""

    def assert_exited(self, outcome: wire.Outcome, code: int = 0) -> None:
        """The run ended by itself."""
        self.assertEqual((outcome.result["outcome"], outcome.result["exit_code"]), ("exited", code), outcome.frames)


@every_way
class Runs(SocketCase):
    """A run in a jar of its own."""

    def test_frames_come_in_order_and_the_result_is_the_contracts(self) -> None:
        outcome = self.engine.run(self.script("echo out; echo err >&2; exit 3"))
        self.assertEqual(outcome.kinds, [STARTED, CAPTURED, CAPTURED, RESULT])
        self.assert_exited(outcome, 3)
        result = outcome.result
        self.assertEqual((outcome.stdout, outcome.stderr), (b"out\n", b"err\n"))
        self.assertEqual((result["stdout"], result["stderr"], result["stdout_bytes"]), (None, None, 4))
        check_result(result)
        started = outcome.frames[0].json
        self.assertEqual(started["argv"], self.script("echo out; echo err >&2; exit 3"))
        self.assertEqual(started["workdir"], result["workdir"])
        self.assertEqual(started["limits"]["timeout_ms"], 30000)
        self.assertEqual(started["limits"]["memory"], 512 << 20)

    def test_a_shell_string_runs(self) -> None:
        outcome = self.engine.run(["echo $((1 + 2))"], shell=True)
        self.assertEqual(outcome.stdout, b"3\n")

    def test_one_that_is_not_found_fails_as_a_result(self) -> None:
        outcome = self.engine.run(["/no/such/program"])
        self.assertEqual(outcome.kinds, [RESULT])
        self.assertEqual((outcome.result["outcome"], outcome.result["error"]["stage"]), ("failed", "exec"))

    def test_output_comes_as_it_is_written_and_in_whole_characters(self) -> None:
        channel = self.engine.start(self.script(r"printf 'a\303'; read x; printf '\244b'"), sink="frames", stdin="descriptor",
                                    fds=[self.pipe_reader()])
        self.assertEqual(channel.read().kind, STARTED)
        self.assertEqual(channel.read().payload[8:], b"a")
        os.write(self.writer, b"go\n")
        outcome = wire.finish(channel)
        self.assertEqual(outcome.streamed(), "äb".encode())
        self.assertEqual(outcome.stdout, "aäb".encode())

    def pipe_reader(self) -> int:
        """A pipe for standard input; its writing end is self.writer."""
        reader, self.writer = os.pipe()
        self.addCleanup(os.close, self.writer)
        self.addCleanup(os.close, reader)
        return reader

    def test_a_limit_is_told_when_it_is_reached_to_those_who_ask(self) -> None:
        script = self.script("echo 12345; read x; exec sleep 1000")
        options = {"sink": "frames", "stdin": "descriptor", "keys": {"output": 3, "timeout": 1}}
        channel = self.engine.start(script, events=True, fds=[self.pipe_reader()], **options)
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        event = channel.read()  # the command waits meanwhile
        self.assertEqual((event.kind, event.json["event"], event.json["limit"]["name"]), (EVENT, "limit", "output"))
        os.write(self.writer, b"go\n")
        outcome = wire.finish(channel)
        self.assertEqual(outcome.kinds, [EVENT, CAPTURED, RESULT])
        told = [event.json, outcome.frames[0].json]
        self.assertEqual([one["limit"]["name"] for one in told], ["output", "timeout"])
        # The peak of what can still grow is final only in the result.
        found = {hit["name"]: {**hit, "peak": 0} for hit in outcome.result["limits_hit"]}
        self.assertEqual(found, {one["limit"]["name"]: {**one["limit"], "peak": 0} for one in told})
        outcome = self.engine.run(["echo", "12345"], keys={"output": 3})
        self.assertEqual(outcome.kinds, [STARTED, CAPTURED, RESULT])

    def test_cancel_ends_it_with_the_signal_and_after_the_grace_with_another(self) -> None:
        channel = self.engine.start(self.script("trap 'echo term; exit 5' TERM; echo up; while :; do sleep 0.05; done"), sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.send(CANCEL, wire.number(0))
        outcome = wire.finish(channel)
        self.assertEqual(outcome.result["outcome"], "cancelled")
        self.assertIn(b"term", outcome.streamed())
        channel = self.engine.start(self.script("trap '' TERM; echo up; while :; do sleep 0.05; done"), {"grace": "100ms"}, sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.send(CANCEL, wire.number(signal.SIGTERM))
        result = wire.finish(channel).result
        self.assertEqual((result["outcome"], result["signal"]), ("cancelled", "SIGKILL"))

    def test_a_second_cancel_waits_for_no_grace(self) -> None:
        channel = self.engine.start(self.script("trap '' TERM; echo up; while :; do sleep 0.05; done"), {"grace": "1h"}, sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.send(CANCEL, wire.number(0)).send(CANCEL, wire.number(0))
        self.assertEqual(wire.finish(channel).result["outcome"], "cancelled")

    def test_a_closed_channel_kills_the_run_at_once(self) -> None:
        channel = self.engine.start(self.script("trap '' TERM; echo up; while :; do sleep 0.05; done"), {"grace": "1h"}, sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.close()
        self.wait_for(lambda: not census.marked(self.marker), "the run is gone")

    def test_a_host_that_leaves_takes_everything_along(self) -> None:
        channels = [self.engine.start(self.script("trap '' TERM; (setsid sleep 1000 &); echo up; sleep 1000"), sink="frames") for _ in range(5)]
        for channel in channels:
            self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        self.assertEqual(self.engine.close(), 0)
        self.assertEqual(census.marked(self.marker), [])

    def test_an_engine_that_is_killed_takes_everything_along(self) -> None:
        channels = [self.engine.start(self.script("trap '' TERM; (setsid sleep 1000 &); echo up; sleep 1000"), sink="frames") for _ in range(3)]
        for channel in channels:
            self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        os.kill(self.engine.pid, signal.SIGKILL)
        self.engine.wait()
        self.wait_for(lambda: not census.marked(self.marker), "everything is gone")
        self.assertIsNone(channels[0].read())


@every_way
class Streams(SocketCase):
    """Where bytes come from and go to."""

    def pipe(self) -> Tuple[int, int]:
        """A pipe whose ends are closed at the end of the test, where they still are open."""
        ends = os.pipe()
        for end in ends:
            self.addCleanup(self._close, end)
        return ends

    @staticmethod
    def _close(descriptor: int) -> None:
        try:
            os.close(descriptor)
        except OSError:
            pass

    def test_pipes_are_written_as_output_comes_and_end_with_the_run(self) -> None:
        out_reader, out_writer = self.pipe()
        err_reader, err_writer = self.pipe()
        channel = self.engine.start(
            self.script("echo one; echo two >&2; head -c 300000 /dev/zero"), {"output": "1M"}, sink="pipes", fds=[out_writer, err_writer]
        )
        os.close(out_writer)
        os.close(err_writer)
        data = b""
        while True:
            part = os.read(out_reader, 65536)
            if not part:
                break
            data += part
        self.assertEqual(data, b"one\n" + bytes(300000))
        self.assertEqual(os.read(err_reader, 100), b"two\n")
        self.assertEqual(os.read(err_reader, 100), b"")
        outcome = wire.finish(channel)
        self.assert_exited(outcome)
        self.assertEqual(outcome.stdout, data)

    def test_what_pipes_hold_is_not_lost_when_the_channel_is_closed_after_the_result(self) -> None:
        reader, writer = self.pipe()
        err_reader, err_writer = self.pipe()
        channel = self.engine.start(self.script("head -c 90000 /dev/zero"), sink="pipes", capture=False, fds=[writer, err_writer])
        os.close(writer)
        os.close(err_writer)
        self.assert_exited(wire.finish(channel))
        self.assertEqual(sum(len(part) for part in iter(lambda: os.read(reader, 65536), b"")), 90000)

    def test_a_pipe_that_nobody_reads_any_more_ends_the_run(self) -> None:
        reader, writer = self.pipe()
        err_reader, err_writer = self.pipe()
        channel = self.engine.start(self.script("while echo x; do :; done; sleep 1000"), sink="pipes", fds=[writer, err_writer])
        os.close(writer)
        os.close(err_writer)
        os.read(reader, 1)
        os.close(reader)
        result = wire.finish(channel).result
        self.assertEqual((result["outcome"], result["error"]["stage"]), ("cancelled", "output"))

    def test_standard_input_is_relayed_from_pipes_files_and_sockets(self) -> None:
        reader, writer = self.pipe()
        os.write(writer, b"from a pipe")
        os.close(writer)
        self.assertEqual(self.engine.run(["cat"], stdin="descriptor", fds=[reader]).stdout, b"from a pipe")
        (self.work / "file").write_bytes(b"from a file")
        with open(self.work / "file", "rb") as file:
            self.assertEqual(self.engine.run(["cat"], stdin="descriptor", fds=[file.fileno()]).stdout, b"from a file")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(b"from a socket")
            ours.shutdown(socket.SHUT_WR)
            self.assertEqual(self.engine.run(["cat"], stdin="descriptor", fds=[theirs.fileno()]).stdout, b"from a socket")
        for nothing in ("null", "none"):
            self.assertEqual(self.engine.run(["wc", "-c"], stdin=nothing).stdout, b"0\n")

    def test_merged_streams_come_in_the_order_they_were_written(self) -> None:
        outcome = self.engine.run(self.script("echo 1; echo 2 >&2; echo 3; echo 4 >&2"), merge=True, sink="frames")
        self.assertEqual((outcome.stdout, outcome.stderr), (b"1\n2\n3\n4\n", b""))
        self.assertEqual(outcome.streamed(), b"1\n2\n3\n4\n")
        self.assertEqual(outcome.result["stderr_bytes"], 0)

    def test_further_descriptors_are_the_commands_3_and_4_and_no_others_are(self) -> None:
        reader, writer = self.pipe()
        second_reader, second_writer = self.pipe()
        channel = self.engine.start(
            self.script("echo three >&3; echo four >&4; ls /proc/self/fd | wc -l"), extra=2, fds=[writer, second_writer]
        )
        os.close(writer)
        os.close(second_writer)
        outcome = wire.finish(channel)
        self.assert_exited(outcome)
        self.assertEqual((os.read(reader, 100), os.read(second_reader, 100)), (b"three\n", b"four\n"))
        self.assertEqual(os.read(reader, 100), b"", "the engine keeps a copy")
        self.assertEqual(outcome.stdout.strip(), b"6", "0, 1, 2, 3, 4 and the directory itself")

    def test_a_terminal_has_the_size_that_was_asked_for_and_takes_another(self) -> None:
        script = "stty size; trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.05; done"
        channel = self.engine.start(self.script(script), pty=True, rows=10, columns=33, sink="frames")
        self.assertEqual(channel.read().kind, STARTED)
        data = b""
        while b"up" not in data:
            data += channel.read().payload[8:]
        self.assertIn(b"10 33", data)
        channel.send(RESIZE, wire.size(20, 44))
        outcome = wire.finish(channel)
        self.assert_exited(outcome)
        self.assertIn(b"20 44", outcome.streamed())

    def test_a_signal_reaches_the_command_and_ends_nothing(self) -> None:
        channel = self.engine.start(self.script("trap 'echo usr1; exit 0' USR1; echo up; while :; do sleep 0.05; done"), sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        channel.send(SIGNAL, wire.number(signal.SIGUSR1))
        outcome = wire.finish(channel)
        self.assert_exited(outcome)
        self.assertEqual(outcome.streamed(), b"usr1\n")

    def test_a_slow_reader_slows_its_own_run_only(self) -> None:
        slow = self.engine.start(self.script("head -c 5000000 /dev/zero"), {"output": "8M"}, sink="frames", capture=False)
        for _ in range(10):
            self.assertEqual(self.engine.run(["echo", "quick"]).stdout, b"quick\n")
        memory = self.memory()
        self.assertLess(memory, 64 << 20)
        outcome = wire.finish(slow)
        self.assert_exited(outcome)
        self.assertEqual(outcome.streamed(), bytes(5000000))

    def memory(self) -> int:
        """What the engine holds, in bytes."""
        with open(f"/proc/{self.engine.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    def test_the_cap_holds_for_frames_and_for_what_is_kept(self) -> None:
        outcome = self.engine.run(self.script("head -c 5000 /dev/zero"), {"output": 1000, "keep": "both"}, sink="frames")
        self.assertEqual((len(outcome.streamed()), len(outcome.stdout)), (1000, 1000))
        self.assertTrue(outcome.result["truncated"])
        self.assertEqual(outcome.result["elided_at"]["stdout"], 500)

    def test_arguments_that_are_no_utf8_arrive_and_are_told_exactly(self) -> None:
        outcome = self.engine.run(["printf", "%s", os.fsdecode(b"a\xff\xc3b")])
        self.assertEqual(outcome.stdout, b"a\xff\xc3b")
        self.assertEqual(os.fsencode(outcome.frames[0].json["argv"][2]), b"a\xff\xc3b")

    def test_secrets_of_the_environment_are_redacted_by_default(self) -> None:
        request = self.engine.request(["printf", "%s", "hunter2hunter2"])
        request["environ"].append("API_TOKEN=hunter2hunter2")
        outcome = wire.finish(self.engine.channel().send(RUN, request))
        self.assertNotIn(b"hunter2", outcome.stdout)
        request["keys"]["redact_env"] = False
        outcome = wire.finish(self.engine.channel().send(RUN, request))
        self.assertEqual(outcome.stdout, b"hunter2hunter2")


class Many(SocketCase):
    """Many at a time, and nothing left."""

    def test_a_hundred_runs_at_once_and_no_descriptor_is_left(self) -> None:
        self.engine.run(["/bin/true"])
        channels = [self.engine.start(["sh", "-c", f"sleep 0.2; echo {number}"]) for number in range(100)]
        for number, channel in enumerate(channels):
            outcome = wire.finish(channel)
            self.assert_exited(outcome)
            self.assertEqual(outcome.stdout, b"%d\n" % number)
        # What is left beside the engine's own: one jar made ahead.
        self.wait_for(lambda: self.engine.descriptors() < 24, f"descriptors are closed: {self.engine.descriptors()}")

    def test_no_descriptor_leaks_over_many_runs_of_every_kind(self) -> None:
        def some() -> None:
            self.engine.run(["/bin/true"])
            self.engine.run(["/no/such"])
            self.engine.run(["/bin/true"], {"timeout": "bad"})
            reader, writer = os.pipe()
            self.engine.run(["/bin/true"], fds=[writer, writer, writer], sink="pipes", extra=1)
            self.engine.run(["/bin/true"], fds=[reader], stdin="descriptor")
            self.engine.run(["/bin/true"], fds=[reader, writer])
            os.close(reader)
            os.close(writer)
            channel = self.engine.start(["sleep", "1000"])
            channel.read()
            channel.close()

        some()
        self.wait_for(lambda: self.settled() is not None, "settled")
        before = self.settled()
        for _ in range(10):
            some()
        self.wait_for(lambda: self.settled() == before, f"{before} descriptors again, not {self.settled()}")

    def settled(self) -> Optional[int]:
        """How many descriptors there are, when that does not change."""
        first = self.engine.descriptors()
        time.sleep(0.15)
        return first if first == self.engine.descriptors() else None

    def test_when_descriptors_run_out_new_channels_are_told_and_others_live(self) -> None:
        resource.prlimit(self.engine.pid, resource.RLIMIT_NOFILE, (120, 120))
        channels = [self.engine.start(["sleep", "1000"]) for _ in range(30)]
        outcomes = []
        alive = []
        for channel in channels:
            first = channel.read()
            (alive if first.kind == STARTED else outcomes).append((channel, first))
        self.assertTrue(alive)
        self.assertTrue(outcomes)
        # Some find out only while they are made, in one way or another; whoever comes later is told at once.
        errors = [frame.json["error"] for _, frame in outcomes]
        self.assertTrue(all(error["message"] for error in errors))
        self.assertEqual((outcomes[-1][1].kind, errors[-1]["errno_name"]), (FAILED, "EMFILE"))
        for channel, _ in alive:
            channel.send(CANCEL, wire.number(signal.SIGKILL))
            result = wire.finish(channel).result
            self.assertTrue(result["outcome"] == "cancelled" or result["error"], result)
        # A run's descriptors are closed soon after its result.
        self.wait_for(lambda: self.engine.run(["/bin/true"]).last.kind == wire.RESULT, "a run is served again")

    def test_signals_of_a_terminal_are_not_for_the_engine(self) -> None:
        channel = self.engine.start(self.script("echo up; read x; echo $x"), sink="frames", stdin="descriptor", fds=[0])
        self.assertEqual(channel.read().kind, STARTED)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE):
            os.kill(self.engine.pid, number)
        self.assert_exited(self.engine.run(["/bin/true"]))
        self.assertEqual(os.getsid(self.engine.pid), self.engine.pid)
        channel.close()

    def test_the_commands_have_all_signals_back(self) -> None:
        outcome = self.engine.run(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"])
        self.assertEqual(set(outcome.stdout.split()[1::2]), {b"0000000000000000"})

    def test_what_this_host_can_enforce_is_told_beside_a_run(self) -> None:
        channel = self.engine.start(["sleep", "1000"])
        channel.read()
        outcome = wire.finish(self.engine.channel().send(wire.ASK, {"version": wire.VERSION, "what": "capabilities"}))
        self.assertEqual(outcome.kinds, [wire.ANSWER])
        printed = self.belljar("doctor", "--json").stdout
        self.assertEqual(set(outcome.last.json), set(json.loads(printed)))
        channel.send(CANCEL, wire.number(signal.SIGKILL))
        self.assertEqual(wire.finish(channel).result["outcome"], "cancelled")

    def test_without_a_host_it_says_why_it_does_not_begin(self) -> None:
        done = self.belljar("engine")
        self.assert_failed(done, "descriptor 3", "belljar run")

    def test_what_is_no_channel_is_ignored(self) -> None:
        reader, writer = os.pipe()
        self.engine.send_door(b"c", [reader])
        self.engine.send_door(b"c")
        self.engine.send_door(b"x", [reader])
        self.engine.send_door(b"cc", [reader, writer])
        os.close(reader)
        os.close(writer)
        self.assert_exited(self.engine.run(["/bin/true"]))


class Requests(SocketCase):
    """What is malformed ends its channel, and nothing else."""

    def test_what_is_no_request_is_refused_and_says_why(self) -> None:
        good = self.engine.request(["/bin/true"])
        bad = {
            "not JSON": (b"{", "ends"),
            "no object": (b"[]", "object"),
            "another version": ({**good, "version": 1}, "version 2"),
            "no version": ({"run": good["run"]}, "version"),
            "an unknown key": ({**good, "extra": 1}, "'extra'"),
            "an unknown key of run": ({**good, "run": {"argv": ["x"], "sinc": "none"}}, "'sinc'"),
            "no command": ({**good, "run": {"argv": []}}, "argv"),
            "no run": ({key: value for key, value in good.items() if key != "run"}, "argv"),
            "another type": ({**good, "run": {"argv": "true"}}, "argv"),
            "a bad word": ({**good, "run": {"argv": ["x"], "sink": "drain"}}, "drain"),
            "too many descriptors": ({**good, "run": {"argv": ["x"], "extra": 65}}, "64"),
            "a NUL": (b'{"version":2,"run":{"argv":["a\\u0000b"]}}', "NUL"),
            "two words for a shell": ({**good, "run": {"argv": ["a", "b"], "shell": True}}, "shell"),
            "a key twice": (b'{"version":2,"version":2}', "version"),
        }
        for name, (payload, word) in bad.items():
            with self.subTest(name):
                outcome = wire.finish(self.engine.channel().send(RUN, payload))
                self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "engine"))
                self.assertIn(word, outcome.error["message"])
        self.assert_exited(self.engine.run(["/bin/true"]))

    def test_a_policy_that_is_wrong_names_the_key_and_nothing_runs(self) -> None:
        cases: Any = (({"timeout": "5x"}, "timeout '5x'"), ({"timout": 5}, "did you mean 'timeout'"), ({"extends": "agent"}, "extends"))
        for keys, words in cases:
            outcome = self.engine.run(["/bin/true"], keys)
            self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "policy"))
            self.assertIn(words, outcome.error["message"])
            self.assertNotIn(":1:", outcome.error["message"])
        for policy, words in (("nope", "preset"), ({"tmeout": 1}, "timeout"), (5, "preset"), ("/no/such.json", "cannot open")):
            outcome = self.engine.run(["/bin/true"], top={"policy": policy})
            self.assertEqual(outcome.error["stage"], "policy")
            self.assertIn(words, outcome.error["message"])

    def test_frames_that_are_no_frames(self) -> None:
        good = wire.frame(RUN, self.engine.request(["/bin/true"]))
        bad = {
            "too long": struct.pack("<IB3x", (5 << 20) + 1, RUN),
            "not zero": good[:5] + b"\1\0\0" + good[8:],
            "an unknown type": wire.frame(200, {}),
            "one of the engine's own": wire.frame(STARTED, {}),
            "a signal without a run": wire.frame(SIGNAL, wire.number(2)),
        }
        for name, data in bad.items():
            with self.subTest(name):
                outcome = wire.finish(self.engine.channel().send_raw(data))
                self.assertEqual((outcome.kinds, outcome.error["stage"]), ([FAILED], "engine"))
        self.assert_exited(self.engine.run(["/bin/true"]))

    def test_frames_that_have_no_place_in_a_run_end_it(self) -> None:
        bad = {
            "a second run": wire.frame(RUN, self.engine.request(["/bin/true"])),
            "no signal": wire.frame(SIGNAL, wire.number(0)),
            "a signal too large": wire.frame(SIGNAL, wire.number(65)),
            "a short signal": wire.frame(SIGNAL, b"\1"),
            "half a size": wire.frame(RESIZE, b"\1\0"),
            "a close": wire.frame(wire.CLOSE),
        }
        for name, data in bad.items():
            with self.subTest(name):
                channel = self.engine.start(self.script("sleep 1000"))
                self.assertEqual(channel.read().kind, STARTED)
                self.assertEqual(wire.finish(channel.send_raw(data)).error["stage"], "engine")
                self.wait_for(lambda: not census.marked(self.marker), "the run is gone")

    def test_descriptors_must_be_as_many_as_the_request_says(self) -> None:
        reader, writer = os.pipe()
        cases: Any = (({}, 1), ({"stdin": "descriptor"}, 0), ({"stdin": "descriptor"}, 2), ({"sink": "pipes"}, 1), ({"extra": 2}, 1), ({}, 100))
        for options, count in cases:
            outcome = self.engine.run(["/bin/true"], fds=[writer] * count, **options)
            self.assertEqual(outcome.error["stage"], "engine", (options, count))
        data = wire.frame(RUN, self.engine.request(["/bin/true"], stdin="descriptor"))
        channel = self.engine.channel().send_raw(data[:20])
        self.wait_for(lambda: channel.unread_by_peer() == 0, "the engine has taken the first part")
        self.assertIn("middle", wire.finish(channel.send_raw(data[20:], [reader])).error["message"])
        os.close(reader)
        os.close(writer)

    def test_a_frame_may_come_in_pieces(self) -> None:
        channel = self.engine.channel()
        data = wire.frame(RUN, self.engine.request(["echo", "x" * 3000]))
        for at in range(0, len(data), 400):
            channel.send_raw(data[at : at + 400])
        self.assertEqual(wire.finish(channel).stdout, b"x" * 3000 + b"\n")

    def test_policies_by_name_by_file_and_as_an_object(self) -> None:
        (self.work / "p.json").write_text('{"env": {"A": "file"}, "timeout": "7s"}')
        cases: Any = (
            ("strict", "", 10000),
            (str(self.work / "p.json"), "file", 7000),
            ("./p.json", "file", 7000),
            ({"env": {"A": "object"}}, "object", 30000),
            ({"extends": "./p.json"}, "file", 7000),
            (None, "", 30000),
        )
        for policy, value, timeout in cases:
            outcome = self.engine.run(["sh", "-c", "printf %s \"$A\""], top={"policy": policy})
            self.assertEqual(outcome.stdout.decode(), value, policy)
            self.assertEqual(outcome.frames[0].json["limits"]["timeout_ms"], timeout)
        outcome = self.engine.run(["/bin/true"], {"timeout": None, "memory": None})
        self.assertNotIn(512 << 20, outcome.frames[0].json["limits"].values())

    def test_without_a_directory_the_caller_must_name_one(self) -> None:
        outcome = self.engine.run(["/bin/true"], top={"cwd": None})
        self.assertEqual(outcome.result["error"]["stage"], "files")
        self.assert_exited(self.engine.run(["/bin/true"], {"workdir": None}, top={"cwd": None}))


if __name__ == "__main__":
    unittest.main()
