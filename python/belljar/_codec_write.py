# SPDX-License-Identifier: Apache-2.0
"""Write the result of a call as bytes, in the jar; say why a value cannot be sent.

A table leads from the type of a value to the function that writes it. The writer just stops at a value that it cannot send.
A second walk (`Refusal`) then finds out where and why, so that values that can be sent do not pay for messages.
"""

from __future__ import annotations

import datetime
import decimal
import pathlib
import struct
import sys
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Sequence, Tuple

from ._codec_types import (
    ARRAY,
    ARRAY_DTYPE,
    BYTES,
    DECIMAL_CONTEXT,
    FLOAT,
    HEAD_DATE,
    HEAD_SET,
    HEAD_UUID,
    MAP,
    MAX_DIMENSIONS,
    NAN,
    NEGATIVE,
    PATH_TAGS,
    TAG_ARRAY,
    TAG_DATETIME,
    TAG_DECIMAL,
    TAG_FILE,
    TAG_FROZENSET,
    TAG_OBJECT,
    TAG_STR,
    TAG_TIME,
    TAG_TIMEDELTA,
    TAG_TIMEZONE,
    TAG_TUPLE,
    TEXT,
    UINT,
    Listed,
    array_type,
    own_head,
    type_name,
)

if TYPE_CHECKING:
    from ._codec import Codec

_pack_double = struct.Struct(">Bd").pack


class CannotSend(Exception):
    """The value cannot be sent; `Refusal` finds out where and why."""


class Writer:
    __slots__ = ("add", "nodes", "depth", "room", "table", "files", "file_bytes", "files_left")

    def __init__(self, add: Callable[[bytes], object], codec: Codec) -> None:
        self.files: List[Any] = []
        self.file_bytes = 0
        self.files_left = 0
        self.add = add
        self.nodes = codec.max_nodes - 1
        self.depth = codec.max_depth
        self.room = codec.max_bytes
        self.table = codec.writers


_Write = Callable[[Writer, Any], None]


class WriteTable(Dict[type, _Write]):
    def __missing__(self, kind: type) -> _Write:
        if kind is array_type():
            return _write_array
        raise CannotSend

    def __contains__(self, kind: object) -> bool:
        return super().__contains__(kind) or (kind is not None and kind is array_type())


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes((major | number,))
    if number < 0x100:
        return bytes((major | 24, number))
    if number < 0x10000:
        return struct.pack(">BH", major | 25, number)
    if number < 0x100000000:
        return struct.pack(">BI", major | 26, number)
    return struct.pack(">BQ", major | 27, number)


_SMALL_INTS = {number: _head(UINT, number) for number in range(256)}
_SMALL_INTS.update({-1 - number: _head(NEGATIVE, number) for number in range(256)})
_SHORT_TEXTS = [_head(TEXT, length) for length in range(256)]


def _int_bytes(value: int) -> bytes:
    head = _SMALL_INTS.get(value)
    if head is not None:
        return head
    major, number = (UINT, value) if value >= 0 else (NEGATIVE, ~value)
    if number < 1 << 64:
        return _head(major, number)
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return (b"\xc2" if major == UINT else b"\xc3") + _head(BYTES, len(raw)) + raw


def _write_none(writer: Writer, value: None) -> None:
    writer.add(b"\xf6")


def _write_bool(writer: Writer, value: bool) -> None:
    writer.add(b"\xf5" if value else b"\xf4")


def _write_int(writer: Writer, value: int) -> None:
    raw = _int_bytes(value)
    if len(raw) > 9:
        _spend(writer, len(raw))
    writer.add(raw)


def _write_float(writer: Writer, value: float) -> None:
    writer.add(_pack_double(FLOAT, value) if value == value else NAN)


def _write_str(writer: Writer, value: str) -> None:
    try:
        raw = value.encode("utf-8")
    except UnicodeEncodeError:
        raw = value.encode("utf-8", "surrogatepass")
        writer.add(own_head(TAG_STR) + _head(BYTES, len(raw)))
    else:
        length = len(raw)
        writer.add(_SHORT_TEXTS[length] if length < 256 else _head(TEXT, length))
    writer.room -= len(raw)
    if writer.room < 0:
        raise CannotSend
    writer.add(raw)


def _write_bytes(writer: Writer, value: bytes) -> None:
    _spend(writer, len(value))
    if writer.files_left and len(value) >= writer.file_bytes:
        _attach(writer, value)
        return
    writer.add(_head(BYTES, len(value)))
    writer.add(value)


def _attach(writer: Writer, buffer: Any) -> None:
    writer.add(own_head(TAG_FILE) + _int_bytes(len(writer.files)))
    writer.files.append(buffer)
    writer.files_left -= 1


def _is_plain_array(value: Any) -> bool:
    return bool(ARRAY_DTYPE.match(value.dtype.str)) and value.dtype.itemsize > 0 and len(value.shape) <= MAX_DIMENSIONS


