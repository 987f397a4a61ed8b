# SPDX-License-Identifier: Apache-2.0
"""Results of calls as bytes, and back: data only.

The bytes come from code that nobody has reviewed, so the reader is the careful side: nothing in them is imported, looked
up by name or executed, and every length is held against what is there before anything is made of it. The form is a subset
of CBOR (RFC 8949) in which every value has exactly one encoding; any other is refused, and so is anything after the value:

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

Own tags are 0xbe00 and up, with no meaning outside. Types come back exactly as they were: a tuple is no list, True is no 1,
-0.0 is no 0.0. A subclass is not what it descends from and is refused. Instances of listed classes are put together without
calling any of their code, `__init__` and `__post_init__` included, as their author's checks ran where the value was made;
who needs them to hold for data from a jar checks them again.

Arrays are known only where numpy is loaded already; nothing is imported because of a result.

Nodes are Python values: a list of two ints counts three. Sizes of lists, tuples, dicts and sets are bounded by nodes, those
of the rest by bytes. Keys that collide in a hash table, which cost time without costing bytes, have a bound of their own.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import pathlib
import re
import struct
import sys
import uuid
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Optional, Sequence, Tuple, Union

from ._errors import ResultError

MAX_BYTES = 64 << 20
MAX_NODES = 10**6
MAX_DEPTH = 100
# Keys that share a hash, times the bytes of their dict or set: a bound on the comparisons that they cause. See _check_keys.
MAX_COLLISION_COST = 10**8
# Below this many keys comparing all with all costs nothing worth counting.
FEW_KEYS = 16
# More sides than this no array has; numpy itself stops at 32 or 64, and a head holds 23.
MAX_DIMENSIONS = 23
# Larger messages are read in place instead of from a copy.
VIEW_BYTES = 1 << 20

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
_DECIMAL_CONTEXT = decimal.Context(capitals=1)
# Whose hashes nobody can choose: they are mixed with a secret of this process, or are too few.
_UNCHOSEN = frozenset({str, bytes, bool, type(None), datetime.date, datetime.datetime, datetime.time})

_pack_double = struct.Struct(">Bd").pack
_unpack_double = struct.Struct(">d").unpack_from
_set_attribute = object.__setattr__
# Numbers, truth values, times and texts of fixed size, in either byte order; no objects, no records.
_DTYPE = re.compile(r"[<>|][biufcmMSU][0-9]{1,9}(?:\[[0-9]{0,6}[a-zA-Z]{1,2}\])?\Z")
_CLASS_KINDS = "Enum, dataclass and namedtuple classes"


def _own_head(tag: int) -> bytes:
    return bytes((0xD9, 0xBE, tag))


# --- the classes of `types` ---


class Listed:
    """A class that the host listed: what its instances are made of, and how one is put together."""

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


# --- writing ---


class _Stop(Exception):
    """The value cannot be sent; where and why is looked for afterwards, so that nobody pays for it who can be helped."""


class _Writer:
    __slots__ = ("add", "nodes", "depth", "room", "table", "files", "file_bytes", "files_left")

    def __init__(self, add: Callable[[bytes], object], codec: "Codec") -> None:
        self.files: List[Any] = []
        self.file_bytes = 0
        self.files_left = 0
        self.add = add
        self.nodes = codec.max_nodes - 1
        self.depth = codec.max_depth
        self.room = codec.max_bytes
        self.table = codec._writers


_Write = Callable[[_Writer, Any], None]


class _Writers(Dict[type, _Write]):
    def __missing__(self, kind: type) -> _Write:
        if kind is _array_type():
            return _write_array
        raise _Stop

    def __contains__(self, kind: object) -> bool:
        return super().__contains__(kind) or (kind is not None and kind is _array_type())


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


def _write_none(writer: _Writer, value: None) -> None:
    writer.add(b"\xf6")


def _write_bool(writer: _Writer, value: bool) -> None:
    writer.add(b"\xf5" if value else b"\xf4")


def _write_int(writer: _Writer, value: int) -> None:
    raw = _int_bytes(value)
    if len(raw) > 9:
        _spend(writer, len(raw))
    writer.add(raw)


def _write_float(writer: _Writer, value: float) -> None:
    writer.add(_pack_double(FLOAT, value) if value == value else NAN)


def _write_str(writer: _Writer, value: str) -> None:
    try:
        raw = value.encode("utf-8")
    except UnicodeEncodeError:
        raw = value.encode("utf-8", "surrogatepass")
        writer.add(_own_head(TAG_STR) + _head(BYTES, len(raw)))
    else:
        length = len(raw)
        writer.add(_SHORT_TEXTS[length] if length < 256 else _head(TEXT, length))
    writer.room -= len(raw)
    if writer.room < 0:
        raise _Stop
    writer.add(raw)


def _write_bytes(writer: _Writer, value: bytes) -> None:
    _spend(writer, len(value))
    if writer.files_left and len(value) >= writer.file_bytes:
        _attach(writer, value)
        return
    writer.add(_head(BYTES, len(value)))
    writer.add(value)


def _attach(writer: _Writer, buffer: Any) -> None:
    writer.add(_own_head(TAG_FILE) + _int_bytes(len(writer.files)))
    writer.files.append(buffer)
    writer.files_left -= 1


def _array_type() -> Any:
    """numpy.ndarray if this process has it. Never imported here: what came back is no reason to."""
    return getattr(sys.modules.get("numpy"), "ndarray", None)


def _is_plain_array(value: Any) -> bool:
    return bool(_DTYPE.match(value.dtype.str)) and value.dtype.itemsize > 0 and len(value.shape) <= MAX_DIMENSIONS


def _write_array(writer: _Writer, value: Any) -> None:
    numpy: Any = sys.modules["numpy"]

    if not _is_plain_array(value):
        raise _Stop
    _enter(writer, len(value.shape) + 2)
    _spend(writer, value.nbytes)
    writer.add(_own_head(TAG_ARRAY) + _head(ARRAY, 3))
    _write_str(writer, value.dtype.str)
    writer.add(_head(ARRAY, len(value.shape)) + b"".join(map(_int_bytes, value.shape)))
    flat = numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)
    if writer.files_left and value.nbytes >= writer.file_bytes:
        _attach(writer, flat.data)
    else:
        writer.add(_head(BYTES, value.nbytes))
        writer.add(flat.tobytes())
    writer.depth += 1


def _spend(writer: _Writer, count: int) -> None:
    writer.room -= count
    if writer.room < 0:
        raise _Stop


def _enter(writer: _Writer, nodes: int) -> None:
    writer.nodes -= nodes
    writer.depth -= 1
    if writer.nodes < 0 or writer.depth < 0:
        raise _Stop


def _write_list(writer: _Writer, value: Sequence[Any]) -> None:
    _enter(writer, len(value))
    writer.add(_head(ARRAY, len(value)))
    table = writer.table
    for item in value:
        table[type(item)](writer, item)
    writer.depth += 1


_HEAD_TUPLE = _own_head(TAG_TUPLE)
_HEAD_FROZENSET = _own_head(TAG_FROZENSET)


def _write_tuple(writer: _Writer, value: Tuple[Any, ...]) -> None:
    writer.add(_HEAD_TUPLE)
    _write_list(writer, value)


def _write_dict(writer: _Writer, value: Dict[Any, Any]) -> None:
    _enter(writer, 2 * len(value))
    writer.add(_head(MAP, len(value)))
    table = writer.table
    for key, item in value.items():
        table[type(key)](writer, key)
        table[type(item)](writer, item)
    writer.depth += 1


def _write_elements(writer: _Writer, value: Iterable[Any], count: int) -> None:
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


def _write_set(writer: _Writer, value: "set[Any]") -> None:
    writer.add(HEAD_SET)
    _write_elements(writer, value, len(value))


def _write_frozenset(writer: _Writer, value: "frozenset[Any]") -> None:
    writer.add(_HEAD_FROZENSET)
    _write_elements(writer, value, len(value))


def _write_ints(writer: _Writer, tag: int, numbers: Sequence[int], rest: int) -> None:
    """An own tag and the beginning of its array."""
    writer.add(_own_head(tag) + _head(ARRAY, len(numbers) + rest) + b"".join(map(_int_bytes, numbers)))


def _write_zone_or_none(writer: _Writer, zone: Any) -> None:
    if zone is None:
        writer.add(b"\xf6")
    elif type(zone) is datetime.timezone:
        _write_timezone(writer, zone)
    else:
        raise _Stop


def _write_date(writer: _Writer, value: datetime.date) -> None:
    writer.add(HEAD_DATE + b"\x6a" + value.isoformat().encode("ascii"))


def _write_datetime(writer: _Writer, value: datetime.datetime) -> None:
    day = (value.year, value.month, value.day)
    _write_ints(writer, TAG_DATETIME, (*day, value.hour, value.minute, value.second, value.microsecond, value.fold), 1)
    _write_zone_or_none(writer, value.tzinfo)


def _write_time(writer: _Writer, value: datetime.time) -> None:
    _write_ints(writer, TAG_TIME, (value.hour, value.minute, value.second, value.microsecond, value.fold), 1)
    _write_zone_or_none(writer, value.tzinfo)


def _write_timedelta(writer: _Writer, value: datetime.timedelta) -> None:
    _write_ints(writer, TAG_TIMEDELTA, (value.days, value.seconds, value.microseconds), 0)


def _zone_parts(zone: datetime.timezone) -> Tuple[Any, ...]:
    """(offset,) or (offset, name): what it was made from."""
    return zone.__getinitargs__()  # type: ignore[attr-defined, no-any-return]


def _write_timezone(writer: _Writer, value: datetime.timezone) -> None:
    offset, *name = _zone_parts(value)
    _write_ints(writer, TAG_TIMEZONE, (offset.days, offset.seconds, offset.microseconds), len(name))
    for text in name:
        if type(text) is not str:
            raise _Stop
        _write_str(writer, text)


def _write_decimal(writer: _Writer, value: decimal.Decimal) -> None:
    text = _DECIMAL_CONTEXT.to_sci_string(value)
    writer.add(_own_head(TAG_DECIMAL))
    _write_str(writer, text)


def _write_uuid(writer: _Writer, value: uuid.UUID) -> None:
    writer.add(HEAD_UUID + value.bytes)


def _path_writer(tag: int) -> _Write:
    head = _own_head(tag)

    def write(writer: _Writer, value: pathlib.PurePath) -> None:
        writer.add(head)
        _write_str(writer, str(value))

    return write


def _object_writer(index: int, listed: Listed) -> _Write:
    head = _own_head(TAG_OBJECT)
    number = _int_bytes(index)

    def write(writer: _Writer, value: Any) -> None:
        try:
            parts = listed.parts(value)
        except AttributeError:
            raise _Stop from None
        _enter(writer, len(parts))
        writer.add(head + _head(ARRAY, len(parts) + 1) + number)
        table = writer.table
        for part in parts:
            table[type(part)](writer, part)
        writer.depth += 1

    return write


_PLAIN_WRITERS: Dict[type, _Write] = {
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


def type_name(cls: type) -> str:
    """As people write it: without the module for what is built in."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _key_text(key: Any) -> str:
    if type(key) is str:
        shown = key if len(key) <= 40 else key[:37] + "..."
        return '["' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    if type(key) in (bool, float, bytes, type(None)) or (type(key) is int and key.bit_length() <= 128):
        return f"[{repr(key[:40] if type(key) is bytes else key)}]"
    return f"[<{type_name(type(key))}>]"


