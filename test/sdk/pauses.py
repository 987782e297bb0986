"""What a user of the Python SDK does with sandboxes of which only files are kept, and
what their logs say. The SDK's own variables say where the daemon is; COFFERDAM is the
operator's program. Each line that is printed is a thing that worked."""

import importlib
import os
import subprocess
import sys
import time

from e2b import ConnectionConfig, Sandbox, SandboxException
from e2b.api.client_sync import get_api_client


def ok(name):
    print("ok " + name, flush=True)


def until(what, probe):
    for _ in range(1200):
        got = probe()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("it never came: " + what)


def says(box, command):
    return box.commands.run(command).stdout.strip()


box = Sandbox.create(metadata={"policy": "list"}, envs={"GIVEN": "word"}, timeout=600)
box.commands.run("pip install --quiet iniconfig==2.0.0 && echo kept >kept && touch /tmp/gone")
RUN = says(box, "echo $COFFERDAM_RUN")
LOOK = "cat kept; echo $GIVEN $COFFERDAM_RUN $(id -un); python3 -c 'import iniconfig; print(iniconfig.__name__)'; ls /tmp | grep -c gone"


def began_anew(cut):
    assert says(box, LOOK + " || true") == f"kept\nword {RUN} user\niniconfig\n0", says(box, LOOK + " || true")
    assert not box.commands.list(), box.commands.list()
    assert says(box, "pgrep -x sleep || echo none") == "none"
    try:
        cut.wait()
        raise AssertionError("what ran before the pause has not ended")
    except SandboxException:
        pass


# A pause that keeps the files: they and all that was installed stay, what ran is gone.
cut = box.commands.run("sleep 1000", background=True)
assert box.pause(mode="filesystem") is True
assert Sandbox.get_info(box.sandbox_id).state.value == "paused"
assert box.pause() is False
box.connect(timeout=600)
began_anew(cut)
ok("a pause of files")

# The ledger is the run's: what was served before is accounted for after it, too.
box.commands.run("pip install --quiet --force-reinstall iniconfig==2.0.0")
report = subprocess.run([os.environ["COFFERDAM"], "audit", "report", "unaccounted"], capture_output=True, text=True)
assert report.returncode == 0 and RUN not in report.stdout, report
served = subprocess.run([os.environ["COFFERDAM"], "audit", "report", "run", RUN], capture_output=True, text=True)
assert "iniconfig" in served.stdout and "paused" in served.stdout, served
ok("the ledger outlives it")

# A pause with memory, and who comes back starts anew; the next one goes on.
cut = box.commands.run("touch /tmp/gone; exec sleep 1000", background=True)
until("the file", lambda: box.files.exists("/tmp/gone"))
assert box.pause(strict=True) is True
box.connect(timeout=600, on_resume="reboot")
began_anew(cut)
stays = box.commands.run("sleep 1000", background=True)
box.connect(timeout=600, on_resume="reboot")
assert [p.pid for p in box.commands.list()] == [stays.pid], "a connect has ended what ran"
assert box.pause(mode="full") is True
box.connect(timeout=600)
assert [p.pid for p in box.commands.list()] == [stays.pid], "a pause with memory has ended what ran"
ok("a connect that starts anew")

# The log, as the SDK's own client reads it.
names = ("get_v_2_sandboxes_sandbox_id_logs", "get_v2_sandboxes_sandbox_id_logs")
modules = [m for m in names if importlib.util.find_spec("e2b.api.client.api.sandboxes." + m)]
read = importlib.import_module("e2b.api.client.api.sandboxes." + modules[0])
models = importlib.import_module("e2b.api.client.models")
api = get_api_client(ConnectionConfig())
handle = box.commands.run("echo to the log; echo and badly >&2; sleep 1000", background=True, user="root")


def entries(**query):
    answer = read.sync_detailed(box.sandbox_id, client=api, **query)
    assert answer.status_code == 200, answer
    return [(e.level.value, e.fields.additional_properties) for e in answer.parsed.logs]


def written(stream):
    return [f["data"] for _, f in entries(search="the log") + entries(search="badly") if f["event_type"] == stream]


assert until("what it wrote", lambda: written("stdout")) == ["to the log\n"]
assert until("what it wrote to stderr", lambda: written("stderr")) == ["and badly\n"]
box.commands.kill(handle.pid)
last = until("its end", lambda: [f for level, f in entries(level=models.LogLevel.WARN, direction=models.LogsDirection.BACKWARD) if f["pid"] == str(handle.pid)])
assert (last[0]["user"], last[0]["event_type"], last[0]["status"]) == ("root", "process_end", "signal: killed"), last
first = entries(limit=1)[0][1]
assert first["event_type"] == "process_start" and "iniconfig" in first["cmd"] and first["user"] == "user", first
ok("logs")

box.kill()
assert read.sync_detailed(box.sandbox_id, client=api).status_code == 404
ok("no log of what is gone")

# The newest SDK's HTTP library has threads of its own, beside which an interpreter
# was seen to abort when it ended after all had worked.
sys.stdout.flush()
os._exit(0)
