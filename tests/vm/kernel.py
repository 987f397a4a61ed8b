# SPDX-License-Identifier: Apache-2.0
"""The guest's kernel: the distribution's own packages, unpacked below build/ and never installed.

Another suite of the distribution has newer kernels: apt then works with a configuration and lists of its own below build/, made from
the host's first source. Before Linux 7.2 one package has image and modules; since then the image package only names others that have
them. Packages can also be given as files.

Debian's cloud kernel has most of what a guest needs built in. The rest are modules: the disk's driver, and what a host loads by
itself for gates, for workspaces and for the tests' own networks. There is no modprobe in the guest, so all are loaded at its start.
"""

from __future__ import annotations

import dataclasses
import lzma
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
# Packages that have a kernel's image or modules, or name those that have.
PARTS = re.compile(r"\blinux-(?:image|binary|modules)-[0-9][^ ,(]*")
IMAGE = re.compile(r"\./boot/vmlinuz-(?P<old>.+)|\./(?:usr/)?lib/modules/(?P<new>[^/]+)/vmlinuz")
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


class Apt:
    """apt, on the host's own sources, or with a suite on a configuration of its own."""

    def __init__(self, build: pathlib.Path, suite: str | None) -> None:
        self.options: list[str] = []
        if suite is not None:
            self._configure(build / f"apt-{suite}", suite)

    def _configure(self, folder: pathlib.Path, suite: str) -> None:
        for name in ("lists/partial", "cache/archives/partial", "sources.list.d"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "sources.list").write_text(f"deb {first_source()} {suite} main\n")
        directories = {"Dir::Etc::SourceList": "sources.list", "Dir::Etc::SourceParts": "sources.list.d"}
        directories.update({"Dir::State::Lists": "lists", "Dir::Cache": "cache"})
        self.options = [word for name, value in directories.items() for word in ("-o", f"{name}={folder / value}")]
        done = self.run("apt-get", "update")
        if done.returncode != 0 or "Err:" in done.stdout:
            raise KernelError(f"cannot fetch the package lists of {suite}:\n{done.stdout.strip()}\n{done.stderr.strip()}")

    def run(self, program: str, *words: str, cwd: str | None = None) -> "subprocess.CompletedProcess[str]":
        """A program of apt's."""
        command = [program, *self.options, *words]
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def parts(self, package: str) -> list[str]:
        """The packages that a package with a kernel stands for, and itself."""
        found, left = [], [package]
        while left:
            name = left.pop()
            shown = self.run("apt-cache", "show", "--no-all-versions", name)
            if shown.returncode != 0:
                raise KernelError(CONFIGURED_ABSENT.format(name=name))
            found.append(name)
            for line in shown.stdout.splitlines():
                if line.startswith(("Depends:", "Pre-Depends:")):
                    left += [part for part in PARTS.findall(line) if part not in found and part not in left]
        return found


def first_source() -> str:
    """With keys, as a list of sources has it: "[signed-by=KEY] ADDRESS" of the host's first source of packages."""
    printed = subprocess.run(["apt-get", "indextargets", "--format", "$(SIGNED_BY)|$(SITE)|$(REPO_URI)"], capture_output=True, text=True, check=False)
    for line in printed.stdout.splitlines():
        key, _site, address = line.split("|")
        return (f"[signed-by={key}] " if key.startswith("/") else "") + address
    raise KernelError("this host has no source of packages; give --package FILE")


def unpack(package: pathlib.Path, folder: pathlib.Path) -> None:
    """The image and the modules, and nothing else: a kernel is mostly drivers."""
    wanted = re.compile(r".*/(" + "|".join(MODULES) + r")\.ko(\.xz)?$")
    reader = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
    assert reader.stdout is not None
    with tarfile.open(fileobj=reader.stdout, mode="r|") as archive:
        for member in archive:
            image = IMAGE.fullmatch(member.name)
            content = archive.extractfile(member) if member.isfile() and (image or wanted.match(member.name)) else None
            if content is None:
                continue
            name = f"vmlinuz-{image['old'] or image['new']}" if image else os.path.basename(member.name).removesuffix(".xz")
            with (folder / name).open("wb") as target:
                shutil.copyfileobj(lzma.open(content) if member.name.endswith(".xz") else content, target)
    if reader.wait() != 0:
        raise KernelError(f"cannot unpack {package.name}")


def download(build: pathlib.Path, suite: str | None, folder: str) -> None:
    """The newest kernel's packages, into `folder`."""
    apt = Apt(build, suite)
    names = apt.parts(PACKAGE)[1:] or [PACKAGE]
    print(f"vm: fetching {' '.join(names)}", flush=True)
    done = apt.run("apt-get", "download", *names, cwd=folder)
    if done.returncode != 0:
        raise KernelError(f"cannot download {' '.join(names)}:\n{done.stderr.strip()}")


def fetch(folder: pathlib.Path, suite: str | None, packages: list[pathlib.Path]) -> None:
    """Unpack a kernel into `folder`; all or nothing."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        if not packages:
            download(folder.parent, suite, temporary)
        made = pathlib.Path(temporary) / "kernel"
        made.mkdir(mode=0o755)
        for package in packages or sorted(pathlib.Path(temporary).glob("*.deb")):
            unpack(package, made)
        if not any(made.glob("vmlinuz-*")):
            raise KernelError("none of the packages has a kernel's image")
        (made / WANTED).write_text(" ".join(MODULES))
        made.rename(folder)


def get(build: pathlib.Path, suite: str | None = None, packages: list[pathlib.Path] | None = None) -> Kernel:
    """The kernel below `build`, fetched where it is not there yet, or without a module that is wanted now. One of packages that were
    given is unpacked each time."""
    folder = build / ("kernel-given" if packages else f"kernel-{suite}" if suite else "kernel")
    wanted = folder / WANTED
    if packages or not wanted.is_file() or wanted.read_text() != " ".join(MODULES):
        shutil.rmtree(folder, ignore_errors=True)
        fetch(folder, suite, packages or [])
    images = sorted(folder.glob("vmlinuz-*"))
    if not images:
        raise KernelError(f"there is no kernel in {folder}; remove it to have it fetched again")
    modules = [folder / f"{name}.ko" for name in MODULES]
    return Kernel(images[0].name[len("vmlinuz-") :], images[0], [path for path in modules if path.is_file()])
