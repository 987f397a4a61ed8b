# SPDX-License-Identifier: Apache-2.0
"""Files and network for tools; keywords of a call that are meant for its jar; jars that are tried in jars."""

from __future__ import annotations

import functools
import gc
import os
import socket
import sys
import threading
import unittest
from pathlib import Path
from typing import Any, Dict, List

import belljar
from belljar import _pool
from belljar._program import engine_path
from package_case import PackageCase, open_fds, tearDownModule  # noqa: F401


def read(path: str) -> str:
    """What a file holds."""
    return Path(path).read_text()


def append(path: str, text: str) -> str:
    """Write, and say what is there now."""
    with open(path, "a") as file:
        file.write(text)
    return Path(path).read_text()


def connect(port: int) -> bytes:
    """What a server on the host says."""
    with socket.create_connection(("127.0.0.1", port), 30) as link:
        return link.recv(10)


def show(**kwargs: Any) -> Dict[str, Any]:
    """A function that takes any keyword."""
    return kwargs


def takes_rw(rw: int, tiemout: int = 0) -> int:
    """A function with parameters that look like keys."""
    return rw + tiemout


def remember(limit: str) -> str:
    """The memory that is there."""
    return limit


def run_code(code: str) -> None:
    """Run it."""
    exec(code, {})


def run_in_jar() -> Any:
    """A jar in a jar."""
    return belljar.run(["true"])


def call_in_jar() -> Any:
    """A call in a call."""
    return belljar.call(len, "")


def open_in_jar() -> Any:
    """A jar in a jar."""
    return belljar.Jar()


def pool_in_jar() -> Any:
    """A pool in a jar."""
    return belljar.Pool()


def spawn_in_jar() -> Any:
    """A process in a jar in a jar."""
    return belljar.spawn(["true"])


