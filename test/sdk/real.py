"""What a user of the Python SDK does with a daemon that has real sandboxes and a
real registry. The SDK's own variables say where the daemon is; COFFERDAM is the
program by which a person answers. Each line that is printed is a thing that
worked."""

import json
import os
import re
import subprocess
import sys
import threading
import time

from e2b import CommandExitException, Sandbox, SandboxException, SandboxNotRunningException


def ok(name):
    print("ok " + name, flush=True)


def until(what, probe):
    for _ in range(1200):
        got = probe()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("it never came: " + what)


def answer(verb, request):
    """Answers a request on the revision that the list shows of it."""
    listed = subprocess.run([os.environ["COFFERDAM"], "approvals", "list", "--json"], capture_output=True, text=True, check=True)
    shown = [r["answer_id"] for r in json.loads(listed.stdout) if r["id"] == request]
    assert len(shown) == 1, listed.stdout
    done = subprocess.run([os.environ["COFFERDAM"], "approvals", verb, shown[0], "--reason", "the test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Packages: what the policy lets in is installed, of the rest the program reads why not.
box = Sandbox.create(metadata={"policy": "list"}, timeout=600)
box.commands.run("pip install --quiet iniconfig==2.0.0")
assert box.commands.run("python3 -c 'import iniconfig; print(iniconfig.__name__)'").stdout == "iniconfig\n"
ok("an allowed package is installed")
try:
    box.commands.run("pip install --quiet colorama")
    raise AssertionError("it was installed")
except CommandExitException as refused:
    assert "Blocked by cofferdam" in refused.stderr and "not on the allowlist" in refused.stderr, refused.stderr
ok("a package that no list names is refused, with the reason in what pip prints")
try:
    Sandbox.create(metadata={"policy": "nobodys"})
    raise AssertionError("it was made")
except SandboxException as refused:
    assert "nobodys" in str(refused), refused
ok("a policy that the token may not choose is refused")

# Files as the clients of other servers know them; sudo asks nothing and gives nothing.
assert "MemTotal" in box.files.read("/proc/meminfo")
written = box.files.write("/srv/app/of/mine.txt", "1")
assert written.path == "/srv/app/of/mine.txt", written
assert box.commands.run("stat -c %U /srv/app/of /srv/app/of/mine.txt && echo 2 >>/srv/app/of/mine.txt").stdout == "user\nuser\n"
box.files.write("/srv/app/of/mine.txt", "3")
assert box.files.read("/srv/app/of/mine.txt") == "3"
for path in ("/etc/passwd", "/proc/1/environ"):
    try:
        box.files.write(path, "x")
        raise AssertionError("it was written: " + path)
    except SandboxException:
        pass
box.commands.run("ln -s /srv/app ~/app && ln -s of/mine.txt ~/app/link")
assert box.files.get_info("/home/user/app/link").symlink_target == "/srv/app/of/mine.txt"
posture = "grep -E '^(Uid|Cap|NoNewPrivs)' /proc/self/status"
assert box.commands.run("sudo -n " + posture).stdout == box.commands.run(posture).stdout
assert box.commands.run("sudo id -un").stdout == "user\n"
ok("absolute paths, files of the kernel, links, sudo")

# A snapshot has processes, files and what was installed; the copies are not each other.
box.commands.run("nohup sh -c 'i=0; while :; do i=$((i+1)); echo $i >/home/user/count; sleep 0.1; done' >/dev/null 2>&1 &")
until("a count", lambda: box.files.exists("/home/user/count") and box.files.read("/home/user/count").strip())
snapshot = box.create_snapshot()
copies = [Sandbox.create(snapshot.snapshot_id, timeout=600) for _ in range(2)]
said = []
for copy in copies:
    assert copy.commands.run("python3 -c 'import iniconfig'").exit_code == 0
    first = int(copy.files.read("/home/user/count").strip() or 0)
    until("the count to go on", lambda: int(copy.files.read("/home/user/count").strip() or 0) > first)
    said.append(copy.commands.run("hostname; cat /etc/machine-id; head -c 16 /dev/urandom | od -An -tx1; date +%s").stdout.split("\n"))
assert said[0][0] != said[1][0] and said[0][1] != said[1][1] and said[0][2] != said[1][2], said
assert all(abs(int(s[3]) - time.time()) < 60 for s in said), said
ok("a snapshot goes on as often as it is started, each time as another sandbox")
for copy in copies:
    copy.kill()

# A pause keeps the very processes.
before = int(box.files.read("/home/user/count").strip() or 0)
assert box.pause()
assert Sandbox.get_info(box.sandbox_id).state.value == "paused"
box = box.connect(timeout=600)
until("the count to go on", lambda: int(box.files.read("/home/user/count").strip() or 0) > before)
ok("a paused sandbox goes on where it stood")
box.kill()

# A kill waits behind no input, though the command reads none of it.
box = Sandbox.create(timeout=600)
handle = box.commands.run("exec sleep 1000", background=True, stdin=True)
sent, over = [], threading.Event()


def fill():
    try:
        while True:
            box.commands.send_stdin(handle.pid, "x" * (256 << 10))
            sent.append(256 << 10)
    except SandboxException:
        over.set()  # it was killed


threading.Thread(target=fill, daemon=True).start()
until("more input to wait than the sandbox takes", lambda: sum(sent) >= 4 << 20)
assert box.commands.run(f"kill -0 {handle.pid}").exit_code == 0
assert handle.kill()
try:
    handle.wait()
    raise AssertionError("it was not killed")
except CommandExitException as ended:
    assert ended.error == "signal: killed", ended
assert over.wait(60), "the input that waited still waits"
ok("a kill waits behind no input")
box.kill()

# A hold: the stream ends and says what for, the process waits on disk, and goes on.
box = Sandbox.create(metadata={"policy": "ask"}, timeout=600)
handle = box.commands.run("pip install --quiet iniconfig==2.0.0 && echo installed", background=True)
try:
    handle.wait()
    raise AssertionError("it did not wait for anybody")
except SandboxException as held:
    request = re.search(r"ap-[a-z0-9]+", str(held))
    assert request, held
until("the sandbox to be paused", lambda: Sandbox.get_info(box.sandbox_id).state.value == "paused")
ok("an install that waits for a person ends its stream with the request's id, and its sandbox is paused")
answer("approve", request[0])
until("the sandbox to run", lambda: Sandbox.get_info(box.sandbox_id).state.value == "running")


def reattached():
    try:
        return box.commands.connect(handle.pid).wait()
    except CommandExitException:
        raise
    except SandboxException as error:
        print("# " + str(error)[:200], flush=True)
        return None


result = until("the command's end", reattached)
assert result.exit_code == 0, result
assert box.commands.run("python3 -c 'import iniconfig'").exit_code == 0
ok("after the answer the same process installs it")
box.kill()

# A snapshot of files begins anew on them; what was in memory stays where it was.
box = Sandbox.create(metadata={"policy": "list"}, timeout=600)
box.commands.run("echo kept >kept; echo memory >/tmp/here; sleep 1000 &")
for mode, there in (("filesystem", "none"), ("full", "memory")):
    snap = box.create_snapshot(mode=mode)
    copy = Sandbox.create(snap.snapshot_id, metadata={"policy": "list"}, timeout=600)
    assert copy.commands.run("cat kept; cat /tmp/here 2>/dev/null || echo none").stdout == f"kept\n{there}\n", mode
    copy.kill()
    assert Sandbox.delete_snapshot(snap.snapshot_id)
assert box.commands.run("cat /tmp/here").stdout == "memory\n"
ok("a snapshot of files, and one with memory")


# A sandbox that is paused or gone tells programs just that, by the exception after which they connect or make another.
def not_running(what):
    for call in (lambda: box.commands.run("true"), lambda: box.files.read("kept"), lambda: box.files.write("new", "x"), lambda: box.files.list(".")):
        try:
            got = call()
        except SandboxNotRunningException:
            continue
        raise AssertionError(f"{what}: {got}")


assert box.pause()
not_running("it is paused")
box.connect(timeout=600)
assert box.commands.run("cat kept; ls").stdout == "kept\nkept\n"
box.kill()
not_running("it is gone")
ok("what is not running says so")

# The newest SDK's HTTP library has threads of its own, beside which an interpreter
# was seen to abort when it ended after all had worked.
sys.stdout.flush()
os._exit(0)