_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})


class _Search:
    """Walks a value as the writer does, and remembers the way."""

    def __init__(self, codec: "Codec") -> None:
        self._codec = codec
        self._nodes = codec.max_nodes
        self._room = codec.max_bytes

    def refusal(self, value: Any) -> str:
        """What is wrong, and where."""
        found = self._look(value, "$", self._codec.max_depth)
        return found or f"the result takes more than {self._codec.max_bytes} bytes"

    def _look(self, value: Any, path: str, depth: int) -> str:
        codec, cls = self._codec, type(value)
        self._nodes -= 1
        if cls not in codec._writers:
            return self._wrong_type(cls, path)
        if self._nodes < 0:
            return f"the result has more than {codec.max_nodes} values; the first too many is {path}"
        if cls in (str, bytes):
            self._room -= len(value)
        if cls is _array_type():
            if not _is_plain_array(value):
                return f"an array of dtype {value.dtype} at {path} is not data that can leave a jar"
            self._room -= value.nbytes
        if self._room < 0:
            return f"the result takes more than {codec.max_bytes} bytes; {path} is beyond them"
        zone = getattr(value, "tzinfo", None) if cls in (datetime.datetime, datetime.time) else None
        if zone is not None and type(zone) is not datetime.timezone:
            return self._wrong_type(type(zone), path + ".tzinfo")
        for part in _zone_parts(zone or value)[1:] if zone or cls is datetime.timezone else ():
            if type(part) is not str:
                return self._wrong_type(type(part), f"the time zone's name in {path}")
        if depth == 0 and (cls in _CONTAINERS or cls in codec._places):
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
        elif cls in self._codec._places:
            listed = self._codec._listed[self._codec._places[cls]]
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
            known = next((base for base in cls.__mro__[1:] if base in self._codec._writers), None)
            return f"{message}; it is a subclass of {type_name(known)}, send that" if known is not None else message
        return f"{message}; list the class in types="


