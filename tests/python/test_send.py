# SPDX-License-Identifier: Apache-2.0
"""Functions and arguments as bytes. Hosts and readers are interpreters of their own: what is tested is what crosses."""

from __future__ import annotations

import functools
import operator
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from os import environ
from pathlib import Path
from typing import Any, List

from belljar import _send
from belljar._errors import SendError

BOUND_SECONDS = 120

# Unpickles what stands in a file, one call after the other, and prints what each gives.
READER = """
import inspect, sys, asyncio
from belljar import _send
data = open(sys.argv[1], "rb").read()
while data:
    size = _send.HEADER.size + _send.HEADER.unpack_from(data)[4]
    try:
        fn, args, kwargs = _send.unpack(data[:size])
        value = fn(*args, **kwargs)
        print(repr(asyncio.run(value) if inspect.iscoroutine(value) else value))
    except Exception as error:
        print(type(error).__name__, error)
    data = data[size:]
"""

HOST = """
import functools, json, os.path, sys, types, xml.dom.minidom
from belljar import _send
import helper_module

FACTOR = 3
table = {"k": [1, 2]}
counter = 0

def plain(x): return x * FACTOR
def uses_plain(x): return plain(x) + 1
def recursive(n): return 1 if n < 2 else n * recursive(n - 1)
def even(n): return True if n == 0 else odd(n - 1)
def odd(n): return False if n == 0 else even(n - 1)
def defaults(a, b=2, *rest, c=table, **more): return a, b, rest, c, more
def modules(): return json.dumps({"a": 1}), os.path.join("a", "b"), sys.maxsize > 0
def submodule(): return xml.dom.minidom.parseString("<a/>").documentElement.tagName
def attribute_named_like_a_global(): return types.SimpleNamespace(table=1).table
def counts():
    global counter
    counter += 1
    return counter
async def later(x): return plain(x)
def generator(n): yield from range(n)
def takes(fn, *args): return fn(*args)
def documented(x: int, y: "text" = 1) -> list:
    "the words"
    return documented.__doc__, documented.__name__, documented.__annotations__, documented.extra, __name__
documented.extra = [1]
@functools.lru_cache(maxsize=7)
def cached(n): return 1 if n < 2 else n * cached(n - 1)
def decorate(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return "wrapped", fn(*args)
    return wrapper
@decorate
def decorated(x): return x
def makes(n):
    hidden = n
    def inner(x):
        nonlocal hidden
        hidden += x
        return hidden
    def show(): return hidden
    def both(x): return inner(x), show()
    def factorial(k): return 1 if k < 2 else k * factorial(k - 1)
    return inner, both, factorial
def late():
    def use(): return value
    def never(): return missing
    value = 5
    if value == 6: missing = 1
    return use, never
def in_class_body():
    class Local:
        value = FACTOR
    return Local.value
def fails_inside(): return no_such_name

def tool_wrapper(*args): raise AssertionError("the wrapper was sent")
def tool_plain(n): return "plain", (tool_wrapper(n - 1) if n else None)
_send.mark_tool(tool_wrapper, tool_plain)

inner, both, factorial = makes(10)
use, never = late()
path = helper_module.Holder(4)
calls = [
    (plain, 5), (uses_plain, 5), (recursive, 5), (even, 10), (defaults, 1), (modules,), (submodule,),
    (attribute_named_like_a_global,), (counts,), (later, 2), (takes, plain, 4), (takes, lambda x: x + FACTOR, 4),
    (lambda: FACTOR,), (documented, 1), (cached, 5), (decorated, 1), (inner, 5), (both, 5), (factorial, 5), (use,), (never,),
    (in_class_body,), (fails_inside,), (tool_wrapper, 1), (functools.partial(plain, 7),),
    (functools.partial(lambda a, b: a - b, b=1), 7), (helper_module.public, 2), (path.add, 3), (helper_module.Holder.make, 8),
    (types.MethodType(lambda self, x: self.start * x, path), 3), (len, "abc"), (str.upper, "x"), (generator, 2),
    (helper_module.tool, 3), (takes, helper_module.tool, 3), (takes, helper_module.tool_plain, 3), (takes, cached, 4),
]
with open(sys.argv[1], "wb") as file:
    for fn, *args in calls:
        file.write(b"".join(_send.pack(fn, args)))
"""


HELPER = """
from belljar import _send
def public(x): return ("public", x)
class Holder:
    def __init__(self, start): self.start = start
    def add(self, x): return self.start + x
    @classmethod
    def make(cls, x): return cls(x).start
def tool(*args): raise AssertionError("the wrapper was sent")
def tool_plain(x): return ("tool", x)
tool_plain.__qualname__ = "tool"
_send.mark_tool(tool, tool_plain)
"""


