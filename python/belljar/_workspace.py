# SPDX-License-Identifier: Apache-2.0
"""Workspaces: look at what was changed in a layer, apply it, drop it, freeze it, and go on from there.

All of it is done by the program `belljar`, as a child of this process: there is one implementation, and a jar has no part in it.
A jar holds its layer as long as it is open. What changes the layer (apply, discard, checkpoint, rollback, fork) therefore
closes the jar first and opens it again with the layer as it is then: its processes, /tmp and home begin afresh.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from ._errors import BelljarError, EngineError, public
from ._program import engine_path


Path = Union[str, "os.PathLike[str]"]
JarType = TypeVar("JarType", bound="JarWorkspace")
Value = TypeVar("Value")

NOT_ALL = 1  # the exit status of an apply that left something
# The state before anything was changed.
ORIGIN = "origin"


@public
class WorkspaceError(BelljarError):
    """A workspace could not be used, or not everything could be applied: then `not_applied` has a path, a reason ("conflict",
    "refused", "failed") and why for each change that was not."""

    not_applied: List[Dict[str, Any]]

    def __init__(self, message: str, not_applied: Sequence[Dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.not_applied = list(not_applied)


@public
@dataclasses.dataclass(frozen=True)
class Change:
    """One path that a workspace changes. change: "added", "modified", "type", "mode" or "deleted".

    before and after say what it is on either side (None: nothing), with digests of files. conflict: the host's was touched since.
    refused: apply() leaves it unless allow_risky names it. apart: look at it, tools run it by themselves; why says which.
    """

    path: str
    change: str
    before: Optional[Dict[str, Any]] = None
    after: Optional[Dict[str, Any]] = None
    renamed_from: Optional[str] = None
    conflict: bool = False
    refused: bool = False
    apart: bool = False
    why: Optional[str] = None


_FIELDS = frozenset(field.name for field in dataclasses.fields(Change))


def _environment(text: Optional[str]) -> Dict[str, str]:
    """Of the request that a jar was opened with: it says where its workspace is kept."""
    return dict(os.environ) if text is None else dict(item.split("=", 1) for item in json.loads(text))


@public
class Workspace:
    """What runs with workspace="cow" left, by its id; Workspace.open() finds it by name too."""

    def __init__(self, id: str, *, environ: Optional[Mapping[str, str]] = None) -> None:
        self.id = id
        self._environ = dict(os.environ if environ is None else environ)

    @classmethod
    def open(cls, id_or_name: str) -> Workspace:
        """The workspace of that id, or of that name for the current directory. WorkspaceError if there is none."""
        answer = json.loads(cls(id_or_name)._ask("workspace", "show", id_or_name, "--json", folder=None))
        if id_or_name not in (answer["id"], answer["name"]):
            raise WorkspaceError(f"there is no workspace '{id_or_name}'")
        return cls(str(answer["id"]))

    def _ask(self, *words: str, may_leave: bool = False, folder: Optional[str] = "/") -> str:
        """What the program says to `belljar WORDS...`. Where no directory has a workspace, it takes no other than the one that is
        named."""
        import subprocess

        done = subprocess.run(
            [engine_path(), *words], cwd=folder, env=self._environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode and not (may_leave and done.returncode == NOT_ALL):
            words_of_it = done.stderr.decode("utf-8", "replace").strip()
            raise WorkspaceError(words_of_it.replace("belljar: ", "", 1) or f"belljar {words[0]} ended with {done.returncode}")
        return done.stdout.decode("utf-8", "surrogateescape")

    def _paths(self, paths: Sequence[Path]) -> List[str]:
        """The program takes them from where it stands: say where they are."""
        top = str(self.show()["workdir"]) if paths else ""
        return [os.path.join(top, os.fspath(path)) for path in paths]

    def exists(self) -> bool:
        """Whether it is still there: it goes when everything is applied or dropped."""
        try:
            return bool(self.show())
        except WorkspaceError:
            return False

    def show(self) -> Dict[str, Any]:
        """Its id, name, workdir, kind, checkpoints and counts."""
        return dict(json.loads(self._ask("workspace", "show", self.id, "--json")))

    def diff(self, paths: Optional[Sequence[Path]] = None) -> List[Change]:
        """What is different from the host's files as they are now."""
        answer = json.loads(self._ask("diff", "--json", self.id, *self._paths(paths or ())))
        return [Change(**{key: value for key, value in item.items() if key in _FIELDS}) for item in answer["changes"]]

    def patch(self, paths: Optional[Sequence[Path]] = None) -> str:
        """The same as a patch, which `git apply` takes."""
        return self._ask("diff", "--patch", self.id, *self._paths(paths or ()))

    def apply(
        self,
        paths: Optional[Sequence[Path]] = None,
        allow_risky: Sequence[Path] = (),
        *,
        theirs: Sequence[Path] = (),
        ours: Sequence[Path] = (),
    ) -> Dict[str, Any]:
        """Put the changes, or those of the paths, into the host's directory. WorkspaceError if some were not: conflicts, refused
        ones; the others are applied then. theirs, ours: which side of a conflict to take, the workspace's or the host's."""
        options = [
            word
            for name, values in (("--allow-risky", allow_risky), ("--theirs", theirs), ("--ours", ours))
            for value in self._paths(values)
            for word in (name, value)
        ]
        answer = json.loads(self._ask("apply", "--json", *options, self.id, *self._paths(paths or ()), may_leave=True))
        left = answer.get("not_applied") or []
        if left:
            first = left[0]
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            raise WorkspaceError(f"not applied: {first.get('path')}{more} ({first.get('reason')}: {first.get('why')})", left)
        return dict(answer)

    def discard(self, paths: Optional[Sequence[Path]] = None) -> None:
        """Drop it, or the changes of the paths."""
        self._ask("discard", self.id, *self._paths(paths or ()))

    def checkpoint(self, note: Optional[str] = None) -> str:
        """Freeze what was changed so far; the id is for rollback()."""
        return self._ask("workspace", "checkpoint", self.id, *([note] if note else [])).strip()

    def rollback(self, checkpoint: Optional[str] = None) -> None:
        """Drop what was changed since that checkpoint, or since the last."""
        self._ask("workspace", "rollback", self.id, *([checkpoint] if checkpoint else []))

    def fork(self, count: int) -> List[Workspace]:
        """So many workspaces that go on from here, each by itself. Nothing is copied."""
        answer = self._ask("workspace", "fork", self.id, str(count))
        return [Workspace(line, environ=self._environ) for line in answer.split()]

    def __repr__(self) -> str:
        return f"<belljar.Workspace {self.id}>"


