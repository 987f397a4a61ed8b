# SPDX-License-Identifier: Apache-2.0
"""A copy of what the tests need, where an ordinary user can reach it.

The checkout may lie in a home that nobody else may enter, and the suites run both as root and as an ordinary user. So
programs and tests are copied to a temporary folder, with a home and a place for temporary files for each of the two.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import shutil
import stat
import tempfile
import threading

from runner import process
from runner.pace import PACE

# Another run of the tests that begins at the same time shall find another one.
SPARE_UIDS = range(47123, 52123)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
COPIED_FILES = ("README.md", "dev")
COPIED_FOLDERS = ("tests", "docs", "share", "man", "examples", "node")
# What a Python package is made from, in a folder of its own: its folders have the names of what is built from them.
PACKAGING = ("pyproject.toml", "meson.build", "LICENSE", "tools/package.py", "python", "python-adapters", "node")
COMPILED_FOLDERS = ("python", "tests")
COMPILE_TIMEOUT_SECONDS = 60


def spare_uid() -> int:
    """A user id that no account has and nobody runs under."""
    taken = set()
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            taken.add(entry.stat().st_uid)
    uid = SPARE_UIDS[os.getpid() % len(SPARE_UIDS)]
    while True:
        try:
            pwd.getpwuid(uid)
        except KeyError:
            if uid not in taken:
                return uid
        uid += 1


def open_to_all(folder: pathlib.Path) -> None:
    """Everybody may read, enter and run what the owner may."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            is_runnable = path.is_dir() or mode & stat.S_IXUSR
            path.chmod(0o755 if is_runnable else 0o644)


class Stage:
    """Use as a context manager: what it made is gone at the end."""

    def __init__(self, source: pathlib.Path) -> None:
        self.source = source
        self.is_root = os.getuid() == 0
        self.user_uid = spare_uid() if self.is_root else os.getuid()
        self._lock = threading.Lock()
        self._compiled: set[tuple[str, str]] = set()

    def __enter__(self) -> Stage:
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="belljar-test-", dir="/tmp"))
        self.root.chmod(0o755)
        for name in COPIED_FOLDERS:
            if (self.source / name).is_dir():
                shutil.copytree(
                    self.source / name, self.root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*_cache", "node_modules")
                )
        for name in COPIED_FILES:
            shutil.copy2(self.source / name, self.root / name)
        for name in PACKAGING:
            source, target = self.source / name, self.root / "packaging" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
            else:
                shutil.copy2(source, target)
        (self.root / "bin").mkdir()
        (self.root / "tools").mkdir()
        open_to_all(self.root)
        for kind in ("root", "user"):
            for purpose in ("home", "tmp"):
                folder = self.root / f"{kind}-{purpose}"
                folder.mkdir(mode=0o700)
                if kind == "user" and self.is_root:
                    os.chown(folder, self.user_uid, self.user_uid)
        # As systemd-logind makes it: jars of the user keep their roots there.
        self.runtime = pathlib.Path(f"/run/user/{self.user_uid}") if self.is_root else None
        if self.runtime:
            self.runtime.mkdir(mode=0o700, parents=True)
            os.chown(self.runtime, self.user_uid, self.user_uid)
        logs = self.root / "sanitizer-logs"
        logs.mkdir()
        logs.chmod(0o1777)
        return self

    def __exit__(self, *_: object) -> None:
        def make_removable(function, path, _error) -> None:  # type: ignore[no-untyped-def]
            with contextlib.suppress(OSError):
                os.chmod(os.path.dirname(path), 0o700)
                os.chmod(path, 0o700)
                function(path)

        shutil.rmtree(self.root, onerror=make_removable)
        if self.runtime:
            shutil.rmtree(self.runtime, onerror=make_removable)
        if self.root.exists():
            print(f"warning: could not remove all of {self.root}", flush=True)

    def add_program(self, program: pathlib.Path, name: str) -> pathlib.Path:
        """Copy a built program to bin/NAME."""
        target = self.root / "bin" / name
        shutil.copy2(program, target)
        target.chmod(0o755)
        return target

    def add_folder(self, folder: pathlib.Path, name: str) -> None:
        """Copy a folder that was built."""
        with self._lock:
            shutil.copytree(folder, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
            open_to_all(self.root / name)

    def compile_for(self, python: str) -> None:
        """Compile the Python files once for an interpreter: tests start it hundreds of times, and may not write here."""
        with self._lock:
            for name in COMPILED_FOLDERS:
                folder = self.root / name
                if (python, name) in self._compiled or not folder.is_dir():
                    continue
                self._compiled.add((python, name))
                # Without it all goes as well, only more slowly.
                process.run([python, "-m", "compileall", "-q", str(folder)], timeout_seconds=COMPILE_TIMEOUT_SECONDS)
                open_to_all(folder)

    def add_tools(self, folder: pathlib.Path) -> None:
        """Copy the helper programs that tests run inside jars."""
        for tool in folder.iterdir():
            if tool.is_file() and os.access(tool, os.X_OK):
                shutil.copy2(tool, self.root / "tools" / tool.name)
                (self.root / "tools" / tool.name).chmod(0o755)

    def kinds(self) -> list[str]:
        """As whom the suites run."""
        return ["root", "user"] if self.is_root else ["user"]

    def uid_of(self, kind: str) -> int | None:
        """The uid to change to, if any."""
        return self.user_uid if kind == "user" and self.is_root else None

    def env(self, kind: str, program: pathlib.Path) -> dict[str, str]:
        """The whole environment of a test: nothing of the caller's but what names the machine."""
        env = {
            "PATH": SYSTEM_PATH,
            "HOME": str(self.root / f"{kind}-home"),
            "TMPDIR": str(self.root / f"{kind}-tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{self.root / 'tests'}:{self.root}",
            "BELLJAR_BIN": str(program),
            "BELLJAR_TEST_BIN": str(self.root / "bin" / "belljar-gcc"),
            "BELLJAR_TEST_UID_KIND": kind,
            "BELLJAR_TEST_TOOLS": str(self.root / "tools"),
            "BELLJAR_TEST_ROOT": str(self.root),
            "BELLJAR_TEST_SLOWNESS": f"{PACE.slowness:.1f}",
            "BELLJAR_TEST_PROCESSOR_SLOWNESS": f"{PACE.processor_slowness:.1f}",
        }
        for name in ("BELLJAR_TEST_REQUIRE", "BELLJAR_TEST_SLOWNESS", "BELLJAR_TEST_PROCESSOR_SLOWNESS", "CI"):
            if name in os.environ:
                env[name] = os.environ[name]
        return env
