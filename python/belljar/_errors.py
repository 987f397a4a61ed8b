# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. All can be pickled, so that they can cross process pools."""

from __future__ import annotations

import contextlib
import errno
import typing
from typing import TYPE_CHECKING, Any, Iterator, Optional, TypeVar

if TYPE_CHECKING:
    from ._result import Result

Self = TypeVar("Self", bound="BelljarError")
Class = TypeVar("Class", bound=type)


def public(cls: Class) -> Class:
    """A class that callers know by the name of the package: so it is called in tracebacks, and so it is pickled.

    The names in the annotations of its fields are those of its real module; so they are resolved here.
    """
    if "__dataclass_fields__" in vars(cls):
        cls.__annotations__ = typing.get_type_hints(cls)
    cls.__module__ = __package__ or "belljar"
    return cls


@public
class BelljarError(Exception):
    """The base of all. `result` is the Result of the run, if there was one."""

    result: Optional[Result[Any]] = None
    hint: Optional[str] = None

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  hint: {self.hint}" if self.hint else message

    def with_(self: Self, result: Any = None, hint: Optional[str] = None) -> Self:
        """The same exception with what belongs to it attached."""
        if result is not None:
            self.result = result
        if hint:
            self.hint = hint
        return self


@public
class PolicyError(BelljarError, ValueError):
    """An unknown key, a bad value, a bad policy file. Nothing ran."""


@public
class UnavailableError(BelljarError):
    """This host cannot enforce what the policy asks for. Nothing ran.

    `missing` lists what the host lacks as {"name", "why", "hint"}; `hint` says what to do about it, if that is known.
    """

    missing: "list[dict[str, Any]]" = []

    def __init__(self, message: str = "", missing: "Optional[list[dict[str, Any]]]" = None) -> None:
        super().__init__(message)
        self.missing = missing or []


@public
class StartError(BelljarError, OSError):
    """The command or its work directory was not found or cannot be used. Nothing ran. Has `errno` and `filename`."""

    def __str__(self) -> str:
        message = self.strerror or OSError.__str__(self)
        return f"{message}\n  hint: {self.hint}" if self.hint else message


@public
class EngineError(BelljarError):
    """The engine could not be started, died, or sent nonsense; or the object belongs to another process."""


# What the kernel answers when this process, its user or the host has no descriptors or memory left; nothing was started then.
_SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ETOOMANYREFS, errno.ENOSPC))


@contextlib.contextmanager
def shortage_is_engine_error(what: str) -> Iterator[None]:
    """Raise EngineError when descriptors or memory run out, with what they were for; other errors stay."""
    try:
        yield
    except OSError as error:
        if error.errno not in _SHORTAGES:
            raise
        raise EngineError(f"cannot {what}: {error}") from error


@public
class RunError(BelljarError):
    """check=True, and the command did not end with exit status 0. `result` is always there."""

    result: Result[Any]

    @property
    def returncode(self) -> int:
        """See `Result.returncode`."""
        return self.result.returncode

    @property
    def stdout(self) -> Any:
        """What was kept of the command's output."""
        return self.result.stdout

    @property
    def stderr(self) -> Any:
        """What was kept of the command's messages."""
        return self.result.stderr


@public
class RunTimeout(RunError, TimeoutError):
    """check=True, and the wall-clock limit ended the run."""


@public
class SendError(BelljarError, TypeError):
    """The function or its arguments cannot be sent into a jar. Nothing ran."""


@public
class CallError(BelljarError):
    """The function raised. `type_name`, `message` and `traceback` are those of its exception, as text."""

    type_name: Optional[str] = None
    message: Optional[str] = None
    traceback: Optional[str] = None

    def __init__(
        self,
        text: str = "",
        type_name: Optional[str] = None,
        message: Optional[str] = None,
        traceback: Optional[str] = None,
    ) -> None:
        super().__init__(text)
        self.type_name = type_name
        self.message = message
        self.traceback = traceback


@public
class CallTimeout(CallError, TimeoutError):
    """The call took longer than its wall-clock limit."""


@public
class CallEnded(CallError):
    """The function's process ended without a result: exit, signal, a limit. `result.outcome` says which."""


@public
class ResultError(CallError, TypeError):
    """The function did not return data, or too much of it; or the answer is malformed."""
