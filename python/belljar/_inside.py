# SPDX-License-Identifier: Apache-2.0
"""What happens in the jar: one call, from the packed arguments on one descriptor to the answer on another.

A cold call is a fresh interpreter that _boot.py has started; a warm one is a fork of a zygote that has called prepare() once,
long before. Your program trusts nothing that this module says: the function runs in this very process and could write any
answer itself.

The process ends right after the answer is written: threads that the function left running, and its exit handlers, end with
it, and so do its children, with the jar.
"""

from __future__ import annotations

import os
import stat
import sys
import types
from typing import Any, Callable, Dict, List, Sequence

from . import _answer, _private
from ._codec import MAX_BYTES, Codec
from ._codec_types import type_name
from ._errors import ResultError, SendError
from ._send import pack, packed_length, unpack_more

# In a jar the name that @tool decorates is the plain function.
is_inside = False
# The packed call of warm_up().
_warm_up_call: List[Any] = []
# What forks of this interpreter would share.
_shared: List[_private.Region] = []

TEXT_MAX_CHARACTERS = 64 << 10
STATUS_NO_ANSWER = 70
MAX_LINKS = 40


class PrepareError(Exception):
    """A module that was to be loaded ahead cannot be. `words` is what an answer says of it."""

    def __init__(self, name: str, error: BaseException) -> None:
        self.words = describe(error, 0)
        text = "".join(str(part) for part in self.words["traceback"])
        super().__init__(f"cannot load the module '{name}' ahead: {self.words['type']}: {self.words['message']}\n{text}")


class _Untouched:
    """Looks at every module before it is loaded: one that a jar could have written is not.

    Whichever finder has found it, that of an editable install too, each file that would be read is looked at: source, byte
    code, archive; and each link on the way there. Of the places that hold it the most specific decides: a directory of
    sys.path, or one that can be written.
    """

    def __init__(self, paths: Sequence[str], writable: Sequence[str]) -> None:
        places = {os.path.join(os.path.realpath(path), ""): True for path in writable}
        places.update({os.path.join(os.path.realpath(path), ""): False for path in paths})
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))

    def _is_writable(self, real: str) -> bool:
        real = os.path.join(real, "")
        return next((answer for folder, answer in self._places if real.startswith(folder)), False)

    def _leads_there(self, path: str) -> bool:
        """Whether it is in a place that can be written, or a link on the way is, which could be another one tomorrow."""
        done, links = "/", 0
        todo = os.path.abspath(path).split("/")[::-1]
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            at = os.path.join(done, part)
            if part == "..":
                if self._is_writable(done):
                    return True
                at = os.path.dirname(done)
            try:
                target = os.readlink(at) if part != ".." else None
            except OSError:
                target = None
            if target is None:
                done = at
                continue
            links += 1
            if links > MAX_LINKS or self._is_writable(at):
                return True
            done = "/" if target.startswith("/") else done
            todo += target.split("/")[::-1]
        return self._is_writable(done)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """As finders of the import system do; None leaves it to the next one."""
        for finder in list(sys.meta_path):
            find: Any = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                self._check(name, spec)
                return spec
        return None

    def _check(self, name: str, spec: Any) -> None:
        for place in [spec.origin, spec.cached, *(spec.submodule_search_locations or ())]:
            if isinstance(place, str) and place not in ("built-in", "frozen") and self._leads_there(place):
                raise ModuleNotFoundError(
                    f"the module '{name}' is at {place}, where the jar can write; name its directory in import_paths", name=name
                )


def _begin_imports(paths: Sequence[str], writable: Sequence[str]) -> None:
    """The interpreter was started without its site: its .pth files may name places, or run modules, that a jar has written."""
    if writable:
        sys.meta_path.insert(0, _Untouched(paths, writable))
    import site

    site.main()
    sys.pycache_prefix = None
    sys.path[:] = paths
    sys.path_importer_cache.clear()


