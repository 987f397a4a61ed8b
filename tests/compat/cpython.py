# SPDX-License-Identifier: Apache-2.0
"""CPython's own test modules, outside and in a default jar: no more failures inside, but for a listed few.

They come with the interpreter, or in Debian's package libpython3-testsuite. A test that fails outside too does not count,
and a test that runs outside and is skipped inside is reported like a failure: something it looks for is gone.
"""

from __future__ import annotations

import fnmatch
import pathlib
import re
import shutil
import tempfile
import xml.etree.ElementTree
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from compat.cases import find_program

MODULES = (
    "test_os",
    "test_posix",
    "test_tempfile",
    "test_signal",
    "test_pty",
    "test_subprocess",
    "test_socket",
    "test_asyncio",
    "test_multiprocessing_main_handling",
    "test_multiprocessing_fork",
    "test_multiprocessing_spawn",
    "test_multiprocessing_forkserver",
)
MODULE_SECONDS = 600
# What a failing test printed may hold bytes that XML has no room for.
CONTROLS = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]|&#(x[0-8bcefBCEF]|x1[0-9a-fA-F]|[0-8]|1[124-9]|2[0-9]|3[01]);")

# What differs inside, and why that is right. Patterns of "CLASS.METHOD".
ROOT = "root inside is an unprivileged id without capabilities: no other owner, no other groups"
UDP_LITE = "the filter refuses UDP-Lite (seccomp_rules.c: protocols that are seldom used code)"
EXPECTED: Dict[str, str] = {
    "ChownFileTests.test_chown_with_root": ROOT,
    "PosixTester.test_*chown": ROOT,
    "PosixGroupsTester.*": ROOT,
    "MakedirTests.test_exist_ok_s_isgid_directory": "for root the filter refuses the set-group-id bit, on directories too",
}
# Left out on both sides: failing threads, or waiting for ever, make the tests' own report break off.
IGNORED: Dict[str, str] = {
    "*UDPLITE*": UDP_LITE,
    "test_sethostname": "as root, outside, it renames the host; inside the filter refuses it",
    "*VSOCK*": "the filter refuses vsock, which reaches the hypervisor; outside, in some virtual machines, they hang",
}


def outcomes(report: pathlib.Path) -> Dict[str, str]:
    """CLASS.METHOD -> passed, failed or skipped, of a JUnit file; a test that ran twice counts as its worst."""
    order = ("passed", "skipped", "failed")
    found: Dict[str, str] = {}
    text = CONTROLS.sub("", report.read_text(errors="replace"))
    for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
        name = ".".join(case.get("name", "").split(".")[-2:])
        word = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            word = "failed"
        elif case.find("skipped") is not None:
            word = "skipped"
        found[name] = max(word, found.get(name, "passed"), key=order.index)
    return found


def python_with(person: Any, run: Callable[..., Any], module: str) -> Optional[str]:
    """The first interpreter that has the test module: some installations leave some out."""
    for python in (find_program("python3", person.env, person.uid), "/usr/bin/python3"):
        if python and run(person, [python, "-c", f"import test.{module}"], person.env["HOME"], 60)[0] == 0:
            return python
    return None


def run_module(
    person: Any, base: pathlib.Path, program: str, run: Callable[..., Any], python: str, module: str, is_inside: bool
) -> Tuple[Dict[str, str], str]:
    """What each test of the module came to; with the output where there is no report."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cpython-", dir=base))
    shutil.chown(folder, person.uid, person.gid)
    (folder / "tmp").mkdir()
    shutil.chown(folder / "tmp", person.uid, person.gid)
    command = [python, "-m", "test", "--timeout=300", "--junit-xml", str(folder / "report.xml"), module]
    for pattern in IGNORED:
        command += ["-i", pattern]
    if is_inside:
        command = [program, "run", "--fds", "4096", "--", *command]
    _, text = run(person, command, folder, MODULE_SECONDS, None if is_inside else folder / "tmp")
    try:
        return outcomes(folder / "report.xml"), text
    except (OSError, xml.etree.ElementTree.ParseError):
        return {}, text
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_expected(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in EXPECTED)


def compare(outside: Dict[str, str], inside: Dict[str, str]) -> Dict[str, str]:
    """The tests that are worse inside, and how."""
    worse = {}
    for name, before in outside.items():
        now = inside.get(name, "gone")
        if before == "passed" and now != "passed" and not is_expected(name):
            worse[name] = f"{before} outside, {now} inside"
        elif before == "skipped" and now == "failed" and not is_expected(name):
            worse[name] = f"{before} outside, {now} inside"
    return worse


def run_all(person: Any, base: pathlib.Path, program: str, run: Callable[..., Any], modules: Any = MODULES) -> Iterator[Tuple[str, str, str]]:
    """("ok" | "FAIL" | "skip", name, detail) for each module."""
    for module in modules:
        python = python_with(person, run, module)
        if python is None:
            yield "skip", f"cpython {module}", "not installed: CPython's test modules (libpython3-testsuite)"
            continue
        outside, text = run_module(person, base, program, run, python, module, False)
        if not outside:
            yield "skip", f"cpython {module}", "no report outside: " + text[-2000:]
            continue
        inside, text = run_module(person, base, program, run, python, module, True)
        worse = compare(outside, inside) if inside else {"all": "no report inside"}
        if worse:
            yield "FAIL", f"cpython {module}", "\n".join(f"{name}: {how}" for name, how in worse.items()) + "\n" + text[-6000:]
        else:
            counts = [sum(word == status for word in inside.values()) for status in ("passed", "failed", "skipped")]
            yield "ok", f"cpython {module}", "{} passed, {} failed (outside too, or listed), {} skipped".format(*counts)
