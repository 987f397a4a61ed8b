# SPDX-License-Identifier: Apache-2.0
"""One piece of code for a method and its _async twin.

What a method does is a generator. It yields the frames that it asks the jar, and gets the answers; it yields None where others
in an event loop may have their turn. Who drives it waits for the answers in the calling thread, or in the loop.
"""

from __future__ import annotations

import socket
from typing import Any, Generator, List, Optional, Tuple, TypeVar

from . import _engine, _wire

Value = TypeVar("Value")
# Type, payload and descriptors of a frame; the descriptors are the generator's.
Answer = Tuple[int, bytes, List[int]]
Steps = Generator[Optional[bytes], Any, Value]


def finish(steps: Steps[Value]) -> Value:
    """Those that ask nothing."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def answer_async(channel: _engine.Channel) -> Answer:
    """As Channel.answer(), without holding up the loop."""
    from . import _loops

    channel.socket.setblocking(False)
    inbox = _wire.Inbox()
    fds: List[int] = []
    try:
        while True:
            try:
                frame = channel.receive(inbox, fds)
            except (BlockingIOError, InterruptedError):
                await _loops.wait_readable(channel.socket.fileno())
                continue
            if frame is not None:
                return frame[0], frame[1], fds
    except BaseException:
        _engine.close_all(fds)
        raise


def close_channel(channel: _engine.Channel) -> None:
    """Nobody waits for the answer any more; also for copies that others hold."""
    try:
        channel.socket.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    channel.close()


class Asking:
    """What has a jar to ask."""

    def _ask(self, request_frame: bytes, fds: Any) -> _engine.Channel:
        raise NotImplementedError

    def _do(self, steps: Steps[Value]) -> Value:
        """In the calling thread."""
        reply: Optional[Answer] = None
        try:
            while True:
                question = steps.send(reply)
                reply = None
                if question is not None:
                    channel = self._ask(question, ())
                    try:
                        reply = channel.answer()
                    finally:
                        close_channel(channel)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _do_async(self, steps: Steps[Value]) -> Value:
        """In the event loop. If this is cancelled, nobody waits for the answer any more."""
        from . import _loops

        reply: Optional[Answer] = None
        try:
            while True:
                try:
                    question = steps.send(reply)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                reply = None
                if question is None:
                    await _loops.sleep(0)
                    continue
                channel = self._ask(question, ())
                try:
                    reply = await answer_async(channel)
                finally:
                    close_channel(channel)
        finally:
            steps.close()
