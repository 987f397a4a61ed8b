# SPDX-License-Identifier: Apache-2.0
"""What a distribution's start-up would do: mounts, the disk, the loopback interface, cgroups as systemd lays them out."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import pathlib
import resource
import shutil
import socket
import struct
import sys

from vm.guest import scenes

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MODULES = pathlib.Path("/vm/modules")
DISK = "/dev/vda"
SYS_FINIT_MODULE = 313
RB_POWER_OFF = 0x4321FEDC
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
MOUNTS = (
    ("proc", "/proc", "proc", ""),
    ("sysfs", "/sys", "sysfs", ""),
    ("devtmpfs", "/dev", "devtmpfs", ""),
    ("devpts", "/dev/pts", "devpts", "ptmxmode=666"),
    ("tmpfs", "/dev/shm", "tmpfs", "mode=1777"),
    ("tmpfs", "/run", "tmpfs", "mode=755"),
    ("cgroup2", str(CGROUPS), "cgroup2", "nsdelegate"),
)
# Programs may ask for more memory than this small machine has, and are told when they use it, as elsewhere.
OVERCOMMIT = pathlib.Path("/proc/sys/vm/overcommit_memory")
# As systemd sets it; the kernel's own maximum of 4,096 is less than what attackers on a gate open.
DESCRIPTORS = (1024, 524288)
# As in Debian: a cgroup hands on what its units asked for.
HANDED_ON = "+memory +pids +cpu"

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, options: str) -> None:
    """mount(2)"""
    os.makedirs(target, exist_ok=True)
    if libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount {kind} on {target}")


def load_modules() -> None:
    """In the order of their names. One that needs another comes again after the rest: which needs which differs between kernels."""
    waiting = sorted(MODULES.glob("*.ko"))
    while waiting:
        again = [path for path in waiting if not load_module(path)]
        if len(again) == len(waiting):
            raise OSError(errno.ENOENT, f"cannot load {', '.join(map(str, again))}: symbols are missing")
        waiting = again


def load_module(path: pathlib.Path) -> bool:
    """False: it needs one that is not loaded yet."""
    with path.open("rb") as file:
        if libc.syscall(SYS_FINIT_MODULE, file.fileno(), b"", 0) == 0:
            return True
    if ctypes.get_errno() != errno.ENOENT:
        raise OSError(ctypes.get_errno(), f"cannot load {path}")
    return False


def raise_loopback() -> None:
    """lo is there, and down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def make_cgroup(name: str) -> pathlib.Path:
    """A cgroup with all controllers, and all above it handing them on."""
    above = CGROUPS
    for part in pathlib.Path(name).parts:
        (above / "cgroup.subtree_control").write_text(HANDED_ON)
        above /= part
        above.mkdir(exist_ok=True)
    return above


def give(cgroup: pathlib.Path, uid: int) -> None:
    """What systemd does for Delegate=yes; see /sys/kernel/cgroup/delegate."""
    for path in (cgroup, *(cgroup / name for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"))):
        os.chown(path, uid, uid)


def make_cgroups() -> None:
    """Those of the scenes."""
    make_cgroup(scenes.ROOT_CGROUP)
    make_cgroup(scenes.LOGIN_CGROUP)
    manager = make_cgroup(scenes.USER_MANAGER)
    scope = make_cgroup(scenes.USER_CGROUP)
    service = make_cgroup(scenes.SERVICE)
    for cgroup in (manager, scope.parent, scope, service):
        give(cgroup, 1000)
    (service / "main").mkdir()


def make_host() -> None:
    """From a bare kernel to something to test on."""
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LANG="C.UTF-8", HOME="/root")
    for arguments in MOUNTS:
        mount(*arguments)
    for name, target in (("fd", "self/fd"), ("stdin", "self/fd/0"), ("stdout", "self/fd/1"), ("stderr", "self/fd/2")):
        os.symlink(f"/proc/{target}", f"/dev/{name}")
    load_modules()
    mount(DISK, "/tmp", "ext4", "")
    os.chmod("/tmp", 0o1777)
    shutil.rmtree("/tmp/lost+found")
    os.chown("/home/user", 1000, 1000)
    # As systemd-logind makes it: jars of the user keep their roots there.
    os.makedirs("/run/user/1000", 0o700)
    os.chown("/run/user/1000", 1000, 1000)
    OVERCOMMIT.write_text("1")
    resource.setrlimit(resource.RLIMIT_NOFILE, DESCRIPTORS)
    raise_loopback()
    make_cgroups()


def switch_off() -> None:
    """The end of the machine."""
    sys.stdout.flush()
    os.sync()
    libc.reboot(RB_POWER_OFF)
