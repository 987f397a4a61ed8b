# SPDX-License-Identifier: Apache-2.0
"""Python programs that measure from within a host of their own; arguments and answer are JSON."""
