# SPDX-License-Identifier: Apache-2.0
"""Pool, Jar.call and @tool: many at once, what is imported from where, names that stay what they are."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import inspect
import marshal
import operator
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
import unittest
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List

import belljar
from belljar._cold import ColdBackend
from harness import host, paths
from package_case import PackageCase, engine_pid, open_fds, tearDownModule  # noqa: F401

SLEEP = 1000
# What setuptools puts beside its .pth file.
EDITABLE_FINDER = """\
import importlib.util, sys

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "bj_mapped":
            return importlib.util.spec_from_file_location(name, {work!r} + "/bj_project.py")

sys.meta_path.append(Finder)
"""


def where(module: str) -> Any:
    """In the jar: the file of a module."""
    return __import__(module).__file__


def read(path: str) -> str:
    return Path(path).read_text()


def write(path: str, text: str) -> int:
    return Path(path).write_text(text)


class Pools(PackageCase):
    def test_calls_of_a_pool(self) -> None:
        with belljar.Pool(concurrency=2, timeout=20) as pool:
            self.assertEqual(pool.call(operator.add, 1, 2), 3)
            self.assertEqual(list(pool.map(operator.neg, range(7), memory="300M")), [0, -1, -2, -3, -4, -5, -6])
            self.assertEqual(repr(pool), "<belljar.Pool open>")
        with self.assertRaisesRegex(belljar.EngineError, "closed"):
            pool.call(len, "")
        with self.assertRaisesRegex(belljar.EngineError, "closed"):
            pool.map(len, [""])
        pool.close()

    def test_arguments_that_will_not_do(self) -> None:
        for keys in ({"concurrency": 0}, {"renew_after": 0}, {"concurrency": "2"}):
            with self.assertRaises(ValueError):
                belljar.Pool(**keys)  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            belljar.Pool("json")
        for wrong in ({"tiemout": 3}, {"xyzzy": 3}):
            with self.assertRaisesRegex(belljar.PolicyError, "unknown key"):
                belljar.Pool(**wrong)  # type: ignore[arg-type]
        with belljar.Pool() as pool:
            with self.assertRaises(TypeError):
                pool.map(len, [""], key=3)
            with self.assertRaises(belljar.StartError):
                with belljar.Pool(python="/nonexistent/python3") as other:
                    other.call(len, "")

    def test_limits_are_the_pool_s(self) -> None:
        with belljar.Pool(memory="256M", policy={"pids": 50}) as pool:
            self.assertEqual(pool.call(len, "", memory="128M", pids=20), 0)
            for keys in ({"memory": "1G"}, {"memory": None}, {"memory": "1G", "timeout": None}):
                with self.assertRaises(belljar.CallError) as caught:
                    # A meter needs time to see it.
                    pool.call(lambda: (b"x" * (300 << 20), time.sleep(60))[1], **keys)
                self.assertTrue(isinstance(caught.exception, belljar.CallEnded) or caught.exception.type_name == "MemoryError")

    def test_map_ends_with_the_first_exception(self) -> None:
        with belljar.Pool(concurrency=2) as pool:
            seen: List[Any] = []
            with self.assertRaises(belljar.CallError) as caught:
                for value in pool.map(lambda x: 10 // x, [5, 2, 0, 1, 1]):
                    seen.append(value)
            self.assertEqual((seen, caught.exception.type_name), ([2, 5], "ZeroDivisionError"))
            endless = pool.map(operator.neg, iter(int, 1))
            self.assertEqual((next(endless), next(endless)), (0, 0))
            endless.close()  # type: ignore[attr-defined]
            self.assertEqual(pool.call(len, "ab"), 2)

    def test_more_calls_than_slots_wait(self) -> None:
        with belljar.Pool(concurrency=2) as pool, ThreadPoolExecutor(8) as threads:
            self.assertEqual(list(threads.map(lambda i: pool.call(operator.neg, i), range(12))), [-i for i in range(12)])

            async def main() -> List[Any]:
                return await asyncio.gather(*(pool.call_async(operator.neg, i) for i in range(6)))

            self.assertEqual(asyncio.run(main()), [0, -1, -2, -3, -4, -5])

    def test_who_waits_in_a_queue_can_leave_it(self) -> None:
        async def main() -> None:
            async with belljar.Pool(concurrency=1) as pool:
                first = asyncio.ensure_future(pool.call_async(time.sleep, SLEEP))
                second = asyncio.ensure_future(pool.call_async(len, "x"))
                third = asyncio.ensure_future(pool.call_async(len, "xyz"))
                await asyncio.sleep(0.1)
                second.cancel()
                first.cancel()
                self.assertEqual(await third, 3)
                for task in (first, second):
                    with self.assertRaises(asyncio.CancelledError):
                        await task

        asyncio.run(main())

    def test_closing_ends_what_is_under_way(self) -> None:
        pool = belljar.Pool(concurrency=1, timeout=None)
        seen: List[Any] = []

        def work() -> None:
            try:
                pool.call(subprocess.call, ["/bin/sh", "-c", "sleep 1000; true", self.marker])
            except belljar.BelljarError as error:
                seen.append(error)

        def wait() -> None:
            try:
                pool.call(len, "")
            except belljar.BelljarError as error:
                seen.append(error)

        threads = [threading.Thread(target=work)]
        threads[0].start()
        self.wait_for(self.marked, "the call runs")
        threads.append(threading.Thread(target=wait))
        threads[1].start()
        time.sleep(0.05)
        pool.close()
        self.assertEqual(self.marked(), [])
        for thread in threads:
            thread.join(60)
        self.assertEqual(sorted(type(error).__name__ for error in seen), ["CallEnded", "EngineError"])

    def test_a_run_that_stays_after_its_answer_gives_up_its_slot(self) -> None:
        def stay() -> None:
            from belljar import _answer

            parts, _ = _answer.WORDS.encode_parts("early")
            _answer.send_answer(4, _answer.VALUE, parts)
            time.sleep(SLEEP)

        with belljar.Pool(concurrency=1, timeout=None) as pool:
            self.assertEqual(pool.call(stay), "early")
            self.assertEqual(pool.call(len, "ab"), 2)

            async def main() -> Any:
                return await pool.call_async(stay), await pool.call_async(len, "abc")

            self.assertEqual(asyncio.run(main()), ("early", 3))
            self.assertEqual(pool.call(stay), "early")

    def test_preloaded_modules(self) -> None:
        with belljar.Pool(["json", "xml.dom.minidom"]) as pool:
            self.assertEqual(pool.call(lambda: "xml.dom.minidom" in __import__("sys").modules), True)
        (self.work / "broken_preload.py").write_text("import json\nraise RuntimeError('at import')\n")
        for name, kind in (("nonexistent_module", "ModuleNotFoundError"), ("broken_preload", "RuntimeError")):
            with belljar.Pool([name], import_paths=[self.work]) as pool, self.assertRaises(belljar.CallError) as caught:
                pool.call(len, "")
            self.assertEqual(caught.exception.type_name, kind)
            self.assertIn(kind, caught.exception.traceback or "")

    def test_a_pool_that_nobody_closed_says_so(self) -> None:
        pool = belljar.Pool()
        pool.call(len, "")
        with self.assertWarns(ResourceWarning):
            del pool
            gc.collect()

    def test_a_forked_child_starts_its_own(self) -> None:
        script = """
