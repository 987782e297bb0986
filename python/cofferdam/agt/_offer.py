"""What a session's sandbox may call of the provider's functions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ._gate import Gate
from ._tools import Offered, ToolServer, new_secret, schema_of

logger = logging.getLogger("cofferdam.agt")


class Functions:
    """The provider's functions, and the server through which sandboxes call them."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], timeout: float) -> None:
        if not 0 < timeout <= 3600:
            raise ValueError(f"tool_timeout is {timeout!r}; it has to be above 0, and at most an hour")
        self.server = ToolServer()
        self._functions = dict(functions)
        self._schemas = {name: schema_of(name, function) for name, function in self._functions.items()}
        self._timeout = timeout

    def named(self, listed: list[str]) -> list[str]:
        """The functions that a list names."""
        return [name for name in listed if name in self._functions]

    def offer(self, agent_id: str, session_id: str, listed: list[str], gate: Gate | None) -> list[dict[str, Any]]:
        """Offers a session what its list names, and gives the daemon's words for it."""
        names = self.named(listed)
        if not names:
            if self._functions:
                logger.warning(
                    "session %s of %s may call none of the provider's tools: its tool_allowlist names none",
                    session_id,
                    agent_id,
                )
            return []
        secret = new_secret()
        root = self.server.offer(
            session_id,
            Offered(
                secret=secret,
                functions={n: self._functions[n] for n in names},
                judge=_judge(agent_id, gate),
                timeout=self._timeout,
            ),
        )
        return [
            {
                "name": name,
                "description": (self._functions[name].__doc__ or "").strip()[:1000],
                "arguments": self._schemas[name],
                "endpoint": root + name,
                "secret": secret,
                "answers": "json",
                "timeout_ms": round(self._timeout * 1000) + 5000,
            }
            for name in names
        ]


def _judge(agent_id: str, gate: Gate | None) -> Callable[[str, dict[str, Any]], str | None]:
    def judge(name: str, arguments: dict[str, Any]) -> str | None:
        # Listed it is. A rule that matches decides; where none does, the list has.
        context = {f"arguments.{k}": v for k, v in arguments.items()}
        context |= {
            "agent_id": agent_id,
            "action": "tool_call",
            "tool_name": name,
            "tool": name,
            "arguments": arguments,
        }
        verdict = gate.matching(context) if gate else None
        return None if verdict is None or verdict.allowed else verdict.reason

    return judge
