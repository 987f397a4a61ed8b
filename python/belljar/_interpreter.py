# SPDX-License-Identifier: Apache-2.0
"""Interpreter: a Python process in a jar that keeps its variables between cells.

It is a call that does not end: a fork of a warm interpreter (_warm.py), or a fresh one in a jar that is open (_cold.py), in which
_cell.py answers requests on the socket of the call. Nothing that comes from there is trusted: an answer is data within bounds, or
the interpreter is ended with ResultError. How it ended is what the engine says.

An interrupt is a byte in a pipe that the inside has made a signal of (F_SETOWN): it reaches this interpreter and what it has
started, as Ctrl-C does, and neither its forks nor other interpreters of the jar.
"""

from __future__ import annotations

import contextlib
import keyword
import os
import stat
import threading
import time
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Union

from . import _answer, _cell, _engine, _inside, _paths
from ._answer import Answer
from ._cells import Cell, CellError, Variable, cell_parts, check_value, check_words, held_cell, is_text, malformed
from ._discard import discard
from ._errors import (
    BelljarError,
    CallEnded,
    CallError,
    CallTimeout,
    EngineError,
    ResultError,
    SendError,
    UnavailableError,
    public,
)
from ._host import check_keys
from ._interpreter_link import CODEC, INTERRUPT, KILL, Ends
from ._interpreter_start import JarStart, WarmStart, zygotes_for
from ._kept import Deadline, Kept, KeptRun, Poll, Settings, Steps, drive
from ._keys import parse_size
from ._loops import run_blocking
from ._policy import PolicyLike, normal_keys
from ._program import engine_path
from ._result import Result, describe

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._jar import Jar
    from ._keys import OnAsk, PolicyKeys

OnInput = Callable[[str], Union[str, Awaitable[str]]]

START_SECONDS = 120.0
# A fork's end, if its run goes on.
FORK_END_SECONDS = 0.2

# Who counts the users of a run.
_lock = threading.Lock()


class _Words(NamedTuple):
    """What came of a request: the parts of the answer, or how the process ended."""

    parts: Optional[List[Any]]
    is_late: bool
    result: Optional[Result]


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is not the name of a variable")


