# SPDX-License-Identifier: Apache-2.0
"""kill_tree(): end a process and everything below it, for programs that were started outside of jars."""

from __future__ import annotations

import contextlib
import operator
import os
import select
import signal
import time
from typing import Dict, NamedTuple, Optional

ROUNDS_MAX = 1000
WAIT_SECONDS = 5.0


class _Seen(NamedTuple):
    parent: int
    session: int
    start: int  # with the pid, this names a process for good


def _look(pid: int) -> Optional[_Seen]:
    """What /proc says; None for a process that is gone or only waits to be collected."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return _Seen(int(fields[1]), int(fields[3]), int(fields[19]))


def _everybody() -> Dict[int, _Seen]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            seen = _look(int(name))
            if seen is not None:
                found[int(name)] = seen
    return found


def _ancestors() -> set[int]:
    found = set()
    pid = os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        seen = _look(pid)
        pid = seen.parent if seen else 0
    return found


def _grow(members: set[int], everybody: Dict[int, _Seen], spared: set[int]) -> set[int]:
    """All that descend from the members, or are in a session that one of them began: those descend from it too, whoever
    their parent is now."""
    found = set(members)
    while True:
        new = {
            pid
            for pid, seen in everybody.items()
            if pid not in found and pid not in spared and (seen.parent in found or seen.session in found)
        }
        if not new:
            return found
        found |= new


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants, and wait until they are dead. No error if it is gone.

    ValueError for 0, 1, a negative number, this process, or one that it descends from. They are stopped first, until no
    new ones appear, so that none can outrun this. What had left the tree before, as a daemon of its own session, is not
    found: only a jar holds those.
    """
    pid = operator.index(pid)
    if pid <= 1:
        raise ValueError(f"refusing to kill process {pid}: it is not an ordinary process")
    spared = _ancestors()
    if pid in spared:
        raise ValueError(f"refusing to kill process {pid}: it is this process, or one that it descends from")
    first = _look(pid)
    if first is None:
        return
    handles: Dict[int, int] = {}
    starts = {pid: first.start}
    try:
        for _ in range(ROUNDS_MAX):
            everybody = _everybody()
            # A number that is another process's by now leads nowhere.
            members = {
                member for member, start in starts.items() if member not in everybody or everybody[member].start == start
            }
            new = [member for member in _grow(members, everybody, spared) if member not in handles and member in everybody]
            if not new:
                break
            for member in new:
                handle = _hold(member, everybody[member])
                if handle is not None:
                    handles[member] = handle
                    starts[member] = everybody[member].start
                    _send(handle, signal.SIGSTOP)
        for handle in handles.values():
            _send(handle, signal.SIGKILL)
        deadline = time.monotonic() + WAIT_SECONDS
        for handle in handles.values():
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll(max(deadline - time.monotonic(), 0) * 1000)
    finally:
        for handle in handles.values():
            os.close(handle)


def _hold(pid: int, seen: _Seen) -> Optional[int]:
    """A descriptor for exactly the process that was seen: numbers are used again."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    now = _look(pid)
    if now is None or now.start != seen.start:
        os.close(handle)
        return None
    return handle


def _send(handle: int, number: int) -> None:
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(handle, number)
