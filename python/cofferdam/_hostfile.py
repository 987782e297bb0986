"""Files and directories of this host that a person names.

One may lie in a directory that an agent was given to write to, in a run that has long ended, and
the agent may have left a link there. So a path is opened one name at a time, and no link in such a
directory is followed. The daemon keeps a record of these directories. Of another user's agents it
knows nothing, so that a link is also not followed unless it is root's or this user's, where nobody else
may write. Nothing else in this package
opens, resolves or looks at a path by its name (``tests/test_paths.py``).
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from . import _mounttable
from .errors import CofferdamError

#: How many links a path may lead through; the kernel's own bound.
_MOST_LINKS = 40

#: How large a document may be that is read whole; the command line's own bound.
MOST_BYTES = 1 << 20

#: How large the daemon's record of directories may be; the daemon's own bound.
_MOST_RECORD = 64 << 20

#: Opening does not wait: a named pipe has no writer until an agent wants it to.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def state_directory() -> Path | None:
    """Where this user's daemon keeps its state; None if that is not known."""
    named = os.environ.get("COFFERDAM_STATE")
    if not named:
        if os.geteuid() == 0:
            return Path("/var/lib/cofferdam")
        above = os.environ.get("XDG_STATE_HOME")
        home = os.environ.get("HOME")
        if not above and not home:
            return None
        named = os.path.join(above or os.path.join(home or "", ".local", "state"), "cofferdam")
    return Path(named) if os.path.isabs(named) else None


@dataclass(frozen=True)
class Found:
    """Where a path led when it was followed."""

    name: str  # absolute, without links
    is_directory: bool