@public
class Interpreter(Kept):
    """A Python process in a jar that keeps its variables between cells.

    preload: modules that are loaded already. policy and keys: those of the jar; timeout, grace and output hold for each cell.
    on_input(prompt): the answer to input(). on_ask(question): as for run(), asked while a cell runs; implies ask="net". cell_memory: by how much one cell may let the data of the interpreter grow, before it
    gets a MemoryError; the jar's `memory` ends the interpreter. import_paths: as for Pool. A context manager, also for
    `async with`; all of it may be used from any thread, and a second cell waits for the first.
    """

    def __init__(
        self,
        preload: Iterable[str] = (),
        *,
        policy: PolicyLike = None,
        import_paths: Iterable[_paths.PathLike] = (),
        on_input: Optional[OnInput] = None,
        on_ask: Optional[OnAsk] = None,
        cell_memory: Union[int, str, None] = None,
        **keys: Unpack[PolicyKeys],
    ) -> None:
        if _inside.is_inside:
            raise UnavailableError("a jar cannot hold another jar")
        engine_path()  # raises if there can be no jars at all
        if isinstance(preload, str):
            raise TypeError("preload must be a list of names, not one string")
        policy_keys = _paths.keys_of(policy)
        jar_keys = normal_keys({**keys})
        settings = Settings(jar_keys, {**policy_keys, **jar_keys})
        if on_ask is not None:
            jar_keys.setdefault("ask", "net")
        if "workdir" not in jar_keys and "workdir" not in policy_keys:
            jar_keys["workdir"] = None
        check_keys(policy, jar_keys)  # before anything else reads them
        named: List[_paths.PathLike] = []
        named += [import_paths] if isinstance(import_paths, (str, os.PathLike)) else import_paths
        start = WarmStart(zygotes_for(list(preload), named, policy, policy_keys, jar_keys, on_ask is not None), on_ask)
        self._begin(start, settings, on_input, on_ask, cell_memory)

    @classmethod
    def _in_jar(
        cls,
        jar: "Jar",
        preload: Iterable[str] = (),
        *,
        on_input: Optional[OnInput] = None,
        on_ask: Optional[OnAsk] = None,
        cell_memory: Union[int, str, None] = None,
        **keys: Any,
    ) -> "Interpreter":
        """Jar.python()."""
        policy_keys = {**_paths.keys_of(jar._policy), **jar._keys}
        run_keys = normal_keys(keys)
        settings = Settings(run_keys, policy_keys)
        made = cls.__new__(cls)
        made._begin(JarStart(jar, list(preload), run_keys, on_ask), settings, on_input, on_ask, cell_memory)
        return made

    @classmethod
    async def open_async(cls, *args: Any, **options: Any) -> "Interpreter":
        """Interpreter(...) without holding up the loop."""
        return await run_blocking(lambda: cls(*args, **options), lambda made: made.close())

    def _begin(
        self, start: Any, settings: Settings, on_input: Optional[OnInput], on_ask: Optional[OnAsk], cell_memory: Any
    ) -> None:
        self._start = start
        self._settings = settings
        self._on_input = on_input
        self._on_ask = on_ask
        self._cell_memory = None if cell_memory is None else parse_size(cell_memory, "cell_memory")
        self._init_kept()
        self._is_first = True
        self._ends: Optional[Ends] = None
        drive(self._open_steps())
        self._is_closed = False

    # --- beginning and end ---

    def _open_steps(self) -> Steps:
        call, release, self._jar = self._start.start()
        assert call.channel is not None
        run = KeptRun(call.channel, "python", release, self._on_ask)
        self._run, self._is_first, self._why, self._number = run, True, None, 0
        try:
            self._ends = Ends(call._link, self._settings.output, run.question_fds)
            yield from self._await_ready()
            self._setup()
        except BaseException:
            yield from self._leave_steps()
            raise

    def _setup(self) -> None:
        assert self._ends is not None
        self._ends.request(["setup", 0], self._ends.theirs)  # if nobody takes it, the first cell tells
        self._ends.sent()

    def _await_ready(self) -> Steps:
        """The first words of the interpreter."""
        assert self._ends is not None and self._run is not None
        answer, deadline = Answer(CODEC), time.monotonic() + START_SECONDS
        try:
            while not answer.is_whole:
                yield Poll([self._ends.link.fileno()]), deadline - time.monotonic()
                if time.monotonic() > deadline:
                    raise EngineError(f"the interpreter did not start within {START_SECONDS:g} seconds")
                with contextlib.suppress(BlockingIOError):
                    if not answer.receive(self._ends.link):
                        result = yield from self._run.end(1.0, True)
                        why = describe(result) if result is not None else "it ended"
                        raise CallEnded(f"the interpreter did not start: {why}").with_(result=result)
            words = answer.value()
            if answer.kind != _answer.VALUE:
                kind, message, trace = check_words(words)
                raise CallError(f"the interpreter could not load a module: {kind}: {message}", kind, message, trace)
        finally:
            discard(answer.take_files())

    def _leave_steps(self) -> Steps:
        """Let go of the process; if nobody else uses its run, end that and wait until nothing is left."""
        ends, run = self._ends, self._run
        self._ends, self._run = None, None
        found: List[int] = []
        is_last = False
        if run is not None:
            with _lock:
                run.users -= 1
                is_last = run.users == 0
            if is_last:
                run.kill()
        if ends is not None:
            if not is_last and self._is_first and run is not None:
                # The process stays for its forks; the end of this pipe would be a signal, too.
                run.held.append(ends.take_kill())
            found = ends.close()
        if run is not None and is_last:
            try:
                with contextlib.suppress(BelljarError):
                    yield from run.end(0, True)
            finally:
                run.release()
        discard(found)

    def _own(self) -> Ends:
        _engine.check_owner(self._pid)
        if self._is_closed:
            raise EngineError("the interpreter is closed")
        if self._ends is None:
            assert self._why is not None
            raise CallEnded(f"{self._why}; reset() starts again").with_(result=self._why.result)
        return self._ends

    def _kill(self, stage: int) -> None:
        """Kill this interpreter, and no fork of it unless it comes to that."""
        ends, run = self._ends, self._run
        if run is not None and (stage > 2 or self._is_first or run.users == 1 or ends is None or not ends.signal(KILL)):
            run.kill()

    def _kill_request(self) -> None:
        self._kill(2)

    def _signal_interrupt(self) -> None:
        if self._ends is not None:
            self._ends.signal(INTERRUPT)

    def _abort(self, deadline: Deadline) -> None:
        stage = deadline.next_stage()
        if stage > 1 or self._ends is None or not self._ends.signal(INTERRUPT):
            self._kill(stage)

    # --- one request and its answer ---

    def _exchange(self, request: List[Any], fds: Sequence[int] = (), timeout: Any = None, on_input: Any = None) -> Steps:
        """Send a request and wait for its answer."""
        ends, run = self._own(), self._run
        assert run is not None
        number = request[1]
        deadline = Deadline(timeout, self._settings.grace)
        failure: Optional[BaseException] = None
        ends.streams.begin()
        self._was_interrupted, self._is_busy = False, True
        answer = Answer(CODEC)
        is_late, is_there = False, ends.request(request, fds)
        try:
            while is_there:
                try:
                    ready = yield ends.poll, deadline.left
                    yield from run.answer_steps(ends.poll, ready, deadline)
                    if ends.link.fileno() in ready:
                        is_there = self._receive(answer, ends)
                    elif ready:
                        for fd in ends.streams.read(ready):
                            ends.poll.remove(fd)
                    if answer.is_whole:
                        parts = self._parts(answer, number)
                        if deadline.stage > 1 or run.is_killed:
                            is_there = False  # it comes too late: the process is on its way out
                            continue
                        if parts[1] != "input":
                            break
                        discard(answer.take_files())
                        answer, began = Answer(CODEC), time.monotonic()
                        yield from self._answer_input(ends, parts, on_input)
                        deadline.postpone(time.monotonic() - began)
                except GeneratorExit:
                    self._kill(3)
                    raise
                except ResultError:
                    raise
                except BaseException as error:
                    # Ctrl-C, a task that was cancelled, on_input: the cell is interrupted, and the exception leaves after it.
                    failure = failure or error
                    self._abort(deadline)
                if deadline.is_over():
                    is_late = is_late or failure is None
                    self._abort(deadline)
            if is_there:
                ends.streams.read_rest(ready)
                result = None
            else:
                result = yield from self._end_steps(ends, "timeout" if is_late else "ended")
        except ResultError as error:
            yield from self._refuse_steps(error)
            raise
        finally:
            with self._state:  # nobody is about to interrupt what comes next
                self._is_busy = False
            discard(answer.take_files())
        if failure is not None:
            raise failure
        return _Words(parts if is_there else None, is_late, result)

    def _receive(self, answer: Answer, ends: Ends) -> bool:
        try:
            return answer.receive(ends.link) or answer.is_whole
        except (BlockingIOError, InterruptedError):
            return True

    def _parts(self, answer: Answer, number: int) -> List[Any]:
        """What the answer says, if it is one to this request."""
        if answer.kind != _answer.VALUE:
            raise malformed("it is not an answer of an interpreter")
        for fd in answer._files:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise malformed("a process can still change one of its files")
        parts = answer.value()
        # By their types first: comparing what came, an array for one, could do anything.
        if type(parts) is not list or list(map(type, parts[:2])) != [int, str] or len(parts) < 3 or parts[0] != number:
            raise malformed("it does not belong to the request")
        return parts

    def _answer_input(self, ends: Ends, parts: List[Any], on_input: Optional[OnInput]) -> Steps:
        prompt = parts[2]
        if not is_text(prompt):
            raise malformed("a prompt that is not text")
        words: List[Any] = ["no input", _cell.NO_INPUT]
        if on_input is not None:
            text: Any = on_input(prompt)
            if hasattr(text, "__await__"):
                text = yield text
            words = ["input", text] if isinstance(text, str) else ["no input", "on_input gave no text"]
        ends.request([words[0], words[1]])

    def _end_steps(self, ends: Ends, kind: str) -> Steps:
        """The link has ended: find out how, and let go."""
        run = self._run
        assert run is not None
        ends.streams.read_rest()
        is_fork = not self._is_first and run.users > 1
        if is_fork:
            ends.signal(KILL)  # should only the link be gone
        result = None
        try:
            result = yield from run.end(FORK_END_SECONDS if is_fork else 1.0, may_kill=not is_fork)
        finally:
            text = describe(result) if result is not None else "the process of a fork ended"
            self._why = CallEnded(f"the interpreter has ended: {text}").with_(result=result)
            yield from self._leave_steps()
        return result

    def _refuse_steps(self, error: ResultError) -> Steps:
        """What came is not an answer: whatever runs there is not what it was."""
        self._why = CallEnded(f"the interpreter was ended: {error}")
        self._kill(2)
        yield from self._leave_steps()

    # --- cells ---

    def _run_steps(self, code: str, timeout: Any, memory: Any, on_input: Optional[OnInput]) -> Steps:
        if not isinstance(code, str):
            raise TypeError(f"code must be text, not {type(code).__name__}")
        ends = self._own()
        seconds = self._settings.timeout if timeout is None else self._settings.within(timeout)
        most = self._cell_memory if memory is None else parse_size(memory, "memory")
        on_input = on_input or self._on_input
        self._number += 1
        number = self._number
        request = ["run", number, code, on_input is not None, most]
        words: _Words = yield from self._exchange(request, (), seconds, on_input)
        stdout, stderr = ends.streams.text()
        is_cut = ends.streams.is_truncated
        if words.parts is None:
            left = words.result.risky if words.result is not None else []
            return Cell(None, stdout, stderr, self._end_error(words, seconds), [], True, is_cut, number, left)
        try:
            kind = "timeout" if words.is_late else "raised"
            kinds = (kind, "interrupted" if self._was_interrupted and not words.is_late else kind)
            late = f"the cell took longer than {seconds:g} s" if words.is_late else ""
            value, is_data, error, display = cell_parts(words.parts, kinds, late)
        except ResultError as refused:
            yield from self._refuse_steps(refused)
            raise
        left = yield from self._look_steps()
        cell = Cell(value, stdout, stderr, error, display, is_data, is_cut, number, left)
        return cell if self._settings.answer is None else held_cell(cell, self._settings.answer)

    def _end_error(self, words: _Words, seconds: Optional[float]) -> CellError:
        assert self._why is not None
        if words.is_late:
            text = f"the cell took longer than {seconds:g} s, did not stop when it was interrupted, and was killed"
            return CellError("timeout", "CallTimeout", text, "", True, words.result)
        return CellError("ended", "CallEnded", str(self._why), "", True, words.result)

    def _ask_steps(self, *request: Any) -> Steps:
        """A request other than a cell: what it gives."""
        self._own()
        kind, *rest = request
        self._number += 1
        words: _Words = yield from self._exchange([kind, self._number, *rest], (), self._settings.timeout)
        if words.parts is None:
            raise CallEnded(str(self._why)).with_(result=words.result)
        word, value = words.parts[1:3]
        if word == "done":
            return value
        if word == "unknown":
            raise KeyError(rest[0])
        if word == "not data" and is_text(value):
            raise ResultError(value)
        if word == "cell" and len(words.parts) == 6:
            trouble, message, trace = check_words(words.parts[4])
            made = CallTimeout if words.is_late else CallError
            raise made(f"{kind}: {trouble}: {message}", trouble, message, trace)
        error = malformed("it does not belong to the request")
        yield from self._refuse_steps(error)
        raise error

    def _set_steps(self, name: str, value: Any) -> Steps:
        _check_name(name)
        try:
            CODEC.encode(value)
        except ResultError as error:
            raise SendError(f"cannot send the value of {name}: {error}") from None
        yield from self._ask_steps("set", name, value)

    def _get_steps(self, name: str) -> Steps:
        _check_name(name)
        return check_value((yield from self._ask_steps("get", name)), self._settings.answer)

    def _variables_steps(self) -> Steps:
        found = yield from self._ask_steps("variables")
        if type(found) is not dict or not all(
            type(name) is str and type(row) is list and len(row) == 2 and is_text(*row) for name, row in found.items()
        ):
            error = malformed("variables without their parts")
            yield from self._refuse_steps(error)
            raise error
        return {name: Variable(*row) for name, row in found.items()}

    def _fork_steps(self) -> Steps:
        self._own()
        assert self._run is not None
        link, theirs = _engine.pair()
        twin = Interpreter.__new__(Interpreter)
        twin.__dict__.update(self.__dict__)
        twin._init_kept()
        twin._run, twin._number = self._run, self._number
        twin._is_first, twin._is_closed, twin._ends = False, True, None
        with _lock:
            self._run.users += 1
        try:
            twin._ends = Ends(link, self._settings.output, self._run.question_fds)
            self._number += 1
            fds = [theirs.fileno(), *twin._ends.theirs]
            words: _Words = yield from self._exchange(["fork", self._number], fds, self._settings.timeout)
            twin._ends.sent()
            theirs.close()
            if words.parts is None:
                raise CallEnded(str(self._why)).with_(result=words.result)
            if words.parts[1] != "done":
                raise UnavailableError(f"cannot fork: {words.parts[2]}")
            yield from twin._await_ready()
        except BaseException:
            yield from twin._leave_steps()
            raise
        finally:
            theirs.close()
        twin._is_closed = False
        return twin

    def _reset_steps(self) -> Steps:
        _engine.check_owner(self._pid)
        if self._is_closed:
            raise EngineError("the interpreter is closed")
        yield from self._leave_steps()
        self._why = CallEnded("the interpreter could not be started again")
        yield from self._open_steps()

    # --- what callers use ---

    def run(
        self,
        code: str,
        *,
        timeout: Union[float, str, None] = None,
        memory: Union[int, str, None] = None,
        on_input: Optional[OnInput] = None,
    ) -> Cell:
        """Run a cell. An exception in it is the cell's `error`, not raised here; so are a limit and the end of the process.

        timeout: instead of the interpreter's own, but no more than was given for its jar; "none" for no other limit. First the cell is interrupted, and the variables stay;
        after the grace the interpreter is killed. memory: instead of cell_memory. ResultError: what came back was forged, and the
        interpreter was ended.
        """
        with self._turns:
            cell: Cell = drive(self._run_steps(code, timeout, memory, on_input))
        return cell

    async def run_async(
        self,
        code: str,
        *,
        timeout: Union[float, str, None] = None,
        memory: Union[int, str, None] = None,
        on_input: Optional[OnInput] = None,
    ) -> Cell:
        """run() in a loop. Cancelling the task interrupts the cell. on_input may be a coroutine function."""
        cell: Cell = await self._in_loop(lambda: self._run_steps(code, timeout, memory, on_input))
        return cell

    def set(self, name: str, value: Any) -> None:
        """Give a variable a value: data, as the results of calls are."""
        with self._turns:
            drive(self._set_steps(name, value))

    async def set_async(self, name: str, value: Any) -> None:
        """set() in a loop."""
        await self._in_loop(lambda: self._set_steps(name, value))

    def get(self, name: str) -> Any:
        """The value of a variable, if it is data: else ResultError. KeyError if there is none of that name."""
        with self._turns:
            return drive(self._get_steps(name))

    async def get_async(self, name: str) -> Any:
        """get() in a loop."""
        return await self._in_loop(lambda: self._get_steps(name))

    def variables(self) -> Dict[str, Variable]:
        """The variables of the cells: the type of each, and a short text."""
        with self._turns:
            found: Dict[str, Variable] = drive(self._variables_steps())
        return found

    async def variables_async(self) -> Dict[str, Variable]:
        """variables() in a loop."""
        found: Dict[str, Variable] = await self._in_loop(self._variables_steps)
        return found

    def fork(self) -> "Interpreter":
        """A second interpreter with a copy of all variables. UnavailableError if cells have started threads.

        Both are in one run: they share its limits and files, and the copy ends when the process of the original dies, but not when
        the original is closed.
        """
        with self._turns:
            twin: Interpreter = drive(self._fork_steps())
        return twin

    async def fork_async(self) -> "Interpreter":
        """fork() in a loop."""
        twin: Interpreter = await self._in_loop(self._fork_steps)
        return twin

    def reset(self) -> None:
        """Begin afresh, in a new process: also after the old one has ended."""
        with self._turns:
            drive(self._reset_steps())

    async def reset_async(self) -> None:
        """reset() in a loop; a thread does it, for a zygote may have to be made. If this is cancelled, it goes on there."""
        self._turns.check()
        await run_blocking(self.reset)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "ended" if self._ends is None else "open"
        return f"<belljar.Interpreter {state}>"