async def _in_thread(function: Callable[[], Value], discard: Optional[Callable[[Value], object]] = None) -> Value:
    from ._loops import run_blocking

    return await run_blocking(function, discard)


class JarWorkspace:
    """What a Jar with workspace="cow" has beside files. Every method has a twin for event loops, with _async at its end."""

    _facts: Dict[str, Any]
    _environ: Optional[str]

    def _restart(self, workspace: Optional[str]) -> None:
        """Open the closed jar again, with this workspace or a new one."""
        raise NotImplementedError

    def _twin(self: JarType, workspace: Optional[str]) -> JarType:
        """Another jar with the same policy."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    @property
    def workspace(self) -> Workspace:
        """The layer that this jar writes to; EngineError if it has none."""
        facts = self._facts.get("workspace")
        if not facts:
            raise EngineError("this jar has no workspace").with_(hint='open it with workspace="cow"')
        return Workspace(str(facts["id"]), environ=_environment(self._environ))

    def _changed(self) -> Optional[Workspace]:
        """Close the jar. Its workspace, if there is anything in it: else it is gone by now."""
        workspace = self.workspace
        self.close()
        return workspace if workspace.exists() else None

    def _go_on(self, workspace: Optional[Workspace]) -> None:
        self._restart(workspace.id if workspace and workspace.exists() else None)

    def diff(self, paths: Optional[Sequence[Path]] = None) -> List[Change]:
        """What runs in this jar have changed so far. The jar goes on."""
        return self.workspace.diff(paths)

    def apply(self, paths: Optional[Sequence[Path]] = None, allow_risky: Sequence[Path] = (), **sides: Sequence[Path]) -> Dict[str, Any]:
        """Workspace.apply(); then the jar begins afresh over what is left."""
        workspace = self._changed()
        try:
            return workspace.apply(paths, allow_risky, **sides) if workspace else {"applied": 0, "not_applied": []}
        finally:
            self._go_on(workspace)

    def discard(self, paths: Optional[Sequence[Path]] = None) -> None:
        """Drop what was changed, or of it the paths; then the jar begins afresh."""
        workspace = self._changed()
        try:
            if workspace:
                workspace.discard(paths)
        finally:
            self._go_on(workspace)

    def checkpoint(self, note: Optional[str] = None) -> str:
        """Freeze what was changed so far; the jar begins afresh over it. The id is for rollback()."""
        workspace = self._changed()
        try:
            return workspace.checkpoint(note) if workspace else ORIGIN
        finally:
            self._go_on(workspace)

    def rollback(self, checkpoint: Optional[str] = None) -> None:
        """Drop what was changed since that checkpoint, or since the last; the jar begins afresh."""
        workspace = self._changed()
        try:
            if workspace and checkpoint == ORIGIN:
                workspace.discard()
            elif workspace:
                workspace.rollback(checkpoint)
        finally:
            self._go_on(workspace)

    def fork(self: JarType, count: int) -> List[JarType]:
        """So many jars that go on from here, each with a layer of its own; processes begin afresh, also here."""
        workspace = self._changed()
        made: List[JarType] = []
        try:
            ids: List[Optional[str]] = [fork.id for fork in workspace.fork(count)] if workspace else [None] * count
            for id in ids:
                made.append(self._twin(id))
        except BaseException:
            for jar in made:
                jar.close()
            raise
        finally:
            self._go_on(workspace)
        return made

    async def diff_async(self, paths: Optional[Sequence[Path]] = None) -> List[Change]:
        return await _in_thread(lambda: self.diff(paths))

    async def apply_async(
        self, paths: Optional[Sequence[Path]] = None, allow_risky: Sequence[Path] = (), **sides: Sequence[Path]
    ) -> Dict[str, Any]:
        return await _in_thread(lambda: self.apply(paths, allow_risky, **sides))

    async def discard_async(self, paths: Optional[Sequence[Path]] = None) -> None:
        await _in_thread(lambda: self.discard(paths))

    async def checkpoint_async(self, note: Optional[str] = None) -> str:
        return await _in_thread(lambda: self.checkpoint(note))

    async def rollback_async(self, checkpoint: Optional[str] = None) -> None:
        await _in_thread(lambda: self.rollback(checkpoint))

    async def fork_async(self: JarType, count: int) -> List[JarType]:
        return await _in_thread(lambda: self.fork(count), lambda made: [jar.close() for jar in made])
