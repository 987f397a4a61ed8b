# SPDX-License-Identifier: Apache-2.0
"""Deep Agents: a jar as the backend of an agent.

    with belljar.Jar(workdir="project") as jar:
        agent = create_deep_agent(model=model, backend=JarSandbox(jar))
"""

from __future__ import annotations

import errno
import os
import uuid
import warnings
from typing import Any, Dict, List, Optional, Tuple

from .._jar import Jar
from .._result import Result
from ._common import missing, note

try:
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox
except ImportError as error:
    raise missing(__name__, "deepagents>=0.7", error) from error

# Where the framework puts what is too long for the model's context.
_SET_ASIDE = ("/large_tool_results", "/conversation_history")
# What a model can understand and mend, in the framework's words.
_ERRORS = {
    errno.ENOENT: "file_not_found",
    errno.EISDIR: "is_directory",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.ENOTDIR: "invalid_path",
    errno.ELOOP: "invalid_path",
    errno.EINVAL: "invalid_path",
    errno.ENAMETOOLONG: "invalid_path",
}


def _words(error: Exception) -> str:
    return _ERRORS.get(getattr(error, "errno", None) or 0, str(error))


class JarSandbox(BaseSandbox):  # type: ignore[misc]
    """A jar that stays open as long as its owner wants; the agent's paths are paths in it."""

    def __init__(self, jar: Jar) -> None:
        self.jar = jar
        absent = [path for path in _SET_ASIDE if not jar.exists(path)]
        if absent:
            text = f"the jar has no {' and no '.join(absent)}, so long answers of tools stay in the model's context: open it with tmpfs={absent}"
            warnings.warn(text, stacklevel=2)
        self._id = f"belljar-{uuid.uuid4().hex}"

    @property
    def id(self) -> str:
        """A name of this sandbox."""
        return self._id

    @staticmethod
    def _options(timeout: Optional[int]) -> Dict[str, Any]:
        options: Dict[str, Any] = {"shell": True, "stderr_to_stdout": True, "detach": True}
        if timeout is not None:
            options["timeout"] = timeout or None
        return options

    @staticmethod
    def _response(result: Result) -> ExecuteResponse:
        return ExecuteResponse(output=result.stdout + note(result), exit_code=result.shell_status, truncated=result.truncated)

    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        """Run a shell command; 0 means no timeout, None the jar's own."""
        return self._response(self.jar.run(command, **self._options(timeout)))

    async def aexecute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        """The same for asyncio."""
        return self._response(await self.jar.run_async(command, **self._options(timeout)))

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[FileUploadResponse]:
        """Write files, with the directories above them."""
        return [self._upload(path, content) for path, content in files]

    def _upload(self, path: str, content: bytes) -> FileUploadResponse:
        if not path.startswith("/"):
            return FileUploadResponse(path=path, error="invalid_path")
        try:
            self.jar.write_file(path, content, parents=True)
        except (OSError, ValueError) as error:
            return FileUploadResponse(path=path, error=_words(error))
        return FileUploadResponse(path=path)

    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
        """Read files."""
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path=path, error="invalid_path")
        try:
            return FileDownloadResponse(path=path, content=self.jar.read_file(path))
        except (OSError, ValueError) as error:
            return FileDownloadResponse(path=path, error=_words(error))
