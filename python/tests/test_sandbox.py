"""The client against a real daemon and real sandboxes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cofferdam import (
    ApprovalRequired,
    AsyncClient,
    AsyncSandbox,
    Client,
    CofferdamError,
    CommandFailed,
    InstallFailed,
    InstallRefused,
    InvalidRequest,
    NotFound,
    Refused,
    Sandbox,
)

from .conftest import ONE_PACKAGE

pytestmark = pytest.mark.usefixtures("daemon")


@pytest.fixture(scope="module")
def box(daemon: Path) -> Sandbox:
    with Sandbox(ONE_PACKAGE, env={"FROM": "the sandbox"}, labels={"team": "ml"}) as made:
        yield made


def test_run(box: Sandbox) -> None:
    heard: list[str] = []
    result = box.run("echo out; echo err >&2; exit 3", on_stdout=heard.append, on_stderr=heard.append)
    assert (result.exit_code, result.stdout, result.stderr, result.ok) == (3, "out\n", "err\n", False)
    assert sorted(heard) == ["err\n", "out\n"]
    with pytest.raises(CommandFailed, match="ended with code 3") as e:
        box.run("echo why >&2; exit 3", check=True)
    assert e.value.result.stderr == "why\n"
    assert box.run(["printenv", "FROM", "TOO"], env={"TOO": "this"}).stdout == "the sandbox\nthis\n"
    assert box.run(["pwd"], cwd="/usr").stdout == "/usr\n"
    assert box.run(["echo", "$HOME; exit 1"]).stdout == "$HOME; exit 1\n", "words are no shell's"


def test_users(box: Sandbox) -> None:
    assert box.run(["id", "-u"], user=65534).stdout == "65534\n"
    assert box.run(["id", "-u"], user="root").stdout == "0\n"
    assert box.run(["id", "-u"]).stdout == "1000\n"
    with pytest.raises(CofferdamError, match="no user"):
        result = box.run(["id"], user="mallory")
        raise CofferdamError(result.error or result.stderr)


def test_input_and_output_at_once(box: Sandbox) -> None:
    data = os.urandom(3 << 20)
    result = box.run(["cat"], input=data)
    assert result.stdout_bytes == data and not result.truncated
    assert box.run(["cat"], input="").stdout == ""


def test_timeout(box: Sandbox) -> None:
    result = box.run("echo begun; sleep 1000", timeout=0.5)
    assert result.timed_out and not result.ok and result.stdout == "begun\n"


def test_a_command_is_ended_from_elsewhere(box: Sandbox) -> None:
    process = box.spawn("echo begun; sleep 1000")
    begun = threading.Event()
    threading.Thread(target=lambda: (begun.wait(), process.kill())).start()
    result = process.wait(on_stdout=lambda _: begun.set())
    assert result.signal == "KILL" and not result.timed_out


def test_files(box: Sandbox) -> None:
    assert box.files.write("a/b.bin", bytes(range(256)), mode=0o600).mode == 0o600
    assert box.files.read("a/b.bin") == bytes(range(256))
    assert (
        box.files.write("a/c.txt", "gr\u00fc\u00df dich").size == 11
        and box.files.read_text("a/c.txt") == "gr\u00fc\u00df dich"
    )
    assert [f.path for f in box.files.list("a")] == ["/home/agent/a/b.bin", "/home/agent/a/c.txt"]
    box.files.mkdir("a/d")
    assert box.files.mkdir("a/d").is_dir
    with pytest.raises(CofferdamError):
        box.files.mkdir("a/d", exist_ok=False)
    box.files.move("a/c.txt", "a/d/e.txt")
    assert not box.files.exists("a/c.txt") and box.files.exists("a/d/e.txt")
    with pytest.raises(CofferdamError, match="more than 10 bytes"):
        box.files.read("a/b.bin", max_bytes=10)
    box.files.remove("a")
    with pytest.raises(NotFound):
        box.files.read("a/b.bin")


def test_installs(box: Sandbox) -> None:
    assert box.install("iniconfig").ok
    assert box.run(["python3", "-c", "import iniconfig"]).ok
    with pytest.raises(InstallRefused) as e:
        box.install("six")
    assert e.value.rule == "packages.default" and e.value.request_id and "six" in str(e.value)
    assert (
        "name: six" in e.value.suggestion
        and "six" in e.value._repr_html_()
        and not isinstance(e.value, ApprovalRequired)
    )
    with pytest.raises(InstallFailed):
        box.install("./no-such-directory")
    with pytest.raises(InstallRefused, match="six"):
        box.install("six")  # it was refused before, and is again


def test_an_install_that_waits(daemon: Path) -> None:
    hold = "name: hold\npackages: { default: hold, on_hold: fail }\n"
    with Client() as client, client.sandboxes.create(hold) as box:
        with pytest.raises(ApprovalRequired) as e:
            box.install("six")
        assert e.value.approve_command == f"cofferdam approvals approve {e.value.approval_id}"
        request = client.approvals.get(e.value.approval_id)
        assert request.state == "pending" and request.raw["id"] == request.id
        assert request.id in [a.id for a in client.approvals.list(states=["pending"], run=box.run_id)]
        (answered,) = client.approvals.approve(request, reason="a test")
        assert answered.state == "approved"
        assert box.install("six").ok


def test_rules_refuse(daemon: Path) -> None:
    document = {
        "name": "rules", "defaults": {"action": "allow"},
        "rules": [{"name": "no-curl", "condition": {"field": "command", "operator": "contains", "value": "curl"}, "action": "deny", "message": "not that"}],
    }  # fmt: skip
    with Sandbox(document) as box:
        assert box.run(["true"]).ok
        with pytest.raises(Refused) as e:
            box.run(["curl", "-V"])
        assert e.value.rule == "rules.no-curl" and "not that" in e.value.reason and e.value.request_id
        assert e.value.request_id in [r.request_id for r in box.refusals()]


def test_a_policy_that_is_wrong(daemon: Path) -> None:
    with pytest.raises(InvalidRequest, match="pakages"):
        Sandbox("name: x\npakages: {}\n").start()


def test_plan(box: Sandbox) -> None:
    plan = box.plan("iniconfig")
    assert plan.allowed and [r.name for r in plan.releases] == ["iniconfig"] and "iniconfig" in plan._repr_html_()
    assert not box.plan("six").allowed


def test_copies(box: Sandbox) -> None:
    box.files.write("here", "before")
    first, second = box.fork(2)
    with first, second:
        assert first.id != second.id and first.files.read_text("here") == "before"
        first.files.write("here", "after")
        assert box.files.read_text("here") == second.files.read_text("here") == "before"
    with pytest.raises(NotFound):
        first.refresh()
    snapshot = box.snapshot("of-the-tests")
    with Sandbox(snapshot="of-the-tests") as made:
        assert made.files.read_text("here") == "before" and made.info.snapshot == snapshot.id
    assert [s.id for s in box.client.snapshots.list()] == [snapshot.id]
    box.client.snapshots.remove("of-the-tests")


def test_the_rest_of_v1(box: Sandbox) -> None:
    client = box.client
    assert box.id in [b.id for b in client.sandboxes.list(labels={"team": "ml"}, states=["running"])]
    assert client.sandboxes.connect(box.id).run(["true"]).ok
    assert "debian" in [t.name for t in client.templates.list()]
    client.policies.set("mine", ONE_PACKAGE)
    assert client.policies.get("mine").document.decode() == ONE_PACKAGE and "mine" in [
        p.name for p in client.policies.list()
    ]
    with Sandbox(policy_name="mine", client=client) as named:
        assert named.info.policy_digest == box.info.policy_digest
    client.policies.remove("mine")
    records = list(client.audit.records(run=box.run_id, kinds=["command"]))
    assert records and all(r["kind"] == "command" for r in records)
    assert next(iter(client.events(sandbox=box.id))).sandbox == box.id
    assert client.runs.summary(box.run_id)["run"] == box.run_id
    assert box.usage().processes >= 1 and "<table>" in box._repr_html_()
    assert box.pause().state == "paused" and box.resume().state == "running"
    assert client.call_code("6 * 7", policy={"name": "c"}).value == 42


def test_a_daemon_that_was_stopped_is_started_again(box: Sandbox) -> None:
    client = box.client
    client.transport.call("POST", "/v1/shutdown", query={"handover": "1"})
    assert box.run(["echo", "still there"]).stdout == "still there\n"


def test_it_is_removed_at_the_end(daemon: Path) -> None:
    with pytest.raises(KeyError), Sandbox() as box:
        raise KeyError
    with Client() as client, pytest.raises(NotFound):
        client.sandboxes.get(box.info.id)


MAKES = """
import sys, time, cofferdam
cofferdam._async.sandbox.LEASE = cofferdam._sync.sandbox.LEASE = 5  # as short as a lease can be

