# SPDX-License-Identifier: Apache-2.0
"""belljar.spawn(): streams while the command runs, signals, the end."""

from __future__ import annotations

import gc
import io
import re
import select
import signal
import threading
import unittest
import warnings

from pathlib import Path
from typing import Any, Dict, List, Mapping

import belljar
from belljar import _engine, _wire
from belljar._request import Request
from package_case import PackageCase, engine_pid, open_fds, tearDownModule  # noqa: F401

TALK = "echo ready; while read line; do echo got $line; done; echo bye >&2"


class Streams(PackageCase):
    """stdin, stdout, stderr."""

    def test_a_conversation(self) -> None:
        with belljar.spawn(self.sh(TALK), stdin=belljar.PIPE) as process:
            assert process.stdin and process.stdout and process.stderr
            self.assertEqual(process.stdout.readline(), b"ready\n")
            self.assertIsNone(process.poll())
            self.assertIsNone(process.returncode)
            process.stdin.write(b"one\n")
            self.assertEqual(process.stdout.read1(100), b"got one\n")
            process.stdin.close()
            self.assertEqual((process.stdout.read(), process.stderr.read()), (b"", b"bye\n"))
            result = process.wait()
        self.assertEqual((result.outcome, result.stdout, result.stderr), ("exited", None, None))
        self.assertEqual((result.stdout_bytes, result.stderr_bytes, result.truncated), (14, 4, False))
        self.assertEqual((process.returncode, process.poll(), process.wait()), (0, result, result))

    def test_lines_can_be_iterated(self) -> None:
        with belljar.spawn(["seq", "3"]) as process:
            assert process.stdout
            self.assertEqual(list(process.stdout), [b"1\n", b"2\n", b"3\n"])

    def test_without_pipe_there_is_no_stdin(self) -> None:
        with belljar.spawn(["cat"]) as process:
            self.assertIsNone(process.stdin)
            self.assertEqual(process.wait().stdout_bytes, 0)
        with belljar.spawn(["cat"], input=b"x" * 100_000, text=False, capture=True) as process:
            assert process.stdout
            self.assertEqual(process.stdout.read(), b"x" * 100_000)
            self.assertEqual(process.wait().stdout, b"x" * 100_000)

    def test_output_waits_for_its_reader(self) -> None:
        with belljar.spawn(["head", "-c", "3000000", "/dev/zero"]) as process:
            assert process.stdout
            with self.assertRaises(TimeoutError):
                process.wait(0.2)
            self.assertEqual(len(process.stdout.read()), 3_000_000)
            self.assertEqual(process.wait().stdout_bytes, 3_000_000)

    def test_output_is_redacted(self) -> None:
        with belljar.spawn(["echo", "a hushed word"], redact=["hushed"]) as process:
            assert process.stdout
            self.assertNotIn(b"hushed", process.stdout.read())

    def test_a_callback_is_called_by_wait(self) -> None:
        seen = []
        hear = lambda stream, data: seen.append((stream, data, threading.get_ident()))  # noqa: E731
        with belljar.spawn("echo a; echo b >&2", shell=True, on_output=hear, capture=True) as process:
            self.assertIsNone(process.stdout)
            result = process.wait()
        me = threading.get_ident()
        self.assertEqual(sorted(seen), [("stderr", b"b\n", me), ("stdout", b"a\n", me)])
        self.assertEqual(result.stdout, "a\n")

    def test_an_exception_of_the_callback_ends_the_run(self) -> None:
        def fail(_: str, __: bytes) -> None:
            raise KeyError("mine")

        with belljar.spawn(self.sh("echo a; sleep 1000"), on_output=fail, timeout=None) as process:
            with self.assertRaises(KeyError):
                process.wait()
            self.assertEqual(self.marked(), [])
            self.assertEqual(process.wait().outcome, "cancelled")

    def test_a_terminal_and_its_size(self) -> None:
        script = "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.01; done"
        with belljar.spawn(self.sh(script), pty=True) as process:
            assert process.stdout
            first = process.stdout.readline()
            self.assertEqual(first.split(), [b"24", b"80"])
            process.resize(50, 132)
            self.assertEqual(process.stdout.readline().split(), [b"50", b"132"])
            self.assertEqual(process.wait().outcome, "exited")


