"""Policies as they are handed to the daemon."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from . import _hostfile
from .errors import CofferdamError

#: A document's path, its text (of more than one line), or the document itself.
PolicyLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


def text_of(policy: PolicyLike) -> tuple[str, bytes]:
    """Where a document came from, "" for one that is no file, and its bytes."""
    if isinstance(policy, Mapping):
        # JSON is YAML, and says of each value which type it has.
        return "", json.dumps(policy, ensure_ascii=True, indent=1).encode()
    if isinstance(policy, str) and "\n" in policy:
        return "", policy.encode()
    return str(Path(policy).absolute()), _hostfile.read("policy", policy)


def request(policy: PolicyLike | None, name: str | None) -> dict[str, Any]:
    """The policy of a request to make a sandbox."""
    if policy is not None and name:
        raise CofferdamError("give a policy or the name of one that the daemon has, not both")
    if name:
        return {"name": name}
    if policy is None:
        return {}
    source, document = text_of(policy)
    made: dict[str, Any] = {"document": base64.b64encode(document).decode()}
    if source:
        made["source"] = source
    return made
