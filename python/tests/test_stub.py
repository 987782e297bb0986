"""A daemon that lies, breaks off, or is away: a typed error each time, and nothing hangs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from cofferdam import (
    AsyncClient,
    AsyncSandbox,
    Client,
    CofferdamError,
    CommandResult,
    Conflict,
    ConnectionLost,
    DaemonNotFound,
    InstallAlarm,
    InvalidRequest,
    Process,
    ProtocolError,
    QuotaExceeded,
    Sandbox,
    SandboxInfo,
    Unauthorized,
    Unavailable,
)
from cofferdam._decode import decode
from cofferdam._frames import EXIT, GAP, STDERR, STDIN, STDOUT, Reader, frame

Answer = Callable[[str, socket.socket], None]

#: The stub's answers about alarms.
ALARMS: list[Answer] = []


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[tuple[Client, list[Answer], list[str]]]:
    """A client, the answers that its daemon gives one after the other, and the heads that it got.

    It knows nothing of alarms, as an older daemon, unless a test gives it answers about them.
    """
    path = str(tmp_path / "daemon.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    answers: list[Answer] = []
    heads: list[str] = []
    alarms = ALARMS
    alarms.clear()

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
                head = data.split(b"\r\n\r\n")[0].decode()
                if head.startswith("GET /v1/alarms"):
                    try:
                        (alarms.pop(0) if alarms else says(404, '{"title":"there is no such route","status":404}'))(
                            head, conn
                        )
                    except OSError:
                        pass
                    continue
                heads.append(head)
                if answers:
                    try:
                        answers.pop(0)(heads[-1], conn)
                    except OSError:
                        pass

    threading.Thread(target=serve, daemon=True).start()
    client = Client(f"unix://{path}")
    yield client, answers, heads
    client.close()
    # Shut down first: a close alone does not end an accept that is under way.
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def says(status: int, body: str, kind: str = "application/json") -> Answer:
    def answer(_: str, conn: socket.socket) -> None:
        conn.sendall(
            f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )

    return answer


def frames(*sent: bytes) -> Answer:
    def answer(_: str, conn: socket.socket) -> None:
        conn.sendall(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: cofferdam-frames\r\n\r\n" + b"".join(sent))

    return answer


STARTED = says(201, '{"id":"c","argv":["x"],"started":"2026-11-26T10:00:00Z"}')


def information() -> SandboxInfo:
    info = {
        "id": "s b/../x", "run": "r", "state": "running", "template": "t", "engine": "e", "policy_digest": "d",
        "created": "2026-11-26T10:00:00Z",
    }  # fmt: skip
    return decode(SandboxInfo, info)


def box(client: Client) -> Sandbox:
    return Sandbox.of(client, information())


Stub = tuple[Client, list[Answer], list[str]]


def test_a_daemon_of_another_user_is_sent_nothing(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, answers, heads = stub
    monkeypatch.setenv("COFFERDAM_RUNTIME", str(tmp_path))
    monkeypatch.delenv("COFFERDAM_HOST", raising=False)
    version = '{"version":"1","pid":7,"started":"2026-11-26T10:00:00Z","state_dir":"/s"}'
    with Client() as own:
        answers.append(says(200, version))
        assert own.version().version == "1" and len(heads) == 1
        if os.geteuid() == 0:
            os.chown(tmp_path, 65534, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 65534)
        answers.append(says(200, version))
        with pytest.raises(DaemonNotFound, match="another user"):
            own.version()
        assert len(heads) == 1
    with Client(f"unix://{tmp_path / 'daemon.sock'}") as named:  # it would have answered
        assert named.version().version == "1" and len(heads) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequest),
        (401, Unauthorized),
        (409, Conflict),
        (413, InvalidRequest),
        (429, QuotaExceeded),
        (503, Unavailable),
    ],
)
def test_statuses(stub: Stub, status: int, kind: type[Exception]) -> None:
    client, answers, _ = stub
    answers.append(
        says(status, '{"title":"t","status":400,"detail":"write it so","retry_seconds":3}', "application/problem+json")
    )
    with pytest.raises(kind, match="write it so"):
        client.version()


@pytest.mark.parametrize("body", ["", "null", "[]", "{}", "<html>", '{"version":5}'])
def test_answers_that_are_none(stub: Stub, body: str) -> None:
    client, answers, _ = stub
    answers.append(says(200, body))
    with pytest.raises(ProtocolError):
        client.version()


def test_a_problem_without_end(stub: Stub) -> None:
    client, answers, _ = stub

    def endless(_: str, conn: socket.socket) -> None:
        conn.sendall(b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            conn.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    answers.append(endless)
    with pytest.raises(Exception, match="status 500"):
        client.version()


def test_a_connection_that_breaks_off(stub: Stub) -> None:
    client, answers, _ = stub
    answers.append(lambda _, conn: conn.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{"))
    with pytest.raises(ConnectionLost):
        client.version()
    answers.append(lambda _, conn: None)
    with pytest.raises(ConnectionLost):
        client.version()


def test_redirects_are_not_followed(stub: Stub) -> None:
    client, answers, heads = stub
    answers.append(
        lambda _, conn: conn.sendall(
            b"HTTP/1.1 302 X\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n"
        )
    )
    with pytest.raises(Exception, match="302"):
        client.version()
    assert len(heads) == 1


def test_text_that_is_none_is_not_sent(stub: Stub) -> None:
    client, _, heads = stub
    bad = os.fsdecode(b"bad\xff")  # what sys.argv and os.environ give
    sandbox = box(client)
    for do in (
        lambda: sandbox.run(["printf", "%s", bad]),
        lambda: sandbox.run(["x"], env={bad: "1"}),
        lambda: sandbox.run(["x"], env={"K": bad}),
        lambda: sandbox.run(["x"], cwd="/" + bad),
        lambda: sandbox.files.read(bad),
        lambda: sandbox.files.write(bad, b""),
        lambda: sandbox.files.list(bad),
        lambda: sandbox.files.move("x", bad),
        lambda: sandbox.files.remove(bad),
        lambda: client.sandboxes.create(env={"K": bad}),
    ):
        with pytest.raises(InvalidRequest, match="no UTF-8"):
            do()
    assert not [h for h in heads if h.split()[0] != "GET"]


def test_what_is_no_content_is_not_sent(stub: Stub) -> None:
    client, _, heads = stub
    sandbox: Any = box(client)
    for none in (5, ["a"], {"a": 1}, None, 1.5):
        with pytest.raises(TypeError, match="content is a str or bytes, and this is"):
            sandbox.files.write("x", none)
        if none is not None:
            with pytest.raises(TypeError, match="content is a str or bytes"):
                sandbox.run(["cat"], input=none)
    for count in (0, -1):
        with pytest.raises(CofferdamError, match="1 or more"):
            sandbox.fork(count)
    assert not [h for h in heads if h.split()[0] != "GET"]


def test_options_of_another_kind_are_not_sent(stub: Stub) -> None:
    client, _, heads = stub
    sandbox: Any = box(client)
    made: Any = client.sandboxes
    for env in ({"A": 5}, {5: "A"}, {"A": None}, ["A=5"], "A=5"):
        for do in (
            lambda e=env: sandbox.run(["x"], env=e),
            lambda e=env: made.create(env=e),
            lambda e=env: made.create(labels=e),
        ):
            with pytest.raises(TypeError, match="texts?, and this is"):
                do()
    for given in (["a:/b"], "a:/b", {"source": "a"}, [5], 5):
        for option in ("mounts", "tools"):
            with pytest.raises(TypeError, match=f'{option} is a list of mappings, such as .*"'):
                made.create(**{option: given})
    with pytest.raises(TypeError) as told:
        sandbox.run(["x"], env={"TOKEN": b"of-mine"})
    assert "of-mine" not in str(told.value)
    assert not [h for h in heads if h.split()[0] != "GET"]


def test_ids_can_not_lead_elsewhere(stub: Stub) -> None:
    client, answers, heads = stub
    answers.append(says(204, ""))
    box(client).kill()
    assert heads[0].startswith("DELETE /v1/sandboxes/s%20b%2F..%2Fx HTTP/1.1")


def test_output_goes_on_where_it_broke_off(stub: Stub) -> None:
    client, answers, heads = stub
    gap = frame(GAP, b'{"bytes":100}')
    answers += [
        STARTED,
        frames(frame(STDOUT, b"ab"), frame(STDERR, b"c"), gap, frame(STDOUT, b"half")[:6]),
        frames(frame(99, b"unknown"), frame(STDOUT, b"d\xc3"), frame(STDOUT, b"\xa9"), frame(EXIT, b'{"code":7}')),
    ]
    heard: list[str] = []
    result = box(client).run(["x"], on_stdout=heard.append)
    assert (result.exit_code, result.stdout, result.stderr, result.truncated) == (7, "abd\u00e9", "c", True)
    assert "attach?offset=103 " in heads[2]
    assert "".join(heard) == "abd\u00e9"


def told(next: str, *seqs: int) -> Answer:
    alarm = {
        "time": "2026-11-26T10:00:00Z",
        "outcome": "alarm",
        "rule": "r",
        "reason": "no one served it\x1b[31m",
        "count": 1,
    }
    of = {"ecosystem": "python", "name": "evil"}
    alarms = [alarm | {"seq": n, "package": of | {"version": f"1.{n}"}} for n in seqs]
    return says(200, json.dumps({"run": "r", "total": len(seqs), "next": next, "alarms": alarms}))


ENDED = frames(frame(EXIT, b'{"code":0}'))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_alarms_are_told_once(stub: Stub, caplog: pytest.LogCaptureFixture, asynchronous: bool) -> None:
    """Of those that come after it is there: in the result, and as warnings. The second command has none."""
    client, answers, _ = stub
    ALARMS.extend([told("5"), told("9", 6, 7), told("9", 7)])
    answers += [STARTED, ENDED] * 2
    results = []
    if asynchronous:

        async def both() -> None:
            async with AsyncClient(f"unix://{client.transport.address.socket}") as other:
                sandbox = AsyncSandbox.of(other, information())
                results.extend([await sandbox.run(["x"]), await sandbox.run(["x"])])

        asyncio.run(asyncio.wait_for(both(), 60))
    else:
        sandbox = box(client)
        results += [sandbox.run(["x"]), sandbox.run(["x"])]
    assert [[a.seq for a in r.alarms] for r in results] == [[6, 7], []]
    assert [r.getMessage() for r in caplog.records if r.name == "cofferdam"] == [
        rf"ALARM: python evil 1.{n}: no one served it\x1b[31m (do not use it)" for n in (6, 7)
    ]
    assert not ALARMS


def test_who_starts_a_command_is_told_when_it_ends(stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    client, answers, _ = stub
    ALARMS.extend([told("5"), told("9", 6)])
    answers += [STARTED, ENDED]
    assert [a.seq for a in box(client).spawn(["x"]).wait().alarms] == [6]
    assert caplog.text.count("ALARM") == 1


def test_an_alarm_of_an_install_is_told_once(stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    """As the error, or as a warning where no refusal is one."""
    client, answers, _ = stub
    none = says(200, '{"run":"r","refusals":[]}')
    refused = {
        "time": "2026-11-26T10:00:00Z", "run": "r", "sandbox": "s", "what": "package", "outcome": "blocked", "rule": "r",
        "reason": "other bytes", "request_id": "q", "count": 1, "alarm": True,
    }  # fmt: skip
    ALARMS.extend([told("5"), told("9", 6), told("10")])
    answers += [none, STARTED, ENDED, says(200, json.dumps({"run": "r", "refusals": [refused]}))]
    sandbox = box(client)
    with pytest.raises(InstallAlarm) as raised:
        sandbox.install("evil")
    assert [a.seq for a in raised.value.result.alarms] == [6] and not caplog.text
    answers += [none, STARTED, ENDED, none]
    assert sandbox.install("fine").alarms == [] and not caplog.text


@pytest.mark.parametrize(
    ("alarms", "word"),
    [
        ([], ""),  # an older daemon
        ([told("5"), told("5")], ""),
        ([told("5"), says(404, "{}")], ""),
        ([told("5"), says(503, '{"detail":"it is full"}')], "not known"),
        ([says(503, '{"detail":"it is full"}')], "not known"),
        ([told("5"), told("9", *range(20))], "and 15 ALARMS more"),
    ],
)
def test_alarms_that_are_none(stub: Stub, caplog: pytest.LogCaptureFixture, alarms: list[Answer], word: str) -> None:
    """Nothing is told where nothing is; that it is not known is; and the command's end is what it is."""
    client, answers, _ = stub
    ALARMS.extend(alarms)
    answers += [STARTED, ENDED]
    assert box(client).run(["x"]).ok
    assert word in caplog.text and bool(word) == bool(caplog.text)


