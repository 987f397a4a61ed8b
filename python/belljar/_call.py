# SPDX-License-Identifier: Apache-2.0
"""One call, from your function to its value.

A call is a run with two more descriptors: one carries the packed function and its arguments in, one the answer out. A `Backend`
starts such runs: in a fork of a warm interpreter (_warm.py), or in a fresh interpreter (_cold.py).

Nothing that the jar writes is trusted. If the answer is whole and valid it is the value, and the caller need not wait until the
run is over: the pool does so later (_queue.py). In all other cases the engine's result of the run says what happened.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import select
import socket
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _answer, _engine, _loops, _wire
from ._answer import Answer
from ._ask import Answerer
from ._async import Reader, read_out
from ._async import read_some as read_some_async
from ._async import read_to_end as read_to_end_async
from ._codec import MAX_BYTES, Codec
from ._collect import Collector
from ._discard import discard, drain, keep_in_line
from ._errors import BelljarError, CallEnded, CallError, CallTimeout, ResultError, SendError, shortage_is_engine_error
from ._keys import CALL_OPTIONS, RUN_KEYS, OnAsk, OnOutput, check_arguments, parse_size
from ._policy import normal_keys
from ._result import Result, describe
from ._result_types import result_types
from ._run import read_some, read_to_end
from ._send import name_of, pack



@functools.lru_cache(maxsize=64)
def _codec(types: Tuple[type, ...], max_bytes: int) -> Codec:
    return Codec(types, max_bytes=max_bytes)


class Options:
    """What a call was told beside the arguments of its function."""

    __slots__ = ("keys", "on_output", "on_ask", "types", "codec")

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.keys: Dict[str, Any] = normal_keys({name: value for name, value in options.items() if name in RUN_KEYS})
        self.on_output: Optional[OnOutput] = options.get("on_output")
        self.on_ask: Optional[OnAsk] = options.get("on_ask")
        for name in ("on_output", "on_ask"):
            if options.get(name) is not None and not callable(options[name]):
                raise TypeError(f"{name} must be a function, not {type(options[name]).__name__}")
        types: Any = options.get("types") or ()
        self.types: Tuple[type, ...] = (types,) if isinstance(types, type) else tuple(types)
        max_result = options.get("max_result", MAX_BYTES)
        self.codec = _codec(self.types, MAX_BYTES if max_result == MAX_BYTES else parse_size(max_result, "max_result"))

    @property
    def members(self) -> Dict[str, Any]:
        """What they mean for the run: where the engine sends output as it comes, and whether somebody answers its questions."""
        return {"sink": "none" if self.on_output is None else "frames", "ask": None if self.on_ask is None else True}

    def answered_by(self, on_ask: Optional[OnAsk]) -> Options:
        """The same; this answers, where nobody else does."""
        if on_ask is None or self.on_ask is not None:
            return self
        made = copy.copy(self)
        made.on_ask = on_ask
        return made


NO_OPTIONS = Options({})


def split_options(fn: Any, kwargs: Dict[str, Any], owner: str = "Pool") -> Options:
    """Take the options out of the keywords of a call; what is left is the function's. SendError for what it cannot take and
    looks like an option, or is fixed for a jar, which is the owner's to say."""
    if not kwargs:
        return NO_OPTIONS
    found = {name: kwargs.pop(name) for name in list(kwargs) if name in CALL_OPTIONS}
    if kwargs:
        check_arguments(fn, kwargs, owner)
    return Options(found) if found else NO_OPTIONS


class Fork(NamedTuple):
    """A fork of a warm interpreter that waits for its call: the channel of its run, and the socket to the process."""

    channel: _engine.Channel
    link: socket.socket

    def give(self, parts: Sequence[Any]) -> bool:
        """Give it a packed call. False: it has gone, and nothing has run."""
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
        _engine.close_socket(self.link)


