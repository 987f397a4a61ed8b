# SPDX-License-Identifier: Apache-2.0
"""Pack a function and its arguments into bytes for a jar, and unpack them inside.

What crosses is a header of 20 bytes, little endian, and a pickle (protocol 5) of the tuple (function, args, kwargs, more),
where `more` is what the call needs inside besides: the classes and the bound of its result:

| bytes | what |
|---|---|
| 4 | `BJIN` |
| 2 | version of this format: 2 |
| 2 | flags; 1: code is sent by value |
| 4 | the interpreter's number for its byte code |
| 8 | length of the pickle |

Your program writes it and the jar reads it, after the fork that made the call's own process; nothing ever goes the other way in
this form. Functions and classes go **by import** where the module can be imported inside: it was loaded from one of the
directories of `paths` (the caller's `sys.path` without ""), and the name leads to this very object. Other functions - of
`__main__`, of notebooks, lambdas, closures, nested ones - go **by value**: the marshalled code object, defaults, closure,
annotations, attributes, and those globals that the code names, each by these same rules. So a function may call itself,
functions may share cells and globals, and the modules that it uses are imported inside. Classes that cannot be imported go by
value too, in _send_class.py. Code by value needs the same interpreter on both sides, which the header lets the reader check.

A function decorated with @belljar.tool is sent as the plain function.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import importlib
import importlib.util
import marshal
import os
import pickle
import struct
import sys
import types
import typing
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union

from . import _send_class
from ._errors import SendError

HEADER = struct.Struct("<4sHHIQ")
MAGIC = b"BJIN"
FORMAT = 2
HAS_CODE = 1
BYTECODE = int.from_bytes(importlib.util.MAGIC_NUMBER[:4], "little")
PROTOCOL = 5

# The wrapper that @tool made, and the function it stands for. Looked up by the object itself: an attribute would be copied
# by functools.wraps to whatever wraps the wrapper.
_tools: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()

_GLOBAL_OPERATIONS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
_CACHED = type(functools.lru_cache()(lambda: None))
# Those of them that this version has, as classes.
_TYPING_NAMES = [
    kind
    for name in ("TypeVar", "ParamSpec", "TypeVarTuple", "TypeAliasType", "NewType")
    for kind in [getattr(typing, name, None)]
    if isinstance(kind, type)
]
_KNOWN_TO_PICKLE = (type(None), type(NotImplemented), type(...))
_NO_ORIGIN_NEEDED = ("built-in", "frozen")
# Of this package, what every interpreter for calls has, in the order in which it can be loaded: what reads a call cannot
# itself be sent with it. The decorator is there for the modules of tools, which import the package for its sake.
_CODEC = ("._codec_types", "._codec_write", "._codec_read", "._codec")
_CELLS = ("._cell_display", "._cell")
ALWAYS_INSIDE = tuple(
    (__package__ or "belljar") + end
    for end in ("", "._errors", *_CODEC, "._answer", "._private", "._send_class", "._send", "._inside", "._tool", *_CELLS)
)


def mark_tool(wrapper: Any, plain: Any) -> None:
    """Remember that the wrapper is sent as the plain function."""
    _tools[wrapper] = plain


def plain_function(fn: Any) -> Any:
    """The function that a tool stands for; anything else as it is."""
    try:
        return _tools.get(fn, fn)
    except TypeError:  # what has no hash or cannot be referred to weakly
        return fn


# --- what can be imported inside ---


def import_paths() -> Tuple[str, ...]:
    """The directories from which a call imports: the caller's, without the current directory."""
    return tuple(os.path.abspath(path) for path in sys.path if path and isinstance(path, str))


def is_importable(name: Any, paths: Sequence[str]) -> bool:
    """Whether `import name` inside gives what this process has under that name."""
    module = sys.modules.get(name) if isinstance(name, str) else None
    spec = getattr(module, "__spec__", None)
    if name in ALWAYS_INSIDE:
        return True
    if spec is None or spec.name != name:
        return False
    if spec.origin in _NO_ORIGIN_NEEDED:
        return True
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    top = name.partition(".")[0]
    for place in places:
        place = os.path.abspath(place)
        for path in paths:
            if place.startswith(path + os.sep):
                first = place[len(path) + 1 :].split(os.sep)[0]
                if first == top or first.startswith(top + "."):
                    return True
    return False


def lookup(module: str, qualname: str) -> Any:
    """The object under that name, as it is sent. AttributeError or ImportError if there is none."""
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return plain_function(found)


