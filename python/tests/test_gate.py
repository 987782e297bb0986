"""The gate against the toolkit's own evaluator, where that is installed, and by itself.

COFFERDAM_TOOLKIT says which release has to be there ("none": none may be).
"""

from __future__ import annotations

import os
import random
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from cofferdam import agt
from cofferdam.agt import Gate, SandboxCodeViolation, _scanner, _standin, enforce_no_subprocess_execution, read

TOOLKIT = os.environ.get("COFFERDAM_TOOLKIT", "none")


def test_the_toolkit_is_the_one_that_is_meant() -> None:
    if TOOLKIT == "none":
        assert not agt.TOOLKIT
        return
    assert agt.TOOLKIT and metadata.version("agt-sandbox") == TOOLKIT
    from agent_sandbox.code_scanner import SandboxCodeViolation as Theirs
    from agent_sandbox.sandbox_provider import SandboxProvider, SandboxResult

    assert issubclass(agt.CofferdamSandboxProvider, SandboxProvider)
    assert agt.SandboxResult is SandboxResult and agt.SandboxCodeViolation is Theirs


def document(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "d", "rules": list(rules), **more}


def rule(field: str, operator: str, value: Any, action: str = "deny", priority: int = 0, **more: Any) -> dict[str, Any]:
    condition = {"field": field, "operator": operator, "value": value}
    return {
        "name": f"{field}-{operator}-{action}",
        "condition": condition,
        "action": action,
        "priority": priority,
        **more,
    }


def test_the_default_is_the_strict_one() -> None:
    assert not Gate(read({})).judge({"code": "1"}).allowed
    assert not Gate(read({"defaults": {}})).judge({}).allowed
    assert Gate(read({"defaults": {"action": "allow"}})).judge({}).allowed
    assert Gate(read({"defaults": {"action": "audit"}})).judge({}).allowed


def test_rules() -> None:
    gate = Gate(
        read(
            document(rule("code", "contains", "x", "deny", 5, message="no x"), rule("code", "matches", ".", "allow", 1))
        )
    )
    assert gate.judge({"code": "y"}).allowed and gate.judge({"code": "x"}).reason == "no x"
    assert not gate.judge({"code": None}).allowed, "a null field matches nothing, and the default denies"
    broken = Gate(read(document(rule("n", "gt", 3, "allow"), defaults={"action": "allow"})))
    assert broken.judge({"n": 4}).allowed and not broken.judge({"n": "4"}).allowed, "what can't be compared is denied"


@pytest.mark.parametrize(
    "wrong",
    [
        {"rules": "x"},
        {"rules": [{}]},
        {"rules": [rule("code", "like", "x")]},
        {"rules": [rule("code", "eq", "x", "permit")]},
        {"rules": [{"name": "n", "condition": {"field": "code", "operator": "eq"}, "action": "deny"}]},
        {"rules": [rule("code", "eq", "x", priority="high")]},  # type: ignore[arg-type]
        {"defaults": {"action": "maybe"}},
        {"defaults": {"network_default": "some"}},
        {"defaults": {"max_cpu": float("nan")}},
        {"defaults": {"max_cpu": 0}},
        {"defaults": {"max_memory_mb": "512"}},
        {"defaults": {"timeout_seconds": True}},
        {"tool_allowlist": "all"},
        {"network_allowlist": [""]},
        {"sandbox_mounts": {"input_dir": 5}},
        {"defaults": []},
        7,
    ],
)
def test_documents_that_are_none(wrong: Any) -> None:
    with pytest.raises(ValueError):
        read(wrong)


def test_objects_with_attributes() -> None:
    given = SimpleNamespace(
        name="n", rules=[], defaults=SimpleNamespace(action="allow", max_cpu=None), network_allowlist=["a.example"]
    )
    got = read(given)
    assert got.action == "allow" and got.network_allowlist == ("a.example",) and got.max_cpu is None


def test_dynamic_conditions() -> None:
    night = {"type": "time_window", "start_time": "22:00", "end_time": "06:00", "timezone": "UTC"}
    gate = Gate(read(document(rule("code", "ne", "", "allow", dynamic_condition=night))))
    assert gate.judge({"code": "1"}, {"timestamp": "2026-11-26T23:00:00Z"}).allowed
    assert not gate.judge({"code": "1"}, {"timestamp": "2026-11-26T12:00:00Z"}).allowed
    budget = {"type": "cost_per_window", "window": "1h", "limit": 5}
    gate = Gate(read(document(rule("code", "ne", "", "allow", dynamic_condition=budget))))
    now = {"timestamp": "2026-11-26T12:00:00Z", "budget": {"cost": 3}}
    assert [gate.judge({"code": "1"}, now).allowed for _ in range(3)] == [True, False, False]


