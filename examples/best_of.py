# SPDX-License-Identifier: Apache-2.0
"""Try several fixes at once, each in a workspace of its own, test each, and apply the best to the current directory.

    python3 examples/best_of.py 'make test' 'sed -i s/1/2/ main.c' 'git apply fix.patch' ...

The first word is the test, every other one a fix, all for a shell. The best fix is the one that changes the fewest files, of those after which
the test succeeds. The current directory changes only when that is known.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import List, Tuple

import belljar


def attempt(jar: belljar.Jar, fix: str, test: str) -> Tuple[bool, int]:
    """Whether the test succeeds after the fix, and how many paths it changed."""
    if not jar.run(["sh", "-c", fix], timeout=60).ok:
        return False, 0
    changed = len(jar.diff())
    return jar.run(["sh", "-c", test], timeout=300).ok, changed


def best_of(test: str, fixes: List[str]) -> int:
    """The number of the fix that was applied, or -1."""
    with belljar.Jar(workspace="cow") as base:
        jars = base.fork(len(fixes))
    try:
        with ThreadPoolExecutor(max_workers=4) as threads:
            results = list(threads.map(attempt, jars, fixes, [test] * len(fixes)))
        passed = [(changed, number) for number, (is_good, changed) in enumerate(results) if is_good and changed]
        if not passed:
            return -1
        number = min(passed)[1]
        # What the test itself left is not wanted: only what the fix changed was counted, and a second run of it is cheap.
        jars[number].discard()
        jars[number].run(["sh", "-c", fixes[number]], timeout=60).check()
        jars[number].apply()
        return number
    finally:
        for jar in jars:
            jar.discard()
            jar.close()


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    number = best_of(sys.argv[1], sys.argv[2:])
    print("no fix makes the test succeed" if number < 0 else f"applied: {sys.argv[2 + number]}")
    return 1 if number < 0 else 0


if __name__ == "__main__":
    sys.exit(main())