import belljar, os, sys
pool = belljar.Pool()
print(belljar.call(len, "a"), pool.call(len, "ab"), flush=True)
pid = os.fork()
if pid == 0:
    try:
        pool.call(len, "")
    except belljar.EngineError as error:
        print("refused", flush=True)
    print(belljar.call(len, "abc"), flush=True)
    sys.exit(0)
os.waitpid(pid, 0)
print(belljar.call(len, "abcd"), pool.call(len, "ab"))
pool.close()
"""
        self.assertEqual(self.host(script), "1 2\nrefused\n3\n4 2\n")

    def test_calls_see_nothing_of_each_other(self) -> None:
        with belljar.Pool(concurrency=1) as pool:
            self.assertEqual(pool.call(write, "/tmp/left", "x"), 1)
            self.assertEqual(pool.call(os.path.exists, "/tmp/left"), False)
            self.assertEqual(pool.call(write, "left", "x"), 1)
            self.assertEqual(pool.call(os.listdir, "."), [])

    def test_a_row_of_calls_and_many_at_once(self) -> None:
        """./dev soak has the large one."""
        before = open_fds()
        with belljar.Pool(concurrency=20, timeout=None) as pool:
            self.assertEqual([pool.call(operator.neg, i) for i in range(30)], [-i for i in range(30)])

            async def main() -> List[Any]:
                return await asyncio.gather(*(pool.call_async(operator.neg, i) for i in range(50)))

            self.assertEqual(asyncio.run(main()), [-i for i in range(50)])
        self.wait_for(lambda: len(open_fds()) <= len(before) + 2, "no descriptor is left")  # the engine's

    def test_nothing_leaks(self) -> None:
        before = open_fds()
        with belljar.Pool(concurrency=2) as pool:
            list(pool.map(len, ["", "a", "b"]))
            try:
                pool.call(os._exit, 1)
            except belljar.CallEnded:
                pass
        gc.collect()
        self.assertEqual([fd for fd in open_fds() if fd not in before and "memfd" in fd], [])
        self.wait_for(lambda: len(open_fds()) <= len(before) + 2, "no descriptor is left")  # the engine's


class Warm(PackageCase):
    """Interpreters that are kept and forked."""

    def setUp(self) -> None:
        super().setUp()
        if belljar.run(["true"], workdir=None).enforced["rung"] != "namespace":
            self.skipTest("needs:userns for warm interpreters")
        self.lib = self.base / "lib"
        self.lib.mkdir()

    def test_what_is_loaded_ahead_is_not_loaded_again(self) -> None:
        (self.lib / "bj_loaded.py").write_text("import os\nWHO = os.urandom(8)\n")
        with belljar.Pool(["bj_loaded"], import_paths=[self.lib]) as pool:
            who = lambda: __import__("bj_loaded").WHO  # noqa: E731
            self.assertEqual(pool.call(who), pool.call(who))

    def test_calls_do_not_see_what_others_changed(self) -> None:
        text = "import random\nstate = []\ndef f():\n    state.append(1)\n    return state, random.random()\n"
        (self.lib / "bj_state.py").write_text(text)
        with belljar.Pool(["bj_state"], import_paths=[self.lib]) as pool:
            seen = [pool.call(lambda: __import__("bj_state").f()) for _ in range(4)]
        self.assertEqual([state for state, _ in seen], [[1]] * 4)
        self.assertEqual(len({number for _, number in seen}), 4)

    def test_memory_that_modules_share_is_each_call_s_own(self) -> None:
        text = """
