"""Policies as they are handed to the daemon."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from . import _hostfile
from .errors import CofferdamError

#: A document's path, its text (of more than one line), or the document itself.
PolicyLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


class Made(dict[str, Any]):
    """A document that this package made, and the files of the host that it read for it.

    They decide as much as a policy that is a file itself, so that the daemon is told of them.
    """

    def __init__(self, document: Mapping[str, Any], files: Sequence[tuple[str, bytes]] = ()) -> None:
        super().__init__(document)
        self.files = tuple(files)


def text_of(policy: PolicyLike) -> tuple[str, bytes]:
    """Where a document came from, "" for one that is no file, and its bytes."""
    if isinstance(policy, Mapping):
        # JSON is YAML, and says of each value which type it has.
        return "", json.dumps(policy, ensure_ascii=True, indent=1).encode()
    if isinstance(policy, str) and "\n" in policy:
        return "", policy.encode()
    return read_file(policy)


def read_file(path: str | os.PathLike[str]) -> tuple[str, bytes]:
    """A document's absolute path, and what is in it."""
    return str(Path(path).absolute()), _hostfile.read("policy", path)


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
    if isinstance(policy, Made) and policy.files:
        made["made_from"] = [{"source": at, "document": base64.b64encode(text).decode()} for at, text in policy.files]
    return made
