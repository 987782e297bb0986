"""What the two kinds of client do differently: threads here, tasks there."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def async_blocking(work: Callable[[], T]) -> T:
    """Does what blocks without blocking the loop."""
    return await asyncio.to_thread(work)


def blocking(work: Callable[[], T]) -> T:
    """Does what blocks."""
    return work()


async_sleep = asyncio.sleep
sleep = time.sleep


class AsyncPump:
    """Writes frames beside the reading, so that neither waits for the other."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]], frames: Iterator[bytes]) -> None:
        self._task = asyncio.ensure_future(self._run(write, frames))

    @staticmethod
    async def _run(write: Callable[[bytes], Awaitable[None]], frames: Iterator[bytes]) -> None:
        for one in frames:
            await write(one)

    async def stop(self) -> None:
        """Ends it; whether all was written is told by what the command did."""
        self._task.cancel()
        with contextlib.suppress(BaseException):
            await self._task


class Pump:
    """Writes frames beside the reading, so that neither waits for the other."""

    def __init__(self, write: Callable[[bytes], None], frames: Iterator[bytes]) -> None:
        self._write, self._frames, self._over = write, frames, threading.Event()
        self._thread = threading.Thread(target=self._run, name="cofferdam-input", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # A command that reads no further ends the connection under it.
        with contextlib.suppress(Exception):
            for one in self._frames:
                if self._over.is_set():
                    return
                self._write(one)

    def stop(self) -> None:
        """Ends it after the frame that is being written."""
        self._over.set()
