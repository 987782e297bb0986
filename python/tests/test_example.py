"""The worked example of docs/policy-compatibility.md: what it prints is what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cofferdam import Client

from .conftest import ROOT


def _plainly(text: str) -> list[str]:
    return [re.sub(r"request [0-9a-z]{8}", "request ID", line.rstrip()) for line in text.splitlines()]


def test_the_research_agent(daemon: Path) -> None:
    pytest.importorskip("yaml")
    page = (ROOT / "docs" / "policy-compatibility.md").read_text()
    (wanted,) = re.findall(r"^### A worked example$.*?^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "research_agent.py")],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    assert _plainly(done.stdout) == _plainly(wanted)
    # What the page says of the log.
    with Client() as client:
        refused = {
            (r["kind"], r.get("rule")) for r in client.audit.records() if r["outcome"] in ("blocked", "withheld")
        }
    assert {
        ("command", "caller.deny-shell-out"),
        ("command", "caller.scan_code"),
        ("network", "network_default"),
        ("tool", "tool_allowlist"),
        ("package", "packages.default"),
    } <= refused, refused