def lives_on(script: str) -> str:
    """The script, and then a wait for SIGUSR1."""
    return f"trap 'exit 7' USR1; {script}; while :; do sleep 0.01; done"


class Limits(PackageCase):
    """What a spawned run may do, and what its streams do where a limit is reached."""

    def limits(self, is_spawn: bool = True, **options: Any) -> Dict[str, Any]:
        """What the engine puts in force, as its frame STARTED says."""
        request = Request(["cat"], {"stdin": belljar.PIPE, **options} if is_spawn else options, is_spawn=is_spawn)
        request._run["started"] = True
        with request:
            channel = _engine.open_channel(request.run_frame(), request.fds)
        try:
            kind, payload, _ = channel.answer()
            self.assertEqual(kind, _wire.STARTED)
            found: Dict[str, Any] = _wire.parse(payload)["limits"]
            return found
        finally:
            channel.hang_up()
            channel.drain()
            channel.close()
            request.abandon()

    def test_only_memory_is_limited_unless_somebody_says_so(self) -> None:
        found = self.limits()
        self.assertEqual((found["timeout_ms"], found["output"], found["memory"]), (None, None, 512 << 20))
        found = self.limits(is_spawn=False)
        self.assertEqual((found["timeout_ms"], found["output"], found["memory"]), (30_000, 100 << 10, 512 << 20))
        self.assertIsNone(self.limits(is_spawn=False, capture=False)["output"])
        self.assertEqual(self.limits(capture=True)["output"], 100 << 10)
        self.assertEqual(self.limits(timeout=7, output=9)["timeout_ms"], 7000)
        self.assertEqual(self.limits(timeout=7, output=9)["output"], 9)
        (self.work / "policy.json").write_text('{"timeout": "5s", "output": "1M"}')
        for policy in ("./policy.json", {"timeout": "5s", "output": "1M"}):
            found = self.limits(policy=policy)
            self.assertEqual((found["timeout_ms"], found["output"]), (5000, 1 << 20))

    def test_in_a_jar_the_jars_own_limits_hold(self) -> None:
        with belljar.Jar() as jar, jar.spawn(["head", "-c", "300000", "/dev/zero"]) as process:
            assert process.stdout
            self.assertEqual(len(process.stdout.read()), 300_000)
            self.assertEqual(process.wait().truncated, False)
        with belljar.Jar(timeout=0.1, output=10) as jar, jar.spawn("head -c 100 /dev/zero; sleep 1000", shell=True) as process:
            assert process.stdout
            self.assertEqual(len(process.stdout.read()), 10)
            self.assertEqual(process.wait().outcome, "timeout")

    def test_a_cap_ends_the_streams_of_a_run_that_goes_on(self) -> None:
        with belljar.spawn(self.sh(lives_on("echo early >&2; sleep 0.1; head -c 1000000 /dev/zero; touch all")), output=1000) as process:
            assert process.stdout and process.stderr
            self.assertEqual((len(process.stdout.read()), process.stderr.read()), (1000 - 6, b"early\n"))
            self.wait_for((self.work / "all").exists, "the command can write on")
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGUSR1)
            result = process.wait()
        self.assertEqual((result.exit_code, result.truncated, result.stdout_bytes), (7, True, 1_000_000))
        self.assertEqual([hit["name"] for hit in result.limits_hit], ["output"])

    def test_a_limit_is_told_when_it_is_reached(self) -> None:
        events = []
        with belljar.spawn(self.sh(lives_on("echo 12345")), output=3, on_event=events.append) as process:
            assert process.stdout
            self.assertEqual(process.stdout.read(), b"123")
            self.wait_for(lambda: process.poll() or events, "the limit is told while the command runs")
            self.assertEqual((process.poll(), [event["limit"]["name"] for event in events]), (None, ["output"]))
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.wait().limits_hit[0]["limit"], events[0]["limit"]["limit"])
        belljar.run(["echo", "123"], output=1, on_event=events.append)
        self.assertEqual([(event["event"], event["limit"]["limit"]) for event in events], [("limit", 3), ("limit", 1)])

        def fail(event: Any) -> None:
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            belljar.run(self.sh(lives_on("echo 12345")), output=3, on_event=fail, timeout=None)

    def test_a_cap_of_one_stream_ends_that_stream_alone(self) -> None:
        script = "echo 12345 >&2; echo a; while read x; do echo $x; done"
        with belljar.spawn(self.sh(script), stdin=belljar.PIPE, output={"stdout": None, "stderr": 3}) as process:
            assert process.stdin and process.stdout and process.stderr
            self.assertEqual((process.stderr.read(), process.stdout.readline()), (b"123", b"a\n"))
            process.stdin.write(b"b\n")
            self.assertEqual(process.stdout.readline(), b"b\n")
        result = belljar.run("echo 12345; echo 12345 >&2", shell=True, output={"stdout": 2, "stderr": "4"})
        self.assertEqual((result.stdout, result.stderr), ("12", "1234"))
        self.assertRegex(result.limits_hit[0]["evidence"], "stdout.*stderr|stderr.*stdout")
        wrong: List[Mapping[str, Any]] = [{"stdout": 3}, {"stdout": 3, "stdin": 4}, {"stdout": 3, "stderr": "x"}, {"stdout": 1, "stderr": None}]
        for output in wrong:
            with self.assertRaisesRegex(belljar.PolicyError, "output"):
                belljar.run(["true"], output=output)

    def test_a_command_that_has_ended_is_over_before_its_output_is_read(self) -> None:
        # More than one pipe holds, and less than there are between the command and us.
        with belljar.spawn(["head", "-c", "150000", "/dev/zero"]) as process:
            assert process.stdout
            self.assertEqual(process.wait().outcome, "exited")
            self.assertEqual(len(process.stdout.read()), 150_000)

    def test_a_cap_that_is_met_exactly_ends_nothing(self) -> None:
        with belljar.spawn(self.sh("echo 123; read x; echo 456"), stdin=belljar.PIPE, output=8) as process:
            assert process.stdout and process.stdin
            self.assertEqual(process.stdout.readline(), b"123\n")
            process.stdin.write(b"\n")
            self.assertEqual(process.stdout.read(), b"456\n")
            self.assertEqual((process.wait().truncated, process.wait().limits_hit), (False, []))

    def test_a_cap_can_end_the_run(self) -> None:
        with belljar.spawn(self.sh(lives_on("echo 1234567890")), output=4, overflow="kill") as process:
            assert process.stdout
            self.assertEqual((process.stdout.read(), process.wait().outcome), (b"1234", "output"))

    def test_a_callback_hears_no_more_than_the_cap_and_the_result_comes(self) -> None:
        seen = []
        hear = lambda stream, data: seen.append(data)  # noqa: E731
        with belljar.spawn(["head", "-c", "1000000", "/dev/zero"], output=1000, on_output=hear) as process:
            result = process.wait()
        self.assertEqual((len(b"".join(seen)), result.truncated, result.stdout), (1000, True, None))

    def test_a_stream_that_the_command_closes_ends(self) -> None:
        with belljar.spawn(self.sh(lives_on("echo last; exec >&-")), stdin=belljar.PIPE) as process:
            assert process.stdout
            self.assertEqual((process.stdout.read(), process.poll()), (b"last\n", None))

    def test_a_stream_that_the_command_does_not_have_ends_at_once(self) -> None:
        for options in ({"stderr_to_stdout": True}, {"pty": True}):
            with self.subTest(options), belljar.spawn(self.sh(lives_on("echo x >&2")), **options) as process:  # type: ignore[arg-type]
                assert process.stdout and process.stderr
                self.assertEqual((process.stderr.read(), process.stdout.readline().strip()), (b"", b"x"))
                self.assertIsNone(process.poll())

    def test_captured_output_needs_a_cap(self) -> None:
        for use in (belljar.spawn, belljar.run):
            with self.assertRaisesRegex(belljar.PolicyError, "captured output needs a limit"):
                use(["true"], output=None, capture=True)

    def test_what_is_kept_is_what_was_asked_for(self) -> None:
        for capture, kept in ((True, "12345"), (None, None), (False, None)):
            with belljar.spawn(["echo", "123456"], capture=capture, output=5) as process:
                assert process.stdout
                self.assertEqual((process.stdout.read(), process.wait().stdout), (b"12345", kept))

    def test_the_engine_keeps_nothing_of_what_passes(self) -> None:
        status = Path(f"/proc/{engine_pid()}/status")
        highest = lambda: int(re.findall(r"VmHWM:\s+(\d+)", status.read_text())[0])  # noqa: E731
        belljar.run(["true"])
        before = highest()
        with belljar.spawn("head -c 40000000 /dev/zero; exec >&-; head -c 40000000 /dev/zero >&2", shell=True) as process:
            assert process.stdout and process.stderr
            total = sum(len(data) for stream in (process.stdout, process.stderr) for data in iter(lambda s=stream: s.read(1 << 20), b""))  # type: ignore[misc]
            self.assertEqual((total, process.wait().outcome), (80_000_000, "exited"))
        self.assertLess(highest() - before, 4000)

    def test_a_line_is_not_read_byte_by_byte(self) -> None:
        calls = lambda: int(re.findall(r"syscr: (\d+)", Path("/proc/self/io").read_text())[0])  # noqa: E731
        with belljar.spawn(["seq", "20000"]) as process:
            self.assertIsInstance(process.stdout, io.BufferedReader)
            assert process.stdout
            before = calls()
            self.assertEqual(sum(1 for _ in iter(process.stdout.readline, b"")), 20_000)
            self.assertLess(calls() - before, 5000)

    def test_a_thread_that_writes_hears_that_nobody_reads(self) -> None:
        found = []

        def write(stream: io.BufferedWriter) -> None:
            try:
                stream.write(bytes(10_000_000))
            except OSError as error:
                found.append(type(error))

        with belljar.spawn(self.sh("echo x; exec sleep 1000"), stdin=belljar.PIPE) as process:
            assert process.stdin and process.stdout
            writer = threading.Thread(target=write, args=(process.stdin,))
            writer.start()
            process.stdout.readline()
        writer.join()
        self.assertEqual(found, [BrokenPipeError])

    def test_a_thread_that_reads_sees_the_end(self) -> None:
        found = []
        ready = threading.Event()

        def read(stream: io.BufferedReader) -> None:
            stream.readline()
            ready.set()
            found.append(stream.read())

        for _ in range(10):
            with belljar.spawn(self.sh(lives_on("echo x"))) as process:
                assert process.stdout
                reader = threading.Thread(target=read, args=(process.stdout,))
                reader.start()
                ready.wait()
            reader.join()
            ready.clear()
        self.assertEqual(found, [b""] * 10)


