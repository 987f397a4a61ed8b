# SPDX-License-Identifier: Apache-2.0
"""In place of the sandboxes of jeevesagent and LoomFlow: tool hosts that stand before another tool host.

    from belljar.adapters.jeeves import SubprocessSandbox, FilesystemSandbox, CodeRunner

`SubprocessSandbox` calls every tool of an InProcessToolHost in a jar. `FilesystemSandbox` refuses calls whose paths lead out
of its roots; it looks before the call, so it keeps honest tools in place, while a jar holds hostile ones. `CodeRunner` runs
programs: files go in, what they leave under ./out/ comes back.

The framework's own types are used, of loomflow or jeevesagent, whichever is installed; this module needs neither to be
imported. All of it works under asyncio, and with anyio under trio.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import importlib
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Mapping as MappingABC
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from .._errors import BelljarError, CallEnded, CallError, CallTimeout, ResultError, SendError
from .._files import LIST_MAX_DEPTH, LIST_MAX_ENTRIES, read_all

__all__ = ["CodeRunner", "ExecResult", "FilesystemSandbox", "SubprocessSandbox", "run"]

FRAMEWORKS = ("loomflow", "jeevesagent")
# Where a framework keeps what is not offered by its top module.
_HOMES = {"InProcessToolHost": ("", ".tools"), "ToolResult": ("", ".core.types"), "ConfigError": ("", ".core.errors")}

MAX_ARGUMENT_DEPTH = 64
MAX_PATH_BYTES = 4096
MAX_OUTPUT_BYTES = 100_000
MAX_ARTIFACT_BYTES = 16_000_000
OUTPUT_FOLDER = "out"

# Arguments that are paths by their names: these words alone, or at the beginning or end of a longer name.
PATH_WORDS = frozenset(
    "path paths file files filename filenames filepath filepaths dir dirs directory directories folder folders cwd"
    " workdir".split()
)


# --- the framework ---


def _find(framework: str, name: str) -> Any:
    for home in _HOMES[name]:
        try:
            found = getattr(importlib.import_module(framework + home), name, None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None


def _frameworks() -> List[types.SimpleNamespace]:
    """The types of each framework that is installed."""
    found = []
    for framework in FRAMEWORKS:
        parts = {name: _find(framework, name) for name in _HOMES}
        if all(parts.values()):
            found.append(types.SimpleNamespace(**parts))
    if not found:
        raise ModuleNotFoundError(
            "belljar.adapters.jeeves needs the framework whose tools it holds: install loomflow, or jeevesagent"
        )
    return found


def _framework_of(inner: Any) -> Any:
    """The framework that the tool host belongs to; the first one if that cannot be told."""
    frameworks = _frameworks()
    for framework in frameworks:
        if isinstance(inner, framework.InProcessToolHost):
            return framework
    names = [type(inner).__module__.partition(".")[0], type(getattr(inner, "inner", None)).__module__.partition(".")[0]]
    for framework in frameworks:
        if framework.ToolResult.__module__.partition(".")[0] in names:
            return framework
    return frameworks[0]


# --- other event loops ---


class _Elsewhere:
    """A coroutine of asyncio's, run by a loop of its own in another thread, for programs whose loop is another."""

    def __init__(self, make: Callable[[], Awaitable[Any]]) -> None:
        self._make = make
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._task: Any = None
        self._is_cancelled = False
        self._lock = threading.Lock()
        self.done = threading.Event()

    async def _main(self) -> Any:
        with self._lock:
            if self._is_cancelled:
                raise asyncio.CancelledError
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await self._make()

    def run(self) -> Any:
        """In the other thread."""
        try:
            return asyncio.run(self._main())
        finally:
            with self._lock:
                self._loop = None
            self.done.set()

    def cancel(self) -> None:
        """From any thread: it ends soon, or never begins."""
        with self._lock:
            self._is_cancelled = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)


