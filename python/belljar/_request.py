# SPDX-License-Identifier: Apache-2.0
"""What is asked of the engine, as frames: the one place that writes the JSON of runs and jars.

`Request` is a command as run() and spawn() were told it, with the descriptors that go with it. The functions at the end write
the frames; calls use them too. Nothing is decided here: what a policy key means, the engine knows.
"""

from __future__ import annotations

import codecs
import fcntl
import functools
import inspect
import os
import sys
from json.encoder import encode_basestring_ascii
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from . import _wire
from ._errors import shortage_is_engine_error
from ._keys import OnAsk, OnEvent, OnOutput, Stdin
from ._policy import PolicyLike, encode, normal_keys, wire_form

PIPE = -1
DEVNULL = -3

Args = Sequence[Union[str, bytes, "os.PathLike[str]"]]
Function = TypeVar("Function", bound=Callable[..., Any])

# What a pipe takes at once; more goes into a file in memory, so that no thread has to feed the command.
PIPE_BYTES = 64 << 10

_IS_UTF8 = sys.getfilesystemencoding().lower().replace("-", "") == "utf8"
_environ_data: Optional[Dict[bytes, bytes]] = None
_environ_text = "[]"


# --- what a command is told ---


def wire_text(word: Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]) -> str:
    """A word as the engine reads it: UTF-8, each stray byte a lone surrogate."""
    raw = os.fsencode(word)
    if b"\0" in raw:
        raise ValueError("embedded null byte")
    return raw.decode("utf-8", "surrogateescape")


def words_of(args: Union[Args, str], shell: bool) -> List[str]:
    """The words of the command, as they are sent."""
    if isinstance(args, (str, bytes)):
        if not shell:
            raise TypeError("args must be a list of words; a command line for the shell needs shell=True")
        return [wire_text(args)]
    if shell:
        raise TypeError("with shell=True, args must be one string")
    if isinstance(args, os.PathLike):
        raise TypeError("args must be a list of words")
    words = [wire_text(word) for word in args]
    if not words:
        raise ValueError("args is empty: there is nothing to run")
    return words


