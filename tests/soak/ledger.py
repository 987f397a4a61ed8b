#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev soak ledger [COUNT]: COUNT traced jars at once (200), then a million opens that are refused.

Every jar is refused one file and tells it, with its cure, or says that there was no time for it; one in ten storms until its deadline. Then one command is refused the same file a million
times: the count is right, and the run ends by itself. No process may be left. Exit status 0: all held.
"""

from __future__ import annotations

import concurrent.futures
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import census, paths  # noqa: E402

COUNT = 200
OPENS = 1_000_000
SECONDS = 300.0
STORM = "while :; do true <{path}; true <{path}$i; i=$((i+1)); done 2>/dev/null"
MANY = "import os\nfor i in range({count}):\n try: os.open({path!r}, 0)\n except OSError: pass"


def run(work: Path, command: List[str], *options: str) -> Dict[str, Any]:
    """The result of a traced run."""
    line = [paths.belljar(), "run", "-q", "--json", "-C", str(work), "--ledger", "trace", *options, "--", *command]
    done = subprocess.run(line, stdout=subprocess.PIPE, timeout=SECONDS, check=False)
    result: Dict[str, Any] = json.loads(done.stdout)
    return result


def check(is_right: bool, result: Dict[str, Any]) -> None:
    """Say what was wrong, and leave."""
    if not is_right:
        sys.exit(f"soak: not as it should be: {json.dumps(result)[:2000]}")


def one(number: int, work: Path, secret: Path) -> bool:
    """A jar of many. False: there was no time to find out what was refused, and the result says so."""
    if number % 10 == 0:
        result = run(work, ["sh", "-c", STORM.format(path=secret)], "--timeout", "5s", "--grace", "0")
        check(result["outcome"] == "timeout", result)
    else:
        result = run(work, ["cat", str(secret)])
        check(result["exit_code"] == 1, result)
    cures = [entry["cure"]["flag"] for entry in result["denied"] if entry["what"] == str(secret)]
    check(cures == [f"--ro {secret}"] or result["denied_more"] > 0, result)
    return bool(cures)


def main() -> None:
    """All of it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    census.adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="belljar-soak-") as folder:
        work, secret = Path(folder) / "work", Path(folder) / "outside"
        work.mkdir()
        secret.write_text("x")
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            told = sum(pool.map(lambda number: one(number, work, secret), range(count)))
        print(f"soak: {count} traced jars at once: {time.monotonic() - begin:.1f} s, {told} in time to tell", flush=True)
        begin = time.monotonic()
        result = run(work, ["/usr/bin/python3", "-c", MANY.format(count=OPENS, path=str(secret))])
        check([entry["count"] for entry in result["denied"]] == [OPENS] and result["exit_code"] == 0, result)
        print(f"soak: {OPENS} refused opens: {time.monotonic() - begin:.1f} s", flush=True)
    if census.wait_until_none():
        sys.exit("soak: processes are left")


if __name__ == "__main__":
    main()
