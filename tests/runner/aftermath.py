# SPDX-License-Identifier: Apache-2.0
"""What the machine looks like before and after: tests leave no mount, no cgroup, no folder and no process behind.

Other programs work on the same machine, and may use Belljar too. What they make is not ours to answer for, so each kind of thing
is attributed. Processes: every orphan of ours comes to the runner, so what is left of the tests is below it. Mounts: as root the
runner has a mount namespace of its own, into which the host's mounts come and from which none go; what is there and not on the
host is ours. Folders and cgroups: those of the user that only the tests have are ours. One of root's can be anybody's: it counts
unless another user of Belljar was seen at work meanwhile, and then it is only named.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import threading
import time

from runner import process
from runner.pace import PACE
from runner.report import FAILED, PASSED, Outcome

GRACE_SECONDS = 30.0
LOOK_EVERY_SECONDS = 2.0
CLONE_NEWNS = 0x00020000
MS_REC, MS_SLAVE = 0x4000, 0x80000
OURS_BY_NAME = "belljar"
STAGE_PREFIX = "belljar-test-"
# The bench runs firejail where it is installed, and that keeps mounts of its own from its first run until the host restarts.
OTHERS_MOUNTS = "/run/firejail/"


def mount_lines(text: str) -> set[str]:
    """Mount points with their sources, without the numbers that change."""
    lines = [line.split() for line in text.splitlines()]
    return {" ".join([words[4], *words[words.index("-") + 1 :][:2]]) for words in lines if not words[4].startswith(OTHERS_MOUNTS)}


class Mounts:
    """The mounts of the tests. To be made before there is a second thread."""

    def __init__(self) -> None:
        self._host = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)  # it stays that of this namespace
        libc = ctypes.CDLL(None, use_errno=True)
        self.is_apart = (
            os.getuid() == 0
            and libc.unshare(CLONE_NEWNS) == 0
            and libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None) == 0
        )

    def _host_text(self) -> str:
        os.lseek(self._host, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._host, 1 << 16):
            parts.append(part)
        return b"".join(parts).decode(errors="replace")

    def ours(self) -> set[str]:
        """Without a namespace of ours no test can mount anything there: an ordinary user's tests may not."""
        if not self.is_apart:
            return set()
        return mount_lines(pathlib.Path("/proc/self/mountinfo").read_text(errors="replace")) - mount_lines(self._host_text())


def cgroups() -> set[pathlib.Path]:
    """Cgroups of Belljar's, by their name."""
    # Others may be removing theirs meanwhile: os.walk() goes on where a folder has just gone.
    return {pathlib.Path(root) for root, _, _ in os.walk("/sys/fs/cgroup") if OURS_BY_NAME in os.path.basename(root)}


def folders() -> set[pathlib.Path]:
    """Folders of the engine's, and of the tests', in the places that everybody shares; not those of other runs of the tests."""
    places = [pathlib.Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm")]
    return {
        path
        for place in places
        for name in ("belljar-*", "bjt-*")
        for path in place.glob(name)
        if not path.name.startswith(STAGE_PREFIX)
    }


def owner(path: pathlib.Path) -> int | None:
    """The uid of its owner; None where it is gone."""
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def name_of(pid: int) -> str:
    """A process for a person to read."""
    with contextlib.suppress(OSError):
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return f"process {pid} {command}".rstrip()
    return f"process {pid}"


def processes_of(uid: int | None) -> set[int]:
    """Of a user that only the tests have, and below the runner, where every orphan of theirs comes to."""
    found = set(process.descendants(os.getpid()))
    for entry in pathlib.Path("/proc").iterdir() if uid is not None else ():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                found.add(int(entry.name))
    return found


def neighbours() -> set[str]:
    """Programs of Belljar's that are not below the runner."""
    found: dict[int, str] = {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (name := (entry / "comm").read_text(errors="replace").strip()).startswith(OURS_BY_NAME):
                found[int(entry.name)] = name
    ours = set(process.descendants(os.getpid())) if found else set()
    return {name for pid, name in found.items() if pid not in ours}


class Aftermath:
    """Take a picture when made, compare when asked."""

    def __init__(self, mounts: Mounts, uid: int | None) -> None:
        self._mounts = mounts
        self._uid = uid
        self.others: set[str] = set()
        self._before = self._shared() | self._ours()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.others |= neighbours()
            time.sleep(LOOK_EVERY_SECONDS)

    def _ours(self) -> set[str]:
        """What only the tests can have made."""
        of_user = {str(path) for path in folders() | cgroups() if self._uid is not None and owner(path) == self._uid}
        return self._mounts.ours() | of_user | {name_of(pid) for pid in processes_of(self._uid)}

    @staticmethod
    def _shared() -> set[str]:
        """What any program that uses Belljar can have made."""
        return {str(path) for path in folders() | cgroups()}

    def outcome(self) -> Outcome:
        """One test: nothing of ours is there that was not there before."""
        deadline = PACE.now() + GRACE_SECONDS
        while True:
            process.reap_orphans()
            ours, shared = self._ours() - self._before, self._shared() - self._before
            if not ours | shared or PACE.now() > deadline:
                break
            time.sleep(0.1)
        unknown = shared - ours
        if not self.others:
            ours, unknown = ours | unknown, set()
        remarks = [f"of other users of Belljar, or of the tests: {name}" for name in sorted(unknown)]
        return Outcome("the machine is as it was", FAILED if ours else PASSED, "\n".join([*sorted(ours), *remarks]))