import mmap, os
anonymous = mmap.mmap(-1, 10_000)
anonymous[:3] = b"one"
name = "/tmp/shared"
with open(name, "wb+") as file:
    file.write(b"two" * 3000)
    file.flush()
    writable = mmap.mmap(file.fileno(), 9000)
    readable = mmap.mmap(file.fileno(), 9000, prot=mmap.PROT_READ)
    file.truncate(5000)
"""
        (self.lib / "bj_shares.py").write_text(text)
        with belljar.Pool(["bj_shares"], import_paths=[self.lib]) as pool:

            def change() -> Any:
                import bj_shares

                seen = bytes(bj_shares.anonymous[:4]), bytes(bj_shares.writable[4000:4003]), bytes(bj_shares.readable[:3])
                bj_shares.anonymous[:4] = b"xxxx"
                bj_shares.writable[:5000] = bytes(5000)
                maps = open("/proc/self/smaps").read().split("VmFlags:")[1:]
                return seen, [flags for flags in maps if {"sh", "mw"} <= set(flags.splitlines()[0].split())]

            for _ in range(3):
                self.assertEqual(pool.call(change), ((b"one\0", b"wot", b"two"), []))

    def test_what_modules_print_is_not_printed_again(self) -> None:
        (self.lib / "bj_prints.py").write_text("import sys\nprint('banner')\nsys.stderr.write('banner')\n")
        seen: List[Any] = []
        with belljar.Pool(["bj_prints"], import_paths=[self.lib]) as pool:
            pool.call(lambda: print("own"), on_output=lambda *piece: seen.append(piece))
        self.assertEqual(seen, [("stdout", b"own\n")])

    def test_modules_of_functions_are_loaded_ahead_once_they_were_called(self) -> None:
        (self.lib / "bj_learned.py").write_text("import os\nWHO = os.urandom(8)\ndef who():\n    return WHO\n")
        (self.lib / "bj_global.py").write_text("import os\nWHO = os.urandom(8)\n")
        self.addCleanup(sys.path.__setitem__, slice(None), list(sys.path))
        sys.path.insert(0, str(self.lib))
        bj_learned, bj_global = __import__("bj_learned"), __import__("bj_global")
        for name in ("bj_learned", "bj_global"):
            self.addCleanup(sys.modules.pop, name)
        space: Dict[str, Any] = {"bj_global": bj_global, "__name__": "nowhere"}
        exec("def by_value(): return bj_global.WHO", space)
        by_value: Any = space["by_value"]
        for fn in (bj_learned.who, by_value):
            with belljar.Pool() as pool:
                self.assertNotEqual(pool.call(fn), fn())
                self.wait_for(lambda: pool.call(fn) == pool.call(fn), "the module is loaded ahead")

    def test_a_module_that_cannot_be_loaded_ahead_is_not(self) -> None:
        text = "import os, sys\nif 'belljar._zygote' in sys.modules:\n    os._exit(9)\ndef f():\n    return 5\n"
        (self.lib / "bj_picky.py").write_text(text)
        self.addCleanup(sys.path.__setitem__, slice(None), list(sys.path))
        sys.path.insert(0, str(self.lib))
        picky = __import__("bj_picky")
        self.addCleanup(sys.modules.pop, "bj_picky")
        with belljar.Pool() as pool:
            with self.assertRaises(belljar.CallEnded):
                pool.call(picky.f)
            self.wait_for(lambda: pool.call(len, "ab") == 2 and not pool._zygotes._loads_used_modules, "it is given up")

    def test_too_much_shared_memory_is_refused(self) -> None:
        (self.lib / "bj_shares_much.py").write_text("import mmap\nm = mmap.mmap(-1, 100 << 20)\n")
        with belljar.Pool(["bj_shares_much"], import_paths=[self.lib]) as pool, self.assertRaises(belljar.CallError) as caught:
            pool.call(len, "")
        self.assertIn("writable memory", caught.exception.message or "")

    def test_renewal_after_so_many_calls(self) -> None:
        with belljar.Pool(renew_after=3) as pool:
            pool.call(len, "")
            first = pool._zygotes._zygote
            for _ in range(5):
                pool.call(len, "")
            self.wait_for(lambda: pool._zygotes._zygote is not first and not pool._zygotes._retired, "a new zygote")
            self.assertEqual(pool.call(len, "ab"), 2)

    def test_renewal_when_a_file_changes(self) -> None:
        file = self.lib / "bj_changing.py"
        file.write_text("VALUE = 1\n")
        value = lambda: __import__("bj_changing").VALUE  # noqa: E731
        with belljar.Pool(["bj_changing"], import_paths=[self.lib]) as pool:
            self.assertEqual(pool.call(value), 1)
            file.write_text("VALUE = 22\n")
            self.wait_for(lambda: pool.call(value) == 22, "the new text")
            file.write_text("VALUE = 1 / 0\n")
            seen: List[Any] = []

            def is_told() -> bool:
                try:
                    pool.call(value)
                except belljar.CallError as error:
                    seen.append(error)
                return bool(seen)

            self.wait_for(is_told, "that it cannot be loaded any more")
            self.assertEqual(seen[0].type_name, "ZeroDivisionError")
            self.assertIn("bj_changing.py", seen[0].traceback)
            file.write_text("VALUE = 333\n")
            self.assertEqual(pool.call(value), 333)

    def test_a_zygote_that_was_killed_is_replaced(self) -> None:
        with belljar.Pool() as pool:
            pool.call(len, "")
            engine = engine_pid()
            os.kill(engine, 9)
            failures: List[belljar.EngineError] = []

            def is_replaced() -> bool:
                """A fork that is ready already may still answer, without the engine."""
                try:
                    self.assertEqual(pool.call(len, "ab"), 2)
                except belljar.EngineError as error:
                    failures.append(error)
                return engine_pid() != engine

            self.wait_for(is_replaced, "another engine")
            self.assertEqual(pool.call(len, "abc"), 3)
            self.assertLess(len(failures), 5)

    def test_the_environment_is_that_of_the_moment(self) -> None:
        self.addCleanup(os.environ.pop, "LC_BELLJAR", None)
        with belljar.Pool(env={"A": "1"}) as pool:
            get = lambda *names: [__import__("os").environ.get(name) for name in names]  # noqa: E731
            self.assertEqual(pool.call(get, "LC_BELLJAR", "A", "B"), [None, "1", None])
            os.environ["LC_BELLJAR"] = "x"
            self.assertEqual(pool.call(get, "LC_BELLJAR", "A", "B", env={"B": "2"})[::2], ["x", "2"])
            self.assertEqual(pool.call(get, "LC_BELLJAR", "A", "B"), ["x", "1", None])


class Cold(PackageCase):
    """Where no zygote can be had, each call has an interpreter of its own."""

    def test_without_user_namespaces(self) -> None:
        host.need("landlock")
        script = """