class _Unset:
    pass


_UNSET = _Unset()


# --- reading ---


class Malformed(ResultError):
    """The bytes are not what the writer writes."""


class _Reader:
    __slots__ = ("data", "pos", "end", "nodes", "depth", "cost", "listed", "files", "file_count")

    def __init__(self, data: Any, codec: "Codec", files: Any) -> None:
        self.files = files
        self.file_count = 0
        self.data = data
        self.pos = 0
        self.end = len(data)
        self.nodes = codec.max_nodes - 1
        self.depth = codec.max_depth
        self.cost = MAX_COLLISION_COST
        self.listed = codec._listed

    def fail(self, why: str) -> NoReturn:
        raise Malformed(f"what came back is malformed at byte {self.pos}: {why}")


_Read = Callable[[_Reader, int], Any]


def _item(reader: _Reader) -> Any:
    head = reader.data[reader.pos]
    reader.pos += 1
    return _READERS[head](reader, head)


def _number(reader: _Reader, head: int) -> int:
    """The number in or after a head; only the shortest form is taken."""
    low = head & 31
    if low < 24:
        return low
    size = 1 << (low - 24)
    raw = reader.data[reader.pos : reader.pos + size]
    if low > 27 or len(raw) != size:
        reader.fail("a length or number is cut off or has a form that is never used")
    number = int.from_bytes(raw, "big")
    if number < (24, 0x100, 0x10000, 0x100000000)[low - 24]:
        reader.fail("a number is not in its shortest form")
    reader.pos += size
    return number


