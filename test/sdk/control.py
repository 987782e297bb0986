"""What a user of the Python SDK does with sandboxes, from the outside.

The SDK's own variables say where the daemon is. OTHER_KEY is another client's,
FEW_KEY one that may have one sandbox, SLOW_KEY one that may make one a minute.
Each line that it prints is a thing that worked.
"""

import asyncio
import datetime
import inspect
import os
import re
import sys

import e2b
from e2b import AsyncSandbox, Sandbox, SandboxQuery, SandboxState

OTHER, FEW, SLOW = os.environ["OTHER_KEY"], os.environ["FEW_KEY"], os.environ["SLOW_KEY"]
NOT_FOUND = getattr(e2b, "SandboxNotFoundException", e2b.NotFoundException)


def ok(name):
    print("ok " + name, flush=True)


def raises(kind, pattern, call, *args, **kwargs):
    try:
        got = call(*args, **kwargs)
    except kind as err:
        assert re.search(pattern, str(err)), f"{err!r} does not say {pattern}"
        return err
    raise AssertionError(f"it worked: {got!r}")


def near(date, seconds):
    left = (date - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert abs(left - seconds) < 45, f"{date} is not in {seconds} s"


def pages(paginator):
    every, n = [], 0
    while paginator.has_next:
        every += paginator.next_items()
        n += 1
    return every, n


wrong = "e2b_" + "0" * 40
raises(e2b.AuthenticationException, "not valid here", Sandbox.create, api_key=wrong)
ok("AuthenticationException")

box = Sandbox.create(metadata={"suite": "control", "a b": "c+d&e=%"}, envs={"A": "1"}, timeout=120)
info = box.get_info()
assert info.sandbox_id == box.sandbox_id
assert info.metadata == {"suite": "control", "a b": "c+d&e=%"}, info.metadata
assert (info.state, info.template_id, info.cpu_count, info.memory_mb) == (SandboxState.RUNNING, "base", 2, 2048)
near(info.end_at, 120)
near(info.started_at, 0)
assert box.get_host(3000) == f"3000-{box.sandbox_id}.{os.environ['TEST_DOMAIN']}"
ok("create, get_info")

raises(e2b.SandboxException, '403.*may not use the policy "secret"; it may choose: data, default', Sandbox.create, metadata={"policy": "secret"})
other = Sandbox.create(metadata={"policy": "data"})
assert Sandbox.kill(other.sandbox_id) is True
raises(e2b.SandboxException, '404.*no template or snapshot "nothing"', Sandbox.create, "nothing")
raises(e2b.SandboxException, "400.*denyOut", Sandbox.create, network={"allow_out": ["a.example"]})
ok("policies by metadata; what is refused says why")

made = [Sandbox.create(metadata={"list": "yes", "n": n}).sandbox_id for n in "123"]
every, n = pages(Sandbox.list(query=SandboxQuery(metadata={"list": "yes"}), limit=2))
assert [s.sandbox_id for s in every] == made[::-1] and n == 2, (every, n)
every, _ = pages(Sandbox.list(query=SandboxQuery(metadata={"a b": "c+d&e=%"})))
assert [s.sandbox_id for s in every] == [box.sandbox_id], every
Sandbox.pause(made[1])
for states, want in (([SandboxState.PAUSED], [made[1]]), ([SandboxState.RUNNING, SandboxState.PAUSED], made[::-1])):
    every, _ = pages(Sandbox.list(query=SandboxQuery(metadata={"list": "yes"}, state=states)))
    assert [s.sandbox_id for s in every] == want, (states, every)
assert pages(Sandbox.list(api_key=OTHER))[0] == []
for sandbox_id in made:
    assert Sandbox.kill(sandbox_id) is True
ok("list: pages, metadata, states, one client only")

box.set_timeout(600)
near(box.get_info().end_at, 600)
Sandbox.set_timeout(box.sandbox_id, 60)
near(box.get_info().end_at, 60)
Sandbox.connect(box.sandbox_id, timeout=1)
near(box.get_info().end_at, 60)
Sandbox.connect(box.sandbox_id, timeout=300)
near(box.get_info().end_at, 300)
ok("set_timeout; connect only makes it longer")

box.pause()
box.pause()
assert box.get_info().state == SandboxState.PAUSED
assert box.is_running() is False
box.connect()
assert box.get_info().state == SandboxState.RUNNING
for b in (box, Sandbox.connect(box.sandbox_id)):
    b.files.write("here.txt", "here")
    assert b.files.read("here.txt") == "here"
ok("pause, pause again, connect: the object that paused it goes on")

[sample] = box.get_metrics()
assert (sample.cpu_count, sample.disk_total) == (2, 2**32), sample
assert sample.cpu_used_pct >= 0 and 0 < sample.mem_used < sample.mem_total, sample
ok("get_metrics")

box.update_network({"allow_out": ["api.example"], "deny_out": ["0.0.0.0/0"]})
raises(e2b.SandboxException, "400.*names can only be in allowOut", box.update_network, {"deny_out": ["a.example"]})
box.update_network({})
ok("update_network")

snap = box.create_snapshot()
every, _ = pages(Sandbox.list_snapshots())
assert [s.snapshot_id for s in every] == [snap.snapshot_id], every
copy = Sandbox.create(snap.snapshot_id)
assert copy.sandbox_id != box.sandbox_id
copy.kill()
assert Sandbox.delete_snapshot(snap.snapshot_id) is True
assert Sandbox.delete_snapshot(snap.snapshot_id) is False
ok("snapshots")

if hasattr(box, "fork"):
    copies = box.fork(count=2, timeout=60)
    assert len(copies) == 2
    for copy in copies:
        assert copy.sandbox_id != box.sandbox_id
        copy.files.write("fork.txt", "a fork")
        assert copy.files.read("fork.txt") == "a fork"
        near(copy.get_info().end_at, 60)
        copy.kill()
    ok("fork")

# Newer versions wait as Retry-After says, and try again.
once = {"retries": 0} if "retries" in inspect.signature(e2b.ConnectionConfig.__init__).parameters else {}
first = Sandbox.create(api_key=FEW)
raises(e2b.RateLimitException, "quota is 1", Sandbox.create, api_key=FEW, **once)
first.kill()
# A second one is too many unless a minute passed meanwhile.
for _ in range(5):
    try:
        Sandbox.create(api_key=SLOW, **once).kill()
    except e2b.RateLimitException as err:
        assert "a minute" in str(err), err
        ok("RateLimitException")
        break

raises(NOT_FOUND, "not found", Sandbox.get_info, box.sandbox_id, api_key=OTHER)
assert Sandbox.kill(box.sandbox_id, api_key=OTHER) is False
assert box.kill() is True
assert Sandbox.kill(box.sandbox_id) is False
raises(NOT_FOUND, "not found", Sandbox.get_info, box.sandbox_id)
raises(NOT_FOUND, "not found", Sandbox.connect, box.sandbox_id)
raises(NOT_FOUND, "not found", Sandbox.set_timeout, box.sandbox_id, 1)
assert box.is_running() is False
ok("kill; what is gone or another client's is not found")


async def in_parallel():
    boxes = await asyncio.gather(*(AsyncSandbox.create(metadata={"n": str(n)}) for n in range(3)))
    assert len({b.sandbox_id for b in boxes}) == 3
    infos = await asyncio.gather(*(b.get_info() for b in boxes))
    assert [i.metadata for i in infos] == [{"n": str(n)} for n in range(3)]
    assert await asyncio.gather(*(b.kill() for b in boxes)) == [True] * 3


asyncio.run(in_parallel())
ok("AsyncSandbox: create, get_info, kill in parallel")

# The newest SDK's HTTP library has threads of its own, beside which an interpreter
# was seen to abort when it ended after all had worked.
sys.stdout.flush()
os._exit(0)
