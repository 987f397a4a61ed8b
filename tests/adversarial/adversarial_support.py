# SPDX-License-Identifier: Apache-2.0
"""What the attacks share: pictures of the host, attackers written in Python, and answers read back."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from harness import census, host, paths
from harness.case import JarCase
from harness.result import Result
from harness.runner import Arg

PYTHON = "/usr/bin/python3"
# Under the sanitizers everything takes longer, and memory is not what it is otherwise.
IS_SANITIZED = "BELLJAR_TEST_SANITIZER" in os.environ

# An attacker in Python: `attempt` prints one line for each try, so that a test can check how each was stopped.
PREAMBLE = """
import array, ctypes, errno, fcntl, os, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, function):
    try:
        answer = function()
        print(name, "ok", flush=True)
        return answer
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno), flush=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "syscall")
"""


def picture(top: Path) -> Dict[str, Tuple[Any, ...]]:
    """Everything below a directory: kind, mode, owner, size, change of content, extended attributes."""
    found: Dict[str, Tuple[Any, ...]] = {}
    for path in [top, *sorted(top.rglob("*"))]:
        status = path.lstat()
        content: Any = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        attributes = tuple(os.listxattr(path, follow_symlinks=False))
        modified = status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_ino, modified, content, attributes)
    return found


def contents(top: Path) -> Dict[str, Tuple[Any, ...]]:
    """The same without metadata: names, kinds, objects and contents."""
    return {name: (stat.S_IFMT(row[0]), row[3], row[5]) for name, row in picture(top).items()}


class AttackCase(JarCase):
    """A test with a directory outside the jar that holds a secret."""

    SECRET = "the-secret-of-the-host"

    def setUp(self) -> None:
        super().setUp()
        self.outside = self.directory("outside")
        self.secret = self.outside / "secret"
        self.secret.write_text(self.SECRET)
        self.own = self.work / "attacker"
        self.own.mkdir()

    def python(self, script: str, *words: Arg) -> List[Arg]:
        """The words that run a Python attacker in the jar."""
        return ["--", PYTHON, "-I", "-c", PREAMBLE + script, *words, self.marker]

    def answers(self, text: str) -> Dict[str, str]:
        """The lines of `attempt` as a table."""
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if " " in line)

    def missing(self, result: Dict[str, Any]) -> List[str]:
        """The names of what the result calls missing."""
        return [entry["name"] for entry in result["missing"]]

    def background(self, *words: Arg, ready: bytes = b"") -> "subprocess.Popen[bytes]":
        """A host process of ours that runs during the test; waits for its first words."""
        process = subprocess.Popen([os.fsencode(word) for word in words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(self._stop, process)
        if ready:
            assert process.stdout is not None
            self.assertEqual(process.stdout.read(len(ready)), ready)
        return process

    def swap(self, first: Path, second: Path, seconds: int = 30, pause_us: int = 0) -> "subprocess.Popen[bytes]":
        """Exchange two names over and over until the test ends."""
        words = [paths.tool("attack_swap"), str(seconds), first, second, str(pause_us)]
        return self.background(*words, ready=b"swapping\n")

    def git(self, *words: str, cwd: Path) -> None:
        """Git on the host, without anybody's settings."""
        env = {**self.env, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
        subprocess.run(["git", *words], cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)


class EndCase(AttackCase):
    """A test of commands that do not end by themselves."""

    def timed(self, *args: str, preexec_fn: Optional[Callable[[], None]] = None) -> Result:
        """Run what would outlast every bound until the timeout, which ends it, and leaves nobody."""
        _, result = self.status("--timeout", "1s", "--grace", "300ms", "--", *args, preexec_fn=preexec_fn)
        self.assertEqual(result["outcome"], "timeout")
        self.assertEqual(census.wait_until_none(marker=self.marker), [])
        return result


def number(name: str) -> int:
    """The errno of a name."""
    return int(getattr(errno, name))


def needs_git() -> None:
    """Skip where the host has no git."""
    if not any(os.access(f"{folder}/git", os.X_OK) for folder in paths.SYSTEM_PATH.split(":")):
        raise unittest.SkipTest("needs:git which is not installed")


__all__ = ["IS_SANITIZED", "PREAMBLE", "PYTHON", "AttackCase", "EndCase", "contents", "host", "needs_git", "number", "picture"]