class Policies(PackageCase):
    """@tool with policy=, pool= and keys of jars."""

    def setUp(self) -> None:
        super().setUp()
        _pool._at_exit()
        self.file = self.work / "f"
        self.file.write_text("a")

    def make(self, fn: Any, **keys: Any) -> Any:
        """The tool."""
        return belljar.tool(**keys)(fn)

    def test_files(self) -> None:
        path = str(self.file)
        with self.assertRaisesRegex(belljar.CallError, "FileNotFoundError"):
            self.make(read)(path)
        for keys in ({"ro": [self.work]}, {"ro": path}, {"policy": {"ro": [path]}}, {"policy": belljar.Policy(workdir=self.work)}):
            self.assertEqual(self.make(read, **keys)(path), "a")
        self.assertEqual(self.make(append, rw=[self.work], timeout=20)(path, "b"), "ab")
        self.assertEqual(self.make(append, workdir=self.work)("f", "c"), "abc")
        with self.assertRaisesRegex(belljar.CallError, "PermissionError|Read-only"):
            self.make(append, ro=[self.work])(path, "d")
        self.assertEqual(self.file.read_text(), "abc")

    def test_network(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]

            def serve() -> None:
                link, _ = server.accept()
                with link:
                    link.sendall(b"hello")

            thread = threading.Thread(target=serve)
            thread.start()
            with self.assertRaises(belljar.CallError):
                self.make(connect)(port)
            self.assertEqual(self.make(connect, net="host")(port), b"hello")
            thread.join()

    def test_a_pool_of_ones_own(self) -> None:
        with belljar.Pool(ro=[self.work], concurrency=1) as pool:
            tool = self.make(read, pool=pool, timeout=20)
            self.assertEqual(tool(str(self.file)), "a")
            with self.assertRaisesRegex(TypeError, "give ro to Pool"):
                self.make(read, pool=pool, ro=["/data"])
            with self.assertRaisesRegex(TypeError, "give policy to Pool"):
                self.make(read, pool=pool, policy="strict")
            self.assertEqual(_pool._by_policy, {})
        with self.assertRaisesRegex(belljar.EngineError, "closed"):
            tool(str(self.file))

    def test_one_pool_for_one_policy(self) -> None:
        path = str(self.file)
        same: List[Dict[str, Any]] = [
            {"ro": [self.work], "net": "none"},
            {"net": "none", "ro": str(self.work), "timeout": 7},
            {"ro": ["."], "net": "none", "max_result": 100},
        ]
        for keys in same:
            self.make(read, **keys)(path)
        self.assertEqual(len(_pool._by_policy), 1)
        self.make(read, ro=[self.work], net="none", memory="300M")(path)
        self.make(read, policy={"ro": ["."], "net": "none"})(path)
        self.make(read, policy=belljar.Policy(net="none", ro=["."]))(path)
        self.assertEqual(len(_pool._by_policy), 4)
        self.assertEqual(_pool._hidden, [])

    def test_relative_paths_mean_what_they_meant_when_the_tool_was_made(self) -> None:
        tool = self.make(read, ro=["."])
        keys = {"workdir": None, "ro": [sys.base_prefix], "rw": [".", {"path": "../lib", "optional": True}]}
        with belljar.Pool(policy={"ro": ["."]}) as pool, belljar.Jar(**keys) as jar:
            os.chdir("/")
            self.assertEqual(tool(str(self.file)), "a")
            self.assertEqual(pool.call(read, str(self.file)), "a")
            self.assertEqual(jar.call(append, str(self.file), "b"), "ab")
            self.assertTrue(jar._backend._rights.may_write(str(self.work)))
            self.assertTrue(jar._backend._rights.may_write(str(self.base / "lib")))
            self.assertFalse(jar._backend._rights.may_write("/"))

    def test_what_a_policy_file_makes_writable_is_not_imported(self) -> None:
        folder = self.base / "lib"
        folder.mkdir()
        (folder / "bj_written.py").write_text("")
        file = self.base / "policy.json"
        file.write_text('{"rw": ["lib"]}')
        script = f"""
import sys
sys.path.insert(0, {str(folder)!r})
import belljar
def load(): import bj_written
for policy in (belljar.Policy.load({str(file)!r}), {str(file)!r}):
    with belljar.Pool(policy=policy) as pool:
        try:
            pool.call(load)
        except belljar.CallError as error:
            print(error.type_name)
"""
        self.assertEqual(self.host(script), "ModuleNotFoundError\n" * 2)

    def test_keywords_win_over_the_policy(self) -> None:
        tool = self.make(remember, policy="strict", memory="1G", pids=200, timeout=60, ro=[self.work])
        self.assertEqual(tool("x"), "x")
        with self.assertRaises(belljar.PolicyError):
            self.make(remember, policy="strict", memory="1X")("x")

    def test_there_are_not_too_many_pools(self) -> None:
        belljar.call(len, "")
        for number in range(_pool.MAX_HIDDEN + 3):
            folder = self.base / str(number)
            folder.mkdir()
            (folder / "f").write_text("a")
            self.make(read, ro=[folder])(str(folder / "f"))
            self.assertLessEqual(len(_pool._by_policy), _pool.MAX_HIDDEN)
        self.assertEqual(len(_pool._by_policy), _pool.MAX_HIDDEN)
        self.assertEqual(self.make(read, ro=[self.base / "0"])(str(self.base / "0" / "f")), "a")

    def test_a_pool_in_use_is_not_closed(self) -> None:
        may_end = self.work / "go"
        wait = "import os,time\nwhile not os.path.exists(%r): time.sleep(0.01)" % str(may_end)
        tool = self.make(run_code, ro=[self.work], timeout=None)
        thread = threading.Thread(target=tool, args=(wait,))
        thread.start()
        self.wait_for(lambda: _pool._by_policy, "the call has its pool")
        first = next(iter(_pool._by_policy.values()))
        for number in range(_pool.MAX_HIDDEN + 1):
            self.make(remember, hostname=f"h{number}")("x")
        self.assertIn(first, _pool._by_policy.values())
        may_end.write_text("")
        thread.join()

    def test_they_end_with_the_program_and_are_not_inherited(self) -> None:
        script = """
import belljar, os, sys
@belljar.tool(ro=[%r])
def read(path): return open(path).read()
print(read(%r))
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    print(read(%r))
    sys.exit()
os.waitpid(pid, 0)
print(read(%r))
""" % ((str(self.work),) + (str(self.file),) * 3)
        self.assertEqual(self.host(script), "a\na\na\n")

    def test_nothing_is_left_open(self) -> None:
        path = str(self.file)
        tool = self.make(read, ro=[self.work])
        tool(path)
        _pool._at_exit()
        gc.collect()
        before = sorted(open_fds())
        tool(path)
        _pool._at_exit()
        gc.collect()
        self.assertEqual(sorted(open_fds()), before)


