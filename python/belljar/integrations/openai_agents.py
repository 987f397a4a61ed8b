# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents SDK: a jar as the sandbox of a SandboxAgent, and as the shell of ShellTool.

    RunConfig(sandbox=SandboxRunConfig(client=JarSandboxClient(memory="2G")))
    ShellTool(executor=JarShell(jar))
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import tarfile
import tempfile
import time
import uuid
from collections import deque
from pathlib import Path
from typing import Any, BinaryIO, Deque, Dict, List, Literal, Optional, Tuple, Union

from .._async import AsyncProcess
from .._errors import BelljarError, StartError
from .._jar import Jar
from .._policy import PolicyLike
from .._request import PIPE
from ._common import checked_keys, is_owners_timeout, missing, note, start_status, with_output, words_of

try:
    from agents.sandbox.errors import (
        ExecTimeoutError,
        ExecTransportError,
        WorkspaceArchiveReadError,
        WorkspaceArchiveWriteError,
        WorkspaceReadNotFoundError,
    )
    from agents.sandbox.manifest import Manifest
    from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
    from agents.sandbox.session.pty_output import collect_pty_output
    from agents.sandbox.session.pty_types import (
        PTY_PROCESSES_MAX,
        PtyExecUpdate,
        allocate_pty_process_id,
        clamp_pty_yield_time_ms,
        process_id_to_prune_from_meta,
        resolve_pty_write_yield_time_ms,
    )
    from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
    from agents.sandbox.session.sandbox_session import SandboxSession
    from agents.sandbox.session.sandbox_session_state import SandboxSessionState
    from agents.sandbox.session.workspace_payloads import coerce_write_payload
    from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
    from agents.sandbox.types import ExecResult, ExposedPortEndpoint, User
    from agents.sandbox.util.tar_utils import should_skip_tar_member
    from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult
except ImportError as error:
    raise missing(__name__, "openai-agents>=0.24", error) from error

_ROOT = str(Manifest.model_fields["root"].default)
_OUTPUT_MAX_BYTES = 64 << 20
_TERMINAL_MAX_BYTES = 1 << 20
# The jars of this process by session, so that a session can be resumed while its jar lives.
_jars: Dict[uuid.UUID, Jar] = {}


class JarSandboxClientOptions(BaseSandboxClientOptions):  # type: ignore[misc]
    """What may differ from session to session: the ports of servers in the jar that this host should reach."""

    type: Literal["belljar"] = "belljar"
    exposed_ports: Tuple[int, ...] = ()


class JarSandboxSessionState(SandboxSessionState):  # type: ignore[misc]
    """What a resumed session starts from. No policy is in it: that is the client's."""

    type: Literal["belljar"] = "belljar"


class _Terminal:
    """A command that goes on between calls, and its output since the last one."""

    def __init__(self) -> None:
        self.process: Optional[AsyncProcess] = None
        self.watcher: Optional[asyncio.Task[None]] = None
        self.chunks: Deque[bytes] = deque()
        self.lock = asyncio.Lock()
        self.news = asyncio.Event()
        self.room = asyncio.Event()
        self.is_done = self.is_ending = False
        self.last_used = time.monotonic()

    async def hear(self, _stream: str, data: bytes) -> None:
        """A command that nobody listens to waits, once there is as much as a call may take."""
        self.chunks.append(data)
        self.news.set()
        while sum(map(len, self.chunks)) >= _TERMINAL_MAX_BYTES and not self.is_ending:
            self.room.clear()
            await self.room.wait()

    async def watch(self) -> None:
        assert self.process is not None
        with contextlib.suppress(BelljarError):
            await self.process.wait()
        self.is_done = True
        self.news.set()

    async def end(self) -> None:
        assert self.process is not None and self.watcher is not None
        self.is_ending = True
        self.room.set()
        await self.process.close()
        await self.watcher


