# SPDX-License-Identifier: Apache-2.0
"""Names of other frameworks' sandboxes, from the distribution belljar-adapters. See docs/adapters.md.

The modules lie in the package belljar_adapters, so that both distributions can be in different places, and neither owns a
folder of the other.
"""

from __future__ import annotations

try:
    import belljar_adapters
except ModuleNotFoundError as error:
    if error.name != "belljar_adapters":
        raise
    raise ModuleNotFoundError(
        "belljar.adapters is in a package of its own: pip install belljar-adapters", name="belljar.adapters"
    ) from None

__path__ = list(belljar_adapters.__path__)
