# SPDX-License-Identifier: Apache-2.0
"""The newest trio and anyio."""

from __future__ import annotations

import unittest

from package_case import tearDownModule  # noqa: F401
from test_loops import AnyioOnAsyncio, AnyioOnTrio, Trio  # noqa: F401

if __name__ == "__main__":
    unittest.main()
