# SPDX-License-Identifier: Apache-2.0
"""on_ask: your program is asked about connections that no rule decides."""

from __future__ import annotations

import dataclasses
import struct
import warnings
from typing import TYPE_CHECKING, Any, Mapping, Optional

from . import _wire
from ._errors import public

if TYPE_CHECKING:
    from ._engine import Channel
    from ._keys import OnAsk

# As the engine numbers them.
ANSWERS = {"deny": 0, "once": 1, "run": 2}


@public
@dataclasses.dataclass(frozen=True)
class Question:
    """A command wants to reach a host that no rule decides about. Its connection waits for the answer.

    `address` is None for a name, which can only lead to public addresses; else `host` is an address, and it says where that is:
    "public", "private", or "host" for one of this host's own. `rule` is the entry of allow_net that would allow it. After `timeout`
    seconds the connection is refused.
    """

    kind: str
    host: str
    port: int
    address: Optional[str]
    rule: str
    timeout: float


def _question(event: Mapping[str, Any]) -> Question:
    return Question(
        kind=str(event.get("kind")),
        host=str(event.get("host")),
        port=int(event.get("port") or 0),
        address=event.get("address"),
        rule=str(event.get("rule")),
        timeout=float(event.get("timeout_ms") or 0) / 1000,
    )


class Answerer:
    """Answers the questions of one run. Whatever goes wrong means "deny"."""

    __slots__ = ("_on_ask", "_channel", "_may_await")

    def __init__(self, on_ask: OnAsk, channel: Channel, may_await: bool = False) -> None:
        self._on_ask = on_ask
        self._channel = channel
        self._may_await = may_await

    def __call__(self, event: Mapping[str, Any]) -> Any:
        """Ask, and send the answer; if the caller's function is a coroutine function, what is returned is to be awaited."""
        number = int(event.get("id") or 0)
        try:
            answer: Any = self._on_ask(_question(event))
        except Exception as error:
            answer = self._excuse(error)
        except BaseException:
            self._send(number, "deny")
            raise
        if hasattr(answer, "__await__") and self._may_await:
            return self._await(number, answer)
        if hasattr(answer, "close") and hasattr(answer, "__await__"):
            answer.close()
        self._send(number, answer)
        return None

    def deny(self, event: Mapping[str, Any]) -> None:
        """Nobody can be asked."""
        self._send(int(event.get("id") or 0), "deny")

    async def _await(self, number: int, awaitable: Any) -> None:
        try:
            answer = await awaitable
        except Exception as error:
            answer = self._excuse(error)
        except BaseException:
            self._send(number, "deny")
            raise
        self._send(number, answer)

    def _excuse(self, error: Exception) -> str:
        warnings.warn(f"on_ask raised {error!r}: the answer is 'deny'", RuntimeWarning, stacklevel=3)
        return "deny"

    def _send(self, number: int, answer: Any) -> None:
        code = ANSWERS.get(answer) if isinstance(answer, str) else None
        if code is None:
            warnings.warn(f"on_ask must return 'once', 'run' or 'deny', not {answer!r}: the answer is 'deny'", RuntimeWarning, stacklevel=3)
        self._channel.send(_wire.REPLY, struct.pack("<II", number, code or 0))
