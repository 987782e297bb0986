"""The alarms of a sandbox, of which each client is told once."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .._decode import decode
from .._models import Alarm, Alarms
from ..errors import CofferdamError, NotFound
from .transport import AsyncTransport

logger = logging.getLogger("cofferdam")

#: How long a command's end waits to hear of alarms, in seconds, and how many of them are told.
_TIME = 5.0
_LINES = 5


class AsyncAlarmNews:
    """The alarms of one sandbox that come after it is watched."""

    def __init__(self, transport: AsyncTransport, sandbox: str) -> None:
        self._transport, self._sandbox = transport, sandbox
        # Where those begin that are news; None: it was not asked yet, "": the daemon can't say.
        self._after: str | None = None
        self._told: dict[int, object] = {}

    async def _ask(self, after: str) -> Alarms:
        query = {"sandbox": self._sandbox, "after": after}
        return decode(Alarms, await self._transport.call("GET", "/v1/alarms", query=query, timeout=_TIME))

    async def watch(self) -> None:
        """Notes where the alarms begin that are news, before a command is started."""
        if self._after is not None:
            return
        try:
            self._after = (await self._ask("")).next
        except NotFound:  # the daemon is an older one
            self._after = ""
        except CofferdamError:
            pass  # it is asked again, and the command's end tells that it is not known

    async def news(self) -> list[Alarm]:
        """Those that came since, each once."""
        after = self._after
        if after == "":
            return []
        try:
            if after is None:
                raise CofferdamError("the daemon did not say where they begin")
            told = await self._ask(after)
        except NotFound:  # an older daemon came, or it knows nothing of the sandbox any more
            return []
        except CofferdamError as e:
            logger.warning("it is not known whether there was an alarm, since that could not be asked: %s", e)
            return []
        self._after = told.next
        mine = object()  # commands that end at one time are told of each alarm but once together
        return [a for a in told.alarms if self._told.setdefault(a.seq, mine) is mine]


def warn(alarms: Sequence[Alarm]) -> None:
    """Logs alarms as warnings."""
    for alarm in alarms[:_LINES]:
        logger.warning("%s", alarm)
    if len(alarms) > _LINES:
        logger.warning("and %d ALARMS more", len(alarms) - _LINES)
