# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI's conformance suite for workspaces, for pytest."""

from __future__ import annotations

from typing import Any, AsyncIterator, Awaitable, Callable, List

import pytest
from belljar.integrations.pydantic_ai import JarWorkspace
from pydantic_ai.workspaces import WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: Any) -> str:
    """Each test with both."""
    return str(request.param)


class TestJarWorkspace(WorkspaceBackendSuite):  # type: ignore[misc]
    """All of it: nothing is opted out of."""

    @pytest.fixture
    async def backend(self) -> AsyncIterator[JarWorkspace]:
        """A jar for one test."""
        async with JarWorkspace(workdir=None) as workspace:
            yield workspace

    @pytest.fixture
    async def fresh_backend(self) -> AsyncIterator[Callable[[], JarWorkspace]]:
        """Jars that nobody has used."""
        made: List[JarWorkspace] = []

        def make() -> JarWorkspace:
            made.append(JarWorkspace(workdir=None))
            return made[-1]

        yield make
        for workspace in made:
            await workspace.close()

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], JarWorkspace]:
        """By the ref."""
        return lambda ref: JarWorkspace(ref=ref)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[JarWorkspace], Awaitable[None]]:
        """By its owner."""
        return lambda workspace: workspace.close()
