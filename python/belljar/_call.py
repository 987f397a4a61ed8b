# SPDX-License-Identifier: Apache-2.0
"""One call under way: a run with two descriptors more, the arguments' and the answer's.

Nothing that the jar writes is trusted. A whole and valid answer is the value, and the caller need not wait for the end of the
run, which somebody collects later; whatever else comes, the engine's account of the run says what happened.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple

from . import _answer, _engine, _wire
from ._answer import Answer
from ._async import Reader, read_out
from ._codec import MAX_BYTES, Codec
from ._collect import Collector
from ._discard import discard, drain, keep_in_line
from ._errors import BelljarError, CallEnded, CallError, CallTimeout, ResultError, shortage_is_engine_error
from ._keys import CALL_OPTIONS, RUN_KEYS, OnOutput, parse_size
from ._result import Result, describe
from ._send import name_of, pack

_PLAIN = Codec()


class Options:
    """What a call was told beside its arguments."""

    __slots__ = ("keys", "on_output", "types", "codec")

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.keys: Dict[str, Any] = {name: value for name, value in options.items() if name in RUN_KEYS}
        self.on_output: Optional[OnOutput] = options.get("on_output")
        self.types: Tuple[type, ...] = tuple(options.get("types") or ())
        max_result = options.get("max_result", MAX_BYTES)
        self.codec = _PLAIN
        if self.types or max_result != MAX_BYTES:
            self.codec = Codec(self.types, max_bytes=parse_size(max_result, "max_result"))

    @property
    def sink(self) -> str:
        """Where the engine sends output as it comes."""
        return "none" if self.on_output is None else "frames"


NO_OPTIONS = Options({})


def split_options(kwargs: Dict[str, Any]) -> Options:
    """Take the options out of the keywords of a call; what is left is the function's."""
    if not kwargs or CALL_OPTIONS.isdisjoint(kwargs):
        return NO_OPTIONS
    return Options({name: kwargs.pop(name) for name in list(kwargs) if name in CALL_OPTIONS})


