"""What another client of the Connect protocol does in one sandbox: binary messages.

The client is the one that the newest Python SDK brings, with the messages that it
has, and the form that it takes by itself; the SDK asks it for JSON. Each line that
this prints is a thing that worked.
"""

import os
import sys

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b import Sandbox
from e2b.envd.filesystem import filesystem_pb as fs
from e2b.envd.filesystem.filesystem_connect import FilesystemClientSync
from e2b.envd.process import process_pb as ps
from e2b.envd.process.process_connect import ProcessClientSync
from protobuf import Oneof


def ok(name):
    print("ok " + name, flush=True)


box = Sandbox.create(timeout=600)
url = os.environ["E2B_SANDBOX_URL"]
token = getattr(box, "_envd_access_token", None) or box.connection_config.sandbox_headers["X-Access-Token"]
headers = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "49983", "X-Access-Token": token}
files = FilesystemClientSync(url, send_compression=None)
processes = ProcessClientSync(url, send_compression=None)

box.files.write("bin/a.txt", "a" * 300)
made = files.make_dir(fs.MakeDirRequest(path="bin/d"), headers=headers).entry
assert (made.name, made.path, made.type) == ("d", "/home/user/bin/d", fs.FileType.DIRECTORY), made
entry = files.stat(fs.StatRequest(path="bin/a.txt"), headers=headers).entry
assert (entry.size, entry.mode, entry.owner, entry.permissions) == (300, 0o644, "user", "-rw-r--r--"), entry
assert entry.modified_time.seconds > 1_000_000_000, entry
entries = files.list_dir(fs.ListDirRequest(path="bin", depth=1), headers=headers).entries
assert sorted(e.name for e in entries) == ["a.txt", "d"], entries
moved = files.move(fs.MoveRequest(source="bin/a.txt", destination="bin/b.txt"), headers=headers).entry
assert moved.path == "/home/user/bin/b.txt", moved
ok("files")

try:
    files.stat(fs.StatRequest(path="nothing"), headers=headers)
    raise AssertionError("it worked")
except ConnectError as err:
    assert err.code == Code.NOT_FOUND, err
ok("errors")

watcher = files.create_watcher(fs.CreateWatcherRequest(path="bin"), headers=headers).watcher_id
box.files.write("bin/new.txt", "x")
seen = []
while len(seen) < 2:
    seen += files.get_watcher_events(fs.GetWatcherEventsRequest(watcher_id=watcher), headers=headers).events
assert seen[0].name == "new.txt" and seen[0].type == fs.EventType.CREATE, seen
files.remove_watcher(fs.RemoveWatcherRequest(watcher_id=watcher), headers=headers)
ok("watchers")

start = ps.StartRequest(
    process=ps.ProcessConfig(cmd="/bin/bash", args=["-c", 'echo "$A"; read line; echo "got $line" >&2; head -c 200000 /dev/zero; exit 3'], envs={"A": "ä"}),
    tag="mine",
    stdin=True,
)
stdout, stderr, pid, end = b"", b"", 0, None
for message in processes.start(start, headers=headers):
    event = message.event.event
    kind, value = event.field, event.value
    if kind == "start":
        pid = value.pid
        assert any(p.pid == pid and p.tag == "mine" and p.config.cmd == "/bin/bash" for p in processes.list(ps.ListRequest(), headers=headers).processes)
        selector = ps.ProcessSelector(selector=Oneof("tag", "mine"))
        processes.send_input(ps.SendInputRequest(process=selector, input=ps.ProcessInput(input=Oneof("stdin", b"hello\n"))), headers=headers)
    elif kind == "data":
        out = value.output
        if out.field == "stdout":
            stdout += out.value
        else:
            stderr += out.value
    elif kind == "end":
        end = value
assert pid > 0 and stdout == "ä\n".encode() + bytes(200000) and stderr == b"got hello\n", (pid, len(stdout), stderr)
assert (end.exit_code, end.exited, end.status) == (3, True, "exit status 3"), end
ok("processes: a stream of events, input, the list")

box.kill()
sys.stdout.flush()
os._exit(0)
