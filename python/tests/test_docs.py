"""Every program of docs/quickstart-python.md, as a reader would run it: it prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

PAGE = (ROOT / "docs" / "quickstart-python.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PROGRAMS = [i for i, (kind, _) in enumerate(BLOCKS) if kind == "python"]


def test_the_page_has_programs_with_outputs() -> None:
    assert len(PROGRAMS) == 6 and all(BLOCKS[i + 1][0] == "text" for i in PROGRAMS)


@pytest.mark.parametrize("index", PROGRAMS)
def test_program(daemon: Path, tmp_path: Path, index: int) -> None:
    (policy,) = [text for kind, text in BLOCKS if kind == "yaml"]
    (tmp_path / "policy.yaml").write_text(policy)
    (tmp_path / "program.py").write_text(BLOCKS[index][1])
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        line.rstrip() for line in BLOCKS[index + 1][1].splitlines()
    ]