def heard_frames(conn: socket.socket, data: bytes = b"") -> Iterator[tuple[int, bytes]]:
    reader = Reader()
    while True:
        yield from reader.feed(data)
        data = conn.recv(65536)
        if not data:
            return


UPGRADE = b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: cofferdam-frames\r\n\r\n"


def takes_all_input(heard: list[bytes], *sent: bytes) -> Answer:
    """Reads input to its end, says something, and ends the connection."""

    def answer(_: str, conn: socket.socket) -> None:
        conn.sendall(UPGRADE)
        for kind, payload in heard_frames(conn):
            assert kind == STDIN
            if not payload:
                break
            heard.append(payload)
        conn.sendall(b"".join(sent))

    return answer


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_end_of_input_is_said_again(stub: Stub, asynchronous: bool) -> None:
    """Its connection was lost: nobody knows whether the end had arrived, and the command waits for it."""
    client, answers, heads = stub
    heard: list[bytes] = []
    again: list[bytes] = []
    answers += [STARTED, takes_all_input(heard), takes_all_input(again, frame(EXIT, b'{"code":0}'))]
    if asynchronous:

        async def same() -> int:
            async with AsyncClient(f"unix://{client.transport.address.socket}") as other:
                return (await AsyncSandbox.of(other, information()).run(["cat"], input=b"abc")).exit_code

        assert asyncio.run(asyncio.wait_for(same(), 60)) == 0
    else:
        codes: list[int] = []
        work = threading.Thread(
            target=lambda: codes.append(box(client).run(["cat"], input=b"abc").exit_code), daemon=True
        )
        work.start()
        work.join(60)
        assert codes == [0]
    assert (heard, again) == ([b"abc"], []) and len(heads) == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_input_that_was_cut(stub: Stub, asynchronous: bool) -> None:
    """The command is killed: it would take a part for the whole."""
    client, answers, heads = stub

    def leaves(_: str, conn: socket.socket) -> None:
        conn.sendall(UPGRADE)
        conn.recv(1)

    answers += [STARTED, leaves, says(204, "")]
    with pytest.raises(ConnectionLost, match="all of its input"):
        if asynchronous:

            async def same() -> None:
                async with AsyncClient(f"unix://{client.transport.address.socket}") as other:
                    await AsyncSandbox.of(other, information()).run(["cat"], input=b"x" * (16 << 20))

            asyncio.run(asyncio.wait_for(same(), 60))
        else:
            box(client).run(["cat"], input=b"x" * (16 << 20))
    assert heads[-1].split()[1].endswith("/signal")