def module_level(x: int) -> int:
    """Can be imported where this module can."""
    return x + 1


class Unreachable:
    """A class of a module that is made unimportable in a test."""


class InNewInterpreters(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bjt-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "modules").mkdir()
        (self.folder / "modules" / "helper_module.py").write_text(HELPER)

    def python(self, script: str, *arguments: str) -> List[str]:
        path = os.pathsep.join([str(self.folder / "modules"), *filter(None, sys.path)])
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env={**os.environ, "PYTHONPATH": path},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_functions_of_main(self) -> None:
        calls = str(self.folder / "calls")
        self.python(HOST, calls)
        words = [
            *("15", "16", "120", "True", "(1, 2, (), {'k': [1, 2]}, {})", "('{\"a\": 1}', 'a/b', True)", "'a'", "1", "1"),
            *("6", "12", "7", "3"),
            "('the words', 'documented', {'x': <class 'int'>, 'y': 'text', 'return': <class 'list'>}, [1], '__main__')",
            *("120", "('wrapped', 1)", "15", "(15, 15)", "120", "5"),
        ]
        lines = self.python(READER, calls)
        self.assertEqual(lines[: len(words)], words)
        rest = lines[len(words) :]
        self.assertIn("NameError", rest.pop(0))
        self.assertEqual(rest.pop(0), "3")
        self.assertIn("NameError name 'no_such_name'", rest.pop(0))
        self.assertEqual(rest.pop(0), "('plain', ('plain', None))")
        self.assertEqual(rest[:7], ["21", "6", "('public', 2)", "7", "8", "12", "3"])
        self.assertEqual(rest[7], "'X'")
        self.assertIn("generator object", rest[8])
        self.assertEqual(rest[9:], ["('tool', 3)", "('tool', 3)", "('tool', 3)", "24"])


