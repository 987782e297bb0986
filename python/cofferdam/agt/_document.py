"""The toolkit's PolicyDocument, of 4.x and 5.x, as plain data of ours.

The defaults are those of 5.0.0, the strict release: a document that says no
``defaults.action`` denies what no rule matches, also where an object of 4.x, whose own
default is allow, brings it.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from .. import _policy

OPERATORS = frozenset(["eq", "ne", "gt", "lt", "gte", "lte", "in", "not_in", "matches", "contains"])
ACTIONS = frozenset(["allow", "audit", "deny", "block"])
PERMITS = frozenset(["allow", "audit"])


@dataclass(frozen=True)
class Rule:
    """One rule; ``dynamic`` is its dynamic condition, or None."""

    name: str
    field: str
    operator: str
    value: Any
    action: str
    priority: int = 0
    message: str = ""
    dynamic: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Document:
    """A policy document; what it leaves open is None."""

    name: str = "unnamed"
    version: str = "1.0"
    rules: tuple[Rule, ...] = ()
    action: str = "deny"
    max_cpu: float | None = None
    max_memory_mb: int | None = None
    timeout_seconds: float | None = None
    max_tool_calls: int | None = None
    network_default: str = "deny"
    network_allowlist: tuple[str, ...] = ()
    tool_allowlist: tuple[str, ...] = ()
    input_dir: str | None = None
    output_dir: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    #: The files of the host that it was read from, and what was in them.
    files: tuple[tuple[str, bytes], ...] = field(default=(), compare=False, repr=False)


def read(policy: Any) -> Document:
    """Reads a PolicyDocument, a mapping, a path, or an object with the same attributes.

    What can't be enforced as it stands is a ValueError that says where.
    """
    plain, files = _plain(policy)
    defaults = _mapping(plain.get("defaults"), "defaults")
    mounts = _mapping(plain.get("sandbox_mounts"), "sandbox_mounts")
    action = str(_value(defaults.get("action") or "deny"))
    if action not in ACTIONS:
        raise ValueError(f"defaults.action is {action!r}; it is one of {', '.join(sorted(ACTIONS))}")
    network = str(_value(defaults.get("network_default") or "deny"))
    if network not in ("allow", "deny"):
        raise ValueError(f"defaults.network_default is {network!r}; it is allow or deny")
    rules = plain.get("rules") or []
    if not isinstance(rules, Sequence) or isinstance(rules, str):
        raise ValueError("rules is no list")
    calls = _number(defaults.get("max_tool_calls"), "defaults.max_tool_calls", zero=True)
    memory = _number(defaults.get("max_memory_mb"), "defaults.max_memory_mb")
    return Document(
        name=str(plain.get("name") or "unnamed"),
        version=str(plain.get("version") or "1.0"),
        rules=tuple(_rule(r, i) for i, r in enumerate(rules)),
        action=action,
        max_cpu=_number(defaults.get("max_cpu"), "defaults.max_cpu"),
        max_memory_mb=None if memory is None else int(memory),
        timeout_seconds=_number(defaults.get("timeout_seconds"), "defaults.timeout_seconds"),
        max_tool_calls=None if calls is None else int(calls),
        network_default=network,
        network_allowlist=texts(plain.get("network_allowlist"), "network_allowlist"),
        tool_allowlist=texts(plain.get("tool_allowlist"), "tool_allowlist"),
        input_dir=_text(mounts.get("input_dir"), "sandbox_mounts.input_dir"),
        output_dir=_text(mounts.get("output_dir"), "sandbox_mounts.output_dir"),
        raw=plain,
        files=files,
    )


_Files = tuple[tuple[str, bytes], ...]


def _plain(policy: Any) -> tuple[dict[str, Any], _Files]:
    if isinstance(policy, Mapping):
        return dict(policy), ()
    if isinstance(policy, (str, os.PathLike)):
        return _file(policy)
    if hasattr(policy, "model_dump"):
        plain: dict[str, Any] = policy.model_dump(mode="json")
        _only_what_was_said(policy, plain)
        return plain, ()
    if isinstance(policy, SimpleNamespace) or hasattr(policy, "__dict__"):
        plain = {k: v for k, v in vars(policy).items() if not k.startswith("_")}
        if {"rules", "defaults", "network_allowlist", "tool_allowlist", "name"} & plain.keys():
            return plain, ()
    raise ValueError(f"{type(policy).__name__} is no policy document")


def _only_what_was_said(policy: Any, plain: dict[str, Any]) -> None:
    """Takes defaults out that the model filled in and that its release may have laxer than ours."""
    said: set[str] = getattr(policy, "model_fields_set", set())
    defaults = getattr(policy, "defaults", None)
    kept: set[str] = getattr(defaults, "model_fields_set", set()) if "defaults" in said else set()
    if isinstance(plain.get("defaults"), dict):
        plain["defaults"] = {k: v for k, v in plain["defaults"].items() if k in kept}


def _file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], _Files]:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise ValueError(
            f"{os.fspath(path)} can't be read without PyYAML; install it, or give the document itself"
        ) from None
    at, text = _policy.read_file(path)
    loaded = yaml.safe_load(text.decode("utf-8"))
    if not isinstance(loaded, dict):
        raise ValueError(f"{os.fspath(path)} is no policy document")
    return loaded, ((at, text),)


def _rule(rule: Any, index: int) -> Rule:
    where = f"rules[{index}]"
    plain = _mapping(rule, where)
    condition = _mapping(plain.get("condition"), f"{where}.condition")
    name = plain.get("name")
    operator, action = str(_value(condition.get("operator"))), str(_value(plain.get("action")))
    priority = plain.get("priority") or 0
    if not isinstance(name, str) or not isinstance(condition.get("field"), str):
        raise ValueError(f"{where} has to have a name, and a condition with a field")
    if operator not in OPERATORS:
        raise ValueError(f"{where}.condition.operator is {operator!r}; it is one of {', '.join(sorted(OPERATORS))}")
    if "value" not in condition:
        raise ValueError(f"{where}.condition has no value")
    if action not in ACTIONS:
        raise ValueError(f"{where}.action is {action!r}; it is one of {', '.join(sorted(ACTIONS))}")
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise ValueError(f"{where}.priority is {priority!r}, which is no whole number")
    dynamic = plain.get("dynamic_condition")
    return Rule(
        name=name,
        field=condition["field"],
        operator=operator,
        value=condition["value"],
        action=action,
        priority=priority,
        message=str(plain.get("message") or ""),
        dynamic=None if dynamic is None else _mapping(dynamic, f"{where}.dynamic_condition"),
    )


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "model_dump"):
        dumped: dict[str, Any] = value.model_dump(mode="json")
        return dumped
    if hasattr(value, "__dict__"):
        return {k: v for k, v in vars(value).items() if not k.startswith("_")}
    raise ValueError(f"{where} is {type(value).__name__}; it has to have keys")


def _value(value: Any) -> Any:
    """The value of an enumeration's member."""
    return getattr(value, "value", value)


def _number(value: Any, where: str, *, zero: bool = False) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{where} is {value!r}, which is no number")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{where} is {value!r}; it has to be above 0")
    return value


def texts(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts that are not empty."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{where} is no list")
    for one in value:
        if not isinstance(one, str) or not one.strip():
            raise ValueError(f"{where} has {one!r}, which is no text")
    return tuple(value)


def _text(value: Any, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ValueError(f"{where} is {value!r}, which is no path")
    return str(os.fspath(value))
