"""A session without a sandbox: each execution is a call of its own, and nothing lasts between them."""

from __future__ import annotations

import json
import logging
import re
import time
from dataclasses import dataclass
from typing import Any

from .. import _policy
from .._sync.client import Client
from ..errors import APIError, CofferdamError, Refused
from ._session import Session
from ._translate import Limits
from ._types import ExecutionHandle, ExecutionStatus, SandboxResult, SessionStatus

logger = logging.getLogger("cofferdam.agt")

#: The isolation by which a session is one of calls.
ISOLATION = "wasm"

#: What the engine of calls gives at most.
_MOST_SECONDS, _MOST_MEMORY_MB = 300.0, 255

_WHY_KILLED = {"time": "timed out after {seconds:g} seconds", "memory": "out of memory", "output": "too much output"}


def check(document: Any, config: Any, listed: list[str]) -> None:
    """What a call can't have is a ValueError; what stays closed is said."""
    for what, given in (
        ("input_dir and output_dir", config.input_dir or config.output_dir),
        ("sandbox_mounts", document is not None and (document.input_dir or document.output_dir)),
        ("env_vars", config.env_vars),
        ("network_enabled", config.network_enabled),
    ):
        if given:
            raise ValueError(f"isolation wasm has no files, variables or network: leave {what} out")
    if listed:
        logger.warning("the provider's tools can't be called under isolation wasm: %s", ", ".join(listed))


@dataclass
class CallSession(Session):
    """A session whose executions are calls of JavaScript. ``asked`` has the policy."""

    client: Client | None = None

    def close(self) -> None:
        """There is nothing to end."""

    def state(self, client: Client) -> SessionStatus:
        """Always the same: a call begins and ends by itself."""
        return SessionStatus.READY

    def cancel(self, execution_id: str) -> bool:
        """A call ends by itself, within its time."""
        return False

    def refuse(self, code: str, rule: str, reason: str) -> None:
        """Has the daemon refuse the code by a rule that says what the gate said: so it is recorded."""
        name = re.sub(r"[^A-Za-z0-9._-]", "-", rule)[:80] or "rule"
        made = {
            "name": name,
            "condition": {"field": "code", "operator": "matches", "value": r"\A"},
            "action": "deny",
            "message": reason[:500],
        }
        try:
            self._call(
                code, self.limits, _policy.Made({**self.asked["policy"], "rules": [made]}, self.asked["policy"].files)
            )
        except Refused:
            return
        raise CofferdamError("the daemon did not refuse what it was told to refuse")

    def _call(self, code: str, limits: Limits, policy: dict[str, Any]) -> Any:
        assert self.client is not None
        return self.client.call_code(
            code,
            language="javascript",
            policy=policy,
            timeout=min(limits.timeout_seconds, _MOST_SECONDS),
            memory_mb=min(policy["defaults"]["max_memory_mb"], _MOST_MEMORY_MB),
            task=self.asked["task"],
        )

    def execute(
        self,
        command: list[str],
        limits: Limits,
        env: dict[str, str] | None = None,
        handle: ExecutionHandle | None = None,
    ) -> SandboxResult:
        """Runs code, the last word of the command. Without a handle it is a command, which there is none of."""
        if handle is None:
            return SandboxResult(success=False, exit_code=-1, stderr="isolation wasm runs code, and no commands")
        handle.status = ExecutionStatus.RUNNING
        began = time.monotonic()
        try:
            done = self._call(command[-1], limits, self.asked["policy"])
        except Refused as e:
            raise PermissionError(f"Policy denied: {e.reason}") from e
        except APIError as e:
            raise RuntimeError(f"the code of session '{self.session_id}' can't be run: {e}") from e
        failure = done.failure or {}
        out, err = done.stdout, done.stderr
        if done.value is not None:
            out += json.dumps(done.value) + "\n"
        for part in ("message", "stack"):
            if failure.get(part):
                err += str(failure[part]).rstrip("\n") + "\n"
        made = SandboxResult(
            success=not failure,
            exit_code=1 if failure else 0,
            stdout=_cut(out, limits.output_max_bytes),
            stderr=_cut(err, limits.output_max_bytes),
            duration_seconds=time.monotonic() - began,
        )
        why = _WHY_KILLED.get(str(failure.get("kind")))
        if why is not None:
            made.killed, made.kill_reason = True, why.format(seconds=limits.timeout_seconds)
        return made


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
