"""Reads the daemon's JSON into dataclasses, by their types.

Fields that a class does not have are passed over: a newer daemon may send more. What a
class needs and the answer lacks, or has in another type, is a :class:`ProtocolError`.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from .errors import ProtocolError

T = TypeVar("T")

# Python before 3.11 reads neither Z nor nine digits.
_TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$")


def decode(kind: type[T], value: object) -> T:
    """The value as a ``kind``, which is a dataclass."""
    of: Any = kind
    return typing.cast(T, _reader(of)(value))


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value: value
    if kind is datetime:
        return _time
    if kind is bytes:
        return _bytes
    if origin in (typing.Union, types.UnionType):
        inner = _reader(next(a for a in arguments if a is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is list:
        item = _reader(arguments[0])
        return lambda value: [item(v) for v in _of(list, value)]
    if origin is dict:
        item = _reader(arguments[1])
        return lambda value: {str(k): item(v) for k, v in _of(dict, value).items()}
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    if kind is float:
        return lambda value: float(_of((int, float), value))
    return lambda value: _of(kind, value)


def _record(kind: Any) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    fields = [(f.name, f.metadata.get("json", f.name), f) for f in dataclasses.fields(kind)]

    def read(value: Any) -> Any:
        given, made = _of(dict, value), {}
        for name, key, field in fields:
            if given.get(key) is not None:
                made[name] = _reader(hints[name])(given[key])
            elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                # An absent list is an empty one: Go writes null for it.
                if typing.get_origin(hints[name]) is list:
                    made[name] = []
                else:
                    raise ProtocolError(f"the daemon's {kind.__name__} lacks {key}")
        return kind(**made)

    return read


def _of(kind: Any, value: Any) -> Any:
    if isinstance(value, bool) and kind is not bool and kind is not object:
        raise ProtocolError(f"the daemon sent {value!r} where something else has to be")
    if not isinstance(value, kind):
        raise ProtocolError(f"the daemon sent {str(value)[:80]!r} where something else has to be")
    return value


def _time(value: Any) -> datetime:
    found = _TIME.match(_of(str, value))
    if not found:
        raise ProtocolError(f"the daemon sent {value[:40]!r}, which is no time")
    whole, fraction, zone = found.groups()
    text = f"{whole}.{(fraction or '0')[:6].ljust(6, '0')}{'+00:00' if zone == 'Z' else zone}"
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ProtocolError(f"the daemon sent {value[:40]!r}, which is no time") from None


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(_of(str, value), validate=True)
    except binascii.Error:
        raise ProtocolError("the daemon sent what is not base64") from None
