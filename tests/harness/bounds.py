# SPDX-License-Identifier: Apache-2.0
"""How long tests wait for what must happen.

These are bounds against waiting for ever, and measure nothing: on a busy machine everything takes many times as long. That
something did not wait for something else is shown by letting the other last longer than the bound (LASTING).
"""

from __future__ import annotations

import os

# The runner says how many times slower than a quiet machine this one was when the tests began (runner/pace.py).
SLOWNESS = float(os.environ.get("BELLJAR_TEST_SLOWNESS", "1"))
# The same of its processors alone. Limits on CPU time grow with it: however many programs wait, a program needs no more of that.
PROCESSOR_SLOWNESS = float(os.environ.get("BELLJAR_TEST_PROCESSOR_SLOWNESS", "1"))
BOUND = 60.0 * SLOWNESS
# Seconds, for what would outlast every bound, and yet ends by itself should all else fail.
LASTING = str(int(2 * BOUND))
