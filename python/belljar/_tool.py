# SPDX-License-Identifier: Apache-2.0
"""@tool: make a function one that runs in a jar whenever it is called."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, Optional, Tuple, TypeVar, overload

from . import _inside
from ._send import mark_tool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import ToolOptions
    from ._policy import PolicyLike
    from ._pool import Pool

F = TypeVar("F", bound=Callable[..., Any])


def _wrap(fn: Any, pool: Callable[[], ContextManager[Any]], options: Any) -> Any:
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"'{fn.__qualname__}' cannot be a tool: it is a generator, and its values cannot be sent one by one")
    if not inspect.isfunction(fn):
        raise TypeError(f"only functions can be tools, not {type(fn).__name__}")

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with pool() as found:
                return await found._call_async(fn, args, kwargs, options)

    else:

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with pool() as found:
                return found._call(fn, args, kwargs, options)

    mark_tool(wrapper, fn)
    return wrapper


def jar_and_options(pool: Any, policy: Any, keys: Dict[str, Any]) -> Tuple[Callable[[], ContextManager[Any]], Any]:
    """The pool of a tool, for one call at a time, and what each call is told. The pool is the tool's own, the hidden one of its
    policy, or that of call()."""
    from ._call import Options  # nothing of it is needed, or there, in a jar
    from ._keys import CALL_OPTIONS, JAR_KEYS, LIMITS, LIMITS_OF_A_JAR, check_call_options
    from ._policy import check_now
    from ._pool import JarPolicy, Pool, hidden_pool

    check_call_options("tool", keys, JAR_KEYS)
    of_jar = {name: value for name, value in keys.items() if name in JAR_KEYS}
    if pool is not None:
        if policy is not None or of_jar:
            words = ", ".join(of_jar) or "policy"
            raise TypeError(f"the policy of a pool is fixed: give {words} to Pool(), or leave pool= out")
        if not isinstance(pool, Pool):
            raise TypeError(f"pool must be a belljar.Pool, not {type(pool).__name__}")
    elif keys.get("on_ask") is not None:
        of_jar.setdefault("ask", "net")
    if policy is not None or of_jar:
        # Keywords win over a policy, also with more than it allows: the author of the tool wrote both.
        of_jar.update({name: keys[name] for name in (LIMITS if policy is not None else LIMITS_OF_A_JAR) if name in keys})
    options = Options({name: value for name, value in keys.items() if name in CALL_OPTIONS and name not in of_jar})
    if policy is not None or of_jar or options.keys:
        check_now(policy, {**options.keys, **of_jar})  # now, not when the first call makes a jar
    if policy is not None or of_jar:
        return JarPolicy(policy, of_jar).pool, options
    return lambda: contextlib.nullcontext(hidden_pool() if pool is None else pool), options


@overload
def tool(fn: F, /) -> F: ...


@overload
def tool(*, pool: Optional[Pool] = ..., policy: PolicyLike = ..., **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...


def tool(fn: Any = None, /, *, pool: Any = None, policy: Any = None, **options: Any) -> Any:
    """Make a function one that runs in a jar: `@tool`, or `@tool(timeout=5, types=[Answer])` with the options of call().

    policy= and the keys of jars (ro=, rw=, workdir=, net= ...) give it files and network: tools with the same ones share a
    hidden pool. pool= is a Pool of your own. Relative paths start at the directory that is current here.

    def stays def, async def stays async def; name, signature and docs are kept, and __wrapped__ is the function itself. In a
    jar the name is the plain function, so a tool may use others, or itself, without jars in jars.
    """
    if _inside.is_inside:
        return fn if fn is not None else lambda plain: plain
    pools, told = jar_and_options(pool, policy, options)
    if fn is None:
        return lambda plain: _wrap(plain, pools, told)
    return _wrap(fn, pools, told)
