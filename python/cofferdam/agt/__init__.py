"""The provider for Microsoft's agent-sandbox toolkit (``agt-sandbox``): sessions in Cofferdam's sandboxes.

    from cofferdam.agt import CofferdamSandboxProvider

    with CofferdamSandboxProvider(tools={"add": lambda a, b: a + b}) as provider:
        session = provider.create_session("analyst", policy=document)
        print(provider.execute_code("analyst", session.session_id, "print(6 * 7)").result.stdout)

With the toolkit installed the types here are its own, and the provider is one of its
SandboxProviders. Without it they are equal ones of ours.
"""

from ._document import Document, read
from ._gate import Gate, Verdict
from ._provider import CofferdamSandboxProvider
from ._tools import ToolAnswer, ToolBusy, ToolError, ToolRaised, ToolRefused, ToolTimedOut
from ._types import (
    TOOLKIT,
    CodeScanViolation,
    ExecutionHandle,
    ExecutionStatus,
    IsolationRuntime,
    SandboxCheckpoint,
    SandboxCodeViolation,
    SandboxConfig,
    SandboxProvider,
    SandboxResult,
    SessionHandle,
    SessionStatus,
    enforce_no_subprocess_execution,
)

__all__ = [
    "TOOLKIT",
    "CodeScanViolation",
    "CofferdamSandboxProvider",
    "Document",
    "ExecutionHandle",
    "ExecutionStatus",
    "Gate",
    "IsolationRuntime",
    "SandboxCheckpoint",
    "SandboxCodeViolation",
    "SandboxConfig",
    "SandboxProvider",
    "SandboxResult",
    "SessionHandle",
    "SessionStatus",
    "ToolAnswer",
    "ToolBusy",
    "ToolError",
    "ToolRaised",
    "ToolRefused",
    "ToolTimedOut",
    "Verdict",
    "enforce_no_subprocess_execution",
    "read",
]
