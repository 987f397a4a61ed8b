# SPDX-License-Identifier: Apache-2.0
"""What pip calls to make belljar-adapters (PEP 517): tools/package.py knows how."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

from package import build_adapters  # noqa: E402


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """The wheel's name, below the directory."""
    return build_adapters(wheel_directory)
