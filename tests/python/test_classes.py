# SPDX-License-Identifier: Apache-2.0
"""Classes that no import leads to: those of scripts, sessions, notebooks and functions, as arguments and as results."""

from __future__ import annotations

import dataclasses
import enum
import pickle
import subprocess
import sys
import threading
import types
import typing
import unittest
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import belljar
from belljar._result_types import result_types
from package_case import BOUND_SECONDS, PackageCase, tearDownModule  # noqa: F401

# What a script, a session or a notebook defines.
CLASSES = """
import abc, collections, dataclasses, enum, functools, typing
from dataclasses import dataclass, field
from typing import Dict, Generic, List, NamedTuple, Optional, TypeVar, Union

T = TypeVar("T")

class Color(enum.Enum):
    RED = 1
    GREEN = "g"
    ALIAS = 1

    def nice(self):
        return self.name.lower()

class Planet(enum.Enum):
    EARTH = (1, 2)
    MARS = (3, 4)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    @property
    def ratio(self):
        return self.mass / self.radius

    @classmethod
    def _missing_(cls, value):
        return cls.EARTH

class Access(enum.IntFlag):
    R = 1
    W = 2
    RW = 3

class Word(str, enum.Enum):
    A = "a"

@dataclass
class Item:
    name: str
    count: int = 3
    tags: List[str] = field(default_factory=list, metadata={"unit": "cm"})

    def total(self):
        return self.count * FACTOR

    @classmethod
    def make(cls, name) -> "Item":
        return cls(name)

    @staticmethod
    def two():
        return 2

    @functools.cached_property
    def long(self):
        return self.name * 3

@dataclass(order=True)
class Special(Item):
    def total(self):
        return super().total() + 1

@dataclass(frozen=True)
class Cart:
    items: List[Item]
    where: "Optional[Point]" = None

class Point(NamedTuple):
    x: int
    y: int = 0

    def norm(self):
        return self.x + self.y

Pair = collections.namedtuple("Pair", "a b", defaults=[5])

class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

class Square(Shape):
    def __init__(self, side):
        super().__init__()
        self.side = side

    def area(self):
        return self.side ** 2

class Box(Generic[T]):
    def __init__(self, value: T):
        self.value = value

class Slotted:
    __slots__ = ("a", "__hidden")

    def __init__(self):
        self.a, self.__hidden = 1, 2

    def get(self):
        return self.a + self.__hidden

class Node:
    def __init__(self, below=None):
        self.below = below

    def depth(self) -> int:
        return 1 + (self.below.depth() if self.below else 0)

    def on_top(self):
        return put_on(self)

class Meta(type):
    def __call__(cls, *args):
        return ("made", super().__call__(*args))

class Made(metaclass=Meta):
    pass

@dataclass(frozen=True)
class Of(Generic[T]):
    value: T
    shared: typing.ClassVar[int] = 3

@dataclass
class Later:
    x: int
    y: dataclasses.InitVar[int] = 2

    def __post_init__(self, y):
        self.x += y

@typing.runtime_checkable
class Sized(typing.Protocol):
    def area(self) -> int: ...

class Entry(typing.TypedDict, total=False):
    key: int

class Lower(enum.Enum):
    def _generate_next_value_(name, start, count, last):
        return name.lower()

    A = enum.auto()
    B = enum.auto()

class Bits(enum.Flag):
    A = 1
    B = 2
    BOTH = 3

class Kind:
    names = []

    def __init_subclass__(cls, **keywords):
        super().__init_subclass__(**keywords)
        cls.names.append(cls.__name__)

class SubKind(Kind):
    class Inner:
        number = 1

    def __init__(self):
        self._number = 1

    @property
    def number(self):
        "words"
        return self._number

    @number.setter
    def number(self, value):
        self._number = value

@functools.total_ordering
class Ordered:
    def __init__(self, rank):
        self.rank = rank

    def __eq__(self, other):
        return self.rank == other.rank

    def __lt__(self, other):
        return self.rank < other.rank

class Problem(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")

Number = typing.NewType("Number", int)
Names = [getattr(typing, name)(name) for name in ("ParamSpec", "TypeVarTuple") if hasattr(typing, name)]

FACTOR = 2

def put_on(node: Node) -> Node:
    return Node(node)
"""

