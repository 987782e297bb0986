"""The version of the distribution: COFFERDAM_VERSION, as `git describe` writes it, in Python's form."""

from __future__ import annotations

import os
import re


def version() -> str:
    """PEP 440: v1.2.0-5-gabc-dirty is 1.2.0.post5+gabc.dirty."""
    said = os.environ.get("COFFERDAM_VERSION", "")
    found = re.fullmatch(r"v?(\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?)(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?", said)
    if not found or (not said.startswith("v") and "." not in said):
        local = re.sub(r"[^0-9a-z]+", ".", said.lower()).strip(".")
        return "0.0.0.dev0" + (f"+{local}" if local else "")
    release, count, commit, dirty = found.groups()
    local = ".".join(part for part in (commit, "dirty" if dirty else None) if part)
    return release + (f".post{count}" if count else "") + (f"+{local}" if local else "")
