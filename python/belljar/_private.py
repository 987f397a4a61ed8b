# SPDX-License-Identifier: Apache-2.0
"""Memory that a fork would share with its zygote, and so with other calls, made the fork's own.

Modules that are loaded ahead may have made shared mappings: mmap.mmap(-1, n) is one. After a fork all sides write to the same
pages. The zygote notes them once; a fork replaces each by a private copy before anything of the call's runs.
"""

from __future__ import annotations

import os
from typing import List, NamedTuple, Optional

PROT = {"r": 1, "w": 2, "x": 4}
MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS = 0x02, 0x10, 0x20
# What may be copied for every call.
MAX_BYTES = 64 << 20


class Region(NamedTuple):
    """A mapping that can be written, now or after mprotect(), and is shared."""

    start: int
    length: int
    copied: int  # so many bytes of it can be read
    prot: int


def _region(head: List[str]) -> Region:
    """From the fields of a line of /proc/self/maps."""
    start, end = (int(part, 16) for part in head[0].split("-"))
    prot = sum(PROT.get(letter, 0) for letter in head[1][:3])
    copied = end - start if prot & PROT["r"] else 0
    name = head[5] if len(head) > 5 else ""
    if name.startswith("/") and head[4] != "0" and not name.endswith("(deleted)"):
        # Beyond the end of its file there is nothing to be read but SIGBUS.
        try:
            copied = min(copied, max(os.stat(name).st_size - int(head[2], 16), 0))
        except OSError:
            copied = 0
    return Region(start, end - start, copied, prot)


def shared_regions() -> List[Region]:
    """The mappings of this process that a fork would share and could write."""
    found: List[Region] = []
    head: Optional[List[str]] = None
    with open("/proc/self/smaps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            if line[:1].isdigit() or line[:1] in "abcdef":
                head = line.rstrip("\n").split(None, 5)
            elif head is not None and line.startswith("VmFlags:"):
                flags = line.split()[1:]
                if "sh" in flags and "mw" in flags:
                    found.append(_region(head))
    if sum(region.length for region in found) > MAX_BYTES:
        raise MemoryError(f"the modules loaded ahead share more than {MAX_BYTES} bytes of writable memory with every call")
    return found


def make_private(regions: List[Region]) -> None:
    """In the fork: the same bytes at the same places, but its own. OSError if that fails."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for region in regions:
        data = ctypes.string_at(region.start, region.copied) if region.copied else b""
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
        if libc.mmap(region.start, region.length, PROT["r"] | PROT["w"], flags, -1, 0) != region.start:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        ctypes.memmove(region.start, data, len(data))
        if libc.mprotect(region.start, region.length, region.prot):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
