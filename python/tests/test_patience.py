"""What may be asked for twice is asked for once more where the daemon goes with the request, as the command line does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from cofferdam import AsyncClient, AsyncSandbox, Client, ConnectionLost, NotFound

from .test_stub import ALARMS, ENDED, STARTED, Answer, Stub, box, information, says, stub, told

__all__ = ["stub"]


def lost(_: str, conn: object) -> None:
    """The daemon has the request, and is killed before it answers."""


KILLS: dict[str, Callable[[Client], object]] = {
    "a sandbox": lambda client: box(client).kill(),
    "a command": lambda client: box(client).spawn(["x"]).kill(),
}


@pytest.mark.parametrize("what", KILLS)
@pytest.mark.parametrize("broken", [False, True])  # False is the control
def test_a_kill_is_asked_for_again(stub: Stub, what: str, broken: bool) -> None:
    client, answers, heads = stub
    answers += [STARTED] if what == "a command" else []
    answers += [lost] if broken else []
    answers += [says(204, "")]
    KILLS[what](client)
    assert len(
        [h for h in heads if h.startswith(("DELETE", "POST /v1/sandboxes/s%20b%2F..%2Fx/commands/c/signal"))]
    ) == (2 if broken else 1)


@pytest.mark.parametrize("broken", [False, True])  # False is the control
def test_a_kill_is_asked_for_again_without_blocking(stub: Stub, broken: bool) -> None:
    client, answers, heads = stub

    async def kill() -> None:
        async with AsyncClient(f"unix://{client.transport.address.socket}") as other:
            await AsyncSandbox.of(other, information()).kill()

    answers += [lost] if broken else []
    answers += [says(204, "")]
    asyncio.run(asyncio.wait_for(kill(), 60))
    assert len(heads) == (2 if broken else 1)


@pytest.mark.parametrize("broken", [False, True])  # False is the control
def test_alarms_are_asked_for_again(stub: Stub, broken: bool) -> None:
    client, answers, _ = stub
    second: list[Answer] = [lost] if broken else []
    ALARMS.extend([told("5"), *second, told("9", 6)])
    answers += [STARTED, ENDED]
    assert [a.seq for a in box(client).run(["x"]).alarms] == [6]


@pytest.mark.parametrize(("signal", "times"), [("KILL", 2), ("SIGKILL", 2), ("TERM", 1), ("USR1", 1)])
def test_only_a_kill_is_sent_twice(stub: Stub, signal: str, times: int) -> None:
    client, answers, heads = stub
    answers += [STARTED, lost, says(204, "")]
    process = box(client).spawn(["x"])
    try:
        process.kill(signal)
    except ConnectionLost:
        assert times == 1
    assert len([h for h in heads if "/commands/c/signal" in h]) == times


def test_what_the_first_one_removed_is_removed(stub: Stub) -> None:
    client, answers, heads = stub
    answers += [lost, says(404, '{"status": 404, "title": "not found", "detail": "there is no sandbox"}')]
    client.sandboxes.remove("x")
    answers += [says(404, '{"status": 404, "title": "not found", "detail": "there is no sandbox"}')]
    with pytest.raises(NotFound):  # the control
        client.sandboxes.remove("x")
    assert len(heads) == 3


def test_a_command_is_not_started_twice(stub: Stub) -> None:
    client, answers, heads = stub
    answers += [lost]
    with pytest.raises(ConnectionLost):
        box(client).spawn(["x"])
    assert len([h for h in heads if h.startswith("POST")]) == 1
