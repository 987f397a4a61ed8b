# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI: a jar as the workspace of an agent.

    async with JarWorkspace(workdir="project") as workspace:
        await agent.run("Run the tests.", workspace=workspace)
"""

from __future__ import annotations

import contextlib
import errno
import posixpath
import uuid
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence

from .._errors import EngineError, StartError
from .._files import FileInfo
from .._jar import Jar
from .._policy import PolicyLike
from ._common import checked_keys, jar_keys, missing, note, start_status, with_output, words_of

try:
    from pydantic_ai.workspaces import (
        CommandResult,
        FileEntry,
        WorkspaceCommand,
        WorkspaceOutputLimitError,
        WorkspaceRef,
        WorkspaceTimeoutError,
        WorkspaceUnavailableError,
    )
except ImportError as error:
    raise missing(__name__, "pydantic-ai-slim>=2.66", error) from error

_OUTPUT_MAX_BYTES = 10 << 20
# The jars of this process by the id of their ref, so that another backend can be attached to one.
_jars: Dict[str, Jar] = {}


@contextlib.contextmanager
def _unavailable() -> Iterator[None]:
    """A jar that is gone is a workspace that is gone."""
    try:
        yield
    except EngineError as error:
        raise WorkspaceUnavailableError(str(error)) from error


def _entry(path: str, info: FileInfo) -> FileEntry:
    is_dir = info.type == "dir"
    return FileEntry(name=posixpath.basename(path), path=path, is_dir=is_dir, size=None if is_dir else info.size)


class JarWorkspace:
    """Commands and files of a jar. It opens with the first operation and lives until close(), or until this process ends.

    JarWorkspace(policy, **keys) makes a jar, whose work directory is private unless they name one; JarWorkspace(ref=ref) uses the one that another workspace of this process made.
    """

    def __init__(self, policy: PolicyLike = None, *, ref: Optional[WorkspaceRef] = None, **keys: Any) -> None:
        self._policy, self._keys = policy, checked_keys(policy, with_output(policy, keys, _OUTPUT_MAX_BYTES))
        self._ref = ref
        self._is_closed = False

    @property
    def ref(self) -> Optional[WorkspaceRef]:
        """None until the jar is open."""
        return self._ref

    def _jar(self) -> Jar:
        if self._is_closed:
            raise WorkspaceUnavailableError("the workspace was closed")
        if self._ref is None:
            jar = Jar(self._policy, **jar_keys(self._policy, self._keys))
            self._ref = WorkspaceRef(provider="belljar", id=uuid.uuid4().hex)
            _jars[self._ref.id] = jar
        elif self._ref.id not in _jars:
            raise WorkspaceUnavailableError(f"the workspace {self._ref.id!r} was closed, or belongs to another process")
        return _jars[self._ref.id]

    async def close(self) -> None:
        """End what runs in the jar and remove it, for all that are attached to it."""
        self._is_closed = True
        jar = _jars.pop(self._ref.id, None) if self._ref is not None else None
        if jar is not None:
            await jar.close_async()

    async def __aenter__(self) -> JarWorkspace:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def working_dir(self) -> str:
        """Where commands start."""
        return str(self._jar().workdir)

    # --- commands ---

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> CommandResult:
        """Run a command; what it leaves in the background goes on. Output beyond the jar's `output` is an error."""
        jar = self._jar()
        try:
            with _unavailable():
                result = await jar.run_async(command, shell=shell, env=dict(env or {}), timeout=timeout, detach=True)
        except StartError as error:
            return CommandResult(exit_code=start_status(error), stdout="", stderr=f"{error}\n")
        if result.outcome == "cancelled":
            raise WorkspaceUnavailableError("the jar was closed while the command ran")
        streams = {"stdout": result.stdout, "stderr": result.stderr}
        streams["stderr"] += note(result)
        if result.outcome == "timeout":
            raise WorkspaceTimeoutError(". ".join(words_of(result)), **streams)
        if result.truncated:
            kept = len(result.stdout.encode()) + len(result.stderr.encode())
            raise WorkspaceOutputLimitError("the command wrote more than the jar's limit 'output'", limit=kept, **streams)
        return CommandResult(exit_code=result.shell_status, **streams)

    # --- files ---

    async def read_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        with _unavailable():
            return await self._jar().read_file_async(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file, with the directories above it; a link leads to the file it names."""
        with _unavailable():
            try:
                await self._jar().write_file_async(path, data, parents=True)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                await self._jar().write_file_async(await self.realpath(path), data, parents=True)

    async def stat(self, path: str) -> FileEntry:
        """What there is at a path, links followed."""
        with _unavailable():
            return _entry(path, await self._jar().stat_async(path, follow=True))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        """The entries of a directory; a link that leads nowhere is one without a size."""
        entries = []
        with _unavailable():
            for info in await self._jar().list_files_async(path):
                inner = posixpath.join(path, info.name)
                try:
                    entries.append(_entry(inner, info) if info.type != "symlink" else await self.stat(inner))
                except OSError:
                    entries.append(FileEntry(name=info.name, path=inner, is_dir=False, size=None))
        return entries

    async def make_dir(self, path: str) -> None:
        """Make a directory, with those above it."""
        with _unavailable():
            await self._jar().mkdir_async(path, parents=True)

    async def remove(self, path: str) -> None:
        """Remove a file, a link or a whole directory; never the working directory."""
        root = await self.working_dir()
        target = posixpath.join(await self.realpath(posixpath.dirname(path)), posixpath.basename(path))
        if root == target or root.startswith(target.rstrip("/") + "/"):
            raise ValueError("cannot remove the working directory or a directory above it")
        with _unavailable():
            await self._jar().remove_async(path, recursive=True)

    async def exists(self, path: str) -> bool:
        """Whether there is something at a path, links followed."""
        with _unavailable():
            return await self._jar().exists_async(path)

    async def realpath(self, path: str) -> str:
        """The path without links; what does not exist stays as it is."""
        with _unavailable():
            result = await self._jar().run_async(["realpath", "-mz", "--", path], errors="surrogateescape")
        if not result.stdout.endswith("\0"):
            raise OSError(errno.ELOOP, f"cannot resolve the path: {result.stderr.strip()}", path)
        return str(result.stdout[:-1])
