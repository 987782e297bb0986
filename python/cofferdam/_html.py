"""Tables for notebooks. Everything that is shown is text: it may come from a sandbox or a publisher."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_MOST = 500  # characters of one cell
_ROWS = 200


def text(value: object) -> str:
    """A value as markup that shows it and does nothing: no tags, no control or direction characters."""
    shown = "" if value is None else str(value)
    if len(shown) > _MOST:
        shown = shown[:_MOST] + "\u2026"
    return html.escape("".join(c if c == "\n" or (c.isprintable() and not _turns(c)) else "\ufffd" for c in shown))


def _turns(c: str) -> bool:
    """Tells a character that changes the direction of what is around it."""
    return "\u202a" <= c <= "\u202e" or "\u2066" <= c <= "\u2069" or c in "\u200e\u200f\u061c"


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Names and values, one below the other; those without a value are left out."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{text(k)}</th><td>{text(v)}</td></tr>" for k, v in rows if v not in ("", None)
    )
    return f"<table><caption>{text(title)}</caption>{cells}</table>"


def grid(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with a head."""
    head = "".join(f"<th>{text(c)}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{text(v)}</td>" for v in row) + "</tr>" for row in rows[:_ROWS])
    more = f"<tr><td colspan='{len(columns)}'>and {len(rows) - _ROWS} more</td></tr>" if len(rows) > _ROWS else ""
    return f"<table><caption>{text(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"
