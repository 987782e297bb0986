"""Options that are mappings, as they are sent: one of another kind is refused with what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def texts(what: str, given: Mapping[str, str] | None) -> dict[str, str]:
    """A mapping of names to texts, such as variables. A value is never told: it may be a secret."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is a mapping of names to texts, and this is {type(given).__name__}")
    for name, value in given.items():
        if not isinstance(name, str):
            raise TypeError(f"a name of {what} is a text, and this is {type(name).__name__}")
        if not isinstance(value, str):
            raise TypeError(f"the value of {name[:80]!r} in {what} is a text, and this is {type(value).__name__}")
    return dict(given)


def mappings(what: str, example: str, given: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """A list of mappings, such as mounts."""
    if given is None:
        return []
    wrong = f"{what} is a list of mappings, such as {example}"
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        raise TypeError(f"{wrong}, and this is {type(given).__name__}")
    for one in given:
        if not isinstance(one, Mapping):
            raise TypeError(f"{wrong}, and an entry is {type(one).__name__}")
    return [dict(one) for one in given]
