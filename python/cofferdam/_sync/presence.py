# Made by tools/unasync.py of the file of this name in _async: change that one.
"""That a program is there: the sandboxes that it has made end without it."""

from __future__ import annotations

from collections.abc import Callable

from .._compat import sleep
from ..errors import CofferdamError, NotFound
from .transport import Transport

# How long after a lost connection the next is made, in seconds: at first, and at most. Another
# daemon that takes the sandbox over gives it its whole lease anew.
_FIRST, _LONGEST = 0.2, 5.0


def present(transport: Transport, path: str) -> Callable[[Callable[[], bool]], None]:
    """Work that keeps a connection to the daemon, by which it knows that this program is there."""

    def work(over: Callable[[], bool]) -> None:
        pause = _FIRST
        while not over():
            try:
                # What the sandbox waits for is told on it, too, which is for whoever asks for it.
                for _ in transport.lines(path, query={"watch": 1, "stay": 1}, start=False):
                    pause = _FIRST
            except NotFound:
                return  # the sandbox is gone
            except CofferdamError:
                pass  # the daemon may come back
            if not over():
                sleep(pause)
            pause = min(2 * pause, _LONGEST)

    return work
