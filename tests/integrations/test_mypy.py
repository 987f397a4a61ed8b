# SPDX-License-Identifier: Apache-2.0
"""The newest mypy, and the package as users install it."""

from __future__ import annotations

import unittest

from package_case import tearDownModule  # noqa: F401
from test_types import Types  # noqa: F401

if __name__ == "__main__":
    unittest.main()
