# SPDX-License-Identifier: Apache-2.0
"""run(): one command to its end, in the calling thread.

No thread is started and none sorts answers: the caller reads the channel of its own run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Literal, Union, overload

from . import _engine
from ._collect import Collector
from ._request import Args, Request, shows_options
from ._result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import RunOptions

# Sends a request and gives the channel of its run: in a jar of its own, or in a Jar.
Opener = Callable[[Request], _engine.Channel]


def open_run(request: Request) -> _engine.Channel:
    """Run it in a jar of its own."""
    return _engine.open_channel(request.run_frame(), request.fds)


def read_some(channel: _engine.Channel, collector: Collector) -> None:
    """Take in what comes next, waiting for it only until it is time to look up."""
    try:
        data = channel.socket.recv(_engine.READ_BYTES)
    except BlockingIOError:
        return
    except ConnectionResetError:
        data = b""
    if not data:
        raise channel.lost()
    for function, told in collector.feed(data):
        function(*told)


def read_to_end(channel: _engine.Channel, collector: Collector) -> None:
    """Read until the run is over."""
    channel.look_up()
    while not collector.is_over:
        read_some(channel, collector)


def finish(request: Request, opener: Opener, check: bool) -> Result[Any]:
    """Start, read to the end, give the result.

    Whatever comes in between - Ctrl-C, an exception of the callback - ends the run, and reaches the caller when nothing of
    the run is left.
    """
    with request:
        channel = opener(request)
    collector = Collector.of(request, channel)
    try:
        read_to_end(channel, collector)
    except BaseException:
        channel.cancel()
        channel.drain()
        channel.close()
        raise
    channel.close()
    result = collector.result()
    return result.check() if check else result


@overload
def run(
    args: Union[Args, str], *, text: Literal[True] = ..., check: bool = ..., **options: Unpack[RunOptions]
) -> Result[str]: ...


@overload
def run(
    args: Union[Args, str], *, text: Literal[False], check: bool = ..., **options: Unpack[RunOptions]
) -> Result[bytes]: ...


@overload
def run(
    args: Union[Args, str], *, text: bool, check: bool = ..., **options: Unpack[RunOptions]
) -> Result[Any]: ...


@shows_options
def run(args: Union[Args, str], *, check: bool = False, **options: Any) -> Any:
    """Run a command in a fresh jar and wait until it, and all it started, is gone.

    args: a list of words; with shell=True one string for /bin/sh. input: what the command reads; stdin: a descriptor or
    file instead; without either, nothing. text=False gives exact bytes. on_output(stream, data) is called in this thread
    with bytes as they come; if it raises, the run is ended. on_ask(question) is asked about connections that no rule of allow_net
    decides, and returns "once", "run" or "deny"; anything else, and an exception, is "deny". capture=False keeps no output for the result. policy: a Policy, a
    mapping, a preset or a file; other keywords are policy keys (timeout=, memory=, ro=, net= ...) and win over it. Unless they
    say otherwise: timeout 30 s, memory 512M, output 100K.

    A command that fails, or that a limit ends, gives a Result too, unless check=True. A command that could not be started
    raises: PolicyError, StartError (not found ...), UnavailableError (this host cannot enforce the policy), EngineError.
    """
    return finish(Request(args, options), open_run, check)
