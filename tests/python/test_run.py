# SPDX-License-Identifier: Apache-2.0
"""belljar.run(): arguments, streams, results, errors."""

from __future__ import annotations

import _thread
import array
import contextlib
import dataclasses
import errno
import os
import pickle
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

import belljar
from belljar._program import engine_path
from package_case import PackageCase, open_fds, tearDownModule  # noqa: F401

SECTION_3_KEYS = (
    "version outcome exit_code signal timed_out killed stdout stderr encoding stdout_bytes stderr_bytes truncated"
    " limits_hit usage enforced missing risky error"
).split()


class Arguments(PackageCase):
    """What may be asked for, and what may not."""

    def test_words_arrive_as_they_are(self) -> None:
        words = ["a b", "", "$HOME", "é", "'\"\\"]
        result = belljar.run(["/usr/bin/printf", "%s\\n", *words])
        self.assertEqual(result.stdout.split("\n")[:-1], words)
        self.assertEqual(result.args, ["/usr/bin/printf", "%s\\n", *words])

    def test_bytes_and_paths_are_words_too(self) -> None:
        result = belljar.run([b"/usr/bin/printf", Path("%s"), b"\xff\xfe"], text=False)
        self.assertEqual(result.stdout, b"\xff\xfe")
        self.assertEqual(result.encoding, "utf-8-lossy")

    def test_a_tuple_or_generator_of_words_will_do(self) -> None:
        self.assertEqual(belljar.run(("echo", "x")).stdout, "x\n")
        self.assertEqual(belljar.run(word for word in ("echo", "y")).stdout, "y\n")

    def test_a_string_needs_a_shell_and_a_list_must_not_have_one(self) -> None:
        with self.assertRaises(TypeError):
            belljar.run("echo x")
        with self.assertRaises(TypeError):
            belljar.run(b"echo x")
        with self.assertRaises(TypeError):
            belljar.run(["echo", "x"], shell=True)
        result = belljar.run("echo $((6 * 7)) | cat", shell=True)
        self.assertEqual((result.stdout, result.args), ("42\n", ["echo $((6 * 7)) | cat"]))

    def test_words_that_no_command_can_have(self) -> None:
        for words in ([], ["a\0b"], ["\ud800"]):
            with self.assertRaises(ValueError, msg=repr(words)):
                belljar.run(words)
        with self.assertRaises(TypeError):
            belljar.run([1])
        with self.assertRaises(TypeError):
            belljar.run(Path("/bin/true"))

    def test_cwd_is_the_workdir(self) -> None:
        other = self.base / "other"
        other.mkdir()
        self.assertEqual(belljar.run(["pwd"]).stdout, f"{self.work}\n")
        self.assertEqual(belljar.run(["pwd"], cwd=other).stdout, f"{other}\n")
        self.assertEqual(belljar.run(["pwd"], workdir=str(other)).stdout, f"{other}\n")
        self.assertEqual(belljar.run(["pwd"], workdir=None).stdout, "/workspace\n")
        with self.assertRaises(TypeError):
            belljar.run(["pwd"], cwd=other, workdir=other)

    def test_a_current_directory_that_is_gone(self) -> None:
        gone = self.base / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()
        self.assertEqual(belljar.run(["echo", "x"], workdir=None).stdout, "x\n")

    def test_the_environment_is_the_policy_s_and_follows_the_caller_s(self) -> None:
        os.environ["BJT_NAME"] = "seen"
        self.addCleanup(os.environ.pop, "BJT_NAME", None)
        script = 'echo "${BJT_NAME-unset} ${A-unset}"'
        self.assertEqual(belljar.run(script, shell=True).stdout, "unset unset\n")
        self.assertEqual(belljar.run(script, shell=True, pass_env=["BJT_NAME"], env={"A": "b"}).stdout, "seen b\n")
        os.environ["BJT_NAME"] = "changed"
        self.assertEqual(belljar.run(script, shell=True, pass_env=["BJT_NAME"]).stdout, "changed unset\n")

    def test_keywords_append_to_the_policy_s_lists(self) -> None:
        one, two = self.base / "one", self.base / "two"
        for folder in (one, two):
            folder.mkdir()
            (folder / "file").write_text(folder.name)
        result = belljar.run(["cat", one / "file", two / "file"], policy={"ro": [str(one)]}, ro=[two])
        self.assertEqual(result.stdout, "onetwo")