def _raw(reader: _Reader, length: int) -> Any:
    start = reader.pos
    if length > reader.end - start:
        reader.fail("a length goes beyond the end")
    reader.pos = start + length
    return reader.data[start : reader.pos]


def _read_uint(reader: _Reader, head: int) -> int:
    return _number(reader, head)


def _read_negative(reader: _Reader, head: int) -> int:
    return ~_number(reader, head)


def _read_bytes(reader: _Reader, head: int) -> bytes:
    return bytes(_raw(reader, _number(reader, head)))


def _read_text(reader: _Reader, head: int) -> str:
    raw = _raw(reader, _number(reader, head))
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError:
        reader.fail("text is not UTF-8")


def _begin(reader: _Reader, count: int, nodes: int) -> None:
    """A container of so many items, each of a byte at least."""
    if count > reader.end - reader.pos:
        reader.fail("a length goes beyond the end")
    reader.nodes -= nodes
    if reader.nodes < 0:
        reader.fail("there are too many values")
    reader.depth -= 1
    if reader.depth < 0:
        reader.fail("it is nested too deep")


def _items(reader: _Reader, count: int) -> List[Any]:
    items: List[Any] = []
    add = items.append
    data, readers = reader.data, _READERS
    for _ in range(count):
        head = data[reader.pos]
        reader.pos += 1
        add(readers[head](reader, head))
    reader.depth += 1
    return items


