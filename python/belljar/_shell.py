# SPDX-License-Identifier: Apache-2.0
"""Shell: a shell in a jar that keeps its directory, variables, functions and background jobs between commands.

It is the shell itself, interactive but without a terminal, which reads its commands from a pipe that only we write. A command is one
word of that text, quoted, for `eval`: whatever is in it, it cannot end early or take in what follows. The exit status comes on a
descriptor of its own, which commands do not inherit, so no output can be taken for it.

Interactive, because only then does an interrupt leave the whole command and keep the shell. bash reports in a second line; other
shells throw away what they have read when something goes wrong, and report when they ask for the next command ($PS1).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import re
import signal
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import _engine, _paths
from ._errors import (
    BelljarError,
    CallEnded,
    EngineError,
    PolicyError,
    ResultError,
    RunError,
    RunTimeout,
    public,
    shortage_is_engine_error,
)
from ._kept import READ_BYTES, Deadline, Kept, KeptRun, Poll, Settings, Steps, Streams, drive
from ._keys import RUN_KEYS
from ._policy import normal_keys
from ._request import join_frame
from ._result import Result, describe

if TYPE_CHECKING:
    from ._jar import Jar
    from ._keys import OnAsk

START_SECONDS = 30.0
# What the engine may take to deliver an interrupt, before the next command could be hit by it.
SETTLE_SECONDS = 0.05
# Room for one command.
SCRIPT_BYTES = 1 << 20
F_SETPIPE_SZ, F_GETPIPE_SZ = 1031, 1032
STATUS = re.compile(rb"([0-9]{1,10}) ([0-9]{1,3})( bash| sh)?\n")
MAX_STATUS_BYTES = 64

# bash if there is one. Its words about the terminal that is missing go to the engine.
_START = "command -v bash >/dev/null 2>&1 && exec bash --noprofile --norc --noediting -i; exec /bin/sh -i"
# Descriptors 3, 4 and 5 are the status, stdout and stderr. The last words say that all is set up, and which shell it is.
_INIT = r"""
if [ -n "${BASH_VERSION-}" ]; then eval 'exec 99>&3 3>&- 1>&4 4>&- 2>&5 5>&-'; else exec 9>&3 3>&- 1>&4 4>&- 2>&5 5>&-; fi
if [ -n "${BASH_VERSION-}" ]; then unset HISTFILE; set +o history; set +H; PROMPT_COMMAND='PS1= PS2='; fi
_belljar_status() { return "$1"; }
if [ -n "${BASH_VERSION-}" ]; then eval 'command printf "0 0 bash\n" >&99'; else command printf '0 0 sh\n' >&9; fi
if [ -z "${BASH_VERSION-}" ]; then PS1='$(command printf "%d %d\n" "$_belljar_number" "$?" >&9)'; _belljar_number=0; fi
"""


@public
@dataclasses.dataclass(frozen=True)
class ShellResult:
    """What came of a command.

    outcome: "exited"; "timeout", it took longer than it may; "interrupted", by interrupt(); "ended", the shell is gone with it.
    exit_code: as the shell has it in $?; None if there is none. state_lost: the shell is gone. result: how its run ended, then.
    risky: what the command changed that other programs execute or obey, as Result.risky; with what else in the jar has left meanwhile.
    """

    stdout: str
    stderr: str
    exit_code: Optional[int]
    outcome: str
    truncated: bool = False
    state_lost: bool = False
    result: Optional[Result[Any]] = None
    risky: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the command came to its end with exit status 0."""
        return self.outcome == "exited" and self.exit_code == 0

    @property
    def returncode(self) -> int:
        """The exit status; that of the shell, if it has ended."""
        if self.exit_code is not None:
            return self.exit_code
        return self.result.returncode if self.result is not None else -int(signal.SIGKILL)

    def check(self) -> "ShellResult":
        """Itself, if it is ok; else RunTimeout or RunError is raised."""
        if self.ok:
            return self
        made = RunTimeout if self.outcome == "timeout" else RunError
        text = f"exit status {self.exit_code}" if self.outcome == "exited" else self.outcome
        raise made(f"the command ended with {text}").with_(result=self)


def quote(command: str) -> str:
    """One word for a shell, whatever is in it."""
    return "'" + command.replace("'", "'\\''") + "'"