def _leads_to(module: Any, qualname: Any, wanted: Any) -> bool:
    if "<" in qualname:
        return False
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found is not None and (found is wanted or plain_function(found) is wanted)


# --- functions by value ---


class Namespace:
    """The globals that functions of one module share inside."""

    def __init__(self, name: Any, file: Any) -> None:
        self.name, self.file = name, file
        self.globals: Dict[str, Any] = {"__builtins__": builtins, "__name__": name}
        if file is not None:
            self.globals["__file__"] = file

    def __reduce__(self) -> Tuple[Any, ...]:
        return Namespace, (self.name, self.file)


def new_function(code: bytes, space: Namespace, name: str, closure: Optional[Tuple[Any, ...]]) -> types.FunctionType:
    """Inside: the function, still without what it refers to, for that may be itself."""
    return types.FunctionType(marshal.loads(code), space.globals, name, None, closure)


def fill_function(fn: Any, state: Dict[str, Any]) -> None:
    """Inside: the rest of it."""
    fn.__globals__.update(state["globals"])
    for name in state["imports"]:
        importlib.import_module(name)
    fn.__dict__.update(state["attributes"])
    for name in ("__defaults__", "__kwdefaults__", "__annotations__", "__module__", "__qualname__", "__doc__"):
        setattr(fn, name, state[name])


def new_cell() -> Any:
    """Inside: a variable of a closure."""
    return types.CellType()


def fill_cell(cell: Any, state: Tuple[Any, ...]) -> None:
    """Inside: its value, if it has one."""
    for value in state:
        cell.cell_contents = value


def new_method(fn: Any, owner: Any) -> types.MethodType:
    """Inside: a method that its owner does not have under its name."""
    return types.MethodType(fn, owner)


def new_cached(fn: Any, maxsize: Optional[int], typed: bool) -> Any:
    """Inside: a function with an empty cache."""
    return functools.lru_cache(maxsize, typed)(fn)


def _new_typing_name(kind: Any, arguments: List[Any], words: Dict[str, Any]) -> Any:
    """Inside: a variable of generic classes, or its like."""
    return kind(*arguments, **words)


@functools.lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> Tuple[Tuple[str, ...], frozenset[str]]:
    """The names that the code, and code inside it, looks up as globals; and all names there are in it."""
    import dis

    found: Dict[str, None] = {}
    every: Set[str] = set(code.co_names)
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL_OPERATIONS:
            found[instruction.argval] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, names = names_in(constant)
            found.update(dict.fromkeys(inner))
            every |= names
    return tuple(found), frozenset(every)


def _submodules(used: Mapping[str, Any], names: frozenset[str], paths: Sequence[str]) -> List[str]:
    """`import a.b` gives the code a global `a`, and an attribute of it that is there only once a.b was imported."""
    found = []
    for module in used.values():
        if type(module) is types.ModuleType and hasattr(module, "__path__"):
            prefix = module.__name__ + "."
            for name in list(sys.modules):
                if name.startswith(prefix) and names.issuperset(name[len(prefix) :].split(".")) and is_importable(name, paths):
                    found.append(name)
    return sorted(found)


def _sendable_annotations(thing: Any, paths: Sequence[str]) -> Dict[str, Any]:
    """Annotations are seldom needed: those that cannot be sent are sent as text, and so are those with a class by value, which
    may be the very one that they are of."""
    try:
        annotations = dict(thing.__annotations__)
    except Exception:  # evaluated late, by code of the caller's
        return {}
    for name, value in annotations.items():
        if type(value) is not str:
            try:
                _Pickler(may_send_classes=False).pieces(value, paths)
            except Exception:
                annotations[name] = getattr(value, "__qualname__", None) or repr(value)
    return annotations


def _pieces(fn: types.FunctionType) -> Iterator[Tuple[str, Any]]:
    """What is sent with a function by value, and what to call it."""
    names, _ = names_in(fn.__code__)
    for name in names:
        if name in fn.__globals__:
            yield f"the global '{name}'", fn.__globals__[name]
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        try:
            yield f"the closed-over '{name}'", cell.cell_contents
        except ValueError:  # no value yet
            pass
    yield "a default", fn.__defaults__
    yield "a default", fn.__kwdefaults__
    for name, value in fn.__dict__.items():
        yield f"the attribute '{name}'", value


def _pieces_of_class(cls: type) -> Iterator[Tuple[str, Any]]:
    """The same for a class by value."""
    for base in cls.__bases__:
        yield f"the base of '{cls.__qualname__}'", base
    for name, value in _send_class.parts(cls)[2].items():
        yield f"'{name}' of the class '{cls.__qualname__}'", value


