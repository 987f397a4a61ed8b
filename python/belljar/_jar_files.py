# SPDX-License-Identifier: Apache-2.0
"""The methods of Jar for files, for processes, for ports that they listen on, and for the rules of its network.

Each is a generator (_steps.py) that a method and its _async twin drive. Everything that looks up, makes or removes a name happens
inside the jar, behind its walls.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import signal as signals
import socket
import time
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, List, Optional, Union

from . import _engine, _files, _wire
from ._errors import EngineError, public
from ._files import FileInfo
from ._request import json_frame, wire_text
from ._result import failure
from ._steps import Asking, Steps
from ._watch import Watch

if TYPE_CHECKING:
    from ._keys import NetRule

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Data = Union[bytes, bytearray, memoryview, str]


@public
@dataclasses.dataclass(frozen=True)
class ProcessInfo:
    """A process of a jar. `pid` and `ppid` are those inside; `run` is the same for all processes of one run.

    `name` and `args` are what the process says of itself; of long arguments the beginning. `state` is the letter of
    /proc/PID/stat ("R" runs, "S" sleeps, "T" is stopped, "Z" has ended ...); `started` is in seconds as time.time() counts.
    """

    pid: int
    ppid: int
    name: str
    args: List[str]
    state: str
    started: float
    run: int


# --- questions ---


def _fail(payload: bytes, *paths: Any) -> BaseException:
    answer = _wire.parse(payload)
    error = answer.get("error") or {}
    number = error.get("errno")
    if number == errno.ESHUTDOWN:
        return EngineError("the jar has ended")
    if error.get("stage") == "files" and number:
        if len(paths) > 1:
            return OSError(number, os.strerror(number), paths[0], None, paths[1])
        return OSError(number, os.strerror(number) if paths else str(error.get("message")), *paths)
    return failure(error, answer.get("missing"))


def _ask(kind: int, members: Dict[str, Any], *paths: Path) -> Steps[Dict[str, Any]]:
    """A question whose answer is data. OSError names the paths."""
    answered, payload, fds = yield json_frame(kind, members)
    _engine.close_all(fds)
    if answered == _wire.ANSWER:
        return _wire.parse(payload)  # type: ignore[no-any-return]
    if answered == _wire.FAILED:
        raise _fail(payload, *(os.fspath(path) for path in paths))
    raise EngineError(f"the engine sent a frame of type {answered} in place of an answer")


def _open(kind: int, members: Dict[str, Any], *paths: Path) -> Steps[int]:
    """A question whose answer is a descriptor, the caller's."""
    answered, payload, fds = yield json_frame(kind, members)
    if answered == _wire.DESCRIPTOR and len(fds) == 1:
        return int(fds[0])
    _engine.close_all(fds)
    if answered == _wire.FAILED:
        raise _fail(payload, *(os.fspath(path) for path in paths))
    raise EngineError(f"the engine sent a frame of type {answered} in place of a descriptor")


def open_steps(path: Path, op: str, **members: Any) -> Steps[int]:
    """A file or directory, open."""
    return (yield from _open(_wire.FILE, {"op": op, "path": wire_text(path), **members}, path))


# --- files ---


def _read(path: Path, max_bytes: int, offset: int, length: Optional[int]) -> Steps[bytes]:
    if max_bytes < 0 or offset < 0 or (length is not None and length < 0):
        raise ValueError("max_bytes, offset and length must not be negative")
    fd = yield from open_steps(path, "read")
    try:
        if offset:
            os.lseek(fd, offset, os.SEEK_SET)
        return (yield from _files.read_steps(fd, os.fspath(path), max_bytes, length))
    finally:
        os.close(fd)


def _write(path: Path, data: Data, mode: int, parents: bool) -> Steps[None]:
    raw = data.encode("utf-8") if isinstance(data, str) else data
    memoryview(raw)  # TypeError before anything is created
    fd = yield from open_steps(path, "write", mode=mode & 0o7777, parents=bool(parents))
    try:
        yield from _files.write_steps(fd, raw)
    finally:
        os.close(fd)


def _list(path: Path, recursive: bool) -> Steps[List[FileInfo]]:
    fd = yield from open_steps(path, "list")
    try:
        return (yield from _files.list_steps(fd, os.fspath(path), recursive))
    finally:
        os.close(fd)


def _mkdir(path: Path, parents: bool, mode: int = 0o755) -> Steps[None]:
    yield from _ask(_wire.FILE, {"op": "mkdir", "path": wire_text(path), "mode": mode, "parents": bool(parents)}, path)


def _stat(path: Path, follow: bool = False) -> Steps[FileInfo]:
    seen = yield from _ask(_wire.FILE, {"op": "stat", "path": wire_text(path), "follow": follow}, path)
    return FileInfo(os.fsdecode(path), seen["type"], seen["size"], seen["mode"], seen["mtime_ns"] / 1e9)


def _exists(path: Path) -> Steps[bool]:
    try:
        yield from _stat(path, follow=True)
    except OSError:
        return False
    return True


def _remove(path: Path, recursive: bool) -> Steps[None]:
    yield from _ask(_wire.FILE, {"op": "remove", "path": wire_text(path), "recursive": bool(recursive)}, path)


