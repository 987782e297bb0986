"""What ``/v1`` answers, as dataclasses with the same field names as api/openapi.yaml.

Texts in them may come from a sandbox, a publisher or an agent: they are data, and whoever
shows them escapes them. ``_repr_html_`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from . import _html


@dataclass(frozen=True)
class Version:
    """Who the daemon is."""

    version: str
    pid: int
    started: datetime
    state_dir: str
    background: bool = False
    url: str = ""
    ca_file: str = ""
    #: A file with that certificate and the system's CAs; "": there is none.
    ca_bundle: str = ""
    #: Below which api.DOMAIN and PORT-ID.DOMAIN are; "": there are no such names.
    domain: str = ""
    #: Where it listens for clients with a token, host:port; "": nowhere.
    listens: str = ""
    #: Where people answer requests; "": the daemon has no console.
    console: str = ""


@dataclass(frozen=True)
class Exit:
    """How a command ended."""

    code: int
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    signal: str = ""
    timed_out: bool = False
    claimed: bool = False
    error: str = ""


@dataclass(frozen=True)
class Command:
    """A command of a sandbox."""

    id: str
    argv: list[str]
    started: datetime
    exit: Exit | None = None
    terminal: bool = False
    output: int = 0


@dataclass(frozen=True)
class CommandResult:
    """What a command wrote and how it ended. ``exit_code`` is -1 where there is none."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    signal: str = ""
    error: str = ""
    #: Output was lost: more was written than was kept, or than ``max_output`` allows.
    truncated: bool = False
    #: The command's id, and the daemon's time when it began.
    command_id: str = ""
    started: datetime | None = None
    stdout_bytes: bytes = field(default=b"", repr=False)
    stderr_bytes: bytes = field(default=b"", repr=False)
    #: The sandbox's alarms that came since its last command: do not use what they are about.
    alarms: list[Alarm] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """It ended with 0, by itself."""
        return self.exit_code == 0 and not self.timed_out and not self.error


@dataclass(frozen=True)
class Hold:
    """Something that a sandbox waits for."""

    request: str
    package: str
    reason: str
    since: datetime
    frozen: bool
    tree: str = ""
    unfrozen: str = ""


@dataclass(frozen=True)
class Lifetime:
    """When a sandbox ends by itself; 0 is no end. ``at_end`` is destroy, pause or pause-files.

    ``lease_seconds`` is how long it goes on without the program that made it.
    """

    ttl_seconds: int = 0
    idle_seconds: int = 0
    at_end: str = ""
    lease_seconds: int = 0


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox, as the daemon tells of it."""

    id: str
    run: str
    state: str
    template: str
    engine: str
    policy_digest: str
    created: datetime
    task: str = ""
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    ended: str = ""
    commands: list[Command] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    linger: bool = False
    lifetime: Lifetime = field(default_factory=Lifetime)
    ends: datetime | None = None
    labels: dict[str, str] = field(default_factory=dict)
    token: str = ""
    snapshot: str = ""
    parent: str = ""
    policy_name: str = ""
    token_name: str = ""
    home: str = ""

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("run", self.run),
            ("owner", self.token_name or self.token),
            ("task", self.task),
            ("state", self.state),
            ("template", self.template),
            ("engine", self.engine),
            ("policy", self.policy_name or self.policy_digest),
            ("created", self.created),
            ("ends", self.ends),
            ("ended", self.ended),
            ("waits for", "; ".join(h.package for h in self.holds)),
            ("stays closed", "\n".join(self.notes)),
            ("not enforced here", ", ".join(self.missing)),
        ]
        return _html.table(f"Sandbox {self.id}", rows)


@dataclass(frozen=True)
class Usage:
    """What a sandbox has and uses."""

    time: datetime
    cpu_count: float
    cpu_nanos: int
    cpu_percent: float
    memory_bytes: int
    memory_limit: int
    disk_bytes: int
    disk_limit: int
    processes: int
    memory_kills: int


@dataclass(frozen=True)
class FileInfo:
    """A file of a sandbox. All of it is what the sandbox says."""

    path: str
    kind: str
    size: int
    mode: int
    owner: str
    group: str
    modified: datetime
    target: str = ""

    @property
    def is_dir(self) -> bool:
        """It is a directory."""
        return self.kind == "dir"


@dataclass(frozen=True)
class PackageRef:
    """A package, or a release of one."""

    ecosystem: str = ""
    name: str = ""
    version: str = ""


@dataclass(frozen=True)
class Refusal:
    """One thing that a sandbox was refused."""

    time: datetime
    run: str
    sandbox: str
    what: str
    outcome: str
    rule: str
    reason: str
    request_id: str
    count: int
    package: PackageRef | None = None
    file: str = ""
    name: str = ""
    #: Lines of a policy that would allow it.
    suggest: str = ""
    alarm: bool = False
    #: The request in the approval queue that it waits for.
    approval: str = ""


@dataclass(frozen=True)
class Alarm:
    """A record that somebody has to look at, such as a package that nobody was served."""

    seq: int
    time: datetime
    outcome: str
    rule: str
    reason: str
    count: int
    sandbox: str = ""
    package: PackageRef | None = None
    file: str = ""
    #: Of a host, or of what was found.
    name: str = ""

    def __str__(self) -> str:
        of = self.name
        if self.package is not None and self.package.name:
            of = " ".join(filter(None, [self.package.ecosystem, self.package.name, self.package.version]))
        text = f"ALARM: {of}: {self.reason}" if of else f"ALARM: {self.reason}"
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:1000])
        return f"{line} (do not use it)"


@dataclass(frozen=True)
class Alarms:
    """The alarms of a run since an answer before."""

    run: str
    next: str
    total: int = 0
    alarms: list[Alarm] = field(default_factory=list)


@dataclass(frozen=True)
class PlanRelease:
    """One release of a plan's tree."""

    ecosystem: str
    name: str
    version: str
    effect: str
    reason: str
    depth: int = 0
    wanted_by: list[str] = field(default_factory=list)
    file: str = ""
    kind: str = ""
    digest: str = ""
    size: int = 0
    published: str = ""
    scripts: bool = False
    would: str = ""
    rule: str = ""
    approval: str = ""
    group: str = ""
    suggest: str = ""


