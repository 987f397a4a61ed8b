# SPDX-License-Identifier: Apache-2.0
"""Read the result of a call.

Code that nobody has reviewed wrote the bytes, so the reader is the careful side: it imports nothing, looks nothing up by name
and executes nothing that they name; it compares every length with what is there before it allocates; and it accepts only the
one encoding that the writer uses. A table leads from the first byte of a value to the function that reads it.
"""

from __future__ import annotations

import datetime
import decimal
import struct
import sys
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NoReturn, Tuple

from ._codec_types import (
    ARRAY,
    ARRAY_DTYPE,
    BYTES,
    DECIMAL_CONTEXT,
    FALSE,
    FLOAT,
    HEAD_DATE,
    HEAD_SET,
    HEAD_UUID,
    MAP,
    MAX_DIMENSIONS,
    NAN,
    NEGATIVE,
    NONE,
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
    TRUE,
    UINT,
    array_type,
    own_head,
    type_name,
)
from ._errors import ResultError

if TYPE_CHECKING:
    from ._codec import Codec

# Keys that share a hash, times the bytes of their dict or set: a bound on the comparisons that they cause. See _check_keys.
MAX_COLLISION_COST = 10**8
# Below this many keys comparing all with all costs nothing worth counting.
FEW_KEYS = 16

# Whose hashes nobody can choose: they are mixed with a secret of this process, or are too few.
_UNCHOSEN = frozenset({str, bytes, bool, type(None), datetime.date, datetime.datetime, datetime.time})
_unpack_double = struct.Struct(">d").unpack_from


class Malformed(ResultError):
    """The bytes are not what the writer writes."""


class Reader:
    __slots__ = ("data", "pos", "end", "nodes", "depth", "cost", "listed", "files", "file_count")

    def __init__(self, data: Any, codec: Codec, files: Any) -> None:
        self.files = files
        self.file_count = 0
        self.data = data
        self.pos = 0
        self.end = len(data)
        self.nodes = codec.max_nodes - 1
        self.depth = codec.max_depth
        self.cost = MAX_COLLISION_COST
        self.listed = codec.listed

    def fail(self, why: str) -> NoReturn:
        raise Malformed(f"the answer is malformed at byte {self.pos}: {why}")


_Read = Callable[[Reader, int], Any]


def read_item(reader: Reader) -> Any:
    head = reader.data[reader.pos]
    reader.pos += 1
    return _READERS[head](reader, head)


def _number(reader: Reader, head: int) -> int:
    """The number in or after a head; only the shortest form is taken."""
    low = head & 31
    if low < 24:
        return low
    size = 1 << (low - 24)
    raw = reader.data[reader.pos : reader.pos + size]
    if low > 27 or len(raw) != size:
        reader.fail("a length or number is cut off or not in its shortest form")
    number = int.from_bytes(raw, "big")
    if number < (24, 0x100, 0x10000, 0x100000000)[low - 24]:
        reader.fail("a number is not in its shortest form")
    reader.pos += size
    return number


def _raw(reader: Reader, length: int) -> Any:
    start = reader.pos
    if length > reader.end - start:
        reader.fail("a length is larger than what is left")
    reader.pos = start + length
    return reader.data[start : reader.pos]


def _read_uint(reader: Reader, head: int) -> int:
    return _number(reader, head)


def _read_negative(reader: Reader, head: int) -> int:
    return ~_number(reader, head)


def _read_bytes(reader: Reader, head: int) -> bytes:
    return bytes(_raw(reader, _number(reader, head)))


def _read_text(reader: Reader, head: int) -> str:
    raw = _raw(reader, _number(reader, head))
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError:
        reader.fail("text is not UTF-8")


def _begin(reader: Reader, count: int, nodes: int) -> None:
    """A container of so many items, each of a byte at least."""
    if count > reader.end - reader.pos:
        reader.fail("a length is larger than what is left")
    reader.nodes -= nodes
    if reader.nodes < 0:
        reader.fail("it has too many values")
    reader.depth -= 1
    if reader.depth < 0:
        reader.fail("it is nested too deep")


