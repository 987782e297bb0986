"""A command whose start was given up runs on in no sandbox that is kept: the MCP server waits for the answer and ends it."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

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
