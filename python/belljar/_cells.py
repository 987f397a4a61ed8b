# SPDX-License-Identifier: Apache-2.0
"""What came of a cell, as your program sees it; and the check that an answer from the jar says just that."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _cell
from ._codec import Codec
from ._errors import CallEnded, CallError, CallTimeout, ResultError, public
from ._result import Result


_codec = Codec()


@public
@dataclasses.dataclass(frozen=True)
class CellError:
    """Why a cell did not come to its end.

    kind: "raised", an exception; "timeout", it took longer than it may; "interrupted", by interrupt(); "ended", its process is gone.
    state_lost: the variables are gone; reset() begins afresh. result: how the run ended, if it did.
    """

    kind: str
    type_name: str
    message: str
    traceback: str
    state_lost: bool = False
    result: Optional[Result] = None


@public
@dataclasses.dataclass(frozen=True)
class Cell:
    """What came of a cell.

    value: that of its last expression, if that is data; else, and then is_data is false, its repr(). display: what was shown, each
    a dict from MIME type to text, bytes or JSON data. truncated: there was more than the cap allows. A cap that was given (`output`)
    holds what is printed, the value, the texts of an error, and what is shown, each by itself: of a value that is bigger the
    beginning of its repr() is left, and what is shown beyond it is left out. risky: what it changed
    that other programs execute or obey, as Result.risky; with what else in the jar has left meanwhile.
    """

    value: Any = None
    stdout: str = ""
    stderr: str = ""
    error: Optional[CellError] = None
    display: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    is_data: bool = True
    truncated: bool = False
    number: int = 0
    risky: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    def check(self) -> "Cell":
        """The cell itself; CallError, CallTimeout or CallEnded if it has an error."""
        error = self.error
        if error is None:
            return self
        text = f"cell {self.number}: {error.type_name}: {error.message}"
        parts = (text, error.type_name, error.message, error.traceback)
        made = {"timeout": CallTimeout, "ended": CallEnded}.get(error.kind, CallError)(*parts)
        raise made.with_(result=error.result)


@public
class Variable(NamedTuple):
    """A variable as variables() tells it."""

    type_name: str
    text: str


# --- what an answer says ---


def malformed(why: str) -> ResultError:
    return ResultError(f"the answer is malformed: {why}")


def is_text(*values: Any) -> bool:
    return all(type(value) is str for value in values)


def check_words(words: Any) -> Tuple[str, str, str]:
    parts: Any = tuple(words.get(name) for name in ("type", "message", "traceback")) if type(words) is dict else ()
    if len(parts) != 3 or not is_text(*parts):
        raise malformed("an exception without its parts")
    kind, message, trace = parts
    return kind, message, trace


def _size(value: Any) -> int:
    """The bytes of a value as it comes from the jar; of text those of UTF-8."""
    return len(value.encode("utf-8", "surrogatepass")) if type(value) is str else len(_codec.encode(value))


def _head(text: str, most: int) -> str:
    """The beginning of a text that is too long: it cuts no character in two."""
    data = text[:most].encode("utf-8", "surrogatepass")
    return text[:most] if len(data) <= most else data[:most].decode("utf-8", "ignore")


def check_value(value: Any, most: Optional[int]) -> Any:
    """The value; ResultError if it is bigger than that."""
    if most is not None and _size(value) > most:
        raise ResultError(f"the value has {_size(value)} bytes: the limit of output allows {most}")
    return value


def held_cell(cell: Cell, most: int) -> Cell:
    """The same with no more in each of its parts than the limit of output allows."""
    changes: Dict[str, Any] = {}
    if cell.value is not None and _size(cell.value) > most:
        text = cell.value if type(cell.value) is str else repr(cell.value)
        changes.update(value=_head(text, most), is_data=False)
    left, display = most, []
    for shown in cell.display:
        if _size(shown) <= left:
            left -= _size(shown)
            display.append(shown)
    if len(display) < len(cell.display):
        changes["display"] = display
    error = cell.error
    if error is not None and max(_size(error.message), _size(error.traceback), _size(error.type_name)) > most:
        # The end of a traceback says what happened.
        trace = error.traceback if _size(error.traceback) <= most else _head(error.traceback[::-1], most)[::-1]
        words = {"type_name": _head(error.type_name, most), "message": _head(error.message, most), "traceback": trace}
        changes["error"] = dataclasses.replace(error, **words)
    return dataclasses.replace(cell, truncated=True, **changes) if changes else cell


def cell_parts(parts: List[Any], kinds: Tuple[str, str], late: str) -> Tuple[Any, bool, Optional[CellError], List[Any]]:
    """Value, whether it is data, error and displays. ResultError if the answer is not that of a cell.

    kinds: the kind of an error, and of a KeyboardInterrupt. late: what is said of a cell that was interrupted and gave no reason of its own.
    """
    if len(parts) == 3:
        parts = [*parts, None, None, []]
    if len(parts) != 6 or parts[1] != "cell" or type(parts[2]) is not int:
        raise malformed("it is not that of a cell")
    _, _, state, value, words, display = parts
    if state not in (_cell.NOTHING, _cell.DATA, _cell.TEXT) or (state == _cell.TEXT and not is_text(value)):
        raise malformed("it is not that of a cell")
    if type(display) is not list or not all(
        type(shown) is dict and is_text(*shown, shown.get("text/plain")) for shown in display
    ):
        raise malformed("a display without its parts")
    error = None
    if words is not None:
        type_name, message, trace = check_words(words)
        error = CellError(kinds[type_name == "KeyboardInterrupt"], type_name, message or late, trace)
    elif late:
        error = CellError("timeout", "TimeoutError", late, "")
    return value, state != _cell.TEXT, error, display
