"""A document that decides what sessions may do, and that an agent wrote, decides nothing that nobody has seen."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cofferdam import Client, CofferdamError, Sandbox, _find
from cofferdam.agt import CofferdamSandboxProvider

pytestmark = pytest.mark.usefixtures("daemon")


@pytest.fixture
def project() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cfproject"))
    folder.chmod(0o777)  # sessions' code is nobody's, and their output comes here
    yield folder
    shutil.rmtree(folder)


def allow(path: Path) -> None:
    """Says, as a person, that what is in a file was read: anybody could have written it there."""
    digest = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    subprocess.run([_find.binary(), "project", "allow", "--digest", digest, str(path)], check=True)


def document(project: Path, **more: object) -> str:
    return json.dumps(
        {"name": "mine", "defaults": {"action": "allow"}, "sandbox_mounts": {"output_dir": str(project)}, **more}
    )


def test_a_provider_asks_about_a_document_that_an_agent_wrote(daemon: Path, project: Path) -> None:
    """As the command line and Sandbox do, which are the control."""
    theirs, ours = project / "session.yaml", project / "policy.yaml"
    theirs.write_text(document(project))
    ours.write_text("name: narrow\npackages: { default: deny }\n")
    allow(theirs)
    allow(ours)
    with Sandbox(policy=str(ours)):
        pass
    with CofferdamSandboxProvider() as provider:
        first = provider.create_session("a", policy=str(theirs))
        wider = document(project, network_allowlist=["files.attacker.example"])
        kept = provider.execute_code("a", first.session_id, "import os\nos.unlink('/output/session.yaml')")
        assert kept.result is not None and not kept.result.success, "its own run may rewrite what it is decided by"
        provider.destroy_session("a", first.session_id)
        other = provider.create_session("a", policy=json.loads(document(project)))  # no file decides it
        code = (
            "import os\nos.unlink('/output/session.yaml'), os.unlink('/output/policy.yaml')\n"
            f"open('/output/session.yaml', 'w').write({wider!r})\n"
            "open('/output/policy.yaml', 'w').write('name: wide\\npackages: { default: allow }\\n')"
        )
        done = provider.execute_code("a", other.session_id, code)
        assert done.result is not None and done.result.success, done.result
        provider.destroy_session("a", other.session_id)
        assert theirs.read_text() == wider, "the control: the agent did not write it"
        with pytest.raises(CofferdamError, match="nobody has seen"):  # the control
            Sandbox(policy=str(ours)).start()
        with pytest.raises((ValueError, RuntimeError, CofferdamError), match="nobody has seen"):
            provider.create_session("a", policy=str(theirs))


def test_a_plan_asks_about_a_policy_that_an_agent_wrote(daemon: Path, project: Path) -> None:
    policy = project / "policy.yaml"
    policy.write_text("name: narrow\npackages: { default: deny }\n")
    allow(policy)
    with Client() as client:
        client.plan(["pip", "install", "six"], policy=str(policy))  # the control: a person has seen it
        with Sandbox(
            policy_name=None, mounts=[{"source": str(project), "destination": "/output", "read_write": True}]
        ) as box:
            done = box.run("rm /output/policy.yaml; echo 'name: wide' > /output/policy.yaml")
            assert done.exit_code == 0, done
        with pytest.raises(CofferdamError, match="nobody has seen"):
            client.plan(["pip", "install", "six"], policy=str(policy))