class Streams(PackageCase):
    """Standard input, output, text and bytes."""

    def test_standard_input_is_empty_unless_given(self) -> None:
        self.assertEqual(belljar.run(["cat"]).stdout, "")
        self.assertEqual(belljar.run(["cat"], stdin=belljar.DEVNULL).stdout, "")
        self.assertEqual(belljar.run(["cat"], stdin=subprocess.DEVNULL).stdout, "")

    def test_input_small_and_large(self) -> None:
        self.assertEqual(belljar.run(["cat"], input="é\n").stdout, "é\n")
        self.assertEqual(belljar.run(["cat"], input="").stdout, "")
        for size in (1, 65536, 65537, 3_000_000):
            data = os.urandom(size)
            result = belljar.run(["cat"], input=data, text=False, output="8M")
            self.assertEqual(result.stdout, data, size)
        self.assertEqual(belljar.run(["cat"], input=bytearray(b"ab")).stdout, "ab")
        self.assertEqual(belljar.run(["cat"], input=memoryview(b"abcd")[1:3]).stdout, "bc")
        with self.assertRaises(TypeError):
            belljar.run(["cat"], input=3)

    def test_input_that_nobody_reads_does_no_harm(self) -> None:
        for size in (100, 1_000_000):
            self.assertEqual(belljar.run(["true"], input=b"x" * size).outcome, "exited")

    def test_large_input_cannot_be_changed_by_the_command(self) -> None:
        result = belljar.run("echo x >&0; wc -c", shell=True, input=b"x" * 100_000)
        self.assertEqual(result.stdout, "100000\n")

    def test_a_descriptor_or_file_as_standard_input(self) -> None:
        (self.work / "data").write_text("from a file")
        with open(self.work / "data") as file:
            self.assertEqual(belljar.run(["cat"], stdin=file).stdout, "from a file")
        reader, writer = os.pipe()
        os.write(writer, b"from a pipe")
        os.close(writer)
        self.assertEqual(belljar.run(["cat"], stdin=reader).stdout, "from a pipe")
        os.close(reader)
        for wrong in (reader, -7):
            with self.assertRaises((OSError, ValueError)):
                belljar.run(["cat"], stdin=wrong)
        with self.assertRaises(ValueError):
            belljar.run(["cat"], stdin=belljar.PIPE)
        with self.assertRaises(ValueError):
            belljar.run(["cat"], stdin=0, input="x")

    def test_text_and_bytes(self) -> None:
        command = ["printf", "a\\377b"]
        self.assertEqual(belljar.run(command, text=False).stdout, b"a\xffb")
        self.assertEqual(belljar.run(command).stdout, "a\ufffdb")
        self.assertEqual(belljar.run(command, errors="surrogateescape").stdout, "a\udcffb")
        with self.assertRaises(UnicodeDecodeError):
            belljar.run(command, errors="strict")
        with self.assertRaises(LookupError):
            belljar.run(command, errors="nonsense")

    def test_stderr_is_apart(self) -> None:
        script = "echo a; echo b >&2; echo c"
        result = belljar.run(script, shell=True)
        self.assertEqual((result.stdout, result.stderr), ("a\nc\n", "b\n"))

    def test_a_terminal(self) -> None:
        result = belljar.run("test -t 0 -a -t 1 -a -t 2 && echo yes", shell=True, pty=True)
        self.assertEqual((result.stdout.strip(), result.stderr), ("yes", ""))

    def test_the_cap_counts_both_streams(self) -> None:
        result = belljar.run("head -c 300000 /dev/zero; head -c 10 /dev/zero >&2", shell=True, output=1000)
        self.assertEqual(len(result.stdout) + len(result.stderr), 1000)
        self.assertEqual((result.stdout_bytes, result.stderr_bytes, result.truncated), (300_000, 10, True))
        self.assertEqual(result.limits_hit[0]["name"], "output")

    def test_one_hundred_kibibytes_are_kept_by_default(self) -> None:
        result = belljar.run("head -c 200000 /dev/zero", shell=True, text=False)
        self.assertEqual((len(result.stdout), result.truncated), (102_400, True))

    def test_both_ends_can_be_kept(self) -> None:
        result = belljar.run("echo begin; head -c 100000 /dev/zero; echo end", shell=True, output=100, keep="both")
        self.assertTrue(result.stdout.startswith("begin") and result.stdout.endswith("end\n"), result.stdout)
        self.assertIsNotNone(result.elided_at)

    def test_large_output_is_whole(self) -> None:
        result = belljar.run(["head", "-c", "20000000", "/dev/zero"], output="32M", text=False)
        self.assertEqual(result.stdout, bytes(20_000_000))

    def test_secrets_of_the_environment_are_redacted(self) -> None:
        os.environ["BJT_TOKEN"] = "s3cret-" + self.marker
        self.addCleanup(os.environ.pop, "BJT_TOKEN", None)
        script = f"echo s3cret-{self.marker}"
        self.assertNotIn("s3cret", belljar.run(script, shell=True).stdout)
        self.assertIn("s3cret", belljar.run(script, shell=True, redact_env=False).stdout)

    def test_a_character_that_the_cap_cuts_is_dropped(self) -> None:
        for keep, kept, exact in (("head", "a", b"a\xc3"), ("tail", "b", b"\xa9b"), ("both", "ab", b"ab")):
            with self.subTest(keep):
                result = belljar.run(["printf", "aéb"], output=2, keep=keep)  # type: ignore[call-overload]
                self.assertEqual((result.stdout, result.encoding, result.truncated), (kept, "utf-8", True))
                result = belljar.run(["printf", "aéb"], output=2, keep=keep, text=False)  # type: ignore[call-overload]
                self.assertEqual((result.stdout, result.encoding), (exact, "utf-8"))
        # What was never a character is not cut.
        result = belljar.run(["printf", r"a\303b"], output=2)
        self.assertEqual((result.stdout, result.encoding), ("a\ufffd", "utf-8-lossy"))


