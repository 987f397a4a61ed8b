# SPDX-License-Identifier: Apache-2.0
"""From the arguments of a Python call to a request: one frame, and the descriptors that go with it.

Nothing is decided here. What a policy key means, the engine knows; this file only refuses what cannot be said to it.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import sys
from json.encoder import encode_basestring_ascii
from typing import IO, Any, Callable, Dict, List, Optional, Sequence, Union

from . import _wire
from ._errors import shortage_is_engine_error
from ._policy import PolicyLike, encode, rename_cwd, wire_form

quote = encode_basestring_ascii

PIPE = -1
DEVNULL = -3

Args = Sequence[Union[str, bytes, "os.PathLike[str]"]]
OnOutput = Callable[[str, bytes], object]
Stdin = Union[int, IO[Any], None]

# What a pipe takes at once; more goes into a file in memory, so that no thread has to feed the command.
PIPE_BYTES = 64 << 10

_IS_UTF8 = sys.getfilesystemencoding().lower().replace("-", "") == "utf8"
_environ_data: Optional[Dict[bytes, bytes]] = None
_environ_text = "[]"


def wire_text(word: Union[str, bytes, "os.PathLike[str]"]) -> str:
    """A word as the engine reads it: UTF-8, each stray byte a lone surrogate."""
    raw = os.fsencode(word)
    if b"\0" in raw:
        raise ValueError("embedded null byte")
    return raw.decode("utf-8", "surrogateescape")


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


def current_directory() -> Optional[str]:
    """The current directory; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


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
    """A descriptor from which the command reads the data, written already: no one has to feed it.

    A pipe if that takes all of it; else a file in memory, sealed so that the jar cannot change it.
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


class Launch:
    """One run as asked for, ready to be sent. `close()` lets go of the descriptors that were only made for sending."""

    __slots__ = ("args", "text", "errors", "is_again", "frame", "fds", "stdin", "stdout", "stderr", "_made")

    def __init__(
        self,
        args: Union[Args, str],
        *,
        shell: bool,
        input: Optional[Union[bytes, str]],
        stdin: Stdin,
        text: bool,
        errors: str,
        stderr_to_stdout: bool,
        pty: bool,
        keys: Dict[str, Any],
        policy: PolicyLike = None,
        sink: str = "none",
        is_join: bool = False,
        jar_environ: Optional[str] = None,
        is_start_told: bool = False,
        is_captured: bool = True,
        is_again: bool = False,
    ) -> None:
        self.args = words_of(args, bool(shell))
        self.is_again = is_again
        self.text = bool(text)
        self.errors = errors
        if errors != "replace":
            codecs.lookup_error(errors)
        self.fds: List[int] = []
        self._made: List[int] = []
        self.stdin: Optional[int] = None
        self.stdout: Optional[int] = None
        self.stderr: Optional[int] = None
        try:
            # Who hears of the start can write to the command then.
            has_stdin = self._take_stdin(stdin, input, may_pipe=is_start_told)
            if sink == "pipes":
                self.stdout, self.stderr = self._pipe_out(), self._pipe_out()
            source = "descriptor" if has_stdin else "null"
            run = (
                f'"argv":[{",".join(map(quote, self.args))}],"shell":{_flag(shell)},"stdin":"{source}","pty":{_flag(pty)},'
                f'"sink":"{sink}","merge":{_flag(stderr_to_stdout)},"capture":{_flag(is_captured)},'
                f'"started":{_flag(is_start_told)},"again":{_flag(is_again)}'
            )
            rename_cwd(keys)
            if is_join:
                environ = environ_text()
                self.frame = join(run, keys, None if environ == jar_environ else environ)
            else:
                self.frame = request(_wire.RUN, policy, keys, run)
        except BaseException:
            self.abandon()
            raise

    def _take_stdin(self, stdin: Stdin, input: Optional[Union[bytes, str]], may_pipe: bool) -> bool:
        if input is not None:
            if stdin is not None:
                raise ValueError("stdin and input may not both be given")
            if not isinstance(input, str):
                memoryview(input)  # TypeError for what holds no bytes
            with shortage_is_engine_error("hold the command's input"):
                self._attach(input_descriptor(input))
            return True
        if stdin is None or stdin is False:
            return False
        if not isinstance(stdin, int):
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
            raise ValueError(f"stdin={stdin} is no descriptor")
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

    def close(self) -> None:
        """The descriptors were sent, or will never be."""
        while self._made:
            os.close(self._made.pop())

    def abandon(self) -> None:
        """The run will not be: close our ends too."""
        self.close()
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd is not None:
                os.close(fd)
        self.stdin = self.stdout = self.stderr = None


def _flag(value: object) -> str:
    return "true" if value else "false"


def request(
    kind: int,
    policy: PolicyLike,
    keys: Dict[str, Any],
    run: Optional[str] = None,
    more: str = "",
    environ: Optional[str] = None,
) -> bytes:
    """A RUN or OPEN frame; more: further members as JSON; environ: as environ_text() has it, None for that of now."""
    cwd = current_directory()
    cwd_text = encode(cwd)
    policy_text, base = wire_form(policy, cwd)
    keys_text = encode(keys) if keys else "{}"
    base_text = "null" if base is None else cwd_text if base is cwd else encode(base)
    text = (
        f'{{"version":{_wire.VERSION},"policy":{policy_text},"base":{base_text},"keys":{keys_text},'
        f'"cwd":{cwd_text},"environ":{environ or environ_text()}' + (f',"run":{{{run}}}' if run else "") + more + "}"
    )
    return _wire.frame(kind, text.encode("ascii"))


def encode_words(words: Sequence[str]) -> str:
    """The members of a JSON list."""
    return ",".join(map(quote, words))


def join(run: str, keys: Dict[str, Any], environ: Optional[str]) -> bytes:
    """A JOIN frame; environ None: the jar's own is still right."""
    keys_text = encode(keys) if keys else "{}"
    environ_member = "" if environ is None else f'"environ":{environ},'
    text = f'{{"version":{_wire.VERSION},"keys":{keys_text},{environ_member}{run}}}'
    return _wire.frame(_wire.JOIN, text.encode("ascii"))
