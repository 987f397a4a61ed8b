# SPDX-License-Identifier: Apache-2.0
"""What the machine looks like before and after: tests leave no mount, no cgroup, no folder and no process behind."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time

from runner import process
from runner.report import FAILED, PASSED, Outcome

GRACE_SECONDS = 30.0


# The bench runs firejail where it is installed, and that keeps mounts of its own from its first run until the host restarts.
OTHERS_MOUNTS = "/run/firejail/"


def mounts() -> set[str]:
    """Mount points with their sources, without the numbers that change."""
    lines = map(str.split, pathlib.Path("/proc/self/mountinfo").read_text().splitlines())
    ours = [words for words in lines if not words[4].startswith(OTHERS_MOUNTS)]
    return {" ".join([words[4], *words[words.index("-") + 1 :][:2]]) for words in ours}


def cgroups() -> set[str]:
    """Cgroups of ours, by their name."""
    # Others may be removing theirs meanwhile: os.walk() goes on where a folder has just gone.
    return {root for root, _, _ in os.walk("/sys/fs/cgroup") if "belljar" in os.path.basename(root)}


def folders() -> set[str]:
    """Folders of the engine's, and of the tests', in the places that everybody shares."""
    places = [pathlib.Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm")]
    return {str(path) for place in places for name in ("belljar-*", "bjt-*") for path in place.glob(name)}


def processes_of(uid: int) -> set[str]:
    """Processes of a user nobody else uses."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.add(f"process {entry.name} {command}")
    return found


class Aftermath:
    """Take a picture when made, compare when asked."""

    def __init__(self, uid: int | None) -> None:
        self._uid = uid
        self._before = self._picture()

    def _picture(self) -> set[str]:
        return mounts() | cgroups() | folders() | (processes_of(self._uid) if self._uid is not None else set())

    def outcome(self) -> Outcome:
        """One test: nothing is there that was not there before. What somebody else makes meanwhile is not ours."""
        deadline = time.monotonic() + GRACE_SECONDS
        process.reap_orphans()
        extra = self._picture() - self._before
        while extra and time.monotonic() < deadline:
            time.sleep(0.1)
            process.reap_orphans()
            extra &= self._picture()
        return Outcome("the machine is as it was", FAILED if extra else PASSED, "\n".join(sorted(extra)))