class Callback(PackageCase):
    """on_output."""

    def test_what_cannot_be_called_runs_nothing(self) -> None:
        for name in ("on_output", "on_event", "on_ask"):
            with self.subTest(name=name), self.assertRaisesRegex(TypeError, name):
                belljar.run(["touch", "ran"], **{name: "print"})  # type: ignore[arg-type]
        self.assertFalse(os.path.exists("ran"))

    def test_pieces_come_as_they_are_written_in_this_thread(self) -> None:
        seen = []

        def hear(stream: str, data: bytes) -> None:
            seen.append((stream, data, threading.get_ident()))
            (self.work / "heard").write_text("x")

        # The command goes on only when the first piece was heard.
        script = "echo one; while ! test -e heard; do sleep 0.01; done; echo two >&2"
        result = belljar.run(script, shell=True, on_output=hear)
        me = threading.get_ident()
        self.assertEqual(seen, [("stdout", b"one\n", me), ("stderr", b"two\n", me)])
        self.assertEqual((result.stdout, result.stderr), ("one\n", "two\n"))

    def test_pieces_are_whole_characters_of_at_most_64_kibibytes(self) -> None:
        seen = []
        belljar.run(
            ["/usr/bin/python3", "-c", "print('é' * 200000, end='')"],
            on_output=lambda stream, data: seen.append(data),
            output="1M",
        )
        self.assertEqual(b"".join(seen).decode(), "é" * 200_000)
        for data in seen:
            self.assertLessEqual(len(data), 65536)
            data.decode()

    def test_the_cap_holds_for_what_is_heard(self) -> None:
        count = 0

        def hear(_: str, data: bytes) -> None:
            nonlocal count
            count += len(data)

        result = belljar.run(["head", "-c", "5000000", "/dev/zero"], on_output=hear, output=10)
        self.assertEqual((len(result.stdout), count, result.stdout_bytes), (10, 10, 5_000_000))

    def test_a_slow_callback_slows_the_command_and_loses_nothing(self) -> None:
        count = 0

        def hear(_: str, data: bytes) -> None:
            nonlocal count
            count += len(data)
            time.sleep(0.002)

        result = belljar.run(["head", "-c", "3000000", "/dev/zero"], on_output=hear, output="4M")
        self.assertEqual((count, result.stdout_bytes), (3_000_000, 3_000_000))

    def test_an_exception_ends_the_run_and_comes_out(self) -> None:
        def hear(_: str, data: bytes) -> None:
            raise KeyError(data)

        with self.assertRaises(KeyError) as caught:
            belljar.run(self.sh("echo x; sleep 1000"), on_output=hear, timeout=None, grace=0)
        self.assertEqual(caught.exception.args, (b"x\n",))
        self.assertEqual(self.marked(), [])


