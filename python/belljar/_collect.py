# SPDX-License-Identifier: Apache-2.0
"""Collector: puts the result of a run together from the bytes of its channel; for threads and event loops alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _wire
from ._errors import EngineError
from ._result import Result, failure, make_result

if TYPE_CHECKING:
    from ._engine import Channel
    from ._keys import OnEvent, OnOutput
    from ._request import Request

NO_CUT = (0, 0)

# One of the caller's functions, and what it is to be told.
News = Tuple[Callable[..., object], Tuple[Any, ...]]


def published_of(facts: Mapping[str, Any]) -> Dict[int, int]:
    """Ports of a jar, and those of the host that lead to them, as a frame of the engine tells them."""
    return {entry["port"]: entry["host_port"] for entry in facts.get("published") or ()}


class Collector:
    """Feed it the bytes of the channel until `is_over`; then ask for the result."""

    __slots__ = (
        "has_started",
        "is_over",
        "on_output",
        "on_event",
        "answer",
        "_published",
        "_args",
        "_text",
        "_errors",
        "_is_captured",
        "_inbox",
        "_captured",
        "_answer",
        "_failed",
    )

    def __init__(
        self,
        args: Sequence[str],
        text: bool = True,
        errors: str = "replace",
        is_captured: bool = True,
        on_output: Optional[OnOutput] = None,
        on_event: Optional[OnEvent] = None,
    ) -> None:
        self.has_started = False
        self.is_over = False
        self.on_output = on_output
        self.on_event = on_event
        # Called with an event that is a question; set by whoever has the channel.
        self.answer: Optional[Callable[[Dict[str, Any]], Any]] = None
        self._published: Optional[Dict[int, int]] = None
        self._args = args
        self._text = text
        self._errors = errors
        self._is_captured = is_captured
        self._inbox = _wire.Inbox()
        self._captured: Dict[str, List[bytes]] = {"stdout": [], "stderr": []}
        self._answer: Optional[Dict[str, Any]] = None
        self._failed: Optional[Dict[str, Any]] = None

    @classmethod
    def of(cls, request: Request, channel: Channel, may_await: bool = False) -> Collector:
        """For a command as it was asked for. may_await: the caller's functions may be coroutine functions."""
        made = cls(request.args, request.text, request.errors, request.is_captured, request.on_output, request.on_event)
        made._published = request.published
        if request.on_ask is not None:
            from ._ask import Answerer

            made.answer = Answerer(request.on_ask, channel, may_await)
        return made

    def feed(self, data: bytes) -> Sequence[News]:
        """Whom these bytes concern: functions of the caller's to call now, in this order."""
        news: List[News] = []
        for kind, payload in self._inbox.feed(data):
            if self.is_over:
                raise EngineError("the engine sent a frame after the last one")
            if kind == _wire.OUTPUT:
                piece = _wire.piece(payload)
                if self.on_output is not None:
                    news.append((self.on_output, piece))
            elif kind == _wire.CAPTURED:
                stream, captured = _wire.piece(payload)
                self._captured[stream].append(captured)
            elif kind == _wire.EVENT:
                event = _wire.parse(payload)
                if event.get("event") == "ask":
                    if self.answer is not None:
                        news.append((self.answer, (event,)))
                elif self.on_event is not None and event.get("event") != "withdrawn":
                    news.append((self.on_event, (event,)))
            elif kind == _wire.STARTED:
                self.has_started = True
                if self._published is not None and b'"published"' in payload:
                    self._published.update(published_of(_wire.parse(payload)))
            elif kind == _wire.RESULT:
                self._answer = _wire.parse(payload)
                self.is_over = True
            elif kind == _wire.FAILED:
                self._failed = _wire.parse(payload)
                self.is_over = True
            else:
                raise EngineError(f"the engine answered a run with a frame of type {kind}")
        return news

    def _stream(self, name: str, cut: Sequence[int]) -> Tuple[Optional[Union[str, bytes]], bool]:
        """What was captured, as asked for, and whether it is UTF-8. cut: where the cap went through a character, and how many
        bytes of it are there; as text, they are nothing."""
        if not self._is_captured:
            return None, True
        captured = b"".join(self._captured[name])
        start, count = cut
        whole = captured[:start] + captured[start + count :] if count else captured
        try:
            text = whole.decode("utf-8")
        except UnicodeDecodeError:
            return whole.decode("utf-8", self._errors) if self._text else captured, False
        return text if self._text else captured, True

    def result(self) -> Result[Any]:
        """The result; if the run never started, the reason is raised."""
        command = self._args[0] if self._args else ""
        if self._answer is None:
            failed = self._failed or {}
            raise failure(failed.get("error"), failed.get("missing"), None, command)
        cuts = self._answer.get("cut") or {}
        stdout, is_stdout_text = self._stream("stdout", cuts.get("stdout") or NO_CUT)
        stderr, is_stderr_text = self._stream("stderr", cuts.get("stderr") or NO_CUT)
        if not is_stdout_text or not is_stderr_text:
            self._answer["encoding"] = "utf-8-lossy"
        result = make_result(self._answer, self._args, stdout, stderr)
        if result.outcome == "failed":
            raise failure(result.error, result.missing, result, command)
        return result
