"""What can go wrong, as types.

Everything that this package raises of itself is a :class:`CofferdamError`. One that comes
from the daemon says in its text what a person can do; where a policy refused something,
``rule``, ``reason`` and ``request_id`` say which rule it was, why, and under which id it is
on record (``cofferdam why ID``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _html

if TYPE_CHECKING:
    from ._models import CommandResult, Refusal

# How many refusals the text of an error has.
_SHOWN = 10

# The end of a refused command's sentence, as the daemon writes it.
_RULE = re.compile(r"^(?P<reason>.*) \(rule (?P<rule>[^()\s]+), request (?P<request>[a-z0-9-]+)\)$", re.DOTALL)


class CofferdamError(Exception):
    """The base of all errors of this package."""


class DaemonNotFound(CofferdamError):
    """No daemon answers, and none could be started."""


class ConnectionLost(CofferdamError):
    """The connection to the daemon ended before the answer did."""


class ProtocolError(CofferdamError):
    """The daemon said what this version does not understand."""


class APIError(CofferdamError):
    """An answer of the daemon that is not a success; see the subclasses for the kinds."""

    def __init__(self, status: int, detail: str, title: str = "", retry_seconds: int = 0) -> None:
        super().__init__(detail or title or f"the daemon answered with the status {status}")
        self.status = status
        self.detail = detail
        self.title = title
        #: When the same may succeed, in seconds; 0: it is not known.
        self.retry_seconds = retry_seconds


class InvalidRequest(APIError, ValueError):
    """400: what was asked for can't be; the text says what to change."""


class Unauthorized(APIError):
    """401: the daemon knows no such token."""


class NotFound(APIError):
    """404: there is no such thing, or it is another's."""


class Conflict(APIError):
    """409: it is in the wrong state for that."""


class QuotaExceeded(APIError):
    """429: the caller has used up what it may have."""


class Unavailable(APIError):
    """503: the daemon can't do it, now or on this host."""


class Refused(APIError, PermissionError):
    """403: the policy, or the caller's token, does not allow it.

    ``rule`` and ``request_id`` are empty where it was no rule of a policy that refused.
    """

    def __init__(self, status: int, detail: str, title: str = "", retry_seconds: int = 0) -> None:
        super().__init__(status, detail, title, retry_seconds)
        found = _RULE.match(detail)
        self.reason: str = found["reason"] if found else detail
        self.rule: str = found["rule"] if found else ""
        self.request_id: str = found["request"] if found else ""

    def _repr_html_(self) -> str:
        return _html.table("Refused", [("reason", self.reason), ("rule", self.rule), ("request", self.request_id)])


class CommandFailed(CofferdamError):
    """A command with ``check=True`` did not end with 0; ``result`` has all of it."""

    def __init__(self, argv: Sequence[str], result: CommandResult) -> None:
        how = "ran out of its time" if result.timed_out else f"ended with code {result.exit_code}"
        last = (result.stderr.strip() or result.stdout.strip())[-2000:]
        super().__init__(f"{' '.join(argv)[:200]} {how}" + (f":\n{last}" if last else ""))
        self.argv = list(argv)
        self.result = result


class InstallFailed(CommandFailed):
    """The package client failed, and nothing was refused."""


class InstallRefused(CommandFailed):
    """An install in which the policy refused something.

    ``refusals`` has all of it; ``rule``, ``reason`` and ``request_id`` are the first one's.
    ``alarm`` tells that something of it was an alarm, and no refusal as any.
    """

    def __init__(self, argv: Sequence[str], result: CommandResult, refusals: Sequence[Refusal]) -> None:
        super().__init__(argv, result)
        self.refusals = list(refusals)
        self.alarm: bool = any(r.alarm for r in self.refusals)
        first = self.refusals[0]
        self.rule: str = first.rule
        self.reason: str = first.reason
        self.request_id: str = first.request_id
        #: Lines of a policy that would allow it; "" if none would.
        self.suggestion: str = first.suggest
        lines = [_sentence(r) for r in self.refusals[:_SHOWN]]
        if len(self.refusals) > _SHOWN:
            lines.append(f"and {len(self.refusals) - _SHOWN} more of {len(self.refusals)}")
        self.args = ("\n".join(lines),)

    def _repr_html_(self) -> str:
        rows = [
            ["ALARM" if r.alarm else "", _what(r), r.reason, r.rule, r.request_id, r.approval] for r in self.refusals
        ]
        return _html.grid("Refused", ["", "what", "reason", "rule", "request", "approval"], rows)


class InstallAlarm(InstallRefused):
    """An install in which something was not what it must be: other bytes than were promised, say.

    What was refused for that is first. The package client may have ended well, with another
    file or without one: see ``result``. Do not use what it has installed.
    """


class ApprovalRequired(InstallRefused):
    """An install that waits for a person, who has not answered in time."""

    def __init__(
        self, argv: Sequence[str], result: CommandResult, refusals: Sequence[Refusal], console: str = ""
    ) -> None:
        super().__init__(argv, result, refusals)
        waiting = next(r for r in self.refusals if r.approval)
        #: The request in the queue.
        self.approval_id: str = waiting.approval
        #: The page on which a person answers; "" where the daemon has no console.
        self.approve_url: str = f"{console.rstrip('/')}/approvals/{waiting.approval}" if console else ""
        #: What a person types on the daemon's host.
        self.approve_command: str = f"cofferdam approvals approve {waiting.approval}"
        self.args = (
            f"{self.args[0]}\na person approves it: {self.approve_url or self.approve_command}; then try again",
        )


class PlanFailed(CofferdamError):
    """No plan could be made."""


def _what(refusal: Refusal) -> str:
    p = refusal.package
    if p is not None and p.name:
        return " ".join(part for part in (p.ecosystem, p.name, p.version) if part)
    return refusal.name or refusal.what


def _sentence(refusal: Refusal) -> str:
    alarm = "ALARM: " if refusal.alarm else ""
    return f"{alarm}{_what(refusal)}: {refusal.reason} (rule {refusal.rule}, request {refusal.request_id})"


_KINDS: dict[int, type[APIError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Refused,
    404: NotFound,
    409: Conflict,
    413: InvalidRequest,
    429: QuotaExceeded,
    503: Unavailable,
}


def from_problem(status: int, problem: object) -> APIError:
    """The error of an answer; ``problem`` is its decoded body, whatever that is."""
    fields = problem if isinstance(problem, dict) else {}
    retry = fields.get("retry_seconds")
    return _KINDS.get(status, APIError)(
        status, str(fields.get("detail") or ""), str(fields.get("title") or ""), retry if isinstance(retry, int) else 0
    )