class Results(PackageCase):
    """What the result says."""

    def test_every_key_of_the_result_object_is_there(self) -> None:
        result = belljar.run(["true"])
        for key in SECTION_3_KEYS:
            self.assertTrue(hasattr(result, key), key)
        data = result.to_dict()
        self.assertEqual(set(SECTION_3_KEYS) - set(data), set())
        self.assertEqual((data["args"], data["returncode"]), (["true"], 0))
        self.assertEqual(belljar.run(["printf", "\\377"], text=False).to_dict()["stdout_base64"], "/w==")

    def test_a_result_is_frozen_and_can_be_pickled(self) -> None:
        result = belljar.run(["true"])
        with self.assertRaises(AttributeError):
            result.outcome = "x"  # type: ignore[misc]
        self.assertEqual(pickle.loads(pickle.dumps(result)), result)

    def test_return_codes(self) -> None:
        for script, outcome, code in (
            ("exit 0", "exited", 0),
            ("exit 37", "exited", 37),
            ("exit 137", "exited", 137),
            ("kill -KILL $$", "signaled", -9),
            ("kill -SEGV $$", "signaled", -11),
        ):
            result = belljar.run(script, shell=True)
            self.assertEqual((result.outcome, result.returncode), (outcome, code), script)

    def test_a_timeout_does_not_raise(self) -> None:
        result = belljar.run(self.sh("echo x; exec sleep 1000"), timeout=2)
        self.assertEqual((result.outcome, result.timed_out, result.killed, result.stdout), ("timeout", True, True, "x\n"))
        self.assertEqual((result.exit_code, result.returncode), (None, -15))
        result = belljar.run(self.sh("trap 'exit 3' TERM; echo x; while :; do sleep 0.01; done"), timeout=2)
        self.assertEqual((result.outcome, result.exit_code, result.returncode), ("timeout", None, -15))
        result = belljar.run(self.sh("trap '' TERM; while :; do sleep 0.01; done"), timeout=0.2, grace="100ms")
        self.assertEqual((result.outcome, result.returncode), ("timeout", -9))

    def test_memory_is_limited_by_default(self) -> None:
        result = belljar.run("head -c 700000000 /dev/zero | tail -c 700000000 | wc -c", shell=True)
        self.assertEqual(result.limits_hit[0]["name"], "memory")

    def test_check_says_what_was_refused(self) -> None:
        with self.assertRaises(belljar.RunError) as caught:
            belljar.run(["unshare", "--user", "true"], check=True)
        refused = caught.exception.result.denied[0]
        self.assertEqual((refused.kind, refused.what, refused.cure), ("syscall", "unshare", None))
        self.assertIn("exit status 1. The sandbox refused the system call unshare: ", str(caught.exception))

    def test_check_raises_with_the_result(self) -> None:
        self.assertEqual(belljar.run(["true"], check=True).returncode, 0)
        with self.assertRaises(belljar.RunError) as caught:
            belljar.run("echo o; echo e >&2; exit 3", shell=True, check=True)
        error = caught.exception
        self.assertEqual((error.returncode, error.stdout, error.stderr, error.result.exit_code), (3, "o\n", "e\n", 3))
        self.assertNotIsInstance(error, TimeoutError)
        with self.assertRaises(belljar.RunTimeout) as caught:
            belljar.run(self.sh("exec sleep 1000"), timeout=0.2, check=True)
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertIsInstance(caught.exception, belljar.RunError)
        with self.assertRaises(belljar.RunError):
            belljar.run("kill -9 $$", shell=True).check()

    def test_statuses_as_a_shell_shows_them(self) -> None:
        cases: "list[tuple[str, dict[str, Any], int]]" = [
            ("exit 0", {}, 0),
            ("exit 7", {}, 7),
            ("kill -9 $$", {}, 137),
            ("kill -TERM $$", {}, 143),
            ("sleep 1000", {"timeout": 0.2}, 124),
            ("yes", {"output": 10, "overflow": "kill"}, 137),
        ]
        for script, keys, status in cases:
            result = belljar.run(self.sh(script), **keys)
            self.assertEqual((result.shell_status, result.ok), (status, status == 0), script)
            done = subprocess.run(
                [engine_path(), "run", "-q", *[f"--{name}={value}" for name, value in keys.items()], "--", *self.sh(script)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            self.assertEqual(done.returncode, status, script)
            if status == 0:
                result.check_returncode()
            else:
                with self.assertRaises(belljar.RunTimeout if status == 124 else belljar.RunError):
                    result.check_returncode()
        with belljar.spawn(self.sh("sleep 1000")) as process:
            self.assertEqual(process.cancel().shell_status, 143)
        failed = dataclasses.replace(result, outcome="failed", error={"stage": "exec", "errno": errno.ENOENT})
        self.assertEqual(failed.shell_status, 127)
        self.assertEqual(dataclasses.replace(failed, error={"stage": "exec", "errno": errno.EACCES}).shell_status, 126)
        self.assertEqual(dataclasses.replace(failed, error={"stage": "plan", "errno": errno.EACCES}).shell_status, 125)
        self.assertEqual(dataclasses.replace(failed, outcome="cancelled", error={"stage": "output"}).shell_status, 125)


class Errors(PackageCase):
    """What was never started raises."""

    def test_a_command_that_is_not_there(self) -> None:
        with self.assertRaises(belljar.StartError) as caught:
            belljar.run(["/nonexistent/command"])
        error = caught.exception
        self.assertIsInstance(error, OSError)
        self.assertEqual((error.errno, error.filename), (2, "/nonexistent/command"))
        assert error.result is not None
        self.assertEqual((error.result.outcome, error.result.error["stage"]), ("failed", "exec"))

    def test_a_file_that_cannot_be_executed(self) -> None:
        (self.work / "data").write_text("x")
        with self.assertRaises(belljar.StartError) as caught:
            belljar.run(["./data"])
        self.assertEqual((caught.exception.errno, caught.exception.filename), (13, "./data"))

    def test_work_directories_that_will_not_do(self) -> None:
        with self.assertRaises(belljar.StartError) as caught:
            belljar.run(["true"], workdir="/nonexistent")
        self.assertEqual((caught.exception.errno, caught.exception.filename), (2, "/nonexistent"))
        with self.assertRaises(belljar.StartError):
            belljar.run(["true"], workdir="/")
        with self.assertRaises(belljar.StartError):
            belljar.run(["true"], ro=["/nonexistent"])

    def test_a_bad_policy(self) -> None:
        for keys in (
            {"tiemout": 3},
            {"timeout": "soon"},
            {"timeout": 0},
            {"timeout": float("nan")},
            {"timeout": -1},
            {"memory": []},
            {"ro": [3]},
            {"ro": [object()]},
            {"output": None},
            {"policy": "nonsense"},
            {"policy": "./nonexistent.json"},
            {"policy": {"tiemout": 3}},
            {"policy": {"version": 2}},
        ):
            with self.assertRaises(belljar.PolicyError, msg=repr(keys)) as caught:
                belljar.run(["touch", "ran"], **keys)
            self.assertIsInstance(caught.exception, ValueError)
        self.assertFalse((self.work / "ran").exists())
        with self.assertRaises(TypeError):
            belljar.run(["true"], policy=3)

    def test_an_unknown_key_is_answered_with_the_likely_one(self) -> None:
        with self.assertRaisesRegex(belljar.PolicyError, "did you mean 'timeout'"):
            belljar.run(["true"], tiemout=3)

    def test_errors_can_be_pickled(self) -> None:
        def caught(**arguments: object) -> belljar.BelljarError:
            try:
                belljar.run(**arguments)  # type: ignore[arg-type]
            except belljar.BelljarError as error:
                return error
            raise AssertionError(arguments)

        errors = [
            caught(args=["/nonexistent"]),
            caught(args=["true"], tiemout=3),
            caught(args=["false"], check=True),
            caught(args=self.sh("exec sleep 1000"), timeout=0.1, check=True),
            belljar.UnavailableError("x", [{"name": "memory"}]).with_(hint="h"),
            belljar.EngineError("x"),
        ]
        for error in errors:
            copy = pickle.loads(pickle.dumps(error))
            self.assertIs(type(copy), type(error))
            self.assertEqual((str(copy), copy.result, copy.args), (str(error), error.result, error.args))
        self.assertEqual(pickle.loads(pickle.dumps(errors[0])).filename, "/nonexistent")
        self.assertEqual(pickle.loads(pickle.dumps(errors[4])).missing, [{"name": "memory"}])


class Interrupts(PackageCase):
    """Ctrl-C in the middle."""

    def test_the_run_is_gone_when_the_exception_leaves(self) -> None:
        ready = self.work / "ready"

        def interrupt() -> None:
            self.wait_for(ready.exists, "the command runs")
            _thread.interrupt_main()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            try:
                belljar.run(self.sh("touch ready; sleep 1000"), timeout=None)
            finally:
                self.assertEqual(self.marked(), [])
        thread.join()

    def test_a_second_one_cuts_the_grace_short(self) -> None:
        # Before the engine knows that the command runs there is no grace: its output is the sign.
        ready, ignored = threading.Event(), self.work / "ignored"

        def interrupt() -> None:
            ready.wait()
            os.kill(os.getpid(), signal.SIGINT)
            self.wait_for(ignored.exists, "SIGTERM was ignored")
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        script = "trap 'touch ignored' TERM; echo ready; while :; do sleep 0.01; done"
        with self.assertRaises(KeyboardInterrupt):
            belljar.run(self.sh(script), timeout=None, grace=1000, on_output=lambda *_: ready.set())
        self.assertEqual(self.marked(), [])
        thread.join()


class Leaks(PackageCase):
    """Descriptors."""

    def test_no_descriptor_is_left_open_whatever_happens(self) -> None:
        def fail(_: str, __: bytes) -> None:
            raise KeyError

        belljar.run(["true"])
        before = open_fds()
        for _ in range(3):
            belljar.run(["true"], input="x")
            belljar.run(["true"], input="x" * 100_000)
            for arguments in (
                {"args": ["/nonexistent"], "input": "x"},
                {"args": ["true"], "tiemout": 3, "input": "x"},
                {"args": ["true"], "timeout": object(), "input": "x"},
                {"args": ["false"], "check": True},
                {"args": ["echo"], "on_output": fail},
                {"args": ["true"], "stdin": belljar.PIPE},
            ):
                with self.assertRaises((belljar.BelljarError, KeyError, ValueError)):
                    belljar.run(**arguments)  # type: ignore[arg-type]
        with tempfile.TemporaryFile():
            pass
        self.assertEqual(len(open_fds()), len(before))

class Shortages(PackageCase):
    """What this process or its user has none left of is told as EngineError: nothing was started."""

    def test_no_descriptor_is_left(self) -> None:
        belljar.run(["true"])  # the engine runs
        kept = resource.getrlimit(resource.RLIMIT_NOFILE)
        hoard = [os.open("/dev/null", os.O_RDONLY)]
        outcomes = set()
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(64, hoard[0] + 40), kept[1]))
            with contextlib.suppress(OSError):
                while True:
                    hoard.append(os.dup(hoard[0]))
            for _ in range(12):
                for data in (b"x", b"x" * (1 << 20)):
                    try:
                        outcomes.add(belljar.run(["cat"], input=data).outcome)
                    except belljar.EngineError:
                        outcomes.add("EngineError")
                os.close(hoard.pop())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, kept)
            for fd in hoard:
                os.close(fd)
        self.assertIn("EngineError", outcomes)
        self.assertLessEqual(outcomes, {"EngineError", "exited"})
        self.assertEqual(belljar.run(["cat"], input=b"again").stdout, "again")

    def test_too_many_descriptors_are_on_their_way(self) -> None:
        belljar.run(["true"])  # the engine runs
        with belljar.Jar() as jar:
            for run in (belljar.run, belljar.run, jar.run, jar.run):
                self.check_with_many_on_their_way(run)
                self.assertEqual(run(["cat"], input=b"again").stdout, "again")

    def check_with_many_on_their_way(self, run: Any) -> None:
        kept = resource.getrlimit(resource.RLIMIT_NOFILE)
        ours, theirs = socket.socketpair()
        null = os.open("/dev/null", os.O_RDONLY)
        # More than the limit, and no more than other tests that run beside this one as the same user can bear.
        batch = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 200))]
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, kept[1]))
            with contextlib.suppress(OSError):
                for _ in range(3):
                    ours.sendmsg([b"x"], batch, socket.MSG_DONTWAIT)
            # With input, which is a descriptor too, and without, where only the channel is one.
            self.assertEqual(run(["cat"], input=b"x").stdout, "x")
            self.assertEqual(run(["echo", "x"]).stdout, "x\n")
            self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (200, kept[1]))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, kept)
            ours.close()
            theirs.close()
            os.close(null)

    def test_a_hard_limit_that_is_under_way_is_told(self) -> None:
        """Once this waited for as long as a jar of the same user held its descriptors in a socket."""
        if os.geteuid() == 0:
            self.skipTest("needs:an ordinary user, root may have any number on their way")
        script = (
            "import asyncio, resource, socket, belljar\n"
            "from belljar import _engine\n"
            "belljar.run(['true'])\n"
            "_engine.UNDER_WAY_SECONDS = 0\n"
            "ours, theirs = socket.socketpair()\n"
            "for _ in range(2): ours.sendmsg([b'x'], _engine.rights([0] * 200))\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
            "for go in (lambda: belljar.run(['true']), lambda: asyncio.run(belljar.run_async(['true'])), lambda: belljar.Jar()):\n"
            "    try: print('made', go())\n"
            "    except belljar.EngineError as error: print(type(error).__name__)\n"
            "ours.close(), theirs.close()\n"
            "print(belljar.run(['echo', 'again']).stdout, end='')"
        )
        self.assertEqual(self.host(script).split(), ["EngineError"] * 3 + ["again"])


if __name__ == "__main__":
    unittest.main()