# Expressions, and whether the classes mean the same inside.
EXPRESSIONS = """
[Color.ALIAS is Color.RED, Color("g").nice(), list(Color), Color["GREEN"].value]
[Planet.MARS.ratio, [planet.mass for planet in Planet], Planet((3, 4)) is Planet.MARS, Planet(99)]
[Access.R | Access.W, Access.RW == 3, Access(1), f"{Access.R}", repr(Access.RW)]
[Word("a") == "a", str(Word.A), f"{Word.A}", Word.A.upper()]
[Item("x"), Item("x") == Item("x"), Item("x").tags is Item("x").tags, Item("x").total(), Item("x").long]
[Item.make("q"), Item.two(), dataclasses.asdict(Item("x")), dataclasses.replace(Item("x"), count=9)]
[dataclasses.fields(Item)[2].metadata["unit"], dataclasses.fields(Item)[0].default is dataclasses.MISSING, Item.__match_args__ if hasattr(Item, "__match_args__") else None]
[Special("a") < Special("b"), Special("a").total(), isinstance(Special("a"), Item), Special.__mro__[1] is Item]
[Cart([Item("z")], Point(3)), hash(Cart((), Point(1))) == hash(Cart((), Point(1)))]
[Point(1).norm(), Point(3)._replace(x=4), Point._make([1, 2]), Point(1, 2) == (1, 2), Point._fields, Point._field_defaults]
[Pair(1), Pair(1)._asdict(), Pair(1)[1]]
[Square(3).area(), isinstance(Square(1), Shape), sorted(Shape.__abstractmethods__)]
[Box(3).value, Box[int](4).value, Box.__parameters__ == (T,)]
[Slotted().get(), hasattr(Slotted(), "__dict__")]
[Node(Node()).depth(), Node().on_top().depth()]
[type(Made) is Meta, Made()[0]]
[Of(1), Of[int](2), Of.shared, hash(Of(1)) == hash(Of(1)), Later(1), Later(1, 5)]
[isinstance(Square(1), Sized), isinstance(3, Sized), Entry(key=1), Entry.__total__]
[list(Lower), Bits.A | Bits.B, ~Bits.A, Bits(0), list(Bits.__members__), Bits.A in Bits.BOTH]
["SubKind" in Kind.names, SubKind.Inner.number, SubKind.Inner.__qualname__, SubKind().number, SubKind.number.__doc__]
[Ordered(1) <= Ordered(2), Ordered(3) > Ordered(2), str(Problem(4)), isinstance(Problem(1), ValueError)]
[Number(3), [name.__name__ for name in Names]]
[Item.__doc__, Item.__module__, Item.__qualname__, Square.area.__qualname__, Item.total.__name__]
"""

FUNCTIONS = """
import belljar
results = []
for line in EXPRESSIONS.strip().splitlines():
    function = eval("lambda: repr(" + line + ")")
    results.append((line, belljar.call(function), function()))
for line, inside, outside in results:
    if inside != outside:
        print("DIFFERENT", line, inside, outside)

def gives_item() -> Item:
    return Item("a")
def gives_point() -> Optional[Point]:
    return Point(1)
def gives_colors() -> "Dict[str, List[Color]]":
    return {"x": [Color.RED, Color.GREEN]}
def gives_union() -> Union[int, Pair]:
    return Pair(1)
def gives_cart() -> Cart:
    return Cart([Item("z")], Point(3))
async def gives_later() -> Item:
    return Item("async")
def takes(item, point, color, access, node):
    return [item.total(), point.norm(), color.nice(), access == 3, node.depth()]

for function in (gives_item, gives_point, gives_colors, gives_union, gives_cart, gives_later, Item.make):
    arguments = ["m"] if function == Item.make else []
    value = belljar.call(function, *arguments)
    print(value, end=" ")
print()
print(type(belljar.call(gives_item)) is Item, type(belljar.call(gives_cart).where) is Point, belljar.call(gives_colors)["x"][0] is Color.RED)
print(belljar.call(takes, Item("x"), Point(1, 2), Color.RED, Access.RW, Node(Node())))
print(belljar.call(lambda: [Special("s"), Access.W], types=[Special, Access]))
print(belljar.call(Item, "called"))
try:
    belljar.call(lambda: Item("x"))
except belljar.ResultError as error:
    print(error)
"""

