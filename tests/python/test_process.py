# SPDX-License-Identifier: Apache-2.0
"""belljar.spawn(): streams while the command runs, signals, the end."""

from __future__ import annotations

import gc
import select
import signal
import threading
import unittest
import warnings

import belljar
from package_case import PackageCase, open_fds, tearDownModule  # noqa: F401

TALK = "echo ready; while read line; do echo got $line; done; echo bye >&2"


class Streams(PackageCase):
    """stdin, stdout, stderr."""

    def test_a_conversation(self) -> None:
        with belljar.spawn(self.sh(TALK), stdin=belljar.PIPE) as process:
            assert process.stdin and process.stdout and process.stderr
            self.assertEqual(process.stdout.read(100), b"ready\n")
            self.assertIsNone(process.poll())
            self.assertIsNone(process.returncode)
            process.stdin.write(b"one\n")
            self.assertEqual(process.stdout.read(100), b"got one\n")
            process.stdin.close()
            self.assertEqual((process.stdout.readall(), process.stderr.readall()), (b"", b"bye\n"))  # type: ignore[attr-defined]
            result = process.wait()
        self.assertEqual((result.outcome, result.stdout, result.stderr), ("exited", "ready\ngot one\n", "bye\n"))
        self.assertEqual((process.returncode, process.poll(), process.wait()), (0, result, result))

    def test_lines_can_be_iterated(self) -> None:
        with belljar.spawn(["seq", "3"]) as process:
            assert process.stdout
            self.assertEqual(list(process.stdout), [b"1\n", b"2\n", b"3\n"])

    def test_without_pipe_there_is_no_stdin(self) -> None:
        with belljar.spawn(["cat"]) as process:
            self.assertIsNone(process.stdin)
            self.assertEqual(process.wait().stdout, "")
        with belljar.spawn(["cat"], input=b"x" * 100_000, text=False) as process:
            assert process.stdout
            self.assertEqual(process.stdout.readall(), b"x" * 100_000)  # type: ignore[attr-defined]
            self.assertEqual(process.wait().stdout, b"x" * 100_000)

    def test_output_waits_for_its_reader(self) -> None:
        with belljar.spawn(["head", "-c", "3000000", "/dev/zero"], output="4M") as process:
            assert process.stdout
            with self.assertRaises(TimeoutError):
                process.wait(0.2)
            self.assertEqual(len(process.stdout.readall()), 3_000_000)  # type: ignore[attr-defined]
            self.assertEqual(process.wait().stdout_bytes, 3_000_000)

    def test_output_is_redacted(self) -> None:
        with belljar.spawn(["echo", "a hushed word"], redact=["hushed"]) as process:
            assert process.stdout
            self.assertNotIn(b"hushed", process.stdout.readall())  # type: ignore[attr-defined]

    def test_a_callback_is_called_by_wait(self) -> None:
        seen = []
        hear = lambda stream, data: seen.append((stream, data, threading.get_ident()))  # noqa: E731
        with belljar.spawn("echo a; echo b >&2", shell=True, on_output=hear) as process:
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
            first = process.stdout.read(100)
            self.assertEqual(first.split(), [b"24", b"80"])
            process.resize(50, 132)
            self.assertEqual(process.stdout.read(100).split(), [b"50", b"132"])
            self.assertEqual(process.wait().outcome, "exited")


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
            process.stdout.read(100)
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.stdout.read(100), b"usr1\n")
            process.terminate()
            result = process.wait()
            self.assertEqual((result.outcome, result.signal, result.returncode), ("signaled", "SIGTERM", -15))
            process.send_signal(signal.SIGUSR1)
        with belljar.spawn(self.sh("trap '' TERM; echo ready; while :; do sleep 0.01; done")) as process:
            process.kill()
            self.assertEqual(process.wait().returncode, -9)

    def test_cancel_returns_the_result(self) -> None:
        with belljar.spawn(self.sh("echo a; exec sleep 1000"), timeout=None) as process:
            assert process.stdout
            process.stdout.read(100)
            result = process.cancel()
        self.assertEqual((result.outcome, result.killed, result.stdout), ("cancelled", True, "a\n"))
        self.assertEqual(self.marked(), [])

    def test_leaving_the_context_ends_the_run(self) -> None:
        with belljar.spawn(self.sh("echo a; sleep 1000"), timeout=None, stdin=belljar.PIPE) as process:
            assert process.stdout and process.stdin
            process.stdout.read(100)
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
        process.stdout.read(100)
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
