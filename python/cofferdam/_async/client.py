"""The client of /v1."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeAlias
from urllib.parse import quote

from .. import _find, _given, _policy
from .._compat import async_blocking, async_unless_cancelled
from .._decode import decode
from .._models import (
    Approval,
    ApprovalEvent,
    CallResult,
    NamedPolicy,
    Plan,
    Refusal,
    SandboxEvent,
    SandboxInfo,
    Snapshot,
    Suggestion,
    Template,
    Version,
)
from .._policy import PolicyLike
from ..errors import APIError, CofferdamError, PlanFailed
from .sandbox import AsyncSandbox, lifetime
from .transport import AsyncTransport, Query

_PLAN_SECONDS = 600

_MOUNTS = '{"source": "/a", "destination": "/b"}'
_TOOLS = '{"name": "lookup", "endpoint": "http://127.0.0.1:8000/lookup", "secret": "..."}'


class AsyncClient:
    """A client of one daemon: the one that is named, else $COFFERDAM_HOST's, else this user's own.

    The user's own is started where none runs, and ends by itself when it is idle.
    """

    def __init__(self, host: str | None = None, *, token: str | None = None, ca: str | None = None) -> None:
        self.transport = AsyncTransport(_find.address(host, token, ca))
        self.sandboxes = AsyncSandboxes(self)
        self.policies = AsyncPolicies(self.transport)
        self.approvals = AsyncApprovals(self.transport)
        self.audit = AsyncAudit(self.transport)
        self.templates = AsyncTemplates(self.transport)
        self.snapshots = AsyncSnapshots(self.transport)
        self.runs = AsyncRuns(self.transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends all connections; sandboxes go on."""
        await self.transport.aclose()

    async def version(self) -> Version:
        """Who the daemon is."""
        return decode(Version, await self.transport.call("GET", "/v1/version"))

    async def events(self, *, sandbox: str | None = None, after: int = 0) -> AsyncIterator[SandboxEvent]:
        """What happens to sandboxes, from after an event's number on, without an end."""
        async for one in self.transport.lines("/v1/events", query={"sandbox": sandbox, "after": after}):
            yield decode(SandboxEvent, one)

    async def call_code(
        self,
        code: str,
        *,
        policy: PolicyLike | None = None,
        policy_name: str | None = None,
        language: str = "",
        timeout: float | None = None,
        memory_mb: int | None = None,
        run: str | None = None,
        task: str | None = None,
    ) -> CallResult:
        """Runs code without a sandbox, and without files, network and processes.

        ``timeout`` is in seconds, and of the time that it computes; both bounds lie within the
        policy's, which is what holds where they are not given, up to 10 seconds and 64 MiB.
        """
        body: dict[str, Any] = {"code": code, "language": language, "policy": _policy.request(policy, policy_name)}
        given = {
            "timeout_ms": None if timeout is None else max(1, round(timeout * 1000)),
            "memory_mb": memory_mb,
            "run": run,
            "task": task,
        }
        body |= {k: v for k, v in given.items() if v}
        return decode(CallResult, await self.transport.call("POST", "/v1/calls", body=body))

    async def plan(
        self,
        command: Sequence[str],
        *,
        policy: PolicyLike | None = None,
        policy_name: str | None = None,
        template: str | None = None,
    ) -> Plan:
        """What an install command would bring, and what the policy says of each part.

        The program ``cofferdam plan`` does it, which knows how each client resolves.
        """
        if policy_name:
            policy = (await self.policies.get(policy_name)).document.decode() + "\n"
        return await async_blocking(lambda: _planned(self.transport.address, list(command), policy, template))


