# SPDX-License-Identifier: Apache-2.0
"""Workspaces: look at what was changed in a layer, apply it, drop it, freeze it, and go on from there.

The engine does all of it. A jar holds its layer as long as it is open. For what changes the layer (apply, discard, checkpoint,
rollback, fork) the engine makes the jar anew over the layer as it is then: its processes, /tmp and home begin afresh.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from . import _engine, _files, _wire
from ._errors import BelljarError, EngineError, public
from ._request import current_directory, environ_text, json_frame, wire_text
from ._steps import Asking, Steps


Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Paths = Optional[Sequence[Path]]
JarType = TypeVar("JarType", bound="JarWorkspace")

# Of an answer, which is about files in numbers that nobody knows.
ANSWER_MAX_BYTES = 1 << 40


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


def _list(paths: Paths, name: str) -> List[str]:
    """Paths as they travel. A string would be a list of letters."""
    if isinstance(paths, (str, bytes)):
        raise TypeError(f"{name} must be a list of paths, not {type(paths).__name__}")
    return [wire_text(path) for path in paths or ()]


class Deciding(Asking):
    """What can be asked about a workspace, whoever has it. Every method has a twin for event loops, with _async at its end."""

    def _order(self, members: Dict[str, Any]) -> bytes:
        """The frame for it."""
        raise NotImplementedError

    def _take_opened(self, opened: Dict[str, Any]) -> None:
        """The jar that has it was made anew."""

    def _carry_out(self, op: str, paths: Paths = None, **members: Any) -> Steps[bytes]:
        """The answer to one order."""
        if paths is not None:
            members["paths"] = _list(paths, "paths")
            if not members["paths"]:
                raise ValueError("paths is empty: leave it out for everything")
        answered, payload, fds = yield self._order({"op": op, **members})
        try:
            answer = _wire.parse(payload)
            if isinstance(answer.get("opened"), dict):
                self._take_opened(answer["opened"])
            if answered == _wire.FAILED:
                error = answer.get("error") or {}
                raise WorkspaceError(str(error.get("message"))).with_(hint=error.get("hint"))
            if answered != _wire.DESCRIPTOR or len(fds) != 1:
                raise EngineError(f"the engine sent a frame of type {answered} in place of a file")
            return (yield from _files.read_steps(fds[0], op, ANSWER_MAX_BYTES))
        finally:
            _engine.close_all(fds)

    def _ask_json(self, op: str, paths: Paths = None, **members: Any) -> Steps[Dict[str, Any]]:
        return dict(json.loads((yield from self._carry_out(op, paths, **members))))

    def _diff(self, paths: Paths) -> Steps[List[Change]]:
        answer = yield from self._ask_json("diff", paths)
        return [Change(**{key: value for key, value in item.items() if key in _FIELDS}) for item in answer["changes"]]

    def _patch(self, paths: Paths) -> Steps[str]:
        return (yield from self._carry_out("patch", paths)).decode("utf-8", "surrogateescape")

    def _apply(self, paths: Paths, **choice: Paths) -> Steps[Dict[str, Any]]:
        lists = {name: _list(value, name) for name, value in choice.items() if value}
        answer = yield from self._ask_json("apply", paths, **lists)
        left = answer["not_applied"]
        if left:
            first = left[0]
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            raise WorkspaceError(f"not applied: {first.get('path')}{more} ({first.get('reason')}: {first.get('why')})", left)
        return answer

    def _discard(self, paths: Paths) -> Steps[None]:
        left = (yield from self._ask_json("discard", paths))["not_dropped"]
        if left:
            reason = "it belongs to a checkpoint, or to a directory that was replaced as a whole"
            raise WorkspaceError(f"cannot be dropped by itself: {left[0]} ({reason})")

    def _checkpoint(self, note: Optional[str]) -> Steps[str]:
        return str((yield from self._ask_json("checkpoint", **({"note": note} if note else {})))["checkpoint"])

    def _rollback(self, checkpoint: Optional[str]) -> Steps[None]:
        yield from self._ask_json("rollback", **({"checkpoint": checkpoint} if checkpoint else {}))

    def _fork(self, count: int) -> Steps[List[Optional[str]]]:
        """Ids; None where nothing was changed yet, so that a new one is the same."""
        return list((yield from self._ask_json("fork", count=count))["forks"])

    def diff(self, paths: Paths = None) -> List[Change]:
        """What is different from the host's files as they are now. A jar goes on."""
        return self._do(self._diff(paths))

    def patch(self, paths: Paths = None) -> str:
        """The same as a patch, which `git apply` takes."""
        return self._do(self._patch(paths))

    def apply(
        self,
        paths: Paths = None,
        allow_risky: Sequence[Path] = (),
        *,
        theirs: Sequence[Path] = (),
        ours: Sequence[Path] = (),
    ) -> Dict[str, Any]:
        """Put the changes, or those of the paths, into the host's directory. WorkspaceError if some were not: conflicts, refused
        ones; the others are applied then. theirs, ours: which side of a conflict to take, the workspace's or the host's."""
        return self._do(self._apply(paths, allow_risky=allow_risky, theirs=theirs, ours=ours))

    def discard(self, paths: Paths = None) -> None:
        """Drop what was changed, or of it the paths."""
        self._do(self._discard(paths))

    def checkpoint(self, note: Optional[str] = None) -> str:
        """Freeze what was changed so far; the id is for rollback(). "origin" if that is nothing."""
        return self._do(self._checkpoint(note))

    def rollback(self, checkpoint: Optional[str] = None) -> None:
        """Drop what was changed since that checkpoint, or since the last."""
        self._do(self._rollback(checkpoint))

    async def diff_async(self, paths: Paths = None) -> List[Change]:
        return await self._do_async(self._diff(paths))

    async def patch_async(self, paths: Paths = None) -> str:
        return await self._do_async(self._patch(paths))

    async def apply_async(
        self,
        paths: Paths = None,
        allow_risky: Sequence[Path] = (),
        *,
        theirs: Sequence[Path] = (),
        ours: Sequence[Path] = (),
    ) -> Dict[str, Any]:
        return await self._do_async(self._apply(paths, allow_risky=allow_risky, theirs=theirs, ours=ours))

    async def discard_async(self, paths: Paths = None) -> None:
        await self._do_async(self._discard(paths))

    async def checkpoint_async(self, note: Optional[str] = None) -> str:
        return await self._do_async(self._checkpoint(note))

    async def rollback_async(self, checkpoint: Optional[str] = None) -> None:
        await self._do_async(self._rollback(checkpoint))