class Keywords(PackageCase):
    """Keywords of a call that its function does not take."""

    def test_what_is_fixed_for_a_jar(self) -> None:
        with belljar.Pool() as pool:
            for call in (belljar.call, pool.call):
                for name in ("rw", "ro", "net", "workdir", "policy", "cwd", "rung"):
                    with self.assertRaisesRegex(belljar.SendError, rf"fixed for a jar: use Pool\({name}=...\)"):
                        call(read, "x", **{name: "/data"})
            with belljar.Jar(workdir=None, ro=[sys.base_prefix]) as jar:
                with self.assertRaisesRegex(belljar.SendError, r"fixed for a jar: use Jar\(rw=...\)"):
                    jar.call(read, "x", rw="/data")
            with self.assertRaisesRegex(TypeError, r"fixed for a jar: use Pool\(rw="):
                pool.map(len, ["a"], rw=["/data"])

    def test_what_is_nearly_an_option(self) -> None:
        for name, meant in (("tiemout", "timeout"), ("memmory", "memory"), ("on_ouput", "on_output"), ("max_results", "max_result")):
            for fn in (len, read, functools.partial(read, "x"), str.upper):
                with self.assertRaisesRegex(belljar.SendError, f"did you mean '{meant}'"):
                    belljar.call(fn, "x", **{name: 1})

    def test_what_the_function_takes_is_its_own(self) -> None:
        self.assertEqual(belljar.call(takes_rw, rw=1, tiemout=2), 3)
        self.assertEqual(belljar.call(show, rw=1, tiemout=2, net="x"), {"rw": 1, "tiemout": 2, "net": "x"})
        self.assertEqual(belljar.call(dict, rw=1, tiemout=2), {"rw": 1, "tiemout": 2})
        self.assertEqual(belljar.call(functools.partial(show, timeout=1), policy=2), {"timeout": 1, "policy": 2})
        self.assertEqual(belljar.tool(takes_rw)(rw=1), 1)

    def test_other_mistakes_are_the_function_s(self) -> None:
        with self.assertRaisesRegex(belljar.CallError, "unexpected keyword argument 'nonsense'"):
            belljar.call(read, "x", nonsense=1)


class JarsInJars(PackageCase):
    """There are none, and the error says who tried."""

    def test_in_a_function(self) -> None:
        for fn in (run_in_jar, call_in_jar, open_in_jar, pool_in_jar, spawn_in_jar):
            line = fn.__code__.co_firstlineno + 2
            words = f"a jar cannot hold another jar: line {line} of .*test_tool.py tried"
            with self.assertRaisesRegex(belljar.CallError, words) as caught:
                belljar.call(fn)
            self.assertEqual(caught.exception.type_name, "belljar.UnavailableError")
            self.assertNotIn("imported", caught.exception.message or "")

    def test_in_a_command(self) -> None:
        script = self.work / "script.py"
        script.write_text(
            "import belljar\ntry:\n    print(belljar.run(['echo', 'hello']).stdout)\n"
            "except belljar.BelljarError as error:\n    print(type(error).__name__, error)\n"
        )
        package = str(Path(belljar.__file__).parent.parent)
        env = {"PYTHONPATH": package, "BELLJAR_BIN": engine_path(), "PYTHONDONTWRITEBYTECODE": "1"}
        result = belljar.run([sys.executable, script], ro=[package, engine_path(), sys.base_prefix], env=env)
        # Root may give up what the jar has left it: that is one of the rung landlock.
        words = r"\Ahello\b" if os.geteuid() == 0 else rf"a jar cannot hold another jar: line 3 of {script} tried"
        self.assertRegex(result.stdout, words, result.stderr)

    def test_while_a_module_is_imported(self) -> None:
        folder = self.base / "lib"
        folder.mkdir()
        (folder / "bj_runs.py").write_text("import belljar\n\nbelljar.run(['true'])\n")
        (folder / "bj_uses.py").write_text("def use():\n    import bj_runs\n")
        (folder / "bj_pools.py").write_text(
            "import belljar\n\nPOOL = belljar.Pool(timeout=20)\n\n"
            "@belljar.tool(pool=POOL)\ndef double(x):\n    return 2 * x\n\ndef use():\n    return POOL.call(len, '')\n"
        )
        script = f"""
import sys
sys.path.insert(0, {str(folder)!r})
import belljar, bj_uses, bj_pools
try:
    belljar.call(bj_uses.use)
except belljar.CallError as error:
    print(error.message.splitlines()[0])
print(bj_pools.double(4))
try:
    belljar.call(bj_pools.use)
except belljar.CallError as error:
    print(error.message.splitlines()[0])
bj_pools.POOL.close()
"""
        said = self.host(script).splitlines()
        self.assertEqual(
            said,
            [
                f"a jar cannot hold another jar: line 3 of {folder}/bj_runs.py, while the module 'bj_runs' was imported, tried to make one",
                "8",
                f"a jar cannot hold another jar: line 10 of {folder}/bj_pools.py tried to make one",
            ],
        )


if __name__ == "__main__":
    unittest.main()