def _items(reader: Reader, count: int) -> List[Any]:
    items: List[Any] = []
    add = items.append
    data, readers = reader.data, _READERS
    for _ in range(count):
        head = data[reader.pos]
        reader.pos += 1
        add(readers[head](reader, head))
    reader.depth += 1
    return items


def _read_array(reader: Reader, head: int) -> List[Any]:
    count = _number(reader, head)
    _begin(reader, count, count)
    return _items(reader, count)


def _read_map(reader: Reader, head: int) -> Dict[Any, Any]:
    count = _number(reader, head)
    start = reader.pos
    _begin(reader, 2 * count, 2 * count)
    items = _items(reader, 2 * count)
    keys = items[::2]
    made = _hashed(reader, keys, start, lambda: dict(zip(keys, items[1::2])))
    assert isinstance(made, dict)
    return made


def _hashed(reader: Reader, keys: List[Any], start: int, make: Callable[[], Any]) -> Any:
    """A dict or set, if its keys can be keys, differ, and do not collide by the thousand."""
    try:
        if len(keys) > FEW_KEYS:
            _check_keys(reader, keys, start)
        made = make()
    except Malformed:
        raise
    except Exception:  # what cannot be hashed; or a listed class has its own mind about comparing
        reader.fail("a key cannot be hashed")
    if len(made) != len(keys):
        reader.fail("a key occurs twice")
    return made


def _check_keys(reader: Reader, keys: List[Any], start: int) -> None:
    """Whoever chooses ints, or what is hashed like them, can choose that all land in one place; n keys then take n * n
    comparisons, each as long as the keys are. Hashes themselves spread well, so counting different ones is quick."""
    if _UNCHOSEN.issuperset(map(type, keys)):
        return
    same = len(keys) - len(set(map(hash, keys)))
    reader.cost -= same * (reader.pos - start)
    if reader.cost < 0:
        reader.fail("too many keys collide")


def _elements(reader: Reader, make: Callable[[List[Any]], Any]) -> Any:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY:
        reader.fail("a set must be an array")
    reader.pos += 1
    count = _number(reader, head)
    start = reader.pos
    _begin(reader, count, count)
    items, before = [], b""
    for _ in range(count):
        begin = reader.pos
        items.append(read_item(reader))
        encoding = bytes(reader.data[begin : reader.pos])
        if encoding < before:
            reader.fail("the elements of a set must be in order")
        before = encoding
    reader.depth += 1
    return _hashed(reader, items, start, lambda: make(items))


def _read_false(reader: Reader, head: int) -> bool:
    return False


def _read_true(reader: Reader, head: int) -> bool:
    return True


def _read_none(reader: Reader, head: int) -> None:
    return None


def _read_float(reader: Reader, head: int) -> float:
    raw = _raw(reader, 8)
    value: float = _unpack_double(raw)[0]
    if value != value and bytes(raw) != NAN[1:]:
        reader.fail("a NaN is not in its only form")
    return value


def _read_big(reader: Reader, head: int) -> int:
    inner = reader.data[reader.pos]
    if inner & 0xE0 != BYTES:
        reader.fail("a large number must be a byte string")
    reader.pos += 1
    raw = _raw(reader, _number(reader, inner))
    if len(raw) < 9 or raw[0] == 0:
        reader.fail("a number is not in its shortest form")
    number = int.from_bytes(raw, "big")
    return number if head == 0xC2 else ~number


def _read_uuid(reader: Reader, head: int) -> uuid.UUID:
    raw = bytes(_raw(reader, 18))
    if raw[:2] != HEAD_UUID[1:]:
        reader.fail("a tag is unknown")
    return uuid.UUID(bytes=raw[2:])


def _read_tag(reader: Reader, head: int) -> Any:
    raw = bytes(_raw(reader, 2))
    read = _TAG_READERS.get(raw)
    if read is None:
        reader.fail("a tag is unknown")
    return read(reader)


def _read_unknown(reader: Reader, head: int) -> NoReturn:
    reader.fail(f"no value begins with 0x{head:02x}")