class End(PackageCase):
    """poll, wait, signals, cancel, leaving the context."""

    def test_wait_with_a_bound_leaves_the_run_alone(self) -> None:
        with belljar.spawn(self.sh("read x"), stdin=belljar.PIPE) as process:
            assert process.stdin
            for timeout in (0, 0.05, -1):
                with self.assertRaises(TimeoutError):
                    process.wait(timeout)
            process.stdin.write(b"\n")
            self.assertEqual(process.wait(timeout=60).outcome, "exited")

    def test_signals_reach_the_run(self) -> None:
        script = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.01; done"
        with belljar.spawn(self.sh(script)) as process:
            assert process.stdout
            process.stdout.readline()
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.stdout.readline(), b"usr1\n")
            process.send_signal(0)
            for wrong in (-1, 65, 1 << 40):
                with self.assertRaises(ValueError):
                    process.send_signal(wrong)
            for rows, cols in ((0, 80), (24, -1), (65536, 80)):
                with self.assertRaises(ValueError):
                    process.resize(rows, cols)
            process.terminate()
            result = process.wait()
            self.assertEqual((result.outcome, result.signal, result.returncode), ("signaled", "SIGTERM", -15))
            process.send_signal(signal.SIGUSR1)
        with belljar.spawn(self.sh("trap '' TERM; echo ready; while :; do sleep 0.01; done")) as process:
            process.kill()
            self.assertEqual(process.wait().returncode, -9)

    def test_cancel_returns_the_result(self) -> None:
        with belljar.spawn(self.sh("echo a; exec sleep 1000"), capture=True) as process:
            assert process.stdout
            process.stdout.readline()
            result = process.cancel()
        self.assertEqual((result.outcome, result.killed, result.stdout), ("cancelled", True, "a\n"))
        self.assertEqual(self.marked(), [])

    def test_leaving_the_context_ends_the_run(self) -> None:
        with belljar.spawn(self.sh("echo a; sleep 1000"), timeout=None, stdin=belljar.PIPE) as process:
            assert process.stdout and process.stdin
            process.stdout.readline()
        self.assertEqual(self.marked(), [])
        self.assertTrue(process.stdout.closed and process.stdin.closed)
        self.assertEqual(process.wait().outcome, "cancelled")
        process.close()

    def test_a_command_that_is_not_there_raises_at_once(self) -> None:
        before = open_fds()
        with self.assertRaises(belljar.StartError) as caught:
            belljar.spawn(["/nonexistent"], stdin=belljar.PIPE)
        self.assertEqual(caught.exception.errno, 2)
        with self.assertRaises(belljar.PolicyError):
            belljar.spawn(["true"], tiemout=3)
        with self.assertRaises(TypeError):
            belljar.spawn(["true"], shell=True)
        del caught
        gc.collect()
        self.assertLessEqual(len(open_fds()), len(before) + 2)  # an engine may have been started

    def test_the_descriptor_tells_when_there_is_news(self) -> None:
        with belljar.spawn(self.sh("read x"), stdin=belljar.PIPE) as process:
            assert process.stdin
            self.assertEqual(select.select([process], [], [], 0), ([], [], []))
            process.stdin.close()
            select.select([process], [], [], 60)
            self.wait_for(process.poll, "the end is seen")

    def test_many_threads_wait_for_one_run(self) -> None:
        results = []
        with belljar.spawn(self.sh("read x"), stdin=belljar.PIPE) as process:
            threads = [threading.Thread(target=lambda: results.append(process.wait())) for _ in range(8)]
            for thread in threads:
                thread.start()
            assert process.stdin
            process.stdin.close()
            for thread in threads:
                thread.join()
        self.assertEqual(len(results), 8)
        self.assertEqual(len({id(result) for result in results}), 1)

    def test_cancel_from_another_thread(self) -> None:
        with belljar.spawn(self.sh("sleep 1000"), timeout=None) as process:
            thread = threading.Timer(0.1, process.cancel)
            thread.start()
            self.assertEqual(process.wait().outcome, "cancelled")
            thread.join()

    def test_nobody_wants_it_any_more(self) -> None:
        process = belljar.spawn(self.sh("echo a; sleep 1000"), timeout=None)
        assert process.stdout
        process.stdout.readline()
        with self.assertWarns(ResourceWarning):
            warnings.simplefilter("always", ResourceWarning)
            del process
            gc.collect()
        self.wait_for(lambda: not self.marked(), "the run is ended")

    def test_no_descriptor_is_left_open(self) -> None:
        belljar.run(["true"])
        before = sorted(open_fds())
        for _ in range(3):
            with belljar.spawn(["cat"], stdin=belljar.PIPE) as process:
                pass
            with belljar.spawn(["cat"], stdin=belljar.PIPE) as process:
                assert process.stdin and process.stdout
                process.stdin.close()
                process.stdout.close()
            with belljar.spawn(["true"]) as process:
                process.wait()
            with self.assertRaises(belljar.StartError):
                belljar.spawn(["/nonexistent"])
        self.assertEqual(sorted(open_fds()), before)

    def test_the_commands_stdin_ends_with_ours_and_no_other_copy(self) -> None:
        with belljar.spawn(["cat"], stdin=belljar.PIPE) as first, belljar.spawn(["cat"], stdin=belljar.PIPE) as second:
            assert first.stdin and second.stdin
            first.stdin.close()
            self.assertEqual(first.wait(60).outcome, "exited")
            second.stdin.close()
            self.assertEqual(second.wait(60).outcome, "exited")


if __name__ == "__main__":
    unittest.main()
