"""This host's table of mounts: the same directory may be mounted at several places."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_ESCAPED = re.compile(r"\\(040|011|012|134)")


def is_below(path: str, root: str) -> bool:
    """Whether a path is a directory or lies below it. Both are clean."""
    return path == root or path.startswith(root.rstrip("/") + "/")


@dataclass(frozen=True)
class Mounted:
    """A line of mountinfo(5)."""

    id: str
    parent: str
    device: str
    root: str  # what of the device is shown
    at: str  # where


class Table:
    """The mounts, the lower ones first."""

    def __init__(self, mounts: list[Mounted]) -> None:
        self._mounts = mounts
        self._ids = {m.id for m in mounts}

    def _mount_of(self, path: str) -> Mounted | None:
        """The mount in which a path lies, found as the kernel does it, from mount to mount on the way."""
        on: Mounted | None = None
        for _ in range(len(self._mounts) + 1):  # no mount is passed twice
            following: Mounted | None = None
            for one in self._mounts:
                if not is_below(path, one.at) or (following and len(one.at) > len(following.at)):
                    continue
                if on is None:  # where the way begins: no mount that this process sees bears it
                    goes = one.id == one.parent or one.parent not in self._ids
                else:
                    goes = one.parent == on.id and one.id != on.id
                if goes:
                    following = one
            if following is None:
                break
            on = following
        return on

    def _spot_of(self, path: str) -> tuple[str, str] | None:
        """A path's device and its name there, which are the same wherever it is mounted."""
        mount = self._mount_of(path)
        if mount is None:
            return None
        return mount.device, _joined(mount.root, path, mount.at)

    def names_under(self, path: str, directory: str) -> list[str]:
        """All names below a directory by which a path is to be found, its own among them if it lies there."""
        names = [path] if is_below(path, directory) else []
        spot = self._spot_of(path)
        if spot is None:
            return names
        shown = [(m.device, m.root, m.at) for m in self._mounts if is_below(m.at, directory)]
        own = self._spot_of(directory)
        if own is not None:
            shown.append((*own, directory))
        for device, root, at in shown:
            if device == spot[0] and is_below(spot[1], root):
                names.append(_joined(at, spot[1], root))
        return list(dict.fromkeys(names))


def _joined(root: str, path: str, at: str) -> str:
    rest = path[len(at.rstrip("/")) :].strip("/")
    return (root.rstrip("/") + "/" + rest).rstrip("/") or "/"


def read() -> Table:
    """This thread's table. Without it an OSError: nobody knows then what a name leads to."""
    descriptor = os.open("/proc/thread-self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return parse(os.fsdecode(file.read()))


def parse(text: str) -> Table:
    """Reads mountinfo(5)."""
    mounts = []
    for line in text.split("\n"):  # nothing else ends one: a name may have any other character
        fields = line.split(" ")
        if len(fields) > 4:
            id, parent, device, root, at = fields[:5]
            mounts.append(Mounted(id, parent, device, _plain(root), _plain(at)))
    return Table(mounts)


def _plain(escaped: str) -> str:
    return _ESCAPED.sub(lambda m: chr(int(m.group(1), 8)), escaped)
