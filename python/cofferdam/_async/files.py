"""Files of a sandbox. They are read and written inside, with its user's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx

from .._decode import decode
from .._frames import octets
from .._models import FileInfo
from ..errors import CofferdamError, Conflict, ConnectionLost, NotFound
from .transport import AsyncTransport

#: The most that ``read`` takes into memory, unless it is told otherwise.
MAX_READ = 256 << 20
_PART = 1 << 20

Listing: TypeAlias = list[FileInfo]


class AsyncFiles:
    """``sandbox.files``. A path is absolute, or relative to the user's home; ``~`` is the home.

    What comes back, names included, is what the sandbox says: check a name before a file of
    this machine gets it.
    """

    def __init__(self, transport: AsyncTransport, sandbox: str) -> None:
        self._transport, self._root = transport, f"/v1/sandboxes/{quote(sandbox, safe='')}/files"

    async def read(self, path: str, *, user: str | None = None, max_bytes: int = MAX_READ) -> bytes:
        """A regular file's bytes. One of more than ``max_bytes`` is an error."""
        data = bytearray()
        async for part in self.read_parts(path, user=user):
            data += part
            if len(data) > max_bytes:
                raise CofferdamError(
                    f"the file {path!r} has more than {max_bytes} bytes; read it in parts, or give max_bytes"
                )
        return bytes(data)

    async def read_text(self, path: str, *, user: str | None = None, max_bytes: int = MAX_READ) -> str:
        """A file's text, in UTF-8."""
        return (await self.read(path, user=user, max_bytes=max_bytes)).decode()

    async def read_parts(self, path: str, *, user: str | None = None) -> AsyncIterator[bytes]:
        """A file's bytes in parts, as they come."""
        async with self._transport.stream("GET", self._root, query={"path": path, "user": user}) as response:
            try:
                async for part in response.aiter_bytes(_PART):
                    yield part
            except httpx.TransportError as e:
                raise ConnectionLost(f"the file {path!r} could not be read to its end: {e}") from e

    async def write(
        self, path: str, content: bytes | str, *, user: str | None = None, mode: int | None = None
    ) -> FileInfo:
        """Stores content; directories above it are made. The file is replaced in one step, or left as it was."""
        data = octets(content)
        query = {"path": path, "user": user, "mode": None if mode is None else format(mode, "o")}
        headers = {"Content-Type": "application/octet-stream"}
        return decode(
            FileInfo, await self._transport.call("PUT", self._root, query=query, content=data, headers=headers)
        )

    async def stat(self, path: str, *, user: str | None = None) -> FileInfo:
        """Tells of one file; a symbolic link is not followed."""
        return decode(
            FileInfo, await self._transport.call("GET", self._root + "/stat", query={"path": path, "user": user})
        )

    async def exists(self, path: str, *, user: str | None = None) -> bool:
        """Tells whether there is something under a path."""
        try:
            await self.stat(path, user=user)
        except NotFound:
            return False
        return True

    async def list(self, path: str = "~", *, user: str | None = None, depth: int = 1) -> Listing:
        """What is in a directory, in the order of paths."""
        query: dict[str, Any] = {"path": path, "user": user, "depth": depth}
        return [decode(FileInfo, one) async for one in self._transport.lines(self._root + "/list", query=query)]

    async def mkdir(self, path: str, *, user: str | None = None, mode: int = 0o755, exist_ok: bool = True) -> FileInfo:
        """Makes a directory and those above it."""
        body = {"path": path, "mode": mode} | ({"user": user} if user else {})
        try:
            return decode(FileInfo, await self._transport.call("POST", self._root + "/mkdir", body=body))
        except Conflict:
            if not exist_ok:
                raise
            return await self.stat(path, user=user)

    async def move(self, path: str, to: str, *, user: str | None = None) -> FileInfo:
        """Renames."""
        body = {"path": path, "to": to} | ({"user": user} if user else {})
        return decode(FileInfo, await self._transport.call("POST", self._root + "/move", body=body))

    async def remove(self, path: str, *, user: str | None = None) -> None:
        """Removes a file, or a directory with all that is in it."""
        await self._transport.call("DELETE", self._root, query={"path": path, "user": user})
