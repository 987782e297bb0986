"""Judges code, and calls of tools, by a document's rules: as the toolkit's evaluator of 5.0.0.

The highest priority comes first, equal ones in their order; the first rule whose condition
holds decides. A missing or null field never matches. What can't be evaluated is a denial.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import Any

from ._document import PERMITS, Document, Rule


@dataclass(frozen=True)
class Verdict:
    """What a document says; ``rule`` is None where its default decided."""

    allowed: bool
    action: str
    reason: str
    rule: str | None = None


class Gate:
    """A document's rules. Safe for concurrent use; budgets of windows are this process's own."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._rules = sorted(document.rules, key=lambda r: -r.priority)
        self._budgets: dict[tuple[str, str, int], tuple[int, float]] = {}
        self._lock = threading.Lock()

    def judge(self, context: Mapping[str, Any], dynamic: Mapping[str, Any] | None = None) -> Verdict:
        """The verdict by the rules, or by ``defaults.action`` where none matches."""
        found = self.matching(context, dynamic)
        if found is not None:
            return found
        action = self._document.action
        return Verdict(action in PERMITS, action, "No rules matched; default action applied")

    def matching(self, context: Mapping[str, Any], dynamic: Mapping[str, Any] | None = None) -> Verdict | None:
        """The verdict of the first rule that matches; None if none does."""
        try:
            for rule in self._rules:
                if _holds(rule, context) and self._holds_now(rule, dynamic or {}):
                    reason = rule.message or f"Matched rule '{rule.name}'"
                    return Verdict(rule.action in PERMITS, rule.action, reason, rule.name)
        except Exception:  # whatever it is, nobody has said that it may happen
            return Verdict(False, "deny", "Policy evaluation error, access denied (fail closed)")
        return None

    def _holds_now(self, rule: Rule, dynamic: Mapping[str, Any]) -> bool:
        if rule.dynamic is None:
            return True
        try:
            return self._dynamic(rule, rule.dynamic, dynamic)
        except ValueError:
            return False

    def _dynamic(self, rule: Rule, condition: Mapping[str, Any], dynamic: Mapping[str, Any]) -> bool:
        kind = getattr(condition.get("type"), "value", condition.get("type"))
        now = _moment(dynamic.get("timestamp"))
        if kind in ("token_count_per_window", "cost_per_window"):
            metric = "token_count" if kind == "token_count_per_window" else "cost"
            return self._within(rule, condition, metric, now, dynamic.get("budget") or {})
        days = condition.get("days_of_week")
        local = now.astimezone(_zone(condition.get("timezone")))
        if kind == "day_of_week":
            return bool(days) and local.isoweekday() in (days or [])
        if kind != "time_window":
            raise ValueError(f"a dynamic condition of the type {kind!r} is not known")
        if days and local.isoweekday() not in days:
            return False
        start, end = _minutes(condition.get("start_time")), _minutes(condition.get("end_time"))
        at = local.hour * 60 + local.minute
        return start <= at < end if start <= end else at >= start or at < end

    def _within(
        self, rule: Rule, condition: Mapping[str, Any], metric: str, now: datetime, budget: Mapping[str, Any]
    ) -> bool:
        window, limit = _seconds(condition.get("window")), float(condition["limit"])
        try:
            amount = float(budget.get(metric, 0))
        except TypeError:
            return False
        begins = int(now.timestamp()) // window * window
        key = (rule.name, metric, window)
        with self._lock:
            since, used = self._budgets.get(key, (begins, 0.0))
            total = amount + (used if since == begins else 0.0)
            self._budgets[key] = (begins, total)
            return total <= limit


def _holds(rule: Rule, context: Mapping[str, Any]) -> bool:
    value, target = context.get(rule.field), rule.value
    if value is None:
        return False
    if rule.operator == "eq":
        return bool(value == target)
    if rule.operator == "ne":
        return bool(value != target)
    if rule.operator == "gt":
        return bool(value > target)
    if rule.operator == "lt":
        return bool(value < target)
    if rule.operator == "gte":
        return bool(value >= target)
    if rule.operator == "lte":
        return bool(value <= target)
    if rule.operator == "in":
        return value in target
    if rule.operator == "not_in":
        return value not in target
    if rule.operator == "contains":
        return target in value
    return re.search(str(target), str(value)) is not None


def _moment(value: Any) -> datetime:
    if value is None:
        return datetime.now(timezone.utc)
    if isinstance(value, (int, float)):
        return datetime.fromtimestamp(value, tz=timezone.utc)
    if isinstance(value, str):
        value = datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
    if not isinstance(value, datetime):
        raise ValueError("the timestamp is none")
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)


def _zone(name: Any) -> tzinfo:
    if name is None or not str(name) or str(name).upper() == "UTC":
        return timezone.utc
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, OSError) as e:
        raise ValueError(f"the time zone {name!r} is not known") from e


def _minutes(value: Any) -> int:
    hour, colon, minute = str(value).partition(":")
    if not colon or not 0 <= int(hour) <= 23 or not 0 <= int(minute) <= 59:
        raise ValueError(f"{value!r} is no time")
    return int(hour) * 60 + int(minute)


def _seconds(value: Any) -> int:
    text = str(value or "")
    unit = {"m": 60, "h": 3600, "d": 86400}.get(text[-1:])
    if unit is None or int(text[:-1]) <= 0:
        raise ValueError(f"{value!r} is no window")
    return int(text[:-1]) * unit
