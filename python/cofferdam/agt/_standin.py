"""Types with the names, fields and defaults of the toolkit's, for where it is not installed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any


class SessionStatus(str, Enum):
    """What becomes of a session."""

    PROVISIONING = "provisioning"
    READY = "ready"
    EXECUTING = "executing"
    DESTROYING = "destroying"
    DESTROYED = "destroyed"
    FAILED = "failed"


class ExecutionStatus(str, Enum):
    """What becomes of an execution."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class IsolationRuntime(str, Enum):
    """What isolates a session, by the names of container runtimes."""

    RUNC = "runc"
    GVISOR = "runsc"
    KATA = "kata-runtime"
    AUTO = "auto"


@dataclass
class SandboxConfig:
    """What a session is to be, where its policy does not say it."""

    timeout_seconds: float = 60.0
    memory_mb: int = 512
    cpu_limit: float = 1.0
    network_enabled: bool = False
    read_only_fs: bool = True
    env_vars: dict[str, str] = field(default_factory=dict)
    input_dir: str | None = None
    output_dir: str | None = None
    runtime: str | None = None
    output_max_bytes: int = 1_048_576
    ring: Any = None


@dataclass
class SandboxResult:
    """What came of a command."""

    success: bool
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    duration_seconds: float = 0.0
    killed: bool = False
    kill_reason: str = ""


@dataclass
class SessionHandle:
    """A session by its two names."""

    agent_id: str
    session_id: str
    status: SessionStatus = SessionStatus.READY


@dataclass
class ExecutionHandle:
    """An execution and what came of it."""

    execution_id: str
    agent_id: str
    session_id: str
    status: ExecutionStatus = ExecutionStatus.COMPLETED
    result: SandboxResult | None = None


@dataclass
class SandboxCheckpoint:
    """A saved state of a session."""

    agent_id: str
    name: str
    image_tag: str
    created_at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat())


class SandboxProvider(ABC):
    """What a back end of the toolkit offers."""

    @abstractmethod
    def create_session(
        self, agent_id: str, policy: Any | None = None, config: SandboxConfig | None = None
    ) -> SessionHandle:
        """Makes a session."""

    @abstractmethod
    def execute_code(
        self, agent_id: str, session_id: str, code: str, *, context: dict[str, Any] | None = None
    ) -> ExecutionHandle:
        """Has the policy judge code, and runs it."""

    @abstractmethod
    def destroy_session(self, agent_id: str, session_id: str) -> None:
        """Ends a session."""

    @abstractmethod
    def is_available(self) -> bool:
        """Tells whether sessions can be made."""

    def run(self, agent_id: str, command: list[str], config: SandboxConfig | None = None) -> SandboxResult:
        """Runs a command as it is."""
        raise NotImplementedError(f"{type(self).__name__} runs no commands")

    def get_session_status(self, agent_id: str, session_id: str) -> SessionStatus:
        """What became of a session."""
        return SessionStatus.DESTROYED

    def get_execution_status(self, agent_id: str, session_id: str, execution_id: str) -> ExecutionHandle:
        """What became of an execution."""
        return ExecutionHandle(execution_id=execution_id, agent_id=agent_id, session_id=session_id)

    def cancel_execution(self, agent_id: str, session_id: str, execution_id: str) -> bool:
        """Ends an execution; False if there was none."""
        return False

    async def create_session_async(
        self, agent_id: str, policy: Any | None = None, config: SandboxConfig | None = None
    ) -> SessionHandle:
        """As create_session."""
        return await asyncio.to_thread(self.create_session, agent_id, policy, config)

    async def execute_code_async(
        self, agent_id: str, session_id: str, code: str, *, context: dict[str, Any] | None = None
    ) -> ExecutionHandle:
        """As execute_code."""
        return await asyncio.to_thread(self.execute_code, agent_id, session_id, code, context=context)

    async def destroy_session_async(self, agent_id: str, session_id: str) -> None:
        """As destroy_session."""
        await asyncio.to_thread(self.destroy_session, agent_id, session_id)

    async def cancel_execution_async(self, agent_id: str, session_id: str, execution_id: str) -> bool:
        """As cancel_execution."""
        return await asyncio.to_thread(self.cancel_execution, agent_id, session_id, execution_id)