class JarSandboxSession(BaseSandboxSession):  # type: ignore[misc]
    """Commands, files, terminals and ports of one jar, from start() to shutdown()."""

    state: JarSandboxSessionState

    def __init__(self, state: JarSandboxSessionState, policy: PolicyLike, keys: Dict[str, Any]) -> None:
        self.state = state
        self._policy, self._keys = policy, keys
        self._terminals: Dict[int, _Terminal] = {}

    # --- from start to end ---

    @property
    def jar(self) -> Jar:
        """The open jar."""
        if self.state.session_id not in _jars:
            raise RuntimeError("the jar is not open; start the session first")
        return _jars[self.state.session_id]

    async def _ensure_backend_started(self) -> None:
        is_there = await self.running()
        if not is_there:
            await self._shutdown_backend()  # what is left of one that was ended
            keys = dict(self._keys)
            if keys.get("net") != "host":
                keys["publish"] = [*keys.get("publish", ()), *self.state.exposed_ports]
            _jars[self.state.session_id] = await Jar.open_async(self._policy, **keys)
        self._set_start_state_preserved(is_there)

    async def running(self) -> bool:
        """Whether the jar is open, and has not been ended by somebody else."""
        try:
            return await self.jar.exists_async("/")
        except (RuntimeError, BelljarError):
            return False

    async def _shutdown_backend(self) -> None:
        jar = _jars.pop(self.state.session_id, None)
        if jar is not None:
            await jar.close_async()

    async def provision_manifest_accounts(self) -> None:
        """A jar has one user."""
        if self.state.manifest.users or self.state.manifest.groups:
            raise ValueError("a jar has one user: a manifest for it can name no users and no groups")

    async def _apply_manifest(self, **options: Any) -> Any:
        await self.provision_manifest_accounts()
        return await super()._apply_manifest(**options)

    # --- commands ---

    def _prepare_exec_command(
        self, *command: Union[str, Path], shell: Union[bool, List[str]], user: Union[str, User, None]
    ) -> List[str]:
        if user is not None:
            raise ValueError("a jar has one user: a command cannot be run as another")
        words: List[str] = super()._prepare_exec_command(*command, shell=["sh", "-c"] if shell is True else shell, user=None)
        return words

    async def _options(self) -> Dict[str, Any]:
        return {"env": await self.state.manifest.environment.resolve(), "cd": self.state.manifest.root}

    async def _exec_internal(self, *command: Union[str, Path], timeout: Optional[float] = None) -> ExecResult:
        try:
            options = await self._options()
            result = await self.jar.run_async(list(command), text=False, timeout=timeout, detach=True, **options)
        except StartError as error:
            return ExecResult(stdout=b"", stderr=f"{error}\n".encode(), exit_code=start_status(error))
        except BelljarError as error:
            raise ExecTransportError(command=command, cause=error) from error
        if result.outcome == "timeout" and not is_owners_timeout(result, timeout):
            raise ExecTimeoutError(command=command, timeout_s=timeout, context={"reason": words_of(result)})
        if result.truncated:
            raise ExecTransportError(command=command, message="the command wrote more than the jar's limit 'output'")
        stderr = result.stderr + note(result).encode()
        return ExecResult(stdout=result.stdout, stderr=stderr, exit_code=result.shell_status)

    # --- terminals ---

    def supports_pty(self) -> bool:
        """It does."""
        return True

    async def pty_exec_start(
        self,
        *command: Union[str, Path],
        timeout: Optional[float] = None,
        shell: Union[bool, List[str]] = True,
        user: Union[str, User, None] = None,
        tty: bool = False,
        yield_time_s: Optional[float] = None,
        max_output_tokens: Optional[int] = None,
    ) -> PtyExecUpdate:
        """Start a command that may go on after this call; with tty it has a terminal, and can be written to."""
        if len(self._terminals) >= PTY_PROCESSES_MAX:
            meta = [(number, entry.last_used, entry.is_done) for number, entry in self._terminals.items()]
            oldest = process_id_to_prune_from_meta(meta)
            if oldest is not None:
                await self._terminals.pop(oldest).end()
        terminal = _Terminal()
        words = self._prepare_exec_command(*command, shell=shell, user=user)
        options = {**await self._options(), "timeout": timeout, "on_output": terminal.hear}
        if tty:
            options.update(pty=True, stdin=PIPE)
        try:
            terminal.process = await self.jar.spawn_async(words, **options)
        except BelljarError as error:
            raise ExecTransportError(command=command, cause=error) from error
        terminal.watcher = asyncio.ensure_future(terminal.watch())
        number = allocate_pty_process_id(set(self._terminals))
        self._terminals[number] = terminal
        milliseconds = 10_000 if yield_time_s is None else int(yield_time_s * 1000)
        return await self._update(number, clamp_pty_yield_time_ms(milliseconds), max_output_tokens)

    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: Optional[float] = None,
        max_output_tokens: Optional[int] = None,
    ) -> PtyExecUpdate:
        """Type into a terminal, and see what it prints."""
        terminal = self._resolve_pty_session_entry(pty_processes=self._terminals, session_id=session_id)
        terminal.last_used = time.monotonic()
        if chars:
            if terminal.process is None or terminal.process.stdin is None:
                raise RuntimeError("stdin is not available for this process")
            with contextlib.suppress(ConnectionError):
                terminal.process.stdin.write(chars.encode())
                await terminal.process.stdin.drain()
        milliseconds = 250 if yield_time_s is None else int(yield_time_s * 1000)
        waiting = resolve_pty_write_yield_time_ms(yield_time_ms=milliseconds, input_empty=not chars)
        return await self._update(session_id, waiting, max_output_tokens)

    async def _update(self, number: int, milliseconds: int, max_output_tokens: Optional[int]) -> PtyExecUpdate:
        terminal = self._terminals[number]
        output, tokens, is_closed = await collect_pty_output(
            output_chunks=terminal.chunks,
            output_lock=terminal.lock,
            output_notify=terminal.news,
            is_done=lambda: terminal.is_done,
            yield_time_ms=milliseconds,
            max_output_tokens=max_output_tokens,
        )
        terminal.room.set()
        if not is_closed:
            return PtyExecUpdate(process_id=number, output=output, exit_code=None, original_token_count=tokens)
        self._terminals.pop(number, None)
        assert terminal.process is not None
        result = await terminal.process.wait()
        status, output = result.shell_status, output + note(result).encode()
        await terminal.end()
        return PtyExecUpdate(process_id=None, output=output, exit_code=status, original_token_count=tokens)

    async def pty_terminate_all(self) -> None:
        """End them."""
        while self._terminals:
            await self._terminals.popitem()[1].end()

    # --- ports ---

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        """A port of this host's loopback that leads to one in the jar."""
        return ExposedPortEndpoint(host="127.0.0.1", port=self.jar.published.get(port, port), tls=False)

    # --- files ---

    def _refuse(self, user: Union[str, User, None]) -> None:
        if user is not None:
            raise ValueError("a jar has one user: a file cannot be used as another")

    async def read(self, path: Path, *, user: Union[str, User, None] = None) -> io.IOBase:
        """The bytes of a file."""
        self._refuse(user)
        inside = await self._validate_path_access(path)
        try:
            return io.BytesIO(await self.jar.read_file_async(inside))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except OSError as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error

    async def _read_bounded(self, path: Path, *, max_bytes: int) -> bytes:
        return await self.jar.read_file_async(await self._validate_path_access(path), length=max_bytes)

    async def write(self, path: Path, data: io.IOBase, *, user: Union[str, User, None] = None) -> None:
        """Write a file, with the directories above it."""
        self._refuse(user)
        inside = await self._validate_path_access(path, for_write=True)
        content = coerce_write_payload(path=path, data=data).stream.read()
        try:
            await self.jar.write_file_async(inside, content, parents=True)
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=path, cause=error) from error

    # --- the workspace as a tar file ---

    async def persist_workspace(self) -> io.IOBase:
        """All of the work directory but what the manifest calls ephemeral."""
        root = Path(self.state.manifest.root)
        skip = self._persist_workspace_skip_relpaths()

        def filtered(source: BinaryIO) -> io.IOBase:
            kept = tempfile.TemporaryFile()
            with tarfile.open(fileobj=source, mode="r|") as old, tarfile.open(fileobj=kept, mode="w|") as new:
                for member in old:
                    if not should_skip_tar_member(member.name, skip_rel_paths=skip, root_name=None):
                        new.addfile(member, old.extractfile(member) if member.isreg() else None)
            kept.seek(0)
            return kept

        try:
            with await self.jar.export_tar_async(root) as source:
                return await asyncio.to_thread(filtered, source)
        except (OSError, tarfile.TarError) as error:
            raise WorkspaceArchiveReadError(path=root, cause=error) from error

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Fill the work directory. The jar's own tar does it: what a link in the archive leads to, the jar could reach anyway."""
        root = self.state.manifest.root
        with tempfile.TemporaryFile() as archive:
            await asyncio.to_thread(shutil.copyfileobj, data, archive)
            archive.seek(0)
            result = await self.jar.run_async(["tar", "-C", root, "-xf", "-"], stdin=archive, timeout=None)
        if not result.ok:
            raise WorkspaceArchiveWriteError(path=Path(root), context={"reason": result.stderr.strip()})