def modules_of(fn: Any) -> Iterator[str]:
    """Names of modules that a call of the function will need, as far as a look at it tells."""
    fn = plain_function(fn)
    while type(fn) is functools.partial:
        fn = plain_function(fn.func)
    owner = getattr(fn, "__self__", None)
    for thing in (fn, type(owner) if owner is not None and type(owner) is not types.ModuleType else None):
        name = getattr(thing, "__module__", None)
        if isinstance(name, str):
            yield name
    fn = getattr(fn, "__func__", fn)
    if type(fn) is types.FunctionType:
        for name in names_in(fn.__code__)[0]:
            value = fn.__globals__.get(name)
            found = value.__name__ if type(value) is types.ModuleType else getattr(value, "__module__", None)
            if isinstance(found, str):
                yield found


class _Pickler(pickle.Pickler):
    """A pickler that keeps to the rules of this module."""

    def __init__(self, may_send_classes: bool = True) -> None:
        self._file = _Parts()
        super().__init__(self._file, PROTOCOL)
        self._may_send_classes = may_send_classes
        self.has_code = False
        self._paths: Sequence[str] = ()
        self._spaces: Dict[int, Namespace] = {}

    def pieces(self, value: Any, paths: Sequence[str]) -> List[Any]:
        """The pickle of a value; nothing of it is kept here."""
        self.has_code, self._paths = False, paths
        try:
            self.dump(value)
            return self._file.parts
        finally:
            self._file.parts = []
            self._spaces = {}
            self.clear_memo()

    def reducer_override(self, obj: Any) -> Any:
        """Called for all but the plainest objects."""
        reduce = _REDUCERS.get(type(obj))
        if reduce is not None:
            return reduce(self, obj)
        if isinstance(obj, type):
            return self._class(obj)
        return NotImplemented

    def _class(self, cls: type) -> Any:
        if is_importable(cls.__module__, self._paths) and _leads_to(cls.__module__, cls.__qualname__, cls):
            return NotImplemented
        if cls.__module__ == "builtins":
            # The types of functions, methods and their like have names only in the module types; the rest pickle knows.
            names = [name for name, value in vars(types).items() if value is cls]
            if names and cls not in _KNOWN_TO_PICKLE:
                return getattr, (types, names[0])
            if not _send_class.is_python_class(cls):
                return NotImplemented
        if not self._may_send_classes or not _send_class.is_python_class(cls):
            raise SendError(
                f"the jar cannot import the class {cls.__module__}.{cls.__qualname__}; move it into a module that is on sys.path"
            )
        self.has_code = True
        make, arguments, body = _send_class.parts(cls)
        if "__annotations__" in vars(cls) or "__annotate_func__" in vars(cls):
            body["__annotations__"] = _sendable_annotations(cls, self._paths)
        return make, arguments, body, None, None, _send_class.fill_class

    def _wrapped(self, method: Any) -> Any:
        """A classmethod or staticmethod."""
        return type(method), (method.__func__,)

    def _property(self, made: property) -> Any:
        return property, (made.fget, made.fset, made.fdel, made.__doc__)

    def _cached_property(self, made: Any) -> Any:
        return _send_class.new_cached_property, (made.func, made.attrname)

    def _proxy(self, proxy: Any) -> Any:
        return types.MappingProxyType, (dict(proxy),)

    def _sentinel(self, value: Any) -> Any:
        if not _send_class.is_sentinel(value):
            return NotImplemented
        return getattr, (dataclasses, _send_class.sentinel_name(value))

    def _typing_name(self, named: Any) -> Any:
        """What typing names, and pickle knows by that name only: a TypeVar and its like."""
        if is_importable(named.__module__, self._paths) and _leads_to(named.__module__, named.__name__, named):
            return NotImplemented
        arguments: List[Any] = [named.__name__]
        words: Dict[str, Any] = {}
        if type(named) is TypeVar:
            arguments += named.__constraints__
            words = {"bound": named.__bound__, "covariant": named.__covariant__, "contravariant": named.__contravariant__}
        elif hasattr(named, "__supertype__"):
            arguments.append(named.__supertype__)
        elif hasattr(named, "__value__"):
            arguments.append(named.__value__)
        return _new_typing_name, (type(named), arguments, words)

    def _module(self, module: types.ModuleType) -> Any:
        if not is_importable(module.__name__, self._paths):
            raise SendError(f"the jar cannot import the module {module.__name__}: it is not on sys.path")
        return importlib.import_module, (module.__name__,)

    def _function(self, fn: types.FunctionType) -> Any:
        plain = plain_function(fn)
        if is_importable(plain.__module__, self._paths):
            if plain is fn and getattr(sys.modules.get(fn.__module__), fn.__qualname__, None) is fn:
                return NotImplemented
            if _leads_to(plain.__module__, plain.__qualname__, plain):
                return lookup, (plain.__module__, plain.__qualname__)
        if plain is not fn:
            return self._alias(plain)
        return self._function_by_value(fn)

    def _alias(self, plain: Any) -> Any:
        if type(plain) is types.FunctionType:
            return self._function_by_value(plain)
        raise SendError(f"cannot send a tool around {plain!r}, which is not a function")

    def _function_by_value(self, fn: types.FunctionType) -> Any:
        self.has_code = True
        space = self._spaces.get(id(fn.__globals__))
        if space is None:
            space = Namespace(fn.__globals__.get("__name__"), fn.__globals__.get("__file__"))
            self._spaces[id(fn.__globals__)] = space
        names, every = names_in(fn.__code__)
        used = {name: fn.__globals__[name] for name in names if name in fn.__globals__}
        state = {
            "globals": used,
            "imports": _submodules(used, every, self._paths),
            "attributes": dict(fn.__dict__),
            "__defaults__": fn.__defaults__,
            "__kwdefaults__": fn.__kwdefaults__,
            "__annotations__": _sendable_annotations(fn, self._paths),
            "__module__": fn.__module__,
            "__qualname__": fn.__qualname__,
            "__doc__": fn.__doc__,
        }
        make = (marshal.dumps(fn.__code__), space, fn.__name__, fn.__closure__)
        return new_function, make, state, None, None, fill_function

    def _cell(self, cell: Any) -> Any:
        try:
            state: Tuple[Any, ...] = (cell.cell_contents,)
        except ValueError:
            state = ()
        return new_cell, (), state, None, None, fill_cell

    def _method(self, method: types.MethodType) -> Any:
        name = getattr(method.__func__, "__name__", "")
        if getattr(method.__self__, name, None) == method:
            return NotImplemented
        return new_method, (method.__func__, method.__self__)

    def _environ(self, environ: Any) -> Any:
        """The environment is the jar's own: what names it must not take the caller's along, with all its secrets."""
        for name in ("environ", "environb"):
            if getattr(os, name, None) is environ:
                return getattr, (os, name)
        return NotImplemented

    def _cached(self, fn: Any) -> Any:
        if is_importable(fn.__module__, self._paths) and _leads_to(fn.__module__, fn.__qualname__, fn):
            return NotImplemented
        parameters = fn.cache_parameters()
        return new_cached, (fn.__wrapped__, parameters["maxsize"], parameters["typed"])


