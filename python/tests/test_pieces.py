"""What needs no daemon: reading, showing, finding, the words of errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from unittest.mock import Mock

import pytest

from cofferdam import (
    ApprovalRequired,
    CofferdamError,
    CommandResult,
    InstallAlarm,
    InstallRefused,
    InvalidRequest,
    NotFound,
    Plan,
    PlanRelease,
    ProtocolError,
    Refusal,
    Refused,
    Sandbox,
    _find,
    _frames,
    _hostfile,
    _html,
    _installs,
    _policy,
)
from cofferdam._decode import decode
from cofferdam._models import Approval, SandboxEvent, Version
from cofferdam._sync.client import Approvals as SyncApprovals
from cofferdam.errors import APIError, DaemonNotFound, from_problem

NASTY = "<script>alert(1)</script>\x1b[31m\u202e\u2066&\"'\x00"


def test_sync_is_made_of_async() -> None:
    tool = Path(__file__).resolve().parents[1] / "tools" / "unasync.py"
    assert subprocess.run([sys.executable, str(tool), "--check"], check=False).returncode == 0


def test_frames_come_whole_however_they_are_cut() -> None:
    sent = [(4, b"out"), (5, b""), (6, b'{"code":0}'), (4, b"x" * _frames.MAX_PAYLOAD)]
    stream = b"".join(_frames.frame(kind, payload) for kind, payload in sent)
    for step in (1, 3, 7, len(stream)):
        reader = _frames.Reader()
        got = [f for i in range(0, len(stream), step) for f in reader.feed(stream[i : i + step])]
        assert got == sent


def test_a_frame_that_is_too_long_is_refused() -> None:
    with pytest.raises(ProtocolError):
        list(_frames.Reader().feed(b"\x04\xff\xff\xff\xff"))
    for gap in (b"", b"{}", b'{"bytes":-1}', b'{"bytes":"9"}', b"[]"):
        with pytest.raises(ProtocolError):
            _frames.gap_of(gap)


def test_input_is_cut_and_ended() -> None:
    frames = list(_frames.input_frames(b"x" * (_frames.MAX_PAYLOAD + 1)))
    assert [len(f) for f in frames] == [_frames.MAX_PAYLOAD + 5, 6, 5]


def test_decode() -> None:
    got = decode(
        SandboxEvent,
        {
            "seq": 1,
            "time": "2026-11-26T10:00:00.123456789Z",
            "sandbox": "s",
            "run": "r",
            "from": "a",
            "to": "b",
            "new": 1,
        },
    )
    assert got.from_ == "a" and got.time == datetime(2026, 11, 26, 10, 0, 0, 123456, tzinfo=timezone.utc)
    assert (
        decode(Version, {"version": "v", "pid": 1, "started": "2026-11-26T10:00:00+02:00", "state_dir": "/s"}).console
        == ""
    )
    assert decode(Plan, {"run": "r", "releases": None}).releases == []
    approval = {
        "id": "ap",
        "state": "pending",
        "rule": "r",
        "reason": "w",
        "created": "2026-11-26T10:00:00Z",
        "updated": "2026-11-26T10:00:00Z",
    }
    assert decode(Approval, approval).expires is None
    assert decode(Approval, approval).evidence.vulnerabilities is None
    known = {"known": [{"id": "CVE-1", "severity": "high", "fixed_in": "2.0"}], "imported": "2026-11-26T10:00:00Z"}
    told = decode(
        Approval, approval | {"evidence": {"vulnerabilities": known, "license": "MIT"}}
    ).evidence.vulnerabilities
    assert told is not None and told.known[0].fixed_in == "2.0" and told.known[0].aliases == [] and told.more == 0


@pytest.mark.parametrize(
    "value",
    [None, [], "x", {}, {"run": 1, "releases": []}, {"run": "r", "releases": {}}, {"run": True, "releases": []}],
)
def test_what_is_no_plan_is_said_to_be_none(value: object) -> None:
    with pytest.raises(ProtocolError):
        decode(Plan, value)


@dataclass
class Both:
    at: datetime | None = None
    data: bytes = b""


@pytest.mark.parametrize(
    "wrong", [{"at": "yesterday"}, {"at": "2026-99-01T00:00:00Z"}, {"at": 5}, {"data": "***"}, {"data": 5}]
)
def test_times_and_bytes_that_are_none(wrong: object) -> None:
    with pytest.raises(ProtocolError):
        decode(Both, wrong)
    assert decode(Both, {"data": "aGk="}).data == b"hi"


def test_two_requests_that_differ_look_different() -> None:
    """What an answer would be bound to is in what Python shows of a request."""
    whole = {
        "id": "ap-1", "state": "pending", "rule": "r", "reason": "why", "created": "2026-11-26T10:00:00Z", "updated": "2026-11-26T10:00:00Z",
    }  # fmt: skip
    digest = "sha256:" + "0" * 63

    def of(**more: object) -> str:
        return repr(decode(Approval, whole | more))

    def push(last: str) -> str:
        return of(host={"name": "git.example", "port": 443, "repository": "a/b", "push": digest + last})

    def call(arguments: str, definition: str) -> str:
        return of(
            call={"tool": "t", "source": "host", "definition": definition, "digest": digest, "arguments": arguments}
        )

    def release(index: str, last: str) -> str:
        return of(upstream=index, files=[{"name": "f", "kind": "wheel", "digests": [digest + last]}])

    assert push("a") == push("a") != push("b")
    assert call("x", "y") == call("x", "y") and len({call("x", "y"), call("z", "y"), call("x", "z")}) == 3
    assert (
        release("i", "a") == release("i", "a") and len({release("i", "a"), release("j", "a"), release("i", "b")}) == 3
    )


def test_an_alarm_is_said_to_be_one() -> None:
    now = datetime.now(timezone.utc)

    def refusal(name: str, alarm: bool) -> Refusal:
        return Refusal(now, "r", "s", name, "blocked", "rule", "why", "id-" + name, 1, alarm=alarm)

    plain = InstallRefused(["pip"], CommandResult(1, "", ""), [refusal("six", False)])
    assert not plain.alarm and "ALARM" not in str(plain) and "ALARM" not in plain._repr_html_()
    bad = InstallAlarm(["pip"], CommandResult(0, "", ""), [refusal("six", True), refusal("rich", False)])
    assert bad.alarm and str(bad).startswith("ALARM: six: why") and "ALARM" in bad._repr_html_()
    many = InstallRefused(["pip"], CommandResult(1, "", ""), [refusal(str(i), False) for i in range(60)])
    assert "and 50 more of 60" in str(many)


def test_what_is_shown_does_nothing() -> None:
    now = datetime.now(timezone.utc)
    refusal = Refusal(now, "r", "s", NASTY, "blocked", NASTY, NASTY, NASTY, 1)
    result = CommandResult(1, "", "")
    shown = [
        _html.table(NASTY, [(NASTY, NASTY)]),
        InstallRefused(["pip"], result, [refusal])._repr_html_(),
        Plan("r", [PlanRelease("python", NASTY, NASTY, NASTY, NASTY)])._repr_html_(),
        Refused(403, NASTY)._repr_html_(),
        Sandbox()._repr_html_(),
    ]
    for text in shown:
        assert "<script" not in text and "\x1b" not in text and "\u202e" not in text and "\u2066" not in text
        assert text.startswith("<table>") and text.endswith("</table>")
    assert "&lt;script&gt;" in shown[0], "the positive control: it is shown"
    assert len(_html.grid("t", ["a"], [["x" * 10_000]] * 10_000)) < 200_000


def test_errors_carry_the_rule() -> None:
    e = from_problem(403, {"detail": "at most (three) tries (rule rules.no-shell, request a1b2c3d4)", "title": "x"})
    assert isinstance(e, Refused) and isinstance(e, PermissionError)
    assert (e.rule, e.reason, e.request_id) == ("rules.no-shell", "at most (three) tries", "a1b2c3d4")
    plain = from_problem(403, {"detail": "a token brings no policy of its own"})
    assert isinstance(plain, Refused) and plain.rule == "" and plain.reason == "a token brings no policy of its own"
    assert isinstance(from_problem(400, None), InvalidRequest) and isinstance(from_problem(404, []), NotFound)
    late = from_problem(503, {"detail": "later", "retry_seconds": 7})
    assert late.retry_seconds == 7 and type(from_problem(418, "tea")) is APIError


def test_a_refused_install_says_what_a_person_does() -> None:
    now = datetime.now(timezone.utc)
    waits = Refusal(
        now,
        "r",
        "s",
        "package",
        "pending_approval",
        "packages.default",
        "nobody has said yes",
        "q1",
        1,
        approval="ap-k3m7qx",
    )
    result = CommandResult(1, "", "")
    e = ApprovalRequired(["pip"], result, [waits])
    assert (
        e.approve_url == ""
        and e.approve_command == "cofferdam approvals approve ap-k3m7qx"
        and e.approve_command in str(e)
    )
    assert (e.rule, e.request_id, e.approval_id) == ("packages.default", "q1", "ap-k3m7qx")
    with_console = ApprovalRequired(["pip"], result, [waits], "https://console.example/")
    assert with_console.approve_url == "https://console.example/approvals/ap-k3m7qx"


def test_an_answer_says_in_our_words_what_it_takes() -> None:
    approvals = SyncApprovals(None)  # type: ignore[arg-type]
    for wrong, error, says in [
        ("ap-k3m7qx", ValueError, "approvals.get"),
        (["ap-k3m7qx@2"], TypeError, r"approve\(\*requests\)"),
        (7, TypeError, "an Approval or its answer_id"),
    ]:
        with pytest.raises(error, match=says):
            approvals.approve(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"deny\(\*requests\)"):
        approvals.deny(["ap-k3m7qx"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "host",
    [
        "http://daemon.example:1",
        "ftp://x.example",
        "https://",
        "https://u:p@x.example",
        "https://x.example/p",
        "unix://rel",
    ],
)
def test_addresses_that_are_refused(host: str) -> None:
    with pytest.raises(CofferdamError) as e:
        _find.address(host, "token")
    assert ":p@" not in str(e.value)


def test_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COFFERDAM_HOST", "COFFERDAM_TOKEN", "COFFERDAM_CA"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CofferdamError, match="COFFERDAM_TOKEN"):
        _find.address("https://x.example")
    for bad in ("a b", "a\r\nX: y", "\u00e9"):
        with pytest.raises(CofferdamError, match="characters"):
            _find.address("https://x.example", bad)
    monkeypatch.setenv("COFFERDAM_RUNTIME", str(tmp_path))
    own = _find.address()
    assert own.own and own.socket == str(tmp_path / "daemon.sock") and "COFFERDAM_HOST" not in own.environment()
    monkeypatch.setenv("COFFERDAM_HOST", "http://127.0.0.1:7433")
    monkeypatch.setenv("COFFERDAM_TOKEN", "secret")
    remote = _find.address()
    assert (
        not remote.own
        and remote.environment()["COFFERDAM_HOST"] == "http://127.0.0.1:7433"
        and remote.token == "secret"
    )
    assert _find.address("unix:///run/x.sock").environment()["COFFERDAM_HOST"] == "unix:///run/x.sock"
    assert "COFFERDAM_TOKEN" not in _find.address("unix:///run/x.sock").environment()
    monkeypatch.setenv("COFFERDAM_RUNTIME", "relative")
    monkeypatch.delenv("COFFERDAM_HOST")
    with pytest.raises(CofferdamError, match="absolute"):
        _find.address()


def test_no_binary_and_one_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COFFERDAM_BINARY", str(tmp_path / "none"))
    with pytest.raises(DaemonNotFound, match="no program"):
        _find.binary()
    failing = tmp_path / "cofferdam"
    failing.write_text("#!/bin/sh\necho this host has no room >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("COFFERDAM_BINARY", str(failing))
    with pytest.raises(DaemonNotFound, match="this host has no room"):
        _find.start()
    monkeypatch.delenv("COFFERDAM_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_find, "_script_directories", lambda: [str(tmp_path)])
    assert _find.binary() == str(failing), "beside it is no runsc, so it is the one on the PATH"


def test_policies() -> None:
    assert _policy.request(None, "data") == {"name": "data"} and _policy.request(None, None) == {}
    with pytest.raises(CofferdamError):
        _policy.request({"a": 1}, "data")
    with pytest.raises(CofferdamError, match="can't be read"):
        _policy.request("/no/such/policy.yaml", None)
    source, text = _policy.text_of({"name": "x", "n": 1.5})
    assert source == "" and json.loads(text) == {"name": "x", "n": 1.5}


def test_policies_through_links_of_agents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No link is followed where a sandbox could write, be that long ago; others are, as ever."""
    tmp_path = tmp_path.resolve()
    state, project, mine, victim = (tmp_path / name for name in ("state", "project", "mine", "victim"))
    for directory in (state, project, mine, victim):
        directory.mkdir()
    (victim / "policy.yaml").write_text("name: x\n")
    for directory in (project, mine):
        (directory / "link.yaml").symlink_to(victim / "policy.yaml")
        (directory / "to").symlink_to("../victim")
    (project / "own.yaml").write_text("name: own\n")
    monkeypatch.setenv("COFFERDAM_STATE", str(state))
    known = project.stat()
    identity = {"type": "dir", "inode": known.st_ino, "device": known.st_dev}
    whole = json.dumps({"path": str(project), "id": identity}) + "\n"

    def refused(path: Path | str) -> None:
        with pytest.raises(CofferdamError, match="which some sandbox was given to write to"):
            _policy.text_of(str(path))

    assert _policy.text_of(str(project / "link.yaml"))[1] == b"name: x\n", "no sandbox was given anything yet"
    for record in (whole, whole + '{"path": "/half', json.dumps({"path": str(project)}) + "\n"):
        (state / "written").write_text(record)
        refused(project / "link.yaml")
        refused(project / "to" / "policy.yaml")
        refused(f"{mine}/../project/to/policy.yaml")
        assert _policy.text_of(str(project / "own.yaml"))[1] == b"name: own\n"
        assert _policy.text_of(str(mine / "link.yaml"))[1] == b"name: x\n"
        assert _policy.text_of(str(mine / "to" / "policy.yaml")) == (str(mine / "to" / "policy.yaml"), b"name: x\n")
        assert _policy.text_of(f"{project}/../victim/policy.yaml")[1] == b"name: x\n"
    monkeypatch.chdir(project)
    refused("link.yaml")
    assert _policy.text_of("own.yaml")[1] == b"name: own\n"
    project.rename(tmp_path / "renamed")
    (state / "written").write_text(whole)
    refused(tmp_path / "renamed" / "link.yaml")
    descriptor = os.open(tmp_path / "renamed", os.O_PATH)
    birth = _hostfile._birth(descriptor)
    os.close(descriptor)
    if birth:  # the file system tells
        for born, device, known in (
            (birth, identity["device"], True),
            (birth, 1, True),  # another number since the host's start
            (birth - 1, identity["device"], False),  # one that had its inode before
        ):
            one = {"type": "dir", "inode": identity["inode"], "device": device, "birth": born}
            (state / "written").write_text(json.dumps({"path": str(project), "id": one}) + "\n")
            if known:
                refused(tmp_path / "renamed" / "link.yaml")
            else:
                assert _policy.text_of(str(tmp_path / "renamed" / "link.yaml"))[1] == b"name: x\n"
    for broken in ("garbage\n", "{}\n", "[]\n"):
        (state / "written").write_text(broken)
        refused(mine / "link.yaml")
        assert _policy.text_of(str(victim / "policy.yaml"))[1] == b"name: x\n"
    with pytest.raises(CofferdamError, match="can't be read"):
        _policy.text_of(str(victim))


