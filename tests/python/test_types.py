# SPDX-License-Identifier: Apache-2.0
"""What a type checker says of programs that use the package, where mypy is installed in a version that knows its types."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import belljar
from package_case import PackageCase, tearDownModule  # noqa: F401

# Keywords as typed dictionaries, and type variables with a default.
OLDEST_MYPY = (1, 11)

PROGRAM = '''
from __future__ import annotations
import asyncio
from typing import Any, Dict, Union
import belljar

def text(result: belljar.Result) -> str:
    return result.stdout

def data(result: belljar.Result[bytes]) -> bytes:
    return result.stdout

def work(is_text: bool, jar: belljar.Jar, more: Dict[str, Any]) -> None:
    text(belljar.run(["true"]))
    text(belljar.run(["true"], text=True, timeout=None, memory="1G", env={"A": "b"}, ro="/data", rw=[{"path": "/x"}]))
    data(belljar.run("true", shell=True, text=False, check=True).check())
    text(belljar.run(["true"], **more))
    either: Union[str, bytes] = belljar.run(["true"], text=is_text).stdout
    print(either, belljar.run(["true"]).ok, belljar.run(["true"]).shell_status)
    text(jar.run(["true"], output="1M"))
    data(jar.run(["true"], text=False, cd="x"))
    belljar.spawn(["true"], timeout=None, stdin=belljar.PIPE).wait().check_returncode()
    belljar.Jar("strict", net="host"); belljar.Pool(["json"], memory=1 << 30); belljar.Policy(extends="strict", timeout="5s")
    belljar.run(["true"], tiemout=3)  # error
    belljar.run(["true"], timeout=[3])  # error
    belljar.run(["true"], capture_output=True)  # error
    belljar.run(["true"], net="hots")  # error
    belljar.spawn(["true"], tiemout=3)  # error
    belljar.spawn(["true"], check=True)  # error
    belljar.Jar(tiemout=3)  # error
    belljar.Pool(tiemout=3)  # error
    belljar.Policy(tiemout=3)  # error
    jar.run(["true"], ro=["/data"])  # error
    data(belljar.run(["true"]))  # error
    text(jar.run(["true"], text=False))  # error

async def work_async(jar: belljar.Jar) -> None:
    text(await belljar.run_async(["true"]))
    data(await jar.run_async(["true"], text=False))
    await belljar.run_async(["true"], tiemout=3)  # error
    await belljar.spawn_async(["true"], tiemout=3)  # error

@belljar.tool(timeout=3)
def double(number: int) -> int:
    return number * 2

double("2")  # error
asyncio.run(work_async(belljar.Jar()))
'''


def mypy_version() -> "tuple[int, ...]":
    """(0,) if there is none."""
    try:
        return tuple(map(int, re.findall(r"\d+", importlib.metadata.version("mypy"))[:2]))
    except importlib.metadata.PackageNotFoundError:
        return (0,)


@unittest.skipUnless(mypy_version() >= OLDEST_MYPY, "mypy is not installed, or too old")
class Types(PackageCase):
    """mypy --strict."""

    def mypy(self, *words: str) -> "tuple[int, str]":
        """Its exit status, and what it says."""
        folder = Path(belljar.__file__).parent.parent
        env = {**os.environ} if folder.name == "site-packages" else {**os.environ, "MYPYPATH": str(folder)}
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "--cache-dir", str(self.base / "cache"), *words],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            cwd=self.work,
            env=env,
        )
        return done.returncode, done.stdout + done.stderr

    def test_programs_are_checked_and_the_package_is_clean(self) -> None:
        (self.work / "program.py").write_text(PROGRAM)
        status, said = self.mypy("program.py")
        self.assertEqual(status, 1, said[:2000])
        errors = [line[:300] for line in said.splitlines() if ": error: " in line]
        wanted = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")]
        found = dict.fromkeys(":".join(line.split(":")[:2]) for line in errors)
        self.assertEqual(list(found), [f"program.py:{number}" for number in wanted], errors)
        self.assertTrue(any("tiemout" in line and "did you mean" in line for line in errors), errors)


if __name__ == "__main__":
    unittest.main()