_REDUCERS: Dict[type, Callable[[_Pickler, Any], Any]] = {
    types.FunctionType: _Pickler._function,
    types.ModuleType: _Pickler._module,
    types.CellType: _Pickler._cell,
    types.MethodType: _Pickler._method,
    _CACHED: _Pickler._cached,
    type(os.environ): _Pickler._environ,
    classmethod: _Pickler._wrapped,
    staticmethod: _Pickler._wrapped,
    property: _Pickler._property,
    functools.cached_property: _Pickler._cached_property,
    types.MappingProxyType: _Pickler._proxy,
    **{kind: _Pickler._typing_name for kind in _TYPING_NAMES},
    **{kind: _Pickler._sentinel for kind in _send_class.SENTINEL_TYPES},
}


class _Parts:
    """A file of pieces. Large bytes and buffers are written by the pickler as they are, so they are kept, not copied."""

    def __init__(self) -> None:
        self.parts: List[Any] = []

    def write(self, data: Any) -> int:
        """As a file does."""
        kind = type(data)
        if kind is pickle.PickleBuffer:
            data = data.raw()
        elif kind is bytearray:
            data = memoryview(data)
        elif kind is not bytes:
            data = bytes(data)  # a view of the pickler's own, which is gone when we return
        self.parts.append(data)
        return len(data)


# Picklers that nobody uses: making one takes longer than a usual call needs it. Taking and adding need no lock.
_idle: List[_Pickler] = []
MAX_IDLE = 8
# One that had much to remember keeps the room for it.
IDLE_BYTES = 64 << 10


def _dump(value: Any, paths: Sequence[str]) -> Tuple[List[Any], bool]:
    try:
        pickler = _idle.pop()
    except IndexError:
        pickler = _Pickler()
    parts = pickler.pieces(value, paths)
    has_code = pickler.has_code
    if len(_idle) < MAX_IDLE and sum(map(len, parts)) <= IDLE_BYTES:
        _idle.append(pickler)
    return parts, has_code


