# SPDX-License-Identifier: Apache-2.0
"""The classes that a function says it returns: its annotation names them, so the caller need not list them in `types`.

Only annotations of the caller's own function, and of the classes they lead to, are looked at, in your program, before the call.
Names in them are resolved as typing.get_type_hints() does; one that cannot be resolved names no class.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import types
import typing
from typing import Any, Dict, Iterator, List, Tuple

from ._send import plain_function


class _Identities:
    """Some objects, by what they are: to compare an annotation of the caller's could run anything."""

    def __init__(self, *objects: Any) -> None:
        self._objects = objects

    def __contains__(self, wanted: Any) -> bool:
        return any(found is wanted for found in self._objects)


# More classes than this no annotation leads to.
MAX_CLASSES = 100
# Written most often, and none of them a class of ours.
_PLAIN = frozenset(["None", "bool", "int", "float", "str", "bytes", "list", "tuple", "dict", "set", "object", "Any"])
_PLAIN_TYPES = _Identities(type(None), bool, int, float, str, bytes, list, tuple, dict, set, object, Any)


def _resolve(annotation: Any, names: Dict[str, Any], local_names: Dict[str, Any]) -> Any:
    """The annotation with its names resolved; None if one has no meaning."""
    holder = types.SimpleNamespace(__annotations__={"return": annotation})
    try:
        return typing.get_type_hints(holder, names, local_names).get("return")
    except Exception:  # whatever an expression of the caller's can raise
        return None


def _is_listable(cls: type) -> bool:
    """Whether it may be listed in `types`."""
    if issubclass(cls, enum.Enum) or dataclasses.is_dataclass(cls):
        return True
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _fields(cls: type, names: Dict[str, Any]) -> Iterator[Any]:
    """The annotations of what its instances hold."""
    try:
        yield from typing.get_type_hints(cls).values()
    except Exception:
        # One of them has no meaning where the class says it is from: each by itself, with the names of the function.
        for base in cls.__mro__:
            module = vars(sys.modules.get(base.__module__, types))
            for annotation in dict(vars(base).get("__annotations__", {})).values():
                yield _resolve(annotation, module, names)


def _collect(hint: Any, names: Dict[str, Any], found: Dict[type, None], seen: List[Any]) -> None:
    """All classes that can be listed, in the annotation and below it. names: those that the function can see."""
    if len(found) >= MAX_CLASSES or any(hint is other for other in seen):
        return
    seen.append(hint)
    if isinstance(hint, enum.Enum):  # in a Literal
        found[type(hint)] = None
    cls = hint if isinstance(hint, type) else typing.get_origin(hint)
    if isinstance(cls, type):
        is_listable = _is_listable(cls)
        if is_listable:
            found[cls] = None
        if (is_listable and not issubclass(cls, enum.Enum)) or (issubclass(cls, dict) and hasattr(cls, "__total__")):
            for below in _fields(cls, names):
                _collect(below, names, found, seen)
    for argument in typing.get_args(hint):
        _collect(argument, names, found, seen)


def _closed_over(fn: Any) -> Dict[str, Any]:
    found = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # no value yet
            pass
    return found


def result_types(fn: Any) -> Tuple[type, ...]:
    """The Enum, dataclass and namedtuple classes that the function's return annotation leads to."""
    fn = plain_function(fn)
    while type(fn) is functools.partial:
        fn = plain_function(fn.func)
    fn = getattr(fn, "__func__", fn)
    names: Dict[str, Any] = {}
    if isinstance(fn, type):
        annotation: Any = fn  # a class: what it returns is its instance
    elif type(fn) is types.FunctionType:
        try:
            annotation = fn.__annotations__.get("return")
        except Exception:  # evaluated late, by code of the caller's
            return ()
        if annotation is None or (annotation in _PLAIN if type(annotation) is str else annotation in _PLAIN_TYPES):
            return ()
        names = {**fn.__globals__, **_closed_over(fn)}
        annotation = annotation if isinstance(annotation, type) else _resolve(annotation, fn.__globals__, names)
    else:
        return ()
    found: Dict[type, None] = {}
    _collect(annotation, names, found, [])
    for cls in list(found):
        # In a notebook the class may have been defined again since: the function makes instances of the present one.
        present = names.get(cls.__qualname__)
        if isinstance(present, type) and (present.__module__, present.__qualname__) == (cls.__module__, cls.__qualname__):
            _collect(present, names, found, [])
    return tuple(found)
