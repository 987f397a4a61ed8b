# SPDX-License-Identifier: Apache-2.0
"""Run commands that nobody has reviewed in a jar, which shows them little and limits them, and learn exactly how they ended.

    import belljar

    result = belljar.run(["python3", "-c", "print(6 * 7)"], timeout=5, memory="256M")
    result.stdout, result.outcome        # ('42\\n', 'exited')

`run` and `run_async` run one command in a jar of its own; `spawn` and `spawn_async` give you its streams while it runs; a
`Jar` stays open for many runs over the same files; `call` and `Pool` call Python functions in jars. Keywords such as timeout=,
ro= or net= are policy keys; `Policy` holds them as data. A timeout or limit does not raise unless check=True:
`Result.outcome` says why a run ended.

One small program, the engine, does the work. It starts at first use, and it ends with your process, however that ends; every
jar ends with it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._ask import Question as Question
    from ._async import AsyncProcess as AsyncProcess
    from ._async import run_async as run_async
    from ._async import spawn_async as spawn_async
    from ._cells import Cell as Cell
    from ._cells import CellError as CellError
    from ._cells import Variable as Variable
    from ._denied import Cure as Cure
    from ._denied import Denial as Denial
    from ._errors import BelljarError as BelljarError
    from ._errors import CallEnded as CallEnded
    from ._errors import CallError as CallError
    from ._errors import CallTimeout as CallTimeout
    from ._errors import EngineError as EngineError
    from ._errors import PolicyError as PolicyError
    from ._errors import ResultError as ResultError
    from ._errors import RunError as RunError
    from ._errors import RunTimeout as RunTimeout
    from ._errors import SendError as SendError
    from ._errors import StartError as StartError
    from ._errors import UnavailableError as UnavailableError
    from ._files import FileInfo as FileInfo
    from ._host import capabilities as capabilities
    from ._host import safe_env as safe_env
    from ._interpreter import Interpreter as Interpreter
    from ._jar import Jar as Jar
    from ._jar_files import ProcessInfo as ProcessInfo
    from ._policy import Policy as Policy
    from ._pool import Pool as Pool
    from ._pool import call as call
    from ._pool import call_async as call_async
    from ._process import Process as Process
    from ._process import spawn as spawn
    from ._request import DEVNULL as DEVNULL
    from ._request import PIPE as PIPE
    from ._result import Result as Result
    from ._run import run as run
    from ._shell import Shell as Shell
    from ._shell import ShellResult as ShellResult
    from ._tool import tool as tool
    from ._tree import kill_tree as kill_tree
    from ._watch import FileEvent as FileEvent
    from ._watch import Watch as Watch
    from ._workspace import Change as Change
    from ._workspace import Workspace as Workspace
    from ._workspace import WorkspaceError as WorkspaceError

__version__ = "0.1.0"

# What is public, and where it lives. A module is imported when something of it is first used: importing belljar itself
# costs a program that may never run anything next to nothing.
_HOME = {
    "AsyncProcess": "_async",
    "BelljarError": "_errors",
    "CallEnded": "_errors",
    "CallError": "_errors",
    "CallTimeout": "_errors",
    "Cell": "_cells",
    "CellError": "_cells",
    "Change": "_workspace",
    "Cure": "_denied",
    "DEVNULL": "_request",
    "Denial": "_denied",
    "EngineError": "_errors",
    "FileEvent": "_watch",
    "FileInfo": "_files",
    "Interpreter": "_interpreter",
    "Jar": "_jar",
    "PIPE": "_request",
    "Policy": "_policy",
    "Pool": "_pool",
    "PolicyError": "_errors",
    "Process": "_process",
    "ProcessInfo": "_jar_files",
    "Question": "_ask",
    "Result": "_result",
    "ResultError": "_errors",
    "RunError": "_errors",
    "RunTimeout": "_errors",
    "SendError": "_errors",
    "Shell": "_shell",
    "ShellResult": "_shell",
    "StartError": "_errors",
    "UnavailableError": "_errors",
    "Variable": "_cells",
    "Watch": "_watch",
    "Workspace": "_workspace",
    "WorkspaceError": "_workspace",
    "call": "_pool",
    "call_async": "_pool",
    "capabilities": "_host",
    "kill_tree": "_tree",
    "run": "_run",
    "run_async": "_async",
    "safe_env": "_host",
    "spawn": "_process",
    "spawn_async": "_async",
    "tool": "_tool",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'belljar' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