import asyncio, belljar, os, sys, time
print(belljar.call(len, "ab"))
for fn in (lambda: 1 / 0, lambda: os._exit(3), object, lambda: time.sleep(1000)):
    try:
        belljar.call(fn, timeout=1)
    except belljar.CallError as error:
        print(type(error).__name__, error.result.outcome, error.result.enforced["rung"])
async def main():
    async with belljar.Pool(["json"], concurrency=2) as pool:
        return await asyncio.gather(*(pool.call_async(pow, 2, i) for i in range(5)))
print(asyncio.run(main()))
"""
        done = subprocess.run(
            [paths.tool("deny"), "userns", "--", sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        rows = [f"{name} {outcome} landlock" for name, outcome in (("CallError", "exited"), ("CallEnded", "exited"))]
        rows += ["ResultError exited landlock", "CallTimeout timeout landlock"]
        self.assertEqual((done.stderr, done.stdout.splitlines()), ("", ["2", *rows, "[1, 2, 4, 8, 16]"]))

    def test_the_cold_way_by_itself(self) -> None:
        with belljar.Pool(["json"], concurrency=2) as pool:
            pool._zygotes._cold = ColdBackend(*pool._zygotes._arguments)
            self.assertEqual(list(pool.map(operator.neg, range(4))), [0, -1, -2, -3])
            with self.assertRaises(belljar.CallError) as caught:
                pool.call(operator.truediv, 1, 0)
            self.assertEqual(caught.exception.type_name, "ZeroDivisionError")
            self.assertIsNone(pool._zygotes._zygote)


class Imports(PackageCase):
    """By import where that is possible, and never what a jar wrote."""

    def setUp(self) -> None:
        super().setUp()
        self.lib = self.base / "lib"
        self.lib.mkdir()
        self.path_before = list(sys.path)
        self.addCleanup(lambda: sys.path.__setitem__(slice(None), self.path_before))

    def use(self, folder: Path, name: str, text: str) -> Any:
        """Import a module of that text, as the caller does."""
        (folder / f"{name}.py").write_text(text)
        self.addCleanup(sys.modules.pop, name, None)
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        return __import__(name)

    def test_the_caller_s_path_is_visible_and_read_only(self) -> None:
        module = self.use(self.lib, "bj_visible", "state = []\ndef f(x):\n    state.append(x)\n    return state, __file__\n")
        self.assertEqual(belljar.call(module.f, 1), ([1], str(self.lib / "bj_visible.py")))
        self.assertEqual(belljar.call(module.f, 2)[0], [2])
        self.assertEqual(module.state, [])
        with self.assertRaises(belljar.CallError) as caught:
            belljar.call(write, str(self.lib / "x.py"), "")
        self.assertIn(caught.exception.type_name, ("OSError", "PermissionError"))

    def test_sys_path_inside_is_the_caller_s(self) -> None:
        sys.path[:0] = ["", str(self.lib)]
        inside = belljar.call(lambda: __import__("sys").path)
        self.assertNotIn("", inside)
        self.assertEqual(inside[0], str(self.lib))

    def test_a_directory_that_the_jar_can_write_is_not_imported_from(self) -> None:
        module = self.use(self.work, "bj_writable", "def f():\n    return __name__\n")
        with belljar.Pool(workdir=self.work) as pool:
            self.assertNotIn(str(self.work), pool.call(lambda: __import__("sys").path))
            self.assertEqual(pool.call(module.f), "bj_writable")  # by value
            pool.call(write, "bj_evil.py", "EVIL = 1\n")
            with self.assertRaises(belljar.CallError) as caught:
                pool.call(where, "bj_evil")
            self.assertEqual(caught.exception.type_name, "ModuleNotFoundError")
        with belljar.Pool(workdir=self.work, import_paths=[self.work]) as pool:
            self.assertEqual(pool.call(where, "bj_evil"), str(self.work / "bj_evil.py"))
        with belljar.Pool(workdir=self.work, workdir_mode="ro") as pool:
            self.assertEqual(pool.call(where, "bj_writable"), str(self.work / "bj_writable.py"))
        with belljar.Pool(rw=[self.work]) as pool, self.assertRaises(belljar.CallError):
            pool.call(where, "bj_writable")

    def test_nor_is_a_writable_directory_further_down(self) -> None:
        sys.path.insert(0, str(self.base))
        (self.work / "evil.py").write_text("")
        with belljar.Pool(workdir=self.work) as pool:
            with self.assertRaises(belljar.CallError) as caught:
                pool.call(where, "work.evil")
            self.assertEqual(caught.exception.type_name, "ModuleNotFoundError")
            self.assertIn("import_paths", caught.exception.message or "")

    def refused_import(self, pool: belljar.Pool, name: str) -> None:
        with self.assertRaises(belljar.CallError) as caught:
            pool.call(where, name)
        self.assertEqual(caught.exception.type_name, "ModuleNotFoundError")

    def test_nor_is_byte_code_or_what_a_link_leads_to(self) -> None:
        """A module of a directory that is read-only, of which a part lies where the jar can write."""
        sys.path.insert(0, str(self.lib))
        for name in ("bj_cached", "bj_linked", "bj_through"):
            (self.lib / f"{name}.py").write_text("EVIL = 0\n")
        cache = self.work / "cache"
        cache.mkdir()
        evil = self.work / "evil.py"
        evil.write_text("EVIL = 1\n")
        facts = os.stat(self.lib / "bj_cached.py")
        header = importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, int(facts.st_mtime), facts.st_size)
        code = marshal.dumps(compile("EVIL = 1\n", "x", "exec"))
        cached = os.path.basename(importlib.util.cache_from_source("bj_cached.py"))
        (cache / cached).write_bytes(header + code)
        with belljar.Pool(workdir=self.work) as pool:
            self.assertEqual(pool.call(where, "bj_cached"), str(self.lib / "bj_cached.py"))
        shutil.rmtree(self.lib / "__pycache__", ignore_errors=True)
        (self.lib / "__pycache__").symlink_to(cache)
        (self.lib / "bj_linked.py").unlink()
        (self.lib / "bj_linked.py").symlink_to(evil)
        # Through a link that the jar can replace, to what it cannot write.
        (self.work / "step").symlink_to(self.lib)
        (self.lib / "bj_package").symlink_to(self.work / "step" / "bj_real")
        (self.lib / "bj_real").mkdir()
        (self.lib / "bj_real" / "__init__.py").write_text("")
        # Byte code without a source; an archive; a part of a package without a file of its own.
        (self.work / "bj_bare.pyc").write_bytes(header + code)
        (self.lib / "bj_bare.pyc").symlink_to(self.work / "bj_bare.pyc")
        with zipfile.ZipFile(self.work / "a.zip", "w") as archive:
            archive.writestr("bj_zipped.py", "EVIL = 1\n")
        (self.lib / "a.zip").symlink_to(self.work / "a.zip")
        sys.path.insert(0, str(self.lib / "a.zip"))
        (self.lib / "bj_space").symlink_to(self.work)
        with belljar.Pool(workdir=self.work) as pool:
            for name in ("bj_cached", "bj_linked", "bj_package", "bj_bare", "bj_zipped", "bj_space"):
                with self.subTest(name):
                    self.refused_import(pool, name)
        with belljar.Jar(workdir=self.work, ro=[self.lib]) as jar:
            for name in ("bj_cached", "bj_linked", "bj_package", "bj_bare", "bj_zipped", "bj_space"):
                with self.subTest(name), self.assertRaises(belljar.CallError):
                    jar.call(where, name)

    def test_nor_does_the_interpreter_begin_with_what_lies_there(self) -> None:
        """Editable installs: a .pth file of the interpreter names the project, which the jar can write."""
        home = self.base / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
        site = next(home.glob("lib/python*/site-packages"))
        (site / "project.pth").write_text(f"{self.work}\n")
        (site / "editable.pth").write_text("import bj_editable_finder\n")
        (site / "bj_editable_finder.py").write_text(EDITABLE_FINDER.format(work=str(self.work)))
        for name in ("sitecustomize", "bj_project"):
            (self.work / f"{name}.py").write_text("open('/tmp/evil', 'w').close()\n")
        with belljar.Pool(python=str(home / "bin" / "python"), workdir=self.work) as pool:
            found = pool.call(lambda: [str(getattr(module, "__file__", "")) for module in sys.modules.values()])
            self.assertIn(str(site / "bj_editable_finder.py"), found)
            self.assertFalse([file for file in found if file.startswith(str(self.work))])
            self.refused_import(pool, "bj_project")
            self.refused_import(pool, "bj_mapped")

    def test_a_policy_that_says_where(self) -> None:
        with belljar.Pool(policy={"workdir": str(self.work)}) as pool:
            self.assertEqual(pool.call(os.getcwd), str(self.work))
        policy = self.base / "policy.json"
        policy.write_text('{"workdir": "work", "memory": "256M"}')
        with belljar.Pool(policy=policy) as pool:
            self.assertEqual(pool.call(os.getcwd), str(self.work))
            self.assertEqual(pool.call(len, "", memory="1G"), 0)
        with belljar.Pool(policy="strict") as pool:
            self.assertEqual(pool.call(os.getcwd), "/workspace")

    def test_a_home_directory_is_not_shown_for_a_script_s_sake(self) -> None:
        script = """
