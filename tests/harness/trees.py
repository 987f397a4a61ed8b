# SPDX-License-Identifier: Apache-2.0
"""Remove what a test has made, also directories that nobody may enter: layers of workspaces have such."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Union


def remove(path: Union[str, "os.PathLike[str]"]) -> None:
    """All of it, as far as it is ours; whatever is not there is no error."""
    for directory, names, _ in os.walk(path):
        for name in names:
            inner = os.path.join(directory, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(path, ignore_errors=True)
