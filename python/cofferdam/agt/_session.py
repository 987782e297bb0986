"""One session of an agent: its sandbox, its gate, its executions."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from .._models import CommandResult
from .._sync.client import Client
from .._sync.process import Process
from .._sync.sandbox import Sandbox
from ..errors import APIError, CofferdamError, NotFound, Refused
from ._document import Document
from ._gate import Gate
from ._translate import WORKSPACE, Limits
from ._types import ExecutionHandle, ExecutionStatus, SandboxResult, SessionStatus

logger = logging.getLogger("cofferdam.agt")

#: Whom code runs as: nobody, as in the toolkit's containers.
USER = 65534

_STATES = {
    "creating": SessionStatus.PROVISIONING,
    "running": SessionStatus.READY,
    "freezing": SessionStatus.READY,
    "frozen": SessionStatus.READY,
    "paused": SessionStatus.READY,
    "thawing": SessionStatus.READY,
    "destroying": SessionStatus.DESTROYING,
    "failed": SessionStatus.FAILED,
}

_KEPT = 1000  # executions of a session that are remembered
_KILL = 137  # the code of what was killed


@dataclass
class Session:
    """A session. ``turn`` is held while its sandbox is replaced."""

    agent_id: str
    session_id: str
    sandbox: Sandbox | None  # None: it has none, and its executions are calls
    limits: Limits
    asked: dict[str, Any]  # what the sandbox was made of, but for the snapshot
    document: Document | None = None
    gate: Gate | None = None
    config: Any = None
    turn: threading.RLock = field(default_factory=threading.RLock)
    executions: OrderedDict[str, ExecutionHandle] = field(default_factory=OrderedDict)
    running: dict[str, Process] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)  # guards the three above

    def box(self) -> Sandbox:
        """The sandbox; a RuntimeError where a session has none."""
        if self.sandbox is None:
            raise RuntimeError(f"the session '{self.session_id}' has no sandbox: its isolation is wasm")
        return self.sandbox

    def close(self) -> None:
        """Ends the sandbox."""
        self.box().kill()

    def state(self, client: Client) -> SessionStatus:
        """What the daemon says of the sandbox."""
        try:
            state = client.sandboxes.get(self.box().id).state
        except NotFound:
            return SessionStatus.DESTROYED
        if state == "running" and self.running:
            return SessionStatus.EXECUTING
        return _STATES.get(state, SessionStatus.DESTROYED)

    def noted(self, code: str, rule: str, reason: str) -> None:
        """Has the log of the daemon say what the gate refused. The denial stands whatever comes of that."""
        try:
            self.refuse(code, rule, reason)
        except (CofferdamError, ValueError) as e:
            logger.warning("a denial of session %s is not in the daemon's log: %s", self.session_id, e)

    def refuse(self, code: str, rule: str, reason: str) -> None:
        """Records a refusal of code."""
        with self.turn:
            sandbox = self.box()
        sandbox.refuse(["python3", "-c", code], rule=rule, reason=reason or "it is refused")

    def begin(self) -> ExecutionHandle:
        """A new execution, which has not begun."""
        handle = ExecutionHandle(
            execution_id=uuid.uuid4().hex[:8],
            agent_id=self.agent_id,
            session_id=self.session_id,
            status=ExecutionStatus.PENDING,
        )
        with self.lock:
            self.executions[handle.execution_id] = handle
            while len(self.executions) > _KEPT:
                self.executions.popitem(last=False)
        return handle

    def end(self, handle: ExecutionHandle, result: SandboxResult) -> ExecutionHandle:
        """The execution with what came of it."""
        with self.lock:
            status = ExecutionStatus.COMPLETED if result.success else ExecutionStatus.FAILED
            if handle.execution_id in self.cancelled:
                status = ExecutionStatus.CANCELLED
                self.cancelled.discard(handle.execution_id)
                result.success, result.killed, result.kill_reason = False, True, "cancelled"
            handle.status, handle.result = status, result
        return handle

    def cancel(self, execution_id: str) -> bool:
        """Ends an execution that runs."""
        with self.lock:
            process = self.running.get(execution_id)
            if process is None:
                return False
            self.cancelled.add(execution_id)
        try:
            process.kill()
        except CofferdamError as e:
            logger.warning("the execution %s could not be ended: %s", execution_id, e)
            with self.lock:
                self.cancelled.discard(execution_id)
            return False
        return True

    def execute(
        self,
        command: list[str],
        limits: Limits,
        env: dict[str, str] | None = None,
        handle: ExecutionHandle | None = None,
    ) -> SandboxResult:
        """Runs a command to its end, within the limits."""
        with self.turn:  # one that is being replaced is not used any more
            sandbox = self.box()
        began = time.monotonic()
        try:
            process = sandbox.spawn(
                command,
                cwd=WORKSPACE,
                user=USER,
                timeout=limits.timeout_seconds,
                env={"HOME": WORKSPACE, **(env or {})},
            )
        except Refused as e:
            raise PermissionError(f"Policy denied: {e.reason}") from e
        except APIError as e:
            if e.status != 400:
                raise RuntimeError(
                    f"No active session: the sandbox of '{self.session_id}' is gone or can't be used: {e}"
                ) from e
            return SandboxResult(success=False, exit_code=127, stderr=str(e), duration_seconds=time.monotonic() - began)
        try:
            if handle is not None:
                with self.lock:
                    handle.status = ExecutionStatus.RUNNING
                    self.running[handle.execution_id] = process
            process.asks = False  # first of all it is asked why it was killed: a sandbox that ends can't be asked long
            result = process.wait(max_output=limits.output_max_bytes)
        except BaseException as e:
            process.abandon(e)
            if isinstance(e, CofferdamError):
                raise RuntimeError(f"No active session: the sandbox of '{self.session_id}' was lost: {e}") from e
            raise
        finally:
            if handle is not None:
                with self.lock:
                    self.running.pop(handle.execution_id, None)
        made = self._told(result, limits, time.monotonic() - began)
        alarms = process.alarms()
        if alarms:  # the toolkit has no other place that an agent reads
            made.stderr = "\n".join([*filter(None, [made.stderr]), *(f"[cofferdam: {a}]" for a in alarms[:5])])
        return made

    def _told(self, result: CommandResult, limits: Limits, took: float) -> SandboxResult:
        made = SandboxResult(
            success=result.ok,
            exit_code=result.exit_code,
            stdout=result.stdout,
            stderr=result.stderr,
            duration_seconds=took,
        )
        if result.error and not made.stderr:
            made.stderr = result.error
        if result.timed_out:
            made.killed, made.kill_reason = True, f"timed out after {limits.timeout_seconds:g} seconds"
            if result.error:  # which says whether it has ended
                made.kill_reason += f"; {result.error}"
        elif result.signal == "KILL" or result.exit_code == _KILL:
            made.killed, made.kill_reason = True, self._why_killed()
        return made

    def _why_killed(self) -> str:
        try:
            if self.box().usage().memory_kills > 0:
                return "out of memory"
        except CofferdamError as e:
            return f"killed; the sandbox can't be asked why: {e}"
        return "killed"
