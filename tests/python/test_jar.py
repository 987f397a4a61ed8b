# SPDX-License-Identifier: Apache-2.0
"""Jar: many runs over the same files, files in and out, the end."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
import time
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor

import belljar
from package_case import PackageCase, engine_pid, open_fds, tearDownModule  # noqa: F401


class Runs(PackageCase):
    """Runs in a jar that stays."""

    def test_runs_share_the_private_files(self) -> None:
        with belljar.Jar() as jar:
            self.assertEqual(jar.run("echo one > /tmp/file; echo $HOME > ~/file", shell=True, check=True).stdout, "")
            self.assertEqual(jar.run(["cat", "/tmp/file"]).stdout, "one\n")
        with belljar.Jar() as jar:
            self.assertEqual(jar.run(["test", "-e", "/tmp/file"]).returncode, 1)
        self.assertNotEqual(belljar.run(["test", "-e", "/tmp/file"]).returncode, 0)

    def test_facts(self) -> None:
        with belljar.Jar() as jar:
            self.assertIn(jar.rung, ("namespace", "landlock"))
            self.assertEqual(jar.enforced["rung"], jar.rung)
            self.assertEqual(jar.workdir, str(self.work))
            self.assertIsInstance(jar.missing, list)
            self.assertEqual(jar.run(["pwd"]).stdout, f"{self.work}\n")

    def test_each_run_tells_what_it_left_itself(self) -> None:
        """A kept jar, and one made ahead: what a run before this one left is not told again."""
        (self.work / "nested").mkdir()
        with belljar.Jar() as jar:
            for run in (jar.run, belljar.run):
                # In the tick of the clock in which a run begins nobody can tell what was before it: so it waits for others.
                script = "sleep 0.05; rm -rf .envrc nested/*; echo x > .envrc; mkdir -p nested/objects nested/refs; touch nested/HEAD; echo '[core] fsmonitor = x' > nested/config; sleep 0.05"
                first = run(script, shell=True, check=True)
                second = run(["true"])
                third = run("echo y >> .envrc 2>/dev/null; rm -f .envrc; echo z > AGENTS.md; sleep 0.05", shell=True)
                names = [{os.path.relpath(entry["path"], self.work) for entry in result.risky} for result in (first, second, third)]
                self.assertGreaterEqual(names[0], {".envrc", "nested/config"})
                self.assertEqual(names[1], set())
                self.assertIn("AGENTS.md", names[2])

    def wait_for(self, name: str) -> None:
        """Until a process of a jar has made it; then the clock of files ticks."""
        while not (self.work / name).exists():
            time.sleep(0.01)
        time.sleep(0.03)

    def test_what_processes_leave_between_runs_is_told_by_the_next_run(self) -> None:
        (self.work / "sub").mkdir()
        with belljar.Jar() as jar:
            jar.run(["true"])
            left = jar.run("(while [ ! -e go ]; do sleep 0.01; done; echo x > sub/AGENTS.md; touch done; sleep 1000) & true", shell=True, detach=True)
            self.assertEqual(left.risky, [])
            (self.work / "go").touch()
            self.wait_for("done")
            found = jar.run(["true"]).risky
            self.assertEqual([entry["path"] for entry in found], [str(self.work / "sub" / "AGENTS.md")])
            self.assertEqual(jar.run(["true"]).risky, [])
        self.assertEqual(jar.risky, found)

    def test_what_a_shell_an_interpreter_and_a_call_leave_is_told(self) -> None:
        (self.work / "sub").mkdir()

        def plant() -> None:
            with open("sub/AGENTS.md", "w"):
                pass

        with belljar.Jar() as jar:
            for number, name in enumerate(("AGENTS.md", "CLAUDE.md")):
                with jar.shell() if number else jar.python() as cells:
                    cells.run(f"echo x > sub/{name}" if number else f"import time; time.sleep(0.05); open('sub/{name}', 'w').close()")
                    time.sleep(0.05)
                    self.assertEqual([entry["path"] for entry in jar.run(["true"]).risky], [str(self.work / "sub" / name)])
            (self.work / "sub" / "AGENTS.md").unlink()
            time.sleep(0.05)
            jar.call(plant)
            time.sleep(0.05)
        self.assertIn(str(self.work / "sub" / "AGENTS.md"), [entry["path"] for entry in jar.risky])
        (self.work / "sub" / "AGENTS.md").unlink()
        with belljar.Pool(workdir=self.work) as pool:
            pool.call(plant)
            time.sleep(0.05)
        self.assertEqual([entry["path"] for entry in pool.risky], [str(self.work / "sub" / "AGENTS.md")])

    def test_what_no_result_has_is_known_when_it_is_closed(self) -> None:
        (self.work / "sub").mkdir()
        jar = belljar.Jar()
        with jar:
            self.assertEqual(jar.risky, [])
            jar.run("(while [ ! -e go ]; do sleep 0.01; done; echo x > sub/AGENTS.md; touch done; sleep 1000) & true", shell=True, detach=True)
            (self.work / "go").touch()
            self.wait_for("done")
        self.assertEqual([entry["path"] for entry in jar.risky], [str(self.work / "sub" / "AGENTS.md")])

    def test_what_the_host_changes_between_runs_is_not_told(self) -> None:
        (self.work / "sub").mkdir()
        with belljar.Jar() as jar:
            for number in range(3):
                self.assertEqual(jar.run(["true"]).risky, [])
                (self.work / "sub" / f"new{number}").mkdir()
                for name in ("sub/AGENTS.md", f"sub/new{number}/AGENTS.md", ".envrc"):
                    (self.work / name).write_text(str(number))
                time.sleep(0.05)
            self.assertEqual(jar.run(["true"]).risky, [])
        self.assertEqual(jar.risky, [])

    def test_changes_in_directories_that_moved_or_were_replaced_are_told(self) -> None:
        """The engine remembers directories from run to run, and the kernel tells it of those that change."""
        for name in ("a/b", "c", "d"):
            (self.work / name).mkdir(parents=True)
        with belljar.Jar() as jar:
            jar.run(["true"])
            time.sleep(0.1)
            for script, name in (
                ("echo x > a/b/AGENTS.md", "a/b/AGENTS.md"),
                ("mv a e; sleep 0.05; echo x > e/b/CLAUDE.md", "e/b/CLAUDE.md"),
                ("rm -r c; mkdir -p c/f; echo x > c/f/AGENTS.md", "c/f/AGENTS.md"),
                ("mkdir -p n/m; mv d n/m/d; echo x > n/m/d/GEMINI.md", "n/m/d/GEMINI.md"),
                ("echo y >> e/b/AGENTS.md", "e/b/AGENTS.md"),
                ("mv e a; echo x > a/b/GEMINI.md", "a/b/GEMINI.md"),
            ):
                with self.subTest(script=script):
                    result = jar.run(f"sleep 0.05; {script}; sleep 0.05", shell=True, check=True)
                    self.assertIn(str(self.work / name), [entry["path"] for entry in result.risky])
                    self.assertEqual(jar.run(["true"]).risky, [])

    def test_the_policy_is_the_jar_s(self) -> None:
        with belljar.Jar(policy="strict") as jar:
            self.assertEqual(jar.run(["pwd"]).stdout, "/workspace\n")
            for keys in ({"ro": ["/usr"]}, {"workdir": "/tmp"}, {"cwd": "/tmp"}, {"net": "host"}, {"policy": "agent"}):
                with self.assertRaises(belljar.PolicyError, msg=repr(keys)):
                    jar.run(["true"], **keys)
            self.assertEqual(jar.run(["true"], memory="100M", timeout=5, pids=10).outcome, "exited")
            self.assertEqual(jar.run(["true"], memory="1G", timeout=None, pids=None).outcome, "exited")

    def test_each_run_has_its_own_limits_and_result(self) -> None:
        with belljar.Jar(timeout=30) as jar:
            self.assertEqual(jar.run(self.sh("sleep 1000"), timeout=0.2).outcome, "timeout")
            self.assertEqual(jar.run(["echo", "x"]).outcome, "exited")
            self.assertEqual(len(jar.run("head -c 9999 /dev/zero", shell=True, output=100).stdout), 100)
            self.assertEqual(jar.run("echo $A", shell=True, env={"A": "b"}).stdout, "b\n")
            self.assertEqual(jar.run("echo ${A-unset}", shell=True).stdout, "unset\n")
            self.assertEqual(jar.run(["pwd"], cd="/tmp").stdout, "/tmp\n")
            with self.assertRaises(belljar.StartError):
                jar.run(["/nonexistent"])
            with self.assertRaisesRegex(belljar.PolicyError, "did you mean"):
                jar.run(["true"], tiemout=3)
            with self.assertRaises(belljar.RunError):
                jar.run(["false"], check=True)

    def test_the_environment_is_that_of_the_moment(self) -> None:
        os.environ["BJT_NAME"] = "first"
        self.addCleanup(os.environ.pop, "BJT_NAME", None)
        script = 'echo "${BJT_NAME-unset}"'
        with belljar.Jar(workdir=None, pass_env=["BJT_NAME"]) as jar:
            for value in ("first", "second", "first"):
                os.environ["BJT_NAME"] = value
                self.assertEqual(jar.run(script, shell=True).stdout, value + "\n")
            del os.environ["BJT_NAME"]
            self.assertEqual(jar.run(script, shell=True).stdout, "unset\n")

    def test_what_a_run_leaves_behind_ends_with_it(self) -> None:
        with belljar.Jar() as jar:
            jar.run(self.sh(f"setsid sleep 1000 & setsid sh -c 'sleep 1000; true {self.marker}' & true"))
            self.assertEqual(self.marked(), [])
            if jar.rung == "namespace":  # elsewhere a hole would hit whoever runs the tests
                self.assertIn(jar.run("kill -9 -1; echo x", shell=True).outcome, ("exited", "signaled"))
            self.assertEqual(jar.run(["echo", "x"]).stdout, "x\n")

    def test_streams(self) -> None:
        seen = []
        with belljar.Jar() as jar:
            self.assertEqual(jar.run(["cat"], input="in").stdout, "in")
            jar.run("echo a; echo b >&2", shell=True, on_output=lambda *piece: seen.append(piece))
            self.assertEqual(sorted(seen), [("stderr", b"b\n"), ("stdout", b"a\n")])
            with jar.spawn(["cat"], stdin=belljar.PIPE) as process:
                assert process.stdin and process.stdout
                process.stdin.write(b"x")
                self.assertEqual(process.stdout.read1(10), b"x")
            self.assertIn(process.wait().outcome, ("cancelled", "exited"))  # its input ended too
            result = jar.run("echo a; echo b >&2; echo c", shell=True, stderr_to_stdout=True)
            self.assertEqual((result.stdout, result.stderr), ("a\nb\nc\n", ""))
            self.assertEqual(jar.run("test -t 1 && echo yes", shell=True, pty=True).stdout.strip(), "yes")

    def test_runs_at_the_same_time(self) -> None:
        with belljar.Jar() as jar, ThreadPoolExecutor(16) as pool:
            texts = list(pool.map(lambda number: jar.run(["echo", str(number)]).stdout, range(64)))
        self.assertEqual(texts, [f"{number}\n" for number in range(64)])

    def test_asyncio(self) -> None:
        async def work() -> None:
            async with belljar.Jar() as jar:
                results = await asyncio.gather(*(jar.run_async(["echo", str(number)]) for number in range(20)))
                self.assertEqual([result.stdout for result in results], [f"{number}\n" for number in range(20)])
                async with await jar.spawn_async(["cat"], stdin=belljar.PIPE) as process:
                    assert process.stdin and process.stdout
                    process.stdin.write(b"x\n")
                    self.assertEqual(await process.stdout.readline(), b"x\n")
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(jar.run_async(self.sh("sleep 1000"), timeout=None), 0.2)
                self.assertEqual(self.marked(), [])
                self.assertEqual((await jar.run_async(["echo", "x"])).stdout, "x\n")
            with self.assertRaises(belljar.EngineError):
                await jar.run_async(["true"])

        belljar.run(["true"])
        before = sorted(open_fds())
        asyncio.run(work())
        self.assertEqual(sorted(open_fds()), before)


class Opening(PackageCase):
    """What cannot be opened."""

    def test_errors_are_those_of_run(self) -> None:
        before = len(open_fds())
        with self.assertRaisesRegex(belljar.PolicyError, "did you mean 'timeout'"):
            belljar.Jar(tiemout=3)
        with self.assertRaises(belljar.PolicyError):
            belljar.Jar("nonsense")
        with self.assertRaises(belljar.StartError) as caught:
            belljar.Jar(workdir="/nonexistent")
        self.assertEqual((caught.exception.errno, caught.exception.filename), (2, "/nonexistent"))
        with self.assertRaises(TypeError):
            belljar.Jar(cwd="/a", workdir="/b")
        gc.collect()
        self.assertLessEqual(len(open_fds()), before + 2)


class End(PackageCase):
    """Closing."""

    def test_closing_kills_what_is_left(self) -> None:
        jar = belljar.Jar()
        process = jar.spawn(self.sh("echo ready; sleep 1000"), timeout=None)
        assert process.stdout
        process.stdout.read(6)
        jar.close()
        self.assertEqual(self.marked(), [])
        self.assertEqual(process.wait().outcome, "cancelled")
        process.close()
        jar.close()
        for use in (lambda: jar.run(["true"]), lambda: jar.spawn(["true"]), lambda: jar.read_file("x"), jar.__enter__):
            with self.assertRaises(belljar.EngineError):
                use()

    def test_closing_from_many_threads(self) -> None:
        jar = belljar.Jar()
        begin = threading.Barrier(8)
        closed = []

        def close() -> None:
            begin.wait()
            jar.close()
            closed.append(True)

        threads = [threading.Thread(target=close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(closed), 8)
        with self.assertRaises(belljar.EngineError):
            jar.run(["true"])

    def test_nobody_wants_it_any_more(self) -> None:
        jar = belljar.Jar()
        process = jar.spawn(self.sh("echo ready; sleep 1000"), timeout=None, on_output=lambda *_: None)
        with self.assertWarns(ResourceWarning):
            warnings.simplefilter("always", ResourceWarning)
            del jar
            gc.collect()
        self.assertEqual(process.wait().outcome, "cancelled")
        process.close()

    def test_an_inherited_jar_is_of_no_use(self) -> None:
        with belljar.Jar() as jar:
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    for use in (lambda: jar.run(["true"]), jar.close, lambda: jar.list_files(), lambda: jar.spawn(["true"])):
                        try:
                            use()
                        except belljar.EngineError:
                            continue
                        os._exit(2)
                    with belljar.Jar() as own:
                        status = own.run(["true"]).returncode
                    belljar._engine._at_exit()
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertEqual(jar.run(["echo", "x"]).stdout, "x\n")

    def test_a_killed_engine(self) -> None:
        jar = belljar.Jar()
        os.kill(engine_pid(), 9)
        with self.assertRaises(belljar.EngineError):
            jar.run(["true"])
        with self.assertRaises(belljar.EngineError):
            jar.list_files()
        jar.close()
        with belljar.Jar() as jar:
            self.assertEqual(jar.run(["echo", "x"]).stdout, "x\n")

    def test_no_descriptor_is_left_open(self) -> None:
        belljar.run(["true"])
        before = sorted(open_fds())
        for _ in range(3):
            with belljar.Jar() as jar:
                jar.run(["true"], input="x" * 100_000)
                jar.write_file("a", "b")
                jar.read_file("a")
                jar.list_files()
                with self.assertRaises(OSError):
                    jar.read_file("absent")
                with self.assertRaises(belljar.StartError):
                    jar.run(["/nonexistent"], input="x")
        self.assertEqual(sorted(open_fds()), before)


class Files(PackageCase):
    """Into the jar and out of it, and never anywhere else."""

    def setUp(self) -> None:
        super().setUp()
        self.jar = belljar.Jar(workdir=None)
        self.addCleanup(self.jar.close)

    def test_in_and_out(self) -> None:
        jar = self.jar
        data = os.urandom(3_000_000)
        jar.write_file("data", data)
        self.assertEqual(jar.read_file("data"), data)
        jar.write_file("text", "é\n", mode=0o600)
        self.assertEqual(jar.run(["cat", "text"]).stdout, "é\n")
        jar.write_file("text", "shorter")
        self.assertEqual(jar.read_file("text"), b"shorter")
        jar.run("echo from inside > made; chmod 640 made", shell=True, check=True)
        self.assertEqual(jar.read_file("made"), b"from inside\n")
        self.assertEqual(jar.read_file("/workspace/made"), b"from inside\n")
        jar.write_file("/tmp/elsewhere", b"x")
        self.assertEqual(jar.run(["cat", "/tmp/elsewhere"]).stdout, "x")
        with self.assertRaises(TypeError):
            jar.write_file("x", 3)  # type: ignore[arg-type]

    def test_names_that_are_not_text(self) -> None:
        name = b"na\xffme"
        self.jar.write_file(name, "x")
        self.assertEqual(self.jar.read_file(name), b"x")
        self.assertEqual([os.fsencode(info.name) for info in self.jar.list_files()], [name])

    def test_errors_are_those_of_open(self) -> None:
        jar = self.jar
        jar.run(["mkdir", "folder"])
        with self.assertRaises(FileNotFoundError) as caught:
            jar.read_file("absent")
        self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOENT, "absent"))
        for use in (lambda: jar.read_file("folder"), lambda: jar.write_file("folder", "x"), lambda: jar.list_files("absent")):
            with self.assertRaises(OSError):
                use()
        with self.assertRaises(OSError):
            jar.write_file("/usr/bin/new", "x")
        with self.assertRaises(OSError):
            jar.list_files("/etc/passwd")
        with self.assertRaises(ValueError):
            jar.read_file("a\0b")

    def test_files_that_would_block_or_never_end(self) -> None:
        jar = self.jar
        jar.run("mkfifo fifo; ln -s /dev/zero zero; truncate -s 1T huge; ln -s fifo link", shell=True, check=True)
        for name in ("fifo", "zero", "link", "/dev/zero", "/dev/null"):
            with self.assertRaises(OSError, msg=name):
                jar.read_file(name)
            with self.assertRaises(OSError, msg=name):
                jar.write_file(name, "x")
        with self.assertRaises(OSError) as caught:
            jar.read_file("huge", max_bytes=1000)
        self.assertEqual(caught.exception.errno, errno.EFBIG)
        jar.write_file("small", "12345")
        self.assertEqual(jar.read_file("small", max_bytes=5), b"12345")
        with self.assertRaises(OSError):
            jar.read_file("small", max_bytes=4)

    def test_links_lead_nowhere_outside(self) -> None:
        secret = self.base / "secret"
        secret.write_text("outside")
        jar = self.jar
        jar.run(f"ln -s {secret} out; ln -s {self.base} base; ln -s ../../../../../.. up; ln -s /proc/1/root root", shell=True, check=True)
        for name in ("out", "base/secret", f"up{secret}", f"root{secret}", str(secret), f"../..{secret}"):
            with self.assertRaises(OSError, msg=name):
                jar.read_file(name)
        jar.run(["ln", "-s", "/tmp/target", "link"])
        with self.assertRaises(OSError):
            jar.write_file("link", "x")
        with self.assertRaises(OSError):
            jar.list_files("base")
        self.assertEqual(secret.read_text(), "outside")

    def test_listing(self) -> None:
        jar = self.jar
        script = "mkdir -p a/b; echo 12345 > a/b/c; ln -s /etc a/link; mkfifo f; chmod 600 a/b/c; touch .hidden"
        jar.run(script, shell=True, check=True)
        self.assertEqual([(i.name, i.type) for i in jar.list_files()], [(".hidden", "file"), ("a", "dir"), ("f", "other")])
        found = {info.name: info for info in jar.list_files(recursive=True)}
        self.assertEqual(sorted(found), [".hidden", "a", "a/b", "a/b/c", "a/link", "f"])
        self.assertEqual((found["a/b/c"].type, found["a/b/c"].size, found["a/b/c"].mode), ("file", 6, 0o600))
        self.assertEqual(found["a/link"].type, "symlink")
        self.assertEqual([info.name for info in jar.list_files("a/b")], ["c"])
        self.assertIn("passwd", [info.name for info in jar.list_files("/etc")])

    def test_listing_has_bounds(self) -> None:
        self.jar.run("i=0; while test $i -lt 150; do mkdir d; cd d; i=$((i + 1)); done", shell=True, check=True)
        with self.assertRaises(OSError) as caught:
            self.jar.list_files(recursive=True)
        self.assertEqual(caught.exception.errno, errno.E2BIG)

    def test_a_command_that_swaps_names_meanwhile(self) -> None:
        (self.base / "outside").mkdir()
        (self.base / "outside" / "secret").write_text("outside")
        jar = self.jar
        jar.run(f"mkdir one; echo inside > one/secret; ln -s {self.base}/outside two", shell=True, check=True)
        script = "while :; do mv one x; mv two one; mv x two; mv one x; mv two one; mv x two; done"
        tries = 0
        met = set()

        def look() -> None:
            try:
                self.assertEqual(jar.read_file("one/secret"), b"inside\n")
                met.add("read")
            except OSError:
                met.add("refused")
            try:
                found = {info.name: info.type for info in jar.list_files(recursive=True)}
                self.assertLessEqual(found.keys(), {"one", "two", "x", "one/secret", "two/secret", "x/secret"})
                met.add(found.get("one", ""))
            except OSError:
                pass

        def has_raced() -> bool:
            nonlocal tries
            tries += 1
            look()
            return tries >= 200 and met >= {"read", "refused", "dir", "symlink"}

        with jar.spawn(self.sh(script), timeout=None):
            self.wait_for(has_raced, f"both were met under one name: {met}")


if __name__ == "__main__":
    unittest.main()
