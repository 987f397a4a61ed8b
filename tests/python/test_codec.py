# SPDX-License-Identifier: Apache-2.0
"""Results as bytes: exact types back, one encoding for each value, and a reader that nothing can surprise."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import pickle
import random
import struct
import sys
import time
import tracemalloc
import typing
import unittest
import uuid

from belljar._codec import Codec, decode, encode
from belljar._codec_read import Malformed
from belljar._errors import CallError, ResultError

try:
    import cbor2
except ImportError:
    cbor2 = None  # type: ignore[assignment]

FUZZ_SECONDS = 2.0


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"
    CRIMSON = 1


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


@dataclasses.dataclass
class Point:
    x: int
    y: typing.Any = 0
    calls: typing.ClassVar[int] = 0

    def __post_init__(self) -> None:
        Point.calls += 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    name: str
    size: int = dataclasses.field(default=0, init=False)


class Pair(typing.NamedTuple):
    left: int
    right: typing.Any = None


Old = collections.namedtuple("Old", "a b")
LISTED = (Colour, Level, Mode, Point, Frozen, Pair, Old)
HOUR = datetime.timedelta(hours=1)

SCALARS: list[typing.Any] = [
    *(None, True, False, 0, 1, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1, 2**64, 2**200, 10**5000),
    *(-1, -24, -25, -256, -257, -(2**32), -(2**64), -(2**64) - 1, -(10**5000)),
    *(0.0, -0.0, 1.5, 1e308, 5e-324, math.inf, -math.inf),
    *("", "a", "é€😀", "x" * 300, "a\0b", "\udc80", "ok\ud83d\ude00", "\U0010ffff"),
    *(b"", b"\0\xff", b"y" * 70000),
    *(datetime.date.min, datetime.date.max, datetime.date(2024, 2, 29)),
    *(datetime.time(1, 2, 3, 4), datetime.time(1, fold=1), datetime.time(0, tzinfo=datetime.timezone.utc)),
    *(datetime.datetime.min, datetime.datetime.max, datetime.datetime(2024, 10, 27, 2, 30, fold=1)),
    datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(HOUR, "CET")),
    *(datetime.timedelta.min, datetime.timedelta.max, datetime.timedelta(microseconds=-1), datetime.timedelta(0)),
    *(datetime.timezone.utc, datetime.timezone(-HOUR), datetime.timezone(datetime.timedelta(0), "UTC")),
    *map(decimal.Decimal, ["0", "-0", "1.10", "1E+2", "-1E-400", "Infinity", "-Infinity", "9" * 3000]),
    uuid.UUID(int=0),
    uuid.UUID(int=2**128 - 1),
    *map(pathlib.PurePosixPath, ["", "/", "//a/b", "a/../b", "\udcff"]),
    *map(pathlib.PureWindowsPath, ["", "c:/a", "c:a", "//server/share/x", "a/b"]),
    pathlib.Path("/tmp/x"),
]


def exact(value: typing.Any) -> typing.Any:
    """A form in which two values are equal only if they are of the same types, down to signs of zero and order."""
    if isinstance(value, dict):
        return ("dict", [(exact(key), exact(item)) for key, item in value.items()])
    if type(value) in (set, frozenset):
        return (type(value).__name__, sorted(map(repr, map(exact, value))))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [exact(item) for item in value])
    if isinstance(value, enum.Enum):
        return (type(value).__name__, value)
    if dataclasses.is_dataclass(value):
        return (type(value).__name__, [exact(getattr(value, field.name)) for field in dataclasses.fields(value)])
    if isinstance(value, int):
        return (type(value).__name__, value)
    fold = getattr(value, "fold", None)
    return (type(value).__name__, repr(value), fold)


class RoundTrip(unittest.TestCase):
    def same(self, value: typing.Any, codec: typing.Optional[Codec] = None) -> bytes:
        codec = codec or Codec()
        data = codec.encode(value)
        back = codec.decode(data)
        self.assertEqual(exact(back), exact(value))
        self.assertEqual(codec.encode(back), data)
        return data

    def test_scalars_come_back_exactly(self) -> None:
        for value in SCALARS:
            self.same(value)
            self.same([value, (value,), {"k": value}])

    def test_nan_comes_back_in_one_form(self) -> None:
        other = struct.unpack(">d", b"\xff\xf8\0\0\0\0\0\1")[0]
        self.assertEqual(encode(other), encode(math.nan))
        self.assertTrue(math.isnan(decode(encode(math.nan))))
        for text in ("NaN", "-NaN", "sNaN", "NaN123"):
            self.assertEqual(str(decode(encode(decimal.Decimal(text)))), text)

    def test_containers_keep_their_types(self) -> None:
        nested = {"list": [], "tuple": (), "dict": {}, "set": set(), "frozenset": frozenset()}
        self.same(nested)
        self.same([1, (2, [3, ({"x": (4,)},)])])
        self.same({(1, 2), frozenset({3}), "a", b"a", None, 2.5, datetime.date(2020, 1, 1)})

    def test_keys_keep_their_types_and_order(self) -> None:
        back = decode(encode({True: "bool", 2: "int", "2": "str", b"2": "bytes", (1,): "tuple", None: "none", 2.5: "f"}))
        self.assertEqual([type(key) for key in back], [bool, int, str, bytes, tuple, type(None), float])
        self.assertEqual(list(decode(encode({"b": 1, "a": 2}))), ["b", "a"])
        nan = [math.nan, float("nan")]
        self.assertEqual(len(decode(encode({nan[0]: 1, nan[1]: 2}))), 2)
        self.assertEqual(len(decode(encode({nan[0], nan[1]}))), 2)

    def test_sets_have_one_encoding_whatever_their_history(self) -> None:
        words = [f"w{number}" for number in range(200)]
        other = set(reversed(words)) | {"more"}
        other.remove("more")
        self.assertEqual(encode(set(words)), encode(other))

    def test_the_thread_s_decimal_context_does_not_matter(self) -> None:
        with decimal.localcontext() as context:
            context.capitals = 0
            context.prec = 3
            self.same(decimal.Decimal("1.23456E+50"))

    def test_listed_classes(self) -> None:
        codec = Codec(LISTED)
        for value in (Colour.GREEN, Colour.CRIMSON, Level.LOW, Mode.READ | Mode.RUN, Mode(0)):
            self.assertIs(codec.decode(codec.encode(value)), value)
        frozen = Frozen("n")
        object.__setattr__(frozen, "size", 7)
        for value in (Point(1, [Point(2)]), frozen, Pair(1, Pair(2)), Old({}, ()), {Frozen("k"): Colour.RED}, [Pair(1)]):
            self.same(value, codec)

    def test_no_code_of_a_listed_class_is_called(self) -> None:
        codec = Codec([Point])
        data = codec.encode(Point(1))
        before = Point.calls
        self.assertEqual((codec.decode(data).x, Point.calls), (1, before))

    def test_large_values_are_not_copied_into_one_piece(self) -> None:
        big = bytes(3 << 20)
        parts, _ = Codec().encode_parts([big, 1])
        self.assertTrue(any(part is big for part in parts))
        self.assertEqual(decode(bytearray(b"".join(parts))), [big, 1])
        self.assertEqual(decode(memoryview(b"".join(parts))), [big, 1])


class Refusals(unittest.TestCase):
    def refused(self, value: typing.Any, *words: str, codec: typing.Optional[Codec] = None) -> None:
        with self.assertRaises(ResultError) as caught:
            (codec or Codec()).encode(value)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_the_type_and_the_place_are_named(self) -> None:
        self.refused(object(), "type object at $ ")
        self.refused([0, 1, {"x": object()}], 'type object at $[2]["x"] ')
        self.refused({"a": ({1: [range(2)]},)}, 'type range at $["a"][0][1][0] ')
        self.refused({(1, range(2)): 0}, "range", "$.key")
        self.refused({frozenset({range(2)})}, "range", ".element")
        self.refused(Point(1, range(2)), "$.y ", codec=Codec([Point]))
        self.refused([bytearray()], "bytearray at $[0]")
        self.refused(lambda: None, "function")
        self.refused({10**6000: object()}, "object at $[<int>]")

    def test_subclasses_are_refused(self) -> None:
        class Text(str):
            pass

        for value in (Text("x"), collections.OrderedDict(), collections.defaultdict(list), Level.LOW, Pair(1), Point(1)):
            self.refused([value], type(value).__name__, "$[0]")
        self.refused(collections.OrderedDict(), "subclass of dict")
        self.refused(Level.LOW, "list the class in types=")

    def test_time_zones_other_than_fixed_ones(self) -> None:
        class Zone(datetime.tzinfo):
            pass

        self.refused([datetime.datetime(2020, 1, 1, tzinfo=Zone())], "Zone at $[0].tzinfo")
        self.refused(datetime.time(1, tzinfo=Zone()), "$.tzinfo")

    def test_a_field_that_was_never_set(self) -> None:
        point = Point(1)
        del point.x
        self.refused([point], "$[0].x was never set", codec=Codec([Point]))

    def test_what_may_be_listed(self) -> None:
        for wrong in (int, dict, object, "Point", Point(1)):
            with self.assertRaises(TypeError):
                Codec([wrong])  # type: ignore[list-item]

    def test_depth(self) -> None:
        def nest(depth: int, inner: typing.Any) -> typing.Any:
            for level in range(depth):
                inner = [inner] if level % 2 else (inner,)
            return inner

        self.assertEqual(decode(encode(nest(100, 1))), nest(100, 1))
        self.refused(nest(101, 1), "more than 100 deep")
        self.refused(nest(100, []), "more than 100 deep")
        circle: list[typing.Any] = []
        circle.append(circle)
        self.refused(circle, "more than 100 deep")

    def test_nodes(self) -> None:
        codec = Codec(max_nodes=10)
        self.assertEqual(codec.decode(codec.encode([0] * 9)), [0] * 9)
        self.refused([0] * 10, "more than 10 values", codec=codec)
        self.refused([dict.fromkeys("abcd", 0)] * 2, "more than 10 values", codec=codec)
        with self.assertRaises(Malformed):
            codec.decode(encode([0] * 10))

    def test_bytes(self) -> None:
        codec = Codec(max_bytes=100)
        self.refused([b"x" * 99, 1, 2], "more than 100 bytes", codec=codec)
        self.refused("x" * 101, "more than 100 bytes", codec=codec)
        self.refused(1 << 900, "more than 100 bytes", codec=codec)
        self.assertEqual(codec.decode(codec.encode("x" * 98)), "x" * 98)
        with self.assertRaises(ResultError):
            codec.decode(bytes(101))

    def test_the_error_is_a_call_error_and_crosses_processes(self) -> None:
        with self.assertRaises(ResultError) as caught:
            encode(object())
        self.assertIsInstance(caught.exception, (CallError, TypeError))
        self.assertEqual(str(pickle.loads(pickle.dumps(caught.exception))), str(caught.exception))


OTHER_FORMS = {
    "nothing": "",
    "two values": "0000",
    "trailing byte": "f600",
    "number too long": "1800 1817 190017 1900ff 1a0000ffff 1b00000000ffffffff 3800 5800 780161 980100 b800",
    "big number that is small": "c240 c24101 c24900ffffffffffffffff c248ffffffffffffffff c348ffffffffffffffff",
    "big number of another kind": "c200 c2824101 c260 c2c24900",
    "indefinite": "5f4100ff 7f6161ff 9f00ff bf0000ff ff",
    "reserved": "1c 1d 1e 3c 5c 7c 9c bc fc fd fe",
    "simple and short floats": "e0 f0 f7 f800 f820 f93c00 fa3f800000",
    "other NaN": "fb7ff8000000000001 fbfff8000000000000 fb7ff0000000000001",
    "cut off": "18 19ff 1affffff 41 61 81 a100 a1 d9 d9be d9be01 c2 fb00 d825 d8255000 d90102",
    "lengths beyond the end": "9a7fffffff 9bffffffffffffffff ba7fffffff bbffffffffffffffff 5b7fffffffffffffff 7bffffffffffffffff",
    "not UTF-8": "61ff 62c328 63eda080 64f4908080",
    "key twice": "a200000000 a2000000f5 a201000100 a2fb3ff0000000000000000100 a20100f500",
    "bad keys": "a18000 a1a000 a1d9be018100 a1d901028000",
    "unordered set": "d90102820201 d9be02820201 d90102820101 d901028201f5 d9010200 d90102a0",
    "unhashable element": "d901028180",
    "unknown tags": "c000 c100 c4820001 d82000 d8184100 d9beff00 d9be0d00 d9d9f700 da0001000000 c11a00000000",
    "uuid": "d8254f00000000000000000000000000000000 d82451ffffffffffffffffffffffffffffffffff d8255000",
    "str that needs no tag": "d9be004161 d9be006161 d9be0042ff61 d9be00d9be0041ff",
    "tuple": "d9be0100 d9be01a0 d9be01d9be0180",
    "date": "d903ec6a323032332d30322d3330 d903ec683230323430313031 d903ec00 d903ec6a323032342d57303131",
    "datetime": "d9be03880101010000000000 d9be0389000101000000000000f6 d9be038901010118180000000000f6 d9be0389010101000000000200f6"
    " d9be038901010100000000000000",
    "time": "d9be048618180000000000f6 d9be0485000000000000 d9be0486000000000002f6 d9be04860000000000d9be04860000000000f6",
    "timedelta": "d9be05830000 d9be0583002000 d9be058300001a000f4240 d9be05831a3b9aca000000 d9be0583001a0001518000 d9be0583f50000",
    "timezone": "d9be0683010000 d9be06840000004161 d9be068400000000",
    "decimal": "d9be0700 d9be076161 d9be07623031 d9be0763316532 d9be076431453032 d9be0760 d9be07622031",
    "path": "d9be0860 d9be0863612f2f d9be08632e2f61 d9be0a63612f2f d9be0b6161 d9be0800",
    "object": "d9be0c80 d9be0c8100 d9be0c00",
}


class Reading(unittest.TestCase):
    def test_every_other_form_is_refused(self) -> None:
        for what, forms in OTHER_FORMS.items():
            for form in forms.split() or [""]:
                with self.assertRaises(ResultError, msg=f"{what}: {form}"):
                    decode(bytes.fromhex(form))

    def test_every_beginning_and_every_addition_is_refused(self) -> None:
        data = encode([1, "text", b"bytes", {"k": (1.5, None)}, {1, 2}, datetime.date(2020, 1, 1), uuid.UUID(int=5), 2**70])
        decode(data)
        for end in range(len(data)):
            with self.assertRaises(Malformed):
                decode(data[:end])
        with self.assertRaises(Malformed):
            decode(data + b"\0")

    def test_objects_are_only_of_listed_classes_and_with_their_own_parts(self) -> None:
        codec = Codec(LISTED)
        places = {cls: index for index, cls in enumerate(LISTED)}

        def forged(cls: typing.Any, *parts: typing.Any) -> bytes:
            index = places[cls] if isinstance(cls, type) else cls
            return b"\xd9\xbe\x0c" + encode([index, *parts])

        self.assertEqual(codec.decode(forged(Point, 1, 2)), Point(1, 2))
        wrong = [
            *((len(LISTED), 1), (-1, 1), (True, 1), ("Point", 1, 2), (Point,), (Point, 1), (Point, 1, 2, 3)),
            *((Colour,), (Colour, 1), (Colour, "BLUE"), (Colour, "CRIMSON"), (Colour, "__class__"), (Colour, ["RED"])),
            *((Level, 1), (Mode, 8), (Mode, -1), (Mode, "READ"), (Mode, True), (Pair, 1), (Pair, 1, 2, 3), (Old,)),
        ]
        for cls, *parts in wrong:
            with self.assertRaises(Malformed, msg=f"{cls} {parts}"):
                codec.decode(forged(cls, *parts))
        with self.assertRaises(Malformed):
            decode(forged(Point, 1, 2))

    def test_nesting_of_every_kind_is_bounded(self) -> None:
        kinds = ["81", "a100", "d9be0181", "d9010281", "d9be0281", "d9be0c8200", "d9be00", "d9be038901010100000000 00"]
        kinds += ["d9be07", "d9be08", "d9be0684000000", "d903ec", "c2", "d8", "d9be04860000000000"]
        for kind in kinds:
            head = bytes.fromhex(kind.replace(" ", ""))
            for codec in (Codec(), Codec([Point])):
                with self.assertRaises(Malformed, msg=kind):
                    codec.decode(head * 100_000 + b"\0")

    def test_lengths_allocate_nothing(self) -> None:
        heads = ["9a00ffffff", "ba00ffffff", "5a7fffffff", "7a7fffffff", "d9be019a00ffffff", "d901029a00ffffff", "c25a7fffffff"]
        tracemalloc.start()
        try:
            for head in heads:
                with self.assertRaises(Malformed):
                    decode(bytes.fromhex(head) + bytes(1000))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        self.assertLess(peak, 1 << 20)

    def test_keys_that_collide_cannot_keep_the_host_busy(self) -> None:
        prime = 2**61 - 1
        many = 100_000
        encodings = sorted(encode(number * prime) for number in range(1, many))
        for data in (
            b"\xba" + struct.pack(">I", len(encodings)) + b"".join(item + b"\0" for item in encodings),
            b"\xd9\x01\x02\x9a" + struct.pack(">I", len(encodings)) + b"".join(encodings),
        ):
            with self.assertRaises(Malformed) as caught:
                decode(data)
            self.assertIn("collide", str(caught.exception))
        ordinary = {2**number for number in range(1000)}
        self.assertEqual(decode(encode(ordinary)), ordinary)
        plain = {number: -number for number in range(50_000)}
        self.assertEqual(decode(encode(plain)), plain)

    def test_reading_imports_nothing(self) -> None:
        before = set(sys.modules)
        for value in SCALARS:
            decode(encode(value))
        self.assertEqual(set(sys.modules) - before, set())


def random_value(source: random.Random, depth: int) -> typing.Any:
    """Any value that can be sent."""
    kind = source.randrange(8 if depth else 1)
    below = [random_value(source, depth - 1) for _ in range(source.randrange(4))] if kind else []
    keys = [source.choice(SCALARS) for _ in below]
    if kind == 0:
        return source.choice([*SCALARS, source.getrandbits(70), source.random(), source.randbytes(3)])
    makers: list[typing.Any] = [list, tuple, lambda items: dict(zip(keys, items)), lambda items: {"k": items}]
    makers += [lambda items: set(keys), lambda items: frozenset(keys), lambda items: Point(1, items)]
    return makers[kind - 1](below)


class Fuzz(unittest.TestCase):
    """Bounded in time. What is read from changed bytes is either refused or writes the same bytes again."""

    def test_random_values_and_mutations(self) -> None:
        seed = random.SystemRandom().randrange(2**32)
        source = random.Random(seed)
        codec = Codec(LISTED)
        end = time.monotonic() + FUZZ_SECONDS
        rounds = read = 0
        while time.monotonic() < end or rounds < 20:
            rounds += 1
            value = random_value(source, 4)
            data = codec.encode(value)
            self.assertEqual(codec.encode(codec.decode(data)), data, seed)
            for _ in range(20):
                changed = bytearray(data)
                for _ in range(source.randrange(1, 4)):
                    at = source.randrange(len(changed) + 1)
                    choice = source.randrange(4)
                    if choice == 0:
                        del changed[at : at + source.randrange(1, 5)]
                    elif choice == 1:
                        changed[at:at] = source.randbytes(source.randrange(1, 4))
                    elif choice == 2:
                        heads = [b"\xd9\xbe\x01", b"\xd9\x01\x02", b"\x9a\xff\xff\xff\xff", b"\xd9\xbe\x0c"]
                        changed[at:at] = source.choice(heads)
                    elif at < len(changed):
                        changed[at] ^= 1 << source.randrange(8)
                try:
                    back = codec.decode(changed)
                except ResultError:
                    continue
                read += 1
                self.assertEqual(codec.encode(back), bytes(changed), seed)

    def test_random_bytes(self) -> None:
        source = random.Random(random.SystemRandom().randrange(2**32))
        end = time.monotonic() + FUZZ_SECONDS / 2
        rounds = 0
        while time.monotonic() < end or rounds < 100:
            rounds += 1
            data = source.randbytes(source.randrange(1, 40))
            try:
                back = decode(data)
            except ResultError:
                continue
            self.assertEqual(encode(back), data)


@unittest.skipIf(cbor2 is None, "needs:cbor2 to compare with")
class Oracle(unittest.TestCase):
    """python3-cbor2 reads what we write, and we read what it writes in its canonical form where the forms agree."""

    def test_what_we_write_is_cbor_with_the_same_meaning(self) -> None:
        plain = [None, True, 0, 23, 24, 2**32, 2**64, -(2**70), 1.5, -0.0, math.inf, "é", b"x", [1, [2]], {"a": {1: b""}}]
        plain += [{1, 2, 3}, uuid.UUID(int=77)]
        for value in plain:
            back = cbor2.loads(encode(value))
            self.assertEqual((type(back), back), (type(value), value))

    def test_our_own_tags_are_well_formed(self) -> None:
        for value in SCALARS:
            back = cbor2.loads(encode([value]))
            self.assertEqual(len(back), 1)
        self.assertEqual(cbor2.loads(encode((1, 2))).tag, 0xBE01)

    def test_we_read_what_it_writes(self) -> None:
        for value in (None, False, 1000, -1000, 2**64, "text", b"bytes", [1, 2, [3]], {"a": 1, "b": [2]}, uuid.UUID(int=5)):
            self.assertEqual(decode(cbor2.dumps(value)), value)

    def test_whatever_we_read_it_reads_too(self) -> None:
        source = random.Random(random.SystemRandom().randrange(2**32))
        end = time.monotonic() + FUZZ_SECONDS / 2
        while time.monotonic() < end:
            value = random_value(source, 3)
            try:
                data = encode(value)
            except ResultError:
                continue
            self.assertEqual(cbor2.loads(data), cbor2.loads(cbor2.dumps(cbor2.loads(data))))


if __name__ == "__main__":
    unittest.main()
