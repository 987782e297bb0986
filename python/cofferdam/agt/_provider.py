"""The toolkit's SandboxProvider over Cofferdam's sandboxes."""

from __future__ import annotations

import atexit
import logging
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from .. import _policy
from .._sync.client import Client
from .._sync.sandbox import Sandbox
from ..errors import CofferdamError, InvalidRequest, NotFound, Unavailable
from . import _calls, _checkpoints, _mounts, _translate
from ._document import read
from ._gate import Gate
from ._offer import Functions
from ._session import Session
from ._tools import CLIENT, ToolError
from ._translate import WORKSPACE
from ._twins import Twins
from ._types import (
    ExecutionHandle,
    ExecutionStatus,
    IsolationRuntime,
    SandboxCheckpoint,
    SandboxConfig,
    SandboxProvider,
    SandboxResult,
    SessionHandle,
    SessionStatus,
    enforce_no_subprocess_execution,
)

logger = logging.getLogger("cofferdam.agt")


class CofferdamSandboxProvider(Twins, SandboxProvider):
    """Sessions in sandboxes that have no network but what the policy lists.

    ``isolation`` is one of the names in docs/quickstart-python.md (``gvisor``, ``runc``,
    ``hardware``, ... and the toolkit's ``runsc`` and ``kata-runtime``); a session's
    ``config.runtime`` goes before it. With ``wasm`` a session has no sandbox: it runs
    JavaScript, and nothing lasts from one execution to the next. ``tools`` are functions of this process that code may
    call whose policy lists them in ``tool_allowlist``. ``extra`` are keys of a policy of ours,
    such as ``allowed_packages``, that every session gets. ``host`` and ``token`` are a daemon's
    on the network; without them it is this user's own, which is started where none runs.
    """

    def __init__(
        self,
        image: str | None = None,
        runtime: IsolationRuntime | str | None = None,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        *,
        isolation: str | None = None,
        template: str = "debian",
        extra: Mapping[str, Any] | None = None,
        tool_timeout: float = 30.0,
        idle_seconds: float = 3600.0,
        scan_code: bool = True,
        host: str | None = None,
        token: str | None = None,
        ca: str | None = None,
    ) -> None:
        if image is not None:
            logger.info("the image %s is not used: sessions have the template %s", image, template)
        self._tools = Functions(tools or {}, tool_timeout)
        self._isolation = _translate.isolation(isolation or runtime)
        self._template, self._extra = template, dict(extra or {})
        self._idle, self._scan = idle_seconds, scan_code
        self._client = Client(host, token=token, ca=ca)
        self._lock = threading.RLock()  # guards the two below
        self._sessions: dict[tuple[str, str], Session] = {}
        self._engine = ""
        self._reason = ""
        # Sessions end with this process, as far as it ends by itself; else by their idle time.
        self._close_at_exit = weakref.WeakMethod(self.close)
        atexit.register(_call, self._close_at_exit)

    # What there is.

    def is_available(self) -> bool:
        """Tells whether sessions can be made; ``unavailable_reason`` says why not."""
        try:
            self._client.version()
            there = [t.name for t in self._client.templates.list()]
        except CofferdamError as e:
            self._reason = str(e)
            return False
        if self._isolation != _calls.ISOLATION and self._template not in there:
            self._reason = f"the template {self._template} is not built: cofferdam template build {self._template}"
            return False
        self._reason = ""
        return True

    @property
    def unavailable_reason(self) -> str:
        """Why the last ``is_available`` was false; "" if it was not."""
        return self._reason

    @property
    def runtime(self) -> IsolationRuntime:
        """What isolates sessions, by the toolkit's word: the last one's, or the one that was asked for."""
        return _translate.runtime_of(self._engine or self._isolation)

    @property
    def kernel_isolated(self) -> bool:
        """Code has a kernel of its own. False also while that is not known: before the first session."""
        return self.runtime in (IsolationRuntime.GVISOR, IsolationRuntime.KATA)

    # Sessions.

    def create_session(
        self, agent_id: str, policy: Any | None = None, config: SandboxConfig | None = None
    ) -> SessionHandle:
        """Makes a sandbox under the policy's document; what can't be enforced is a ValueError."""
        _checkpoints.check(agent_id, "agent_id")
        session_id = uuid.uuid4().hex[:8]
        session = self._make(agent_id, session_id, policy, config or SandboxConfig())
        with self._lock:
            self._sessions[(agent_id, session_id)] = session
        return SessionHandle(agent_id=agent_id, session_id=session_id, status=SessionStatus.READY)

    def _make(self, agent_id: str, session_id: str, policy: Any, config: Any, snapshot: str | None = None) -> Session:
        if getattr(config, "ring", None) is not None:
            raise ValueError(
                "config.ring is enforced by the toolkit's hypervisor, which is not asked here: leave it out"
            )
        document = None if policy is None else read(policy)
        made = _policy.Made(_translate.policy(document, config, self._extra), document.files if document else ())
        isolation = _translate.isolation(getattr(config, "runtime", None)) or self._isolation
        gate = None if document is None else Gate(document)
        limits = _translate.limits(document, config)
        if isolation == _calls.ISOLATION:
            _calls.check(document, config, self._tools.named(made["tool_allowlist"]))
            made["isolation"] = self._engine = isolation
            told = {"policy": made, "task": f"session {session_id} of agent {agent_id}"}
            return _calls.CallSession(
                agent_id, session_id, None, limits, told, document, gate, config, client=self._client
            )
        asked: dict[str, Any] = {
            "policy": made,
            "isolation": isolation or None,
            "template": self._template,
            "env": _mounts.environment(config.env_vars),
            "mounts": _mounts.mounts(
                document.input_dir if document and document.input_dir else config.input_dir,
                document.output_dir if document and document.output_dir else config.output_dir,
            ),
            "labels": {"agt-agent": agent_id, "agt-session": session_id},
            "task": f"session {session_id} of agent {agent_id}",
            "idle": self._idle,
        }
        before = self._tools.server.of(session_id)
        tools = self._tools.offer(agent_id, session_id, made["tool_allowlist"], gate)
        try:
            sandbox = self._sandbox(asked, tools, snapshot)
        except BaseException:
            self._tools.server.withdraw(session_id)
            if before is not None:
                self._tools.server.offer(session_id, before)
            raise
        with self._lock:
            self._engine = sandbox.info.engine
        return Session(agent_id, session_id, sandbox, limits, asked, document, gate, config)

    def _sandbox(self, asked: dict[str, Any], tools: list[dict[str, Any]], snapshot: str | None) -> Sandbox:
        options = dict(asked, tools=tools)
        if snapshot is not None:
            # The rest is the snapshot's.
            options |= {"snapshot": snapshot, "template": None, "isolation": None, "mounts": None}
        try:
            sandbox = Sandbox(client=self._client, **options).start()
        except ValueError:
            raise
        except PermissionError:
            raise
        except CofferdamError as e:
            raise RuntimeError(f"no sandbox can be made: {e}") from e
        try:
            sandbox.run(["chmod", "0777", WORKSPACE], check=True)
            if tools:
                sandbox.files.write(f"{WORKSPACE}/_tool_client.py", CLIENT)
        except BaseException:
            sandbox.kill()
            raise
        return sandbox

    def destroy_session(self, agent_id: str, session_id: str) -> None:
        """Ends a session; one that is not there is no error. One that can't be ended stays known."""
        session = self._sessions.get((agent_id, session_id))
        if session is None:
            return
        with session.turn:
            session.close()
            self._tools.server.withdraw(session_id)
            with self._lock:
                self._sessions.pop((agent_id, session_id), None)

    def close(self) -> None:
        """Ends all sessions."""
        for agent_id, session_id in list(self._sessions):
            try:
                self.destroy_session(agent_id, session_id)
            except CofferdamError as e:
                logger.warning(
                    "session %s of %s could not be ended, and ends when it is idle: %s", session_id, agent_id, e
                )
        self._tools.server.close()
        self._client.close()

    def __enter__(self) -> CofferdamSandboxProvider:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _session(self, agent_id: str, session_id: str) -> Session:
        session = self._sessions.get((agent_id, session_id))
        if session is None:
            raise RuntimeError(
                f"No active session for agent '{agent_id}' with session_id '{session_id}'; call create_session() first"
            )
        return session

    def get_session_status(self, agent_id: str, session_id: str) -> SessionStatus:
        """What the daemon says of the session's sandbox."""
        session = self._sessions.get((agent_id, session_id))
        if session is None:
            return SessionStatus.DESTROYED
        return session.state(self._client)

    def sandbox(self, agent_id: str, session_id: str) -> Sandbox:
        """The session's sandbox, for what the toolkit has no word for: files, installs, forks."""
        return self._session(agent_id, session_id).box()

    def tool_errors(self, agent_id: str, session_id: str) -> list[ToolError]:
        """The last calls of the session's tools that came to nothing, and why."""
        self._session(agent_id, session_id)
        offered = self._tools.server.of(session_id)
        return list(offered.errors) if offered else []

    # Executions.

    def execute_code(
        self, agent_id: str, session_id: str, code: str, *, context: dict[str, Any] | None = None
    ) -> ExecutionHandle:
        """Has the document judge Python code, and runs it. A denial is a PermissionError."""
        session = self._session(agent_id, session_id)
        self._judge(session, code, context)
        handle = session.begin()
        try:
            result = session.execute(["python3", "-c", code], session.limits, handle=handle)
        except BaseException:
            handle.status = ExecutionStatus.FAILED
            raise
        return session.end(handle, result)

    def _judge(self, session: Session, code: str, context: dict[str, Any] | None) -> None:
        if not isinstance(code, str):
            raise ValueError("code has to be text")
        if session.gate is not None:
            # Ours last: what a caller says must not stand for what is run.
            verdict = session.gate.judge(
                {**(context or {}), "agent_id": session.agent_id, "action": "execute", "code": code}
            )
            if not verdict.allowed:
                session.noted(code, verdict.rule or "defaults.action", verdict.reason)
                raise PermissionError(f"Policy denied: {verdict.reason}")
        if not self._scan:
            return
        try:
            enforce_no_subprocess_execution(code)
        except RecursionError:
            session.noted(code, "scan_code", "it is nested too deeply to be looked at")
            raise PermissionError("Sandbox code denied: it is nested too deeply to be looked at") from None
        except PermissionError as e:
            session.noted(code, "scan_code", str(e))
            raise

    def run(
        self, agent_id: str, command: list[str], config: SandboxConfig | None = None, *, session_id: str | None = None
    ) -> SandboxResult:
        """Runs a command as it is in a session, or in the agent's first one. It is not judged by rules on code."""
        found = [s for (a, i), s in list(self._sessions.items()) if a == agent_id and session_id in (None, i)]
        if not found:
            return SandboxResult(success=False, exit_code=-1, stderr=f"No container found for agent '{agent_id}'")
        session = found[0]
        limits, env = session.limits, None
        if config is not None:
            own = _translate.limits(None, config)
            limits = _translate.Limits(min(own.timeout_seconds, limits.timeout_seconds), own.output_max_bytes)
            env = _mounts.environment(config.env_vars)
        return session.execute(list(command), limits, env)

    def get_execution_status(self, agent_id: str, session_id: str, execution_id: str) -> ExecutionHandle:
        """An execution as it stands; one that nobody knows is a RuntimeError."""
        handle = self._session(agent_id, session_id).executions.get(execution_id)
        if handle is None:
            raise RuntimeError(f"the session '{session_id}' has no execution '{execution_id}'")
        return handle

    def running_executions(self, agent_id: str, session_id: str) -> list[str]:
        """The executions that run now, by their ids, which cancel_execution takes."""
        return list(self._session(agent_id, session_id).running)

    def cancel_execution(self, agent_id: str, session_id: str, execution_id: str) -> bool:
        """Ends an execution that runs; its handle is CANCELLED."""
        session = self._sessions.get((agent_id, session_id))
        return session is not None and session.cancel(execution_id)

    # Checkpoints.

    def save_state(self, agent_id: str, session_id: str, name: str) -> SandboxCheckpoint:
        """Saves the session whole: files, and what runs in it.

        An engine that can't copy memory saves files, without what lies in /tmp.
        """
        _checkpoints.check(name, "checkpoint name")
        session = self._session(agent_id, session_id)
        tag = _checkpoints.snapshot_name(agent_id, name)
        with session.turn:
            try:
                made = session.box().snapshot(tag)
            except (InvalidRequest, Unavailable) as e:
                logger.info("the memory of session %s is not saved: %s", session_id, e)
                made = session.box().snapshot(tag, contents="files")
        return SandboxCheckpoint(agent_id=agent_id, name=name, image_tag=tag, created_at=made.created.isoformat())

    def restore_state(self, agent_id: str, session_id: str, name: str, config: SandboxConfig | None = None) -> None:
        """Puts the session back to a checkpoint; if that fails, it stays as it is.

        It keeps its policy, and its configuration unless another is given.
        """
        _checkpoints.check(name, "checkpoint name")
        session = self._session(agent_id, session_id)
        tag = _checkpoints.snapshot_name(agent_id, name)
        with session.turn:
            before = session.box()
            # Asked of the document that the session began with, and recorded anew.
            policy = session.document.raw if session.document else None
            try:
                restored = self._make(agent_id, session_id, policy, config or session.config, snapshot=tag)
            except RuntimeError as e:
                raise RuntimeError(f"the checkpoint '{name}' of agent '{agent_id}' can't be restored: {e}") from e
            session.sandbox = restored.sandbox
            session.limits, session.config, session.asked = restored.limits, restored.config, restored.asked
            try:
                before.kill()
            except CofferdamError as e:  # the session is the restored one all the same
                logger.warning("the sandbox %s, which a checkpoint replaced, could not be ended: %s", before.id, e)

    def list_checkpoints(self, agent_id: str) -> list[SandboxCheckpoint]:
        """The agent's checkpoints, of this and of earlier providers."""
        found = []
        for one in self._client.snapshots.list():
            name = _checkpoints.name_of(agent_id, one.name)
            if name is not None:
                found.append(
                    SandboxCheckpoint(
                        agent_id=agent_id, name=name, image_tag=one.name, created_at=one.created.isoformat()
                    )
                )
        return found

    def delete_checkpoint(self, agent_id: str, name: str) -> None:
        """Removes a checkpoint; one that is not there is a RuntimeError."""
        _checkpoints.check(name, "checkpoint name")
        try:
            self._client.snapshots.remove(_checkpoints.snapshot_name(agent_id, name))
        except NotFound as e:
            raise RuntimeError(f"the agent '{agent_id}' has no checkpoint '{name}'") from e


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    bound = method()
    if bound is not None:
        bound()
