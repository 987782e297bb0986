"""Sandboxes for AI agents, without a network, and the packages that a policy lets into them.

    from cofferdam import Sandbox

    with Sandbox(policy="policy.yaml") as box:
        box.install("requests")
        print(box.run(["python3", "-c", "import requests; print(requests.__version__)"]).stdout)

``Client`` and ``Sandbox`` block; ``AsyncClient`` and ``AsyncSandbox`` are the same for asyncio.
``cofferdam.agt`` is the provider for the agent-sandbox toolkit.
"""

from importlib import metadata as _metadata

from ._async.client import AsyncClient
from ._async.files import AsyncFiles
from ._async.process import AsyncProcess
from ._async.sandbox import AsyncSandbox
from ._models import (
    Alarm,
    Approval,
    ApprovalCall,
    ApprovalEvent,
    ApprovalFile,
    ApprovalHost,
    CallResult,
    Command,
    CommandResult,
    Evidence,
    Exit,
    FileInfo,
    Hold,
    Lifetime,
    NamedPolicy,
    PackageRef,
    Plan,
    PlanRelease,
    Refusal,
    SandboxEvent,
    SandboxInfo,
    Snapshot,
    Suggestion,
    Template,
    Usage,
    Version,
    Vulnerabilities,
    Vulnerability,
)
from ._policy import PolicyLike
from ._sync.client import Client
from ._sync.files import Files
from ._sync.process import Process
from ._sync.sandbox import Sandbox
from .errors import (
    APIError,
    ApprovalRequired,
    CofferdamError,
    CommandFailed,
    Conflict,
    ConnectionLost,
    DaemonNotFound,
    InstallAlarm,
    InstallFailed,
    InstallRefused,
    InvalidRequest,
    NotFound,
    PlanFailed,
    ProtocolError,
    QuotaExceeded,
    Refused,
    Unauthorized,
    Unavailable,
)

try:
    __version__ = _metadata.version("cofferdam")
except _metadata.PackageNotFoundError:  # run from its sources
    __version__ = "0.0.0.dev0"

__all__ = [
    "APIError",
    "Alarm",
    "Approval",
    "ApprovalCall",
    "ApprovalEvent",
    "ApprovalFile",
    "ApprovalHost",
    "ApprovalRequired",
    "AsyncClient",
    "AsyncFiles",
    "AsyncProcess",
    "AsyncSandbox",
    "CallResult",
    "Client",
    "CofferdamError",
    "Command",
    "CommandFailed",
    "CommandResult",
    "Conflict",
    "ConnectionLost",
    "DaemonNotFound",
    "Evidence",
    "Exit",
    "FileInfo",
    "Files",
    "Hold",
    "InstallAlarm",
    "InstallFailed",
    "InstallRefused",
    "InvalidRequest",
    "Lifetime",
    "NamedPolicy",
    "NotFound",
    "PackageRef",
    "Plan",
    "PlanFailed",
    "PlanRelease",
    "PolicyLike",
    "Process",
    "ProtocolError",
    "QuotaExceeded",
    "Refusal",
    "Refused",
    "Sandbox",
    "SandboxEvent",
    "SandboxInfo",
    "Snapshot",
    "Suggestion",
    "Template",
    "Unauthorized",
    "Unavailable",
    "Usage",
    "Version",
    "Vulnerabilities",
    "Vulnerability",
    "__version__",
]
