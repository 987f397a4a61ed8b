# SPDX-License-Identifier: Apache-2.0
"""The zygote: an interpreter with everything loaded that stands in a jar for calls and forks on request.

Started by the engine with the socket for requests as descriptor 3, and as 4 where it says, in the form of an answer, that it is
ready, or why not; _boot.py has loaded it. docs/protocol.md has the messages. It runs nothing that came from a call: a fork enters the
namespaces that a keeper has made for it, gives up all privileges, puts the walls up and only then waits for what it is to do.
"""

from __future__ import annotations

import array
import ctypes
import errno
import gc
import os
import platform
import select
import socket
import struct
import sys
import warnings
from typing import Any, Dict, List, NoReturn, Tuple

from . import _answer, _cell, _inside
from ._codec import Codec

REQUESTS, REPORT = 3, 4
# Where a fork has the socket to its keeper, above its three streams.
REPLY = 3
# Where the answer of a call goes; its arguments come one before that.
ANSWER = 4
# What a fork opens behind its walls for the keeper to see.
PROBE = "/dev/full"

FORK, READY, BEGIN, ENDED, FORK_FAILED, LISTENER = 1, 2, 3, 4, 5, 6
FORK_HEADER = struct.Struct("=iIII")
BEGIN_HEADER = struct.Struct("=iI")
WORD = struct.Struct("=iiQQQQ")
MESSAGE_MAX = 64 << 10
FILES_MAX = 20_000
DESCRIPTORS_MAX = 68

NEW_PID, NEW_MOUNTS, NEW_IPC, NEW_NETWORK = 0x20000000, 0x00020000, 0x08000000, 0x40000000
NAMESPACES = (NEW_PID, NEW_MOUNTS, NEW_IPC, NEW_NETWORK)

PR_SET_DUMPABLE = 4
CAPABILITY_VERSION = 0x20080522
SECCOMP_SET_MODE_FILTER = 1
# A new listener that only SIGKILL is heard beside; without the latter, before Linux 5.19; without either, where somebody listens already.
FILTER_FLAGS = (0x28, 0x08, 0)
# capset, seccomp
NUMBERS = {"x86_64": (126, 317), "aarch64": (91, 277)}
LANDLOCK_RESTRICT_SELF = 446
CLOSE_RANGE = 436

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _call(*arguments: Any) -> int:
    return _check(_libc.syscall(*(ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)))


def _receive(sock: socket.socket) -> Tuple[bytes, List[int]]:
    """One message and its descriptors; b"" at the end."""
    fds = array.array("i")
    data, ancillary, _, _ = sock.recvmsg(MESSAGE_MAX, socket.CMSG_SPACE(DESCRIPTORS_MAX * fds.itemsize))
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(body[: len(body) - len(body) % fds.itemsize])
    return data, list(fds)


# --- in the fork ---------------------------------------------------------------------------------------------