def _write_array(writer: Writer, value: Any) -> None:
    numpy: Any = sys.modules["numpy"]

    if not _is_plain_array(value):
        raise CannotSend
    _enter(writer, len(value.shape) + 2)
    _spend(writer, value.nbytes)
    writer.add(own_head(TAG_ARRAY) + _head(ARRAY, 3))
    _write_str(writer, value.dtype.str)
    writer.add(_head(ARRAY, len(value.shape)) + b"".join(map(_int_bytes, value.shape)))
    flat = numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)
    if writer.files_left and value.nbytes >= writer.file_bytes:
        _attach(writer, flat.data)
    else:
        writer.add(_head(BYTES, value.nbytes))
        writer.add(flat.tobytes())
    writer.depth += 1


def _spend(writer: Writer, count: int) -> None:
    writer.room -= count
    if writer.room < 0:
        raise CannotSend


def _enter(writer: Writer, nodes: int) -> None:
    writer.nodes -= nodes
    writer.depth -= 1
    if writer.nodes < 0 or writer.depth < 0:
        raise CannotSend


def _write_list(writer: Writer, value: Sequence[Any]) -> None:
    _enter(writer, len(value))
    writer.add(_head(ARRAY, len(value)))
    table = writer.table
    for item in value:
        table[type(item)](writer, item)
    writer.depth += 1


_HEAD_TUPLE = own_head(TAG_TUPLE)
_HEAD_FROZENSET = own_head(TAG_FROZENSET)


def _write_tuple(writer: Writer, value: Tuple[Any, ...]) -> None:
    writer.add(_HEAD_TUPLE)
    _write_list(writer, value)


def _write_dict(writer: Writer, value: Dict[Any, Any]) -> None:
    _enter(writer, 2 * len(value))
    writer.add(_head(MAP, len(value)))
    table = writer.table
    for key, item in value.items():
        table[type(key)](writer, key)
        table[type(item)](writer, item)
    writer.depth += 1


def _write_elements(writer: Writer, value: Iterable[Any], count: int) -> None:
    _enter(writer, count)
    outer = writer.add
    outer(_head(ARRAY, count))
    table = writer.table
    encodings = []
    # Elements are put in order after they are written, and files would not be.
    files_left, writer.files_left = writer.files_left, 0
    for item in value:
        parts: List[bytes] = []
        writer.add = parts.append
        table[type(item)](writer, item)
        encodings.append(b"".join(parts))
    writer.add, writer.files_left = outer, files_left
    encodings.sort()
    for encoding in encodings:
        outer(encoding)
    writer.depth += 1


def _write_set(writer: Writer, value: "set[Any]") -> None:
    writer.add(HEAD_SET)
    _write_elements(writer, value, len(value))


def _write_frozenset(writer: Writer, value: "frozenset[Any]") -> None:
    writer.add(_HEAD_FROZENSET)
    _write_elements(writer, value, len(value))


def _write_ints(writer: Writer, tag: int, numbers: Sequence[int], rest: int) -> None:
    """An own tag and the beginning of its array."""
    writer.add(own_head(tag) + _head(ARRAY, len(numbers) + rest) + b"".join(map(_int_bytes, numbers)))


def _write_zone_or_none(writer: Writer, zone: Any) -> None:
    if zone is None:
        writer.add(b"\xf6")
    elif type(zone) is datetime.timezone:
        _write_timezone(writer, zone)
    else:
        raise CannotSend


def _write_date(writer: Writer, value: datetime.date) -> None:
    writer.add(HEAD_DATE + b"\x6a" + value.isoformat().encode("ascii"))


def _write_datetime(writer: Writer, value: datetime.datetime) -> None:
    day = (value.year, value.month, value.day)
    _write_ints(writer, TAG_DATETIME, (*day, value.hour, value.minute, value.second, value.microsecond, value.fold), 1)
    _write_zone_or_none(writer, value.tzinfo)


def _write_time(writer: Writer, value: datetime.time) -> None:
    _write_ints(writer, TAG_TIME, (value.hour, value.minute, value.second, value.microsecond, value.fold), 1)
    _write_zone_or_none(writer, value.tzinfo)


def _write_timedelta(writer: Writer, value: datetime.timedelta) -> None:
    _write_ints(writer, TAG_TIMEDELTA, (value.days, value.seconds, value.microseconds), 0)


def _zone_parts(zone: datetime.timezone) -> Tuple[Any, ...]:
    """(offset,) or (offset, name): what it was made from."""
    return zone.__getinitargs__()  # type: ignore[attr-defined, no-any-return]


def _write_timezone(writer: Writer, value: datetime.timezone) -> None:
    offset, *name = _zone_parts(value)
    _write_ints(writer, TAG_TIMEZONE, (offset.days, offset.seconds, offset.microseconds), len(name))
    for text in name:
        if type(text) is not str:
            raise CannotSend
        _write_str(writer, text)


def _write_decimal(writer: Writer, value: decimal.Decimal) -> None:
    text = DECIMAL_CONTEXT.to_sci_string(value)
    writer.add(own_head(TAG_DECIMAL))
    _write_str(writer, text)


def _write_uuid(writer: Writer, value: uuid.UUID) -> None:
    writer.add(HEAD_UUID + value.bytes)


