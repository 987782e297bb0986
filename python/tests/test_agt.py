"""The provider against real sandboxes. None of the toolkit's own faults is repeated."""

from __future__ import annotations

import asyncio
import os
import subprocess
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cofferdam import Client
from cofferdam.agt import (
    CofferdamSandboxProvider,
    ExecutionStatus,
    IsolationRuntime,
    SandboxCodeViolation,
    SandboxConfig,
    SessionStatus,
    ToolAnswer,
    ToolBusy,
    ToolError,
    ToolRaised,
    ToolRefused,
    ToolTimedOut,
    _tools,
)

pytestmark = pytest.mark.usefixtures("daemon")

ALLOW = {"defaults": {"action": "allow"}}


@pytest.fixture(scope="module")
def provider(daemon: Path) -> Iterator[CofferdamSandboxProvider]:
    with CofferdamSandboxProvider() as made:
        yield made


def model(plain: dict[str, Any]) -> Any:
    """A PolicyDocument of the toolkit that is installed, else the mapping."""
    if os.environ.get("COFFERDAM_TOOLKIT", "none") == "none":
        return plain
    from agent_os.policies import PolicyDocument

    return PolicyDocument.model_validate(plain)


def said(provider: CofferdamSandboxProvider, handle: Any, code: str, **more: Any) -> str:
    done = provider.execute_code(handle.agent_id, handle.session_id, textwrap.dedent(code), **more)
    assert done.result is not None
    return (done.result.stdout + done.result.stderr).strip()


# What people.md calls "don't repeat".


def test_a_context_does_not_switch_rules_off(provider: CofferdamSandboxProvider) -> None:
    rules = [
        {
            "name": "no-secret",
            "condition": {"field": "code", "operator": "contains", "value": "secret"},
            "action": "deny",
        }
    ]
    h = provider.create_session("a", model({"rules": rules, **ALLOW}))
    for spoof in ({"code": "harmless"}, {"action": "other"}, {"agent_id": "root"}, {"code": None}):
        with pytest.raises(PermissionError, match="Policy denied: Matched rule 'no-secret'"):
            provider.execute_code("a", h.session_id, "print('secret')", context=spoof)
    by_agent = [{"name": "me", "condition": {"field": "agent_id", "operator": "eq", "value": "b"}, "action": "deny"}]
    by_more = [{"name": "team", "condition": {"field": "team", "operator": "eq", "value": "red"}, "action": "deny"}]
    h = provider.create_session("b", model({"rules": by_agent, **ALLOW}))
    with pytest.raises(PermissionError):
        provider.execute_code("b", h.session_id, "1", context={"agent_id": "a"})
    h = provider.create_session("c", model({"rules": by_more, **ALLOW}))
    assert said(provider, h, "print(1)", context={"team": "blue"}) == "1", "the caller's own fields are judged"
    with pytest.raises(PermissionError, match="team"):
        provider.execute_code("c", h.session_id, "1", context={"team": "red"})


def test_what_the_gate_denies_is_in_the_log(provider: CofferdamSandboxProvider) -> None:
    rules = [
        {
            "name": "no (secrets)",
            "message": "not that",
            "condition": {"field": "code", "operator": "contains", "value": "secret"},
            "action": "deny",
        }
    ]
    h = provider.create_session("a", model({"rules": rules, **ALLOW}))
    box = provider.sandbox("a", h.session_id)
    assert said(provider, h, "print(1)") == "1", "the positive control"
    for code, rule, reason in (
        ("print('secret')", "caller.no--secrets-", "not that"),
        ("import os; os.system('id')", "caller.scan_code", "os.system"),
    ):
        with pytest.raises(PermissionError):
            provider.execute_code("a", h.session_id, code)
        with Client() as client:
            found = [r for r in client.audit.records(sandbox=box.id) if code in r.get("command", [])]
        assert [r["outcome"] for r in found] == ["blocked"], "it was never started"
        assert found[0]["rule"] == rule and reason in found[0]["reason"] and found[0]["resolved_by"] == "caller"


def test_a_denial_stands_without_the_daemon(
    provider: CofferdamSandboxProvider, caplog: pytest.LogCaptureFixture
) -> None:
    h = provider.create_session("a", model({"defaults": {"action": "deny"}}))
    provider.sandbox("a", h.session_id).kill()
    with pytest.raises(PermissionError, match="Policy denied"):
        provider.execute_code("a", h.session_id, "1")
    assert "is not in the daemon's log" in caplog.text


