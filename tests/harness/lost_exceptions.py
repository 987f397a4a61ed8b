# SPDX-License-Identifier: Apache-2.0
"""Exceptions that nobody catches: in threads, in destructors and callbacks, in asyncio's tasks.

Python prints them and goes on, so a test whose helper thread fell over passes. The runner watches for them in every module,
and the test during which one is lost has failed.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from typing import Any, List


class LostExceptions(logging.Handler):
    """Collects them from the moment it is made, in place of printing them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._texts: List[str] = []
        threading.excepthook = self._lost_in_thread
        sys.unraisablehook = self._lost_in_between
        # Tasks and futures whose exception nobody asked for, callbacks that raised, tasks that were dropped half done.
        logging.getLogger("asyncio").addHandler(self)

    def _lost_in_thread(self, args: Any) -> None:
        if args.exc_type is SystemExit:
            return
        name = args.thread.name if args.thread is not None else "a thread"
        self._add(f"lost in the thread {name}", args.exc_type, args.exc_value, args.exc_traceback)

    def _lost_in_between(self, args: Any) -> None:
        self._add(f"{args.err_msg or 'lost in'} {args.object!r}", args.exc_type, args.exc_value, args.exc_traceback)

    def _add(self, where: str, kind: Any, value: Any, frames: Any) -> None:
        self._texts.append(f"{where}:\n" + "".join(traceback.format_exception(kind, value, frames)))

    def emit(self, record: logging.LogRecord) -> None:
        """What asyncio says."""
        self._texts.append("asyncio: " + self.format(record))

    def take(self) -> List[str]:
        """Those since the last time."""
        texts, self._texts = self._texts, []
        return texts
