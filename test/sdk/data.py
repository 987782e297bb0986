"""What a user of the Python SDK does in one sandbox, with its synchronous half and
then the asynchronous one. The SDK's own variables say where the daemon is. Each
line that is printed is a thing that worked."""

import asyncio
import inspect
import os
import re
import sys
import time
import urllib.error
import urllib.request

from e2b import (
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    InvalidArgumentException,
    NotFoundException,
    Sandbox,
    SandboxException,
    TimeoutException,
)
from e2b.sandbox.commands.command_handle import PtySize


def ok(name):
    print("ok " + name, flush=True)


def check(err, kind, pattern):
    assert isinstance(err, kind), f"{type(err).__name__} instead of {kind.__name__}: {err}"
    assert re.search(pattern, str(err)), str(err)
    return err


def raises(kind, pattern, call, *args, **kwargs):
    try:
        got = call(*args, **kwargs)
    except Exception as err:
        return check(err, kind, pattern)
    raise AssertionError(f"it worked: {got}")


async def araises(kind, pattern, awaitable):
    try:
        got = await awaitable
    except Exception as err:
        return check(err, kind, pattern)
    raise AssertionError(f"it worked: {got}")


def until(what, probe):
    for _ in range(1200):
        if probe():
            return
        time.sleep(0.05)
    raise AssertionError("it never came: " + what)


def post(url):
    urllib.request.urlopen(urllib.request.Request(url, method="POST", data=b"")).read()


def run_sync():
    box = Sandbox.create(timeout=600)
    assert box.is_running()

    r = box.commands.run('echo out; echo err >&2; echo "$A"', envs={"A": "é b"})
    assert (r.exit_code, r.stdout, r.stderr) == (0, "out\né b\n", "err\n"), r
    err = raises(CommandExitException, "3", box.commands.run, "echo no >&2; exit 3")
    assert (err.exit_code, err.stderr) == (3, "no\n")
    streamed = []
    box.commands.run("for i in 1 2 3; do echo $i; done", on_stdout=streamed.append)
    assert "".join(streamed) == "1\n2\n3\n"
    assert len(box.commands.run('head -c 3000000 /dev/zero | tr "\\0" x').stdout) == 3000000
    box.files.make_dir("sub")
    assert box.commands.run('basename "$PWD"', cwd="sub").stdout == "sub\n"
    raises(InvalidArgumentException, "does not exist|no such", box.commands.run, "true", cwd="/no/such/dir")
    raises(AuthenticationException, "no user", box.commands.run, "true", user="nobody-here")
    ok("sync: commands.run")

    h = box.commands.run("sleep 3600", background=True)
    assert any(p.pid == h.pid for p in box.commands.list())
    assert h.kill()
    assert raises(CommandExitException, ".", h.wait).error == "signal: killed"
    assert not box.commands.kill(h.pid)
    ok("sync: background, list, kill")

    h = box.commands.run('read a; echo "got $a"', background=True, stdin=True)
    h.disconnect()
    again = box.commands.connect(h.pid)
    box.commands.send_stdin(h.pid, "one\n")
    assert again.wait().stdout == "got one\n"
    assert box.commands.connect(h.pid).wait().exit_code == 0
    raises(NotFoundException, "no process", box.commands.connect, 4000000)
    if hasattr(box.commands, "stream_input"):  # since 2.6x
        h = box.commands.run("head -n 2", background=True, stdin=True)
        box.commands.stream_input(h.pid, iter(["one\n", b"two\n"]))
        assert h.wait().stdout == "one\ntwo\n"
        try:
            box.commands.stream_input(1 << 20, ["x"])
            raise AssertionError("there is no such process")
        except NotFoundException:
            pass
    if hasattr(box.commands, "close_stdin"):
        h = box.commands.run("cat; echo end", background=True, stdin=True)
        box.commands.close_stdin(h.pid)
        assert h.wait().stdout == "end\n"
    ok("sync: stdin, connect")

    # It would last longer than is waited for its end.
    raises(TimeoutException, ".", box.commands.run, "sleep 3600; echo late", timeout=1)
    until("the end of it", lambda: not any("sleep 3600; echo late" in p.args for p in box.commands.list()))
    ok("sync: a timeout kills")

    p = box.pty.create(PtySize(rows=31, cols=90), timeout=0)
    box.pty.resize(p.pid, PtySize(rows=17, cols=101))
    box.pty.send_stdin(p.pid, b"stty size; exit\n")
    seen = b""
    for _, _, data in p:
        seen += data or b""
    assert b"17 101" in seen, seen
    ok("sync: pty")

    w = box.files.write("dir/a.txt", "héllo")
    assert w.path == "/home/user/dir/a.txt", w
    assert box.files.read("dir/a.txt") == "héllo"
    content = bytes(i * 7 % 256 for i in range(300_000))
    box.files.write("b.bin", content)
    assert bytes(box.files.read("b.bin", format="bytes")) == content
    assert b"".join(box.files.read("b.bin", format="stream")) == content
    box.files.write("empty", "")
    assert box.files.read("empty") == ""
    many = box.files.write_files([{"path": "m/1", "data": "one"}, {"path": "m/2", "data": b"two"}])
    assert len(many) == 2 and box.files.read("m/2") == "two"
    if "gzip" in inspect.signature(box.files.write).parameters:
        box.files.write("z.txt", "zipped " * 1000, gzip=True)
        assert box.files.read("z.txt", gzip=True) == "zipped " * 1000
    raises(NotFoundException, "no such file|does not exist", box.files.read, "nothing")
    raises(NotFoundException, "no such file|does not exist", box.files.list, "/nothing")
    raises(InvalidArgumentException, "not a file|regular|directory", box.files.read, "/home/user")
    assert box.files.make_dir("deep/er") and not box.files.make_dir("deep/er")
    assert box.files.exists("deep/er") and not box.files.exists("deep/no")
    box.files.write("deep/f", "x")
    assert sorted((e.name, e.type.value) for e in box.files.list("deep")) == [("er", "dir"), ("f", "file")]
    info = box.files.get_info("deep/f")
    assert (info.size, info.permissions, info.mode) == (1, "-rw-r--r--", 0o644), info
    assert box.files.rename("deep/f", "deep/new/h").path == "/home/user/deep/new/h"
    box.files.remove("deep")
    box.files.remove("deep")
    assert not box.files.exists("deep")
    ok("sync: files")

    box.files.make_dir("watched")
    watch = box.files.watch_dir("watched")
    box.files.write("watched/w.txt", "1")
    events = []

    def both():
        events.extend(watch.get_new_events())
        return {("w.txt", "create"), ("w.txt", "write")} <= {(e.name, e.type.value) for e in events}

    until("the events", both)
    watch.stop()
    raises(SandboxException, ".", watch.get_new_events)
    raises(NotFoundException, "no such file|does not exist", box.files.watch_dir, "nowhere")
    ok("sync: watch_dir by polling")

    url = box.download_url("dir/a.txt", use_signature_expiration=60)
    assert urllib.request.urlopen(url).read().decode() == "héllo"
    try:
        urllib.request.urlopen(box.download_url("dir/a.txt", use_signature_expiration=-60))
        raise AssertionError("an expired URL worked")
    except urllib.error.HTTPError as err:
        assert err.code == 401 and b'"signature is already expired"' in err.read()
    ok("sync: signed URLs")

    held = os.environ.get("DATA_HELD")
    if held:
        h = box.commands.run(held, background=True, stdin=True)
        err = raises(SandboxException, "request ap-held .*cofferdam approvals approve ap-held", h.wait)
        assert not isinstance(err, TimeoutException)
        raises(SandboxException, "ap-held", box.commands.connect, h.pid)
        post(os.environ["E2B_API_URL"] + "/test/answer")
        again = box.commands.connect(h.pid)
        box.commands.send_stdin(h.pid, "go\n")
        assert "on with go" in again.wait().stdout
        raises(SandboxException, "rule no-such-thing denies it", box.commands.run, "forbidden thing")
        ok("sync: a hold ends the stream and the command goes on; a refused command")

    h = box.commands.run("sleep 3600", background=True)
    box.kill()
    err = raises(SandboxException, ".", h.wait)
    print("# the end of a stream of a killed sandbox:", type(err).__name__, str(err)[:80])
    assert not box.is_running()
    raises(TimeoutException, ".", box.files.read, "c.txt")
    raises(SandboxException, ".", box.commands.run, "true")
    ok("sync: a killed sandbox")


