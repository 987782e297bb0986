"""What of the host a session may see, and which variables it may have."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import _hostfile
from ..errors import CofferdamError

logger = logging.getLogger("cofferdam.agt")

# Of these nothing is mounted, whatever lies below them.
_SYSTEM = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/root/.ssh",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib",
    "/var/run",
    "/var/spool",
]
# Of these what lies below them may be.
_ROOTS = ["/", "/home", "/root", "/var", "/srv", "/opt", "/mnt", "/tmp"]

_VARIABLES = frozenset(
    [
        "BASH_ENV",
        "ENV",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONUSERBASE",
        "PYTHONINSPECT",
        "NODE_OPTIONS",
        "NODE_PATH",
        "RUBYOPT",
        "RUBYLIB",
        "PERL5LIB",
        "PERL5OPT",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "GCONV_PATH",
        "PATH",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "TOOL_PROXY_URL",
    ]
)


def mounts(input_dir: str | None, output_dir: str | None) -> list[dict[str, Any]]:
    """/input, read-only, and /output, read-write. A directory of the system is a ValueError."""
    made: list[dict[str, Any]] = []
    for source, destination, writable in ((input_dir, "/input", False), (output_dir, "/output", True)):
        if source is not None:
            made.append({"source": _checked(source, destination), "destination": destination, "read_write": writable})
    return made


def _checked(source: str, destination: str) -> str:
    """The path as it was given, absolute: the daemon follows it, and must see each link that is on its way."""
    try:
        found = _hostfile.find("directory", source)
    except CofferdamError as e:
        raise ValueError(f"'{source}' can't be mounted as {destination}: {e}") from e
    real = found.name
    below = any(
        real == system or real.startswith(system + "/") for named in _SYSTEM for system in _hostfile.names(named)
    )
    if real in _ROOTS or below or real in _hostfile.names(Path.home()):
        raise ValueError(f"Cannot mount protected system directory '{source}' as {destination}")
    if not found.is_directory:
        raise ValueError(f"'{source}' can't be mounted as {destination}: it is no directory")
    return _hostfile.absolute(source)


def environment(variables: Mapping[str, str] | None) -> dict[str, str]:
    """The variables without those that a loader or an interpreter reads before the program begins."""
    kept: dict[str, str] = {}
    for name, value in (variables or {}).items():
        upper = str(name).upper()
        if upper.startswith("LD_") or upper in _VARIABLES:
            logger.warning("the variable %s is not set in the sandbox: it changes how programs begin", name)
        else:
            kept[str(name)] = str(value)
    return kept