class Packing(unittest.TestCase):
    def pack(self, fn: Any, *args: Any, **kwargs: Any) -> bytes:
        return b"".join(_send.pack(fn, args, kwargs))

    def flags(self, data: bytes) -> int:
        return int(_send.HEADER.unpack_from(data)[2])

    def test_by_import_where_that_is_possible(self) -> None:
        for fn in (module_level, operator.add, len, os.path.join, functools.partial(module_level, 1), dict.fromkeys):
            data = self.pack(fn)
            self.assertEqual(self.flags(data), 0, fn)
        self.assertIs(_send.unpack(self.pack(module_level))[0], module_level)

    def test_by_value_where_it_is_not(self) -> None:
        local = 5
        for fn in (lambda: local, functools.partial(lambda: 1)):
            self.assertEqual(self.flags(self.pack(fn)), _send.HAS_CODE)
        self.assertEqual(_send.unpack(self.pack(lambda x: x + local, 1))[0](1), 6)

    def test_a_module_outside_the_paths_is_sent_by_value(self) -> None:
        here = os.path.dirname(os.path.abspath(__file__))
        paths = [path for path in _send.import_paths() if path != here]
        data = b"".join(_send.pack(module_level, (1,), paths=paths))
        self.assertEqual(self.flags(data), _send.HAS_CODE)
        fn, args, _ = _send.unpack(data)
        self.assertIsNot(fn, module_level)
        self.assertEqual(fn(*args), 2)

    def test_the_current_directory_is_no_import_path(self) -> None:
        before = list(sys.path)
        sys.path.insert(0, "")
        try:
            self.assertNotIn("", _send.import_paths())
            self.assertEqual(list(_send.import_paths()), [os.path.abspath(path) for path in before if path])
        finally:
            sys.path[:] = before

    def test_a_name_that_leads_other_loops_is_no_import(self) -> None:
        impostor = types.FunctionType(module_level.__code__, module_level.__globals__, "module_level")
        impostor.__qualname__, impostor.__module__ = "module_level", __name__
        self.assertEqual(self.flags(self.pack(impostor)), _send.HAS_CODE)

    def test_arguments_arrive(self) -> None:
        value = {"a": [1, {2}], "b": (b"x" * 200_000, Path("/x"))}
        fn, args, kwargs = _send.unpack(self.pack(module_level, value, key=value))
        self.assertEqual((fn, args, kwargs), (module_level, (value,), {"key": value}))

    def test_types_without_a_name_in_builtins(self) -> None:
        value = [types.FunctionType, types.MethodType, type(None), type(...), types.ModuleType, int]
        self.assertEqual(_send.unpack(self.pack(module_level, value))[1], (value,))

    def test_large_arguments_are_not_copied(self) -> None:
        big = bytes(4 << 20)
        parts = _send.pack(module_level, [big])
        self.assertTrue(any(part is big for part in parts))

    def refused(self, fn: Any, *args: Any, words: List[str], **kwargs: Any) -> None:
        with self.assertRaises(SendError) as caught:
            self.pack(fn, *args, **kwargs)
        self.assertIsInstance(caught.exception, TypeError)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_what_cannot_be_sent_is_named(self) -> None:
        lock = threading.Lock()

        class Local:
            held = lock

        def closes_over() -> Any:
            return lock

        def calls_it() -> Any:
            return closes_over()

        self.refused(3, words=["int"])
        self.refused(module_level, lock, words=["argument 0 of 'module_level'", "lock"])
        self.refused(module_level, 1, key=lock, words=["argument 'key'", "lock"])
        self.refused(closes_over, words=["function", "the closed-over 'lock'"])
        self.refused(calls_it, words=["the closed-over 'closes_over'", "the closed-over 'lock'"])
        self.refused(module_level, Local(), words=["argument 0", "its class", "'held' of the class", "Local", "lock"])
        self.refused(Local().__init__, words=["lock"])
        self.refused(lambda: Local, words=["the closed-over 'Local'", "'held' of the class", "lock"])
        self.refused(module_level, (n for n in ()), words=["generator"])
        self.refused(module_level, open(os.devnull, "rb").close() or sys.stdout, words=["argument 0"])
        made = types.ModuleType("made_here")
        self.refused(lambda: made, words=["the module made_here"])

    def test_annotations_that_cannot_be_sent_are_text(self) -> None:
        class Local:
            pass

        def annotated(x: int) -> int:
            return x

        annotated.__annotations__ = {"x": Local, "return": int}
        fn = _send.unpack(self.pack(annotated))[0]
        self.assertEqual(fn.__annotations__["return"], int)
        self.assertIn("Local", fn.__annotations__["x"])

    def test_the_caller_s_environment_does_not_go_along(self) -> None:
        os.environ["BELLJAR_SECRET"] = "hidden-value"
        self.addCleanup(os.environ.pop, "BELLJAR_SECRET")
        for fn in (os.environ.get, os.environb.get, lambda: environ["x"]):
            data = self.pack(fn, os.environ, key=[os.environ])
            self.assertNotIn(b"hidden-value", data)
        self.assertIs(_send.unpack(data)[1][0], os.environ)

    def test_large_buffers_are_not_copied(self) -> None:
        class Buffer:
            def __init__(self, data: bytearray) -> None:
                self.data = data

            def __reduce_ex__(self, protocol: int) -> Any:
                return bytearray, (pickle.PickleBuffer(self.data),)

        for value in (bytes(200_000), bytearray(200_000), Buffer(bytearray(200_000))):
            parts = _send.pack(len, (value,))
            self.assertEqual(_send.unpack(b"".join(parts))[1], (bytes(200_000),))
            held = [part for part in parts if len(part) == 200_000]
            self.assertEqual(len(held), 1)
            source = value.data if isinstance(value, Buffer) else value
            self.assertIs(held[0] if type(value) is bytes else held[0].obj, source)

    def test_what_is_no_call_is_refused(self) -> None:
        data = self.pack(lambda: 1)
        for wrong in (b"", data[:10], data[:-1], data + b"x", b"X" + data[1:], data[:4] + b"\1\0" + data[6:]):
            with self.assertRaises(SendError):
                _send.unpack(wrong)
        other = bytearray(data)
        other[8] ^= 1
        with self.assertRaises(SendError) as caught:
            _send.unpack(other)
        self.assertIn("another Python", str(caught.exception))

    def test_what_cannot_be_made_inside_says_why(self) -> None:
        body = pickle.dumps((module_level, (), {})).replace(b"module_level", b"module_lever")
        data = _send.HEADER.pack(_send.MAGIC, _send.FORMAT, 0, _send.BYTECODE, len(body)) + body
        with self.assertRaises(SendError) as caught:
            _send.unpack(data)
        self.assertIn("module_lever", str(caught.exception))

    def test_wrapping_a_tool_does_not_make_a_tool(self) -> None:
        def plain() -> str:
            return "plain"

        def wrapper() -> str:
            return "wrapper"

        _send.mark_tool(wrapper, plain)

        @functools.wraps(wrapper)
        def outer() -> str:
            return "outer " + wrapper()

        self.assertIs(_send.plain_function(wrapper), plain)
        self.assertIs(_send.plain_function(outer), outer)
        self.assertEqual(_send.unpack(self.pack(outer))[0](), "outer plain")
        self.assertEqual(_send.plain_function([]), [])


if __name__ == "__main__":
    unittest.main()