class JarSandboxClient(BaseSandboxClient[Optional[JarSandboxClientOptions]]):  # type: ignore[misc]
    """Makes a jar for each session. JarSandboxClient(policy, **keys): the policy of all of them.

    The work directory, /workspace, is private and empty unless workdir= names one; then that one is the manifest's root.
    """

    backend_id = "belljar"
    supports_default_options = True

    def __init__(self, policy: PolicyLike = None, *, workdir: Union[str, Path, None] = None, **keys: Any) -> None:
        self._workdir = None if workdir is None else os.path.abspath(workdir)
        self._policy = policy
        self._keys = checked_keys(policy, {**with_output(policy, keys, _OUTPUT_MAX_BYTES), "workdir": self._workdir})

    def _session(self, state: JarSandboxSessionState) -> SandboxSession:
        manifest = state.manifest
        if manifest.root != (self._workdir or _ROOT):
            raise ValueError(f"the manifest's root {manifest.root!r} is not the jar's work directory {self._workdir or _ROOT!r}")
        if any(grant.host_path is not None for grant in manifest.extra_path_grants):
            raise ValueError("a manifest shows no host paths to a jar; name them in the client's ro= or rw=")
        return self._wrap_session(JarSandboxSession(state, self._policy, self._keys))

    async def create(
        self,
        *,
        snapshot: Union[SnapshotSpec, SnapshotBase, None] = None,
        manifest: Optional[Manifest] = None,
        options: Optional[JarSandboxClientOptions] = None,
    ) -> SandboxSession:
        """A session; its jar opens with start()."""
        manifest = self._validate_manifest_for_create(manifest if manifest is not None else Manifest())
        if manifest.root == _ROOT and self._workdir is not None:
            manifest = manifest.model_copy(update={"root": self._workdir}, deep=True)
        number = uuid.uuid4()
        state = JarSandboxSessionState(
            session_id=number,
            manifest=manifest,
            snapshot=resolve_snapshot(snapshot, str(number)),
            exposed_ports=options.exposed_ports if options is not None else (),
        )
        return self._session(state)

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """A session with the jar that it had, if that is still open in this process; else with a new one and its snapshot."""
        if not isinstance(state, JarSandboxSessionState):
            raise TypeError("JarSandboxClient resumes its own sessions only")
        state.assert_path_grants_rebound()
        return self._session(state)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Close the session's jar."""
        await session._inner.shutdown()
        return session

    def deserialize_session_state(self, payload: Dict[str, object]) -> SandboxSessionState:
        """What serialize_session_state() made."""
        return self._deserialize_session_state_payload(payload, JarSandboxSessionState)


class JarShell:
    """An executor for ShellTool: each command of a call runs in the jar, one after the other."""

    def __init__(self, jar: Jar) -> None:
        self.jar = jar

    async def __call__(self, request: ShellCommandRequest) -> ShellResult:
        """Run the commands. A timeout ends the call, as the model was told it does."""
        action = request.data.action
        options: Dict[str, Any] = {} if action.timeout_ms is None else {"timeout": action.timeout_ms / 1000}
        output: List[ShellCommandOutput] = []
        for command in action.commands:
            result = await self.jar.run_async(command, shell=True, detach=True, **options)
            is_late = result.outcome == "timeout"
            outcome = ShellCallOutcome("timeout") if is_late else ShellCallOutcome("exit", result.shell_status)
            stderr = result.stderr + note(result)
            output.append(ShellCommandOutput(result.stdout, stderr, outcome, command))
            if is_late:
                break
        return ShellResult(output, max_output_length=action.max_output_length)