class Backend:
    """Starts the runs of calls. paths: where modules can be imported from, inside."""

    paths: Sequence[str]

    def open(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """Start a run with these descriptors: the packed call, and where the answer goes."""
        raise NotImplementedError

    async def open_async(self, options: Options, fds: Sequence[int]) -> _engine.Channel:
        """The same without holding up the loop. Only a new jar means waiting."""
        return self.open(options, fds)

    def take_fork(self, options: Options) -> Optional[Fork]:
        """A fork that waits for a call with these options, if there is one."""

    def order_fork(self) -> None:
        """Have one made for the next call."""


class Call:
    """A call from its first byte to its value. Where `is_ended` is false, the run on `channel` may still be ending."""

    __slots__ = ("channel", "is_ended", "_options", "_codec", "_link", "_parts", "_answer", "_fn", "_leftovers")

    def __init__(self, fn: Any, args: Iterable[Any], kwargs: Mapping[str, Any], options: Options, paths: Sequence[str]) -> None:
        self.channel: Optional[_engine.Channel] = None
        self.is_ended = False
        self._options = options
        self._fn = fn
        self._codec = options.codec
        self._parts = self._pack(args, kwargs, paths)
        self._link: Any = None
        self._answer: Any = None
        # Descriptors that lay in the link's queue; None: nobody has looked.
        self._leftovers: Optional[List[int]] = None

    def _pack(self, args: Iterable[Any], kwargs: Mapping[str, Any], paths: Sequence[str]) -> List[Any]:
        """With the classes that may come back: those that the caller lists, and those that the function says it returns."""
        # A coroutine function of a trio program is written for trio.
        listed, most, has_trio = self._options.types, self._options.codec.max_bytes, _loops.is_trio()
        named = tuple(cls for cls in result_types(self._fn) if cls not in listed)
        if named:
            try:
                parts = pack(self._fn, args, kwargs, paths, (listed + named, most, has_trio))
                self._codec = _codec(listed + named, most)
                return parts
            except SendError:
                pass  # perhaps only because of a class that is never returned
        return pack(self._fn, args, kwargs, paths, (listed, most, has_trio))

    @property
    def _name(self) -> str:
        return name_of(self._fn)

    # --- beginning ---

    def begin(self, backend: Backend) -> None:
        """Start it."""
        if not self._give_to_fork(backend):
            with self._descriptors() as fds:
                self.channel = backend.open(self._options, fds)
        backend.order_fork()

    async def begin_async(self, backend: Backend) -> None:
        """Start it, without holding up the loop."""
        if not self._give_to_fork(backend):
            with self._descriptors() as fds:
                self.channel = await backend.open_async(self._options, fds)
        backend.order_fork()

    def _give_to_fork(self, backend: Backend) -> bool:
        """Give it to a fork that waits. False: there is none."""
        fork = backend.take_fork(self._options)
        if fork is None or not fork.give(self._parts):
            return False
        self._parts = []
        self.channel, self._link = fork
        return True

    @contextlib.contextmanager
    def _descriptors(self) -> Iterator[List[int]]:
        """What is sent with a new run: the packed call in a file, and the other end of the link."""
        fds: List[int] = []
        try:
            with shortage_is_engine_error("hold the call"):
                fds.append(_answer.memory_file("belljar-call", self._parts))
            self._parts = []
            self._link, theirs = _engine.pair()
            fds.append(theirs.detach())
            yield fds
        except BaseException:
            self.close()
            raise
        finally:
            _engine.close_all(fds)

    def close(self) -> None:
        """Close everything but the channel."""
        found = [] if self._answer is None else self._answer.take_files()
        if self._link is not None:
            found += drain(self._link) if self._leftovers is None else self._leftovers
            _engine.close_socket(self._link)
        discard(found)

    # --- what came of it ---

    def _expect_answer(self) -> None:
        self._answer = Answer(self._codec)
        keep_in_line(self._link)

    def _may_return(self, may_be_early: bool) -> bool:
        """Whether there is a value for the caller before the run is over."""
        return may_be_early and bool(self._answer.is_whole) and self._answer.kind == _answer.VALUE

    def _early_value(self) -> Any:
        """The value, before the run is over. Descriptors that came beside it are closed when it is: see _discard."""
        value = self._answer.value()
        self._leftovers = drain(self._link)
        if self._leftovers:
            raise ResultError("the answer is malformed: descriptors follow it")
        return value

    def _final_value(self, result: Result, failure: Optional[ResultError]) -> Any:
        """The run is over: the value, or the exception that says why there is none."""
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
        raise self._exception(value).with_(result=result)

    def _exception(self, words: Any) -> BelljarError:
        """The exception for an answer that is none: what the inside says happened."""
        parts = [words.get(name) if isinstance(words, dict) else None for name in ("type", "message", "traceback")]
        kind, message, trace = (part if isinstance(part, str) else None for part in parts)
        if None in (kind, message, trace):
            return ResultError("the answer is malformed: an exception without its parts")
        if self._answer.kind == _answer.NOT_DATA:
            return ResultError(message or "")
        # SendError would promise that nothing ran; but a function that did run can say all of this, too.
        text = {
            _answer.RAISED: f"'{self._name}' raised {kind}: {message}",
            _answer.NOT_READY: f"the interpreter in the jar could not load a module ahead: {kind}: {message}",
            _answer.NOT_MADE: f"the jar could not load '{self._name}' or its arguments: {kind}: {message}",
        }[self._answer.kind]
        return CallError(text, kind, message, trace)

    @property
    def _hears_of_the_run(self) -> bool:
        """Whether functions of the caller's are to be called while it runs."""
        return self._options.on_output is not None or self._options.on_ask is not None

    def _collector(self, channel: _engine.Channel, may_await: bool) -> Collector:
        made = Collector([self._name], on_output=self._options.on_output)
        if self._options.on_ask is not None:
            made.answer = Answerer(self._options.on_ask, channel, may_await)
        return made

    def _refuse(self) -> None:
        """The answer is malformed: whatever the run still does is of no use."""
        assert self.channel is not None
        self.channel.cancel()
        self.channel.cancel()

    # --- in a thread ---

    def finish(self, may_be_early: bool) -> Any:
        """Wait for the value. An exception meanwhile ends the run, and leaves when nothing of the run is left."""
        channel = self.channel
        assert channel is not None
        collector = self._collector(channel, False)
        try:
            self._expect_answer()
            failure = None
            try:
                self._link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _engine.LOOK_UP)
                if self._hears_of_the_run:
                    self._read_both(channel, collector)
                else:
                    self._read_answer()
                    if self._may_return(may_be_early):
                        return self._early_value()
            except ResultError as error:
                self._refuse()
                failure = error
            collector.on_output = collector.answer = None
            read_to_end(channel, collector)
            self.is_ended = True
            return self._final_value(collector.result(), failure)
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

    def _read_answer(self) -> None:
        """Read the answer to its end, or to the end of the run."""
        answer, link = self._answer, self._link
        while not answer.is_whole:
            try:
                if not answer.receive(link):
                    return
            except BlockingIOError:
                continue

    def _read_both(self, channel: _engine.Channel, collector: Collector) -> None:
        """Output as it comes, and the answer: neither may wait for the other, or the function would."""
        poll = select.poll()
        poll.register(channel.socket, select.POLLIN)
        poll.register(self._link, select.POLLIN)
        link = self._link.fileno()
        while not collector.is_over:
            for fd, _ in poll.poll(_engine.LOOK_UP_SECONDS * 1000):
                if fd != link:
                    read_some(channel, collector)
                elif self._answer.is_whole or not self._answer.receive(self._link) or self._answer.is_whole:
                    poll.unregister(link)
        self._read_answer()

    # --- in an event loop ---

    async def finish_async(self, may_be_early: bool) -> Any:
        """finish() for event loops; cancelling ends the run, and goes on when nothing of the run is left."""
        channel = self.channel
        assert channel is not None
        collector = self._collector(channel, True)
        self._expect_answer()
        self._link.setblocking(False)
        reader = Reader(channel)
        try:
            failure = None
            try:
                if self._hears_of_the_run:
                    await self._read_both_async(reader, channel, collector)
                else:
                    await self._read_answer_async()
                    if self._may_return(may_be_early):
                        return self._early_value()
            except ResultError as error:
                self._refuse()
                failure = error
            collector.on_output = collector.answer = None
            await read_to_end_async(reader, channel, collector)
            self.is_ended = True
            return self._final_value(collector.result(), failure)
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
            self.close()
            if self.is_ended:
                channel.close()

    async def _read_answer_async(self) -> None:
        """_read_answer() in a loop."""
        while not self._answer.is_whole:
            try:
                if not self._answer.receive(self._link):
                    return
            except (BlockingIOError, InterruptedError):
                await _loops.wait_readable(self._link.fileno())

    async def _read_both_async(self, reader: Reader, channel: _engine.Channel, collector: Collector) -> None:
        """_read_both() in a loop, which waits for both by one descriptor."""
        link = self._link.fileno()
        with select.epoll() as both:
            both.register(channel.socket, select.EPOLLIN)
            both.register(link, select.EPOLLIN)
            while not collector.is_over:
                await _loops.wait_readable(both.fileno())
                for fd, _ in both.poll(0):
                    if fd != link:
                        await read_some_async(reader, channel, collector)
                    elif self._answer.is_whole or not self._answer.receive(self._link) or self._answer.is_whole:
                        both.unregister(link)
        await self._read_answer_async()