def _load_filter(number: int, program: bytes) -> int:
    """Its listener; 0: it has none, and what it would ask about is refused."""
    rules = ctypes.create_string_buffer(program, len(program))
    loaded = ctypes.byref(_Program(len(program) // 8, ctypes.addressof(rules)))
    for flags in FILTER_FLAGS[:-1]:
        try:
            return _call(number, SECCOMP_SET_MODE_FILTER, flags, loaded)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EBUSY):
                raise
    return _call(number, SECCOMP_SET_MODE_FILTER, FILTER_FLAGS[-1], loaded)


def _go_in(flags: int, namespaces: List[int], ruleset: int, cgroups: List[int], program: bytes) -> int:
    """Into the namespaces of the keeper, and behind the walls. The order matters: each step gives up what the one before needs.

    The listener of the filter, or 0.
    """
    wanted = [flag for flag in NAMESPACES if flags & flag]
    for flag, fd in zip(wanted, namespaces):
        if flag != NEW_PID:  # the fork was born in it
            _check(_libc.setns(fd, flag))
    for fd in cgroups:
        os.write(fd, b"0")
    os.setsid()
    capset, seccomp = NUMBERS[platform.machine()]
    _call(capset, struct.pack("=Ii", CAPABILITY_VERSION, 0), bytes(24))
    if ruleset >= 0:
        _call(LANDLOCK_RESTRICT_SELF, ruleset, 0)
    listener = _load_filter(seccomp, program)
    # Like any program in a jar; nobody but its own processes can see it now.
    _check(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
    return listener


def _set_environment(fd: int) -> None:
    with open(fd, "rb") as file:
        file.seek(0)
        entries = file.read().split(b"\0")[:-1]
    os.environb.clear()
    for entry in entries:
        name, _, value = entry.partition(b"=")
        os.environb[name] = value


def _place(fds: List[int]) -> None:
    """The descriptors as 0, 1, 2, ...; nothing else stays open. Each has a number above those that are taken by then."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(len(fds), max(fds) + 1)


def _send_file(reply: socket.socket, word: bytes, fd: int) -> None:
    reply.sendmsg([word], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))])
    os.close(fd)


def _say_ready(reply: socket.socket) -> None:
    """With a file that shows the keeper behind which walls it was opened."""
    word = WORD.pack(READY, os.getpid(), 0, 0, 0, 0)
    try:
        fd = os.open(PROBE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        reply.send(word)  # the keeper knows whether it can do without
        return
    _send_file(reply, word, fd)


def _serve(reply: socket.socket) -> int:
    """Wait behind the walls for what is to be done, and do it."""
    _inside.warm_up()
    _say_ready(reply)
    data, fds = _receive(reply)
    if not data:
        return 0
    kind, has_environment = BEGIN_HEADER.unpack_from(data)
    if kind != BEGIN:
        return 125
    if has_environment:
        _set_environment(fds.pop(0))
    os.chdir(data[BEGIN_HEADER.size :])
    reply.detach()
    _place(fds)
    if len(fds) > ANSWER:
        return _inside.run_call(ANSWER - 1, ANSWER)
    os.dup2(ANSWER - 1, ANSWER)  # where it always is
    os.close(ANSWER - 1)
    return _inside.run_waiting(ANSWER)


def _be_a_fork(reply: socket.socket, parts: Tuple[int, List[int], int, List[int], bytes]) -> None:
    status = 125
    try:
        try:
            listener = _go_in(*parts)
            if listener:
                _send_file(reply, WORD.pack(LISTENER, 0, 0, 0, 0, 0), listener)
            os.dup2(reply.fileno(), REPLY)
            _call(CLOSE_RANGE, REPLY + 1, 0xFFFFFFFF, 0)
        except OSError as error:
            reply.send(WORD.pack(FORK_FAILED, error.errno or errno.EPROTO, 0, 0, 0, 0))
            return
        reply.detach()
        status = _serve(socket.socket(fileno=REPLY))
    finally:
        os._exit(status)


# --- the zygote ----------------------------------------------------------------------------------------------


class Zygote:
    """The loop: fork on request, reap, tell."""

    def __init__(self) -> None:
        self._requests = socket.socket(fileno=REQUESTS)
        self._poll = select.poll()
        self._poll.register(REQUESTS, select.POLLIN)
        self._children: Dict[int, Tuple[int, socket.socket]] = {}

    def run(self) -> None:
        """Until nobody is left who could ask."""
        while True:
            for fd, _ in self._poll.poll():
                if fd in self._children:
                    self._reap(fd)
                elif not self._take_request():
                    return

    def _take_request(self) -> bool:
        data, fds = _receive(self._requests)
        if not data:
            return False
        kind, flags, has_ruleset, cgroup_count = FORK_HEADER.unpack_from(data)
        if kind != FORK or not fds:
            return False
        reply = socket.socket(fileno=fds[0])
        count = sum(1 for flag in NAMESPACES if flags & flag)
        namespaces, rest = fds[1 : 1 + count], fds[1 + count :]
        ruleset = rest.pop(0) if has_ruleset else -1
        self._fork(reply, (flags, namespaces, ruleset, rest[:cgroup_count], data[FORK_HEADER.size :]))
        for fd in fds[1:]:
            os.close(fd)
        return True

    def _fork(self, reply: socket.socket, parts: Tuple[int, List[int], int, List[int], bytes]) -> None:
        try:
            _check(_libc.setns(parts[1][0], NEW_PID))
            pid = os.fork()
            if pid == 0:
                _be_a_fork(reply, parts)
        except OSError as error:
            self._tell(reply, FORK_FAILED, error.errno or 1)
            reply.close()
            return
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = (pid, reply)
        self._poll.register(pidfd, select.POLLIN)

    def _reap(self, pidfd: int) -> None:
        pid, reply = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        self._tell(reply, ENDED, status, usage)
        reply.close()

    @staticmethod
    def _tell(reply: socket.socket, kind: int, value: int, usage: Any = None) -> None:
        numbers = (0, 0, 0, 0)
        if usage is not None:
            numbers = (int(usage.ru_utime * 1e6), int(usage.ru_stime * 1e6), usage.ru_maxrss, usage.ru_oublock)
        try:
            reply.send(WORD.pack(kind, value, *numbers), socket.MSG_DONTWAIT)
        except OSError:
            pass  # the keeper has gone: nobody wants to know


def _loaded_files() -> List[List[Any]]:
    """The files of all modules, by which your program can see that one of them has changed since."""
    found: List[List[Any]] = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and len(found) < FILES_MAX:
            try:
                facts = os.stat(file)
            except OSError:
                continue  # of this package, which came in a file in memory
            found.append([file, facts.st_mtime_ns, facts.st_size])
    return found


def main(paths: List[str], preload: List[str], writable: List[str]) -> NoReturn:
    """Be a zygote until nobody is left who could ask."""
    _check(_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    try:
        _inside.prepare(paths, preload, writable)
    except _inside.PrepareError as error:
        os._exit(_inside.refuse(REPORT, error))
    parts, _ = Codec().encode_parts(_loaded_files())
    _answer.send_answer(REPORT, _answer.VALUE, parts)
    os.close(REPORT)
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    _cell.flush_of_c()
    gc.collect()
    gc.freeze()
    Zygote().run()
    os._exit(0)
