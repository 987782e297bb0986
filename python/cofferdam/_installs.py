"""The command lines of ``Sandbox.install`` and ``Sandbox.plan``."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import CofferdamError

_CLIENTS = {
    "python": ["pip", "install", "--disable-pip-version-check", "--no-input"],
    "node": ["npm", "install", "--no-audit", "--no-fund"],
    "go": ["go", "get"],
}

#: Of a plan: the same without what its resolver has no use for.
_PLANNED = {"python": ["pip", "install"], "node": ["npm", "install"], "go": ["go", "get"]}


def command(packages: Sequence[str], ecosystem: str, *, planned: bool = False) -> list[str]:
    """What installs packages. Each is one name with its version, as its client writes it, and never an option."""
    clients = _PLANNED if planned else _CLIENTS
    if ecosystem not in clients:
        raise CofferdamError(f"the ecosystem {ecosystem!r} has no client here; there are {', '.join(sorted(clients))}")
    if not packages:
        raise CofferdamError("name a package to install")
    for one in packages:
        if not isinstance(one, str):
            raise TypeError(
                f"a package is a text, and this is {type(one).__name__}: give each by itself, or a list as *packages"
            )
        if not one.strip() or one.startswith("-") or any(c in one for c in "\0\n\r"):
            raise CofferdamError(f"{one[:80]!r} is no package: write a name, with a version where it matters")
    return clients[ecosystem] + list(packages)
