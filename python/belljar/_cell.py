# SPDX-License-Identifier: Apache-2.0
"""The kept interpreter, inside the jar: it runs cells one after the other and keeps their variables.

It begins as a call does (_inside.py) and then does not return: it reads requests from the socket of the call and answers each.
The messages are in docs/design/18-kept-interpreters. Cells run in this very process and may do anything to it, so your program believes nothing
that comes from here: see _interpreter.py.

A process of its own would be safer from its cells, but the variables are here. What protects the loop from accidents: an
interrupt is an exception only while a cell runs; a child that a cell forks never answers; streams are flushed before an answer.
"""

from __future__ import annotations

import _ast
import _signal  # type: ignore[import-not-found]
import array
import builtins
import fcntl
import functools
import os
import resource
import signal
import socket
import struct
import sys
import time
import types
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

from . import _answer, _inside
from ._cell_display import Displays, bundle, open_figures, short_text
from ._codec import Codec
from ._codec_types import type_name
from ._codec_write import PLAIN_WRITERS, CannotSend, WriteTable
from ._errors import ResultError

# Where a call has its socket; we move it out of the way of what cells do with small numbers.
LINK = 4
HIGH = 200
# Magic, flags, length of what follows, number of the request.
REQUEST = struct.Struct("<4sIII")
MAGIC = b"BJRQ"
# The request is in the file that comes with it. It is the code of a cell, and nothing else. Your program has loaded numpy.
IN_A_FILE, ONLY_CODE, HAS_NUMPY = 1, 2, 4
READ_BYTES = 64 << 10
MAX_FDS = 8
F_SETSIG = 10
SIGINT = int(signal.SIGINT)
COROUTINE = 0x80
PARSE = _ast.PyCF_ONLY_AST | _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# So soon after an interrupt of a cell there is no other, which could come while the first is being dealt with.
SPARE_SECONDS = 0.05
# Where the value of an answer is: what is said about it names places in the value itself.
_PLACE = "$[2]"
MAX_VARIABLES = 10_000
# Cells whose lines are kept for tracebacks.
MAX_SOURCES = 10_000
NOTHING, DATA, TEXT = range(3)
NO_INPUT = "input() has no answer here: give on_input= to the interpreter"
MAGICS = "; IPython's %magics, !commands and ?help are not Python, and not supported"

_requests = Codec(max_bytes=1 << 30)


def _move_up(fd: int) -> int:
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(fd)
    return moved


# As tracebacks name this file.
OWN_FILE = _move_up.__code__.co_filename


