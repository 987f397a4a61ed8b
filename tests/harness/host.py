# SPDX-License-Identifier: Apache-2.0
"""What this host can do, and skipping in words that the runner understands."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import unittest
from typing import Callable, Dict

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_FCHMODAT2 = 452
LANDLOCK_CREATE_RULESET_VERSION = 1


@functools.cache
def has_userns() -> bool:
    """True where this process may make user, mount, pid and network namespaces."""
    child = os.fork()
    if child == 0:
        answer = LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET)
        os._exit(0 if answer == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


@functools.cache
def landlock_abi() -> int:
    """The kernel's Landlock ABI, 0 where there is none."""
    answer = LIBC.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    return max(int(answer), 0)


@functools.cache
def has_fchmodat2() -> bool:
    """Since Linux 6.6. An empty path is refused before anything is done."""
    return LIBC.syscall(SYS_FCHMODAT2, -1, b"", 0, 0) == 0 or ctypes.get_errno() != errno.ENOSYS


FEATURES: Dict[str, Callable[[], bool]] = {
    "userns": has_userns,
    "landlock": lambda: landlock_abi() > 0,
    "root": lambda: os.geteuid() == 0,
    "user": lambda: os.geteuid() != 0,
}


def need(*features: str) -> None:
    """Skip the test unless the host has every feature; fail it where BELLJAR_TEST_REQUIRE names what is lacking."""
    required = os.environ.get("BELLJAR_TEST_REQUIRE", "").split(",")
    for feature in features:
        if FEATURES[feature]():
            continue
        reason = f"needs:{feature} this host or user does not have it"
        if feature in required:
            raise AssertionError(reason)
        raise unittest.SkipTest(reason)
