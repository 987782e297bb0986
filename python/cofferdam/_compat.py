"""What the two kinds of client do differently: threads here, tasks there."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


async def async_blocking(work: Callable[[], T]) -> T:
    """Does what blocks without blocking the loop."""
    return await asyncio.to_thread(work)


def blocking(work: Callable[[], T]) -> T:
    """Does what blocks."""
    return work()


async def async_unless_cancelled(work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]) -> T:
    """The result of work; where nobody takes it any more, its answer is waited for, and what it did is undone."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(BaseException):  # what was not done need not be undone
            await undo(await task)
        raise


def unless_cancelled(result: T, undo: Callable[[T], None]) -> T:
    """The result: a thread's work is not cancelled."""
    return result


# How long a write to a connection that was lost may take to fail, in seconds.
_SETTLE = 5.0

async_sleep = asyncio.sleep
sleep = time.sleep


class AsyncPump:
    """Writes frames beside the reading, so that neither waits for the other."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]], frames: Iterator[bytes]) -> None:
        self._task = asyncio.ensure_future(self._run(write, frames))

        self.finished = False

    async def _run(self, write: Callable[[bytes], Awaitable[None]], frames: Iterator[bytes]) -> None:
        for one in frames:
            await write(one)
        self.finished = True

    async def settle(self) -> bool:
        """Whether all was written, once the connection was lost: what is being written fails then."""
        await asyncio.wait({self._task}, timeout=_SETTLE)
        return self.finished

    async def stop(self) -> None:
        """Ends it; whether all was written is told by what the command did."""
        self._task.cancel()
        with contextlib.suppress(BaseException):
            await self._task


class Pump:
    """Writes frames beside the reading, so that neither waits for the other."""

    def __init__(self, write: Callable[[bytes], None], frames: Iterator[bytes]) -> None:
        self._write, self._frames, self._over = write, frames, threading.Event()
        #: All was written.
        self.finished = False
        self._thread = threading.Thread(target=self._run, name="cofferdam-input", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # A command that reads no further ends the connection under it.
        with contextlib.suppress(Exception):
            for one in self._frames:
                if self._over.is_set():
                    return
                self._write(one)
            self.finished = True

    def settle(self) -> bool:
        """Whether all was written, once the connection was lost: what is being written fails then."""
        self._thread.join(_SETTLE)
        return self.finished

    def stop(self) -> None:
        """Ends it after the frame that is being written."""
        self._over.set()


class AsyncBeside:
    """Does something beside the caller, until it is done or stopped."""

    def __init__(self, work: Callable[[Callable[[], bool]], Coroutine[Any, Any, None]]) -> None:
        self._over = False
        self._task = asyncio.ensure_future(work(lambda: self._over))

    @property
    def ended(self) -> bool:
        """It is done, or was stopped, or its event loop has ended under it."""
        return self._task.done()

    async def stop(self) -> None:
        """Ends it."""
        self._over = True
        self._task.cancel()
        with contextlib.suppress(BaseException):
            await self._task


class Beside:
    """Does something beside the caller, until it is done or stopped."""

    def __init__(self, work: Callable[[Callable[[], bool]], None]) -> None:
        self._over = False
        self._work = work
        self._thread = threading.Thread(target=self._run, name="cofferdam-presence", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """It is done, or was stopped."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        # What it reads may be closed under it at the end.
        with contextlib.suppress(Exception):
            self._work(lambda: self._over)

    def stop(self) -> None:
        """Has it end at its next turn; a read that is under way ends with its connection."""
        self._over = True