def input_descriptor(data: Union[bytes, str]) -> int:
    """A descriptor from which the command reads the data, written already, so that nobody has to feed it.

    A pipe if it takes all of the data; else a file in memory, sealed so that the jar cannot change it.
    """
    raw = memoryview(data.encode("utf-8") if isinstance(data, str) else data).cast("B")
    if len(raw) <= PIPE_BYTES:
        reader, writer = os.pipe()
        try:
            os.set_blocking(writer, False)
            if not raw or os.write(writer, raw) == len(raw):
                return reader
        except BlockingIOError:
            pass
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        os.close(reader)
    fd = os.memfd_create("belljar-input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        done = 0
        while done < len(raw):
            done += os.write(fd, raw[done : done + (64 << 20)])
        os.lseek(fd, 0, os.SEEK_SET)
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(fd)
        raise
    return fd


class Request:
    """One command, ready to be sent: `with request:` around the sending closes what is not needed afterwards.

    is_spawn: the caller uses the streams while the command runs, and wants to know when it has started. Such a run has no time
    limit, and its output is not kept, unless that is asked for.
    """

    __slots__ = (
        "args",
        "text",
        "errors",
        "is_captured",
        "on_output",
        "on_event",
        "on_ask",
        "published",
        "fds",
        "stdin",
        "stdout",
        "stderr",
        "_made",
        "_run",
        "_policy",
        "_keys",
    )

    def __init__(self, args: Union[Args, str], options: Mapping[str, Any], *, is_spawn: bool = False, detach: bool = False) -> None:
        self.published: Dict[int, int] = {}  # filled in when the command has started
        self.fds: List[int] = []
        self.stdin: Optional[int] = None
        self.stdout: Optional[int] = None
        self.stderr: Optional[int] = None
        self._made: List[int] = []
        self._run: Dict[str, Any] = {"started": is_spawn, "open_ended": is_spawn}
        try:
            self._read_options(args, **options)
            if detach:
                self._detach()
        except BaseException:
            self.abandon()
            raise

    def _read_options(
        self,
        args: Union[Args, str],
        *,
        shell: bool = False,
        input: Optional[Union[bytes, str]] = None,
        stdin: Stdin = None,
        text: bool = True,
        errors: str = "replace",
        stderr_to_stdout: bool = False,
        pty: bool = False,
        capture: Optional[bool] = None,
        on_output: Optional[OnOutput] = None,
        on_event: Optional[OnEvent] = None,
        on_ask: Optional[OnAsk] = None,
        policy: PolicyLike = None,
        **keys: Any,
    ) -> None:
        """The signature of run() and spawn(), and of their likes: @shows_options copies it from here."""
        self.args = words_of(args, bool(shell))
        self.text, self.errors, self.on_output, self.on_event = bool(text), errors, on_output, on_event
        self.on_ask = on_ask
        for name, callback in (("on_output", on_output), ("on_event", on_event), ("on_ask", on_ask)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} must be a function, not {type(callback).__name__}")
        self._policy, self._keys = policy, normal_keys(keys)
        if errors != "replace":
            codecs.lookup_error(errors)
        is_spawn = self._run["started"]
        self.is_captured = not is_spawn if capture is None else bool(capture)
        has_stdin = self._take_stdin(stdin, input, may_pipe=is_spawn)
        sink = "frames" if on_output is not None else "pipes" if is_spawn else None
        if sink == "pipes":
            self.stdout, self.stderr = self._pipe_out(), self._pipe_out()
        self._run.update(
            argv=self.args,
            shell=bool(shell),
            stdin="descriptor" if has_stdin else None,
            pty=bool(pty),
            sink=sink,
            merge=bool(stderr_to_stdout),
            capture=self.is_captured,
            events=on_event is not None,
            ask=True if on_ask is not None else None,
        )

    def _detach(self) -> None:
        """What the command starts goes on after its end."""
        if self._run["pty"]:
            raise ValueError("detach=True and pty=True do not go together: the terminal ends with the command")
        self._run["detach"] = True

    def _take_stdin(self, stdin: Stdin, input: Optional[Union[bytes, str]], may_pipe: bool) -> bool:
        if input is not None:
            if stdin is not None:
                raise ValueError("stdin and input may not both be given")
            try:
                isinstance(input, str) or memoryview(input)
            except TypeError:
                raise TypeError(f"input must be text or bytes, not {type(input).__name__}") from None
            with shortage_is_engine_error("hold the command's input"):
                self._attach(input_descriptor(input))
            return True
        if stdin is None or stdin is False:
            return False
        if not isinstance(stdin, int):
            if not hasattr(stdin, "fileno"):
                kind = type(stdin).__name__
                raise TypeError(f"stdin must be a descriptor or a file, not {kind}; what the command shall read is input=")
            self.fds.append(stdin.fileno())
            return True
        if stdin == DEVNULL:
            return False
        if stdin == PIPE:
            if not may_pipe:
                raise ValueError("stdin=PIPE is for spawn(); use input= here")
            with shortage_is_engine_error("make a pipe for the command's input"):
                reader, self.stdin = os.pipe()
            self._attach(reader)
            return True
        if stdin < 0:
            raise ValueError(f"stdin={stdin} is not a descriptor")
        os.fstat(stdin)
        self.fds.append(stdin)
        return True

    def _attach(self, fd: int) -> None:
        self.fds.append(fd)
        self._made.append(fd)

    def _pipe_out(self) -> int:
        with shortage_is_engine_error("make a pipe for the command's output"):
            reader, writer = os.pipe()
        self._attach(writer)
        return reader

    def run_frame(self) -> bytes:
        """Run it in a jar of its own."""
        return run_frame(self._policy, self._keys, self._run)

    def join_frame(self, jar_environ: Optional[str]) -> bytes:
        """Run it in a jar that was opened with this environment."""
        if self._policy is not None:
            self._keys["policy"] = self._policy  # which the engine refuses, in its own words
        return join_frame(self._keys, self._run, jar_environ)

    def __enter__(self) -> Request:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: object, trace: object) -> None:
        """`with request:` sends it: afterwards the descriptors are the engine's, or, after an exception, nobody's."""
        self.close() if kind is None else self.abandon()

    def close(self) -> None:
        """The descriptors were sent."""
        while self._made:
            os.close(self._made.pop())

    def abandon(self) -> None:
        """There will be no run: close our ends of the streams too."""
        self.close()
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd is not None:
                os.close(fd)
        self.stdin = self.stdout = self.stderr = None