@public
class Shell(Kept):
    """A shell in a jar; Jar.shell() opens it. bash if the jar has it, else sh. Directory, variables, functions and background jobs
    stay from command to command.

    A context manager, also for `async with`; all of it may be used from any thread, and a second command waits for the first.
    """

    def __init__(self, jar: "Jar", on_ask: Optional[OnAsk] = None, **keys: Any) -> None:
        keys = normal_keys(keys)
        for name in keys:
            if name not in RUN_KEYS:
                raise PolicyError(f"shell() does not take {name!r}: it is fixed for the jar, or unknown")
        self._settings = Settings(keys, {**_paths.keys_of(jar._policy), **jar._keys})
        self._init_kept()
        self._jar = jar
        self._last_status = 0
        self._is_bash = False
        self._settle_until = 0.0
        self._data = b""
        self._files: List[Any] = []
        self._open(jar, keys, on_ask)
        try:
            drive(self._init_steps())
        except BaseException:
            drive(self._leave_steps())
            raise
        self._is_closed = False

    def _open(self, jar: "Jar", keys: Dict[str, Any], on_ask: Optional[OnAsk]) -> None:
        theirs: List[int] = []
        self._streams = Streams(self._settings.output)
        try:
            with shortage_is_engine_error("make pipes for the shell"):
                script, ours_script = os.pipe()
                theirs.append(script)
                self._script = self._hold(ours_script, "wb")
                ours_status, status = os.pipe()
                theirs.append(status)
                self._status = self._hold(ours_status, "rb")
            with contextlib.suppress(OSError):
                fcntl.fcntl(ours_script, F_SETPIPE_SZ, SCRIPT_BYTES)
            keys["env"] = {**(keys.get("env") or {}), "PS1": "", "PS2": ""}
            members = {"argv": ["/bin/sh", "-c", _START], "stdin": "descriptor", "started": False, "extra": 3, "cells": True, "ask": None if on_ask is None else True}
            frame = join_frame(keys, members, jar._environ)
            channel = jar._ask(frame, [*theirs, *self._streams.theirs])
            self._run = KeptRun(channel, "sh", lambda: None, on_ask)
        except BaseException:
            self._close_files()
            raise
        finally:
            self._streams.sent()
            _engine.close_all(theirs)
        self._poll = Poll([self._status.fileno(), *self._streams.fds, *self._run.question_fds])

    def _hold(self, fd: int, mode: str) -> Any:
        os.set_blocking(fd, False)
        file = open(fd, mode, buffering=0)
        _engine._held.add(file)
        self._files.append(file)
        return file

    # --- steps ---

    def _init_steps(self) -> Steps:
        assert self._run is not None
        self._write(_INIT.lstrip())
        deadline = time.monotonic() + START_SECONDS
        while True:
            yield self._poll, deadline - time.monotonic()
            found = self._read_status()
            if found is None or time.monotonic() > deadline:
                result = yield from self._run.end(0 if found else 1.0, True)
                raise CallEnded(f"the shell did not start: {describe(result) if result else 'it ended'}").with_(result=result)
            for match in found:
                if match.group(3):
                    self._is_bash = match.group(3) == b" bash"
                    return

    def _write(self, text: str) -> None:
        raw = text.encode("utf-8", "surrogateescape")
        room = fcntl.fcntl(self._script.fileno(), F_GETPIPE_SZ)
        if len(raw) > room:
            raise ValueError(f"the command takes {len(raw)} bytes, more than the {room} that a shell is given at once")
        with contextlib.suppress(OSError):  # it has gone, which the status tells
            self._script.write(raw)

    def _read_status(self) -> Optional[List[Any]]:
        """What the shell reports; None at the end. ResultError for anything else."""
        try:
            data = self._status.read(READ_BYTES)
        except OSError:
            data = b""
        if data == b"":
            return None
        self._data += data or b""
        *lines, self._data = self._data.splitlines(True) if self._data else [b""]
        if self._data.endswith(b"\n"):
            lines.append(self._data)
            self._data = b""
        found = [STATUS.fullmatch(line) for line in lines]
        if len(self._data) > MAX_STATUS_BYTES or None in found:
            raise ResultError("the shell's report is malformed: a command has written to it")
        return found

    def _text_of(self, command: str) -> str:
        """A command as the shell reads it. $? is the status of the last one."""
        fd = 99 if self._is_bash else 9
        text = f"_belljar_status {self._last_status}; eval {quote(command)} </dev/null {fd}>&-\n"
        if self._is_bash:
            return text + f'command printf "%d %d\\n" {self._number} "$?" >&{fd}\n'
        return f"_belljar_number={self._number}; {text}"

    def _run_steps(self, command: str, timeout: Any) -> Steps:
        if not isinstance(command, str):
            raise TypeError(f"a command for a shell must be text, not {type(command).__name__}")
        if "\0" in command:
            raise ValueError("embedded null byte")
        run = self._own()
        seconds = self._settings.timeout if timeout is None else self._settings.within(timeout)
        while time.monotonic() < self._settle_until:
            yield Poll([]), self._settle_until - time.monotonic()
        self._number += 1
        text = self._text_of(command)
        deadline = Deadline(seconds, self._settings.grace)
        failure: Optional[BaseException] = None
        status: Optional[int] = None
        is_late, is_there = False, True
        self._streams.begin()
        self._was_interrupted, self._is_busy = False, True
        try:
            self._write(text)
            while is_there and status is None:
                try:
                    ready = yield self._poll, deadline.left
                    yield from run.answer_steps(self._poll, ready, deadline)
                    for fd in self._streams.read(ready):
                        self._poll.remove(fd)
                    if self._status.fileno() in ready:
                        found = self._read_status()
                        is_there = found is not None
                        if not run.is_killed:
                            status = next((int(m.group(2)) for m in found or () if int(m.group(1)) == self._number), None)
                except GeneratorExit:
                    run.kill()
                    raise
                except ResultError:
                    raise
                except BaseException as error:
                    failure = failure or error
                    self._abort(deadline)
                if status is None and deadline.is_over():
                    is_late = is_late or failure is None
                    self._abort(deadline)
            self._streams.read_rest()
        except ResultError as error:
            self._why = CallEnded(f"the shell was ended: {error}")
            yield from self._leave_steps()
            raise
        finally:
            with self._state:  # nobody is about to interrupt what comes next
                self._is_busy = False
        result = None
        if status is None:
            result = yield from self._end_steps(run)
        if failure is not None:
            raise failure
        left = result.risky if result is not None else (yield from self._look_steps())
        return self._made(status, is_late, result, left)

    def _made(
        self, status: Optional[int], is_late: bool, result: Optional[Result[Any]], left: List[Dict[str, Any]]
    ) -> ShellResult:
        stdout, stderr = self._streams.text()
        outcome = "timeout" if is_late else "interrupted" if self._was_interrupted else "exited"
        if status is None:
            # `exit` in a command: the status is the shell's own.
            status = result.exit_code if result is not None else None
            outcome = outcome if is_late else "ended"
        else:
            self._last_status = status
        return ShellResult(stdout, stderr, status, outcome, self._streams.is_truncated, result is not None, result, left)

    def _end_steps(self, run: KeptRun) -> Steps:
        result = None
        try:
            result = yield from run.end(1.0, True)
        finally:
            text = describe(result) if result is not None else "it is gone"
            self._why = CallEnded(f"the shell has ended: {text}").with_(result=result)
            yield from self._leave_steps()
        return result

    def _kill_request(self) -> None:
        if self._run is not None:
            self._run.kill()

    def _signal_interrupt(self) -> None:
        if self._run is not None:
            self._settle_until = time.monotonic() + SETTLE_SECONDS
            self._run.channel.signal(signal.SIGINT)

    def _abort(self, deadline: Deadline) -> None:
        if deadline.next_stage() == 1:
            self._signal_interrupt()
        else:
            self._kill_request()

    def _close_files(self) -> None:
        for file in self._files:
            _engine._held.discard(file)
            file.close()
        self._files = []
        self._streams.close()

    def _leave_steps(self) -> Steps:
        run, self._run = self._run, None
        self._close_files()
        if run is not None:
            run.kill()
            try:
                with contextlib.suppress(BelljarError):
                    yield from run.end(0, True)
            finally:
                run.release()

    def _own(self) -> KeptRun:
        _engine.check_owner(self._pid)
        if self._is_closed:
            raise EngineError("the shell is closed")
        if self._run is None:
            assert self._why is not None
            raise CallEnded(str(self._why)).with_(result=self._why.result)
        return self._run

    # --- what callers use ---

    def run(self, command: str, *, timeout: Union[float, str, None] = None) -> ShellResult:
        """Run a command line. Whatever its exit status, nothing is raised; see ShellResult.check().

        timeout: instead of the shell's own, but no more than was given for its jar; "none" for no other limit. First the command is interrupted, and the shell stays; after the
        grace it is killed. ResultError: a command has forged its status, and the shell was ended.
        """
        with self._turns:
            result: ShellResult = drive(self._run_steps(command, timeout))
        return result

    async def run_async(self, command: str, *, timeout: Union[float, str, None] = None) -> ShellResult:
        """run() in a loop. Cancelling the task interrupts the command."""
        result: ShellResult = await self._in_loop(lambda: self._run_steps(command, timeout))
        return result

    def __repr__(self) -> str:
        return f"<belljar.Shell {'closed' if self._is_closed else 'ended' if self._run is None else 'open'}>"