def prepare(
    paths: Sequence[str], preload: Sequence[str] = (), writable: Sequence[str] = (), will_fork: bool = True
) -> None:
    """Make this interpreter one for calls: where it imports from, what it has loaded. Once, before anything untrusted.

    paths: sys.path from now on. preload: modules to import; those that begin with ? are only of use, and may fail. writable:
    directories of the jar from which nothing is imported. PrepareError says which module failed, with its traceback.
    """
    global is_inside
    is_inside = True
    _begin_imports(paths, writable)
    import importlib

    for name in preload:
        try:
            importlib.import_module(name.lstrip("?"))
        except BaseException as error:
            if not name.startswith("?"):
                raise PrepareError(name, error) from error
    # What modules printed must not be printed again by every fork.
    _flush()
    if will_fork:
        _warm_up_call[:] = pack(len, ([],), {}, paths, ((), MAX_BYTES, False))
        try:
            _shared[:] = _private.shared_regions()
        except Exception as error:
            raise PrepareError(", ".join(preload) or "site", error) from error


# --- words ---


def _cut(text: str) -> str:
    half = TEXT_MAX_CHARACTERS // 2
    return text if len(text) <= TEXT_MAX_CHARACTERS else f"{text[:half]}\n[...]\n{text[-half:]}"


def describe(error: BaseException, skip: int) -> Dict[str, Any]:
    """An exception as text: whatever its class does when it is asked, there is something to say. Data only."""
    try:
        message = _cut(str(error))
    except BaseException:
        message = "<an exception that cannot say what it is>"
    trace = error.__traceback__
    for _ in range(skip):
        trace = trace.tb_next if trace is not None else None
    try:
        import traceback

        text = _cut("".join(traceback.format_exception(type(error), error, trace)))
    except BaseException:
        text = f"{type_name(type(error))}: {message}\n"
    return {"type": str(type_name(type(error)))[:1000], "message": str(message), "traceback": str(text)}


# --- one call ---


