# Made by tools/unasync.py of the file of this name in _async: change that one.
"""A command of a sandbox: what it writes, its input, its end."""

from __future__ import annotations

import codecs
import json
import logging
from collections.abc import Iterator, Callable
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpcore
import httpx

from .. import _frames
from .._compat import Pump, sleep
from .._decode import decode
from .._models import Alarm, CommandResult, Exit
from ..errors import Conflict, ConnectionLost, DaemonNotFound, NotFound, ProtocolError
from .alarms import AlarmNews, warn
from .transport import Transport

logger = logging.getLogger("cofferdam")

Output = Callable[[str], object]

#: Kept of each output of a command, in bytes; what is more is dropped, and the result says so.
MAX_OUTPUT = 64 << 20
_READ = _frames.MAX_PAYLOAD + 5
_LOST = (httpcore.ReadError, httpcore.WriteError, httpx.TransportError, OSError)

# How hard a lost connection is sought again: as the command line does.
_RETRIES = 5
_PAUSE = 0.2


class Collected:
    """What came of one output, whole and as text for a callback."""

    def __init__(self, most: int, heard: Output | None) -> None:
        self._most, self._heard = most, heard
        self._parts: list[bytes] = []
        self._size = 0
        self.dropped = False
        self._text = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, data: bytes) -> None:
        """Takes bytes as they come."""
        kept = data[: max(0, self._most - self._size)]
        if kept:
            self._parts.append(kept)
            self._size += len(kept)
        self.dropped = self.dropped or len(kept) < len(data)
        if self._heard is not None:
            text = self._text.decode(data)
            if text:
                self._heard(text)

    def end(self) -> bytes:
        """All that was kept."""
        if self._heard is not None:
            rest = self._text.decode(b"", final=True)
            if rest:
                self._heard(rest)
        return b"".join(self._parts)