@public
class Workspace(Deciding):
    """What runs with workspace="cow" left, by its id; Workspace.open() finds it by name too."""

    def __init__(self, id: str, *, environ: Optional[Mapping[str, str]] = None) -> None:
        self.id = id
        self._environ = environ_text() if environ is None else json.dumps([f"{name}={value}" for name, value in environ.items()])

    @classmethod
    def open(cls, id_or_name: str) -> Workspace:
        """The workspace of that id, or of that name for the current directory. WorkspaceError if there is none."""
        return cls(str(cls(id_or_name).show()["id"]))

    @classmethod
    async def open_async(cls, id_or_name: str) -> Workspace:
        return cls(str((await cls(id_or_name).show_async())["id"]))

    def _order(self, members: Dict[str, Any]) -> bytes:
        return json_frame(_wire.WORKSPACE, {"id": self.id, "cwd": current_directory(), **members}, environ=self._environ)

    def _ask(self, request_frame: bytes, fds: Any) -> _engine.Channel:
        return _engine.open_channel(request_frame, fds)

    def exists(self) -> bool:
        """Whether it is still there: it goes when everything is applied or dropped."""
        try:
            return bool(self.show())
        except WorkspaceError:
            return False

    def show(self) -> Dict[str, Any]:
        """Its id, name, workdir, kind, checkpoints and counts."""
        return self._do(self._ask_json("show"))

    async def exists_async(self) -> bool:
        try:
            return bool(await self.show_async())
        except WorkspaceError:
            return False

    async def show_async(self) -> Dict[str, Any]:
        return await self._do_async(self._ask_json("show"))

    def fork(self, count: int) -> List[Workspace]:
        """So many workspaces that go on from here, each by itself. Nothing is copied. WorkspaceError if nothing was changed yet."""
        return self._forks(self._do(self._fork(count)))

    async def fork_async(self, count: int) -> List[Workspace]:
        return self._forks(await self._do_async(self._fork(count)))

    def _forks(self, ids: Sequence[Optional[str]]) -> List[Workspace]:
        if None in ids:
            raise WorkspaceError("nothing was changed in this workspace: there is nothing to fork")
        made = [Workspace(str(id)) for id in ids]
        for workspace in made:
            workspace._environ = self._environ
        return made

    def __repr__(self) -> str:
        return f"<belljar.Workspace {self.id}>"


class JarWorkspace(Deciding):
    """What a Jar with workspace="cow" has beside files."""

    _facts: Dict[str, Any]
    _environ: Optional[str]

    def _twin(self: JarType, workspace: Optional[str]) -> JarType:
        """Another jar with the same policy, over this workspace or a new one."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _order(self, members: Dict[str, Any]) -> bytes:
        self.workspace  # noqa: B018 - or it says that there is none
        return json_frame(_wire.LAYER, members)

    @property
    def workspace(self) -> Workspace:
        """The layer that this jar writes to; EngineError if it has none."""
        facts = self._facts.get("workspace")
        if not facts:
            raise EngineError("this jar has no workspace").with_(hint='open it with workspace="cow"')
        workspace = Workspace(str(facts["id"]))
        workspace._environ = self._environ
        return workspace

    def _twins(self: JarType, ids: Sequence[Optional[str]]) -> List[JarType]:
        made: List[JarType] = []
        try:
            for id in ids:
                made.append(self._twin(id))
        except BaseException:
            for jar in made:
                jar.close()
            raise
        return made

    def fork(self: JarType, count: int) -> List[JarType]:
        """So many jars that go on from here, each with a layer of its own; processes begin afresh, also here."""
        return self._twins(self._do(self._fork(count)))

    async def fork_async(self: JarType, count: int) -> List[JarType]:
        from ._loops import run_blocking

        ids = await self._do_async(self._fork(count))
        return await run_blocking(lambda: self._twins(ids), lambda made: [jar.close() for jar in made])
