"""The toolkit's types: its own where it is installed, equal ones of ours where it is not.

``TOOLKIT`` tells which. Only where the toolkit is installed do its ``isinstance`` checks
have something to accept.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from . import _scanner, _standin


def _toolkits(module: str) -> Any:
    """A module of the toolkit's, None if it is not there."""
    with warnings.catch_warnings():
        # Its last releases say at import that they are deprecated; whoever uses them has read it.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return importlib.import_module(f"agent_sandbox.{module}")
        except ImportError:
            return None


_theirs, _found = _toolkits("sandbox_provider"), _toolkits("code_scanner")

#: The toolkit is installed.
TOOLKIT: bool = _theirs is not None and _found is not None

if TYPE_CHECKING:
    from ._scanner import CodeScanViolation, SandboxCodeViolation, enforce_no_subprocess_execution
    from ._standin import (
        ExecutionHandle,
        ExecutionStatus,
        IsolationRuntime,
        SandboxCheckpoint,
        SandboxConfig,
        SandboxProvider,
        SandboxResult,
        SessionHandle,
        SessionStatus,
    )
else:
    _of = _theirs if TOOLKIT else _standin
    ExecutionHandle = _of.ExecutionHandle
    ExecutionStatus = _of.ExecutionStatus
    SandboxConfig = _of.SandboxConfig
    SandboxProvider = _of.SandboxProvider
    SandboxResult = _of.SandboxResult
    SessionHandle = _of.SessionHandle
    SessionStatus = _of.SessionStatus
    IsolationRuntime = ((_toolkits("isolation_runtime") if TOOLKIT else None) or _standin).IsolationRuntime
    SandboxCheckpoint = ((_toolkits("docker_provider.state") if TOOLKIT else None) or _standin).SandboxCheckpoint
    _scan = _found if TOOLKIT else _scanner
    CodeScanViolation = _scan.CodeScanViolation
    SandboxCodeViolation = _scan.SandboxCodeViolation
    enforce_no_subprocess_execution = _scan.enforce_no_subprocess_execution

__all__ = [
    "TOOLKIT",
    "CodeScanViolation",
    "ExecutionHandle",
    "ExecutionStatus",
    "IsolationRuntime",
    "SandboxCheckpoint",
    "SandboxCodeViolation",
    "SandboxConfig",
    "SandboxProvider",
    "SandboxResult",
    "SessionHandle",
    "SessionStatus",
    "enforce_no_subprocess_execution",
]
