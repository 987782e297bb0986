"""Names of checkpoints as names of snapshots, and back."""

from __future__ import annotations

import re

NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}")

_PREFIX = "agt."
_MOST = 128  # characters of a snapshot's name


def check(value: str, what: str) -> None:
    """Refuses what is no name, as the toolkit does."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(
            f"Invalid {what} {value!r}: it has to begin with a letter or digit,"
            " and have at most 128 letters, digits, '_', '.' and '-'"
        )


def snapshot_name(agent_id: str, name: str) -> str:
    """The snapshot of an agent's checkpoint. The agent's length keeps "a-b" of "c" from being "a" of "b-c"."""
    made = f"{_PREFIX}{len(agent_id)}.{agent_id}.{name}"
    if len(made) > _MOST:
        raise ValueError(
            f"the names of the agent and of the checkpoint are too long together: {len(made)} characters, of {_MOST}"
        )
    return made


def name_of(agent_id: str, snapshot: str) -> str | None:
    """The checkpoint's name, None for a snapshot that is none of this agent's."""
    prefix = f"{_PREFIX}{len(agent_id)}.{agent_id}."
    return snapshot[len(prefix) :] if snapshot.startswith(prefix) else None
