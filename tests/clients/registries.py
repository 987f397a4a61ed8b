# SPDX-License-Identifier: Apache-2.0
"""Registries of packages, one package in each, as the files that they are: for pip and uv, npm and pnpm, cargo, go, Maven, Composer."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Dict

NAME = "bjt-demo"
VERSION = "1.0.0"
WORDS = "words of a package"


def zipped(files: Dict[str, str]) -> bytes:
    """A zip file of texts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def tarred(files: Dict[str, str]) -> bytes:
    """A compressed tar file of texts."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


def put(path: Path, content: object) -> None:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else str(content).encode())


def make_python(files: Path) -> None:
    """/simple, and a wheel."""
    info = f"bjt_demo-{VERSION}.dist-info"
    wheel = f"bjt_demo-{VERSION}-py3-none-any.whl"
    content = {
        "bjt_demo.py": f"WORDS = {WORDS!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    content[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*content, f"{info}/RECORD"])
    made = zipped(content)
    put(files / "wheels" / wheel, made)
    link = f'<a href="/wheels/{wheel}#sha256={hashlib.sha256(made).hexdigest()}">{wheel}</a>'
    put(files / "simple" / NAME / "index.html", f"<!DOCTYPE html><html><body>{link}</body></html>")


def make_node(files: Path, host: str) -> None:
    """/npm/NAME, and a tarball."""
    description = {"name": NAME, "version": VERSION, "main": "index.js"}
    made = tarred({"package/package.json": json.dumps(description), "package/index.js": f"module.exports = {WORDS!r};\n"})
    put(files / "tarballs" / f"{NAME}.tgz", made)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(made).digest()).decode()
    dist = {"tarball": f"https://{host}/tarballs/{NAME}.tgz", "integrity": integrity, "shasum": hashlib.sha1(made).hexdigest()}
    versions = {VERSION: {**description, "dist": dist}}
    put(files / "npm" / NAME, json.dumps({"name": NAME, "dist-tags": {"latest": VERSION}, "versions": versions}))


def make_rust(files: Path, host: str) -> None:
    """/cargo is an index, /crates has the crate."""
    manifest = f'[package]\nname = "{NAME}"\nversion = "{VERSION}"\nedition = "2021"\n'
    source = f'pub const WORDS: &str = "{WORDS}";\n'
    made = tarred({f"{NAME}-{VERSION}/Cargo.toml": manifest, f"{NAME}-{VERSION}/src/lib.rs": source})
    put(files / "crates" / f"{NAME}-{VERSION}.crate", made)
    put(files / "cargo" / "config.json", json.dumps({"dl": f"https://{host}/crates/{{crate}}-{{version}}.crate"}))
    line = {"name": NAME, "vers": VERSION, "deps": [], "cksum": hashlib.sha256(made).hexdigest(), "features": {}, "yanked": False}
    put(files / "cargo" / NAME[:2] / NAME[2:4] / NAME, json.dumps(line) + "\n")


def make_go(files: Path, module: str) -> None:
    """/go/MODULE/@v."""
    folder = files / "go" / module / "@v"
    declaration = f"module {module}\n\ngo 1.16\n"
    source = f"package demo\n\nconst Words = {json.dumps(WORDS)}\n"
    put(folder / "list", f"v{VERSION}\n")
    put(folder / f"v{VERSION}.info", json.dumps({"Version": f"v{VERSION}"}))
    put(folder / f"v{VERSION}.mod", declaration)
    prefix = f"{module}@v{VERSION}"
    put(folder / f"v{VERSION}.zip", zipped({f"{prefix}/go.mod": declaration, f"{prefix}/demo.go": source}))


def make_java(files: Path) -> None:
    """/maven has what another project has as its parent: that is fetched before any plugin is."""
    text = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>test.site</groupId><artifactId>{NAME}</artifactId><version>{VERSION}</version><packaging>pom</packaging></project>
"""
    path = files / "maven" / "test" / "site" / NAME / VERSION / f"{NAME}-{VERSION}.pom"
    put(path, text)
    put(path.with_name(path.name + ".sha1"), hashlib.sha1(text.encode()).hexdigest())


def make_php(files: Path, host: str) -> None:
    """/packages.json, and a zip file."""
    made = zipped({"composer.json": json.dumps({"name": "test/demo"}), "demo.php": f"<?php return '{WORDS}';\n"})
    put(files / "zips" / "demo.zip", made)
    dist = {"url": f"https://{host}/zips/demo.zip", "type": "zip", "shasum": hashlib.sha1(made).hexdigest()}
    packages = {"test/demo": {VERSION: {"name": "test/demo", "version": VERSION, "dist": dist}}}
    put(files / "packages.json", json.dumps({"packages": packages}))
