# SPDX-License-Identifier: Apache-2.0
"""node/lib/cell.py - a Python in a jar that runs cells and keeps their variables; lib/python.js is the other side.

Requests are lines of JSON on standard input, the first one the word of the marks. An answer is a mark and JSON on standard output, and a
mark on standard error, each after all that the cell has written; see lib/kept.js. Cells run in this very process and may do anything to it,
so nothing that comes from here is believed.
"""

import ast
import base64
import builtins
import ctypes
import json
import os
import signal
import sys
import traceback
import types

SAFE = 2**53
MAX_NODES, MAX_DEPTH, MAX_TEXT = 1_000_000, 100, 100_000
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
OWN_FILE = (lambda: None).__code__.co_filename


def pack(value, left, depth=0):
    """A value as lib/data.js reads it; TypeError if it is no data."""
    left[0] -= 1
    if left[0] < 0 or depth > MAX_DEPTH:
        raise TypeError("too large")
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if abs(value) < SAFE else {"$bigint": format(value, "x")}
    if kind is float:
        if value != value or value in (float("inf"), float("-inf")):
            return {"$number": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
        return {"$number": "-0"} if value == 0 and str(value) == "-0.0" else value
    if kind in (bytes, bytearray):
        return {"$bytes": base64.b64encode(value).decode()}
    if kind in (list, tuple):
        return [pack(item, left, depth + 1) for item in value]
    if kind in (set, frozenset):
        return {"$set": [pack(item, left, depth + 1) for item in value]}
    if kind is dict:
        pairs = [[pack(key, left, depth + 1), pack(item, left, depth + 1)] for key, item in value.items()]
        if not all(type(key) is str for key in value):
            return {"$map": pairs}
        return {"$object": pairs} if any(key.startswith("$") for key in value) else dict(pairs)
    raise TypeError(kind.__name__)


def unpack(value):
    """A value as lib/data.js writes it."""
    if type(value) is list:
        return [unpack(item) for item in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        (word, item), = value.items()
        special = {
            "$undefined": lambda: None,
            "$number": lambda: float(item.replace("Infinity", "inf")),
            "$bigint": lambda: int(item, 16),
            "$bytes": lambda: base64.b64decode(item),
            "$date": lambda: __import__("datetime").datetime.fromtimestamp(item / 1000, __import__("datetime").timezone.utc),
            "$map": lambda: {unpack(key): unpack(part) for key, part in item},
            "$set": lambda: {unpack(part) for part in item},
            "$object": lambda: {key: unpack(part) for key, part in item},
        }.get(word)
        if special is not None:
            return special()
    return {key: unpack(item) for key, item in value.items()}


class Cells:
    """The interpreter."""

    def __init__(self):
        # Out of the way of what cells do with small numbers, and not for what they start.
        self.requests = open(self.move(0), "rb")
        self.answers, self.ends = self.move(1, keep=True), self.move(2, keep=True)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self.pid, self.word, self.number, self.is_armed, self.loop = os.getpid(), "", 0, False, None
        signal.signal(signal.SIGINT, self.on_interrupt)
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        self.space = module.__dict__
        self.space["__builtins__"] = builtins
        sys.path.insert(0, "")
        sys.argv = [""]
        builtins.input = self.no_input
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        try:
            self.flush_c = ctypes.CDLL(None).fflush
        except OSError:
            self.flush_c = lambda _: None

    @staticmethod
    def move(fd, keep=False):
        import fcntl

        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
        if not keep:
            os.close(fd)
        return moved

    @staticmethod
    def no_input(prompt="", /):
        raise EOFError("input() has no answer here")

    def on_interrupt(self, *_):
        if self.is_armed:
            raise KeyboardInterrupt

    @staticmethod
    def write(fd, data):
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def answer(self, body):
        """After all that was written."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # closed, or nothing like a stream: the cell's affair
        self.flush_c(None)
        if os.getpid() != self.pid:
            os._exit(0)  # a child that a cell has forked and that came back: its parent answers
        text = json.dumps(body).encode()
        self.write(self.answers, b"\0%s %d %d\0%s" % (self.word.encode(), self.number, len(text), text))
        self.write(self.ends, b"\0%s %d 0\0" % (self.word.encode(), self.number))

    def evaluate(self, code):
        value = eval(code, self.space)
        if not code.co_flags & 0x80:
            return value
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(value)

    def run(self, code):
        import linecache

        name = "<cell %d>" % self.number
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = compile(code, name, "exec", FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            self.evaluate(compile(tree, name, "exec", FLAGS, dont_inherit=True))
        if last is None:
            return None
        return self.evaluate(compile(ast.Expression(last.value), name, "eval", FLAGS, dont_inherit=True))

    def words(self, error):
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == OWN_FILE:
            trace = trace.tb_next
        try:
            message = str(error)[:MAX_TEXT]
        except Exception:
            message = "an exception that cannot be shown"
        text = "".join(traceback.format_exception(type(error), error, trace))[-MAX_TEXT:]
        return {"type": type(error).__name__, "message": message, "traceback": text}

    def data(self, value):
        """A value that is data, or its text."""
        try:
            return {"data": pack(value, [MAX_NODES])}
        except (TypeError, RecursionError):
            return {"text": repr(value)[:MAX_TEXT]}

    def serve(self, op, name=None, code=None, value=None):
        """The answer to one request."""
        if op == "get":
            return self.data(self.space[name]) if name in self.space else {}
        if op == "set":
            self.space[name] = unpack(value)
            return {}
        if op == "variables":
            names = [key for key in self.space if not key.startswith("_")][:10_000]
            return {"variables": {key: [type(self.space[key]).__name__, repr(self.space[key])[:200]] for key in names}}
        return self.data(self.run(code))

    def loop_forever(self):
        for line in self.requests:
            try:
                request = json.loads(line)
                self.number = request.pop("number")
                self.word = request.pop("word", self.word)
                self.is_armed = True
                body = self.serve(**request) if request else {}
            except BaseException as error:
                self.is_armed = False
                body = {"error": self.words(error)}
            self.is_armed = False
            self.answer(body)


Cells().loop_forever()
os._exit(0)