def _path_writer(tag: int) -> _Write:
    head = own_head(tag)

    def write(writer: Writer, value: pathlib.PurePath) -> None:
        writer.add(head)
        _write_str(writer, str(value))

    return write


def object_writer(index: int, listed: Listed) -> _Write:
    head = own_head(TAG_OBJECT)
    number = _int_bytes(index)

    def write(writer: Writer, value: Any) -> None:
        try:
            parts = listed.parts(value)
        except AttributeError:
            raise CannotSend from None
        _enter(writer, len(parts))
        writer.add(head + _head(ARRAY, len(parts) + 1) + number)
        table = writer.table
        for part in parts:
            table[type(part)](writer, part)
        writer.depth += 1

    return write


PLAIN_WRITERS: Dict[type, _Write] = {
    type(None): _write_none,
    bool: _write_bool,
    int: _write_int,
    float: _write_float,
    str: _write_str,
    bytes: _write_bytes,
    list: _write_list,
    tuple: _write_tuple,
    dict: _write_dict,
    set: _write_set,
    frozenset: _write_frozenset,
    datetime.date: _write_date,
    datetime.datetime: _write_datetime,
    datetime.time: _write_time,
    datetime.timedelta: _write_timedelta,
    datetime.timezone: _write_timezone,
    decimal.Decimal: _write_decimal,
    uuid.UUID: _write_uuid,
    **{cls: _path_writer(tag) for cls, tag in PATH_TAGS.items()},
}


# --- why a value cannot be sent ---


def _key_text(key: Any) -> str:
    if type(key) is str:
        shown = key if len(key) <= 40 else key[:37] + "..."
        return '["' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    if type(key) in (bool, float, bytes, type(None)) or (type(key) is int and key.bit_length() <= 128):
        return f"[{repr(key[:40] if type(key) is bytes else key)}]"
    return f"[<{type_name(type(key))}>]"


_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})


class Refusal:
    """Walks a value as the writer does and keeps track of where it is, to say what cannot be sent."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._nodes = codec.max_nodes
        self._room = codec.max_bytes

    def find(self, value: Any) -> str:
        """What is wrong, and where."""
        found = self._look(value, "$", self._codec.max_depth)
        return found or f"the result takes more than {self._codec.max_bytes} bytes"

    def _look(self, value: Any, path: str, depth: int) -> str:
        codec, cls = self._codec, type(value)
        self._nodes -= 1
        if cls not in codec.writers:
            return self._wrong_type(cls, path)
        if self._nodes < 0:
            return f"the result has more than {codec.max_nodes} values; {path} is the first beyond that"
        if cls in (str, bytes):
            self._room -= len(value)
        if cls is array_type():
            if not _is_plain_array(value):
                return f"an array of dtype {value.dtype} at {path} is not data that can leave a jar"
            self._room -= value.nbytes
        if self._room < 0:
            return f"the result takes more than {codec.max_bytes} bytes; {path} is the first beyond that"
        zone = getattr(value, "tzinfo", None) if cls in (datetime.datetime, datetime.time) else None
        if zone is not None and type(zone) is not datetime.timezone:
            return self._wrong_type(type(zone), path + ".tzinfo")
        for part in _zone_parts(zone or value)[1:] if zone or cls is datetime.timezone else ():
            if type(part) is not str:
                return self._wrong_type(type(part), f"the time zone's name in {path}")
        if depth == 0 and (cls in _CONTAINERS or cls in codec.places):
            return f"the result is nested more than {codec.max_depth} deep at {path}"
        for item, below in self._below(value, path):
            found = self._look(item, below, depth - 1)
            if found:
                return found
        return ""

    def _below(self, value: Any, path: str) -> Iterable[Tuple[Any, str]]:
        cls = type(value)
        if cls in (list, tuple):
            yield from ((item, f"{path}[{index}]") for index, item in enumerate(value))
        elif cls is dict:
            for key, item in value.items():
                yield key, f"{path}.key{_key_text(key)}"
                yield item, path + _key_text(key)
        elif cls in (set, frozenset):
            yield from ((item, f"{path}.element{_key_text(item)}") for item in value)
        elif cls in self._codec.places:
            listed = self._codec.listed[self._codec.places[cls]]
            for name in listed.fields:
                if listed.kind == "dataclass" and not hasattr(value, name):
                    yield _UNSET, f"{path}.{name}"
                else:
                    yield getattr(value, name), f"{path}.{name}"

    def _wrong_type(self, cls: type, path: str) -> str:
        if cls is _Unset:
            return f"{path} was never set"
        message = f"a value of type {type_name(cls)} at {path} is not data that can leave a jar"
        try:
            Listed(cls)
        except TypeError:
            known = next((base for base in cls.__mro__[1:] if base in self._codec.writers), None)
            return message if known is None else f"{message}; it is a subclass of {type_name(known)}: return a plain one"
        if any(type_name(listed.cls) == type_name(cls) for listed in self._codec.listed):
            return f"{message}; the class of that name which is allowed is another one: was it defined again?"
        return f"{message}; to allow it, list the class in types=, or name it in the function's return annotation"


class _Unset:
    pass


_UNSET = _Unset()
