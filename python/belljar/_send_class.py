# SPDX-License-Identifier: Apache-2.0
"""Classes by value: those of `__main__`, of notebooks and of functions, which no import leads to.

A class is made in two steps, for it may be part of itself: first an empty one with its name, metaclass, bases and slots, then
what its body has left: methods, class variables, annotations. Decorators do not run again. An Enum is made with its members,
because that is how its metaclass works; what an `__init__` has put into a member is sent with it. A metaclass, or a base with
`__init_subclass__`, sees the empty class.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from typing import Any, Dict, List, Tuple

from ._errors import SendError

# What a class has of itself, or is given when it is made.
_OWN = frozenset(
    ["__dict__", "__weakref__", "__module__", "__qualname__", "__slots__", "__annotations__", "_abc_impl"]
    + ["__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__"]
)
# Of the names with one underscore at each end, which belong to Enum, those that a class body may define.
_ENUM_HOOKS = frozenset(["_missing_", "_generate_next_value_"])
# Objects that are known by what they are, not by their value.
_SENTINELS = {
    id(value): name for name, value in vars(dataclasses).items() if type(value).__module__ == "dataclasses" and name.isupper()
}
_HEAP_TYPE = 1 << 9
_MEMBERS = "members of the enum"


def is_python_class(cls: type) -> bool:
    """Whether a class statement, or what does the same, has made it."""
    return bool(cls.__flags__ & _HEAP_TYPE) and isinstance(vars(cls).get("__module__"), str)


def is_sentinel(value: Any) -> bool:
    """Whether it is one of the objects by which dataclasses tells things apart."""
    return id(value) in _SENTINELS


def sentinel_name(value: Any) -> str:
    """Its name in the module dataclasses."""
    return _SENTINELS[id(value)]


# The types of such objects.
SENTINEL_TYPES = tuple({type(getattr(dataclasses, name)) for name in _SENTINELS.values()})


# --- in your program ---


def _slots(cls: type) -> Tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _body(cls: type) -> Dict[str, Any]:
    """What the class body has left, but for slots and what every class has."""
    slots = {f"_{cls.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name for name in _slots(cls)}
    return {name: value for name, value in vars(cls).items() if name not in _OWN and name not in slots}


def _is_of_enum(name: str) -> bool:
    is_hook = name.startswith("_") and name.endswith("_") and not name.startswith("__") and name not in _ENUM_HOOKS
    return is_hook or name in ("__new__", "__new_member__", "__reduce_ex__")


def parts(cls: type) -> Tuple[Any, Tuple[Any, ...], Dict[str, Any]]:
    """What makes an empty class inside, its arguments, and the body."""
    body = _body(cls)
    names = (type(cls), cls.__name__, cls.__bases__, cls.__module__, cls.__qualname__)
    if not isinstance(cls, enum.EnumMeta) or not cls.__members__:
        # Slots are made with the class, and typing.Generic looks for the bases as they were written.
        first = {name: vars(cls)[name] for name in ("__orig_bases__",) if name in vars(cls)}
        if "__slots__" in vars(cls):
            first["__slots__"] = _slots(cls)
        return new_class, (*names, first), body
    maker = vars(cls).get("_new_member_") or vars(cls).get("__new_member__")
    if vars(cls).get("_member_type_") is not object and getattr(maker, "__module__", "enum") not in ("enum", None):
        raise SendError(
            f"the jar cannot import the Enum {cls.__module__}.{cls.__qualname__}, and with a __new__ and a data type it cannot be "
            "sent by value; move it into a module that is on sys.path"
        )
    members: Dict[str, Any] = dict(cls.__members__)
    values = [(name, member._value_) for name, member in members.items()]
    body = {name: value for name, value in body.items() if name not in members and not _is_of_enum(name)}
    # A key that no body can have: it is no identifier.
    body[_MEMBERS] = {
        name: {key: value for key, value in vars(member).items() if not key.startswith("_")} for name, member in members.items()
    }
    return new_enum, (*names, values, getattr(cls, "_boundary_", None)), body


# --- inside ---


def new_class(
    kind: Any, name: str, bases: Tuple[type, ...], module: str, qualname: str, first: Dict[str, Any]
) -> Any:
    """A class that is still empty."""
    body = {"__module__": module, "__qualname__": qualname, **first}
    try:
        return types.new_class(name, bases, {"metaclass": kind}, lambda space: space.update(body))
    except Exception:
        # What the metaclass made has other bases than it takes, as that of TypedDict; or it asks for what an empty class lacks.
        return type.__new__(kind, name, bases, body)


def new_enum(
    kind: Any, name: str, bases: Tuple[type, ...], module: str, qualname: str, members: List[Tuple[str, Any]], boundary: Any
) -> Any:
    """An Enum with its members."""
    keywords = {} if boundary is None else {"boundary": boundary}
    body = kind.__prepare__(name, bases, **keywords)
    body["__module__"] = module
    body["__qualname__"] = qualname
    for member, value in members:
        body[member] = value
    return kind.__new__(kind, name, bases, body, **keywords)


def fill_class(cls: Any, body: Dict[str, Any]) -> None:
    """The rest of it."""
    for name, more in body.pop(_MEMBERS, {}).items():
        cls.__members__[name].__dict__.update(more)
    for name, value in body.items():
        type.__setattr__(cls, name, value)


def new_cached_property(fn: Any, name: str) -> Any:
    """A property that keeps its value; it has a lock, which cannot be sent."""
    made = functools.cached_property(fn)
    made.__set_name__(None, name)  # type: ignore[arg-type]
    return made