import os, sys, belljar
def look(path):
    import os
    return os.path.exists(path + "/.secret")
print(belljar.call(look, os.environ["HOME"]))
"""
        home = self.base / "home"
        home.mkdir()
        (home / ".secret").write_text("s")
        (home / "run.py").write_text(script)
        done = subprocess.run(
            [sys.executable, str(home / "run.py")],
            env={**os.environ, "HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual((done.stdout, done.stderr), ("False\n", ""))

    def test_another_interpreter(self) -> None:
        other = "/usr/bin/python3"
        if os.path.realpath(other) == os.path.realpath(sys.executable) or not os.path.exists(other):
            self.skipTest("needs:another interpreter")
        with belljar.Pool(python=other, policy="agent") as pool:
            self.assertEqual(pool.call(operator.add, 1, 2), 3)


class InAJar(PackageCase):
    """Jar.call: over the files of a jar that stays."""

    def test_calls_share_the_jar_s_files(self) -> None:
        with belljar.Jar(ro=[sys.base_prefix]) as jar:
            self.assertEqual(jar.call(write, "/tmp/a", "text"), 4)
            self.assertEqual(jar.call(read, "/tmp/a"), "text")
            self.assertEqual(jar.read_file("/tmp/a"), b"text")
            self.assertEqual(jar.call(os.getcwd), str(self.work))
            self.assertEqual(jar.call(os.getcwd, cd="/tmp"), "/tmp")
            self.assertEqual(jar.call(os.environ.get, "A", env={"A": "b"}), "b")
            with self.assertRaises(belljar.CallTimeout):
                jar.call(time.sleep, SLEEP, timeout=0.5)
            self.assertEqual(jar.call(len, "", memory="2G"), 0)

            async def main() -> Any:
                return await asyncio.gather(jar.call_async(read, "/tmp/a"), jar.call_async(len, "abc"))

            self.assertEqual(asyncio.run(main()), ["text", 3])
        with self.assertRaises(belljar.EngineError):
            jar.call(len, "")

    def test_what_it_wrote_is_not_imported(self) -> None:
        self.addCleanup(sys.path.__setitem__, slice(None), list(sys.path))
        sys.path.insert(0, str(self.work))
        with belljar.Jar(ro=[sys.base_prefix]) as jar:
            jar.call(write, "operator_evil.py", "")
            jar.call(write, "/tmp/json.py", "raise SystemExit(9)")
            jar.run("mkdir -p ~/.local/lib/python3.11/site-packages; echo 'raise SystemExit(9)' > json.py", shell=True)
            self.assertIn("json", jar.call(where, "json"))
            with self.assertRaises(belljar.CallError) as caught:
                jar.call(where, "operator_evil")
            self.assertEqual(caught.exception.type_name, "ModuleNotFoundError")


@belljar.tool
def factorial(n: int) -> int:
    """n!"""
    return 1 if n < 2 else n * factorial(n - 1)


@belljar.tool(timeout=20, types=[inspect.Traceback])
async def pids(times: int) -> List[int]:
    return [os.getpid(), (await pids(times - 1))[0]] if times else [os.getpid()]


class Box:
    def __init__(self, x: int) -> None:
        self.x = x

    @belljar.tool
    def get(self, timeout: int) -> Any:
        return self.x + timeout, os.getcwd()


class Tools(PackageCase):
    def test_the_decorated_function_is_called_in_a_jar(self) -> None:
        self.assertEqual(factorial(5), 120)
        self.assertEqual(factorial(n=3), 6)
        self.assertNotEqual(Box(1).get(2)[1], os.getcwd())
        self.assertEqual(Box(1).get(timeout=2)[0], 3)

    def test_inside_it_is_the_plain_function(self) -> None:
        first, second = asyncio.run(pids(1))
        self.assertEqual(first, second)
        self.assertNotEqual(first, os.getpid())

    def test_it_looks_as_before(self) -> None:
        self.assertEqual((factorial.__name__, factorial.__doc__, factorial.__module__), ("factorial", "n!", __name__))
        self.assertEqual(str(inspect.signature(factorial)), "(n: 'int') -> 'int'")
        self.assertEqual(factorial.__wrapped__(1), 1)  # type: ignore[attr-defined]
        self.assertTrue(inspect.iscoroutinefunction(pids))
        self.assertFalse(inspect.iscoroutinefunction(factorial))

    def test_tools_of_main(self) -> None:
        script = """
import belljar, os
@belljar.tool
def even(n): return n == 0 or odd(n - 1)
@belljar.tool
def odd(n): return n != 0 and even(n - 1)
@belljar.tool
def inside(): return os.getpid()
print(even(10), odd(10), inside() != os.getpid())
"""
        self.assertEqual(self.host(script), "True False True\n")

    def test_what_cannot_be_a_tool(self) -> None:
        def generator() -> Any:
            yield 1

        for wrong in (generator, len, Box, 3):
            with self.assertRaises(TypeError):
                belljar.tool(wrong)  # type: ignore[type-var]
        for wrong_options in ({"types": [int]}, {"tiemout": 3}, {"pool": 3}, {"xyz": 1}):
            with self.assertRaises(TypeError):
                belljar.tool(**wrong_options)


if __name__ == "__main__":
    unittest.main()
