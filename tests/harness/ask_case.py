# SPDX-License-Identifier: Apache-2.0
"""The base of tests of --ask net: somebody sits in front of a terminal, on the host of an internet of the test's own."""

from __future__ import annotations

from typing import Any, List, Optional

from harness.gate_case import CLIENT, GateCase
from harness.internet import ECHO_PORT
from harness.terminal import Terminal

TALK = f"talk('good.test', {ECHO_PORT}, b'hi')"
ASKED = f"wants to reach good.test:{ECHO_PORT}. Allow it?".encode()
PROMPT = b"n: no > "


class AskCase(GateCase):
    """Somebody sits in front of a terminal."""

    def ask(self, code: str, *options: str, out: Optional[Any] = None, env: Optional[Any] = None, workdir: str = "none") -> Terminal:
        terminal = Terminal()
        self.addCleanup(terminal.close)
        terminal.start(
            ["-C", workdir, "--ask", "net", *options, "--", "python3", "-c", CLIENT + code, self.marker],
            way=self.way, env=env or self.env, cwd=self.work, preexec_fn=self.internet.enter, stdout=out,
        )
        return terminal

    def show(self, expressions: List[str]) -> str:
        return "".join(f"print({expression!r}, '=', {expression}, flush=True)\n" for expression in expressions)
