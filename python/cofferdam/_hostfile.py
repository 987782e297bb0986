"""Files of this host that a person names.

One may lie in a directory that an agent was given to write to, in a run that has long ended, and
the agent may have left a link there. So a path is opened one name at a time, and no link in such a
directory is followed. The daemon keeps a record of these directories.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import struct
from pathlib import Path

from .errors import CofferdamError

#: How many links a path may lead through; the kernel's own bound.
_MOST_LINKS = 40


def state_directory() -> Path | None:
    """Where this user's daemon keeps its state; None if that is not known."""
    named = os.environ.get("COFFERDAM_STATE")
    if named:
        return Path(named) if os.path.isabs(named) else None
    if os.geteuid() == 0:
        return Path("/var/lib/cofferdam")
    state = os.environ.get("XDG_STATE_HOME")
    if state:
        return Path(state) / "cofferdam"
    home = os.environ.get("HOME")
    return Path(home) / ".local" / "state" / "cofferdam" if home else None


class _Tree:
    """A directory that some sandbox was given to write to."""

    def __init__(self, path: str, device: int, inode: int, birth: int) -> None:
        self.path, self.device, self.inode, self.birth = path, device, inode, birth

    def has(self, name: str, descriptor: int) -> bool:
        """Whether a directory on the way is this one, or below it, under whatever name."""
        if name == self.path or name.startswith(self.path.rstrip("/") + "/"):
            return True
        found = os.fstat(descriptor)
        if self.inode == 0 or self.inode != found.st_ino:
            return False
        # Another may have its inode by now, and its device another number since the host's start.
        birth = _birth(descriptor) if self.birth else 0
        return birth == self.birth if birth else self.device == found.st_dev


_AT_EMPTY_PATH, _STATX_BTIME = 0x1000, 0x800


def _birth(descriptor: int) -> int:
    """When what is open was made, in nanoseconds since 1970; 0 where that is not told."""
    buffer = ctypes.create_string_buffer(256)  # struct statx
    try:
        if ctypes.CDLL(None).statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) != 0:
            return 0
    except (OSError, AttributeError):  # a C library without it
        return 0
    (told,) = struct.unpack_from("=I", buffer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, 80)
    return int(seconds) * 10**9 + int(nanoseconds) if told & _STATX_BTIME else 0


def _trees() -> list[_Tree]:
    """The directories in which agents may have left links; if that is not known it is everywhere."""
    state = state_directory()
    if state is None:
        return [_Tree("/", 0, 0, 0)]
    try:
        if state.lstat().st_uid != os.geteuid():
            return [_Tree("/", 0, 0, 0)]
        text = (state / "written").read_bytes()
        found = []
        for line in text[: text.rfind(b"\n") + 1].splitlines():  # the last may be half written
            one = json.loads(line)
            known = one.get("id", {})
            found.append(_Tree(one["path"], known.get("device", 0), known.get("inode", 0), known.get("birth", 0)))
        return found
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [_Tree("/", 0, 0, 0)]


def read(what: str, path: str | os.PathLike[str]) -> bytes:
    """Reads a file; what it is goes into the messages."""
    at = os.path.join(os.getcwd(), os.fspath(path))
    try:
        trees = _trees() if hasattr(os, "O_PATH") else []  # sandboxes write to hosts with Linux only
        if not trees:
            return Path(at).read_bytes()
        descriptor = _open(at, trees)
        with open(descriptor, "rb") as file:
            return file.read()
    except OSError as e:
        raise CofferdamError(f"the {what} {at} can't be read: {e.strerror}") from e


def _open(path: str, trees: list[_Tree]) -> int:
    """Opens a file one name at a time, each by the descriptor of the one before."""
    flags = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
    stack: list[tuple[str, int]] = [("/", os.open("/", flags))]
    rest = path.split("/")
    links = 0
    try:
        while rest:
            name = rest.pop(0)
            if name in ("", "."):
                continue
            if name == "..":
                if len(stack) > 1:
                    os.close(stack.pop()[1])
                continue
            full = os.path.join(stack[-1][0], name)
            stack.append((full, os.open(name, flags, dir_fd=stack[-1][1])))
            if not stat.S_ISLNK(os.fstat(stack[-1][1]).st_mode):
                continue
            target = os.readlink("", dir_fd=stack[-1][1])
            os.close(stack.pop()[1])
            _check(path, full, stack, trees)
            links += 1
            if links > _MOST_LINKS:
                raise CofferdamError(f"{path} leads through more than {_MOST_LINKS} links")
            while target.startswith("/") and len(stack) > 1:
                os.close(stack.pop()[1])
            rest = target.split("/") + rest
        # What is open is opened for reading, and nothing that has its name by now.
        return os.open(f"/proc/self/fd/{stack[-1][1]}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for _, descriptor in stack:
            os.close(descriptor)


def _check(path: str, link: str, stack: list[tuple[str, int]], trees: list[_Tree]) -> None:
    for name, descriptor in stack:
        for tree in trees:
            if tree.has(name, descriptor):
                raise CofferdamError(
                    f"{path} leads through {link}, a link under {tree.path}, which some sandbox was given to write "
                    "to, so that an agent could have put it there; name what it leads to"
                )