def _is_own_tag(reader: Reader, tag: int) -> bool:
    return bytes(reader.data[reader.pos : reader.pos + 3]) == own_head(tag)


def _plain_text(reader: Reader) -> str:
    """A str: text, or the tag for what is not UTF-8. Nothing else is even looked at: parts of a value do not nest."""
    head = reader.data[reader.pos]
    if head & 0xE0 == TEXT or _is_own_tag(reader, TAG_STR):
        value = read_item(reader)
        assert isinstance(value, str)
        return value
    reader.fail("text is expected")


def _ints(reader: Reader, counts: Tuple[int, ...], numbers: int) -> Tuple[List[int], int]:
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


def _zone_or_none(reader: Reader) -> Any:
    if reader.data[reader.pos] == NONE or _is_own_tag(reader, TAG_TIMEZONE):
        return read_item(reader)
    reader.fail("a time zone is expected")


def _tag_str(reader: Reader) -> str:
    head = reader.data[reader.pos]
    if head & 0xE0 != BYTES:
        reader.fail("bytes are expected")
    reader.pos += 1
    raw = _read_bytes(reader, head)
    try:
        value = raw.decode("utf-8", "surrogatepass")
        value.encode("utf-8")
    except UnicodeDecodeError:
        reader.fail("text is not UTF-8 with surrogates")
    except UnicodeEncodeError:
        return value
    reader.fail("text without surrogates has the tag for surrogates")


def _tag_tuple(reader: Reader) -> Tuple[Any, ...]:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY:
        reader.fail("a tuple must be an array")
    reader.pos += 1
    return tuple(_read_array(reader, head))


def _tag_set(reader: Reader) -> Any:
    return _elements(reader, set)


def _tag_frozenset(reader: Reader) -> Any:
    return _elements(reader, frozenset)


def _tag_date(reader: Reader) -> datetime.date:
    text = _plain_text(reader)
    try:
        value = datetime.date.fromisoformat(text)
    except ValueError:
        reader.fail("there is no such date")
    if value.isoformat() != text:
        reader.fail("a date is not in its only form")
    return value


def _tag_datetime(reader: Reader) -> datetime.datetime:
    (*parts, fold), _ = _ints(reader, (9,), 8)
    zone = _zone_or_none(reader)
    try:
        return datetime.datetime(*parts, zone, fold=fold)  # type: ignore[misc, arg-type]
    except (ValueError, OverflowError):
        reader.fail("there is no such date and time")


def _tag_time(reader: Reader) -> datetime.time:
    (*parts, fold), _ = _ints(reader, (6,), 5)
    zone = _zone_or_none(reader)
    try:
        return datetime.time(*parts, zone, fold=fold)  # type: ignore[misc, arg-type]
    except (ValueError, OverflowError):
        reader.fail("there is no such time")


def _span(reader: Reader, parts: List[int]) -> datetime.timedelta:
    try:
        value = datetime.timedelta(*parts)
    except (ValueError, OverflowError):
        reader.fail("there is no such span of time")
    if [value.days, value.seconds, value.microseconds] != parts:
        reader.fail("a span of time is not in its only form")
    return value


def _tag_timedelta(reader: Reader) -> datetime.timedelta:
    return _span(reader, _ints(reader, (3,), 3)[0])


def _tag_timezone(reader: Reader) -> datetime.timezone:
    parts, rest = _ints(reader, (3, 4), 3)
    name = [_plain_text(reader) for _ in range(rest)]
    try:
        return datetime.timezone(_span(reader, parts), *name)
    except ValueError:
        reader.fail("there is no such time zone")


def _tag_decimal(reader: Reader) -> decimal.Decimal:
    text = _plain_text(reader)
    try:
        value = decimal.Decimal(text)
        is_same = DECIMAL_CONTEXT.to_sci_string(value) == text
    except (decimal.DecimalException, ValueError, OverflowError):
        is_same = False
    if not is_same:
        reader.fail("a decimal is not in its only form")
    return value