def _random_document(r: random.Random) -> dict[str, Any]:
    values = ["", "a", "ab", "b+", "(", 3, 5, 2.5, True, None, ["a", "b"], [3], "exec", "^a.*b$"]
    rules = [
        rule(
            r.choice(["code", "action", "agent_id", "n", "list", "missing"]),
            r.choice(sorted(agt._document.OPERATORS)),
            r.choice(values),
            r.choice(["allow", "deny", "block", "audit"]),
            r.choice([0, 0, 1, 5, -1]),
        )
        for _ in range(r.randrange(6))
    ]
    for i, one in enumerate(rules):
        one["name"] = f"r{i}"
        if TOOLKIT.startswith("5") and r.random() < 0.3:
            one["dynamic_condition"] = r.choice(
                [
                    {"type": "time_window", "start_time": "08:00", "end_time": "17:00"},
                    {
                        "type": "time_window",
                        "start_time": "22:00",
                        "end_time": "06:30",
                        "timezone": "Europe/Vienna",
                        "days_of_week": [4, 5],
                    },
                    {"type": "time_window", "start_time": "8", "end_time": "25:00"},
                    {"type": "day_of_week", "days_of_week": [1, 4], "timezone": "Nowhere/None"},
                    {"type": "day_of_week", "days_of_week": [4]},
                    {"type": "token_count_per_window", "window": "1h", "limit": 100},
                    {"type": "cost_per_window", "window": "0m", "limit": 1},
                ]
            )
    defaults = r.choice([{}, {"action": "allow"}, {"action": "deny"}, {"action": "audit"}])
    return {"name": "random", "rules": rules, "defaults": defaults}


def test_verdicts_are_the_toolkits() -> None:
    """Random documents and contexts; without the toolkit there is nobody to compare with, and that is asserted."""
    if TOOLKIT == "none":
        assert not agt.TOOLKIT
        return
    from agent_os.policies import PolicyDocument
    from agent_os.policies.evaluator import PolicyEvaluator

    r = random.Random(17)
    compared = denied = 0
    for _ in range(3000):
        plain = _random_document(r)
        model = PolicyDocument.model_validate(plain)
        theirs, ours = PolicyEvaluator(policies=[model]), Gate(read(model))
        for _ in range(3):
            context = {
                k: v
                for k, v in {
                    "code": r.choice(["", "a", "ab", "exec(x)", "a\nb"]), "action": "execute", "agent_id": r.choice(["a", "b"]),
                    "n": r.choice([3, 4.5, "3", None, True]), "list": r.choice([["a"], [], [3]]),
                }.items()
                if r.random() < 0.8
            }  # fmt: skip
            dynamic = {
                "timestamp": r.choice([1_795_000_000, "2026-11-26T09:00:00Z", "2026-11-27T23:30:00+01:00", "never"]),
                "budget": r.choice([{"token_count": 40, "cost": 0.5}, {"token_count": "many"}, {}]),
            }
            if TOOLKIT.startswith("4"):
                want, got = theirs.evaluate(context), ours.judge(context)
                if want.matched_rule is None and "action" not in plain["defaults"] and want.action == "allow":
                    assert not got.allowed, "4.x allows here, and the strict default is followed"
                    continue
            else:
                want, got = theirs.evaluate(context, dynamic), ours.judge(context, dynamic)
            compared += 1
            denied += not want.allowed
            assert (got.allowed, got.rule, got.action) == (want.allowed, want.matched_rule, want.action), (
                plain,
                context,
                dynamic,
            )
    assert compared > 5000 and 1000 < denied < compared - 1000


CODES = [
    "import subprocess; subprocess.run(['ls'])",
    "import subprocess as s\ns.Popen('x')",
    "from os import system as f\nf('x')",
    "from subprocess import *",
    "__import__('os').system('x')",
    "import importlib\nimportlib.import_module('subprocess').call('x')",
    "import os.path\nos.execv('a', [])",
    "import os; print(os.getpid())",
    "import shutil; shutil.which('ls'); shutil.copy('a', 'b')",
    "print('subprocess.run')",
    "def f():\n  import pty\n  pty.spawn('sh')",
    "os.system('x')",
    "x = 1 +",
    "import subprocess\nr = subprocess.run\nr('x')",
    "subprocess.run(subprocess.call())",
    "__import__(name).system('x'); getattr(__import__('os'), 'system')('x')",
    "from . import os\nos.popen('x')",
]


@pytest.mark.parametrize("code", CODES)
def test_scans_find_the_same(code: str) -> None:
    def found(enforce: Any, violation: Any) -> Any:
        try:
            enforce(code)
        except violation as e:
            return [(v.line, v.column, v.pattern) for v in e.violations], str(e)
        return None

    ours = found(_scanner.enforce_no_subprocess_execution, _scanner.SandboxCodeViolation)
    assert ours == found(enforce_no_subprocess_execution, SandboxCodeViolation)
    assert (ours is None) == (CODES.index(code) in (7, 9, 12, 13, 15))


def test_a_scan_of_hostile_nesting_ends() -> None:
    _scanner.enforce_no_subprocess_execution("+".join(["a"] * 3000))
    _scanner.enforce_no_subprocess_execution("(" * 100_000)
    with pytest.raises(_scanner.SandboxCodeViolation):
        _scanner.enforce_no_subprocess_execution("import os\nos.system('x')\n" + "+".join(["a"] * 800))


def test_the_types_are_equal() -> None:
    """Ours have the toolkit's fields and defaults."""
    from dataclasses import fields

    for name in ("SandboxConfig", "SandboxResult", "SessionHandle", "ExecutionHandle", "SandboxCheckpoint"):
        ours = {f.name: f.default for f in fields(getattr(_standin, name))}
        theirs = {f.name: f.default for f in fields(getattr(agt, name))}
        if TOOLKIT.startswith("4"):
            ours.pop("ring", None)
        assert {k: str(v) for k, v in ours.items()} == {k: str(v) for k, v in theirs.items()}
    for name in ("SessionStatus", "ExecutionStatus", "IsolationRuntime"):
        assert {m.name: m.value for m in getattr(_standin, name)} == {m.name: m.value for m in getattr(agt, name)}


def test_the_import_says_nothing() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import cofferdam.agt"], capture_output=True, check=False
    )
    assert done.returncode == 0 and done.stderr == b""
