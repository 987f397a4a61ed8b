# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel: the distribution's own package, unpacked below build/ and never installed.

Debian's cloud kernel has most of what a guest needs built in. The rest are modules: the disk's driver, and what a host loads by
itself for gates, for workspaces and for the tests' own networks. There is no modprobe in the guest, so all are loaded at its start.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

PACKAGE = "linux-image-cloud-amd64"
# In the order in which they can be loaded; a kernel that has one built in has no file for it.
MODULES = (
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_blk",
    "libcrc32c",
    "nfnetlink",
    "nf_tables",
    "nf_defrag_ipv4",
    "nf_defrag_ipv6",
    "nf_tproxy_ipv4",
    "nf_tproxy_ipv6",
    "nft_tproxy",
    "overlay",
    "veth",
)
# What an unpacked kernel was unpacked for.
WANTED = "wanted"
CONFIGURED_ABSENT = "there is no package {name} here; ./dev vm needs the package lists of Debian 12 or later"


class KernelError(Exception):
    """The kernel cannot be had; the message says why."""


@dataclasses.dataclass
class Kernel:
    """An unpacked kernel."""

    release: str
    image: pathlib.Path
    modules: list[pathlib.Path]


def newest(package: str) -> str:
    """The package with the kernel itself that a meta package stands for."""
    shown = subprocess.run(["apt-cache", "show", "--no-all-versions", package], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise KernelError(CONFIGURED_ABSENT.format(name=package))
    for line in shown.stdout.splitlines():
        found = re.match(r"Depends:.*?\b(linux-image-[0-9][^ ,]*)", line)
        if found:
            return found.group(1)
    return package


def unpack(package: pathlib.Path, folder: pathlib.Path) -> None:
    """The image and the modules, and nothing else: a kernel is mostly drivers."""
    wanted = re.compile(r"\./boot/vmlinuz-|.*/(" + "|".join(MODULES) + r")\.ko$")
    reader = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
    assert reader.stdout is not None
    with tarfile.open(fileobj=reader.stdout, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() and wanted.match(member.name) else None
            if content is not None:
                with (folder / os.path.basename(member.name)).open("wb") as target:
                    shutil.copyfileobj(content, target)
    if reader.wait() != 0:
        raise KernelError(f"cannot unpack {package.name}")
    (folder / WANTED).write_text(" ".join(MODULES))


def fetch(folder: pathlib.Path) -> None:
    """Download the newest one and unpack it into `folder`; all or nothing."""
    name = newest(PACKAGE)
    print(f"vm: fetching {name}", flush=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        done = subprocess.run(
            ["apt-get", "download", name], cwd=temporary, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        packages = list(pathlib.Path(temporary).glob("*.deb"))
        if done.returncode != 0 or len(packages) != 1:
            raise KernelError(f"cannot download {name}:\n{done.stderr.strip()}")
        made = pathlib.Path(temporary) / "kernel"
        made.mkdir(mode=0o755)
        unpack(packages[0], made)
        made.rename(folder)


def get(build: pathlib.Path) -> Kernel:
    """The kernel below `build`, fetched where it is not there yet, or without a module that is wanted now."""
    folder = build / "kernel"
    wanted = folder / WANTED
    if not wanted.is_file() or wanted.read_text() != " ".join(MODULES):
        shutil.rmtree(folder, ignore_errors=True)
        fetch(folder)
    images = sorted(folder.glob("vmlinuz-*"))
    if not images:
        raise KernelError(f"there is no kernel in {folder}; remove it to have it fetched again")
    modules = [folder / f"{name}.ko" for name in MODULES]
    return Kernel(images[0].name[len("vmlinuz-") :], images[0], [path for path in modules if path.is_file()])
