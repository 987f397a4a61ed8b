# SPDX-License-Identifier: Apache-2.0
"""One virtual machine from its start to its surely being gone."""

from __future__ import annotations

import ctypes
import os
import pathlib
import selectors
import signal
import subprocess
import time
from collections.abc import Callable

from vm.kernel import Kernel

PROGRAM = "qemu-system-x86_64"
MEMORY = "2G"
PROCESSORS = 2
PR_SET_PDEATHSIG = 1
DISK_BYTES = 4 << 30


def make_disk(path: pathlib.Path) -> None:
    """An empty file system in a sparse file."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(DISK_BYTES)
    maker = next((name for name in ("/sbin/mke2fs", "/usr/sbin/mke2fs") if os.path.exists(name)), "mke2fs")
    subprocess.run([maker, "-q", "-F", "-t", "ext4", "-O", "^has_journal", str(path)], check=True)


# Linux 6.12 and later panicked where QEMU 7.2 emulated cmpxchg16b.
ACCELERATORS = {"tcg": ["-accel", "tcg,thread=multi", "-cpu", "max,-cx16"], "kvm": ["-accel", "kvm", "-cpu", "host"]}


def command(kernel: Kernel, initramfs: pathlib.Path, disk: pathlib.Path, accelerator: str, words: dict[str, str]) -> list[str]:
    """The machine has two processors, memory, a disk and a serial line, and no network."""
    # The kernel hands names it does not know to its first process, as environment.
    line = "console=ttyS0 quiet loglevel=3 panic=-1 random.trust_cpu=on " + " ".join(f"{k}={v}" for k, v in words.items())
    return [
        PROGRAM,
        *ACCELERATORS[accelerator],
        *("-m", MEMORY, "-smp", str(PROCESSORS), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", str(kernel.image), "-initrd", str(initramfs), "-append", line),
        *("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe", "-serial", "stdio", "-net", "none"),
    ]


def die_with_parent() -> None:
    """Whatever becomes of us, the machine does not outlive us."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run(arguments: list[str], seconds: float, take: Callable[[str], None]) -> bool:
    """Run it and hand on each line it says; True if it ended by itself within its time."""
    deadline = time.monotonic() + seconds
    machine = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    assert machine.stdout is not None
    os.set_blocking(machine.stdout.fileno(), False)
    pending = b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(machine.stdout, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    continue
                chunk = machine.stdout.read(65536)
                if chunk == b"":
                    break
                *lines, pending = (pending + (chunk or b"")).split(b"\n")
                for text in lines:
                    take(text.decode(errors="replace").rstrip("\r"))
        machine.wait(max(1.0, deadline - time.monotonic()))
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        if machine.poll() is None:
            os.killpg(machine.pid, signal.SIGKILL)
        machine.wait()
        machine.stdout.close()
