# SPDX-License-Identifier: Apache-2.0
"""`python -m belljar`: the command line of the engine that this package uses."""

from __future__ import annotations

import os
import sys

from ._errors import BelljarError
from ._program import engine_environ, engine_path


def main() -> int:
    """Become the engine's program; returns only if that fails."""
    try:
        path = engine_path()
        os.execve(path, ["belljar", *sys.argv[1:]], engine_environ())
    except (BelljarError, OSError) as error:
        print(f"belljar: {error}", file=sys.stderr)
    return 125


if __name__ == "__main__":
    sys.exit(main())