def _rename(source: Path, target: Path) -> Steps[None]:
    members = {"op": "rename", "path": wire_text(source), "to": wire_text(target)}
    yield from _ask(_wire.FILE, members, source, target)


def _export_tar(path: Path) -> Steps[BinaryIO]:
    from ._tar import export_file

    try:
        fd = yield from open_steps(path, "list")
    except NotADirectoryError:
        fd = yield from open_steps(path, "read")
    return export_file(fd, os.path.basename(os.fsdecode(path)))


def _import_tar(data: Any, path: Path, limits: Dict[str, Any]) -> Steps[None]:
    """What is written here no meter of the jar's sees: its limits on files hold for the archive too."""
    from . import _tar

    room = limits.get("disk")
    for name, mode, size, content in _tar.members(data):
        target = _tar.target(path, name)
        if content is None:
            yield from _mkdir(target, parents=True, mode=mode | 0o700)
            continue
        if size > (limits.get("file_size") or size):
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), target)
        if room is not None:
            room -= size
            if room < 0:
                raise OSError(errno.ENOSPC, "the archive holds more than the jar may store", target)
        fd = yield from open_steps(target, "write", mode=mode, parents=True)
        try:
            while True:
                piece = content.read(_tar.PIECE_BYTES)
                if not piece:
                    break
                yield from _files.write_steps(fd, piece)
        finally:
            os.close(fd)


# --- processes and ports ---


def _connect(port: int) -> Steps[socket.socket]:
    if not 1 <= port <= 65535:
        raise ValueError(f"a port must be a number from 1 to 65535, not {port!r}")
    fd = yield from _open(_wire.CONNECT, {"port": port})
    return socket.socket(fileno=fd)


def _processes() -> Steps[List[ProcessInfo]]:
    answer = yield from _ask(_wire.PROCESSES, {})
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return [
        ProcessInfo(
            entry["pid"], entry["ppid"], entry["name"], entry["argv"], entry["state"], booted + entry["started_ms"] / 1000, entry["run"]
        )
        for entry in answer["processes"]
    ]


def _kill(pid: int, sig: int) -> Steps[None]:
    if not 1 < pid < 2**31 or not 0 <= sig <= 64:
        raise ValueError(f"no process of a jar has the number {pid}, or no signal {sig}")
    yield from _ask(_wire.KILL, {"pid": pid, "signal": int(sig)})


def _usage() -> Steps[Dict[str, Any]]:
    return (yield from _ask(_wire.USAGE, {}))


def look_steps() -> Steps[Dict[str, Any]]:
    """The answer to LOOK: what processes of the jar changed that other programs execute or obey."""
    return (yield from _ask(_wire.LOOK, {}))


def _net(op: str, rule: NetRule) -> Steps[None]:
    yield from _ask(_wire.NET, {"op": op, "rule": rule})


