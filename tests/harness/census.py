# SPDX-License-Identifier: Apache-2.0
"""Which processes a test has left behind.

The test process is a child subreaper: whatever a run leaves, in any session, with any parent gone, ends up below it.
So "nothing is left" means that this process has no descendants.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import Dict, List, Set

from harness.bounds import BOUND

PR_SET_CHILD_SUBREAPER = 36

# Children that a whole class of tests has; neither they nor what they start is left behind.
SPARED: Set[int] = set()


def adopt_orphans() -> None:
    """Make this process the one that orphans below it are handed to."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read(path: str) -> bytes:
    """A file of /proc; a test's end reads hundreds of them, which is why this takes no detours. OSError where it is gone."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(fd, 65536)]
        while parts[-1]:
            parts.append(os.read(fd, 65536))
        return b"".join(parts)
    finally:
        os.close(fd)


def stat_fields(pid: int) -> List[str]:
    """The fields of /proc/PID/stat from the third on (state, parent, ...); empty where the process is gone."""
    try:
        text = read(f"/proc/{pid}/stat").decode(errors="replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def state(pid: int) -> str:
    """The process's state letter, "" where it is gone."""
    fields = stat_fields(pid)
    return fields[0] if fields else ""


def parent(pid: int) -> int:
    """The process's parent, 0 where it is gone."""
    fields = stat_fields(pid)
    return int(fields[1]) if fields else 0


def descendants(root: int) -> List[int]:
    """Every living process below root, zombies left out."""
    parents: Dict[int, int] = {}
    zombies = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        fields = stat_fields(int(name))
        if fields:
            parents[int(name)] = int(fields[1])
            if fields[0] in "ZX":
                zombies.add(int(name))
    found: List[int] = []
    level = {root}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level and pid not in SPARED}
        found.extend(sorted(level))
    return [pid for pid in found if pid not in zombies]


def command_line(pid: int) -> str:
    """The process's arguments for a message, or its name where they cannot be read."""
    try:
        raw = read(f"/proc/{pid}/cmdline")
        name = read(f"/proc/{pid}/comm").decode(errors="replace").strip()
    except OSError:
        return "?"
    return raw.replace(b"\0", b" ").decode(errors="replace").strip() or f"[{name}]"


def name(pid: int) -> str:
    """The name of the program that a process runs; empty where it is gone."""
    try:
        return read(f"/proc/{pid}/comm").decode(errors="replace").strip()
    except OSError:
        return ""


def children(pid: int) -> List[int]:
    """The children of a process, but for an engine's helpers: first processes of jars, and what measures and looks for them."""
    try:
        found = [int(word) for word in read(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []
    return [child for child in found if name(child) != "belljar-helper"]


def living(root: int, *names: str) -> List[int]:
    """Of the living processes below one, those with one of these names."""
    return [pid for pid in descendants(root) if name(pid) in names]


def marked(marker: str) -> List[int]:
    """Processes anywhere on the host whose arguments hold the marker, this process left out."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            raw = read(f"/proc/{name}/cmdline")
        except OSError:
            continue
        if marker.encode() in raw and state(int(name)) not in ("", "Z", "X"):
            found.append(int(name))
    return found


def reap() -> None:
    """Collect orphans that were handed to this process and have ended."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def kill_all() -> None:
    """End every descendant of this process."""
    for _ in range(100):
        left = descendants(os.getpid())
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.02)


def wait_until_none(seconds: float = 0.0, marker: str = "") -> List[str]:
    """Wait until no descendant and no marked process is left; what still lives after the bound, or longer, described."""
    deadline = time.monotonic() + max(seconds, BOUND)
    while True:
        reap()
        left = set(descendants(os.getpid()))
        if marker:
            left.update(marked(marker))
        if not left:
            return []
        if time.monotonic() > deadline:
            return [f"{pid} {state(pid)} {command_line(pid)}" for pid in sorted(left)]
        time.sleep(0.01)


def mounts() -> Set[str]:
    """The mounts of this namespace. The runner has one of its own: what the host has too is another program's."""

    def of(process: str) -> Set[str]:
        return {line.split()[4] for line in read(f"/proc/{process}/mountinfo").decode(errors="replace").splitlines()}

    try:
        # An ordinary user cannot see whose namespace it is, and can mount nothing in either.
        is_apart = os.geteuid() != 0 or os.readlink("/proc/1/ns/mnt") != os.readlink("/proc/self/ns/mnt")
        return of("self") - (of("1") if is_apart else set())
    except OSError:
        return of("self")


def is_ours(path: str) -> bool:
    """Does it belong to the user of this process? Others may use Belljar on this host too."""
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False


def picture() -> Dict[str, Set[str]]:
    """The host, as far as runs could leave something behind.

    Processes are looked for below this one, which adopts what its engines leave: others may be at work on this host. A
    namespace lives by a process in it or by a mount.
    """
    files: Set[str] = set()
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        files.update(f"{place}/{name}" for name in os.listdir(place) if name.startswith("belljar-"))
    cgroups = {root for root, _, _ in os.walk("/sys/fs/cgroup") if "belljar" in os.path.basename(root)}
    return {
        "mounts": mounts(),
        "cgroups": {name for name in cgroups if is_ours(name)},
        "files": {name for name in files if is_ours(name) and not name.startswith("/tmp/belljar-test-")},
    }