def _read_array(reader: _Reader, head: int) -> List[Any]:
    count = _number(reader, head)
    _begin(reader, count, count)
    return _items(reader, count)


def _read_map(reader: _Reader, head: int) -> Dict[Any, Any]:
    count = _number(reader, head)
    start = reader.pos
    _begin(reader, 2 * count, 2 * count)
    items = _items(reader, 2 * count)
    keys = items[::2]
    made = _hashed(reader, keys, start, lambda: dict(zip(keys, items[1::2])))
    assert isinstance(made, dict)
    return made


def _hashed(reader: _Reader, keys: List[Any], start: int, make: Callable[[], Any]) -> Any:
    """A dict or set, if its keys can be keys, differ, and do not collide by the thousand."""
    try:
        if len(keys) > FEW_KEYS:
            _check_keys(reader, keys, start)
        made = make()
    except Malformed:
        raise
    except Exception:  # what cannot be hashed; or a listed class has its own mind about comparing
        reader.fail("a key cannot be a key")
    if len(made) != len(keys):
        reader.fail("a key is there twice")
    return made


def _check_keys(reader: _Reader, keys: List[Any], start: int) -> None:
    """Whoever chooses ints, or what is hashed like them, can choose that all land in one place; n keys then take n * n
    comparisons, each as long as the keys are. Hashes themselves spread well, so counting different ones is quick."""
    if _UNCHOSEN.issuperset(map(type, keys)):
        return
    same = len(keys) - len(set(map(hash, keys)))
    reader.cost -= same * (reader.pos - start)
    if reader.cost < 0:
        reader.fail("too many keys collide")


def _elements(reader: _Reader, make: Callable[[List[Any]], Any]) -> Any:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY:
        reader.fail("a set is no array")
    reader.pos += 1
    count = _number(reader, head)
    start = reader.pos
    _begin(reader, count, count)
    items, before = [], b""
    for _ in range(count):
        begin = reader.pos
        items.append(_item(reader))
        encoding = bytes(reader.data[begin : reader.pos])
        if encoding < before:
            reader.fail("a set is not in order")
        before = encoding
    reader.depth += 1
    return _hashed(reader, items, start, lambda: make(items))


def _read_false(reader: _Reader, head: int) -> bool:
    return False


def _read_true(reader: _Reader, head: int) -> bool:
    return True


def _read_none(reader: _Reader, head: int) -> None:
    return None


def _read_float(reader: _Reader, head: int) -> float:
    raw = _raw(reader, 8)
    value: float = _unpack_double(raw)[0]
    if value != value and bytes(raw) != NAN[1:]:
        reader.fail("NaN has one form only")
    return value


def _read_big(reader: _Reader, head: int) -> int:
    inner = reader.data[reader.pos]
    if inner & 0xE0 != BYTES:
        reader.fail("a large number is no byte string")
    reader.pos += 1
    raw = _raw(reader, _number(reader, inner))
    if len(raw) < 9 or raw[0] == 0:
        reader.fail("a number is not in its shortest form")
    number = int.from_bytes(raw, "big")
    return number if head == 0xC2 else ~number


def _read_uuid(reader: _Reader, head: int) -> uuid.UUID:
    raw = bytes(_raw(reader, 18))
    if raw[:2] != HEAD_UUID[1:]:
        reader.fail("a tag is not known")
    return uuid.UUID(bytes=raw[2:])


def _read_tag(reader: _Reader, head: int) -> Any:
    raw = bytes(_raw(reader, 2))
    read = _TAG_READERS.get(raw)
    if read is None:
        reader.fail("a tag is not known")
    return read(reader)


def _read_unknown(reader: _Reader, head: int) -> NoReturn:
    reader.fail(f"no value begins with 0x{head:02x}")


def _is_own_tag(reader: _Reader, tag: int) -> bool:
    return bytes(reader.data[reader.pos : reader.pos + 3]) == _own_head(tag)


