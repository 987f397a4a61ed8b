# SPDX-License-Identifier: Apache-2.0
"""Start belljar, bounded, and read what it says.

A *way* is one way the engine can keep its promise: with namespaces, or, where the host refuses them, with Landlock or
with process tracking alone. Behaviour that must hold on each is tested on each.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from harness import census, paths
from harness.bounds import BOUND
from harness.result import Event, Result, check_events, check_result, check_status, parse_line

Arg = Union[str, bytes, Path]
Stdin = Union[bytes, int, IO[Any], None]


@dataclass(frozen=True)
class Way:
    """How the engine is made to isolate: what the host refuses, and the least rung that is accepted."""

    name: str
    deny: Tuple[str, ...] = ()
    options: Tuple[str, ...] = ()
    rung: Optional[str] = None
    needs: Tuple[str, ...] = ()


ANY = Way("any")
NAMESPACE = Way("namespace", (), ("--rung", "namespace"), "namespace", ("userns",))
LANDLOCK = Way("landlock", ("userns",), ("--rung", "landlock"), "landlock", ("landlock",))
PROCESS = Way("process", ("userns", "landlock"), ("--rung", "process"), "process")
WAYS = (NAMESPACE, LANDLOCK, PROCESS)


@dataclass(frozen=True)
class Completed:
    """A belljar that has ended. A status below 0 is the signal that ended belljar itself."""

    args: Any
    status: int
    stdout: bytes
    stderr: bytes


def command(args: Sequence[Arg], way: Way = ANY, verb: str = "run") -> List[bytes]:
    """The whole argument vector: the refusals of the way, belljar, the verb, the way's options, args."""
    words: List[Arg] = []
    if way.deny:
        words += [paths.tool("deny"), *way.deny, "--"]
    words.append(paths.belljar())
    if verb:
        words += [verb]
        if verb in ("run", "shell", "plan"):
            words += list(way.options)
    return [os.fsencode(word) for word in [*words, *args]]


def clean_env(home: Union[str, Path]) -> Dict[str, str]:
    """A small environment that does not depend on who runs the tests."""
    return {
        "PATH": paths.SYSTEM_PATH,
        "HOME": str(home),
        "USER": "tester",
        "LOGNAME": "tester",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        "TERM": "xterm",
    }


def start(
    args: Sequence[Arg],
    *,
    way: Way = ANY,
    verb: str = "run",
    stdin: Union[int, IO[Any], None] = subprocess.DEVNULL,
    stdout: Union[int, IO[Any], None] = subprocess.PIPE,
    stderr: Union[int, IO[Any], None] = subprocess.PIPE,
    env: Optional[Mapping[Any, Any]] = None,
    cwd: Union[str, bytes, Path, None] = None,
    pass_fds: Sequence[int] = (),
    preexec_fn: Optional[Callable[[], None]] = None,
    start_new_session: bool = False,
) -> "subprocess.Popen[bytes]":
    """Start belljar and return at once."""
    return subprocess.Popen(
        command(args, way, verb),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=dict(env) if env is not None else None,
        cwd=cwd,
        pass_fds=tuple(pass_fds),
        preexec_fn=preexec_fn,
        start_new_session=start_new_session,
    )


def finish(process: "subprocess.Popen[bytes]", data: Optional[bytes] = None, timeout: float = BOUND) -> Completed:
    """Wait for belljar to end; after the bound, or longer, everything below this process is killed and the test fails."""
    timeout = max(timeout, BOUND)
    try:
        stdout, stderr = process.communicate(data, timeout=timeout)
    except subprocess.TimeoutExpired:
        left = [f"{pid} {census.state(pid)} {census.command_line(pid)}" for pid in census.descendants(os.getpid())]
        census.kill_all()
        stdout, stderr = process.communicate(timeout=BOUND)
        raise AssertionError(
            f"belljar did not return within {timeout} s: {process.args!r}\nprocesses: {left}\n"
            f"stdout: {stdout[:2000]!r}\nstderr: {stderr[:2000]!r}"
        ) from None
    return Completed(process.args, process.returncode, stdout or b"", stderr or b"")


