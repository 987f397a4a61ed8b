# SPDX-License-Identifier: Apache-2.0
"""The guest's root: an initramfs made of this host's own packages, the program under test and its tests.

The archive is written here, in the kernel's own format ("newc", Documentation/driver-api/early-userspace/buffer-format.rst),
with root as the owner of everything: no root, no mounts and no further program are needed. It is not compressed, since
unpacking would take an emulated processor longer than reading.
"""

from __future__ import annotations

import os
import pathlib
import re
import stat
import subprocess
from typing import BinaryIO

PACKAGES = (
    "base-files",
    "bash",
    "coreutils",
    "curl",
    "dash",
    "diffutils",
    "findutils",
    "git",
    "grep",
    "iproute2",
    "libc-bin",
    "libnghttp2-14",
    "mount",
    "nodejs",
    "openssl",
    "python3",
    "sed",
    "util-linux",
)
# What their installation scripts need and they themselves do not, or what only parts of them need that no test uses.
LEFT_OUT_PACKAGES = {
    "ca-certificates", "debconf", "debianutils", "dpkg", "git-man", "init-system-helpers", "liberror-perl", "perl", "perl-base", "tar",
}
LEFT_OUT = re.compile(
    r"/usr/(include|share/(doc|info|locale|man|lintian|bug|i18n)|lib/([^/]*/gconv|node_modules))(/|$)|.*/(test|idlelib|ensurepip)/"
)
FOLDERS = ("dev", "proc", "sys", "run", "tmp", "root", "home", "home/user", "etc", "var", "var/tmp", "vm")
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "etc/group": "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost guest\n",
    "etc/hostname": "guest\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/resolv.conf": "nameserver 127.0.0.1\n",
    "etc/shadow": "root:*:19000::::::\n",
}
HOST_FILES = ("/etc/ld.so.cache", "/etc/ssl/certs/ca-certificates.crt", "/etc/os-release", "/usr/lib/os-release", "/usr/bin/sh")


class Archive:
    """A "newc" archive being written."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.names: set[str] = set()

    def _entry(self, name: str, mode: int, content: bytes, changed: int = 0) -> None:
        data = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, changed, len(content), 0, 0, 0, 0, len(data), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + data
        self.file.write(head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4))

    def add(self, name: str, mode: int, content: bytes = b"", changed: int = 0) -> None:
        """One entry, after the folders above it; what is there already stays."""
        name = name.strip("/")
        if not name or name in self.names:
            return
        self.add(os.path.dirname(name), stat.S_IFDIR | 0o755)
        self.names.add(name)
        self._entry(name, mode, content, changed)

    def add_path(self, path: str, name: str) -> None:
        """A file, a link or an empty folder of the host. A file keeps its time: Python compiles anew what has another."""
        status = os.lstat(path)
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            self.add(name, stat.S_IFLNK | 0o777, os.readlink(path).encode())
        elif stat.S_ISDIR(mode):
            self.add(name, stat.S_IFDIR | (mode & 0o1777) | 0o555)
        elif stat.S_ISREG(mode):
            with open(path, "rb") as file:
                self.add(name, stat.S_IFREG | (mode & 0o6777), file.read(), int(status.st_mtime))

    def add_tree(self, folder: pathlib.Path, name: str) -> None:
        """Everything below a folder, for everybody to read and run."""
        for path in sorted(folder.rglob("*")):
            if "__pycache__" not in path.parts and path.is_file():
                runnable = 0o755 if os.access(path, os.X_OK) else 0o644
                self.add(f"{name}/{path.relative_to(folder)}", stat.S_IFREG | runnable, path.read_bytes())

    def end(self) -> None:
        """Nothing comes after."""
        self._entry("TRAILER!!!", 0, b"")


def installed() -> dict[str, list[str]]:
    """Every installed package, and for each what it needs."""
    listed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package}\t${Pre-Depends}, ${Depends}\n"], capture_output=True, text=True, check=True
    )
    found = {}
    for line in listed.stdout.splitlines():
        name, _, needs = line.partition("\t")
        found[name] = re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]*)", needs)
    return found


def closure(names: tuple[str, ...]) -> list[str]:
    """The packages and all they need, as far as they are here."""
    needs = installed()
    missing = [name for name in names if name not in needs]
    if missing:
        raise FileNotFoundError(f"these packages are not installed: {' '.join(missing)}")
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in needs and name not in found | LEFT_OUT_PACKAGES:
            found.add(name)
            todo += needs[name]
    return sorted(found)


def package_files(names: list[str]) -> list[str]:
    """Where their files really are: a name through /bin or /lib is one below /usr."""
    listed = subprocess.run(["dpkg-query", "-L", *names], capture_output=True, text=True, check=True).stdout
    found = set(HOST_FILES)
    for line in listed.splitlines():
        if not line.startswith("/") or LEFT_OUT.match(line):
            continue
        path = os.path.join(os.path.realpath(os.path.dirname(line)), os.path.basename(line))
        found.add(path)
        compiled = re.sub(r"([^/]+)\.py$", r"__pycache__/\1.*.pyc", path)
        if compiled != path:
            found.update(str(match) for match in pathlib.Path("/").glob(compiled[1:]))
    return sorted(path for path in found if os.path.lexists(path) and path != "/")


def write(target: pathlib.Path, source: pathlib.Path, modules: list[pathlib.Path], texts: dict[str, str]) -> None:
    """The whole of it. `source` is the checkout, with what is built in its build/; `texts` are further files."""
    with target.open("wb") as file:
        archive = Archive(file)
        for name in FOLDERS:
            archive.add(name, stat.S_IFDIR | (0o1777 if name.endswith("tmp") else 0o755))
        for name, text in {**TEXTS, **texts}.items():
            archive.add(name, stat.S_IFREG | (0o600 if name == "etc/shadow" else 0o644), text.encode())
        for name in ("bin", "sbin", "lib", "lib64", "lib32"):
            if os.path.islink(f"/{name}"):
                archive.add_path(f"/{name}", name)
        for path in package_files(closure(PACKAGES)):
            archive.add_path(path, path)
        for number, module in enumerate(modules):
            archive.add_path(str(module), f"vm/modules/{number:02}-{module.name}")
        for name in ("tests", "docs", "share", "man"):
            if (source / name).is_dir():
                archive.add_tree(source / name, f"vm/{name}")
        for program in ("belljar", "belljar-gate", "belljar-prove"):
            archive.add_path(os.path.realpath(source / "build" / program), f"vm/bin/{program}")
        for tool in sorted((source / "build" / "tests" / "tools").iterdir()):
            if tool.is_file() and os.access(tool, os.X_OK):
                archive.add_path(str(tool), f"vm/tools/{tool.name}")
        archive.add("init", stat.S_IFLNK | 0o777, b"vm/tests/vm/guest/init")
        archive.end()