def _plain_text(reader: _Reader) -> str:
    """A str: text, or the tag for what is not UTF-8. Nothing else is even looked at: parts of a value do not nest."""
    head = reader.data[reader.pos]
    if head & 0xE0 == TEXT or _is_own_tag(reader, TAG_STR):
        value = _item(reader)
        assert isinstance(value, str)
        return value
    reader.fail("text is expected")


def _ints(reader: _Reader, counts: Tuple[int, ...], numbers: int) -> Tuple[List[int], int]:
    """The ints at the beginning of an array of one of these lengths, and how many parts follow."""
    head = reader.data[reader.pos]
    count = head & 31
    if head & 0xE0 != ARRAY or count not in counts:
        reader.fail("a value has the wrong number of parts")
    reader.pos += 1
    found = []
    for _ in range(numbers):
        head = reader.data[reader.pos]
        if head >= BYTES:
            reader.fail("a part is not a small int")
        reader.pos += 1
        number = _number(reader, head)
        found.append(number if head < NEGATIVE else ~number)
    return found, count - numbers


def _zone_or_none(reader: _Reader) -> Any:
    if reader.data[reader.pos] == NONE or _is_own_tag(reader, TAG_TIMEZONE):
        return _item(reader)
    reader.fail("a time zone is expected")


def _tag_str(reader: _Reader) -> str:
    head = reader.data[reader.pos]
    if head & 0xE0 != BYTES:
        reader.fail("bytes are expected")
    reader.pos += 1
    raw = _read_bytes(reader, head)
    try:
        value = raw.decode("utf-8", "surrogatepass")
        value.encode("utf-8")
    except UnicodeDecodeError:
        reader.fail("text is not UTF-8, not even with surrogates")
    except UnicodeEncodeError:
        return value
    reader.fail("text has surrogates or not, but says otherwise")


def _tag_tuple(reader: _Reader) -> Tuple[Any, ...]:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY:
        reader.fail("a tuple is no array")
    reader.pos += 1
    return tuple(_read_array(reader, head))


def _tag_set(reader: _Reader) -> Any:
    return _elements(reader, set)


def _tag_frozenset(reader: _Reader) -> Any:
    return _elements(reader, frozenset)


def _tag_date(reader: _Reader) -> datetime.date:
    text = _plain_text(reader)
    try:
        value = datetime.date.fromisoformat(text)
    except ValueError:
        reader.fail("there is no such date")
    if value.isoformat() != text:
        reader.fail("a date has one form only")
    return value


def _tag_datetime(reader: _Reader) -> datetime.datetime:
    (*parts, fold), _ = _ints(reader, (9,), 8)
    zone = _zone_or_none(reader)
    try:
        return datetime.datetime(*parts, zone, fold=fold)  # type: ignore[misc, arg-type]
    except (ValueError, OverflowError):
        reader.fail("there is no such date and time")


def _tag_time(reader: _Reader) -> datetime.time:
    (*parts, fold), _ = _ints(reader, (6,), 5)
    zone = _zone_or_none(reader)
    try:
        return datetime.time(*parts, zone, fold=fold)  # type: ignore[misc, arg-type]
    except (ValueError, OverflowError):
        reader.fail("there is no such time")


def _span(reader: _Reader, parts: List[int]) -> datetime.timedelta:
    try:
        value = datetime.timedelta(*parts)
    except (ValueError, OverflowError):
        reader.fail("there is no such span of time")
    if [value.days, value.seconds, value.microseconds] != parts:
        reader.fail("a span of time has one form only")
    return value


def _tag_timedelta(reader: _Reader) -> datetime.timedelta:
    return _span(reader, _ints(reader, (3,), 3)[0])


def _tag_timezone(reader: _Reader) -> datetime.timezone:
    parts, rest = _ints(reader, (3, 4), 3)
    name = [_plain_text(reader) for _ in range(rest)]
    try:
        return datetime.timezone(_span(reader, parts), *name)
    except ValueError:
        reader.fail("there is no such time zone")


def _tag_decimal(reader: _Reader) -> decimal.Decimal:
    text = _plain_text(reader)
    try:
        value = decimal.Decimal(text)
        is_same = _DECIMAL_CONTEXT.to_sci_string(value) == text
    except (decimal.DecimalException, ValueError, OverflowError):
        is_same = False
    if not is_same:
        reader.fail("a decimal is not as it is written")
    return value