class JarFiles(Asking):
    """What Jar has beside runs and calls. Paths are the jar's; relative ones start at the workdir. Errors are those of os."""

    def _jar_end(self) -> socket.socket:
        """A socket that is readable when the jar has ended, the caller's."""
        raise NotImplementedError

    def _limits(self) -> Dict[str, Any]:
        """Those of the jar, as the engine names them."""
        raise NotImplementedError

    def read_file(self, path: Path, max_bytes: int = 64 << 20, offset: int = 0, length: Optional[int] = None) -> bytes:
        """The bytes of a regular file in the jar, or `length` of them from `offset` on. EFBIG for more than max_bytes."""
        return self._do(_read(path, max_bytes, offset, length))

    async def read_file_async(
        self, path: Path, max_bytes: int = 64 << 20, offset: int = 0, length: Optional[int] = None
    ) -> bytes:
        """read_file() for event loops."""
        return await self._do_async(_read(path, max_bytes, offset, length))

    def write_file(self, path: Path, data: Data, mode: int = 0o644, parents: bool = False) -> None:
        """Create or replace a regular file in the jar; with parents, the directories above it too. A link is not followed."""
        self._do(_write(path, data, mode, parents))

    async def write_file_async(self, path: Path, data: Data, mode: int = 0o644, parents: bool = False) -> None:
        """write_file() for event loops."""
        await self._do_async(_write(path, data, mode, parents))

    def list_files(self, path: Path = ".", recursive: bool = False) -> List[FileInfo]:
        """What is in a directory of the jar, sorted by name; with recursive, also what is below. No link is followed."""
        return self._do(_list(path, recursive))

    async def list_files_async(self, path: Path = ".", recursive: bool = False) -> List[FileInfo]:
        """list_files() for event loops."""
        return await self._do_async(_list(path, recursive))

    def mkdir(self, path: Path, parents: bool = False) -> None:
        """Make a directory in the jar. With parents, those above it too, and it may be there already: as `mkdir -p`."""
        self._do(_mkdir(path, parents))

    async def mkdir_async(self, path: Path, parents: bool = False) -> None:
        """mkdir() for event loops."""
        await self._do_async(_mkdir(path, parents))

    def stat(self, path: Path, follow: bool = False) -> FileInfo:
        """What a path of the jar is; of a link, the link itself, or with follow what it leads to."""
        return self._do(_stat(path, bool(follow)))

    async def stat_async(self, path: Path, follow: bool = False) -> FileInfo:
        """stat() for event loops."""
        return await self._do_async(_stat(path, bool(follow)))

    def exists(self, path: Path) -> bool:
        """Whether a path of the jar leads to something; False for a link that leads nowhere, as os.path.exists()."""
        return self._do(_exists(path))

    async def exists_async(self, path: Path) -> bool:
        """exists() for event loops."""
        return await self._do_async(_exists(path))

    def remove(self, path: Path, recursive: bool = False) -> None:
        """Remove a file, a link or an empty directory; with recursive, a directory and all in it. No link is followed."""
        self._do(_remove(path, recursive))

    async def remove_async(self, path: Path, recursive: bool = False) -> None:
        """remove() for event loops. If this is cancelled, what was not removed by then stays."""
        await self._do_async(_remove(path, recursive))

    def rename(self, a: Path, b: Path) -> None:
        """Give the file, link or directory `a` the path `b`, and replace what is there: as os.rename()."""
        self._do(_rename(a, b))

    async def rename_async(self, a: Path, b: Path) -> None:
        """rename() for event loops."""
        await self._do_async(_rename(a, b))

    def export_tar(self, path: Path = ".") -> BinaryIO:
        """A directory of the jar, with all in it, as a tar archive that is made while it is read; or one file.

        Names are relative to the directory. Links are in it as links; devices, sockets and FIFOs are left out.
        """
        return self._do(_export_tar(path))

    async def export_tar_async(self, path: Path = ".") -> BinaryIO:
        """export_tar() for event loops. Reading waits for the disk only."""
        return await self._do_async(_export_tar(path))

    def import_tar(self, data: Union[bytes, BinaryIO], path: Path = ".") -> None:
        """Unpack a tar archive, bytes or an open file, below a directory of the jar. It is read once, piece by piece.

        ValueError for a member that is a link, a device, a FIFO or sparse, or whose name is absolute or has '..' in it; what
        comes before it is there by then. Set-id bits are dropped. The jar's limits `disk` and `file_size` hold for the archive.
        """
        self._do(_import_tar(data, path, self._limits()))

    async def import_tar_async(self, data: Union[bytes, BinaryIO], path: Path = ".") -> None:
        """import_tar() for event loops. A file is read in the loop."""
        await self._do_async(_import_tar(data, path, self._limits()))

    def watch(self, path: Path = ".") -> Watch:
        """What happens from now on to the files in a directory of the jar, or to one file: an iterator over FileEvents.

        Not what happens in the directories below it: watch these too. It ends with the jar.
        """
        return Watch(self._do(open_steps(path, "watch")), self._jar_end())

    async def watch_async(self, path: Path = ".") -> Watch:
        """watch() for event loops: `async for event in await jar.watch_async()`."""
        return Watch(await self._do_async(open_steps(path, "watch")), self._jar_end())

    def connect(self, port: int) -> socket.socket:
        """A socket that is connected to a TCP port that a process in the jar listens on (127.0.0.1, else ::1)."""
        return self._do(_connect(port))

    async def connect_async(self, port: int) -> socket.socket:
        """connect() for event loops."""
        return await self._do_async(_connect(port))

    def processes(self) -> List[ProcessInfo]:
        """The processes that run in the jar now."""
        return self._do(_processes())

    async def processes_async(self) -> List[ProcessInfo]:
        """processes() for event loops."""
        return await self._do_async(_processes())

    def kill(self, pid: int, sig: int = signals.SIGTERM) -> None:
        """Send a signal to one process of the jar, by its number in processes(). ProcessLookupError: there is none."""
        self._do(_kill(pid, sig))

    async def kill_async(self, pid: int, sig: int = signals.SIGTERM) -> None:
        """kill() for event loops."""
        await self._do_async(_kill(pid, sig))

    def usage(self) -> Dict[str, Any]:
        """What the jar with all its runs uses: the members of USAGE in docs/protocol.md; None: nobody counts it."""
        return self._do(_usage())

    async def usage_async(self) -> Dict[str, Any]:
        """usage() for event loops."""
        return await self._do_async(_usage())

    # --- network ---

    def allow_net(self, rule: NetRule) -> None:
        """Let the jar reach what a rule of allow_net names, from the next connection on. The jar must have a gate: net="gate", or
        allow_net=. Of what allow_net() and deny_net() have said about a host and port, the last word counts; what the policy denies
        stays denied. PolicyError: there is no gate, or that is no rule."""
        self._do(_net("allow", rule))

    async def allow_net_async(self, rule: NetRule) -> None:
        """allow_net() for event loops."""
        await self._do_async(_net("allow", rule))

    def deny_net(self, rule: NetRule) -> None:
        """Let the jar no longer reach what a rule names, on every port if it names none. Open connections to it are reset."""
        self._do(_net("deny", rule))

    async def deny_net_async(self, rule: NetRule) -> None:
        """deny_net() for event loops."""
        await self._do_async(_net("deny", rule))
