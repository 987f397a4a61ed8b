# SPDX-License-Identifier: Apache-2.0
"""Inside a jar: run pieces of Python that arrive at descriptor 3, and answer each at descriptor 4.

A piece is its number, a newline, its text and a NUL; an answer is JSON with that number, and a NUL. Output goes to descriptors 5 and 6.
"""

import ast
import base64
import io
import json
import os
import signal
import sys
import traceback
import types

os.dup2(5, 1)
os.dup2(6, 2)
os.close(5)
os.close(6)
for number in (3, 4):
    os.set_inheritable(number, False)
os.environ.setdefault("MPLBACKEND", "agg")
sys.argv = [""]
sys.path.insert(0, "")
cell = types.ModuleType("__main__")
sys.modules["__main__"] = cell
cell.__dict__["__builtins__"] = __builtins__


waiting = b""


def read_piece():
    global waiting
    while b"\0" not in waiting:
        piece = os.read(3, 65536)
        if not piece:
            os._exit(0)
        waiting += piece
    text, _, waiting = waiting.partition(b"\0")
    return text.decode("utf-8", "surrogateescape")


def figures():
    plots = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in plots.get_fignums() if plots else []:
        image = io.BytesIO()
        plots.figure(number).savefig(image, format="png")
        found.append(base64.b64encode(image.getvalue()).decode())
    if plots:
        plots.close("all")
    return found


def execute(text, name):
    import linecache

    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    tree = ast.parse(text, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    run(compile(tree, name, "exec", flags))
    return None if last is None else run(compile(last, name, "eval", flags))


def run(code):
    value = eval(code, cell.__dict__)
    if isinstance(value, types.CoroutineType) and code.co_flags & 0x80:
        import asyncio

        global loop
        loop = globals().get("loop") or asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(value)
    return value


signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    number, _, text = read_piece().partition("\n")
    answer = {"number": int(number), "value": None, "error": None, "images": []}
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            value = execute(text, f"<cell {number}>")
            if value is not None:
                answer["value"] = repr(value)[:100000]
                cell.__dict__["_"] = value
            answer["images"] = figures()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except BaseException as error:
        frames = error.__traceback__
        while frames is not None and not frames.tb_frame.f_code.co_filename.startswith("<cell "):
            frames = frames.tb_next
        answer["error"] = "".join(traceback.format_exception(type(error), error, frames))[-20000:]
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    data = json.dumps(answer).encode() + b"\0"
    while data:
        data = data[os.write(4, data) :]
