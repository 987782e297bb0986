"""The frames of an attached command: one byte type, four bytes big-endian length, payload.

Pure: bytes in, frames out. The numbers are the daemon's; a Go test of this repository
compares them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

from .errors import ProtocolError

STDIN = 3
STDOUT = 4
STDERR = 5
EXIT = 6
RESIZE = 7
SIGNAL = 8
GAP = 9

_HEADER = struct.Struct(">BI")
MAX_PAYLOAD = 64 << 10


class Reader:
    """Makes frames of the bytes that come."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yields the frames that are whole now."""
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(self._buffer)
            if size > MAX_PAYLOAD:
                raise ProtocolError(f"the daemon sent a frame of {size} bytes; the limit is {MAX_PAYLOAD}")
            end = _HEADER.size + size
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEADER.size : end])
            del self._buffer[:end]
            yield kind, payload


def frame(kind: int, payload: bytes) -> bytes:
    """One frame; the payload has at most MAX_PAYLOAD bytes."""
    return _HEADER.pack(kind, len(payload)) + payload


def octets(content: bytes | bytearray | memoryview | str) -> bytes:
    """Return the bytes that are sent of a caller's content. Anything else is none: ``bytes(5)`` are five zero bytes."""
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"content is a str or bytes, and this is {type(content).__name__}")


def input_frames(data: bytes) -> Iterator[bytes]:
    """Input as frames, with its end."""
    for begin in range(0, len(data), MAX_PAYLOAD):
        yield frame(STDIN, data[begin : begin + MAX_PAYLOAD])
    yield frame(STDIN, b"")


def signal(name: str) -> bytes:
    """A signal to the command's process group."""
    return frame(SIGNAL, json.dumps({"name": name}).encode())


def gap_of(payload: bytes) -> int:
    """How many bytes of output were not kept."""
    try:
        size = json.loads(payload)["bytes"]
    except (ValueError, KeyError, TypeError):
        size = None
    if not isinstance(size, int) or size < 0:
        raise ProtocolError(f"the daemon sent a gap that can't be read: {payload[:80]!r}")
    return size