async def run_async():
    box = await AsyncSandbox.create(timeout=600)
    r = await box.commands.run("echo out")
    assert r.stdout == "out\n"
    h = await box.commands.run("while read a; do echo got $a; done", background=True, stdin=True)
    await box.commands.send_stdin(h.pid, "one\n")
    for _ in range(1200):
        if "got one" in h.stdout:
            break
        await asyncio.sleep(0.05)
    assert "got one" in h.stdout
    assert await h.kill()
    await araises(CommandExitException, ".", h.wait())
    await araises(TimeoutException, ".", box.commands.run("sleep 3600", timeout=1))
    ok("async: commands")

    await box.files.write("a", b"\x00\x01")
    assert bytes(await box.files.read("a", format="bytes")) == b"\x00\x01"
    chunks = [c async for c in await box.files.read("a", format="stream")]
    assert b"".join(chunks) == b"\x00\x01"
    await box.files.make_dir("watched")
    events = []
    watch = await box.files.watch_dir("watched", on_event=events.append)
    await box.files.write("watched/w.txt", "1")
    for _ in range(1200):
        if events:
            break
        await asyncio.sleep(0.05)
    assert events and events[0].name == "w.txt", events
    await watch.stop()
    ok("async: files and watch_dir by stream")
    await box.kill()
    assert not await box.is_running()
    ok("async: a killed sandbox")


run_sync()
asyncio.run(run_async())

# The newest SDK's HTTP library has threads of its own, beside which an interpreter
# was seen to abort when it ended after all had worked.
sys.stdout.flush()
os._exit(0)