def run(args: Sequence[Arg], *, stdin: Stdin = None, timeout: float = BOUND, **options: Any) -> Completed:
    """Run `belljar run ARGS...` to its end. stdin: bytes to feed, a file, or None for /dev/null."""
    if isinstance(stdin, bytes):
        return finish(start(args, stdin=subprocess.PIPE, **options), stdin, timeout)
    return finish(start(args, stdin=subprocess.DEVNULL if stdin is None else stdin, **options), None, timeout)


def check_answer(done: Completed, raw: bytes) -> Result:
    """A result line together with the exit status it came with."""
    try:
        result = check_result(parse_line(raw))
        check_status(result, done.status)
    except AssertionError as error:
        raise AssertionError(f"{error}\nstatus: {done.status}\nstderr: {done.stderr[:2000]!r}") from error
    return result


def run_json(args: Sequence[Arg], **options: Any) -> Result:
    """Run with --json; the result, checked against the contract and the exit status."""
    done = run(["--json", *args], **options)
    return check_answer(done, done.stdout)


def run_events(args: Sequence[Arg], **options: Any) -> List[Event]:
    """Run with --events; the events, checked against the contract and the exit status."""
    done = run(["--events", *args], **options)
    try:
        events = check_events(done.stdout, with_bytes="--bytes" in args)
        check_status(events[-1]["result"], done.status)
    except AssertionError as error:
        raise AssertionError(f"{error}\nstatus: {done.status}\nstderr: {done.stderr[:2000]!r}") from error
    return events


class StatusPipe:
    """The reading end of a --status-fd; it is drained by a thread, so that belljar never waits for it."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.data = b""
        self.thread = threading.Thread(target=self._drain, daemon=True)

    def _drain(self) -> None:
        while True:
            part = os.read(self.reader, 65536)
            if not part:
                return
            self.data += part

    @property
    def option(self) -> List[str]:
        """The words for the command line."""
        return ["--status-fd", str(self.writer)]

    def started(self) -> None:
        """To be called once belljar has inherited the descriptor."""
        os.close(self.writer)
        self.thread.start()

    def read(self, timeout: float = BOUND) -> bytes:
        """Everything that was written, once the other end is closed."""
        self.thread.join(timeout)
        if self.thread.is_alive():
            raise AssertionError("the status descriptor stays open")
        os.close(self.reader)
        return self.data


def run_status(
    args: Sequence[Arg], *, stdin: Stdin = None, timeout: float = BOUND, **options: Any
) -> Tuple[Completed, Result]:
    """Run with --status-fd; what was passed through, and the result."""
    status = StatusPipe()
    feed = subprocess.PIPE if isinstance(stdin, bytes) else subprocess.DEVNULL if stdin is None else stdin
    process = start([*status.option, *args], stdin=feed, pass_fds=(status.writer,), **options)
    status.started()
    done = finish(process, stdin if isinstance(stdin, bytes) else None, timeout)
    return done, check_answer(done, status.read())


def unread(descriptor: int) -> int:
    """How many bytes wait in a pipe."""
    return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0])


def read_until(stream: IO[bytes], wanted: bytes, timeout: float = BOUND) -> bytes:
    """Read from a pipe until the bytes have arrived; fail after the bound or at the end of the stream."""
    deadline = time.monotonic() + timeout
    descriptor = stream.fileno()
    data = b""
    os.set_blocking(descriptor, False)
    try:
        while wanted not in data:
            if time.monotonic() > deadline:
                raise AssertionError(f"{wanted!r} did not arrive within {timeout} s; got {data!r}")
            try:
                part = os.read(descriptor, 65536)
            except BlockingIOError:
                time.sleep(0.005)
                continue
            if not part:
                raise AssertionError(f"the stream ended before {wanted!r}; got {data!r}")
            data += part
    finally:
        os.set_blocking(descriptor, True)
    return data


def send(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Send a signal to belljar itself."""
    os.kill(process.pid, signal.Signals(number))
