# SPDX-License-Identifier: Apache-2.0
"""Hosts of every kind: threads, forks, sudden ends, dead engines. Whatever they do, nothing is left and nothing is mixed up."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import belljar
from belljar import _engine
from harness import census
from package_case import BOUND_SECONDS, PackageCase, engine_pid, open_fds, tearDownModule  # noqa: F401


class Threads(PackageCase):
    """One engine, many threads."""

    def test_many_threads_each_get_their_own_results(self) -> None:
        belljar.run(["true"])
        before = len(open_fds())

        def work(number: int) -> bool:
            text = f"{number} " * 20
            return belljar.run(["cat"], input=text).stdout == text

        with ThreadPoolExecutor(32) as pool:
            self.assertTrue(all(pool.map(work, range(128))))
        self.assertEqual(len(open_fds()), before)

    def test_the_first_use_by_many_threads_starts_one_engine(self) -> None:
        script = (
            "import belljar, os, sys, threading\n"
            "barrier = threading.Barrier(16)\n"
            "def work():\n    barrier.wait(); belljar.run(['true'])\n"
            "threads = [threading.Thread(target=work) for _ in range(16)]\n"
            "[t.start() for t in threads]; [t.join() for t in threads]\n"
            "import pathlib\n"
            "print(len([c for f in pathlib.Path('/proc/self/task').glob('*/children') for c in f.read_text().split()]))\n"
        )
        self.assertEqual(self.host(script), "1\n")

    def test_a_slow_reader_does_not_slow_others(self) -> None:
        go = threading.Event()

        def hear(_: str, __: bytes) -> None:
            go.wait(BOUND_SECONDS)

        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(belljar.run, ["head", "-c", "5000000", "/dev/zero"], on_output=hear, output="8M")
            for _ in range(5):
                self.assertEqual(belljar.run(["echo", "x"]).stdout, "x\n")
            self.assertFalse(slow.done())
            go.set()
            self.assertEqual(slow.result().stdout_bytes, 5_000_000)


class Forks(PackageCase):
    """A forked child has nothing of its parent's but the memory of it."""

    def in_child(self, work) -> None:  # type: ignore[no-untyped-def]
        """Run a function in a forked child; its failure is ours."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                work()
                _engine._at_exit()
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_child_starts_its_own_engine(self) -> None:
        belljar.run(["true"])
        mine = engine_pid()

        def child() -> None:
            self.assertEqual(belljar.run(["echo", "child"]).stdout, "child\n")
            self.assertNotEqual(engine_pid(), mine)

        self.in_child(child)
        self.assertEqual(belljar.run(["echo", "parent"]).stdout, "parent\n")
        self.assertEqual(engine_pid(), mine)

    def test_inherited_objects_are_of_no_use(self) -> None:
        with belljar.spawn(self.sh("read x; echo got $x"), stdin=belljar.PIPE) as process:

            def child() -> None:
                for use in (
                    process.poll,
                    process.wait,
                    process.cancel,
                    process.terminate,
                    process.fileno,
                    process.close,
                    lambda: process.resize(1, 1),
                ):
                    with self.assertRaises(belljar.EngineError):
                        use()

            self.in_child(child)
            assert process.stdin
            process.stdin.write(b"it\n")
            assert process.stdout
            self.assertEqual((process.stdout.read(), process.wait().outcome), (b"got it\n", "exited"))

    def test_a_child_keeps_no_descriptor_of_its_parent_s(self) -> None:
        with belljar.spawn(["cat"], stdin=belljar.PIPE) as process:

            def child() -> None:
                left = [name for name in open_fds() if "socket" in name or "pipe" in name or "pidfd" in name]
                # Standard streams may be pipes of whoever runs the tests.
                self.assertEqual([name for name in left if int(name.split()[0]) > 2 and name not in self.inherited], [])

            self.inherited = [name for name in open_fds() if name not in self.during(process)]
            self.in_child(child)
            assert process.stdin
            process.stdin.close()
            self.assertEqual(process.wait().outcome, "exited")

    @staticmethod
    def during(process: belljar.Process) -> list[str]:
        """The descriptors that belong to the package."""
        engine = _engine.current()
        assert process.stdin and process.stdout and process.stderr
        numbers = [engine.door.fileno(), engine.pidfd, process.fileno()]
        numbers += [process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()]
        return [name for name in open_fds() if int(name.split()[0]) in numbers]

    def test_forks_while_threads_run_commands(self) -> None:
        stop = threading.Event()
        failures = []

        def work() -> None:
            while not stop.is_set():
                try:
                    if belljar.run(["echo", "x"]).stdout != "x\n":
                        failures.append("mixed up")
                except Exception as error:
                    failures.append(repr(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                self.in_child(lambda: self.assertEqual(belljar.run(["echo", "child"]).stdout, "child\n"))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_the_parent_s_death_ends_its_jars_although_a_child_lives(self) -> None:
        script = (
            "import belljar, os, sys, time\n"
            "process = belljar.spawn(['/bin/sh', '-c', 'echo ready; sleep 1000', sys.argv[1]], timeout=None)\n"
            "process.stdout.read(6)\n"
            "if os.fork() == 0:\n    os.close(1); os.close(2); time.sleep(1000)\n"
            "print('ready', flush=True); time.sleep(1000)\n"
        )
        census.adopt_orphans()
        with subprocess.Popen([sys.executable, "-c", script, self.marker], stdout=subprocess.PIPE, text=True) as host:
            assert host.stdout
            self.assertEqual(host.stdout.readline(), "ready\n")
            child = [pid for pid in census.descendants(host.pid) if census.command_line(pid).startswith(sys.executable)]
            self.assertEqual(len(child), 1)
            host.kill()
        try:
            self.wait_for(lambda: [pid for pid in self.marked() if pid not in child] == [], "the jar is gone")
        finally:
            os.kill(child[0], signal.SIGKILL)
            census.reap()

    def test_multiprocessing_that_forks(self) -> None:
        script = (
            "import belljar, multiprocessing\n"
            "def work(number):\n    return belljar.run(['echo', str(number)]).stdout\n"
            "belljar.run(['true'])\n"
            "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
            "    print(''.join(pool.map(work, range(4))), end='')\n"
        )
        self.assertEqual(self.host(script), "0\n1\n2\n3\n")


class Ends(PackageCase):
    """However a host ends, its jars end with it."""

    SPAWN = (
        "import belljar, os, sys, time, signal\n"
        "process = belljar.spawn(['/bin/sh', '-c', 'echo ready; sleep 1000', sys.argv[1]], timeout=None)\n"
        "process.stdout.read(6)\n"
        "engine = belljar._engine.current().pid\n"
    )

    def ends(self, script: str, status: int) -> None:
        """Run a host to its end; neither jar nor engine lives afterwards."""
        census.adopt_orphans()
        done = subprocess.run(
            [sys.executable, "-c", self.SPAWN + "print(engine, flush=True)\n" + script, self.marker],
            capture_output=True,
            text=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        engine = int(done.stdout.split()[0])
        self.wait_for(lambda: not self.marked(), "the jar is gone")
        self.wait_for(lambda: census.state(engine) in ("", "Z"), "the engine is gone")
        census.reap()

    def test_by_leaving(self) -> None:
        self.ends("", 0)

    def test_by_an_exit_without_goodbye(self) -> None:
        self.ends("os._exit(3)", 3)

    def test_by_a_signal(self) -> None:
        self.ends("os.kill(os.getpid(), signal.SIGKILL)", -9)
        self.ends("signal.signal(signal.SIGTERM, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGTERM)", -15)

    def test_after_a_normal_end_there_is_not_even_a_zombie(self) -> None:
        script = (
            "import atexit, os\n"
            "def look():\n"
            "    try:\n        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)\n        print('a child is left')\n"
            "    except ChildProcessError:\n        print('none')\n"
            "atexit.register(look)\n"  # registered first, so called last
            "import belljar, sys, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "belljar.run(['true'])\n"
            "process = belljar.spawn(['/bin/sh', '-c', 'sleep 1000', sys.argv[1]], on_output=print)\n"
        )
        self.assertEqual(self.host(script), "none\n")
        self.assertEqual(self.marked(), [])

    def test_a_daemon_thread_in_the_middle_of_a_run(self) -> None:
        script = (
            "import belljar, sys, threading, os\n"
            "def work():\n"
            "    try:\n        belljar.run(['/bin/sh', '-c', 'touch ready; sleep 1000', sys.argv[1]], timeout=None)\n"
            "    except belljar.EngineError:\n        pass\n"
            "threading.Thread(target=work, daemon=True).start()\n"
            "import time\n"
            "while not os.path.exists('ready'):\n    time.sleep(0.01)\n"
        )
        self.host(script)
        self.assertEqual(self.marked(), [])

    def test_a_terminal_s_ctrl_c_does_not_reach_the_engine(self) -> None:
        belljar.run(["true"])
        self.assertNotEqual(os.getsid(engine_pid()), os.getsid(0))


class Engines(PackageCase):
    """The engine's own end."""

    def test_a_killed_engine_is_an_error_and_the_next_run_starts_another(self) -> None:
        belljar.run(["true"])
        before = open_fds()
        for _ in range(3):
            process = belljar.spawn(self.sh("echo ready; sleep 1000"), timeout=None)
            assert process.stdout
            process.stdout.read(6)
            os.kill(engine_pid(), signal.SIGKILL)
            for _ in range(2):
                with self.assertRaises(belljar.EngineError):
                    process.wait()
            process.close()
            del process
            self.wait_for(lambda: not self.marked(), "the jar has ended with its engine")
            self.assertEqual(belljar.run(["echo", "x"]).stdout, "x\n")
        gc.collect()
        self.assertEqual(len(open_fds()), len(before))

    def test_a_run_during_which_the_engine_is_killed(self) -> None:
        belljar.run(["true"])
        pid = engine_pid()
        ready = self.work / "ready"

        def kill() -> None:
            self.wait_for(ready.exists, "the command runs")
            os.kill(pid, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        with self.assertRaisesRegex(belljar.EngineError, "signal 9"):
            belljar.run(self.sh("touch ready; sleep 1000"), timeout=None)
        thread.join()
        self.wait_for(lambda: not self.marked(), "the jar has ended with its engine")
        self.assertEqual(belljar.run(["echo", "x"]).stdout, "x\n")

    def test_an_engine_that_died_unnoticed_is_replaced_without_a_word(self) -> None:
        belljar.run(["true"])
        pid = engine_pid()
        os.kill(pid, signal.SIGKILL)
        self.wait_for(lambda: census.state(pid) in ("", "Z"), "the engine is dead")
        self.assertEqual(belljar.run(["echo", "x"]).stdout, "x\n")

    def test_a_host_that_ignores_sigchld_or_collects_every_child(self) -> None:
        script = (
            "import belljar, os, signal\n"
            "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
            "print(belljar.run(['echo', 'x']).stdout, end='')\n"
            "pid = belljar._engine.current().pid\n"
            "os.kill(pid, 9)\n"
            "while os.path.exists(f'/proc/{pid}'):\n    pass\n"
            "print(belljar.run(['echo', 'y']).stdout, end='')\n"
        )
        self.assertEqual(self.host(script), "x\ny\n")

    def test_a_host_without_standard_streams(self) -> None:
        script = (
            "import os\nfor fd in (0, 1, 2):\n    os.close(fd)\n"
            "import belljar\n"
            "result = belljar.run(['cat'], input='x')\n"
            "os._exit(0 if result.stdout == 'x' else 3)\n"
        )
        self.host(script)

    def test_descriptors_of_the_host_do_not_reach_the_engine(self) -> None:
        script = (
            "import belljar, os\n"
            "reader, writer = os.pipe()\nos.set_inheritable(writer, True)\n"
            "belljar.run(['true'])\nos.close(writer)\n"
            "print(os.read(reader, 1))\n"
        )
        self.assertEqual(self.host(script), "b''\n")

    def test_a_host_short_of_descriptors_is_told(self) -> None:
        script = (
            "import belljar, os, resource\n"
            "belljar.run(['true'])\n"
            "soft = os.dup(0)\nos.close(soft)\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
            "try:\n    belljar.run(['true'], input='x')\nexcept belljar.EngineError as error:\n    print(error.__cause__.errno)\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
            "print(belljar.run(['echo', 'x']).stdout, end='')\n"
        )
        self.assertEqual(self.host(script), "24\nx\n")

    def test_importing_is_cheap_and_starts_nothing(self) -> None:
        script = (
            "import sys\nbefore = set(sys.modules)\nimport belljar\n"
            "print(sorted((set(sys.modules) - before) & {'json', 'socket', 'asyncio', 'dataclasses', 'subprocess', 'inspect'}))\n"
            "import os, pathlib\nprint(pathlib.Path(f'/proc/self/task/{os.getpid()}/children').read_text())\n"
        )
        self.assertEqual(self.host(script), "[]\n\n")


if __name__ == "__main__":
    unittest.main()