def _data_bytes() -> int:
    """What RLIMIT_DATA counts, and the stack."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


@functools.lru_cache(maxsize=None)
def flush_of_c() -> Any:
    """What C code has printed lies in a buffer of the C library. A zygote looks for it ahead."""
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        stdout = ctypes.c_void_p.in_dll(libc, "stdout")
        return functools.partial(libc.fflush, stdout)
    except (ImportError, OSError, ValueError):
        return lambda: None


class _NoArrays(WriteTable):
    """Arrays are no data for a program that has not loaded numpy."""

    def __missing__(self, kind: type) -> Any:
        raise CannotSend

    def __contains__(self, kind: object) -> bool:
        return dict.__contains__(self, kind)


class _CellLimit:
    """While a cell runs, an allocation that makes the data of the interpreter grow by more than this is a MemoryError."""

    def __init__(self, memory: Optional[int]) -> None:
        self._memory = memory
        self._before: Optional[Tuple[int, int]] = None

    def __enter__(self) -> None:
        if self._memory is not None:
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            most = _data_bytes() + self._memory
            if hard == resource.RLIM_INFINITY or most < hard:
                resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
                self._before = (soft, hard)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (self._before[0], resource.getrlimit(resource.RLIMIT_DATA)[1]))


class Kept:
    """The interpreter."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._link = socket.socket(fileno=_move_up(LINK))
        self._codec = Codec()
        self._writers = (_NoArrays(PLAIN_WRITERS), self._codec.writers)
        # First of all: your program does its own part meanwhile.
        self._send(*self._encode([0, "ready"]))
        self._signals: List[int] = []
        self._data = b""
        self._fds: List[int] = []
        # Whether SIGINT is an exception.
        self._is_armed = False
        self._raised_at = 0.0
        self._handler = self._on_interrupt
        self._number = 0
        self._has_input = False
        self._displays = Displays()
        self._loop: Any = None
        self._forks: List[int] = []
        # New ones: those that the interpreter has were made for other files, and in the encoding of the host.
        self._streams: Sequence[Any] = [
            open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False) for fd in (1, 2)
        ]
        for name, stream in zip(("stdout", "stderr"), self._streams):
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        self._flush_c = flush_of_c()
        self._begin_main()

    def _begin_main(self) -> None:
        """Cells are the module __main__, so that what they define can be pickled, and found by its name."""
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        self._space: Dict[str, Any] = module.__dict__
        # Code of the jar may import what the jar has written: it is all one.
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _inside._Untouched)]
        sys.path.insert(0, "")
        sys.path_importer_cache.clear()
        builtins.input = self._input
        setattr(builtins, "display", self._display)
        os.environ.setdefault("MPLBACKEND", "Agg")

    # --- the link ---

    def _receive(self) -> Tuple[Any, List[int]]:
        """A request and its descriptors; None at the end. What has arrived is kept when a signal interrupts."""
        while True:
            if len(self._data) >= REQUEST.size:
                magic, flags, length, number = REQUEST.unpack_from(self._data)
                if magic != MAGIC:
                    return None, []
                if len(self._data) >= REQUEST.size + length:
                    break
            data, ancillary, _, _ = self._link.recvmsg(READ_BYTES, socket.CMSG_SPACE(4 * MAX_FDS), socket.MSG_CMSG_CLOEXEC)
            for _, _, body in ancillary:
                self._fds += array.array("i", body[: len(body) // 4 * 4])
            if not data:
                return None, []
            self._data += data
        payload: Any = self._data[REQUEST.size : REQUEST.size + length]
        self._data = self._data[REQUEST.size + length :]
        fds, self._fds = self._fds, []
        if flags & IN_A_FILE:
            file = fds.pop(0)
            payload = os.pread(file, os.fstat(file).st_size, 0)
            os.close(file)
        self._codec.writers = self._writers[bool(flags & HAS_NUMPY)]
        if flags & ONLY_CODE:
            return ["run", number, str(payload, "utf-8"), False, None], fds
        return _requests.decode(payload), fds

    def _send(self, parts: Sequence[bytes], buffers: Sequence[Any] = ()) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # a child that a cell has forked and that came back: its parent answers
        if not buffers and len(parts) < 100:
            text = b"".join(parts)
            self._link.sendall(_answer.HEADER.pack(_answer.MAGIC, _answer.VERSION, _answer.VALUE, 0, 0, len(text)) + text)
        else:
            _answer.send_answer(self._link.fileno(), _answer.VALUE, parts, buffers)

    def _encode(self, reply: Any) -> Tuple[List[bytes], List[Any]]:
        return self._codec.encode_parts(reply, _answer.FILE_BYTES, _answer.MAX_FILES)

    def _leave(self) -> NoReturn:
        """Nobody asks any more. Forks of this interpreter live as long as its run: then it waits for the end of that."""
        try:
            if self._forks:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
                self._space.clear()
                null = os.open(os.devnull, os.O_RDWR)
                for number in (1, 2):
                    os.dup2(null, number)
                while True:
                    signal.pause()
        finally:
            os._exit(0)

    # --- signals and streams ---

    def _on_interrupt(self, number: int, frame: Any) -> None:
        try:
            os.read(self._signals[0], READ_BYTES)
        except OSError:
            pass
        now = time.monotonic()
        if self._is_armed and now - self._raised_at > SPARE_SECONDS:
            self._raised_at = now
            raise KeyboardInterrupt

    def _take_streams(self, fds: Sequence[int]) -> None:
        """stdout, stderr, and two pipes: what comes on them is SIGINT and SIGKILL for our process group."""
        for number, fd in zip((1, 2), fds):
            os.dup2(fd, number)
            os.close(fd)
        for fd in self._signals:
            os.close(fd)
        try:
            os.setpgid(0, 0)
        except OSError:
            pass  # it has a session of its own already
        self._signals = [_move_up(fd) for fd in fds[2:]]
        for fd, sig in zip(self._signals, (signal.SIGINT, signal.SIGKILL)):
            fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(fd, F_SETSIG, int(sig))
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)

    def _flush(self) -> None:
        for stream in self._streams:
            stream.flush()
        for now, ours in zip((sys.stdout, sys.stderr), self._streams):
            if now is not ours:
                try:
                    now.flush()
                except Exception:
                    pass  # closed, or nothing like a stream: the cell's affair
        self._flush_c()

    # --- what cells find ---

    def _input(self, prompt: object = "", /) -> str:
        """input() in a cell."""
        import threading

        if not self._has_input:
            raise EOFError(NO_INPUT)
        if os.getpid() != self._pid or threading.current_thread() is not threading.main_thread() or not self._is_armed:
            raise RuntimeError("input() is for the cell itself, not for its threads and children")
        self._flush()
        self._send(*self._encode([self._number, "input", str(prompt)[:READ_BYTES]]))
        request, _ = self._receive()
        if request is None:
            os._exit(0)
        if request[0] != "input":
            raise EOFError(str(request[1]))
        return str(request[1])

    def _display(self, *values: Any) -> None:
        """Show values as the value of a cell is shown: their text, and their HTML, images and so on."""
        for value in values:
            self._displays.add(bundle(value))

    # --- requests ---

    def _evaluate(self, code: Any) -> Any:
        value = eval(code, self._space)
        return self._await(value) if code.co_flags & COROUTINE else value

    def _await(self, coroutine: Any) -> Any:
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                try:
                    self._loop.run_until_complete(task)
                except (asyncio.CancelledError, Exception):
                    pass
            raise

    def _run_code(self, code: str) -> Any:
        import linecache

        name = f"<cell {self._number}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        linecache.cache.pop(f"<cell {self._number - MAX_SOURCES}>", None)
        tree: Any = compile(code, name, "exec", PARSE, dont_inherit=True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
        if tree.body:
            self._evaluate(compile(tree, name, "exec", _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True))
        if last is None:
            return None
        expression = _ast.Expression(last.value)
        return self._evaluate(compile(expression, name, "eval", _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True))

    def _words(self, error: BaseException) -> Dict[str, Any]:
        """An exception as text that begins at the cell's own lines."""
        name = f"<cell {self._number}>"
        trace, skip = error.__traceback__, 0
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace, skip = trace.tb_next, skip + 1
        while trace is not None and trace.tb_next is not None:
            if trace.tb_next.tb_frame.f_code.co_filename == OWN_FILE:
                trace.tb_next = None  # where an interrupt or input() raised, which is not the cell's
                break
            trace = trace.tb_next
        words = _inside.describe(error, skip)
        if isinstance(error, SyntaxError) and error.filename == name:
            line = (error.text or "").strip()
            if line[:1] in ("%", "!", "?") or line.endswith("?"):
                words = {key: text.rstrip("\n") + (MAGICS if key != "type" else "") for key, text in words.items()}
        return words

    def _run(self, code: str, has_input: bool, memory: Optional[int]) -> Any:
        if self._displays.bundles:
            self._displays = Displays()
        self._has_input = has_input
        try:
            if memory is None:
                value = self._run_code(code)
            else:
                with _CellLimit(memory):
                    value = self._run_code(code)
            if value is not None:
                self._displays.add(bundle(value))
            for figure in open_figures(value):
                self._displays.add(figure)
        except BaseException as error:
            shown = self._words(error)
            self._flush()
            return self._encode([self._number, "cell", NOTHING, None, shown, self._displays.bundles])
        self._flush()
        bundles = self._displays.bundles
        if value is None and not bundles:
            return self._encode([self._number, "cell", NOTHING])
        if value is None:
            return self._encode([self._number, "cell", NOTHING, None, None, bundles])
        try:
            return self._encode([self._number, "cell", DATA, value, None, bundles])
        except ResultError:
            return self._encode([self._number, "cell", TEXT, bundle(value)["text/plain"], None, bundles])

    def _set(self, name: str, value: Any) -> Any:
        self._space[name] = value
        return self._encode([self._number, "done", None])

    def _get(self, name: str) -> Any:
        if name not in self._space:
            return self._encode([self._number, "unknown", None])
        try:
            return self._encode([self._number, "done", self._space[name]])
        except ResultError as error:
            return self._encode([self._number, "not data", str(error).replace(_PLACE, "$", 1)])

    def _variables(self) -> Any:
        found = {}
        for name, value in list(self._space.items())[:MAX_VARIABLES]:
            if type(name) is str and not (name.startswith("__") and name.endswith("__")):
                found[name] = [str(type_name(type(value)))[:200], short_text(value)]
        return self._encode([self._number, "done", found])

    def _fork(self, fds: List[int]) -> Any:
        """A copy of this process with a link of its own. None in the copy, which has answered already."""
        import threading
        import warnings

        if threading.active_count() > 1:
            for fd in fds:
                os.close(fd)
            return self._encode([self._number, "refused", "the interpreter has threads, which its copy would not have"])
        for earlier in self._forks:
            try:
                os.waitpid(earlier, os.WNOHANG)
            except OSError:
                pass  # reaped already
        self._flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid:
            self._forks.append(pid)
            for fd in fds:
                os.close(fd)
            return self._encode([self._number, "done", None])
        self._pid = os.getpid()
        self._link.close()
        self._link = socket.socket(fileno=_move_up(fds[0]))
        self._forks = []
        # It shares the parent's epoll; its tasks are the parent's.
        self._loop = None
        _inside.reseed()
        self._take_streams(fds[1:])
        self._send(*self._encode([0, "ready"]))
        return None

    def _do(self, request: List[Any]) -> Any:
        kind, self._number, *rest = request
        self._raised_at = 0.0
        # The plain function: that of `signal` looks for a name of what it finds.
        if _signal.getsignal(SIGINT) is not self._handler:
            signal.signal(SIGINT, self._handler)
        try:
            try:
                self._is_armed = True
                work: Any = {"run": self._run, "set": self._set, "get": self._get, "variables": self._variables}[kind]
                return work(*rest)
            finally:
                self._is_armed = False
        except BaseException as error:  # an interrupt after the cell's own code, or a form that cannot be made
            self._is_armed = False
            self._flush()
            words = {"type": type_name(type(error)), "message": "", "traceback": f"{type_name(type(error))}\n"}
            return self._encode([self._number, "cell", NOTHING, None, words, []])

    def serve(self) -> NoReturn:
        """Until nobody asks any more."""
        signal.signal(SIGINT, self._handler)
        while True:
            request, fds = self._receive()
            if request is None:
                self._leave()
            if request[0] == "setup":
                self._take_streams(fds)
            elif request[0] == "fork":
                self._number = request[1]
                reply = self._fork(fds)
                if reply is not None:
                    self._send(*reply)
            elif request[0] not in ("input", "no input"):  # the answer to a question that an interrupt has ended
                self._send(*self._do(request))


def serve() -> NoReturn:
    """The function that such a call calls."""
    kept = Kept()
    try:
        kept.serve()
    except OSError:
        kept._leave()  # nobody takes the answer
