# SPDX-License-Identifier: Apache-2.0
"""LangChain: ShellToolMiddleware with its shell in a jar.

    ShellToolMiddleware(workspace_root="project", execution_policy=JarExecutionPolicy(options={"memory": "1G"}))
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

from ._common import command_line, missing

try:
    from langchain.agents.middleware.shell_tool import BaseExecutionPolicy
except ImportError as error:
    raise missing(__name__, "langchain>=1.4", error) from error


@dataclass
class JarExecutionPolicy(BaseExecutionPolicy):  # type: ignore[misc]
    """Runs the middleware's shell in a jar whose work directory is the workspace.

    `options` are policy keys (memory, ro, net ...). The shell sees the variables that the middleware was given, and of the
    host's only those without secrets. The limits of single commands are those of the base class.
    """

    options: Mapping[str, Any] = field(default_factory=dict)

    def spawn(self, *, workspace: Path, env: Mapping[str, str], command: Sequence[str]) -> subprocess.Popen[str]:
        """Start the shell. Values of variables are not in the command line, where every user could read them."""
        options = {"workdir": workspace, **self.options}
        options["pass_env"] = [*options.get("pass_env", ()), *env]
        return subprocess.Popen(
            command_line(command, **options),
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            bufsize=1,
            start_new_session=True,
        )
