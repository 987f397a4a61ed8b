# SPDX-License-Identifier: Apache-2.0
"""Base classes for objects that `with` or `async with` closes."""

from __future__ import annotations

import types
from typing import Any, Optional, Type, TypeVar

Block = TypeVar("Block", bound="Closing")
AsyncBlock = TypeVar("AsyncBlock", bound="AsyncClosing")


class Closing:
    """`with` closes it."""

    def _own(self) -> Any:
        """EngineError if it is closed, or belongs to another process."""
        raise NotImplementedError

    def close(self) -> Any:
        raise NotImplementedError

    def __enter__(self: Block) -> Block:
        self._own()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[types.TracebackType],
    ) -> None:
        self.close()


class AsyncClosing:
    """`async with` closes it."""

    def _own(self) -> Any:
        """EngineError if it is closed, or belongs to another process."""
        raise NotImplementedError

    async def _close_async(self) -> None:
        raise NotImplementedError

    async def __aenter__(self: AsyncBlock) -> AsyncBlock:
        self._own()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[types.TracebackType],
    ) -> None:
        await self._close_async()