async def _await(make: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a coroutine of asyncio's, whatever loop this is. Cancelling waits until nothing of it is left."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return await make()
    anyio = importlib.import_module("anyio")
    work = _Elsewhere(make)
    try:
        return await anyio.to_thread.run_sync(work.run, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        work.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(work.done.wait)
        raise


# --- tools in jars ---


class SubprocessSandbox:
    """A tool host whose tools run in jars: nothing of the host to see, limits that hold, and only data comes back.

    inner: an InProcessToolHost. options: what belljar.call takes for each call, such as memory="1G" or types=[...].
    """

    def __init__(self, inner: Any, *, timeout_seconds: float = 30.0, **options: Any) -> None:
        if timeout_seconds <= 0:
            raise ValueError("timeout_seconds must be positive")
        framework = _framework_of(inner)
        if not isinstance(inner, framework.InProcessToolHost):
            raise framework.ConfigError(
                f"SubprocessSandbox wraps InProcessToolHost only, whose functions it can send; got {type(inner).__name__}"
            )
        self._inner = inner
        self._timeout_seconds = timeout_seconds
        self._options = options
        self._result = framework.ToolResult

    @property
    def inner(self) -> Any:
        """The tool host behind it."""
        return self._inner

    @property
    def timeout_seconds(self) -> float:
        """How long a call may take."""
        return self._timeout_seconds

    def register(self, tool: Any) -> Any:
        """Add a tool to the host behind it."""
        return self._inner.register(tool)

    async def list_tools(self, *, query: Optional[str] = None) -> Any:
        """As the host behind it."""
        return await self._inner.list_tools(query=query)

    def watch(self) -> Any:
        """As the host behind it."""
        return self._inner.watch()

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        """The tool's function in a jar. Whatever goes wrong with it is a result that says so; only cancelling raises."""
        found = self._inner.get(tool)
        if found is None:
            return self._result.error_(call_id=call_id, message=f"unknown tool: {tool}")
        try:
            output = await self._run(tool, found.fn, dict(args))
        except CallTimeout:
            message = f"tool exceeded {self._timeout_seconds}s"
        except CallEnded:
            message = "subprocess exited without producing a result"
        except ResultError as error:
            message = f"the tool's result is not data: {error}"
        except CallError as error:
            message = f"tool raised {(error.type_name or 'Exception').rpartition('.')[2]}: {error.message}"
        except _NotPicklable as error:
            message = str(error)
        except BelljarError as error:
            message = f"the tool was not run: {error}"
        else:
            return self._result.success(call_id=call_id, output=output)
        return self._result.error_(call_id=call_id, message=f"SubprocessSandbox: {message}")

    async def _run(self, tool: str, fn: Any, args: Dict[str, Any]) -> Any:
        import belljar

        try:
            # The contract is plain pickle, though closures could be sent by value.
            pickle.dumps((fn, args))
        except Exception as error:
            raise _NotPicklable(tool, error) from error
        work = functools.partial(fn, **args)
        try:
            return await _await(lambda: belljar.call_async(work, timeout=self._timeout_seconds, **self._options))
        except SendError as error:
            raise _NotPicklable(tool, error) from error


class _NotPicklable(Exception):
    def __init__(self, tool: str, error: BaseException) -> None:
        super().__init__(
            f"tool {tool!r} or its arguments are not picklable ({error}). Use a module-level function and primitive args."
        )


# --- paths that stay inside ---


class FilesystemSandbox:
    """A tool host that denies calls with paths outside its roots, links resolved, however deep in the arguments they are.

    path_args: names of arguments that are paths. auto_detect: so are those with names like path, output_file or src_dir, and
    texts that begin like a path (/, ~, ./, ../). Relative paths start at the current directory.
    """

    def __init__(
        self,
        inner: Any,
        *,
        roots: Iterable[Union[str, "os.PathLike[str]"]],
        path_args: Optional[Iterable[str]] = None,
        auto_detect: bool = True,
    ) -> None:
        places = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots or ())
        if not places:
            raise ValueError("FilesystemSandbox needs at least one root")
        self._roots = tuple(Path(os.path.realpath(os.path.expanduser(place))) for place in places)
        self._names = frozenset([path_args] if isinstance(path_args, str) else path_args or ())
        self._auto_detect = auto_detect
        self._inner = inner
        self._result = _framework_of(inner).ToolResult

    @property
    def inner(self) -> Any:
        """The tool host behind it."""
        return self._inner

    @property
    def roots(self) -> Tuple[Path, ...]:
        """Where paths may lead, links resolved."""
        return self._roots

    def register(self, tool: Any) -> Any:
        """Add a tool to the host behind it."""
        return self._inner.register(tool)

    async def list_tools(self, *, query: Optional[str] = None) -> Any:
        """As the host behind it."""
        return await self._inner.list_tools(query=query)

    def watch(self) -> Any:
        """As the host behind it."""
        return self._inner.watch()

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        """The call, unless one of its paths leads outside."""
        reason = self._refusal("args", args, False, MAX_ARGUMENT_DEPTH)
        if reason is not None:
            return self._result.denied_(call_id=call_id, reason=reason)
        return await self._inner.call(tool, args, call_id=call_id)

    def _refusal(self, name: str, value: Any, is_path: bool, depth: int) -> Optional[str]:
        """Why a value may not be passed; is_path: a name further out says that texts in it are paths."""
        if isinstance(value, (str, bytes, os.PathLike)):
            return self._outside(name, value, is_path)
        if not isinstance(value, (MappingABC, list, tuple, set, frozenset)):
            return None
        if depth == 0:
            return f"argument {name!r} is nested too deep to see whether its paths lead outside the roots"
        if isinstance(value, MappingABC):
            items = [(str(key), item, is_path or self._is_path_name(key)) for key, item in value.items()]
            items += [(name, key, False) for key in value if isinstance(key, (str, bytes, os.PathLike))]
        else:
            items = [(name, item, is_path) for item in value]
        for inner_name, item, is_inner_path in items:
            reason = self._refusal(inner_name, item, is_inner_path, depth - 1)
            if reason is not None:
                return reason
        return None

    def _is_path_name(self, name: Any) -> bool:
        if name in self._names:
            return True
        if not self._auto_detect or not isinstance(name, str):
            return False
        words = name.lower().replace("-", "_").split("_")
        return words[0] in PATH_WORDS or words[-1] in PATH_WORDS

    def _outside(self, name: str, value: Any, is_path: bool) -> Optional[str]:
        text = os.fsdecode(value)
        if text.startswith("file://"):
            text, is_path = text[len("file://") :], True
        if not is_path and not isinstance(value, os.PathLike) and not (self._auto_detect and _looks_like_path(text)):
            return None
        try:
            resolved = Path(os.path.realpath(os.path.expanduser(text)))
        except (ValueError, OSError, RuntimeError):
            resolved = None
        if resolved is not None and any(resolved == root or root in resolved.parents for root in self._roots):
            return None
        shown = text if len(text) <= 200 else text[:197] + "..."
        return f"argument {name!r}: the path {shown!r} leads outside the allowed roots"


def _looks_like_path(text: str) -> bool:
    if "\n" in text or len(text) > MAX_PATH_BYTES:
        return False
    return text.startswith(("/", "~", "./", "../")) or text == ".." or "/../" in text or text.endswith("/..")


# --- programs, files in, artifacts out ---


@dataclasses.dataclass
class ExecResult:
    """How a program ended, and the files that it left under ./out/, by their names there."""

    stdout: str
    stderr: str
    returncode: int
    timed_out: bool = False
    artifacts: Dict[str, bytes] = dataclasses.field(default_factory=dict)


class CodeRunner:
    """Runs programs in jars, each in an empty directory of its own.

    policy keys, such as memory="1G" or net="host", hold for all of them.
    """

    def __init__(
        self,
        python: str = sys.executable,
        *,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        max_artifact_bytes: int = MAX_ARTIFACT_BYTES,
        **keys: Any,
    ) -> None:
        self._commands = {
            "python": (python, "main.py"),
            "bash": ("/bin/bash", "main.sh"),
            "sh": ("/bin/sh", "main.sh"),
        }
        self._max_artifact_bytes = max_artifact_bytes
        self._keys = {"output": max_output_bytes, **keys}
        # An interpreter outside of the system's directories is of no use without what belongs to it.
        self._prefixes = [sys.prefix, sys.base_prefix] if python == sys.executable else [os.path.dirname(os.path.dirname(python))]

    async def run(
        self,
        code: str,
        *,
        language: str = "python",
        timeout_s: float = 30.0,
        files: Optional[Mapping[str, Union[bytes, str]]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> ExecResult:
        """Run a program to its end. ValueError for a language or a file name that will not do."""
        if language not in self._commands:
            raise ValueError(f"language {language!r} is not known; there are: {', '.join(self._commands)}")
        program, script = self._commands[language]
        # Its parent stays ours alone: what is in the jar can change the directory, not replace it.
        base = tempfile.mkdtemp(prefix="belljar-code-")
        try:
            folder = os.path.join(base, "work")
            os.makedirs(os.path.join(folder, OUTPUT_FOLDER))
            for name, data in (files or {}).items():
                _put(folder, name, data)
            if os.path.lexists(os.path.join(folder, script)):
                raise ValueError(f"the program itself is called {script!r}; give that file another name")
            _put(folder, script, code)
            return await self._run([program, script], folder, timeout_s, env)
        finally:
            _remove(base)

    async def _run(self, words: List[str], folder: str, timeout_s: float, env: Optional[Mapping[str, str]]) -> ExecResult:
        from .._async import run_async

        keys: Dict[str, Any] = {**self._keys, "workdir": folder, "timeout": timeout_s}
        keys["env"] = {**keys.get("env", {}), **(env or {})}
        keys["ro"] = [*keys.get("ro", ()), *_outside_system(self._prefixes)]
        result = await _await(lambda: run_async(words, **keys))
        artifacts = collect(os.path.join(folder, OUTPUT_FOLDER), self._max_artifact_bytes)
        return ExecResult(result.stdout, result.stderr, result.returncode, result.timed_out, artifacts)


def _outside_system(prefixes: Sequence[str]) -> List[Dict[str, Any]]:
    places = dict.fromkeys(os.path.realpath(prefix) for prefix in prefixes)
    return [{"path": place, "optional": True} for place in places if place not in ("/", "/usr") and not place.startswith("/usr/")]


def _put(folder: str, name: str, data: Union[bytes, str]) -> None:
    parts = Path(name).parts
    if not parts or os.path.isabs(name) or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is no name for a file of a program")
    path = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


class _Collection:
    """The regular files below a directory that is not to be trusted, as many as fit.

    Only single names are opened, below descriptors: no link is followed. A FIFO is not waited for, a directory that may not
    be read is passed over, and neither many files nor deep ones can keep us.
    """

    def __init__(self, max_bytes: int) -> None:
        self.found: Dict[str, bytes] = {}
        self._room = max_bytes
        self._entries_left = LIST_MAX_ENTRIES

    def enter(self, fd: int, prefix: str, depth: int) -> None:
        """All below a directory, in the order of names."""
        try:
            names = self._names(fd)
        except OSError:
            return
        for name in names:
            try:
                inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=fd)
            except OSError:
                continue
            try:
                kind = os.fstat(inner).st_mode
                if stat.S_ISREG(kind):
                    self._take(inner, prefix + name)
                elif stat.S_ISDIR(kind) and depth > 0:
                    self.enter(inner, f"{prefix}{name}/", depth - 1)
            finally:
                os.close(inner)

    def _names(self, fd: int) -> List[str]:
        names = []
        with os.scandir(fd) as entries:
            for entry in entries:
                if self._entries_left == 0:
                    break
                self._entries_left -= 1
                names.append(entry.name)
        return sorted(names)

    def _take(self, fd: int, name: str) -> None:
        try:
            data = read_all(fd, name, self._room) if os.fstat(fd).st_size <= self._room else None
        except OSError:
            return
        if data is not None:
            self.found[name] = data
            self._room -= len(data)


def collect(folder: str, max_bytes: int) -> Dict[str, bytes]:
    """What a program left in a directory: {relative name: bytes}."""
    collection = _Collection(max_bytes)
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        collection.enter(top, "", LIST_MAX_DEPTH)
    finally:
        os.close(top)
    return collection.found


def _remove(path: str) -> None:
    """A directory whatever was made of it: rights taken away, nested deeper than Python goes."""
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        for words in (["chmod", "-R", "u+rwx", "--", path], ["rm", "-rf", "--", path]):
            subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


async def run(
    code: str,
    *,
    language: str = "python",
    timeout_s: float = 30.0,
    files: Optional[Mapping[str, Union[bytes, str]]] = None,
    env: Optional[Mapping[str, str]] = None,
) -> ExecResult:
    """CodeRunner().run()"""
    return await CodeRunner().run(code, language=language, timeout_s=timeout_s, files=files, env=env)