_OPTIONS = list(inspect.signature(Request._read_options).parameters.values())[2:]


def shows_options(function: Function, has_policy: bool = True) -> Function:
    """Have help() and inspect.signature() show the keywords of a run, where the function itself says `**options`."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    shared = [parameter for parameter in _OPTIONS if has_policy or parameter.name != "policy"]
    shown: Any = function
    shown.__signature__ = signature.replace(parameters=[*own, *shared])
    return function


def shows_jar_options(function: Function) -> Function:
    """The same for runs in a jar, whose policy is fixed."""
    return shows_options(function, has_policy=False)


# --- frames ---


def environ_text() -> str:
    """The environment as a JSON list. It seldom changes, so the last one is kept beside what it was made from."""
    global _environ_data, _environ_text
    data = getattr(os.environ, "_data", None)
    if type(data) is not dict or not _IS_UTF8:
        return encode([wire_text(f"{name}={value}") for name, value in os.environ.items()])
    if data != _environ_data:
        copy = dict(data)
        text = encode([(name + b"=" + value).decode("utf-8", "surrogateescape") for name, value in copy.items()])
        _environ_data, _environ_text = copy, text
        return text
    return _environ_text


@functools.lru_cache(maxsize=None)
def prefixes_text() -> Optional[str]:
    """Where this interpreter and its library are, as a JSON list; None for the system's, which every jar shows."""
    found = {wire_text(os.path.abspath(path)) for path in (sys.prefix, sys.base_prefix)}
    found -= {"/", "/usr", "/usr/local"}
    return encode(sorted(found)) if found else None


def current_directory() -> Optional[str]:
    """None if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _json(value: Any) -> str:
    """As encode(), but quick for what most members are."""
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is list:
        return f"[{','.join(map(_json, value))}]"
    return encode(value)


def _json_members(members: Mapping[str, Any]) -> str:
    """Without braces, and without members that are None: the engine has defaults."""
    return ",".join([f'"{name}":{_json(value)}' for name, value in members.items() if value is not None])


def json_frame(kind: int, members: Mapping[str, Any], **texts: Optional[str]) -> bytes:
    """A frame with a JSON object: the version, the members, and those whose value is JSON text already."""
    text = _json_members({"version": _wire.VERSION, **members})
    for name, value in texts.items():
        if value:
            text += f',"{name}":{value}'
    return _wire.frame(kind, f"{{{text}}}".encode("ascii"))


def _policy_frame(
    kind: int, policy: PolicyLike, keys: Mapping[str, Any], environ: Optional[str], run: Optional[str] = None, **more: Any
) -> bytes:
    """RUN or OPEN; environ: as environ_text() has it, None for that of now."""
    cwd = current_directory()
    policy_text, base = wire_form(policy, cwd)
    members = {"base": base, "keys": keys or None, "cwd": cwd, **more}
    # Calls name their interpreter in the policy: it may be another one.
    prefixes = None if "zygote" in more else prefixes_text()
    return json_frame(kind, members, policy=policy_text, environ=environ or environ_text(), prefixes=prefixes, run=run)


def run_frame(policy: PolicyLike, keys: Mapping[str, Any], run: Mapping[str, Any]) -> bytes:
    """A run in a jar of its own; run: the members of `run` in docs/protocol.md. Its own keys cannot raise a limit of `keys`."""
    return _policy_frame(_wire.RUN, policy, keys, None, f"{{{_json_members(run)}}}")


def open_frame(policy: PolicyLike, keys: Mapping[str, Any], environ: Optional[str] = None, **more: Any) -> bytes:
    """A jar for many runs, or for calls."""
    return _policy_frame(_wire.OPEN, policy, keys, environ, **more)


def check_frame(policy: PolicyLike, keys: Mapping[str, Any]) -> bytes:
    """The question whether a jar can have this policy and these keys."""
    return _policy_frame(_wire.ASK, policy, keys, None, what="policy")


def join_frame(keys: Mapping[str, Any], run: Mapping[str, Any], jar_environ: Optional[str]) -> bytes:
    """A run in a jar. The environment is only sent if it is not the one that the jar was opened with."""
    environ = environ_text()
    return json_frame(_wire.JOIN, {"keys": keys or None, **run}, environ=None if environ == jar_environ else environ)