def made(box):
    print(box.id, flush=True)

if sys.argv[1] == "async":
    import asyncio

    async def whole():
        async with cofferdam.AsyncSandbox() as box:
            await box.spawn(["sleep", "1000"])
            made(box)
            await asyncio.sleep(1000)

    asyncio.run(whole())
else:
    with cofferdam.Sandbox(keep=sys.argv[1] == "keep") as box:
        box.spawn(["sleep", "1000"])
        made(box)
        time.sleep(1000)
"""


def test_a_sandbox_ends_with_its_program(daemon: Path) -> None:
    """However that ends; not while it lives, and not one that is to be kept (the controls)."""
    programs = {
        how: subprocess.Popen([sys.executable, "-c", MAKES, how], stdout=subprocess.PIPE, text=True)
        for how in ("killed", "async", "lives", "keep")
    }
    try:
        ids = {how: program.stdout.readline().strip() for how, program in programs.items() if program.stdout}
        for how in ("killed", "async", "keep"):
            programs[how].kill()
            programs[how].wait()
        with Client() as client:

            def is_there(how: str) -> bool:
                try:
                    return client.sandboxes.get(ids[how]).state == "running"
                except NotFound:
                    return False

            assert is_there("lives") and is_there("keep")
            deadline = time.monotonic() + 120
            while is_there("killed") or is_there("async"):
                assert time.monotonic() < deadline, "it outlives its program"
                time.sleep(0.1)
            assert is_there("lives") and is_there("keep")
            client.sandboxes.remove(ids["keep"])
    finally:
        for program in programs.values():
            program.kill()
            program.wait()


def test_a_lease_outlives_a_change_of_the_end(daemon: Path) -> None:
    with Sandbox() as box:
        assert box.info.lifetime.lease_seconds == 30
        assert box.set_lifetime(ttl=1000).lifetime.lease_seconds == 30
        (fork,) = box.fork()
        with fork:
            assert fork.info.lifetime.lease_seconds == 30
    with Client() as client, client.sandboxes.create() as kept:
        assert kept.info.lifetime.lease_seconds == 0


def test_a_sandbox_that_another_event_loop_made(daemon: Path) -> None:
    """Its program lives: a command of the next loop tells the daemon so again."""

    async def make() -> AsyncSandbox:
        return await AsyncSandbox().start()

    box = asyncio.run(make())

    async def use() -> bool:
        await box.spawn(["true"])
        return box._presence is not None and not box._presence.ended

    assert asyncio.run(use())
    asyncio.run(box.kill())


def test_async(daemon: Path) -> None:
    async def whole() -> None:
        async with AsyncClient() as client, AsyncSandbox(ONE_PACKAGE, client=client) as box:
            results = await asyncio.gather(*(box.run(["echo", str(i)]) for i in range(5)))
            assert [r.stdout for r in results] == [f"{i}\n" for i in range(5)]
            assert (await box.run(["cat"], input=b"x" * 1_000_000)).stdout_bytes == b"x" * 1_000_000
            await box.files.write("a", "b")
            assert [part async for part in box.files.read_parts("a")] == [b"b"]
            assert (await box.install("iniconfig")).ok
            with pytest.raises(InstallRefused):
                await box.install("six")
            (fork,) = await box.fork()
            async with fork:
                assert await fork.files.read_text("a") == "b"
            assert (await box.plan("iniconfig")).allowed
            begun = asyncio.Event()
            task = asyncio.create_task(box.run("echo begun; sleep 1000", on_stdout=lambda _: begun.set()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while any(c.exit is None for c in (await box.refresh()).commands):
                pass  # what was cancelled ends

    asyncio.run(asyncio.wait_for(whole(), 120))


def test_a_token_over_the_network(daemon: Path, tmp_path: Path) -> None:
    # The own daemon listens nowhere; what a token may not is tested with the daemon's own tests.
    with pytest.raises(CofferdamError, match="COFFERDAM_TOKEN"):
        Client("http://127.0.0.1:1")
