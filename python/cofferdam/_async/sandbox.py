"""A sandbox: commands, files, installs, copies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .. import _frames, _given, _html, _installs
from .._compat import AsyncBeside, async_unless_cancelled
from .._decode import decode
from .._models import Command, CommandResult, Lifetime, Plan, Refusal, SandboxInfo, Snapshot, Usage
from .._policy import PolicyLike
from ..errors import (
    ApprovalRequired,
    CofferdamError,
    CommandFailed,
    InstallAlarm,
    InstallFailed,
    InstallRefused,
    NotFound,
    Refused,
)
from .alarms import AsyncAlarmNews, warn
from .files import AsyncFiles
from .presence import present
from .process import MAX_OUTPUT, AsyncProcess, Output

if TYPE_CHECKING:
    from .client import AsyncClient

#: A command line as its words, or as one text for the shell.
CommandLine = str | Sequence[str]


def _argv(command: CommandLine) -> list[str]:
    if isinstance(command, str):
        return ["/bin/sh", "-c", command]
    return [os.fspath(word) for word in command]


class AsyncSandbox:
    """A sandbox, which is made when it is entered (or by ``start``) and removed at the end.

    ``policy`` is a document: a path, a text of several lines, or a mapping; ``policy_name`` one
    that the daemon keeps. Without either no package may be installed and no host reached.

    It ends soon after this program, however that ends, unless it was made with ``keep`` (or by
    ``client.sandboxes.create``): nobody could use it any more.
    """

    def __init__(
        self,
        policy: PolicyLike | None = None,
        *,
        policy_name: str | None = None,
        template: str | None = None,
        isolation: str | None = None,
        snapshot: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        mounts: Sequence[Mapping[str, Any]] | None = None,
        labels: Mapping[str, str] | None = None,
        run_id: str | None = None,
        task: str | None = None,
        ttl: float | timedelta | None = None,
        idle: float | timedelta | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        keep: bool = False,
        client: AsyncClient | None = None,
    ) -> None:
        self._asked: dict[str, Any] = {
            "policy": policy,
            "policy_name": policy_name,
            "template": template,
            "isolation": isolation,
            "snapshot": snapshot,
            "env": env,
            "cwd": cwd,
            "mounts": mounts,
            "labels": labels,
            "run_id": run_id,
            "task": task,
            "ttl": ttl,
            "idle": idle,
            "tools": tools,
            "keep": keep,
        }
        self._client, self._own_client = client, False
        self._info: SandboxInfo | None = None
        self._files: AsyncFiles | None = None
        self._presence: AsyncBeside | None = None
        self._alarms: AsyncAlarmNews | None = None

    @classmethod
    def of(
        cls, client: AsyncClient, info: SandboxInfo, policy: PolicyLike | None = None, policy_name: str | None = None
    ) -> AsyncSandbox:
        """One that is there. Leaving it does not remove it: ``kill`` does."""
        box = cls(policy, policy_name=policy_name, client=client)
        box._adopt(info)
        return box

    # Its life.

    async def start(self) -> AsyncSandbox:
        """Makes the sandbox; returns when commands can be started in it."""
        if self._info is not None:
            return self
        if self._client is None:
            from .client import AsyncClient

            self._client, self._own_client = AsyncClient(), True
        try:
            self._adopt(await self._client.sandboxes.make(**self._asked))
            self._stay()
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aenter__(self) -> AsyncSandbox:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()

    async def kill(self) -> None:
        """Ends all that runs in it and removes it; one that is gone is no error."""
        presence, self._presence = self._presence, None
        if presence is not None:
            await presence.stop()
        try:
            if self._info is not None:
                await self.client.sandboxes.remove(self.id)
        except NotFound:
            pass
        finally:
            await self._leave()

    async def _leave(self) -> None:
        if self._own_client and self._client is not None:
            await self._client.aclose()
            self._client, self._own_client = None, False

    def _adopt(self, info: SandboxInfo) -> None:
        self._info = info
        self._files = AsyncFiles(self.client.transport, info.id)
        self._alarms = AsyncAlarmNews(self.client.transport, info.id)

    def _stay(self) -> None:
        """Is there for the daemon as long as this program is, so that the sandbox's lease goes on."""
        lease = 0 if self._info is None else self._info.lifetime.lease_seconds
        if lease and (self._presence is None or self._presence.ended):
            self._presence = AsyncBeside(present(self.client.transport, self._path("/holds")))

    @property
    def client(self) -> AsyncClient:
        """The daemon's client."""
        if self._client is None:
            raise CofferdamError("the sandbox is not there: enter it with `with`, or start it")
        return self._client

    @property
    def info(self) -> SandboxInfo:
        """What was told of it when it was made, or by the last ``refresh``."""
        if self._info is None:
            raise CofferdamError("the sandbox is not there: enter it with `with`, or start it")
        return self._info

    @property
    def id(self) -> str:
        """Its id."""
        return self.info.id

    @property
    def run_id(self) -> str:
        """The run that it belongs to, in the record."""
        return self.info.run

    @property
    def files(self) -> AsyncFiles:
        """Its files."""
        if self._files is None:
            raise CofferdamError("the sandbox is not there: enter it with `with`, or start it")
        return self._files

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._info.id if self._info else 'not made'}>"

    def _repr_html_(self) -> str:
        return self._info._repr_html_() if self._info else _html.table("Sandbox", [("state", "not made")])

    async def refresh(self) -> SandboxInfo:
        """What the daemon says of it now."""
        self._info = await self.client.sandboxes.get(self.id)
        return self._info

    async def usage(self) -> Usage:
        """What it has and uses."""
        return decode(Usage, await self.client.transport.call("GET", self._path("/usage")))

    async def set_lifetime(self, *, ttl: float = 0, idle: float = 0, at_end: str = "destroy") -> SandboxInfo:
        """Says anew when it ends by itself, from now on, in seconds; 0 is no end."""
        # The lease stays: it is no end that somebody has set.
        lease = self.info.lifetime.lease_seconds
        body = {"ttl_seconds": int(ttl), "idle_seconds": int(idle), "at_end": at_end, "lease_seconds": lease}
        path = self._path("/lifetime")
        self._info = decode(SandboxInfo, await self.client.transport.call("PUT", path, body=body, again=True))
        return self._info

    async def pause(self) -> SandboxInfo:
        """Writes it to disk and frees its memory."""
        self._info = decode(SandboxInfo, await self.client.transport.call("POST", self._path("/pause")))
        return self._info

    async def resume(self) -> SandboxInfo:
        """Lets it go on."""
        self._info = decode(SandboxInfo, await self.client.transport.call("POST", self._path("/resume")))
        return self._info

    def _path(self, rest: str = "") -> str:
        return f"/v1/sandboxes/{quote(self.id, safe='')}{rest}"

    # Commands.

    async def spawn(
        self,
        command: CommandLine,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | int | None = None,
        timeout: float | None = None,
        stdin: bool = False,
    ) -> AsyncProcess:
        """Starts a command. A refusal by the policy's rules is :class:`Refused`.

        Alarms that come until it ends are in the result of ``wait``, and are logged as warnings.
        """
        if self._presence is not None:
            self._stay()  # where it has ended, as with the event loop that began it
        body: dict[str, Any] = {"argv": _argv(command)}
        given = {
            "env": _given.texts("env", env),
            "dir": cwd,
            "user": None if user is None else str(user),
            "stdin": stdin,
            "timeout_ms": None if timeout is None else max(1, round(timeout * 1000)),
        }
        body |= {k: v for k, v in given.items() if v}
        if self._alarms is not None:
            await self._alarms.watch()
        return await async_unless_cancelled(self._begin(body), lambda process: process.kill())

    async def _begin(self, body: dict[str, Any]) -> AsyncProcess:
        started = decode(Command, await self.client.transport.call("POST", self._path("/commands"), body=body))
        return AsyncProcess(self.client.transport, self.id, started.id, started.argv, started.started, self._alarms)

    async def refuse(self, command: CommandLine, *, rule: str, reason: str) -> Refused:
        """Has the log say that rules of your own refuse a command, and gives the refusal as recorded.

        It is not started. Where the policy's rules refuse it as well, the refusal is theirs.
        """
        body = {"argv": _argv(command), "refused": {"rule": rule, "reason": reason}}
        try:
            await self.client.transport.call("POST", self._path("/commands"), body=body)
        except Refused as e:
            return e
        raise CofferdamError("the daemon did not refuse what it was told to refuse")

    async def run(
        self,
        command: CommandLine,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | int | None = None,
        timeout: float | None = None,
        input: bytes | str | None = None,
        on_stdout: Output | None = None,
        on_stderr: Output | None = None,
        max_output: int = MAX_OUTPUT,
        check: bool = False,
    ) -> CommandResult:
        """Runs a command to its end.

        The callbacks get text as it comes. ``timeout`` is in seconds and can only shorten the
        policy's; what runs out of it is killed, and ``timed_out`` says so. ``user`` is ``root``
        or a number; the default is the sandbox's own. With ``check`` an end other than 0 raises
        :class:`CommandFailed`. Alarms that came meanwhile are in the result's ``alarms``, and are
        logged as warnings, however the command ended.
        """
        result = await self._follow(
            command,
            env=env,
            cwd=cwd,
            user=user,
            timeout=timeout,
            input=input,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            max_output=max_output,
        )
        warn(result.alarms)
        if check and not result.ok:
            raise CommandFailed(_argv(command), result)
        return result

    async def _follow(
        self,
        command: CommandLine,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | int | None = None,
        timeout: float | None = None,
        input: bytes | str | None = None,
        on_stdout: Output | None = None,
        on_stderr: Output | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> CommandResult:
        """Runs a command to its end, and warns of no alarms that came meanwhile: they are in the result."""
        data = None if input is None else _frames.octets(input)
        process = await self.spawn(command, env=env, cwd=cwd, user=user, timeout=timeout, stdin=data is not None)
        process.warns = False
        try:
            return await process.wait(input=data, on_stdout=on_stdout, on_stderr=on_stderr, max_output=max_output)
        except BaseException as e:
            await process.abandon(e)
            raise

    # Packages.

    async def install(
        self,
        *packages: str,
        ecosystem: str = "python",
        cwd: str | None = None,
        user: str | int | None = None,
        timeout: float | None = None,
        on_stdout: Output | None = None,
        on_stderr: Output | None = None,
    ) -> CommandResult:
        """Installs packages with the ecosystem's own client (pip, npm, go).

        What the policy refuses raises :class:`InstallRefused`; what a person has to approve
        first, :class:`ApprovalRequired`; what fails by itself, :class:`InstallFailed`. An alarm
        raises :class:`InstallAlarm`, though the client has ended well.
        """
        argv = _installs.command(packages, ecosystem)
        # What is refused again is counted under the first refusal's id.
        before = {r.request_id: r.count for r in await self.refusals()}
        result = await self._follow(argv, cwd=cwd, user=user, timeout=timeout, on_stdout=on_stdout, on_stderr=on_stderr)
        refused = [r for r in await self.refusals() if r.count > before.get(r.request_id, 0)]
        if any(r.alarm for r in refused):
            raise InstallAlarm(argv, result, sorted(refused, key=lambda r: not r.alarm))
        warn(result.alarms)
        if result.ok:
            return result
        if not refused:
            raise InstallFailed(argv, result)
        if any(r.approval for r in refused):
            raise ApprovalRequired(argv, result, refused, (await self.client.version()).console)
        raise InstallRefused(argv, result, refused)

    async def refusals(self) -> list[Refusal]:
        """What the sandbox was refused, and why."""
        try:
            answer = await self.client.transport.call(
                "GET", "/v1/refusals", query={"run": self.run_id, "sandbox": self.id}
            )
        except NotFound:
            return []
        return [decode(Refusal, one) for one in answer.get("refusals") or []]

    async def plan(self, *packages: str, ecosystem: str = "python") -> Plan:
        """What installing packages would bring under this sandbox's policy, and its verdicts; nothing is installed."""
        return await self.client.plan(
            _installs.command(packages, ecosystem, planned=True),
            policy=self._asked["policy"],
            policy_name=self._asked["policy_name"],
            template=self.info.template,
        )

    # Copies.

    async def fork(self, count: int = 1, *, ttl: float = 0) -> list[AsyncSandbox]:
        """Running copies of it, each a sandbox of its own. If one can't be made, none is left.

        Without a ttl they end as this one was told to, counted from now.
        """
        if count < 1:
            raise CofferdamError(f"count is {count}; it is how many copies are made, 1 or more")
        life = {"ttl_seconds": int(ttl), "lease_seconds": self.info.lifetime.lease_seconds}
        body = {"count": count, "lifetime": life}
        answer = await async_unless_cancelled(
            self.client.transport.call("POST", self._path("/fork"), body=body), self._unfork
        )
        made: list[AsyncSandbox] = []
        problem: dict[str, Any] | None = None
        for one in answer.get("forks") or []:
            if one.get("sandbox"):
                info = decode(SandboxInfo, one["sandbox"])
                made.append(AsyncSandbox.of(self.client, info, self._asked["policy"], self._asked["policy_name"]))
                made[-1]._stay()
            else:
                problem = one.get("error") or {}
        if problem is not None:
            for box in made:
                await box.kill()
            raise CofferdamError(
                f"the sandbox can't be copied: {problem.get('detail') or problem.get('title') or 'no reason is given'}"
            )
        return made

    async def _unfork(self, answer: dict[str, Any]) -> None:
        """Removes the copies that nobody takes any more."""
        for one in answer.get("forks") or []:
            if one.get("sandbox"):
                await self.client.sandboxes.remove(decode(SandboxInfo, one["sandbox"]).id)

    async def snapshot(self, name: str | None = None, *, contents: str = "memory") -> Snapshot:
        """A copy of it that others can be made from; it goes on meanwhile."""
        body = {"contents": contents} | ({"name": name} if name else {})
        return await async_unless_cancelled(self._kept(body), lambda made: self.client.snapshots.remove(made.id))

    async def _kept(self, body: dict[str, Any]) -> Snapshot:
        return decode(Snapshot, await self.client.transport.call("POST", self._path("/snapshots"), body=body))


#: How long a sandbox goes on without the program that made it, in seconds, as that of ``cofferdam run``.
LEASE = 30


def lifetime(ttl: float | timedelta | None, idle: float | timedelta | None, *, keep: bool = False) -> Lifetime:
    """Times as the daemon takes them: whole seconds, rounded up."""

    def seconds(given: float | timedelta | None) -> int:
        if given is None:
            return 0
        exact = given.total_seconds() if isinstance(given, timedelta) else given
        if exact <= 0:
            raise CofferdamError(f"a time of {exact} seconds is none; leave it out for no end")
        return -int(-exact // 1)

    return Lifetime(ttl_seconds=seconds(ttl), idle_seconds=seconds(idle), lease_seconds=0 if keep else LEASE)
