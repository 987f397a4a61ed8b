# SPDX-License-Identifier: Apache-2.0
"""A terminal with a person in front of it: the test types, reads and resizes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from harness import census, paths, runner
from harness.bounds import BOUND
from harness.runner import ANY, Arg, Way


class Terminal:
    """belljar as the foreground job of a session leader on a pseudo-terminal of ours."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.modes = self.read_modes()
        self.output = b""
        self.leader: "Optional[subprocess.Popen[bytes]]" = None
        self.control: Optional[socket.socket] = None
        self.told = b""

    def read_modes(self) -> List[Any]:
        """The terminal's modes as they are now."""
        return termios.tcgetattr(self.slave)

    def resize(self, rows: int, columns: int) -> None:
        """Change the window; the kernel tells the foreground job."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def start(
        self,
        args: Sequence[Arg],
        *,
        way: Way = ANY,
        verb: str = "run",
        env: Optional[Mapping[str, str]] = None,
        cwd: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        preexec_fn: Any = None,
    ) -> None:
        """Start belljar with the terminal as stdin, and as stdout and stderr unless they are given."""
        self._dismiss()  # a terminal has one session; the one before must be gone
        self.control, theirs = socket.socketpair()
        words: List[Arg] = [paths.tool("leader"), str(theirs.fileno()), *runner.command(args, way, verb)]
        self.leader = subprocess.Popen(
            words,
            stdin=self.slave,
            stdout=self.slave if stdout is None else stdout,
            stderr=self.slave if stderr is None else stderr,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            pass_fds=(theirs.fileno(),),
            preexec_fn=preexec_fn,
        )
        theirs.close()

    def type(self, text: bytes) -> None:
        """Press keys."""
        os.write(self.master, text)

    def pump(self, seconds: float = 0.02) -> None:
        """Take what has appeared on the screen."""
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.output += os.read(self.master, 65536)
            except OSError:
                time.sleep(seconds)

    def expect(self, wanted: bytes, timeout: float = BOUND, after: int = 0) -> int:
        """Read the screen until the bytes have appeared after an offset; the offset behind them."""
        deadline = time.monotonic() + timeout
        while wanted not in self.output[after:]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{wanted!r} did not appear within {timeout} s; screen: {self.output!r}")
            self.pump()
        return self.output.index(wanted, after) + len(wanted)

    def _listen(self, words: Sequence[str], timeout: float) -> Tuple[str, int]:
        """Wait until the leader has told one of the words; it and its number."""
        deadline = time.monotonic() + timeout
        assert self.control is not None
        while True:
            if select.select([self.control], [], [], 0)[0]:
                self.told += self.control.recv(4096)
            for line in self.told.decode().split("\n")[:-1]:
                name, number = line.split()
                if name in words:
                    return name, int(number)
            if time.monotonic() > deadline:
                raise AssertionError(f"no {words} within {timeout} s; told {self.told!r}; screen: {self.output!r}")
            self.pump()

    def report(self, word: str, timeout: float = BOUND) -> int:
        """Wait until the leader has told of `word` ("pid", "stopped"); its number."""
        return self._listen([word], timeout)[1]

    def end(self, timeout: float = BOUND) -> int:
        """Wait for belljar's end: its exit status, or minus the signal that ended it."""
        word, number = self._listen(["exited", "signaled"], timeout)
        return number if word == "exited" else -number

    def pid(self) -> int:
        """belljar's process id (not that of a helper that became belljar; they are the same)."""
        return self.report("pid")

    def resume(self) -> None:
        """What `fg` does."""
        assert self.control is not None
        self.told = b"".join(line for line in self.told.splitlines(True) if not line.startswith(b"stopped"))
        self.control.send(b"c")

    def screen(self) -> bytes:
        """All that has appeared, once nothing more comes for a moment."""
        before = -1
        while before != len(self.output):
            before = len(self.output)
            self.pump(0.05)
        return self.output

    def _dismiss(self) -> None:
        """Let the leader go, and wait until it has."""
        if self.control is not None:
            self.control.close()
        if self.leader is not None:
            try:
                self.leader.wait(BOUND)
            except subprocess.TimeoutExpired:
                self.leader.kill()
                self.leader.wait(BOUND)

    def close(self) -> None:
        """Hang up."""
        self._dismiss()
        for pid in census.descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGHUP)
            except OSError:
                pass
        os.close(self.master)
        os.close(self.slave)