@pytest.mark.parametrize("package", ["", " ", "-r/etc/passwd", "--index-url=x", "a\nb", "a\0b"])
def test_packages_are_no_options(package: str) -> None:
    with pytest.raises(CofferdamError):
        _installs.command([package], "python")


def test_installs() -> None:
    assert _installs.command(["requests==2.32.0"], "python")[-1] == "requests==2.32.0"
    for one in (["requests"], ("requests", "six"), 5, None):
        with pytest.raises(TypeError, match=r"give each by itself, or a list as \*packages"):
            _installs.command([one], "python")  # type: ignore[list-item]
    for packages, ecosystem in (([], "python"), (["x"], "perl")):
        with pytest.raises(CofferdamError):
            _installs.command(packages, ecosystem)


def test_a_sandbox_that_is_not_made_says_so() -> None:
    box = Sandbox()
    for what in ("id", "files", "info", "client"):
        with pytest.raises(CofferdamError, match="not there"):
            getattr(box, what)
    box.kill()  # nothing to end


def test_a_session_that_is_restored_is_so_though_the_sandbox_before_stays(caplog: pytest.LogCaptureFixture) -> None:
    from cofferdam.agt._provider import CofferdamSandboxProvider
    from cofferdam.agt._session import Session

    class Box:
        def __init__(self, id: str, fails: bool) -> None:
            self.id, self.fails, self.asked = id, fails, 0

        def kill(self) -> None:
            self.asked += 1
            if self.fails:
                raise CofferdamError("it can't be taken away")

    for fails in (False, True):
        before, after = Box("before", fails), Box("after", False)
        session, made = (
            Session("a", "s", box, limits=None, asked={})  # type: ignore[arg-type]
            for box in (before, after)
        )
        provider = object.__new__(CofferdamSandboxProvider)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(provider, "_session", Mock(return_value=session), raising=False)
            patch.setattr(provider, "_make", Mock(return_value=made), raising=False)
            provider.restore_state("a", "s", "one")
        assert session.sandbox is after and before.asked == 1
        assert ("before" in caplog.text) == fails
