# SPDX-License-Identifier: Apache-2.0
"""Run a program that may hang, talk without end, or leave children behind, and be rid of all of it afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from runner.pace import PACE

OUTPUT_MAX_BYTES = 4 * 1024 * 1024
PR_SET_CHILD_SUBREAPER = 36
# A third of what others get: enough to get somewhere beside other people's work too.
LOW_PRIORITY = 5

_lock = threading.Lock()
_running: set[int] = set()
_is_stopping = False


@dataclasses.dataclass
class Finished:
    """How a program ended. `status` is negative for a signal; `output` is stdout and stderr together."""

    status: int
    output: str
    seconds: float
    is_timed_out: bool


def become_subreaper() -> None:
    """Orphans among our descendants become our children, where they can be found, instead of process 1's."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents() -> dict[int, int]:
    """Every process's parent. Zombies count: they are still there."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[int(entry.name)] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
    return found


def descendants(root_pid: int) -> list[int]:
    """All processes below `root_pid`, without itself."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = [root_pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def signal_all(pids: Iterable[int], number: int) -> None:
    """Whoever is gone already is gone."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def kill_tree(root_pid: int) -> None:
    """Kill a process and all its descendants. They are stopped first, until no new ones appear: none can outrun this."""
    seen: set[int] = set()
    for _ in range(100):
        tree = {root_pid, *descendants(root_pid)}
        signal_all(tree - seen, signal.SIGSTOP)
        if tree <= seen:
            break
        seen |= tree
    signal_all(seen, signal.SIGKILL)


def reap_orphans() -> None:
    """Let go of dead processes that were handed to us. Only for when nothing started by run() is running."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def stop_everything() -> None:
    """Kill whatever run() has started, in whatever thread, and start nothing more."""
    global _is_stopping
    _is_stopping = True
    for pid in list(_running):
        kill_tree(pid)


class _Spent(threading.local):
    """Each thread counts its own."""

    programs = 0.0


_spent = _Spent()


def processor_seconds() -> float:
    """What this thread, and the programs that it has run, have used of the processors so far."""
    return time.thread_time() + _spent.programs


def give_way(pid: int) -> None:
    """Let others go before a process that leads a session, and before what it starts."""
    # Where the kernel shares time out among sessions first, a priority counts only within one.
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(LOW_PRIORITY))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, LOW_PRIORITY)


def wait(process: subprocess.Popen[bytes], timeout_seconds: float | None = None) -> bool:
    """Wait for the end of a program; false where its time is up first, in seconds of a quiet machine."""
    fd = os.pidfd_open(process.pid)
    deadline = PACE.now() + (timeout_seconds or 0.0)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while not poll.poll(None if timeout_seconds is None else max(1.0, (deadline - PACE.now()) * 1000)):
            if PACE.now() >= deadline:
                return False
    finally:
        os.close(fd)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    _spent.programs += usage.ru_utime + usage.ru_stime
    return True


PRLIMIT = "/usr/bin/prlimit"
# A fork bomb of a test is ended by what is tested; if that is late, the machine still has process numbers for others.
USER_PROCESSES_MAX = 12000


def run(
    command: Sequence[str],
    *,
    timeout_seconds: float,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    uid: int | None = None,
    pass_fds: Sequence[int] = (),
    gives_way: bool = False,
) -> Finished:
    """Run `command` in a session of its own, as `uid` if given, and kill it when its time, by the machine's pace, is up."""
    identity = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    if uid is not None and os.access(PRLIMIT, os.X_OK):
        command = [PRLIMIT, f"--nproc={USER_PROCESSES_MAX}", *command]
    start = time.monotonic()
    is_timed_out = False
    with tempfile.TemporaryFile() as output:
        with _lock:
            if _is_stopping:
                return Finished(128 + signal.SIGTERM, "not started: the run was interrupted\n", 0.0, False)
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=env,
                    cwd=cwd,
                    start_new_session=True,
                    pass_fds=pass_fds,
                    **identity,  # type: ignore[arg-type]
                )
            except OSError as error:
                return Finished(127, f"cannot start {command[0]}: {error}\n", 0.0, False)
            _running.add(process.pid)
        if gives_way:
            give_way(process.pid)
        try:
            if not wait(process, timeout_seconds):
                is_timed_out = True
                kill_tree(process.pid)
                wait(process)
        finally:
            _running.discard(process.pid)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - OUTPUT_MAX_BYTES))
        text = output.read().decode(errors="replace")
    if is_timed_out:
        passed = time.monotonic() - start
        text += f"\nkilled after {passed:.0f} seconds, as many as {timeout_seconds:.0f} of a quiet machine\n"
    return Finished(process.returncode, text, time.monotonic() - start, is_timed_out)
