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


class Machine:
    """One that runs. `take` gets each line it says."""

    def __init__(self, arguments: list[str], take: Callable[[str], None]) -> None:
        self._take = take
        self._pending = b""
        self.is_over = False
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        assert self._process.stdout is not None
        self.output = self._process.stdout
        os.set_blocking(self.output.fileno(), False)

    def read(self) -> bool:
        """Hand on what it says; False at the end of it."""
        chunk = self.output.read(65536)
        if chunk == b"":
            return False
        *lines, self._pending = (self._pending + (chunk or b"")).split(b"\n")
        for text in lines:
            self._take(text.decode(errors="replace").rstrip("\r"))
        return True

    def wait(self, seconds: float) -> None:
        """It said its last; see that it ends."""
        try:
            self._process.wait(seconds)
            self.is_over = True
        except subprocess.TimeoutExpired:
            pass

    def stop(self) -> None:
        """Have it surely gone."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.output.close()


def run(guests: list[tuple[list[str], Callable[[str], None]]], seconds: float) -> list[bool]:
    """Run machines beside one another, and hand on each line that they say; for each: True if it ended by itself in time."""
    deadline = time.monotonic() + seconds
    machines: list[Machine] = []
    try:
        with selectors.DefaultSelector() as selector:
            for arguments, take in guests:
                machines.append(Machine(arguments, take))
                selector.register(machines[-1].output, selectors.EVENT_READ, machines[-1])
            while selector.get_map() and time.monotonic() < deadline:
                for key, _ in selector.select(max(0.0, deadline - time.monotonic())):
                    if not key.data.read():
                        selector.unregister(key.fileobj)
                        key.data.wait(max(1.0, deadline - time.monotonic()))
        return [machine.is_over for machine in machines]
    finally:
        for machine in machines:
            machine.stop()
