# SPDX-License-Identifier: Apache-2.0
"""Jars as the sandboxes of agent frameworks. See docs/integrations.md.

Each module needs its framework, which Belljar does not install; nothing else in the package imports them.
"""

from __future__ import annotations

from ._common import command_line as command_line