def _planned(address: _find.Address, command: list[str], policy: PolicyLike | None, template: str | None) -> Plan:
    with tempfile.TemporaryDirectory(prefix="cofferdam-plan-") as folder:
        argv = [_find.binary(), "plan", "--json"]
        if policy is not None:
            path, document = _policy.text_of(policy)
            if not path:  # a file's own name goes on: whether an agent could have written it is asked of that
                path = os.path.join(folder, "policy.yaml")
                with open(path, "wb") as f:
                    f.write(document)
            argv += ["--policy", path]
        if template:
            argv += ["--template", template]
        try:
            done = subprocess.run(
                [*argv, "--", *command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=address.environment(),
                timeout=_PLAN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PlanFailed(f"the plan took more than {_PLAN_SECONDS} seconds") from None
    # 3 is a plan that would not go through as it is.
    if done.returncode not in (0, 3):
        raise PlanFailed(
            done.stderr.decode(errors="replace").strip() or f"cofferdam plan ended with code {done.returncode}"
        )
    try:
        return decode(Plan, json.loads(done.stdout))
    except ValueError:
        raise PlanFailed("cofferdam plan printed no plan") from None


SandboxList: TypeAlias = list[SandboxInfo]


class AsyncSandboxes:
    """The sandboxes that the caller sees."""

    def __init__(self, client: AsyncClient) -> None:
        self._client, self._transport = client, client.transport

    async def create(self, policy: PolicyLike | None = None, **options: Any) -> AsyncSandbox:
        """Makes a sandbox that stays, though this program ends; the options are those of :class:`AsyncSandbox`."""
        return await AsyncSandbox(policy, client=self._client, **{"keep": True, **options}).start()

    async def connect(self, id: str) -> AsyncSandbox:
        """One that is there."""
        return AsyncSandbox.of(self._client, await self.get(id))

    async def make(self, **asked: Any) -> SandboxInfo:
        """The request that makes a sandbox, by the options of :class:`AsyncSandbox`."""
        life = lifetime(asked.get("ttl"), asked.get("idle"), keep=bool(asked.get("keep")))
        body: dict[str, Any] = {
            "policy": _policy.request(asked.get("policy"), asked.get("policy_name")),
            "linger": True,
        }
        given = {
            "run": asked.get("run_id"),
            "task": asked.get("task"),
            "template": asked.get("template"),
            "isolation": asked.get("isolation"),
            "snapshot": asked.get("snapshot"),
            "env": _given.texts("env", asked.get("env")),
            "workdir": asked.get("cwd"),
            "mounts": _given.mappings("mounts", _MOUNTS, asked.get("mounts")),
            "labels": _given.texts("labels", asked.get("labels")),
            "tools": _given.mappings("tools", _TOOLS, asked.get("tools")),
        }
        body |= {k: v for k, v in given.items() if v}
        times = {
            "ttl_seconds": life.ttl_seconds,
            "idle_seconds": life.idle_seconds,
            "lease_seconds": life.lease_seconds,
        }
        if any(times.values()):
            body["lifetime"] = {name: seconds for name, seconds in times.items() if seconds}
        return await async_unless_cancelled(self._made(body), lambda info: self.remove(info.id))

    async def _made(self, body: dict[str, Any]) -> SandboxInfo:
        return decode(SandboxInfo, await self._transport.call("POST", "/v1/sandboxes", body=body))

    async def get(self, id: str) -> SandboxInfo:
        """One sandbox and its commands."""
        return decode(SandboxInfo, await self._transport.call("GET", f"/v1/sandboxes/{quote(id, safe='')}"))

    async def remove(self, id: str) -> None:
        """Ends all that runs in a sandbox and removes it."""
        await self._transport.call("DELETE", f"/v1/sandboxes/{quote(id, safe='')}", again=True)

    async def list(
        self,
        *,
        states: Sequence[str] = (),
        runs: Sequence[str] = (),
        templates: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
    ) -> SandboxList:
        """All that fit, the oldest first."""
        query: dict[str, Any] = {
            "state": [*states],
            "run": [*runs],
            "template": [*templates],
            "label": [f"{k}={v}" for k, v in (labels or {}).items()],
        }
        found: SandboxList = []
        while True:
            page = await self._transport.call("GET", "/v1/sandboxes", query=query)
            found += [decode(SandboxInfo, one) for one in page.get("sandboxes") or []]
            if not page.get("next"):
                return found
            query["after"] = page["next"]


PolicyList: TypeAlias = list[NamedPolicy]


class AsyncPolicies:
    """Policies that the daemon keeps under a name."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self, name: str) -> NamedPolicy:
        """One with its document."""
        return decode(NamedPolicy, await self._transport.call("GET", f"/v1/policies/{quote(name, safe='')}"))

    async def set(self, name: str, policy: PolicyLike, *, apply_to_live: bool = False) -> NamedPolicy:
        """Sets one. A wrong document is an error with its lines, and leaves the old one in force."""
        source, document = _policy.text_of(policy)
        body = {"document": base64.b64encode(document).decode(), "source": source, "apply_to_live": apply_to_live}
        return decode(NamedPolicy, await self._transport.call("PUT", f"/v1/policies/{quote(name, safe='')}", body=body))

    async def remove(self, name: str) -> None:
        """Removes one that no token may use."""
        await self._transport.call("DELETE", f"/v1/policies/{quote(name, safe='')}")

    async def list(self) -> PolicyList:
        """Those that the caller may use, without their documents."""
        return [decode(NamedPolicy, one) for one in await self._transport.call("GET", "/v1/policies") or []]


ApprovalList: TypeAlias = list[Approval]


def _approval(value: Any) -> Approval:
    made = decode(Approval, {**value, "raw": None})
    made.raw.update(value)
    return made


class AsyncApprovals:
    """The queue of what waits for a person. Only callers on the daemon's socket may answer."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self, id: str) -> Approval:
        """One request."""
        return _approval(await self._transport.call("GET", f"/v1/approvals/{quote(id, safe='')}"))

    async def approve(
        self,
        *requests: Approval | str,
        scope: str = "",
        reason: str = "",
        expires_seconds: int = 0,
        digests: Mapping[str, Sequence[str]] | None = None,
    ) -> ApprovalList:
        """Approves requests, all or none, as they were shown.

        Give the :class:`Approval` that was read, or its ``answer_id`` (``ID@REVISION``). One that
        has changed since raises :class:`Conflict`, and the message says what is new; a bare id
        is refused. ``digests`` binds to some of the files that were shown.
        """
        return await self._answer("approved", requests, scope, reason, expires_seconds, digests)

    async def deny(self, *requests: Approval | str, scope: str = "", reason: str = "") -> ApprovalList:
        """Denies requests, all or none; one that is named by its bare id as it is by now."""
        return await self._answer("denied", requests, scope, reason, 0, None)

    async def revoke(self, id: str, reason: str = "") -> Approval:
        """Ends an answer that holds."""
        return _approval(
            await self._transport.call("POST", f"/v1/approvals/{quote(id, safe='')}/revoke", body={"reason": reason})
        )

    async def watch(self, *, since: int | None = None) -> AsyncIterator[ApprovalEvent]:
        """What happens in the queue, without an end."""
        async for one in self._transport.lines("/v1/approvals/watch", query={"since": since}):
            event = decode(ApprovalEvent, one)
            event.request.raw.update(one.get("request") or {})
            yield event

    async def list(
        self, *, states: Sequence[str] = (), run: str | None = None, package: str | None = None
    ) -> ApprovalList:
        """Requests, the newest first."""
        query: dict[str, Any] = {"state": [*states], "run": run, "package": package}
        found: ApprovalList = []
        while True:
            page = await self._transport.call("GET", "/v1/approvals", query=query)
            found += [_approval(one) for one in page.get("approvals") or []]
            if not page.get("next"):
                return found
            query["before"] = page["next"]

    async def _answer(
        self,
        state: str,
        requests: Sequence[Approval | str],
        scope: str,
        reason: str,
        expires: int,
        digests: Mapping[str, Sequence[str]] | None,
    ) -> ApprovalList:
        body: dict[str, Any] = {
            "ids": [_answer_id(one, state) for one in requests],
            "state": state,
            "scope": scope,
            "reason": reason,
            "expires_seconds": expires,
        }
        if digests:
            body["digests"] = {k: [*v] for k, v in digests.items()}
        answer = await self._transport.call("POST", "/v1/approvals/answer", body=body)
        return [_approval(one) for one in answer.get("approvals") or []]


def _answer_id(request: Any, state: str) -> str:
    """By what the daemon knows what was looked at, or an error in the words of this package."""
    if isinstance(request, Approval):
        return request.answer_id
    word = "approve" if state == "approved" else "deny"
    if not isinstance(request, str):
        raise TypeError(
            f"{word}() takes requests one by one, each an Approval or its answer_id, not a {type(request).__name__};"
            f" write {word}(*requests) for a list"
        )
    if state == "approved" and "@" not in request:
        raise ValueError(
            f"{request!r} does not say what was looked at: give approve() the Approval that approvals.get() or"
            " approvals.list() returned, or its answer_id (ID@REVISION)"
        )
    return request


class AsyncAudit:
    """The log's records, each as the JSON object that it is."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def records(
        self,
        *,
        run: str | None = None,
        sandbox: str | None = None,
        kinds: Sequence[str] = (),
        outcomes: Sequence[str] = (),
        first: int = 0,
    ) -> AsyncIterator[dict[str, Any]]:
        """Records, the oldest first."""
        query: Query = {"run": run, "sandbox": sandbox, "kind": [*kinds], "outcome": [*outcomes], "from": first}
        async for one in self._transport.lines("/v1/audit/records", query=query):
            yield one

    async def query(self, **question: Any) -> AsyncIterator[dict[str, Any]]:
        """Records that fit; the fields are those of AuditQuery in api/openapi.yaml."""
        async for one in self._transport.lines("/v1/audit/query", method="POST", body=question):
            yield one

    async def report(self, name: str, **question: Any) -> dict[str, Any]:
        """The answer to a question about the log, as in AuditReport."""
        answer = await self._transport.call("POST", f"/v1/audit/reports/{quote(name, safe='')}", body=question)
        return dict(answer)


TemplateList: TypeAlias = list[Template]


class AsyncTemplates:
    """Root filesystems that sandboxes begin with."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def build(self, name: str) -> Template:
        """Builds one; it takes minutes."""
        async for event in self._transport.lines(f"/v1/templates/{quote(name, safe='')}", method="POST"):
            if event.get("error"):
                raise APIError(int(event.get("status") or 500), str(event["error"]))
            if event.get("done"):
                return decode(Template, event["done"])
        raise CofferdamError(f"the daemon stopped telling of the template {name}")

    async def remove(self, name: str) -> None:
        """Removes one that no sandbox uses."""
        await self._transport.call("DELETE", f"/v1/templates/{quote(name, safe='')}")

    async def list(self) -> TemplateList:
        """Those that are built."""
        return [decode(Template, one) for one in await self._transport.call("GET", "/v1/templates") or []]


SnapshotList: TypeAlias = list[Snapshot]


class AsyncSnapshots:
    """Copies of sandboxes, which others can be made from."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self, ref: str) -> Snapshot:
        """One by id or name."""
        return decode(Snapshot, await self._transport.call("GET", f"/v1/snapshots/{quote(ref, safe='')}"))

    async def remove(self, ref: str) -> None:
        """Removes one by id or name."""
        await self._transport.call("DELETE", f"/v1/snapshots/{quote(ref, safe='')}")

    async def list(self) -> SnapshotList:
        """Those that the caller sees."""
        return [decode(Snapshot, one) for one in await self._transport.call("GET", "/v1/snapshots") or []]


class AsyncRuns:
    """What became of the packages of runs."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def summary(self, run: str) -> dict[str, Any]:
        """A run's summary, as RunSummary in api/openapi.yaml."""
        return dict(await self._transport.call("GET", f"/v1/runs/{quote(run, safe='')}/summary"))

    async def refusals(self, run: str) -> list[Refusal]:
        """What a run was refused, and why."""
        answer = await self._transport.call("GET", "/v1/refusals", query={"run": run})
        return [decode(Refusal, one) for one in answer.get("refusals") or []]

    async def plan(self, run: str) -> Plan:
        """The last plan of a run."""
        return decode(Plan, await self._transport.call("GET", f"/v1/runs/{quote(run, safe='')}/plan"))

    async def suggest(self, run: str) -> Suggestion:
        """The run's policy, and what it would be if it let in what the run asked for."""
        return decode(Suggestion, await self._transport.call("GET", f"/v1/runs/{quote(run, safe='')}/suggest"))