class _Tree:
    """A directory that some sandbox was given to write to."""

    def __init__(self, path: str, device: int, inode: int, birth: int, covered: dict[str, str] | None = None) -> None:
        self.path, self.device, self.inode, self.birth = path, device, inode, birth
        #: Names directly in it that no sandbox could write, each with the mark of what it was, or "".
        self._covered = covered or {}

    def has(self, name: str, descriptor: int) -> bool:
        """Whether a directory on the way is this one, or below it, under whatever name."""
        if _mounttable.is_below(name, self.path):
            return True
        found = os.fstat(descriptor)
        if self.inode == 0 or self.inode != found.st_ino:
            return False
        # Another may have its inode by now, and its device another number since the host's start.
        birth = _birth(descriptor) if self.birth else 0
        return birth == self.birth if birth else self.device == found.st_dev

    def covers(self, name: str, descriptor: int) -> bool:
        """Whether something directly in it, as what is open has that name, was read-only for whoever wrote in the tree.

        A mark that is no longer its own tells that the cover went with what it lay over.
        """
        was = self._covered.get(name)
        if not was:
            return was is not None
        parts = was.split(",")
        return len(parts) == 5 and parts == _mark(descriptor, parts)

    def covers_name(self, name: str) -> bool:
        """Whether a name at or below it is covered, or below what is."""
        first = name[len(self.path.rstrip("/")) :].strip("/").split("/")[0]
        if not first or first not in self._covered:
            return False
        try:
            descriptor = os.open(os.path.join(self.path, first), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return self.covers(first, descriptor)
        finally:
            os.close(descriptor)


def _mark(descriptor: int, was: list[str]) -> list[str]:
    """What is open, as a mark has it: its type, device, inode, birth, and last change where no birth is known."""
    found = os.fstat(descriptor)
    kind = "dir" if stat.S_ISDIR(found.st_mode) else "file" if stat.S_ISREG(found.st_mode) else ""
    if was[3] != "0":  # a device may have another number after the host's start
        return [kind, was[1], str(found.st_ino), str(_birth(descriptor)), "0"]
    return [kind, str(found.st_dev), str(found.st_ino), "0", str(found.st_ctime_ns)]


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
        if not _is_own(os.lstat(state)):
            return [_Tree("/", 0, 0, 0)]
        text = _content(os.open(state / "written", _READ | os.O_NOFOLLOW), _MOST_RECORD)
        found = []
        for line in text[: text.rfind(b"\n") + 1].splitlines():  # the last may be half written
            one = json.loads(line)
            known = one.get("id", {})
            marks = one["marks"].split("/") if one.get("marks") else []
            covered = {}
            for at, name in enumerate(one["covered"].split("/") if one.get("covered") else []):
                if not marks or at < len(marks):
                    covered[name] = marks[at] if marks else ""
            found.append(
                _Tree(one["path"], known.get("device", 0), known.get("inode", 0), known.get("birth", 0), covered)
            )
        return found
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [_Tree("/", 0, 0, 0)]


def _is_own(info: os.stat_result) -> bool:
    """Whether it is a directory in which this user alone writes, as the command line has it."""
    others = info.st_mode & 0o002 or (info.st_mode & 0o020 and info.st_gid != os.getegid())
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and not others


_ACL_USER, _ACL_GROUP, _ACL_WRITE = 0x02, 0x08, 0x2  # acl(5)


def _is_open_to_others(found: os.stat_result, descriptor: int) -> bool:
    """Whether others than its owner, root's group and this process's may write what is there.

    Where everybody may write but only the owner rename, as in /tmp, what is there is its owner's. Nobody writes where a
    mount is read-only.
    """
    directory = stat.S_ISDIR(found.st_mode)
    if not found.st_mode & 0o022 or not (directory or stat.S_ISREG(found.st_mode)):
        return False
    if (directory and found.st_mode & stat.S_ISVTX) or os.fstatvfs(descriptor).f_flag & os.ST_RDONLY:
        return False
    if found.st_mode & 0o002 or found.st_gid not in (0, os.getegid()):
        return True
    try:
        entries = os.getxattr(f"/proc/self/fd/{descriptor}", "system.posix_acl_access")[4:]
    except OSError as e:
        if e.errno in (errno.ENODATA, errno.ENOTSUP):
            return False
        raise
    for at in range(0, len(entries) - 7, 8):
        tag, rights, who = struct.unpack_from("<HHI", entries, at)
        own = {_ACL_USER: os.geteuid(), _ACL_GROUP: os.getegid()}.get(tag, who)
        if rights & _ACL_WRITE and who not in (0, own):
            return True
    return False


def _overflow_uid() -> int:
    """What a user namespace shows for each user that it has no number for: root, where / has it, and every other."""
    try:
        return int(_content(os.open("/proc/sys/kernel/overflowuid", _READ), 64))
    except (OSError, ValueError):
        return 65534


def _is_roots(name: str) -> bool:
    """Whether root alone makes what has such a path, by the usual order of a host."""
    first, _, below = name.removeprefix("/").partition("/")
    return not below or first in ("bin", "boot", "etc", "lib", "lib32", "lib64", "libx32", "nix", "sbin", "usr")


def look(path: str | os.PathLike[str]) -> os.stat_result:
    """What is at a path of this installation's own; a link is itself."""
    return os.lstat(path)


def read(what: str, path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Reads a regular file of at most a number of bytes; what it is goes into the messages."""
    at = _from_here(what, path)
    try:
        return _content(_open(at), most)
    except (OSError, ValueError) as e:
        raise CofferdamError(f"the {what} {at} can't be read: {_because(e)}") from e


def read_deciding(what: str, path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """:func:`read` of a file that decides whom this process believes.

    One that an agent could have written, or another user of this host, decides only if a person has seen it as it is:
    the daemon's list of such files has its digest.
    """
    if not hasattr(os, "O_PATH"):  # sandboxes write to hosts with Linux only
        return read(what, path, most)
    at = _from_here(what, path)
    try:
        with _Walk(at, _trees()) as walk:
            text = _content(walk.reader(), most)
            tree, stranger = walk.tree(), walk.stranger()
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        if not (tree or stranger) or _vouched().get(os.path.normpath(at), {}).get("digest") == digest:
            return text
    except (OSError, ValueError, AttributeError) as e:
        raise CofferdamError(f"the {what} {at} can't be read: {_because(e)}") from e
    why = f"lies under {tree}, where an agent may write, or could" if tree else f"may be an agent's, because {stranger}"
    raise CofferdamError(
        f"the {what} {at} {why}, and nobody has seen what is in it now: read it, and say so: "
        f"cofferdam project allow {at} (its digest is {digest})"
    )


def _vouched() -> dict[str, dict[str, str]]:
    """What people have seen, by paths; the command line and the daemon write it."""
    state = state_directory()
    if state is None:
        return {}
    try:
        if not _is_own(os.lstat(state)):
            return {}
        known: dict[str, dict[str, str]] = json.loads(
            _content(os.open(state / "vouched.json", _READ | os.O_NOFOLLOW), _MOST_RECORD)
        )
    except FileNotFoundError:
        return {}
    return known


def find(what: str, path: str | os.PathLike[str]) -> Found:
    """Follows a path to a file or directory, and through no link that an agent could have left."""
    at = _from_here(what, path)
    try:
        if not hasattr(os, "O_PATH"):  # sandboxes write to hosts with Linux only
            name = os.path.realpath(at)
            return Found(name, stat.S_ISDIR(os.lstat(name).st_mode))
        with _Walk(at, _trees()) as walk:
            walk.go()
            kind = os.fstat(walk.descriptor).st_mode
            if not stat.S_ISDIR(kind) and not stat.S_ISREG(kind):
                raise ValueError("it is neither a file nor a directory")
            return Found(walk.name, stat.S_ISDIR(kind))
    except (OSError, ValueError) as e:
        raise CofferdamError(f"the {what} {at} can't be read: {_because(e)}") from e


def is_program(path: str) -> bool:
    """Whether a path leads to a program of this host that no agent could have put there, or led there.

    One that lies in a directory that some sandbox was given to write to is a CofferdamError, as is one that is
    reached through a link of such a directory.
    """
    if not os.path.isabs(path) or not os.access(path, os.X_OK) or os.path.isdir(path):
        return False
    if not hasattr(os, "O_PATH"):  # sandboxes write to hosts with Linux only
        return True
    try:
        with _Walk(path, _trees()) as walk:
            walk.go()
            tree = walk.tree()
    except (OSError, ValueError) as e:
        raise CofferdamError(f"the program {path} can't be looked at: {_because(e)}") from e
    if tree is not None:
        raise CofferdamError(
            f"the program {path} lies under {tree}, which some sandbox was given to write to, so that an agent could "
            "have put it there; keep it elsewhere"
        )
    return True


def names(path: str | os.PathLike[str]) -> set[str]:
    """A path of the system's own as it is, and where it leads; nothing is opened by it."""
    at = os.path.join("/", os.fspath(path))
    return {at, os.path.realpath(at)}


def absolute(path: str | os.PathLike[str]) -> str:
    """A path from the directory that this process is in. A ".." is left in it: it climbs from where a link led."""
    return _from_here("path", path)


def _from_here(what: str, path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    if not name:
        raise CofferdamError(f"the {what} has no name")
    try:
        return name if os.path.isabs(name) else os.path.join(os.getcwd(), name)
    except OSError as e:
        raise CofferdamError(f"the {what} {name} can't be read: the current directory: {e.strerror}") from e


def _because(e: Exception) -> str:
    return (e.strerror if isinstance(e, OSError) else "") or str(e)


def _content(descriptor: int, most: int) -> bytes:
    """All of a regular file, whose descriptor this closes."""
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it has more than {most} bytes")
    return text


def _open(path: str) -> int:
    """Opens a file for reading."""
    if not hasattr(os, "O_PATH"):  # sandboxes write to hosts with Linux only
        return os.open(path, _READ)
    with _Walk(path, _trees()) as walk:
        return walk.reader()


class _Walk:
    """The way to a path, one name at a time, each by the descriptor of the one before."""

    def __init__(self, path: str, trees: list[_Tree]) -> None:
        self._flags = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
        self._path, self._trees, self._links = path, trees, 0
        self._stack: list[tuple[str, int]] = [("/", os.open("/", self._flags))]

    def __enter__(self) -> _Walk:
        return self

    def __exit__(self, *error: object) -> None:
        for _, descriptor in self._stack:
            os.close(descriptor)

    @property
    def name(self) -> str:
        """Where the walk is, without links."""
        return self._stack[-1][0]

    @property
    def descriptor(self) -> int:
        """What is open there (O_PATH), until the walk ends."""
        return self._stack[-1][1]

    def tree(self) -> str | None:
        """The directory that an agent could write to in which the walk is, or None."""
        tree = self._within()
        return None if tree is None else tree.path

    def stranger(self, *others: tuple[str, os.stat_result]) -> str | None:
        """The first place on the way in which somebody other than root and this user decides, and why, or None.

        Every directory counts: whoever may rename one can put a link of somebody trusted where it was not meant to be.
        """
        root = os.fstat(self._stack[0][1]).st_uid  # who owns / decides everything anyway
        way = [(name, os.fstat(descriptor), descriptor) for name, descriptor in self._stack]
        for name, found, descriptor in [*way, *((name, found, -1) for name, found in others)]:
            roots = found.st_uid == root and (root != _overflow_uid() or _is_roots(name))
            if found.st_uid not in (0, os.geteuid()) and not roots:
                return f"{name} belongs to user {found.st_uid}, whose agents are not known here"
            if descriptor >= 0 and _is_open_to_others(found, descriptor):
                return f"others can write to {name}, and their agents are not known here"
        return None

    def reader(self) -> int:
        """Goes to the path's end, and opens the regular file there for reading."""
        self.go()
        if not stat.S_ISREG(os.fstat(self.descriptor).st_mode):  # a device's opening may do something
            raise ValueError("it is no regular file")
        # What is open is opened for reading, and nothing that has its name by now.
        return os.open(f"/proc/self/fd/{self.descriptor}", _READ)

    def go(self) -> None:
        """Goes to the path's end."""
        rest = self._path.split("/")
        while rest:
            rest = self._step(rest[0]) + rest[1:]

    def _step(self, name: str) -> list[str]:
        """Goes to the next name. Of a link it returns where that leads."""
        if name in ("", "."):
            return []
        if name == "..":
            if len(self._stack) > 1:
                os.close(self._stack.pop()[1])
            return []
        full = os.path.join(self.name, name)
        self._stack.append((full, os.open(name, self._flags, dir_fd=self.descriptor)))
        if not stat.S_ISLNK(os.fstat(self.descriptor).st_mode):
            return []
        target = os.readlink("", dir_fd=self.descriptor)
        link = os.fstat(self.descriptor)
        os.close(self._stack.pop()[1])
        self._check(full, link)
        self._links += 1
        if self._links > _MOST_LINKS:
            raise ValueError(f"it leads through more than {_MOST_LINKS} links")
        while target.startswith("/") and len(self._stack) > 1:
            os.close(self._stack.pop()[1])
        return target.split("/")

    def _check(self, link: str, found: os.stat_result) -> None:
        """Refuses a link of the directory that the walk is in, if an agent could have put it there."""
        tree = self._within()
        if tree is not None:
            raise CofferdamError(
                f"{self._path} leads through {link}, a link under {tree.path}, which some sandbox was given to write "
                "to, so that an agent could have put it there; name what it leads to"
            )
        stranger = self.stranger((link, found))
        if stranger is not None:
            raise CofferdamError(
                f"{self._path} leads through the link {link}, and {stranger}, so that an agent could have put it "
                "there; name what it leads to"
            )

    def _within(self) -> _Tree | None:
        asked = []  # trees that the walk is not known to be in, or whose cover it is below
        for tree in self._trees:
            for at, (name, descriptor) in enumerate(self._stack):
                if not tree.has(name, descriptor):
                    continue
                below = self._stack[at + 1 : at + 2]
                if not below or not tree.covers(os.path.basename(below[0][0]), below[0][1]):
                    return tree
                break
            asked.append(tree)
        if not asked:
            return None
        table = _mounttable.read()  # a part of a tree may be mounted elsewhere, also elsewhere in the tree itself
        for tree in asked:
            if not all(tree.covers_name(name) for name in table.names_under(self.name, tree.path)):
                return tree
        return None