# --- why something cannot be sent ---


def _reason(error: BaseException) -> str:
    if isinstance(error, SendError):
        return str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return str(error) or type(error).__name__


def _blame(value: Any, paths: Sequence[str], seen: Set[int]) -> Optional[str]:
    """What in the value, or which part of a function's surroundings, cannot be sent. None: nothing."""
    try:
        _dump(value, paths)
    except Exception as error:
        value = plain_function(value)
        pieces: Iterable[Tuple[str, Any]] = ()
        if type(value) is types.FunctionType:
            pieces = _pieces(value)
        elif isinstance(value, type):
            pieces = _pieces_of_class(value) if _send_class.is_python_class(value) else ()
        elif _send_class.is_python_class(type(value)):
            pieces = [("its class", type(value))]
        if id(value) not in seen:
            seen.add(id(value))
            for label, piece in pieces:
                found = _blame(piece, paths, seen)
                if found:
                    return f"{label}: {found}"
        return _reason(error)
    return None


def name_of(fn: Any) -> str:
    """What people call a function."""
    while type(fn) is functools.partial:
        fn = fn.func
    return getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__qualname__


def _refusal(
    fn: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    classes: Iterable[type],
    paths: Sequence[str],
    error: BaseException,
) -> SendError:
    parts = [(f"the function '{name_of(fn)}'", fn)]
    parts += [(f"argument {index} of '{name_of(fn)}'", value) for index, value in enumerate(args)]
    parts += [(f"argument '{name}' of '{name_of(fn)}'", value) for name, value in kwargs.items()]
    parts += [(f"the result class '{cls.__qualname__}' of '{name_of(fn)}'", cls) for cls in classes]
    for label, value in parts:
        found = _blame(value, paths, set())
        if found:
            return SendError(f"cannot send {label}: {found}")
    return SendError(f"cannot send '{name_of(fn)}' and its arguments: {_reason(error)}")


# --- what callers use ---


def packed_length(start: bytes) -> int:
    """How long the packed call is that begins like this. SendError if none does."""
    if len(start) < HEADER.size:
        return HEADER.size
    magic, _, _, _, length = HEADER.unpack_from(start)
    if magic != MAGIC:
        raise SendError("these bytes are not a packed call")
    return int(HEADER.size + length)


def pack(
    fn: Any,
    args: Iterable[Any] = (),
    kwargs: Optional[Mapping[str, Any]] = None,
    paths: Optional[Sequence[str]] = None,
    more: Any = None,
) -> List[Any]:
    """In your program: header and pickle in pieces, to be written one after the other. SendError says what cannot be sent.

    paths: the directories that are importable inside; the caller's sys.path by default. more: goes with it.
    """
    if not callable(fn):
        raise SendError(f"fn must be callable, not of type {type(fn).__name__}")
    paths = import_paths() if paths is None else paths
    args, kwargs = tuple(args), dict(kwargs or {})
    try:
        parts, has_code = _dump((fn, args, kwargs, more), paths)
    except Exception as error:
        raise _refusal(fn, args, kwargs, more[0] if more else (), paths, error) from error
    flags = HAS_CODE if has_code else 0
    return [HEADER.pack(MAGIC, FORMAT, flags, BYTECODE, sum(map(len, parts))), *parts]


def unpack(data: Union[bytes, bytearray, memoryview]) -> Tuple[Any, Tuple[Any, ...], Dict[str, Any]]:
    """Inside: the function and its arguments. SendError if they cannot be made here; why is in its text and cause."""
    return unpack_more(data)[:3]


def unpack_more(data: Union[bytes, bytearray, memoryview]) -> Tuple[Any, Tuple[Any, ...], Dict[str, Any], Any]:
    """Inside: the same, and what went with it."""
    view = memoryview(data).cast("B")
    if len(view) < HEADER.size:
        raise SendError("the packed call is cut off")
    magic, version, flags, bytecode, length = HEADER.unpack_from(view)
    if magic != MAGIC or version != FORMAT or length != len(view) - HEADER.size:
        raise SendError("these bytes are not a packed call, or one of another version")
    if flags & HAS_CODE and bytecode != BYTECODE:
        raise SendError("a function or class was sent by value from another Python version; put it into a module that the jar can import")
    try:
        fn, args, kwargs, more = pickle.loads(view[HEADER.size :])
    except Exception as error:
        raise SendError(f"the jar cannot unpack the function or its arguments: {type(error).__name__}: {error}") from error
    return fn, args, kwargs, more
