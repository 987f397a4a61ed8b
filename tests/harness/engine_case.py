# SPDX-License-Identifier: Apache-2.0
"""Tests with an engine of their own, and with kept jars in it."""

from __future__ import annotations

import socket
from typing import Any, Dict, List, Optional, Sequence

from harness import wire
from harness.case import JarCase
from harness.wire import JOIN, OPEN, OPENED, Channel, Outcome


class EngineCase(JarCase):
    """An engine on its socket."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = wire.Engine(self.env, self.work, self.way)
        self.addCleanup(self.close_engine)

    def close_engine(self) -> None:
        """Every test ends as a host does that leaves: the engine leaves too, with status 0."""
        if self.engine.status is None:
            self.assertEqual(self.engine.close(), 0)

    def script(self, text: str) -> List[str]:
        """A script with the marker in its arguments."""
        return ["/bin/sh", "-c", text, self.marker]


class KeptJarCase(EngineCase):
    """Kept jars on its channels."""

    opened: Dict[str, Any]

    def open(self, keys: Optional[Dict[str, Any]] = None, **top: Any) -> Channel:
        """A jar that stands."""
        channel = self.engine.channel().send(OPEN, self.engine.request(keys=keys, top=top))
        frame = channel.read()
        self.assertEqual(frame.kind, OPENED, frame)
        self.opened = frame.json
        return channel

    def join(self, jar: Channel, argv: List[str], keys: Optional[Dict[str, Any]] = None, fds: Sequence[int] = (), **run: Any) -> Channel:
        """Begin a run in it."""
        ours, theirs = socket.socketpair()
        environ = [f"{name}={value}" for name, value in self.env.items()]
        jar.send(JOIN, {"version": wire.VERSION, "argv": argv, "keys": keys or {}, "environ": environ, **run}, [theirs.fileno(), *fds])
        theirs.close()
        return Channel(ours)

    def run_in(self, jar: Channel, argv: List[str], keys: Optional[Dict[str, Any]] = None, **run: Any) -> Outcome:
        """A run in it to its end."""
        return wire.finish(self.join(jar, argv, keys, **run))

    def ask(self, jar: Channel, kind: int, **members: Any) -> Outcome:
        """A request on the jar's channel that has one answer."""
        ours, theirs = socket.socketpair()
        jar.send(kind, {"version": wire.VERSION, **members}, [theirs.fileno()])
        theirs.close()
        return wire.finish(Channel(ours))
