# SPDX-License-Identifier: Apache-2.0
"""Layouts of Python installations and environments, made by hand: programs in them are scripts that say who they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional, Union


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def installation(path: Path, version: str = "3.12") -> Path:
    """What `make install` leaves: bin/python3 and lib/python3.N with the library, and something beside them."""
    _program(path / "bin" / f"python{version}", f'echo "python of {path}"; cat {path}/lib/python{version}/os.py')
    (path / "bin" / "python3").symlink_to(f"python{version}")
    library = path / "lib" / f"python{version}"
    (library / "site-packages").mkdir(parents=True)
    (library / "os.py").write_text("library\n")
    (path / "secret").write_text("secret\n")
    return path


def virtual_environment(path: Path, home: Optional[Union[str, Path]], version: str = "3.12", marker: str = "pyvenv.cfg") -> Path:
    """An environment made from the installation whose programs are in `home`; its `python` is a link to that one's."""
    (path / "bin").mkdir(parents=True)
    (path / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    (path / "lib64").symlink_to("lib")
    _program(path / "bin" / "tool", f'echo "tool of {path}"; cat {path}/{marker} >/dev/null')
    if home is not None:
        (path / marker).write_text(f"home = {home}\nimplementation = CPython\ninclude-system-site-packages = false\n")
        os.symlink(f"{home}/python3", path / "bin" / "python")
    (path / ".env").write_text("secret\n")
    return path


def conda(path: Path, version: str = "3.12") -> Path:
    """An environment of conda's: an installation with a history."""
    installation(path, version)
    (path / "conda-meta").mkdir()
    (path / "conda-meta" / "history").write_text("==> now <==\n")
    (path / "ssl").mkdir()
    (path / "ssl" / "cacert.pem").write_text("certificates\n")
    _program(path / "bin" / "tool", f'echo "tool of {path}"; cat {path}/ssl/cacert.pem')
    (path / ".env").write_text("secret\n")
    return path