def test_output_that_is_lost_for_good(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cofferdam._sync.process._PAUSE", 0)
    client, answers, heads = stub
    # What brings output is no try in vain: six of those come after eight that did.
    answers += [STARTED, *[frames(frame(STDOUT, b"x"))] * 8, *[frames()] * 5, says(204, "")]
    with pytest.raises(ConnectionLost):
        box(client).run(["x"])
    assert [h.split()[1].split("/")[-1] for h in heads[-2:]] == ["attach?offset=8", "signal"]


@pytest.mark.parametrize("status", [204, 404, 503])
def test_a_kill_that_is_not_confirmed(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """The error that is under way, and the log, say that the command may run on; of one that has ended they do not."""
    monkeypatch.setattr("cofferdam._sync.process._PAUSE", 0)
    client, answers, _ = stub
    answers += [STARTED, *[frames()] * 6, says(status, "" if status == 204 else '{"detail":"nobody confirmed it"}')]
    with pytest.raises(ConnectionLost) as lost:
        box(client).run(["x"])
    told = caplog.text + "".join(getattr(lost.value, "__notes__", []))
    assert ("may run on" in told and "nobody confirmed it" in told) == (status == 503)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_daemon_at_an_address_that_is_gone_and_comes_back(tmp_path: Path, kind: type) -> None:
    path = str(tmp_path / "daemon.sock")
    tried, back = threading.Event(), threading.Event()

    def listen() -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        return listener

    def answer(listener: socket.socket, *given: Answer) -> None:
        for one in given:
            conn, _ = listener.accept()
            with conn:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += conn.recv(65536)
                one(head.decode(), conn)

    first = listen()

    def leave(head: str, conn: socket.socket) -> None:
        first.close()
        os.unlink(path)
        frames(frame(STDOUT, b"ab"))(head, conn)

    def serve() -> None:
        answer(first, told("5"), STARTED, leave)
        tried.wait()
        listener = listen()
        back.set()
        answer(listener, frames(frame(STDOUT, b"c"), frame(EXIT, b'{"code":0}')), told("5"))
        listener.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    looks = 0
    real = httpx.Client.send if kind is Client else httpx.AsyncClient.send

    def counted(self: object, request: httpx.Request, **more: object) -> object:
        nonlocal looks
        looks += not os.path.exists(path)
        if looks == 4:  # 0, 0.2 and 0.4 s have gone by, and 0.8
            tried.set()
            back.wait()
        return real(self, request, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx.Client if kind is Client else httpx.AsyncClient, "send", counted)
        if kind is Client:
            with Client(f"unix://{path}") as client:
                assert box(client).run(["x"]).stdout == "abc"
        else:

            async def same() -> str:
                async with AsyncClient(f"unix://{path}") as client:
                    made = AsyncSandbox.of(client, information())
                    return (await made.run(["x"])).stdout

            assert asyncio.run(same()) == "abc"
    thread.join()


STRANGER = """
import os, socket, sys
VERSION = b'{"version":"1","pid":7,"started":"2026-11-26T10:00:00Z","state_dir":"/s"}'
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.setresuid(-1, int(sys.argv[2]), -1)
s.listen()
print("listens", flush=True)
while True:
    conn, _ = s.accept()
    conn.settimeout(30)
    sys.stdout.buffer.write(b"heard %d\\n" % len(conn.recv(65536)))
    sys.stdout.buffer.flush()
    try:
        conn.sendall(b"HTTP/1.1 200 X\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(VERSION), VERSION))
    except OSError:
        pass
    conn.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can listen as somebody else")
@pytest.mark.parametrize("uid", [0, 65534])
def test_who_listens_is_asked_of_each_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    """In a directory of one's own, where others could listen all the same."""
    path = str(tmp_path / "daemon.sock")
    monkeypatch.setenv("COFFERDAM_RUNTIME", str(tmp_path))
    monkeypatch.delenv("COFFERDAM_HOST", raising=False)
    with subprocess.Popen([sys.executable, "-c", STRANGER, path, str(uid)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "listens\n"
        try:

            async def ask() -> None:
                async with AsyncClient() as client:
                    await client.version()

            def ask_here() -> None:
                with Client() as client:
                    client.version()

            for once in (ask_here, lambda: asyncio.run(ask())):
                if uid == 0:
                    once()
                    assert other.stdout.readline().startswith("heard ")
                    continue
                with pytest.raises(DaemonNotFound) as refused:
                    once()
                assert str(refused.value) == (
                    f"another user listens there: user 65534, at {path};"
                    " set COFFERDAM_RUNTIME to a directory of your own"
                )
            if uid != 0:  # who is named is not asked; and the two above sent not a byte
                with Client(f"unix://{path}") as named:
                    named.version()
                assert [other.stdout.readline() for _ in range(3)][:2] == ["heard 0\n"] * 2
        finally:
            other.kill()


def test_a_signal_goes_beside_the_input(stub: Stub) -> None:
    client, answers, heads = stub
    answers += [STARTED, says(204, "")]
    process = box(client).spawn(["x"], stdin=True)
    process.kill("TERM")
    assert heads[1].startswith("POST /v1/sandboxes/s%20b%2F..%2Fx/commands/c/signal HTTP/1.1")
    answers += [says(409, "{}"), says(200, '{"exit":{"code":0}}')]
    process.kill("TERM")  # it has ended
    answers += [says(409, "{}"), says(200, '{"argv":["x"]}')]
    with pytest.raises(Conflict):  # its sandbox is frozen
        process.kill()


@pytest.mark.parametrize(
    "sent", [b"\x04\xff\xff\xff\xff", frame(EXIT, b"{"), frame(EXIT, b'{"code":"0"}'), frame(GAP, b"x")]
)
def test_frames_that_are_none(stub: Stub, sent: bytes) -> None:
    client, answers, _ = stub
    answers += [STARTED, frames(sent), says(404, "{}")]
    with pytest.raises(ProtocolError):
        box(client).run(["x"])


def test_another_protocol(stub: Stub) -> None:
    client, answers, _ = stub
    answers += [
        STARTED,
        lambda _, conn: conn.sendall(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"),
        says(404, "{}"),
    ]
    with pytest.raises(ProtocolError):
        box(client).run(["x"])


def test_too_much_output_is_dropped(stub: Stub) -> None:
    client, answers, _ = stub
    answers += [STARTED, frames(*[frame(STDOUT, b"x" * 65536)] * 4, frame(EXIT, b'{"code":0}'))]
    result = box(client).run(["x"], max_output=100_000)
    assert len(result.stdout) == 100_000 and result.truncated


def test_a_callback_that_raises_ends_the_command(stub: Stub) -> None:
    client, answers, heads = stub
    answers += [STARTED, frames(frame(STDOUT, b"x")), says(204, "")]

    def raises(_: str) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        box(client).run(["x"], on_stdout=raises)
    assert "/commands/c/signal" in heads[2], "it was ended"


def test_a_line_that_is_none(stub: Stub) -> None:
    client, answers, _ = stub
    answers.append(says(200, '{"kind":"package"}\n{"kind"', "application/x-ndjson"))
    got = []
    with pytest.raises(ProtocolError):
        for record in client.audit.records():
            got.append(record)
    assert got == [{"kind": "package"}]


def test_nobody_listens(tmp_path: Path) -> None:
    with Client(f"unix://{tmp_path}/none") as client, pytest.raises(DaemonNotFound, match="no daemon is listening"):
        client.version()

    async def same() -> None:
        async with AsyncClient(f"unix://{tmp_path}/none") as client:
            with pytest.raises(DaemonNotFound):
                await client.version()

    asyncio.run(same())


@pytest.mark.parametrize("how", [None, KeyboardInterrupt(), ConnectionLost("it broke off")])
def test_an_execution_that_nobody_follows_is_killed(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, how: BaseException | None
) -> None:
    from cofferdam.agt._session import Session
    from cofferdam.agt._translate import Limits

    client, answers, heads = stub
    result = CommandResult(exit_code=0, stdout="", stderr="")
    monkeypatch.setattr(Process, "wait", Mock(return_value=result, side_effect=how))
    session = Session("a", "s", box(client), limits=Limits(1, 1), asked={})
    answers += [STARTED, says(204, "")]
    if how is None:
        assert session.execute(["x"], session.limits).success
    else:
        with pytest.raises(KeyboardInterrupt if isinstance(how, KeyboardInterrupt) else RuntimeError):
            session.execute(["x"], session.limits)
    killed = [head for head in heads[1:] if head.startswith("POST ") and "/commands/c/signal" in head]
    assert len(killed) == (how is not None)
