# SPDX-License-Identifier: Apache-2.0
"""The format of a call's result: CBOR with tags of our own, and the classes that a caller lists.

The format is a subset of CBOR (RFC 8949) in which every value has exactly one encoding:

| value | encoding |
|---|---|
| None, False, True | f6, f4, f5 |
| int | the shortest head; beyond 64 bits tag 2 or 3 with the fewest bytes |
| float | always 64 bits; NaN is 7ff8000000000000 |
| str | text; one that is not UTF-8 (lone surrogates): own tag STR with its bytes |
| bytes, list, dict | byte string, array, map of definite length; a dict keeps its order, which is part of its value |
| set, frozenset | tag 258, own tag: array in the order of the elements' encodings |
| UUID, date | tag 37 with 16 bytes; tag 1004 with text |
| everything else | own tags: an array of parts, or text |
| Enum, dataclass, namedtuple | own tag OBJECT: [place of the class in `types`, parts...] |
| numpy.ndarray | own tag ARRAY: [dtype, [shape...], bytes in C order] |
| large bytes, where files may be attached | own tag FILE: which one; they are used in order |

Own tags are 0xbe00 and up, with no meaning outside. Instances of listed classes are made without calling any of their code,
not even `__init__` or `__post_init__`: it would run on data that a jar chose. Who relies on its checks has to repeat them.
"""

from __future__ import annotations

import dataclasses
import decimal
import enum
import pathlib
import re
import sys
from typing import Any, List, Sequence, Tuple

# More sides than this no array has; numpy itself stops at 32 or 64, and a head holds 23.
MAX_DIMENSIONS = 23

TAG_STR = 0
TAG_TUPLE = 1
TAG_FROZENSET = 2
TAG_DATETIME = 3
TAG_TIME = 4
TAG_TIMEDELTA = 5
TAG_TIMEZONE = 6
TAG_DECIMAL = 7
TAG_PURE_POSIX_PATH = 8
TAG_PURE_WINDOWS_PATH = 9
TAG_POSIX_PATH = 10
TAG_WINDOWS_PATH = 11
TAG_OBJECT = 12
TAG_FILE = 13
TAG_ARRAY = 14

UINT, NEGATIVE, BYTES, TEXT, ARRAY, MAP = 0x00, 0x20, 0x40, 0x60, 0x80, 0xA0
FALSE, TRUE, NONE, FLOAT = 0xF4, 0xF5, 0xF6, 0xFB
HEAD_SET = b"\xd9\x01\x02"
HEAD_DATE = b"\xd9\x03\xec"
HEAD_UUID = b"\xd8\x25\x50"
NAN = b"\xfb\x7f\xf8\0\0\0\0\0\0"

# Where str(path) leads back to the path.
PATH_TAGS = {
    pathlib.PurePosixPath: TAG_PURE_POSIX_PATH,
    pathlib.PureWindowsPath: TAG_PURE_WINDOWS_PATH,
    pathlib.PosixPath: TAG_POSIX_PATH,
    pathlib.WindowsPath: TAG_WINDOWS_PATH,
}
# Its own: str() of a Decimal follows the thread's context.
DECIMAL_CONTEXT = decimal.Context(capitals=1)
# Numbers, truth values, times and texts of fixed size, in either byte order; no objects, no records.
ARRAY_DTYPE = re.compile(r"[<>|][biufcmMSU][0-9]{1,9}(?:\[[0-9]{0,6}[a-zA-Z]{1,2}\])?\Z")

_CLASS_KINDS = "Enum, dataclass and namedtuple classes"
_set_attribute = object.__setattr__


def own_head(tag: int) -> bytes:
    return bytes((0xD9, 0xBE, tag))


def type_name(cls: type) -> str:
    """As people write it: without the module for what is built in."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def array_type() -> Any:
    """numpy.ndarray if this process has it. Never imported here: what came back is no reason to."""
    return getattr(sys.modules.get("numpy"), "ndarray", None)


class Listed:
    """A class of `types`: what its instances consist of, and how to make one."""

    __slots__ = ("cls", "fields", "kind")

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.fields: Tuple[str, ...] = ()
        if not isinstance(cls, type):
            raise TypeError(f"types takes {_CLASS_KINDS}, not {cls!r}")
        if issubclass(cls, enum.Flag):
            self.kind = "flag"
        elif issubclass(cls, enum.Enum):
            self.kind = "enum"
        elif dataclasses.is_dataclass(cls):
            self.kind = "dataclass"
            self.fields = tuple(field.name for field in dataclasses.fields(cls))
        elif issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
            self.kind = "namedtuple"
            self.fields = tuple(getattr(cls, "_fields"))
        else:
            raise TypeError(f"types takes {_CLASS_KINDS}, not {cls.__module__}.{cls.__qualname__}")

    def parts(self, value: Any) -> Sequence[Any]:
        """What is sent of an instance. AttributeError where a field was never set."""
        if self.kind == "enum":
            return (value._name_,)
        if self.kind == "flag":
            return (value._value_,)
        if self.kind == "namedtuple":
            return tuple.__getitem__(value, slice(None))
        return [getattr(value, name) for name in self.fields]

    def make(self, parts: List[Any]) -> Any:
        """An instance from what was received. Calls nothing of the class; ValueError if the parts are not its own."""
        cls = self.cls
        if self.kind == "enum":
            member = cls._member_map_.get(parts[0]) if len(parts) == 1 and type(parts[0]) is str else None
            if member is None or member._name_ != parts[0]:
                raise ValueError("no member has that name")
            return member
        if self.kind == "flag":
            return self._flag(parts)
        if len(parts) != len(self.fields):
            raise ValueError(f"it has {len(self.fields)} fields, not {len(parts)}")
        if self.kind == "namedtuple":
            return tuple.__new__(cls, parts)
        made = object.__new__(cls)
        for name, part in zip(self.fields, parts):
            _set_attribute(made, name, part)
        return made

    def _flag(self, parts: List[Any]) -> Any:
        value = parts[0] if len(parts) == 1 else None
        known = 0
        for member in self.cls._member_map_.values():
            known |= member._value_
        if type(value) is not int or value < 0 or value & ~known:
            raise ValueError("it has bits that no member has")
        made = self.cls(value)
        if type(made) is not self.cls or made._value_ != value:
            raise ValueError("no member has that value")
        return made
