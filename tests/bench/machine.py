# SPDX-License-Identifier: Apache-2.0
"""Where and with what was measured: every number is worth only as much as this is known."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import Dict, List

from bench.candidates import SANDBOXES
from bench.context import BELLJAR, ROOT


def first_line(command: List[str]) -> str:
    """What a program says of its version; nothing where it says nothing."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[0] if lines and done.returncode == 0 else ""


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "Processor", "CPU part")):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_gib() -> float:
    """The machine's memory."""
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)


def distribution() -> str:
    """The name of what is installed."""
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return ""


def describe() -> Dict[str, object]:
    """Date and machine."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": memory_gib(),
        "kernel": f"{platform.system()} {platform.release()}",
        "distribution": distribution(),
        "user": "root" if os.getuid() == 0 else "ordinary user",
        "load_before": round(os.getloadavg()[0], 2),
    }


def versions() -> Dict[str, str]:
    """Of Belljar, of Python and of every other sandbox that is there."""
    commit = first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"])
    found = {
        "belljar": " ".join(filter(None, (first_line([BELLJAR, "--version"]), commit and f"({commit})"))),
        "python": platform.python_version(),
    }
    for sandbox in SANDBOXES:
        if sandbox.path():
            found[sandbox.name] = first_line([str(sandbox.path()), "--version"]) or "unknown"
    return found