EXPECTED = """\
Item(name='a', count=3, tags=[]) Point(x=1, y=0) {'x': [<Color.RED: 1>, <Color.GREEN: 'g'>]} Pair(a=1, b=5) \
Cart(items=[Item(name='z', count=3, tags=[])], where=Point(x=3, y=0)) Item(name='async', count=3, tags=[]) \
Item(name='m', count=3, tags=[]) 
True True True
[6, 3, 'red', True, 2]
[Special(name='s', count=3, tags=[]), %s]
Item(name='called', count=3, tags=[])
a value of type MODULE.Item at $ is not data that can leave a jar; to allow it, list the class in types=, or name it in \
the function's return annotation
""" % repr(enum.IntFlag("Access", {"R": 1, "W": 2}).W)

PROGRAM = CLASSES + f'EXPRESSIONS = """{EXPRESSIONS}"""\n' + FUNCTIONS


@dataclasses.dataclass
class Inner:
    """Held by another."""

    number: int


@dataclasses.dataclass
class Outer:
    """Holds another."""

    inner: Optional[Inner]
    shades: "List[Shade]"


class Shade(enum.Enum):
    """Named by text only."""

    DARK = 1


class Row(NamedTuple):
    """Of a table."""

    cell: Inner


class Table(typing.TypedDict):
    """A dict, which may hold classes."""

    rows: List[Row]


def made_by_module(number: int) -> Outer:
    """Of a class of this module."""
    return Outer(Inner(number), [Shade.DARK])


