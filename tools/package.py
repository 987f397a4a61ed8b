#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/package.py - the Python package: as a folder to import from, and as a wheel; and the npm packages

    package.py tree ENGINE FOLDER     FOLDER/belljar, with the engine inside, and FOLDER/belljar_adapters, as PYTHONPATH wants it
    package.py wheel ENGINE [GATE] FOLDER   FOLDER/belljar-VERSION-py3-none-PLATFORM.whl
    package.py adapters FOLDER              FOLDER/belljar_adapters-VERSION-py3-none-any.whl, of python-adapters/
    package.py npm ENGINE [GATE] FOLDER     FOLDER/belljar-VERSION.tgz, and FOLDER/belljar-linux-ARCH-VERSION.tgz with the engine

and what `pip install .` calls (pyproject.toml): build_wheel, build_editable, build_sdist.

A wheel is a zip file with three texts about itself, so the standard library is all it takes: no build tool, no network.
The engine is a static program without a libc of its own choosing: one wheel for every Linux of its architecture and every
CPython from 3.9 on. The same input gives the same bytes. Beside ENGINE lies belljar-prove, which goes into every package too.

GATE is belljar-gate, which a package may lack, with OpenSSL and nghttp2 inside. It needs the C library of Debian 12, Ubuntu 22.04 or later; elsewhere everything
but secrets and rules about requests works. The licences of both libraries go with it, as the distribution has them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "python" / "belljar"
ADAPTERS = ROOT / "python-adapters"
ENGINE_NAME = "belljar/_bin/belljar"
GATE_NAME = "belljar/_bin/belljar-gate"
PROVE_NAME = "belljar/_bin/belljar-prove"
# What is inside of belljar-gate, and where the distribution keeps its licence.
GATE_LICENCES = {"OpenSSL.txt": "libssl-dev", "nghttp2.txt": "libnghttp2-dev"}
DOCUMENTS = pathlib.Path("/usr/share/doc")
ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
NODE = ROOT / "node"
NODE_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
# The command; and how Inspect finds its sandbox, whose module it imports when a task names it.
ENTRY_POINTS = """\
[console_scripts]
belljar = belljar.__main__:main

[inspect_ai]
belljar = belljar.integrations.inspect_ai
"""
# Zip files know no time before this one; a fixed time makes the same input give the same file.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def sources(folder: pathlib.Path = SOURCE) -> dict[str, pathlib.Path]:
    """The files of a package, by their name with the package's."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in (".py", ".pyi", ".typed")]
    return {path.relative_to(folder.parent).as_posix(): path for path in files}


def adapters() -> dict[str, pathlib.Path]:
    """The same of belljar-adapters."""
    return sources(ADAPTERS / "belljar_adapters")


def version() -> str:
    """The project's version; the package's own must say the same."""
    found = re.search(r"^\s*version: '([^']+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)
    own = re.search(r'^__version__ = "([^"]+)"', (SOURCE / "__init__.py").read_text(), re.MULTILINE)
    if not found or not own or found.group(1) != own.group(1):
        sys.exit("package.py: meson.build and python/belljar/__init__.py disagree about the version")
    return found.group(1)


def machine(engine: pathlib.Path) -> str:
    """The architecture that the engine was built for."""
    header = engine.read_bytes()[:20]
    number = struct.unpack("<H", header[18:20])[0] if header[:4] == b"\x7fELF" else 0
    if number not in ELF_MACHINES:
        sys.exit(f"package.py: {engine} is no program for an architecture that is known here")
    return ELF_MACHINES[number]


def prove(engine: pathlib.Path) -> pathlib.Path:
    """The program that `belljar doctor --prove` starts, built with the engine."""
    return engine.with_name("belljar-prove")


def put(target: pathlib.Path, source: pathlib.Path, mode: int) -> None:
    """Copy in one step, so that nobody sees half a file; nothing where it is there already."""
    wanted = source.stat()
    if target.exists() and (target.stat().st_mtime_ns, target.stat().st_size) == (wanted.st_mtime_ns, wanted.st_size):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    shutil.copy2(source, fresh)
    fresh.chmod(mode)
    fresh.replace(target)


def make_tree(engine: pathlib.Path, folder: pathlib.Path) -> None:
    """Both packages as folders, without files that are no longer part of them."""
    wanted = {**sources(), **adapters(), ENGINE_NAME: engine, PROVE_NAME: prove(engine)}
    for name, path in wanted.items():
        put(folder / name, path, 0o755 if name in (ENGINE_NAME, PROVE_NAME) else 0o644)
    for path in sorted([*folder.glob("belljar/**/*"), *folder.glob("belljar_adapters/**/*")], reverse=True):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in wanted and "__pycache__" not in name:
            path.unlink()


def metadata(name: str, summary: str, folder: pathlib.Path, needs: tuple[str, ...] = ()) -> str:
    """What installers and indexes read."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version()}",
        f"Summary: {summary}",
        *(f"Requires-Dist: {need}" for need in needs),
        "License: Apache-2.0",
        "Requires-Python: >=3.9",
        "Classifier: License :: OSI Approved :: Apache Software License",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: 3",
        "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown",
        "",
        (folder / "DESCRIPTION.md").read_text(),
    ]
    return "\n".join(lines)


