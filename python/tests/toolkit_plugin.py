"""Lends the toolkit's tests of its Docker provider ours, and runs them as they are.

They are of the toolkit's source archive and not here; test/python of the repository fetches
it and runs: pytest -p tests.conftest -p tests.toolkit_plugin FILE. Their fixture imports a module that
no release has; one of that name with our provider in it is enough. One test is left out:
``test_network_enabled`` demands an open network, which no sandbox here has.
``network_enabled=True`` is a ValueError that names ``network_allowlist``.
"""

from __future__ import annotations

import sys
import types
from unittest.mock import MagicMock

import pytest

from cofferdam.agt import CofferdamSandboxProvider

LEFT_OUT = "test_network_enabled"

docker = types.ModuleType("docker")
docker.from_env = lambda *a, **k: MagicMock()  # type: ignore[attr-defined]
sys.modules["docker"] = docker
lent = types.ModuleType("agent_sandbox.docker_sandbox_provider")
lent.DockerSandboxProvider = CofferdamSandboxProvider  # type: ignore[attr-defined]
sys.modules[lent.__name__] = lent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    out = [item for item in items if item.name == LEFT_OUT]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item.name != LEFT_OUT]


@pytest.fixture(autouse=True)
def _daemon(daemon: object) -> None:
    """Each of their tests has the daemon of ours."""
