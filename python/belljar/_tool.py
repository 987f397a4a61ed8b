# SPDX-License-Identifier: Apache-2.0
"""@tool: make a function one that runs in a jar whenever it is called."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional, TypeVar, Union, overload

from . import _inside
from ._send import mark_tool

F = TypeVar("F", bound=Callable[..., Any])


def _wrap(fn: Any, options: Any) -> Any:
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"'{fn.__qualname__}' cannot be a tool: it is a generator, and its values cannot be sent one by one")
    if not inspect.isfunction(fn):
        raise TypeError(f"only functions can be tools, not {type(fn).__name__}")

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            from ._pool import hidden_pool

            return await hidden_pool()._call_async(fn, args, kwargs, options)

    else:

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            from ._pool import hidden_pool

            return hidden_pool()._call(fn, args, kwargs, options)

    mark_tool(wrapper, fn)
    return wrapper


@overload
def tool(fn: F, /) -> F: ...


@overload
def tool(**options: Any) -> Callable[[F], F]: ...


def tool(fn: Optional[F] = None, /, **options: Any) -> Union[F, Callable[[F], F]]:
    """Make a function one that runs in a jar: `@tool`, or `@tool(timeout=5, types=[Answer])` with the options of call().

    def stays def, async def stays async def; name, signature and docs are kept, and __wrapped__ is the function itself. In a
    jar the name is the plain function, so a tool may use others, or itself, without jars in jars.
    """
    if _inside.is_inside:
        return fn if fn is not None else lambda plain: plain
    from ._call import Options  # nothing of it is needed, or there, in a jar
    from ._keys import check_call_options

    check_call_options("tool", options)
    told = Options(options)
    if fn is None:
        return lambda plain: _wrap(plain, told)
    made: F = _wrap(fn, told)
    return made