def _path_reader(cls: Any) -> Callable[[_Reader], Any]:
    def read(reader: _Reader) -> Any:
        text = _plain_text(reader)
        try:
            value = cls(text)
        except Exception:  # a path of another system, which this one cannot have
            reader.fail("there is no such path here")
        if str(value) != text:
            reader.fail("a path is not as it is written")
        return value

    return read


def _tag_object(reader: _Reader) -> Any:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY:
        reader.fail("an object is no array")
    reader.pos += 1
    count = _number(reader, head)
    if count == 0:
        reader.fail("an object has no class")
    _begin(reader, count, count - 1)
    parts = _items(reader, count)
    index = parts.pop(0)
    if type(index) is not int or not 0 <= index < len(reader.listed):
        reader.fail("an object is of a class that was not listed")
    listed = reader.listed[index]
    try:
        return listed.make(parts)
    except (ValueError, TypeError, AttributeError) as error:
        reader.fail(f"no {type_name(listed.cls)} is made like that: {error}")


def _open_file(reader: _Reader) -> Any:
    """The files, the next of which is the one that is named here."""
    head = reader.data[reader.pos]
    if head >= NEGATIVE:
        reader.fail("a file has no number")
    reader.pos += 1
    if _number(reader, head) != reader.file_count or reader.files is None:
        reader.fail("there is no such file, or it is not its turn")
    reader.file_count += 1
    return reader.files


def _tag_file(reader: _Reader) -> bytes:
    data = _open_file(reader).read()
    assert isinstance(data, bytes)
    return data


def _tag_array(reader: _Reader) -> Any:
    array_type = _array_type()
    if array_type is None:
        reader.fail("it has a numpy array, and numpy is not loaded here; import it first")
    numpy: Any = sys.modules["numpy"]

    if reader.data[reader.pos] != ARRAY | 3:
        reader.fail("an array has the wrong number of parts")
    reader.pos += 1
    text = _plain_text(reader)
    shape = _shape(reader)
    try:
        dtype = numpy.dtype(text) if _DTYPE.match(text) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.str != text or dtype.hasobject or dtype.itemsize <= 0:
        reader.fail("there is no such dtype")
    length = dtype.itemsize
    for side in shape:
        length *= side
    return _array_data(reader, numpy, dtype, shape, length)


def _shape(reader: _Reader) -> List[int]:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY or head & 31 > MAX_DIMENSIONS:
        reader.fail("a shape has too many sides")
    sides, _ = _ints(reader, (head & 31,), head & 31)
    _begin(reader, 0, len(sides) + 2)
    reader.depth += 1
    if any(side < 0 for side in sides):
        reader.fail("a side is negative")
    return sides


def _array_data(reader: _Reader, numpy: Any, dtype: Any, shape: List[int], length: int) -> Any:
    """The array, if there are as many bytes as it takes; looked at before it is made."""
    files = None
    if _is_own_tag(reader, TAG_FILE):
        reader.pos += 3
        files = _open_file(reader)
        have = files.size()
    else:
        head = reader.data[reader.pos]
        if head & 0xE0 != BYTES:
            reader.fail("an array has no bytes")
        reader.pos += 1
        raw = _raw(reader, _number(reader, head))
        have = len(raw)
    if have != length:
        reader.fail("an array has not as many bytes as its shape says")
    made = numpy.empty(length, numpy.uint8)
    if files is not None:
        files.read_into(made.data)
    else:
        made.data[:] = raw
    try:
        return made.view(dtype).reshape(shape)
    except ValueError:
        reader.fail("there is no array of that shape")