def test_a_document_without_limits_gets_the_configurations(provider: CofferdamSandboxProvider) -> None:
    config = SandboxConfig(memory_mb=256, cpu_limit=0.5)
    h = provider.create_session("a", model(dict(ALLOW)), config)
    usage = provider.sandbox("a", h.session_id).usage()
    assert usage.memory_limit == 256 << 20 and usage.cpu_count == 0.5
    h = provider.create_session(
        "a", model({"defaults": {"action": "allow", "max_memory_mb": 384, "max_cpu": 0.25}}), config
    )
    usage = provider.sandbox("a", h.session_id).usage()
    assert usage.memory_limit == 384 << 20 and usage.cpu_count == 0.25


def test_the_documents_time_is_applied(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session(
        "a", model({"defaults": {"action": "allow", "timeout_seconds": 1}}), SandboxConfig(timeout_seconds=600)
    )
    done = provider.execute_code("a", h.session_id, "import time; print('begun', flush=True); time.sleep(1000)")
    assert (
        done.status == ExecutionStatus.FAILED
        and done.result.killed
        and "timed out after 1 seconds" in done.result.kill_reason
    )
    assert done.result.stdout == "begun\n" and not done.result.success
    assert said(provider, h, "print(1)") == "1", "the session goes on"


def test_output_stays_bounded_under_a_policy(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session("a", model(dict(ALLOW)), SandboxConfig(output_max_bytes=1000))
    done = provider.execute_code("a", h.session_id, "import sys; print('x' * 5000); sys.stderr.write('y' * 5000)")
    assert len(done.result.stdout) == 1000 and len(done.result.stderr) == 1000


def test_an_allowlist_does_not_open_the_network(provider: CofferdamSandboxProvider) -> None:
    document = {"network_allowlist": ["api.example"], "defaults": {"action": "allow", "network_default": "allow"}}
    h = provider.create_session("a", model(document))
    code = """
        import socket
        for name in ("api.example", "other.example"):
            try:
                print(name, socket.gethostbyname(name).startswith("127.64."))
            except OSError as e:
                print(name, "no such name")
        try:
            socket.create_connection(("192.0.2.1", 443), timeout=5)
            print("connected")
        except OSError:
            print("no route")
    """
    assert said(provider, h, code).splitlines() == ["api.example True", "other.example no such name", "no route"]


def test_an_open_network_is_refused(provider: CofferdamSandboxProvider) -> None:
    for policy in (None, ALLOW):
        with pytest.raises(ValueError, match="network_allowlist"):
            provider.create_session("a", policy, SandboxConfig(network_enabled=True))
    document = {"network_allowlist": ["api.example"], **ALLOW}
    assert (
        provider.create_session("a", model(document), SandboxConfig(network_enabled=True)).status == SessionStatus.READY
    )


def test_no_default_denies(provider: CofferdamSandboxProvider) -> None:
    """4.x allows here; the strict release's default is followed, whichever is installed, and none runs ungated."""
    for policy in (model({"name": "empty"}), model({"rules": []}), {}):
        h = provider.create_session("a", policy)
        with pytest.raises(PermissionError, match="Policy denied: No rules matched"):
            provider.execute_code("a", h.session_id, "print(1)")
    h = provider.create_session("a")
    assert said(provider, h, "print(1)") == "1", "no policy at all: the code runs, and gets nothing"


def test_a_restore_keeps_policy_and_configuration(provider: CofferdamSandboxProvider) -> None:
    rules = [
        {"name": "no", "condition": {"field": "code", "operator": "contains", "value": "forbidden"}, "action": "deny"}
    ]
    h = provider.create_session(
        "a",
        model({"rules": rules, **ALLOW}),
        SandboxConfig(memory_mb=256, output_max_bytes=100, env_vars={"MINE": "x"}),
    )
    said(provider, h, "open('/workspace/f', 'w').write('v1'); open('/tmp/f', 'w').write('v1')")
    saved = provider.save_state("a", h.session_id, "s1")
    assert saved.name == "s1" and [c.name for c in provider.list_checkpoints("a")] == ["s1"]
    said(provider, h, "open('/workspace/f', 'w').write('v2')")
    before = provider.sandbox("a", h.session_id).id
    provider.restore_state("a", h.session_id, "s1")
    code = "import os; print(open('/workspace/f').read(), open('/tmp/f').read(), os.environ['MINE'], 'z' * 200)"
    assert said(provider, h, code).startswith("v1 v1 x zzz") and len(said(provider, h, code)) <= 100
    assert provider.sandbox("a", h.session_id).usage().memory_limit == 256 << 20
    with pytest.raises(PermissionError):
        provider.execute_code("a", h.session_id, "'forbidden'")
    with Client() as client:
        assert before not in [b.id for b in client.sandboxes.list()], "the one before is gone"
    # A restore that can't be leaves the session as it is.
    with pytest.raises(RuntimeError, match="can't be restored"):
        provider.restore_state("a", h.session_id, "no-such")
    assert said(provider, h, "print(open('/workspace/f').read())") == "v1"
    assert provider.get_session_status("a", h.session_id) == SessionStatus.READY
    with CofferdamSandboxProvider() as another:
        assert [c.name for c in another.list_checkpoints("a")] == ["s1"], "another process finds them"
        assert another.list_checkpoints("") == [] and another.list_checkpoints("a.s1") == []
    provider.delete_checkpoint("a", "s1")
    assert provider.list_checkpoints("a") == []
    with pytest.raises(RuntimeError, match="no checkpoint"):
        provider.delete_checkpoint("a", "s1")


# What is enforced.


def test_memory_is_bounded(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session("a", None, SandboxConfig(memory_mb=128))
    done = provider.execute_code("a", h.session_id, "x = bytearray(100 << 10); print(len(x))")
    assert done.result.success, "the positive control"
    done = provider.execute_code(
        "a", h.session_id, "x = b''.join(bytes([i % 251]) * (1 << 20) for i in range(512)); print(len(x))"
    )
    assert not done.result.success and "536870912" not in done.result.stdout
    assert (done.result.killed and done.result.kill_reason == "out of memory") or "MemoryError" in done.result.stderr


def test_processes_are_bounded(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session("a", None, SandboxConfig(memory_mb=2048))
    code = """
        import os, sys, time
        made = 0
        try:
            for i in range(2000):
                if os.fork() == 0:
                    time.sleep(1000)
                made += 1
        except OSError:
            print("refused after", made, flush=True)
        os._exit(0)
    """
    out = said(provider, h, code)
    assert out.startswith("refused after") and 10 < int(out.split()[-1]) <= 256


def test_mounts(provider: CofferdamSandboxProvider, tmp_path: Path) -> None:
    given, taken = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    taken.mkdir()
    taken.chmod(0o777)
    (given / "data").write_text("given")
    document = {"sandbox_mounts": {"input_dir": str(given), "output_dir": str(taken)}, **ALLOW}
    h = provider.create_session("a", document)  # the mapping: objects of 4.x lose this key
    code = """
        print(open("/input/data").read())
        open("/output/result", "w").write("taken")
        try:
            open("/input/more", "w")
            print("writable")
        except OSError:
            print("read-only")
    """
    assert said(provider, h, code) == "given\nread-only"
    assert (taken / "result").read_text() == "taken" and not (given / "more").exists()


@pytest.mark.parametrize(
    "path",
    ["/", "/etc", "/etc/ssl", "/var/run", "/usr/lib", "/proc/self", "/dev/shm", "/no/such", "/root/.ssh", "{tmp}/link"],
)
def test_protected_mounts(provider: CofferdamSandboxProvider, tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(ValueError, match="mount"):
        provider.create_session("a", None, SandboxConfig(input_dir=path.format(tmp=tmp_path)))


def test_variables(provider: CofferdamSandboxProvider) -> None:
    variables = {
        "LD_PRELOAD": "x",
        "ld_audit": "x",
        "Bash_Env": "x",
        "PYTHONSTARTUP": "x",
        "NODE_OPTIONS": "x",
        "OK": "yes",
    }
    h = provider.create_session("a", None, SandboxConfig(env_vars=variables))
    code = f"import os; print([n for n in {list(variables)!r} if n in os.environ])"
    assert said(provider, h, code) == "['OK']"


def test_code_that_starts_programs(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session("a")
    with pytest.raises(SandboxCodeViolation) as e:
        provider.execute_code("a", h.session_id, "import os\nos.system('id')")
    assert e.value.violations[0].line == 2 and isinstance(e.value, PermissionError)
    deny = provider.create_session("b", model({"rules": [], "defaults": {"action": "deny"}}))
    with pytest.raises(PermissionError, match="Policy denied"):
        provider.execute_code("b", deny.session_id, "import os\nos.system('id')")  # the gate comes first
    deep = "+".join(["a"] * 3000)
    if os.environ.get("COFFERDAM_TOOLKIT", "none") == "none":  # our own scanner looks at it all
        assert "NameError" in said(provider, h, deep) or "RecursionError" in said(provider, h, deep)
        return
    with pytest.raises(PermissionError, match="nested"):
        provider.execute_code("a", h.session_id, deep)


@pytest.mark.parametrize("name", ["", "-x", "a/b", "../x", "a b", "a\n", "x" * 129, None, 5])
def test_names(provider: CofferdamSandboxProvider, name: Any) -> None:
    with pytest.raises(ValueError):
        provider.create_session(name)
    with pytest.raises(ValueError):
        provider.save_state("a", "s", name)


@pytest.mark.parametrize(
    "config",
    [
        {"timeout_seconds": 0},
        {"memory_mb": -1},
        {"cpu_limit": float("inf")},
        {"output_max_bytes": 0},
        {"runtime": "chroot"},
        {"timeout_seconds": "9"},
    ],
)
def test_configurations_that_are_none(provider: CofferdamSandboxProvider, config: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        provider.create_session("a", None, SandboxConfig(**config))


def test_a_ring_is_not_ignored(provider: CofferdamSandboxProvider) -> None:
    config = SandboxConfig()
    config.ring = 3
    with pytest.raises(ValueError, match="ring"):
        provider.create_session("a", None, config)


def test_isolation_by_name(provider: CofferdamSandboxProvider) -> None:
    provider.create_session("a")
    assert provider.runtime == IsolationRuntime.GVISOR and provider.kernel_isolated
    with CofferdamSandboxProvider(isolation="container") as contained:
        assert contained.runtime == IsolationRuntime.RUNC and not contained.kernel_isolated
        h = contained.create_session("a")
        assert contained.sandbox("a", h.session_id).info.engine == "runc" and said(contained, h, "print(1)") == "1"
        h = contained.create_session("a", None, SandboxConfig(runtime="runsc"))
        assert contained.sandbox("a", h.session_id).info.engine == "gvisor"
    assert CofferdamSandboxProvider(isolation="hyperlight").runtime == IsolationRuntime.KATA
    assert (
        CofferdamSandboxProvider().runtime == IsolationRuntime.AUTO and not CofferdamSandboxProvider().kernel_isolated
    )
    with pytest.raises(ValueError, match="there are"):
        CofferdamSandboxProvider(isolation="jail")


def test_availability(daemon: Path, tmp_path: Path) -> None:
    assert CofferdamSandboxProvider().is_available()
    away = CofferdamSandboxProvider(host=f"unix://{tmp_path}/none")
    assert not away.is_available() and "no daemon" in away.unavailable_reason
    with pytest.raises(RuntimeError, match="no daemon"):
        away.create_session("a")
    bare = CofferdamSandboxProvider(template="nothing")
    assert not bare.is_available() and "template build nothing" in bare.unavailable_reason


def test_ends(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session("a")
    box = provider.sandbox("a", h.session_id).id
    with pytest.raises(RuntimeError, match="No active session"):
        provider.execute_code("b", h.session_id, "1")  # another agent's
    with Client() as client:
        client.sandboxes.remove(box)  # behind its back
    assert provider.get_session_status("a", h.session_id) == SessionStatus.DESTROYED
    with pytest.raises(RuntimeError, match="No active session"):
        provider.execute_code("a", h.session_id, "1")
    provider.destroy_session("a", h.session_id)
    provider.destroy_session("a", h.session_id)
    provider.destroy_session("nobody", "nothing")
    with pytest.raises(RuntimeError, match="No active session"):
        provider.execute_code("a", h.session_id, "1")


def test_a_provider_that_ends_takes_its_sessions_along(daemon: Path) -> None:
    code = "from cofferdam.agt import *; p = CofferdamSandboxProvider(); h = p.create_session('a'); print(p.sandbox('a', h.session_id).id)"
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with Client() as client:
        assert done.stdout.strip() and done.stdout.strip() not in [b.id for b in client.sandboxes.list()]


def test_cancel(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session("a")
    results: list[Any] = []
    thread = threading.Thread(
        target=lambda: results.append(provider.execute_code("a", h.session_id, "import time; time.sleep(1000)"))
    )
    thread.start()
    while not provider.running_executions("a", h.session_id):
        time.sleep(0)
    (execution,) = provider.running_executions("a", h.session_id)
    assert provider.get_session_status("a", h.session_id) == SessionStatus.EXECUTING
    assert provider.get_execution_status("a", h.session_id, execution).status == ExecutionStatus.RUNNING
    assert not provider.cancel_execution("a", h.session_id, "other")
    assert provider.cancel_execution("a", h.session_id, execution)
    thread.join()
    assert results[0].status == ExecutionStatus.CANCELLED and results[0].result.kill_reason == "cancelled"
    assert not provider.cancel_execution("a", h.session_id, execution), "it is over"


def test_async_twins(provider: CofferdamSandboxProvider) -> None:
    async def whole() -> None:
        h = await provider.create_session_async("a")
        done = await provider.execute_code_async("a", h.session_id, "open('/workspace/f', 'w').write('1'); print(1)")
        assert done.result.stdout == "1\n"
        await provider.save_state_async("a", h.session_id, "async")
        await provider.restore_state_async("a", h.session_id, "async")
        assert (await provider.run_async("a", ["cat", "/workspace/f"], session_id=h.session_id)).stdout == "1"
        assert not await provider.cancel_execution_async("a", h.session_id, "none")
        await provider.destroy_session_async("a", h.session_id)
        provider.delete_checkpoint("a", "async")

    asyncio.run(whole())


def test_run(provider: CofferdamSandboxProvider) -> None:
    h = provider.create_session("runner", None, SandboxConfig(timeout_seconds=30))
    result = provider.run(
        "runner", ["sh", "-c", "echo $MINE; id -u"], SandboxConfig(env_vars={"MINE": "x", "LD_PRELOAD": "y"})
    )
    assert result.stdout == "x\n65534\n" and result.success
    assert provider.run("runner", ["sleep", "1000"], SandboxConfig(timeout_seconds=0.5), session_id=h.session_id).killed
    assert provider.run("runner", ["true"], session_id="other").exit_code == -1


def test_packages_beside_the_document(daemon: Path) -> None:
    extra = {"packages": {"default": "deny"}, "allowed_packages": {"python": [{"name": "iniconfig"}]}}
    with CofferdamSandboxProvider(extra=extra) as provider:
        h = provider.create_session("a", model(dict(ALLOW)))
        assert provider.sandbox("a", h.session_id).install("iniconfig").ok
    with (
        CofferdamSandboxProvider(extra={"network_allowlist": ["x.example"]}) as provider,
        pytest.raises(ValueError, match="network_allowlist"),
    ):
        provider.create_session("a")


# Tools.


class Secretive(Exception):
    pass


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


async def later(text: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"text": text}


HANGING = threading.Event()


def hang() -> None:
    HANGING.wait()


def raising() -> None:
    raise Secretive("a path of the host: /srv/keys")


def ends() -> None:
    raise SystemExit(3)


TOOLS = {
    "add": add, "later": later, "hang": hang, "raising": raising, "ends": ends, "odd": lambda: object(), "hidden": lambda: "hidden",
    "refused": lambda: "no", "nan": lambda: float("nan"),
}  # fmt: skip

TOOL_POLICY = {
    "name": "tools",
    "tool_allowlist": ["add", "later", "hang", "raising", "ends", "odd", "refused", "nan", "not_there"],
    "rules": [
        {
            "name": "not-this",
            "condition": {"field": "tool_name", "operator": "eq", "value": "refused"},
            "action": "deny",
            "message": "never",
        },
        {
            "name": "small",
            "condition": {"field": "arguments.a", "operator": "gt", "value": 100},
            "action": "deny",
            "message": "too much",
        },
        {"name": "code", "condition": {"field": "action", "operator": "eq", "value": "execute"}, "action": "allow"},
    ],
}

CALLER = """
from _tool_client import call_tool, ToolError
def tried(name, **args):
    try:
        return call_tool(name, **args)
    except ToolError as e:
        return e.status, str(e)
"""


def test_tools(daemon: Path) -> None:
    with CofferdamSandboxProvider(tools=TOOLS, tool_timeout=1) as provider:
        h = provider.create_session("a", model(TOOL_POLICY))

        def tried(call: str) -> str:
            return said(provider, h, CALLER + f"print(tried({call}))")

        assert tried("'add', a=2, b=40") == "42" and tried("'add', a=2") == "3"
        assert tried("'later', text='\\u00fc'") == "{'text': '\u00fc'}"
        assert tried("'hidden'").startswith("(403,"), "it is there, and not listed"
        assert tried("'nobody'").startswith("(403,")
        assert tried("'not_there'").startswith("(404,"), "it is listed, and not there"
        assert (
            tried("'add', a='2'").startswith("(422,")
            and tried("'add'").startswith("(422,")
            and tried("'add', a=1, c=2").startswith("(422,")
        )
        assert provider.tool_errors("a", h.session_id) == [], "none of these got to a function"
        for call in ("'refused'", "'add', a=101", "'raising'", "'ends'", "'odd'", "'nan'", "'hang'"):
            out = tried(call)
            assert out.startswith("(200,") and "srv" not in out and "Secretive" not in out, out
        kinds = [type(e) for e in provider.tool_errors("a", h.session_id)]
        assert kinds == [ToolRefused, ToolRefused, ToolRaised, ToolRaised, ToolAnswer, ToolAnswer, ToolTimedOut]
        raised = provider.tool_errors("a", h.session_id)[2]
        assert isinstance(raised, ToolError) and isinstance(raised.__cause__, Secretive) and raised.tool == "raising"
        # Calls that hang keep their places; the others of the session are refused then, and the process is not taken.
        for _ in range(9):
            tried("'hang'")
        assert isinstance(provider.tool_errors("a", h.session_id)[-1], ToolBusy)
        other = provider.create_session("b", model(TOOL_POLICY))
        assert said(provider, other, CALLER + "print(tried('add', a=1))") == "2", "another session's are its own"
        HANGING.set()
        with Client() as client:
            run = provider.sandbox("a", h.session_id).run_id
            records = list(client.audit.records(run=run))
        called = [(r["outcome"], r["detail"]["tool"]) for r in records if r["kind"] == "tool"]
        assert ("started", "add") in called and ("finished", "add") in called and ("blocked", "hidden") in called
        begun = next(r for r in records if r["kind"] == "sandbox" and r["outcome"] == "started")
        assert begun["detail"]["own_tools"] == "add ends hang later nan odd raising refused"


def test_no_list_no_tools(daemon: Path) -> None:
    with CofferdamSandboxProvider(tools={"add": add}) as provider:
        for policy in (None, model(dict(ALLOW)), model({"tool_allowlist": [], **ALLOW})):
            h = provider.create_session("a", policy)
            done = provider.run("a", ["cofferdam-tool", "add", '{"a": 1}'], session_id=h.session_id)
            assert not done.success and "tool_allowlist" in done.stderr


def test_only_the_daemon_is_answered(daemon: Path) -> None:
    import http.client

    with CofferdamSandboxProvider(tools={"add": add}) as provider:
        h = provider.create_session("a", model({"tool_allowlist": ["add"], **ALLOW}))
        server = provider._tools.server._server
        assert server is not None

        def asked(path: str, secret: str, body: str = '{"a": 1}', **headers: str) -> tuple[int, bytes]:
            conn = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
            conn.request("POST", path, body, {"Authorization": secret, **headers})
            answer = conn.getresponse()
            return answer.status, answer.read()

        offered = provider._tools.server.of(h.session_id)
        assert offered is not None
        right = f"Bearer {offered.secret}"
        assert asked(f"/{h.session_id}/add", right) == (200, b"2"), "the positive control"
        for path, secret in (
            (f"/{h.session_id}/add", ""),
            (f"/{h.session_id}/add", "Bearer x"),
            ("/other/add", right),
            ("/", right),
            ("//", right),
        ):
            assert asked(path, secret) == (401, b"")
        assert asked(f"/{h.session_id}/other", right)[0] == 404
        assert (
            asked(f"/{h.session_id}/add", right, "[]")[0] == 400 and asked(f"/{h.session_id}/add", right, "{")[0] == 400
        )
        assert asked(f"/{h.session_id}/add", right, "{}", **{"Content-Length": "99999999999"})[0] == 413
        provider.destroy_session("a", h.session_id)
        assert asked(f"/{h.session_id}/add", right) == (401, b"")


def test_tools_live_through_a_restore(daemon: Path) -> None:
    with CofferdamSandboxProvider(tools={"add": add}) as provider:
        h = provider.create_session("a", model({"tool_allowlist": ["add"], **ALLOW}))
        call = CALLER + "print(tried('add', a=1))"
        provider.save_state("a", h.session_id, "tools")
        provider.restore_state("a", h.session_id, "tools")
        assert said(provider, h, call) == "2"
        with pytest.raises(RuntimeError):
            provider.restore_state("a", h.session_id, "none")
        assert said(provider, h, call) == "2", "and through one that fails"
        provider.delete_checkpoint("a", "tools")


def test_odd_arguments() -> None:
    """What a guest sends that is no object, or nests without end, is answered, and calls nothing."""
    called: list[str] = []
    functions = {"f": lambda **_: called.append("f")}
    offered = _tools.Offered(secret="", functions=functions, judge=lambda *_: None, timeout=5)
    for body in (
        b"[" * 60_000,
        b"[" * 60_000 + b"]" * 60_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b"[]",
        b"{",
        b"\xff",
    ):
        assert _tools._serve(offered, "f", body) == (400, "")
    assert not called
    assert _tools._serve(offered, "f", b"{}") == (200, "null") and called == ["f"]


def test_functions_that_can_be_no_tools() -> None:
    for function in (lambda *a: a, lambda a, /: a):
        with pytest.raises(ValueError, match="by its position"):
            CofferdamSandboxProvider(tools={"x": function})


def test_a_session_of_calls(daemon: Path) -> None:
    rules = [
        {"name": "no", "condition": {"field": "code", "operator": "contains", "value": "forbidden"}, "action": "deny"}
    ]
    document = {"rules": rules, "defaults": {"action": "allow", "timeout_seconds": 1}}
    with CofferdamSandboxProvider(isolation="wasm", template="no-such") as provider:
        assert provider.is_available(), provider.unavailable_reason
        h = provider.create_session("a", model(document))
        assert not provider.kernel_isolated and provider.get_session_status("a", h.session_id) == SessionStatus.READY
        done = provider.execute_code(
            "a", h.session_id, "console.log('out'); console.error('err'); globalThis.x = 6; x * 7"
        )
        assert done.status == ExecutionStatus.COMPLETED and done.result.success
        assert (done.result.stdout, done.result.stderr) == ("out\n42\n", "err\n")
        assert said(provider, h, "typeof x") == '"undefined"', "nothing lasts"
        assert "ReferenceError" in said(provider, h, "typeof require + typeof fetch + process.env")
        done = provider.execute_code("a", h.session_id, "for (;;) {}")
        assert done.status == ExecutionStatus.FAILED and done.result.killed and "1 seconds" in done.result.kill_reason
        with pytest.raises(PermissionError, match="Policy denied: Matched rule 'no'"):
            provider.execute_code("a", h.session_id, "'forbidden'", context={"code": "harmless"})
        with Client() as client:
            found = [r for r in client.audit.records(outcomes=["blocked"]) if r.get("rule") == "rules.no"]
        assert len(found) == 1, "the denial is in the log"
        # What a call has not.
        assert provider.run("a", ["true"]).exit_code == -1 and not provider.cancel_execution("a", h.session_id, "x")
        for act in (
            lambda: provider.sandbox("a", h.session_id),
            lambda: provider.save_state("a", h.session_id, "s"),
            lambda: provider.restore_state("a", h.session_id, "s"),
        ):
            with pytest.raises(RuntimeError, match="no sandbox"):
                act()
        for config in ({"env_vars": {"A": "b"}}, {"input_dir": "/srv"}, {"network_enabled": True}):
            with pytest.raises(ValueError):
                provider.create_session("a", None, SandboxConfig(**config))
        provider.destroy_session("a", h.session_id)
        with pytest.raises(RuntimeError, match="No active session"):
            provider.execute_code("a", h.session_id, "1")