def _path_reader(cls: Any) -> Callable[[Reader], Any]:
    def read(reader: Reader) -> Any:
        text = _plain_text(reader)
        try:
            value = cls(text)
        except Exception:  # a path of another system, which this one cannot have
            reader.fail("this system cannot have such a path")
        if str(value) != text:
            reader.fail("a path is not in its only form")
        return value

    return read


def _tag_object(reader: Reader) -> Any:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY:
        reader.fail("an object must be an array")
    reader.pos += 1
    count = _number(reader, head)
    if count == 0:
        reader.fail("an object has no class")
    _begin(reader, count, count - 1)
    parts = _items(reader, count)
    index = parts.pop(0)
    if type(index) is not int or not 0 <= index < len(reader.listed):
        reader.fail("the class of an object is not in types")
    listed = reader.listed[index]
    try:
        return listed.make(parts)
    except (ValueError, TypeError, AttributeError) as error:
        reader.fail(f"cannot make a {type_name(listed.cls)}: {error}")


def _open_file(reader: Reader) -> Any:
    """The files, the next of which is the one that is named here."""
    head = reader.data[reader.pos]
    if head >= NEGATIVE:
        reader.fail("a file has no number")
    reader.pos += 1
    if _number(reader, head) != reader.file_count or reader.files is None:
        reader.fail("the files are not used in their order")
    reader.file_count += 1
    return reader.files


def _tag_file(reader: Reader) -> bytes:
    data = _open_file(reader).read()
    assert isinstance(data, bytes)
    return data


def _tag_array(reader: Reader) -> Any:
    if array_type() is None:
        reader.fail("it has a numpy array, and numpy is not loaded here; import it first")
    numpy: Any = sys.modules["numpy"]

    if reader.data[reader.pos] != ARRAY | 3:
        reader.fail("an array has the wrong number of parts")
    reader.pos += 1
    text = _plain_text(reader)
    shape = _shape(reader)
    try:
        dtype = numpy.dtype(text) if ARRAY_DTYPE.match(text) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.str != text or dtype.hasobject or dtype.itemsize <= 0:
        reader.fail("there is no such dtype")
    length = dtype.itemsize
    for side in shape:
        length *= side
    return _array_data(reader, numpy, dtype, shape, length)


def _shape(reader: Reader) -> List[int]:
    head = reader.data[reader.pos]
    if head & 0xE0 != ARRAY or head & 31 > MAX_DIMENSIONS:
        reader.fail("a shape has too many sides")
    sides, _ = _ints(reader, (head & 31,), head & 31)
    _begin(reader, 0, len(sides) + 2)
    reader.depth += 1
    if any(side < 0 for side in sides):
        reader.fail("a side is negative")
    return sides


def _array_data(reader: Reader, numpy: Any, dtype: Any, shape: List[int], length: int) -> Any:
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
        reader.fail("the shape of an array does not fit its bytes")
    made = numpy.empty(length, numpy.uint8)
    if files is not None:
        files.read_into(made.data)
    else:
        made.data[:] = raw
    try:
        return made.view(dtype).reshape(shape)
    except ValueError:
        reader.fail("an array cannot have that shape")


_TAG_READERS: Dict[bytes, Callable[[Reader], Any]] = {
    HEAD_SET[1:]: _tag_set,
    HEAD_DATE[1:]: _tag_date,
    own_head(TAG_STR)[1:]: _tag_str,
    own_head(TAG_TUPLE)[1:]: _tag_tuple,
    own_head(TAG_FROZENSET)[1:]: _tag_frozenset,
    own_head(TAG_DATETIME)[1:]: _tag_datetime,
    own_head(TAG_TIME)[1:]: _tag_time,
    own_head(TAG_TIMEDELTA)[1:]: _tag_timedelta,
    own_head(TAG_TIMEZONE)[1:]: _tag_timezone,
    own_head(TAG_DECIMAL)[1:]: _tag_decimal,
    **{own_head(tag)[1:]: _path_reader(cls) for cls, tag in PATH_TAGS.items()},
    own_head(TAG_OBJECT)[1:]: _tag_object,
    own_head(TAG_FILE)[1:]: _tag_file,
    own_head(TAG_ARRAY)[1:]: _tag_array,
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
