"""A daemon of the tests' own, of the built binary and the repository's template."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ONE_PACKAGE = """name: one-package
packages: { default: deny }
allowed_packages:
  python:
    - { name: iniconfig }
"""


@pytest.fixture(scope="session")
def daemon() -> Iterator[Path]:
    """Where a daemon is started on first use; it ends with the tests."""
    binary = os.environ.get("COFFERDAM_BINARY") or str(ROOT / "bin" / "cofferdam")
    templates = ROOT / ".cofferdam" / "templates"
    assert Path(binary).exists(), "run `make build` first"
    assert (templates / "debian").exists(), "run `make template` first"
    folder = Path(tempfile.mkdtemp(prefix="cfp"))  # a socket's path must be short
    folder.chmod(0o711)  # the gateway, another user, passes through
    (folder / "s").mkdir(mode=0o711)
    (folder / "s" / "templates").symlink_to(templates)
    (folder / "s" / "config.yaml").write_text("default_template: debian\n")
    here = {"COFFERDAM_STATE": str(folder / "s"), "COFFERDAM_RUNTIME": str(folder / "r"), "COFFERDAM_BINARY": binary}
    before = {name: os.environ.get(name) for name in [*here, "COFFERDAM_HOST", "COFFERDAM_TOKEN"]}
    os.environ.update(here)
    for name in ("COFFERDAM_HOST", "COFFERDAM_TOKEN"):
        os.environ.pop(name, None)
    yield folder
    subprocess.run([binary, "stop", "--force"], check=True, capture_output=True)
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    shutil.rmtree(folder)