def gate_licences() -> dict[str, bytes]:
    """The licences of what is inside of belljar-gate, by their name in a package."""
    texts = {name: DOCUMENTS / package / "copyright" for name, package in GATE_LICENCES.items()}
    for path in texts.values():
        if not path.is_file():
            sys.exit(f"package.py: {path} is not there; a package with belljar-gate has to have it")
    return {name: path.read_bytes() for name, path in texts.items()}


def make_wheel(engine: pathlib.Path, gate: pathlib.Path | None, folder: pathlib.Path) -> pathlib.Path:
    """Write the wheel; its path."""
    package = {file: path.read_bytes() for file, path in sources().items()}
    package[ENGINE_NAME] = engine.read_bytes()
    package[PROVE_NAME] = prove(engine).read_bytes()
    if gate:
        package[GATE_NAME] = gate.read_bytes()
    return write_platform_wheel(engine, folder, package, gate_licences() if gate else {})


def make_adapters(folder: pathlib.Path) -> pathlib.Path:
    """Write the wheel of belljar-adapters; its path."""
    package = {file: path.read_bytes() for file, path in adapters().items()}
    summary = "The sandboxes of four agent frameworks, on the engine of belljar"
    about = {"METADATA": metadata("belljar-adapters", summary, ADAPTERS, (f"belljar (=={version()})",))}
    return write_wheel(folder, "belljar_adapters", ["any"], package, about, {})


def write_platform_wheel(engine: pathlib.Path, folder: pathlib.Path, package: dict[str, bytes], licences: dict[str, bytes]) -> pathlib.Path:
    """Write the wheel of belljar with these files."""
    arch = machine(engine)
    platforms = [f"manylinux2014_{arch}", f"manylinux_2_17_{arch}", f"musllinux_1_1_{arch}"]
    summary = "Run commands that nobody has reviewed, in a jar"
    about = {"METADATA": metadata("belljar", summary, ROOT / "python"), "entry_points.txt": ENTRY_POINTS}
    return write_wheel(folder, "belljar", platforms, package, about, licences)