_TAG_READERS: Dict[bytes, Callable[[_Reader], Any]] = {
    HEAD_SET[1:]: _tag_set,
    HEAD_DATE[1:]: _tag_date,
    _own_head(TAG_STR)[1:]: _tag_str,
    _own_head(TAG_TUPLE)[1:]: _tag_tuple,
    _own_head(TAG_FROZENSET)[1:]: _tag_frozenset,
    _own_head(TAG_DATETIME)[1:]: _tag_datetime,
    _own_head(TAG_TIME)[1:]: _tag_time,
    _own_head(TAG_TIMEDELTA)[1:]: _tag_timedelta,
    _own_head(TAG_TIMEZONE)[1:]: _tag_timezone,
    _own_head(TAG_DECIMAL)[1:]: _tag_decimal,
    **{_own_head(tag)[1:]: _path_reader(cls) for cls, tag in PATH_TAGS.items()},
    _own_head(TAG_OBJECT)[1:]: _tag_object,
    _own_head(TAG_FILE)[1:]: _tag_file,
    _own_head(TAG_ARRAY)[1:]: _tag_array,
}


def _readers() -> "List[_Read]":
    table: List[_Read] = [_read_unknown] * 256
    majors = {
        UINT: _read_uint,
        NEGATIVE: _read_negative,
        BYTES: _read_bytes,
        TEXT: _read_text,
        ARRAY: _read_array,
        MAP: _read_map,
    }
    for major, read in majors.items():
        for low in range(28):
            table[major | low] = read
    table[FALSE], table[TRUE], table[NONE], table[FLOAT] = _read_false, _read_true, _read_none, _read_float
    table[0xC2] = table[0xC3] = _read_big
    table[0xD8], table[0xD9] = _read_uuid, _read_tag
    return table


_READERS = _readers()


# --- what callers use ---


class Codec:
    """Writes and reads values with one set of listed classes and bounds. Both sides must list the same classes, in order."""

    def __init__(
        self,
        types: Iterable[type] = (),
        *,
        max_bytes: int = MAX_BYTES,
        max_nodes: int = MAX_NODES,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_nodes = max_nodes
        self.max_depth = max_depth
        self._listed = [Listed(cls) for cls in dict.fromkeys(types)]
        self._places = {listed.cls: index for index, listed in enumerate(self._listed)}
        self._writers = _Writers(_PLAIN_WRITERS)
        for index, listed in enumerate(self._listed):
            self._writers[listed.cls] = _object_writer(index, listed)

    def encode_parts(self, value: Any, file_bytes: int = 0, max_files: int = 0) -> Tuple[List[bytes], List[Any]]:
        """The encoding in pieces, to be written one after the other; large bytes and text are not copied into one.

        And buffers that belong into files: bytes and arrays of file_bytes and more, as many as max_files.
        """
        parts: List[bytes] = []
        writer = _Writer(parts.append, self)
        writer.file_bytes, writer.files_left = file_bytes, max_files
        try:
            writer.table[type(value)](writer, value)
            if sum(map(len, parts)) + sum(memoryview(file).nbytes for file in writer.files) > self.max_bytes:
                raise _Stop
        except _Stop:
            raise ResultError(_Search(self).refusal(value)) from None
        return parts, writer.files

    def encode(self, value: Any) -> bytes:
        """The encoding; ResultError names the type that cannot be sent, and where it was."""
        return b"".join(self.encode_parts(value)[0])

    def decode(self, data: Union[bytes, bytearray, memoryview], files: Optional[Any] = None) -> Any:
        """The value of which these bytes are the encoding; ResultError for any others.

        files: what the bytes name as files. Has size() and read() or read_into() of the next one.
        """
        view: Any = data if type(data) is bytes and len(data) <= VIEW_BYTES else memoryview(data).cast("B")
        if len(view) > self.max_bytes:
            raise ResultError(f"the result takes {len(view)} bytes, more than {self.max_bytes}")
        reader = _Reader(view if len(view) > VIEW_BYTES else bytes(view), self, files)
        try:
            value = _item(reader)
        except IndexError:
            reader.pos = reader.end
            reader.fail("it ends too early")
        if reader.pos != reader.end:
            reader.fail("something follows the value")
        return value


_plain = Codec()


def encode(value: Any) -> bytes:
    """With the usual bounds and no listed classes."""
    return _plain.encode(value)


def decode(data: Union[bytes, bytearray, memoryview]) -> Any:
    """With the usual bounds and no listed classes."""
    return _plain.decode(data)
