# SPDX-License-Identifier: Apache-2.0
"""Jar: a session, that is, a jar that stays open for many runs over the same private files."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Literal, Optional, Sequence, Type, TypeVar, Union, overload

from . import _engine, _wire
from ._closing import AsyncClosing, Closing
from ._collect import published_of
from ._errors import EngineError, public, shortage_is_engine_error
from ._jar_files import JarFiles, look_steps, open_steps
from ._paths import anchored, fixed_policy
from ._policy import PolicyLike, normal_keys
from ._process import Process
from ._request import Args, Request, current_directory, environ_text, open_frame, shows_jar_options
from ._result import Result, failure
from ._run import finish
from ._workspace import JarWorkspace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._async import AsyncProcess
    from ._call import Call
    from ._interpreter import Interpreter
    from ._keys import Duration, OnAsk, PolicyKeys, RunInJarOptions, RunKeys, SpawnInJarOptions
    from ._shell import Shell

Path = Union[str, bytes, "os.PathLike[str]"]
Self = TypeVar("Self", bound="Jar")


@public
class Jar(Closing, AsyncClosing, JarFiles, JarWorkspace):
    """A jar that stays open for many runs, one after the other or at the same time, over the same files. close() removes it all.

    Jar(policy, **keys) opens it, and the policy holds for all its runs. These accept only keys that may differ from run to
    run (timeout, memory, env, cd, output ...), and no limit above what was given for the jar. A context manager, also for `async with`;
    all of it may be used from any thread.
    """

    def __init__(
        self,
        policy: PolicyLike = None,
        *,
        ttl: Optional[Duration] = None,
        on_ask: Optional[OnAsk] = None,
        **keys: Unpack[PolicyKeys],
    ) -> None:
        """on_ask: what answers for runs that have none of their own; implies ask="net"."""
        self._open(self._begin(policy, ttl, {**keys}, on_ask))

    @classmethod
    async def open_async(
        cls: Type[Self],
        policy: PolicyLike = None,
        *,
        ttl: Optional[Duration] = None,
        on_ask: Optional[OnAsk] = None,
        **keys: Unpack[PolicyKeys],
    ) -> Self:
        """Jar(policy, **keys) for event loops, which go on while the jar is made. If this is cancelled, there is none."""
        from ._async import open_channel_async
        from ._steps import answer_async

        jar = cls.__new__(cls)
        frame = jar._begin(policy, ttl, {**keys}, on_ask)
        jar._prepare()
        channel = await open_channel_async(frame)
        try:
            answer = await answer_async(channel)
            jar._take_facts(*answer)
            channel.socket.setblocking(True)
        except BaseException:
            channel.kill()
            raise
        jar._channel = channel
        return jar

    def _begin(self, policy: PolicyLike, ttl: Optional[Duration], keys: Dict[str, Any], on_ask: Optional[OnAsk] = None) -> bytes:
        """The request for it."""
        self._on_ask = on_ask
        if on_ask is not None:
            keys.setdefault("ask", "net")
        self._backend: Any = None
        # Calls ask later what the jar can write: the answer must not depend on where the program has gone meanwhile.
        cwd = current_directory()
        self._policy, self._keys = fixed_policy(policy, cwd), anchored(normal_keys(keys), cwd)
        self._environ: Optional[str] = environ_text()
        self._ttl = ttl
        return open_frame(self._policy, self._keys, self._environ, ttl=ttl)

    def _prepare(self) -> None:
        self._channel: Optional[_engine.Channel] = None
        self._pid = _engine.owner_pid()
        self._lock = threading.Lock()
        self._is_closed = False
        self._end = _wire.Inbox()
        self._facts: Dict[str, Any] = {}
        self._risky: List[Dict[str, Any]] = []

    def _take_facts(self, kind: int, payload: bytes, fds: List[int]) -> None:
        _engine.close_all(fds)
        answer = _wire.parse(payload)
        if kind == _wire.FAILED:
            raise failure(answer.get("error"), answer.get("missing"))
        if kind != _wire.OPENED:
            raise EngineError(f"the engine sent a frame of type {kind} when a jar was opened")
        self._facts = answer

    def _open(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        self._prepare()
        channel = _engine.open_channel(frame, fds)
        try:
            self._take_facts(*channel.answer())
        except BaseException:
            channel.kill()
            raise
        self._channel = channel

    # --- facts ---

    @property
    def rung(self) -> str:
        """How strong the isolation is: "namespace", "landlock" or "process"."""
        return str(self._facts.get("rung"))

    @property
    def risky(self) -> List[Dict[str, Any]]:
        """What its processes changed that other programs execute or obey, as Result.risky: as far as the last look() saw, and all
        of it once it is closed, or has ended by itself. It has also what a process that lived on, a call or a cell left."""
        return list(self._risky)

    def look(self) -> List[Dict[str, Any]]:
        """Search now, and give `risky`: runs, cells and commands of a shell are searched at their end, processes that live on are not."""
        return self._take_look(self._do(look_steps()))

    async def look_async(self) -> List[Dict[str, Any]]:
        """look() for event loops."""
        return self._take_look(await self._do_async(look_steps()))

    def _take_look(self, answer: Dict[str, Any]) -> List[Dict[str, Any]]:
        self._risky = list(answer.get("risky") or [])
        return self.risky

    def _take_new(self, frame: Tuple[int, bytes]) -> List[Dict[str, Any]]:
        """What is new in an answer to LOOK."""
        kind, payload = frame
        answer = _wire.parse(payload)
        if kind == _wire.FAILED:
            raise failure(answer.get("error"), answer.get("missing"))
        self._take_look(answer)
        return list(answer.get("new") or [])

    @property
    def _is_searched(self) -> bool:
        """Whether a look() can find anything."""
        return bool(self._facts.get("searched"))

    @property
    def enforced(self) -> Dict[str, Any]:
        """What is enforced, and by which means."""
        return dict(self._facts.get("enforced") or {})

    @property
    def missing(self) -> List[Dict[str, Any]]:
        """What the policy asks for, as optional, and this host cannot enforce."""
        return list(self._facts.get("missing") or [])

    @property
    def workdir(self) -> Optional[str]:
        """Where runs start, as seen inside."""
        return self._facts.get("workdir")

    @property
    def published(self) -> Dict[int, int]:
        """For each port of `publish` the one of this host's 127.0.0.1 that leads to it."""
        return published_of(self._facts)

    def fileno(self) -> int:
        """The descriptor of the jar's channel. It is readable when the jar has ended, whoever has ended it; read nothing from it."""
        return self._own().socket.fileno()

    # --- asking ---

    def _own(self) -> _engine.Channel:
        _engine.check_owner(self._pid)
        if self._channel is None or self._is_closed:
            raise EngineError("the jar is closed")
        return self._channel

    def _ask(self, request_frame: bytes, fds: Sequence[int]) -> _engine.Channel:
        """Send a request on the jar's channel, with a channel of its own for the answer."""
        jar = self._own()
        _engine.check_size(request_frame)
        ours, theirs = _engine.pair()
        channel = _engine.Channel(jar.engine, ours, jar)
        try:
            with self._lock:
                self._own()
                self._send_whole(jar.socket, request_frame, [theirs.fileno(), *fds])
        except ConnectionError:
            channel.close()
            raise jar.lost() from None
        except BaseException:
            channel.close()
            raise
        finally:
            theirs.close()
        return channel

    def _send_whole(self, sock: socket.socket, data: bytes, fds: Sequence[int]) -> None:
        """After half a frame the engine could not understand the rest of the channel, so the jar is given up then."""
        with shortage_is_engine_error("send the request to the engine"):
            sent = _engine.send_rights(sock, data, _engine.rights(fds), socket.MSG_NOSIGNAL)
        if sent < len(data):
            try:
                sock.sendall(memoryview(data)[sent:], socket.MSG_NOSIGNAL)
            except BaseException:
                self._is_closed = True
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                raise

    def _request(self, args: Union[Args, str], options: Dict[str, Any], is_spawn: bool = False, detach: bool = False) -> Request:
        """A run as it was asked for; the jar's own function answers for it where it has none."""
        if self._on_ask is not None:
            options.setdefault("on_ask", self._on_ask)
        return Request(args, options, is_spawn=is_spawn, detach=detach)

    def _join(self, request: Request) -> _engine.Channel:
        """Run it in this jar."""
        return self._ask(request.join_frame(self._environ), request.fds)

    async def _join_async(self, request: Request) -> _engine.Channel:
        return self._join(request)

    # --- runs ---

    @overload
    def run(
        self, args: Union[Args, str], *, text: Literal[True] = ..., check: bool = ..., detach: bool = ..., **options: Unpack[RunInJarOptions]
    ) -> Result[str]: ...

    @overload
    def run(
        self, args: Union[Args, str], *, text: Literal[False], check: bool = ..., detach: bool = ..., **options: Unpack[RunInJarOptions]
    ) -> Result[bytes]: ...

    @overload
    def run(
        self, args: Union[Args, str], *, text: bool, check: bool = ..., detach: bool = ..., **options: Unpack[RunInJarOptions]
    ) -> Result[Any]: ...

    @shows_jar_options
    def run(self, args: Union[Args, str], *, check: bool = False, detach: bool = False, **options: Any) -> Any:
        """belljar.run() in this jar.

        detach: what the command has started goes on in the jar after its end, held to the run's limits but for its time. It ends
        with the jar, or by its number in processes(); nobody reads what it writes to its streams from then on.
        """
        self._own()
        return finish(self._request(args, options, detach=detach), self._join, check)

    @overload
    async def run_async(
        self, args: Union[Args, str], *, text: Literal[True] = ..., check: bool = ..., detach: bool = ..., **options: Unpack[RunInJarOptions]
    ) -> Result[str]: ...

    @overload
    async def run_async(
        self, args: Union[Args, str], *, text: Literal[False], check: bool = ..., detach: bool = ..., **options: Unpack[RunInJarOptions]
    ) -> Result[bytes]: ...

    @overload
    async def run_async(
        self, args: Union[Args, str], *, text: bool, check: bool = ..., detach: bool = ..., **options: Unpack[RunInJarOptions]
    ) -> Result[Any]: ...

    @shows_jar_options
    async def run_async(self, args: Union[Args, str], *, check: bool = False, detach: bool = False, **options: Any) -> Any:
        """belljar.run_async() in this jar."""
        from ._async import finish_async

        self._own()
        return await finish_async(self._request(args, options, detach=detach), self._join_async, check)

    @shows_jar_options
    def spawn(self, args: Union[Args, str], **options: Unpack[SpawnInJarOptions]) -> Process:
        """belljar.spawn() in this jar."""
        self._own()
        return Process(self._request(args, {**options}, is_spawn=True), self._join)

    @shows_jar_options
    async def spawn_async(self, args: Union[Args, str], **options: Unpack[SpawnInJarOptions]) -> AsyncProcess:
        """belljar.spawn_async() in this jar."""
        from ._async import begin_async

        self._own()
        return await begin_async(self._request(args, {**options}, is_spawn=True), self._join_async)

    # --- calls ---

    def _call(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any]) -> Call:
        from ._call import Call, split_options
        from ._cold import JarBackend

        self._own()
        if self._backend is None:
            self._backend = JarBackend(self, self._policy, self._keys)
        options = split_options(fn, kwargs, "Jar").answered_by(self._on_ask)
        return Call(fn, args, kwargs, options, self._backend.paths)

    def call(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """belljar.call() in this jar: over its files, and each time in a fresh interpreter.

        It imports from those directories of the caller's sys.path that this jar shows read-only; other functions are sent by
        value.
        """
        call = self._call(fn, args, kwargs)
        call.begin(self._backend)
        return call.finish(may_be_early=False)

    async def call_async(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """belljar.call_async() in this jar."""
        call = self._call(fn, args, kwargs)
        await call.begin_async(self._backend)
        return await call.finish_async(may_be_early=False)

    # --- what keeps state ---

    def python(self, **options: Any) -> Interpreter:
        """A Python process in this jar that keeps its variables between cells. options: those of Interpreter that a run has."""
        from ._interpreter import Interpreter

        self._own()
        return Interpreter._in_jar(self, **{"on_ask": self._on_ask, **options})

    async def python_async(self, **options: Any) -> Interpreter:
        """python() without holding up the loop."""
        from ._loops import run_blocking

        return await run_blocking(lambda: self.python(**options), lambda made: made.close())

    def shell(self, *, on_ask: Optional[OnAsk] = None, **options: Unpack[RunKeys]) -> Shell:
        """A shell in this jar that keeps its directory, variables, functions and background jobs between commands. on_ask: instead
        of the jar's own."""
        from ._shell import Shell

        self._own()
        return Shell(self, on_ask or self._on_ask, **options)

    async def shell_async(self, *, on_ask: Optional[OnAsk] = None, **options: Unpack[RunKeys]) -> Shell:
        """shell() without holding up the loop."""
        from ._loops import run_blocking

        return await run_blocking(lambda: self.shell(on_ask=on_ask, **options), lambda made: made.close())

    # --- its layer: see JarWorkspace ---

    def _take_opened(self, opened: Dict[str, Any]) -> None:
        self._facts = opened
        self._backend = None  # what it kept in the jar is gone

    def _twin(self: Self, workspace: Optional[str]) -> Self:
        made = type(self).__new__(type(self))
        keys = {**self._keys, "workspace": "cow", "workspace_name": workspace}
        if workspace is None:
            del keys["workspace_name"]
        made._policy, made._keys, made._environ, made._ttl = self._policy, keys, self._environ, self._ttl
        made._on_ask, made._backend = self._on_ask, None
        made._open(open_frame(made._policy, keys, made._environ, ttl=made._ttl))
        return made

    # --- files: see JarFiles ---

    def _open_file(self, path: Path, op: str) -> int:
        """A descriptor of a file in the jar; OSError if it cannot be opened."""
        return self._do(open_steps(path, op))

    def _limits(self) -> Dict[str, Any]:
        return dict(self._facts.get("limits") or {})

    def _jar_end(self) -> socket.socket:
        copy = self._own().socket.dup()
        _engine.hold(copy)
        return copy

    # --- the end ---

    def _begin_close(self) -> bool:
        """Tell the engine to take the jar down; False if somebody has done so already."""
        _engine.check_owner(self._pid)
        assert self._channel is not None
        with self._lock:
            is_first = not self._is_closed
            self._is_closed = True
        if is_first:
            self._channel.send(_wire.CLOSE)
        return is_first

    def _take_end(self, data: bytes) -> None:
        for kind, payload in self._end.feed(data):
            if kind in (_wire.CLOSED, _wire.FAILED) and payload:
                self._risky = list(_wire.parse(payload).get("risky") or [])

    def close(self) -> None:
        """Kill what is left in the jar and wait until it is gone; then `risky` is known. May be called again."""
        if self._channel is None:
            return
        self._begin_close()
        self._channel.drain(self._take_end)
        self._channel.close()

    async def close_async(self) -> None:
        """close() for event loops."""
        await self._close_async()

    async def _close_async(self) -> None:
        from ._async import Reader

        if self._channel is None or not self._begin_close():
            return
        reader = Reader(self._channel)
        try:
            data = await reader.read()
            while data:
                self._take_end(data)
                data = await reader.read()
            self._channel.close()
        except BaseException:
            self._channel.kill()
            raise

    def __del__(self) -> None:
        channel = getattr(self, "_channel", None)
        if channel is None or self._is_closed or not _engine.is_ours(self._pid):
            return
        warnings.warn(f"{self!r} was never closed; it is closed now", ResourceWarning, source=self)
        channel.kill()

    def __repr__(self) -> str:
        return f"<belljar.Jar {'closed' if self._is_closed else self.rung}>"