def write_wheel(
    folder: pathlib.Path, title: str, platforms: list[str], package: dict[str, bytes], about: dict[str, str], licences: dict[str, bytes]
) -> pathlib.Path:
    """Write a wheel with these files, and what a wheel says about itself."""
    name = f"{title}-{version()}"
    info = f"{name}.dist-info"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    is_pure = "true" if platforms == ["any"] else "false"
    contents = dict(package)
    for file, text in {**about, "WHEEL": f"Wheel-Version: 1.0\nGenerator: belljar\nRoot-Is-Purelib: {is_pure}\n{tags}"}.items():
        contents[f"{info}/{file}"] = text.encode()
    for file, data in {"LICENSE": (ROOT / "LICENSE").read_bytes(), **licences}.items():
        contents[f"{info}/licenses/{file}"] = data
    record = "".join(f"{file},{digest(data)},{len(data)}\n" for file, data in contents.items())
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-py3-none-{'.'.join(platforms)}.whl"
    fresh = wheel.with_suffix(".new")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in contents.items():
            entry = zipfile.ZipInfo(file, ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: the mode counts
            entry.external_attr = (0o100755 if file.startswith("belljar/_bin/") else 0o100644) << 16
            archive.writestr(entry, data)
    os.replace(fresh, wheel)
    return wheel


def digest(data: bytes) -> str:
    """As RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


# --- for npm ---


def npm_version() -> str:
    """The project's version; package.json must say the same, also of the engine's packages."""
    about = json.loads((NODE / "package.json").read_text())
    if {about["version"], *about["optionalDependencies"].values()} != {version()}:
        sys.exit("package.py: meson.build and node/package.json disagree about the version")
    return str(about["version"])


def npm_sources() -> dict[str, bytes]:
    """The files of the package, by their name in it, as `npm pack` chooses them."""
    named = ["LICENSE", "README.md", "package.json", *json.loads((NODE / "package.json").read_text())["files"]]
    paths = [path for name in named for path in sorted([NODE / name, *(NODE / name).rglob("*")]) if path.is_file()]
    return {path.relative_to(NODE).as_posix(): path.read_bytes() for path in paths}


def write_tarball(target: pathlib.Path, files: dict[str, bytes], programs: tuple[str, ...] = ()) -> pathlib.Path:
    """Write a package as npm reads it. The same input gives the same bytes."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(content), 0o755 if name in programs else 0o644
            archive.addfile(entry, io.BytesIO(content))
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(".new")
    fresh.write_bytes(gzip.compress(data.getvalue(), mtime=0))
    os.replace(fresh, target)
    return target


def make_npm(engine: pathlib.Path, gate: pathlib.Path | None, folder: pathlib.Path) -> pathlib.Path:
    """Write both packages; the path of the first."""
    number, arch = npm_version(), NODE_MACHINES[machine(engine)]
    about = {
        "name": f"@belljar/linux-{arch}",
        "version": number,
        "description": "The engine of the package belljar",
        "license": "Apache-2.0",
        "os": ["linux"],
        "cpu": [arch],
        "bin": {"belljar": "bin/belljar"},
        "preferUnplugged": True,
    }
    files = {
        "package.json": json.dumps(about, indent=2).encode() + b"\n",
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "bin/belljar": engine.read_bytes(),
        "bin/belljar-prove": prove(engine).read_bytes(),
    }
    if gate:
        files["bin/belljar-gate"] = gate.read_bytes()
        files.update({f"licenses/{name}": text for name, text in gate_licences().items()})
    write_tarball(folder / f"belljar-linux-{arch}-{number}.tgz", files, ("bin/belljar", "bin/belljar-gate", "bin/belljar-prove"))
    return write_tarball(folder / f"belljar-{number}.tgz", npm_sources())


# --- for pip (PEP 517, PEP 660) ---


def build_engine() -> pathlib.Path:
    """The engine, built as ./dev builds it."""
    done = subprocess.run([str(ROOT / "dev"), "build", "release"], cwd=ROOT, check=False)
    if done.returncode != 0:
        raise SystemExit("belljar: the engine could not be built; it needs gcc, musl-tools, meson and ninja-build (see above)")
    return ROOT / "build" / "belljar"


def build_gate() -> pathlib.Path | None:
    """belljar-gate, where it can be built; the package is of use without it."""
    done = subprocess.run([str(ROOT / "dev"), "build", "gate"], cwd=ROOT, check=False)
    if done.returncode == 0:
        return ROOT / "build" / "gate" / "belljar-gate"
    print("belljar: without belljar-gate, which could not be built: secrets and rules about requests will be refused", file=sys.stderr)
    return None


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """The wheel's name, below the directory."""
    return make_wheel(build_engine(), build_gate(), pathlib.Path(wheel_directory)).name


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """A wheel that only leads to build/python, which ./dev build keeps up to date."""
    engine = build_engine()
    return write_platform_wheel(engine, pathlib.Path(wheel_directory), {"belljar.pth": f"{ROOT / 'build' / 'python'}\n".encode()}, {}).name


def build_adapters(wheel_directory: str) -> str:
    """The name of the wheel of belljar-adapters, below the directory."""
    return make_adapters(pathlib.Path(wheel_directory)).name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """The tree as git has it."""
    name = f"belljar-{version()}"
    target = pathlib.Path(sdist_directory) / f"{name}.tar.gz"
    subprocess.run(["git", "archive", f"--prefix={name}/", "-o", str(target), "HEAD"], cwd=ROOT, check=True)
    return target.name


def main(arguments: list[str]) -> int:
    """See the file's header."""
    paths = [pathlib.Path(argument) for argument in arguments[1:]]
    if arguments[:1] == ["tree"] and len(paths) == 2:
        make_tree(*paths)
    elif arguments[:1] == ["adapters"] and len(paths) == 1:
        print(make_adapters(paths[0]))
    elif arguments[:1] in (["wheel"], ["npm"]) and len(paths) in (2, 3):
        make = make_wheel if arguments[0] == "wheel" else make_npm
        print(make(paths[0], paths[1] if len(paths) == 3 else None, paths[-1]))
    else:
        sys.exit("usage: package.py tree ENGINE FOLDER, package.py wheel|npm ENGINE [GATE] FOLDER, package.py adapters FOLDER")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
