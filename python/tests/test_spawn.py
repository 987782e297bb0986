"""A command whose start was given up runs on in no sandbox that is kept: the MCP server waits for the answer and ends it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from cofferdam import AsyncClient, AsyncSandbox
from cofferdam._async.transport import AsyncTransport
from cofferdam._find import Address
from cofferdam.errors import ConnectionLost, DaemonNotFound

from .test_stub import STARTED, information, says


def test_a_cancelled_start_ends_the_command(tmp_path: Path) -> None:
    path = str(tmp_path / "daemon.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    asked, given_up = threading.Event(), threading.Event()
    heads: list[str] = []

    def serve() -> None:
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            with conn:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += conn.recv(65536)
                heads.append(data.split(b"\r\n")[0].decode())
                try:
                    if heads[-1].split()[1].endswith("/commands"):  # the daemon has started it
                        asked.set()
                        given_up.wait()
                        STARTED("", conn)
                    else:
                        says(204, "")("", conn)
                except OSError:
                    pass

    threading.Thread(target=serve, daemon=True).start()

    async def run() -> None:
        async with AsyncClient(f"unix://{path}") as client:
            task = asyncio.ensure_future(AsyncSandbox.of(client, information()).run("sleep 1000000"))
            await asyncio.to_thread(asked.wait)
            task.cancel()
            given_up.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    assert any("/signal" in head for head in heads), f"the command runs on, and nobody knows its id: {heads}"


FORKED = (
    '{"forks":[{"sandbox":{"id":"made","run":"r","state":"running","template":"t","engine":"e","policy_digest":"d",'
    '"created":"2026-11-26T10:00:00Z"}}]}'
)
MADE = FORKED[len('{"forks":[{"sandbox":') : -len("}]}")]
KEPT = (
    '{"id":"made","digest":"d","contents":"memory","created":"2026-11-26T10:00:00Z","bytes":1,"sandbox":"x","run":"r",'
    '"template":"t","engine":"e","policy_digest":"d"}'
)


@pytest.mark.parametrize(
    ("answer", "removed", "make"),
    [
        (MADE, "/v1/sandboxes/made", lambda client: client.sandboxes.create()),
        (MADE, "/v1/sandboxes/made", lambda client: AsyncSandbox(client=client).start()),
        (MADE, "/v1/sandboxes/made", lambda client: AsyncSandbox(client=client).__aenter__()),
        (FORKED, "/v1/sandboxes/made", lambda client: AsyncSandbox.of(client, information()).fork()),
        (KEPT, "/v1/snapshots/made", lambda client: AsyncSandbox.of(client, information()).snapshot()),
    ],
)
def test_what_was_made_for_nobody_is_removed(
    tmp_path: Path, answer: str, removed: str, make: Callable[[AsyncClient], Coroutine[Any, Any, Any]]
) -> None:
    """A wait that is given up as the daemon answers leaves nothing that stays; the control is one that is not given up."""
    for give_up in (True, False):
        path = str(tmp_path / f"daemon-{give_up}.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        asked, given_up = threading.Event(), threading.Event()
        heads: list[str] = []

        def serve(
            listener: socket.socket = listener,
            heads: list[str] = heads,
            asked: threading.Event = asked,
            given_up: threading.Event = given_up,
        ) -> None:
            while True:
                try:
                    conn, _ = listener.accept()
                except OSError:
                    return
                with conn:
                    data = b""
                    while b"\r\n\r\n" not in data:
                        data += conn.recv(65536)
                    heads.append(data.split(b"\r\n")[0].decode())
                    try:
                        if heads[-1].startswith("POST"):  # the daemon has made it
                            asked.set()
                            given_up.wait()
                            says(201, answer)("", conn)
                        else:
                            says(204, "")("", conn)
                    except OSError:
                        pass

        threading.Thread(target=serve, daemon=True).start()

        async def run(
            path: str = path,
            give_up: bool = give_up,
            asked: threading.Event = asked,
            given_up: threading.Event = given_up,
        ) -> None:
            async with AsyncClient(f"unix://{path}") as client:
                task = asyncio.ensure_future(make(client))
                await asyncio.to_thread(asked.wait)
                if give_up:
                    task.cancel()
                given_up.set()
                if give_up:
                    with pytest.raises(asyncio.CancelledError):
                        await task
                else:
                    assert await task

        asyncio.run(run())
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        assert any(head.startswith(f"DELETE {removed} ") for head in heads) == give_up, heads


def test_a_daemon_started_anew_that_is_lost_is_no_daemon_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the second daemon has the request and goes away, it may have done it; where nobody listens, it has not."""
    monkeypatch.setattr("cofferdam._find.check_owner", lambda path: None)
    monkeypatch.setattr("cofferdam._find.check_listener", lambda sock, path: None)
    for lost in (True, False):
        path = str(tmp_path / f"daemon-{lost}.sock")
        listeners: list[socket.socket] = []

        def start(path: str = path, lost: bool = lost, listeners: list[socket.socket] = listeners) -> None:
            if not lost:
                return
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen()
            listeners.append(listener)

            def serve() -> None:
                conn, _ = listener.accept()
                with conn:
                    conn.recv(65536)  # the request is there

            threading.Thread(target=serve, daemon=True).start()

        monkeypatch.setattr("cofferdam._find.start", start)

        async def run(path: str = path) -> None:
            transport = AsyncTransport(Address(socket=path, own=True))
            try:
                await transport.call("POST", "/v1/sandboxes")  # which is not asked for twice
            finally:
                await transport.aclose()

        with pytest.raises(ConnectionLost if lost else DaemonNotFound):
            asyncio.run(run())
        for listener in listeners:
            listener.close()
