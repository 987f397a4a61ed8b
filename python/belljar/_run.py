# SPDX-License-Identifier: Apache-2.0
"""run(): one command to its end, in the calling thread."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

from . import _engine
from ._collect import Collector
from ._errors import EngineError
from ._launch import Args, Launch, OnOutput, Stdin
from ._policy import PolicyLike
from ._result import Result

Opener = Callable[[Launch], _engine.Channel]


def open_run(launch: Launch) -> _engine.Channel:
    """A channel for a run in a jar of its own."""
    if launch.is_again:
        return _engine.open_channel_again(launch.frame, launch.fds)
    return _engine.open_channel(launch.frame, launch.fds)


def leave(channel: _engine.Channel, collector: Collector) -> None:
    """The run is over, or lost."""
    if collector.is_left_open:
        channel.rest()
    else:
        channel.close()


def finish(launch: Launch, opener: Opener, on_output: Optional[OnOutput], check: bool) -> Result:
    """Start, read to the end, give the result.

    Whatever comes in between - Ctrl-C, an exception of the callback - ends the run, and is seen by the caller when
    nothing of the run is left.
    """
    try:
        channel = opener(launch)
    finally:
        launch.close()
    collector = Collector(launch.args, launch.text, launch.errors)
    receive = channel.socket.recv
    try:
        channel.look_up()
        while not collector.is_over:
            try:
                data = receive(_engine.READ_BYTES)
            except BlockingIOError:
                continue
            if not data:
                raise channel.lost()
            for stream, piece in collector.feed(data):
                if on_output is not None:
                    on_output(stream, piece)
    except ConnectionResetError:
        error = channel.lost()
        channel.close()
        raise error from None
    except BaseException:
        channel.cancel()  # also if all was said: then it only ends the channel
        channel.drain()
        channel.close()
        raise
    try:
        result = collector.result()
    except EngineError:
        channel.kill()  # who talks nonsense is not asked again
        raise
    except BaseException:
        leave(channel, collector)
        raise
    leave(channel, collector)
    return result.check() if check else result


def run(
    args: Union[Args, str],
    *,
    shell: bool = False,
    input: Optional[Union[bytes, str]] = None,
    stdin: Stdin = None,
    text: bool = True,
    errors: str = "replace",
    stderr_to_stdout: bool = False,
    pty: bool = False,
    check: bool = False,
    on_output: Optional[OnOutput] = None,
    policy: PolicyLike = None,
    **keys: Any,
) -> Result:
    """Run a command in a fresh jar and wait until it, and all it started, is gone.

    args: a list of words; with shell=True one string for /bin/sh. input: what the command reads; stdin: a descriptor or
    file instead; without either, nothing. text=False gives exact bytes. on_output(stream, data) is called in this thread
    with bytes as they come; if it raises, the run is ended. policy: a Policy, a mapping, a preset or a file; other
    keywords are policy keys (timeout=, memory=, ro=, net= ...) and win over it. Unless they say otherwise: timeout 30 s,
    memory 512M, output 100K.

    A command that fails, or is ended by a limit, is a Result too, unless check=True. What was never started raises:
    PolicyError, StartError (not found ...), UnavailableError (this host cannot hold it), EngineError.
    """
    launch = Launch(
        args,
        shell=shell,
        input=input,
        stdin=stdin,
        text=text,
        errors=errors,
        stderr_to_stdout=stderr_to_stdout,
        pty=pty,
        keys=keys,
        policy=policy,
        sink="none" if on_output is None else "frames",
        is_again=True,
    )
    return finish(launch, open_run, on_output, check)