def _read_whole(fd: int) -> Any:
    """The packed call. A file in memory is mapped: its bytes are copied once, into the objects they become."""
    if stat.S_ISREG(os.fstat(fd).st_mode) and os.fstat(fd).st_size > _answer.READ_BYTES:
        import mmap

        return mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.pread(fd, _answer.READ_BYTES, 0)
    parts: List[bytes] = []
    while True:
        part = os.read(fd, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed, or replaced by something else: the function's affair


def _by_lines() -> None:
    """What is printed leaves line by line: it is seen as it comes, and is there when the process dies."""
    streams: List[Any] = [sys.stdout, sys.stderr]
    for stream in streams:
        try:
            stream.reconfigure(line_buffering=True)
        except (AttributeError, ValueError):
            pass


def reseed() -> None:
    """Generators that a zygote has loaded must not give every call the same numbers. `random` sees to itself after a fork."""
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


def _status(error: SystemExit) -> int:
    """As the interpreter would leave."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _run(fn: Any, args: Any, kwargs: Any, has_trio: bool) -> Any:
    value = fn(*args, **kwargs)
    if type(value) is not types.CoroutineType:
        return value
    if has_trio:
        import trio  # type: ignore[import-not-found, import-untyped, unused-ignore]

        return trio.run(_await, value)
    import asyncio

    return asyncio.run(value)


async def _await(value: Any) -> Any:
    return await value


class _Call:
    """One call and its answer."""

    def __init__(self, result_fd: int) -> None:
        self._fd = result_fd
        self._pid = os.getpid()

    def answer(self, kind: int, codec: Codec, value: Any) -> int:
        """Flush what was printed, then answer."""
        parts, buffers = codec.encode_parts(value, _answer.FILE_BYTES, _answer.MAX_FILES)
        _flush()
        if os.getpid() != self._pid:
            # A child that the function forked and that came back from it, too: the answer is its parent's.
            return 0
        _answer.send_answer(self._fd, kind, parts, buffers)
        return 0

    def words(self, kind: int, error: BaseException, skip: int) -> int:
        """Answer with an exception as text."""
        return self.answer(kind, _answer.WORDS, describe(error, skip))

    def run(self, data: Any) -> int:
        """Make the call from its bytes, and answer it."""
        try:
            fn, args, kwargs, (listed, max_result, has_trio) = unpack_more(data)
            codec = Codec(listed, max_bytes=max_result)
        except SendError as error:
            return self.words(_answer.NOT_MADE, error.__cause__ or error, 0)
        del data
        try:
            value = _run(fn, args, kwargs, has_trio)
        except SystemExit as error:
            status = _status(error)
            _flush()
            return status
        except BaseException as error:
            return self.words(_answer.RAISED, error, 2)
        try:
            return self.answer(_answer.VALUE, codec, value)
        except ResultError as error:
            return self.words(_answer.NOT_DATA, error, 0)


def warm_up() -> None:
    """Make a call of nothing, in a fork that waits for its own: the memory that every call writes to is copied before anybody
    waits for it."""
    fn, args, kwargs, (listed, max_result, has_trio) = unpack_more(b"".join(_warm_up_call))
    value = _run(fn, args, kwargs, has_trio)
    Codec(listed, max_bytes=max_result).encode_parts(value, _answer.FILE_BYTES, _answer.MAX_FILES)


def _receive_call(link_fd: int) -> Any:
    """The packed call, or None if there will be none."""
    import socket

    link = socket.socket(fileno=link_fd)
    try:
        data, ancillary, _, _ = link.recvmsg(_answer.READ_BYTES, socket.CMSG_SPACE(4))
        for _, _, carried in ancillary:
            fd = int.from_bytes(carried[:4], sys.byteorder)
            data = _read_whole(fd)
            os.close(fd)
            return data
        while data:
            missing = packed_length(data) - len(data)
            if missing <= 0:
                return data
            more = link.recv(missing)
            data = data + more if more else b""
        return None
    finally:
        link.detach()


def run_waiting(link_fd: int) -> int:
    """Wait for a call on the very socket that its answer goes to, and run it; the exit status."""
    return _run_packed(link_fd, _receive_call, link_fd)


def run_call(args_fd: int, result_fd: int) -> int:
    """Run the call whose packed arguments are read from one descriptor, and answer on the other; the exit status.

    The caller leaves with os._exit() at once. A status without an answer is how sys.exit() in the function is told.
    """
    return _run_packed(args_fd, _take_call, result_fd)


def _take_call(args_fd: int) -> Any:
    data = _read_whole(args_fd)
    os.close(args_fd)
    return data


def _run_packed(args_fd: int, take: Callable[[int], Any], result_fd: int) -> int:
    global is_inside
    is_inside = True
    call = _Call(result_fd)
    try:
        if _shared:
            _private.make_private(_shared)
        os.set_inheritable(result_fd, False)
        _by_lines()
        reseed()
        data = take(args_fd)
        return 0 if data is None else call.run(data)
    except BaseException:
        # Nobody takes the answer, or there is no memory for it.
        try:
            import traceback

            traceback.print_exc()
            _flush()
        except BaseException:
            pass
        return STATUS_NO_ANSWER


def refuse(result_fd: int, error: PrepareError) -> int:
    """Answer a call for which this interpreter could not be prepared."""
    parts, _ = _answer.WORDS.encode_parts(error.words)
    _answer.send_answer(result_fd, _answer.NOT_READY, parts)
    return STATUS_NO_ANSWER


def main(paths: List[str], preload: List[str], writable: List[str]) -> None:
    """A cold call: descriptors 3 and 4 are its own."""
    try:
        prepare(paths, preload, writable, will_fork=False)
    except PrepareError as error:
        status = refuse(4, error)
    else:
        status = run_call(3, 4)
    os._exit(status)