class Process:
    """A command that was started. ``wait`` is for one caller; ``kill`` for any, beside it."""

    def __init__(
        self,
        transport: Transport,
        sandbox: str,
        id: str,
        argv: list[str],
        started: datetime,
        alarms: AlarmNews | None = None,
    ) -> None:
        self._transport, self._sandbox, self._alarms = transport, sandbox, alarms
        self.id, self.argv, self.started = id, argv, started
        #: Alarms that came meanwhile are asked for when it has ended, and logged as warnings.
        self.asks, self.warns = True, True
        self._stream: Any = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self._sandbox}>"

    def wait(
        self,
        *,
        input: bytes | None = None,
        on_stdout: Output | None = None,
        on_stderr: Output | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> CommandResult:
        """Follows the command to its end. A connection that is lost is made again where it was.

        ``input`` is written once. Where the connection is lost before all of it was, nobody knows
        how much has arrived: that raises :class:`ConnectionLost`, and the command may wait for
        the rest until it is killed. Where all of it was written, it counts as arrived: what a
        daemon that was killed had not passed on is missing, and nobody is told.

        Alarms of the sandbox that came since its last command are in the result, and are logged.
        """
        result = self._collect(input, on_stdout, on_stderr, max_output)
        return replace(result, alarms=self.alarms()) if self.asks else result

    def alarms(self) -> list[Alarm]:
        """The alarms of the sandbox that came since its last command, each once; they are logged."""
        found = [] if self._alarms is None else self._alarms.news()
        if self.warns:
            warn(found)
        return found

    def _collect(
        self, input: bytes | None, on_stdout: Output | None, on_stderr: Output | None, max_output: int
    ) -> CommandResult:
        out, err = Collected(max_output, on_stdout), Collected(max_output, on_stderr)
        offset, lost, gap = 0, 0, False
        rest = input  # to be written to the next attachment; None: nothing
        while True:
            before = offset
            pump: Pump | None = None
            whole = True  # what was to be written was
            if lost > 1:
                sleep(_PAUSE * 2 ** (lost - 2))
            try:
                with self._attached(offset) as stream:
                    if rest is not None:
                        pump = Pump(self._write, _frames.input_frames(rest))
                    try:
                        for kind, payload in self._frames(stream):
                            if kind == _frames.STDOUT:
                                offset += len(payload)
                                out.add(payload)
                            elif kind == _frames.STDERR:
                                offset += len(payload)
                                err.add(payload)
                            elif kind == _frames.GAP:
                                size = _frames.gap_of(payload)
                                offset, gap = offset + size, gap or size > 0
                            elif kind == _frames.EXIT:
                                return self._result(payload, out, err, gap)
                    except (ConnectionLost, *_LOST):
                        whole = pump is None or pump.settle()
                        raise
                    finally:
                        if pump is not None:
                            pump.stop()
            except (ConnectionLost, DaemonNotFound, *_LOST) as e:
                if rest and not whole:
                    raise ConnectionLost(
                        f"the connection was lost before the command {self.id} had all of its input; kill it: {e}"
                    ) from e
                if isinstance(e, DaemonNotFound) and self._transport.address.own:
                    raise  # it was started anew in vain, or another user listens there
                if pump is not None:
                    # It is not sent a second time, but for its end, which may have been lost with the
                    # connection: the command would wait for it for ever. Twice does no harm.
                    rest = b""
                lost = 1 if offset > before else lost + 1
                if lost > _RETRIES:
                    raise ConnectionLost(f"the command {self.id} was lost: {e}") from e

    def _result(self, payload: bytes, out: Collected, err: Collected, gap: bool) -> CommandResult:
        try:
            end = decode(Exit, json.loads(payload))
        except ValueError:
            raise ProtocolError(f"the daemon sent an exit that can't be read: {payload[:80]!r}") from None
        stdout, stderr = out.end(), err.end()
        code = end.code if not end.error or end.code else -1
        return CommandResult(
            exit_code=code,
            stdout=stdout.decode(errors="replace"),
            stderr=stderr.decode(errors="replace"),
            timed_out=end.timed_out,
            signal=end.signal,
            error=end.error,
            truncated=gap or end.truncated or out.dropped or err.dropped,
            command_id=self.id,
            started=self.started,
            stdout_bytes=stdout,
            stderr_bytes=stderr,
        )

    def kill(self, signal: str = "KILL") -> None:
        """Sends a signal to the command and all that it has started; one that has ended is no error.

        It waits behind no input. It returns when the sandbox says that it is done: of KILL, that
        all of it is gone. A sandbox that does not say so raises :class:`Unavailable`: the command
        may run on, and killing the sandbox is what is sure.
        """
        path = self._path()
        body = {"name": signal, "tree": True}
        kills = signal.removeprefix("SIG") == "KILL"  # of the others a second one may ask for something else
        try:
            self._transport.call("POST", path + "/signal", body=body, again=kills)
        except Conflict:
            if (self._transport.call("GET", path)).get("exit") is None:
                raise

    def abandon(self, why: BaseException) -> None:
        """Ends a command that nobody follows any more because of ``why``, which says if that is not confirmed."""
        try:
            self.kill()
        except NotFound:  # it is gone, and the sandbox perhaps, too
            pass
        except Exception as e:
            note = (
                f"the command {self.id} was killed, and that is not confirmed ({e}): it may run on;"
                f" kill the sandbox {self._sandbox} to be sure"
            )
            logger.warning("%s", note)
            if hasattr(why, "add_note"):  # since Python 3.11
                why.add_note(note)

    def _write(self, data: bytes) -> None:
        stream = self._stream
        if stream is None:
            raise ConnectionLost("nothing is attached to the command")
        stream.write(data, timeout=None)

    def _path(self) -> str:
        return f"/v1/sandboxes/{quote(self._sandbox, safe='')}/commands/{quote(self.id, safe='')}"

    @contextmanager
    def _attached(self, offset: int) -> Iterator[Any]:
        path = self._path() + "/attach"
        wanted = {"Connection": "Upgrade", "Upgrade": "cofferdam-frames"}
        with self._transport.stream(
            "GET", path, query={"offset": offset}, headers=wanted, upgrade=True
        ) as response:
            if response.headers.get("upgrade") != "cofferdam-frames":
                raise ProtocolError("the daemon does not speak frames on this connection")
            self._stream = response.extensions["network_stream"]
            try:
                yield self._stream
            finally:
                self._stream = None

    def _frames(self, stream: Any) -> Iterator[tuple[int, bytes]]:
        reader = _frames.Reader()
        while True:
            data = stream.read(_READ, timeout=None)
            if not data:
                raise ConnectionLost("the connection to the daemon ended before the command did")
            for one in reader.feed(data):
                yield one
