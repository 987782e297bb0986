"""Where the daemon is, and the program that starts one: as the command line finds them."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from . import _hostfile
from .errors import CofferdamError, DaemonNotFound

ENV_HOST = "COFFERDAM_HOST"
ENV_TOKEN = "COFFERDAM_TOKEN"
ENV_CA = "COFFERDAM_CA"
ENV_BINARY = "COFFERDAM_BINARY"

_START_SECONDS = 90


@dataclass(frozen=True)
class Address:
    """A daemon: a Unix socket, or a URL with a token."""

    socket: str = ""
    url: str = ""
    token: str = ""
    ca: str = ""
    #: The certificates in the file that ca names, as it was read, once; "" without one.
    roots: str = field(default="", repr=False)
    #: It is this user's own, and is started where none runs.
    own: bool = False

    @property
    def where(self) -> str:
        """For people."""
        return self.url or self.socket

    def environment(self) -> dict[str, str]:
        """The variables by which the command line finds the same daemon."""
        env = {k: v for k, v in os.environ.items() if k not in (ENV_HOST, ENV_TOKEN, ENV_CA)}
        if self.own:
            return env
        env[ENV_HOST] = self.url or "unix://" + self.socket
        if self.token:
            env[ENV_TOKEN] = self.token
        if self.ca:
            env[ENV_CA] = self.ca
        return env


def address(host: str | None = None, token: str | None = None, ca: str | None = None) -> Address:
    """The daemon that is named, else the environment's, else this user's own."""
    host = host or os.environ.get(ENV_HOST) or ""
    if not host:
        return Address(socket=str(runtime_directory() / "daemon.sock"), own=True)
    if host.startswith("unix://"):
        path = host[len("unix://") :]
        if not path.startswith("/"):
            raise CofferdamError(f"the daemon's socket {host!r} has to be named by its absolute path: unix:///PATH")
        return Address(socket=path)
    return _remote(host, token or os.environ.get(ENV_TOKEN) or "", ca or os.environ.get(ENV_CA) or "")


def _remote(host: str, token: str, ca: str) -> Address:
    parts = urlsplit(host)
    if not parts.hostname or parts.username or parts.password or parts.path.strip("/") or parts.query:
        raise CofferdamError("the daemon's address is not valid: write https://HOST:PORT")
    if parts.scheme not in ("http", "https"):
        raise CofferdamError("the daemon's address has to begin with https:// (or http:// on this machine)")
    if parts.scheme == "http" and not _local(parts.hostname):
        raise CofferdamError(
            f"the token would go to {parts.hostname} in the clear:"
            " write https:// (http:// is for this machine's own addresses)"
        )
    if not token:
        raise CofferdamError(
            f"the daemon at {parts.netloc} takes only callers with a token: give one, or set {ENV_TOKEN}"
        )
    if not all("!" <= c <= "~" for c in token):
        raise CofferdamError("the token has characters that no token has")
    roots = _hostfile.read_deciding("CA file", ca).decode("ascii", errors="replace") if ca else ""
    return Address(url=f"{parts.scheme}://{parts.netloc}", token=token, ca=ca, roots=roots)


def trust(address: Address) -> ssl.SSLContext:
    """Whom a connection to a daemon on the network trusts: its CA, or the system's without one."""
    if not address.ca:
        return ssl.create_default_context()
    try:
        if not address.roots.strip():
            raise ssl.SSLError("it is empty")
        return ssl.create_default_context(cadata=address.roots)
    except ssl.SSLError as e:
        raise CofferdamError(f"the CA file {address.ca} has no certificates: {e}") from e


def _local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def runtime_directory() -> Path:
    """Where this user's daemon has its socket."""
    named = os.environ.get("COFFERDAM_RUNTIME")
    if named:
        if not os.path.isabs(named):
            raise CofferdamError(f"the directory {named!r} must be an absolute path")
        return Path(named)
    if os.geteuid() == 0:
        return Path("/run/cofferdam")
    session = os.environ.get("XDG_RUNTIME_DIR")
    if session:
        return Path(session) / "cofferdam"
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"cofferdam-{os.geteuid()}"


def check_owner(directory: Path) -> None:
    """Refuses a runtime directory of somebody else, whose daemon would listen there.

    The default may lie in /tmp, where anybody can have made it first.
    """
    try:
        found = _hostfile.look(directory)
    except FileNotFoundError:
        return  # nobody listens; the program that starts the daemon makes it
    except OSError as e:
        raise DaemonNotFound(f"the directory {directory} can't be looked at: {e.strerror}") from e
    if not stat.S_ISDIR(found.st_mode):
        raise DaemonNotFound(f"{directory} is not a directory; remove it or set COFFERDAM_RUNTIME")
    if found.st_uid not in (0, os.geteuid()):
        raise DaemonNotFound(f"{directory} belongs to another user; set COFFERDAM_RUNTIME to a directory of your own")


def check_listener(connection: Any, path: str) -> None:
    """Refuses a connection to this user's own daemon at whose other end another user listens.

    The kernel says who listens, as it does for the command line: others may be able to write to
    the directory that the socket is in.
    """
    try:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        _, uid, _ = struct.unpack("iII", peer)
    except (AttributeError, OSError, struct.error) as e:
        raise DaemonNotFound(f"who listens at {path} can't be found out: {e}") from e
    if uid not in (0, os.geteuid()):
        raise DaemonNotFound(
            f"another user listens there: user {uid}, at {path}; set COFFERDAM_RUNTIME to a directory of your own"
        )


def binary() -> str:
    """The program: $COFFERDAM_BINARY, the one that this package's wheel brought, or the one on the PATH.

    One that an agent could have put there is passed over, as the command line does: a project's own programs
    may come first in the PATH.
    """
    named = os.environ.get(ENV_BINARY)
    if named:
        program = _hostfile.absolute(named)  # a name alone would be looked for in the PATH when it is started
        if not _hostfile.is_program(program):
            raise DaemonNotFound(f"{ENV_BINARY} is {named}, which is no program")
        return program
    refused = []
    for directory, beside in _program_directories():
        candidate = os.path.join(directory, "cofferdam")
        try:
            if _hostfile.is_program(candidate) and all(
                _hostfile.is_program(os.path.join(directory, one)) for one in beside
            ):
                return candidate
        except CofferdamError as e:
            refused.append(str(e))
    why = "".join(f"; {one}" for one in refused)
    raise DaemonNotFound(
        f"there is no program cofferdam on the PATH and none came with this package: install one of its wheels{why}"
    )


def _program_directories() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where the program may be, in their order, and which programs have to be beside it."""
    for scripts in _script_directories():
        yield scripts, ("runsc",)
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        yield directory, ()


def _script_directories() -> list[str]:
    """Where an installer may have put this package's programs."""
    places = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    target = Path(__file__).resolve().parent.parent  # pip install --target
    places += [str(target / "bin"), str(Path(sys.prefix) / "bin")]
    return [p for p in dict.fromkeys(places) if p]


def start() -> None:
    """Starts this user's daemon where none runs. The program does it, under its own lock."""
    program = binary()
    env = Address(own=True).environment()
    with tempfile.TemporaryFile() as said:
        # Its output goes to a file: the daemon must not keep a pipe of ours open.
        try:
            ended = subprocess.run(
                [program, "list", "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=env,
                timeout=_START_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise DaemonNotFound(f"{program} could not start a daemon: {e}") from e
        if ended.returncode != 0:
            said.seek(0)
            why = said.read(8192).decode(errors="replace").strip()
            raise DaemonNotFound(f"{program} could not start a daemon: {why or f'code {ended.returncode}'}")
