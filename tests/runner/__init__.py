# SPDX-License-Identifier: Apache-2.0
"""The test runner: standard library only, Python 3.9 or later."""