@dataclass(frozen=True)
class Plan:
    """What an install would bring, and what the policy says of each part."""

    run: str
    releases: list[PlanRelease]
    notes: list[str] = field(default_factory=list)

    @property
    def allowed(self) -> bool:
        """The install would go through as it is."""
        return all(r.effect == "allow" for r in self.releases)

    def _repr_html_(self) -> str:
        columns = ["package", "version", "kind", "size", "scripts", "verdict", "rule", "reason"]
        rows: list[list[object]] = [
            [
                "\u00a0" * 2 * r.depth + r.name,
                r.version,
                r.kind,
                r.size or "",
                "yes" if r.scripts else "",
                r.effect,
                r.rule,
                r.reason,
            ]
            for r in self.releases
        ]
        return _html.grid(f"Plan of run {self.run}", columns, rows)


@dataclass(frozen=True)
class Snapshot:
    """A copy of a sandbox that others can be made from."""

    id: str
    digest: str
    contents: str
    created: datetime
    bytes: int
    sandbox: str
    run: str
    template: str
    engine: str
    policy_digest: str
    name: str = ""
    token: str = ""
    compressed: bool = False


@dataclass(frozen=True)
class Template:
    """A root filesystem that sandboxes begin with."""

    name: str
    digest: str
    created: datetime
    bytes: int
    outdated: bool = False


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that the daemon keeps under a name; ``document`` is not in lists."""

    name: str
    digest: str
    source: str = ""
    changed: datetime | None = None
    document: bytes = b""
    live: int = 0
    narrowed: int = 0


@dataclass(frozen=True)
class ApprovalHost:
    """A host, or a push to a repository of one: ``push`` is the digest of all that it changes."""

    name: str
    port: int
    repository: str = ""
    push: str = ""


@dataclass(frozen=True)
class ApprovalCall:
    """A call of a tool: whose tool it is, the digest of its definition, and what it would get."""

    tool: str
    digest: str
    source: str = ""
    definition: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class ApprovalFile:
    """A file of a release, by whose digests an answer is bound."""

    name: str
    kind: str
    digests: list[str] = field(default_factory=list)
    scripts: bool = False


@dataclass(frozen=True)
class Vulnerability:
    """A known vulnerability.

    ``severity`` is unknown, low, medium, high or critical; ``fixed_in`` is "" if no fix is known.
    """

    id: str
    severity: str
    aliases: list[str] = field(default_factory=list)
    fixed_in: str = ""


@dataclass(frozen=True)
class Vulnerabilities:
    """The known vulnerabilities of a release, the worst first, by records that were imported at ``imported``.

    ``more`` are known and not here; ``digest`` is then one of all of them.
    """

    known: list[Vulnerability] = field(default_factory=list)
    more: int = 0
    digest: str = ""
    imported: datetime | None = None


@dataclass(frozen=True)
class Evidence:
    """What is known of what a request is about; the whole of it is in ``Approval.raw["evidence"]``.

    ``vulnerabilities`` is None where nobody looked for them. ``unchecked`` are the checks that could not be made.
    """

    vulnerabilities: Vulnerabilities | None = None
    unchecked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Approval:
    """A request of the approval queue. ``raw`` has all that the daemon sent of it.

    What an answer is bound to is in ``package``, ``upstream`` and ``files``, in ``host``, or in ``call``.
    """

    id: str
    state: str
    rule: str
    reason: str
    created: datetime
    updated: datetime
    kind: str = ""
    package: PackageRef | None = None
    host: ApprovalHost | None = None
    call: ApprovalCall | None = None
    files: list[ApprovalFile] = field(default_factory=list)
    upstream: str = ""
    group: str = ""
    tree: str = ""
    asked: int = 0
    #: What it has been shown as: it grows with whatever is new in what the request would
    #: let in, whom, or what is known of it.
    revision: int = 0
    #: ``ID@REVISION``, by which an answer names what was shown.
    answer_id: str = ""
    expires: datetime | None = None
    ended: str = ""
    notes: list[str] = field(default_factory=list)
    evidence: Evidence = field(default_factory=Evidence)
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class ApprovalEvent:
    """Something that happened in the queue."""

    number: int
    at: datetime
    event: str
    request: Approval


@dataclass(frozen=True)
class SandboxEvent:
    """A change of a sandbox's state."""

    seq: int
    time: datetime
    sandbox: str
    run: str
    to: str
    token: str = ""
    from_: str = field(default="", metadata={"json": "from"})
    reason: str = ""


@dataclass(frozen=True)
class Suggestion:
    """A run's policy, and what it would be if it let in what the run asked for."""

    source: str
    document: bytes
    suggested: bytes
    diff: str
    template: str = ""
    left: list[str] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CallResult:
    """What became of code that was run without a sandbox."""

    id: str
    run: str
    request_id: str
    stdout: str
    stderr: str
    memory_bytes: int
    took_ms: int
    value: Any = None
    truncated: bool = False
    failure: dict[str, Any] | None = None
