"""Asynchronous twins that the toolkit's base class has not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._types import SandboxCheckpoint, SandboxConfig, SandboxResult


class Twins:
    """Each is as the method without ``_async``, which is run in a thread."""

    if TYPE_CHECKING:
        run: Callable[..., SandboxResult]
        save_state: Callable[..., SandboxCheckpoint]
        restore_state: Callable[..., None]

    async def run_async(
        self, agent_id: str, command: list[str], config: SandboxConfig | None = None, *, session_id: str | None = None
    ) -> SandboxResult:
        """As run."""
        return await asyncio.to_thread(self.run, agent_id, command, config, session_id=session_id)

    async def save_state_async(self, agent_id: str, session_id: str, name: str) -> SandboxCheckpoint:
        """As save_state."""
        return await asyncio.to_thread(self.save_state, agent_id, session_id, name)

    async def restore_state_async(
        self, agent_id: str, session_id: str, name: str, config: SandboxConfig | None = None
    ) -> None:
        """As restore_state."""
        await asyncio.to_thread(self.restore_state, agent_id, session_id, name, config)