class Way(Protocol):
    """How calls reach an interpreter in a jar."""

    @property
    def paths(self) -> Sequence[str]:
        """From where modules can be imported inside."""

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """Start a run that has these descriptors as the call's own."""

    async def open_async(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """The same without holding up the loop."""

    def take_held(self, options: Options) -> Optional["Held"]:
        """A run that waits for a call with these options, if there is one."""

    def hold_next(self) -> None:
        """Have such a run for the next call, while nobody waits."""


class Held(NamedTuple):
    """A run that was begun ahead and waits for its call: its channel, and the socket to its process."""

    channel: _engine.Channel
    link: socket.socket

    def begin(self, parts: Sequence[Any]) -> bool:
        """Give it a packed call. False: it is of no use any more, and nothing has run."""
        try:
            _answer.send_call(self.link, parts)
        except OSError:
            self.close()
            return False
        self.channel.send(_wire.GO)
        return True

    def close(self) -> None:
        """End it."""
        self.channel.kill()
        _engine._held.discard(self.link)
        self.link.close()


class Flight:
    """A call from its first byte to its value. Its channel is somebody else's to collect where `is_ended` is false."""

    __slots__ = ("channel", "is_ended", "_options", "_link", "_parts", "_sent", "_answer", "_collector", "_fn", "_late")

    def __init__(self, fn: Any, args: Iterable[Any], kwargs: Mapping[str, Any], options: Options, paths: Sequence[str]) -> None:
        self.channel: Optional[_engine.Channel] = None
        self.is_ended = False
        self._options = options
        self._fn = fn
        self._parts = pack(fn, args, kwargs, paths, (options.types, options.codec.max_bytes))
        self._link: Any = None
        self._sent: List[int] = []
        self._late: List[int] = []
        # What is not needed before the call is on its way is made then, by _expect().
        self._answer: Any = None
        self._collector: Any = None

    @property
    def _name(self) -> str:
        return name_of(self._fn)

    def _expect(self) -> None:
        self._answer = Answer(self._options.codec)
        self._collector = Collector([self._name], True, "replace")
        keep_in_line(self._link)

    # --- beginning ---

    def _begin_held(self, way: Way) -> bool:
        """Give it to a run that waits. False: there is none."""
        held = way.take_held(self._options)
        if held is None or not held.begin(self._parts):
            return False
        self._parts = []
        self.channel, self._link = held
        way.hold_next()
        return True

    def _prepare(self) -> None:
        with shortage_is_engine_error("hold the call"):
            self._sent.append(_answer.memory_file("belljar-call", self._parts))
        self._parts = []
        self._link, theirs = _engine.pair()
        self._sent.append(theirs.detach())

    def begin(self, way: Way) -> None:
        """Start it."""
        if self._begin_held(way):
            return
        try:
            self._prepare()
            self.channel = way.open(self._options, self._sent)
        except BaseException:
            self.close()
            raise
        finally:
            self._close_sent()
        way.hold_next()

    async def begin_async(self, way: Way) -> None:
        """Start it, without holding up the loop."""
        if self._begin_held(way):
            return
        try:
            self._prepare()
            self.channel = await way.open_async(self._options, self._sent)
        except BaseException:
            self.close()
            raise
        finally:
            self._close_sent()
        way.hold_next()

    def _close_sent(self) -> None:
        while self._sent:
            os.close(self._sent.pop())

    def close(self) -> None:
        """Let go of what is left of it, but for the channel."""
        self._close_sent()
        if self._answer is not None:
            discard(self._answer.take_files())
        if self._link is not None:
            discard(self._late or drain(self._link))
            _engine._held.discard(self._link)
            self._link.close()

    # --- what came of it ---

    def _account(self, failure: Optional[ResultError]) -> Any:
        """The run is over: the value, or what must be raised."""
        result = self._collector.result()
        if failure is not None:
            raise failure.with_(result=result)
        if result.outcome == "timeout":
            raise CallTimeout(f"'{self._name}' took too long: {describe(result)}").with_(result=result)
        is_whole = self._answer.is_whole and result.outcome == "exited"
        if not is_whole or (self._answer.kind == _answer.VALUE and result.exit_code != 0):
            raise CallEnded(f"{describe(result)}, without a result").with_(result=result)
        try:
            value = self._answer.value()
        except ResultError as error:
            raise error.with_(result=result)
        if self._answer.kind == _answer.VALUE:
            return value
        raise self._told(value, result)

    def _early_value(self) -> Any:
        """The value, before the run is over. What came beside it waits until it is: see _discard."""
        value = self._answer.value()
        self._late = drain(self._link)
        if self._late:
            raise ResultError("what came back is malformed: descriptors follow the answer")
        return value

    def _told(self, words: Any, result: Result) -> BelljarError:
        """The exception for what the answer says in words."""
        parts = [words.get(name) if isinstance(words, dict) else None for name in ("type", "message", "traceback")]
        kind, message, trace = (part if isinstance(part, str) else None for part in parts)
        if None in (kind, message, trace):
            return ResultError("what came back is malformed: an exception without its parts").with_(result=result)
        if self._answer.kind == _answer.RAISED:
            return CallError(f"'{self._name}' raised {kind}: {message}", kind, message, trace).with_(result=result)
        # Whoever says one of these may have run for long: nothing that comes from inside tells that nothing did.
        if self._answer.kind == _answer.NOT_READY:
            text = f"what was to be loaded ahead cannot be, it is said inside: {kind}: {message}"
            return CallError(text, kind, message, trace).with_(result=result)
        if self._answer.kind == _answer.NOT_MADE:
            text = f"'{self._name}' or its arguments cannot be made, it is said inside: {kind}: {message}"
            return CallError(text, kind, message, trace).with_(result=result)
        return ResultError(message or "").with_(result=result)

    def _refuse(self) -> None:
        """What came back is no answer: nothing that the run still does is of interest."""
        assert self.channel is not None
        self.channel.cancel()
        self.channel.cancel()

    # --- in a thread ---

    def finish(self, may_be_early: bool) -> Any:
        """Wait for the value. Whatever comes in between ends the run, and is seen by the caller when nothing is left of it."""
        channel = self.channel
        assert channel is not None
        try:
            self._expect()
            failure = None
            try:
                self._link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _engine.LOOK_UP)
                if self._options.on_output is not None:
                    self._read_both(channel, self._options.on_output)
                elif self._read_answer() and may_be_early and self._answer.kind == _answer.VALUE:
                    return self._early_value()
            except ResultError as error:
                self._refuse()
                failure = error
            channel.look_up()
            self._read_channel(channel)
            self.is_ended = True
            return self._account(failure)
        except BaseException:
            if not self.is_ended:
                channel.cancel()
                channel.drain()
                self.is_ended = True
            raise
        finally:
            self.close()
            if self.is_ended:
                channel.close()

    def _read_answer(self) -> bool:
        """Read the answer to its end, or to the end of the run; whether it is whole."""
        answer, link = self._answer, self._link
        while not answer.is_whole:
            try:
                if not answer.receive(link):
                    return False
            except BlockingIOError:
                continue
        return True

    def _read_channel(self, channel: _engine.Channel, on_output: Optional[OnOutput] = None, is_once: bool = False) -> None:
        collector, receive = self._collector, channel.socket.recv
        while not collector.is_over:
            try:
                data = receive(_engine.READ_BYTES)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                data = b""
            if not data:
                raise channel.lost()
            for stream, piece in collector.feed(data):
                if on_output is not None:
                    on_output(stream, piece)
            if is_once:
                return

    def _read_both(self, channel: _engine.Channel, on_output: OnOutput) -> None:
        """Output as it comes, and the answer: neither may wait for the other, or the function would."""
        poll = select.poll()
        poll.register(channel.socket, select.POLLIN)
        poll.register(self._link, select.POLLIN)
        link = self._link.fileno()
        while not self._collector.is_over:
            for fd, _ in poll.poll(_engine.LOOK_UP_SECONDS * 1000):
                if fd != link:
                    self._read_channel(channel, on_output, is_once=True)
                elif self._answer.is_whole or not self._answer.receive(self._link) or self._answer.is_whole:
                    poll.unregister(link)
        self._read_answer()

    # --- in an event loop ---

    async def finish_async(self, may_be_early: bool) -> Any:
        """finish() for asyncio; cancelling ends the run, and CancelledError leaves when nothing of it is left."""
        channel = self.channel
        assert channel is not None
        self._expect()
        reader = Reader(channel)
        loop = asyncio.get_running_loop()
        news = self._watch(loop)
        try:
            failure = None
            on_output = self._options.on_output
            try:
                if on_output is None:
                    await news
                    if self._answer.is_whole and may_be_early and self._answer.kind == _answer.VALUE:
                        return self._early_value()
                await self._follow(reader, channel, on_output)
                await news
            except ResultError as error:
                self._refuse()
                failure = error
            await self._follow(reader, channel, None)
            self.is_ended = True
            return self._account(failure)
        except GeneratorExit:
            channel.kill()
            self.is_ended = True
            raise
        except BaseException:
            if not self.is_ended:
                await read_out(reader, channel)
                self.is_ended = True
            raise
        finally:
            self._unwatch(loop, news)
            self.close()
            if self.is_ended:
                channel.close()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[None]":
        """A future for the answer, or its absence; read whenever there is something to read."""
        news: "asyncio.Future[None]" = loop.create_future()
        link, answer = self._link, self._answer
        link.setblocking(False)
        fd = link.fileno()

        def on_readable() -> None:
            try:
                is_open = answer.receive(link)
            except (BlockingIOError, InterruptedError):
                return
            except ResultError as error:
                loop.remove_reader(fd)
                self._refuse()
                if not news.done():
                    news.set_exception(error)
                return
            if answer.is_whole or not is_open:
                loop.remove_reader(fd)
                if not news.done():
                    news.set_result(None)

        loop.add_reader(fd, on_readable)
        return news

    def _unwatch(self, loop: asyncio.AbstractEventLoop, news: "asyncio.Future[None]") -> None:
        if not loop.is_closed():
            loop.remove_reader(self._link.fileno())
        if news.done() and not news.cancelled():
            news.exception()  # seen
        news.cancel()

    async def _follow(self, reader: Reader, channel: _engine.Channel, on_output: Optional[OnOutput]) -> None:
        while not self._collector.is_over:
            data = await reader.read()
            if not data:
                raise channel.lost()
            for stream, piece in self._collector.feed(data):
                if on_output is not None:
                    said = on_output(stream, piece)
                    if hasattr(said, "__await__"):
                        await said
