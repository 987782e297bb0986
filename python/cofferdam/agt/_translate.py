"""A toolkit's document and configuration as a policy of ours, and the rest of a sandbox's request."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._document import Document, texts
from ._types import IsolationRuntime

logger = logging.getLogger("cofferdam.agt")

WORKSPACE = "/workspace"
MAX_PIDS = 256

#: Names of what isolates: of the toolkit's runtimes and back ends, and of our engines.
ISOLATIONS: dict[str, str] = {
    "auto": "",
    "": "",
    "runsc": "gvisor",
    "gvisor": "gvisor",
    "runc": "runc",
    "container": "runc",
    "docker": "docker",
    "kata-runtime": "hardware",
    "kata": "hardware",
    "hyperlight": "hardware",
    "hardware": "hardware",
    "microvm": "microvm",
    "wasm": "wasm",
    "call": "wasm",
    "hyperlight-wasm": "wasm",
    "strongest": "auto",
}


def isolation(name: Any) -> str:
    """The isolation that a request names, "" for the daemon's own choice."""
    text = str(getattr(name, "value", name) or "").lower()
    if text not in ISOLATIONS:
        known = ", ".join(sorted(n for n in ISOLATIONS if n))
        raise ValueError(f"there is no isolation {text!r}; there are {known}")
    return ISOLATIONS[text]


def runtime_of(engine: str) -> IsolationRuntime:
    """An engine by the toolkit's word."""
    return {
        "gvisor": IsolationRuntime.GVISOR,
        "runc": IsolationRuntime.RUNC,
        "docker": IsolationRuntime.RUNC,
        "microvm": IsolationRuntime.KATA,
        "hardware": IsolationRuntime.KATA,
    }.get(engine, IsolationRuntime.AUTO)


@dataclass(frozen=True)
class Limits:
    """What one session's commands are bounded by."""

    timeout_seconds: float
    output_max_bytes: int


def limits(document: Document | None, config: Any) -> Limits:
    """The document's where it says one, else the configuration's; never none."""
    seconds = (document.timeout_seconds if document else None) or _positive(config.timeout_seconds, "timeout_seconds")
    output = int(_positive(config.output_max_bytes, "output_max_bytes"))
    return Limits(timeout_seconds=float(seconds), output_max_bytes=output)


def policy(document: Document | None, config: Any, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The policy that the daemon enforces. ``extra`` adds keys of ours, such as allowed_packages."""
    hosts = [
        *(document.network_allowlist if document else ()),
        *texts(getattr(config, "network_allowlist", None), "network_allowlist"),
    ]
    tools = [
        *(document.tool_allowlist if document else ()),
        *texts(getattr(config, "tool_allowlist", None), "tool_allowlist"),
    ]
    if config.network_enabled and not hosts:
        raise ValueError(
            "network_enabled=True would open the whole network, which no sandbox here has:"
            " name the hosts in the policy's network_allowlist"
        )
    if document is not None and document.network_default == "allow":
        logger.warning(
            "network_default: allow stays closed: there is no open network; name the hosts in network_allowlist"
        )
    defaults: dict[str, Any] = {
        "network_default": "deny",
        "max_cpu": (document.max_cpu if document else None) or _positive(config.cpu_limit, "cpu_limit"),
        "max_memory_mb": int(
            (document.max_memory_mb if document else None) or _positive(config.memory_mb, "memory_mb")
        ),
        "timeout_seconds": math.ceil(limits(document, config).timeout_seconds),
        "max_pids": MAX_PIDS,
    }
    if document is not None and document.max_tool_calls is not None:
        defaults["max_tool_calls"] = document.max_tool_calls
    made: dict[str, Any] = {
        "name": document.name if document else "no-policy",
        "defaults": defaults,
        "network_allowlist": list(dict.fromkeys(hosts)),
        "tool_allowlist": list(dict.fromkeys(tools)),
        "filesystem": {"workspace": WORKSPACE, "mode": "read_write"},
    }
    return _with(made, extra or {})


def _with(made: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in extra.items():
        if key in made:
            raise ValueError(f"{key} comes from the session's policy and configuration, and can't be given beside them")
        made[key] = value
    return made


def _positive(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{what} is {value!r}; it has to be a number above 0")
    return value