class Sessions(PackageCase):
    """The same program, run in all the ways there are."""

    def run_python(self, *words: str, text: str = "") -> str:
        """What an interpreter prints."""
        done = subprocess.run(
            [sys.executable, *words], input=text, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def expected(self, module: str = "__main__") -> str:
        """What the program prints as that module."""
        return EXPECTED.replace("MODULE", module)

    def test_a_command(self) -> None:
        self.assertEqual(self.run_python("-c", PROGRAM), self.expected())

    def test_a_script(self) -> None:
        (self.work / "script.py").write_text(PROGRAM)
        self.assertEqual(self.run_python("script.py"), self.expected())

    def test_a_module_that_is_run(self) -> None:
        (self.work / "bj_program.py").write_text(PROGRAM)
        self.assertEqual(self.run_python("-m", "bj_program"), self.expected())

    def test_standard_input(self) -> None:
        self.assertEqual(self.run_python("-", text=PROGRAM), self.expected())

    def test_an_interactive_session(self) -> None:
        cells = f"exec(compile({CLASSES!r}, '<cell 1>', 'exec'))\nEXPRESSIONS = {EXPRESSIONS!r}\n"
        cells += f"exec(compile({FUNCTIONS!r}, '<cell 2>', 'exec'))\n"
        self.assertEqual(self.run_python("-i", "-q", text=cells), self.expected())

    def test_code_that_is_executed_in_a_dictionary(self) -> None:
        script = f"exec({PROGRAM!r}, {{}})"
        self.assertEqual(self.run_python("-c", script), self.expected("builtins").replace("builtins.Item", "Item"))

    def test_a_module_that_sys_path_does_not_lead_to(self) -> None:
        folder = self.base / "elsewhere"
        folder.mkdir()
        (folder / "bj_loaded.py").write_text(PROGRAM)
        script = (
            "import importlib.util, sys\n"
            f"spec = importlib.util.spec_from_file_location('bj_loaded', {str(folder / 'bj_loaded.py')!r})\n"
            "module = importlib.util.module_from_spec(spec)\n"
            "sys.modules['bj_loaded'] = module\n"
            "spec.loader.exec_module(module)\n"
        )
        self.assertEqual(self.run_python("-c", script), self.expected("bj_loaded"))

    def test_in_a_jar_that_is_kept_and_in_a_tool(self) -> None:
        script = CLASSES + (
            "import belljar, sys\n"
            "@belljar.tool(timeout=20)\n"
            "def grow(item: Item) -> Item: return dataclasses.replace(item, count=item.count + 1)\n"
            "with belljar.Jar(workdir=None, ro=[sys.base_prefix]) as jar: print(jar.call(Item, 'jar'), grow(Item('tool')))\n"
            "with belljar.Pool() as pool: print(list(pool.map(Item.make, ['a', 'b'])))\n"
        )
        said = "Item(name='jar', count=3, tags=[]) Item(name='tool', count=4, tags=[])\n"
        said += "[Item(name='a', count=3, tags=[]), Item(name='b', count=3, tags=[])]\n"
        self.assertEqual(self.run_python("-c", script), said)

    def test_a_cell_that_is_run_again(self) -> None:
        script = """
import belljar, dataclasses
cell = "@dataclasses.dataclass\\nclass P:\\n    x: int\\n"
exec(cell)
def make() -> P: return P(1)
first = P
exec(cell)
value = belljar.call(make)
print(type(value) is P, P is first)
try:
    belljar.call(lambda: P(1), types=[first])
except belljar.ResultError as error:
    print(error)
"""
        said = "True False\na value of type __main__.P at $ is not data that can leave a jar; "
        said += "the class of that name which is allowed is another one: was it defined again?\n"
        self.assertEqual(self.run_python("-c", script), said)


class Local(PackageCase):
    """Classes of functions."""

    def test_arguments_and_results(self) -> None:
        @dataclasses.dataclass
        class Here:
            number: int

        def grow(value: Any) -> Here:
            return Here(value.number + 1)

        def text(value: Any) -> "Here":
            return Here(value.number + 2)

        for function, number in ((grow, 2), (text, 3)):
            found = belljar.call(function, Here(1))
            self.assertIs(type(found), Here)
            self.assertEqual(found.number, number)

    def test_what_a_hostile_function_answers_is_still_only_data(self) -> None:
        ran: List[str] = []

        @dataclasses.dataclass
        class Careful:
            number: int

            def __post_init__(self) -> None:
                ran.append("x")

        def forge() -> Careful:
            made = object.__new__(Careful)
            made.number = "no number"  # type: ignore[assignment]
            return made

        self.assertEqual(belljar.call(forge).number, "no number")
        self.assertEqual(ran, [])

        class Lookalike:
            number = 3

        Lookalike.__qualname__, Lookalike.__module__ = Careful.__qualname__, Careful.__module__

        def other() -> Careful:
            return Lookalike()  # type: ignore[return-value]

        with self.assertRaisesRegex(belljar.ResultError, "not data"):
            belljar.call(other)

    def test_a_subclass_is_not_what_was_named(self) -> None:
        class More(Inner):
            pass

        def gives() -> Inner:
            return More(1)

        with self.assertRaisesRegex(belljar.ResultError, "More at"):
            belljar.call(gives)

    def test_a_class_that_cannot_be_sent_is_in_nobody_s_way(self) -> None:
        @dataclasses.dataclass
        class Locked:
            number: int
            lock = threading.Lock()

        def gives() -> Union[int, Locked]:
            return 3

        self.assertEqual(belljar.call(gives), 3)
        with self.assertRaisesRegex(belljar.SendError, r"argument 0 of 'gives_nothing': its class: 'lock' of the class '.*Locked'"):
            belljar.call(gives_nothing, Locked(1))

    def test_an_enum_that_would_be_another_one_is_refused(self) -> None:
        class Tenfold(int, enum.Enum):
            A = 1

            def __new__(cls, value: int) -> Any:
                made = int.__new__(cls, value * 10)
                made._value_ = value
                return made

        self.assertEqual(Tenfold.A + 0, 10)
        with self.assertRaisesRegex(belljar.SendError, "__new__ and a data type"):
            belljar.call(gives_nothing, Tenfold.A)

    def test_annotations_that_lead_back(self) -> None:
        class Tree:
            def grow(self) -> int:
                return use(self)

        def use(tree: "Any") -> int:
            return 1

        use.__annotations__.update(tree=Tree, more=List[Tree])
        Tree.__annotations__ = {"child": Tree, "children": List[Tree]}
        self.assertEqual(belljar.call(Tree.grow, Tree()), 1)


def gives_nothing(value: Any) -> None:
    """Takes anything."""


class Annotations(PackageCase):
    """Which classes a return annotation names."""

    def named(self, annotation: Any) -> Tuple[type, ...]:
        """The classes."""

        def function() -> None:
            pass

        function.__annotations__["return"] = annotation
        return result_types(function)

    def test_forms(self) -> None:
        cases: List[Tuple[Any, Tuple[type, ...]]] = [
            (Inner, (Inner,)),
            (Optional[Inner], (Inner,)),
            (List[Inner], (Inner,)),
            (Dict[str, Tuple[Shade, ...]], (Shade,)),
            (Union[Row, None, Shade], (Row, Inner, Shade)),
            (Outer, (Outer, Inner, Shade)),
            (Table, (Row, Inner)),
            ("Outer", (Outer, Inner, Shade)),
            ("Optional[List['Inner']]", (Inner,)),
            ("typing.Dict[str, Row]", (Row, Inner)),
            (typing.Literal[Shade.DARK], (Shade,)),
            (typing.Callable[[], Inner], (Inner,)),
            ("Nonsense", ()),
            ("1 / 0", ()),
            ("Nonsense[Inner]", ()),
            (None, ()),
            (int, ()),
            ("int", ()),
            (3, ()),
            (types, ()),
            (Any, ()),
        ]
        if hasattr(typing, "Annotated"):
            cases.append((typing.Annotated[Inner, "words"], (Inner,)))
        if sys.version_info >= (3, 10):
            cases += [("Inner | None", (Inner,)), (Inner | None, (Inner,)), ("list[Inner] | Shade", (Inner, Shade))]
        for annotation, found in cases:
            self.assertEqual(self.named(annotation), found, annotation)

    def test_functions_of_all_kinds(self) -> None:
        import functools

        class Maker:
            def make(self) -> Inner:
                return Inner(1)

        tool = belljar.tool(made_by_module)
        for function in (Maker().make, functools.partial(Maker.make, 1), functools.partial(Maker().make)):
            self.assertEqual(result_types(function), (Inner,))
        for other in (tool, made_by_module, functools.partial(functools.partial(tool), 1)):
            self.assertEqual(result_types(other), (Outer, Inner, Shade))
        self.assertEqual((result_types(Inner), result_types(len), result_types(lambda: 1), result_types(print)), ((Inner,), (), (), ()))

    def test_results(self) -> None:
        found = belljar.call(made_by_module, 3)
        self.assertEqual(found, Outer(Inner(3), [Shade.DARK]))
        for listed in ([Inner], Inner, (Inner, Shade)):
            self.assertEqual(belljar.call(pickle.loads, pickle.dumps(Inner(4)), types=listed), Inner(4))
        self.assertIs(belljar.call(pickle.loads, pickle.dumps(Shade.DARK), types=Shade), Shade.DARK)
        with self.assertRaisesRegex(belljar.ResultError, "return annotation"):
            belljar.call(pickle.loads, pickle.dumps(Inner(4)))


if __name__ == "__main__":
    unittest.main()
