"""No program is started that an agent could have written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cofferdam import CofferdamError, DaemonNotFound, _find, _hostfile

WAYS = {
    "elsewhere": True,  # the controls: it runs
    "covered": True,
    "covered, and still the same": True,
    "in the project": False,
    "by a link": False,
    "by a link's directory": False,
    "covered, and another by now": False,
    "relative": False,
}


def birth_of(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return _hostfile._birth(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("way", WAYS)
def test_a_program_where_an_agent_could_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """As the command line does with those that it looks for: a project's own programs may come first in PATH."""
    tmp_path = tmp_path.resolve()
    state, project, elsewhere = tmp_path / "state", tmp_path / "project", tmp_path / "elsewhere"
    tools = project / ".venv" / "bin"
    for one in (state, tools, elsewhere):
        one.mkdir(parents=True, mode=0o755)
    folder = elsewhere if way == "elsewhere" else tools
    script = folder / "cofferdam"
    script.write_text(f"#!/bin/sh\necho ran > {tmp_path}/ran\n")
    script.chmod(0o755)
    if way == "by a link":
        (elsewhere / "cofferdam").symlink_to(script)
        folder = elsewhere
    elif way == "by a link's directory":
        (tmp_path / "bin").symlink_to(tools)
        folder = tmp_path / "bin"
    known, tool = project.stat(), (project / ".venv").stat()
    line = {"path": str(project), "id": {"type": "dir", "inode": known.st_ino, "device": known.st_dev}}
    if way.startswith("covered"):
        line["covered"] = ".venv"
    if ", " in way:
        birth = birth_of(project / ".venv")
        inode = tool.st_ino + (way == "covered, and another by now")
        line["marks"] = f"dir,{tool.st_dev},{inode},{birth},{0 if birth else tool.st_ctime_ns}"
    (state / "written").write_text(json.dumps(line) + "\n")
    monkeypatch.setenv("COFFERDAM_STATE", str(state))
    monkeypatch.setenv("COFFERDAM_RUNTIME", str(tmp_path / "runtime"))
    monkeypatch.delenv("COFFERDAM_BINARY", raising=False)
    monkeypatch.setattr(_find, "_script_directories", list)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    if way == "relative":
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PATH", ".:/usr/bin:/bin")
    if WAYS[way]:
        _find.start()
    else:
        with pytest.raises(
            DaemonNotFound, match="no program" if way == "relative" else "an agent could have put it there"
        ):
            _find.start()
    assert (tmp_path / "ran").exists() == WAYS[way]
    monkeypatch.setenv("COFFERDAM_BINARY", str(script))  # a person's word for it changes nothing
    if WAYS[way]:
        assert _find.binary() == str(script)
    else:
        with pytest.raises(CofferdamError, match="an agent could have put it there"):
            _find.binary()


def test_the_program_that_is_looked_at_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name alone is one of this directory, and none of the PATH, in which an agent's may be. The control is its path."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder in (mine, theirs):
        folder.mkdir()
        (folder / "cofferdam").write_text(f"#!/bin/sh\necho ran > {folder}/ran\n")
        (folder / "cofferdam").chmod(0o755)
    monkeypatch.setenv("COFFERDAM_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COFFERDAM_RUNTIME", str(tmp_path / "runtime"))
    monkeypatch.setenv("PATH", f"{theirs}:/usr/bin:/bin")
    monkeypatch.chdir(mine)
    for named in (str(mine / "cofferdam"), "./cofferdam", "cofferdam"):
        monkeypatch.setenv("COFFERDAM_BINARY", named)
        (mine / "ran").unlink(missing_ok=True)
        _find.start()
        assert (mine / "ran").exists(), named
        assert not (theirs / "ran").exists(), named


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to mount")
@pytest.mark.parametrize("bound", [False, True])
def test_a_cover_that_has_another_name_in_the_tree(tmp_path: Path, bound: bool) -> None:
    """An agent writes what is covered by another name that the directory has in the same project. The control has none."""
    project, state = tmp_path.resolve() / "project", tmp_path.resolve() / "state"
    for one in (state, project / ".venv", project / "again"):
        one.mkdir(parents=True)
    script = project / ".venv" / "cofferdam"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    known = project.stat()
    identity = {"type": "dir", "inode": known.st_ino, "device": known.st_dev}
    line = {"path": str(project), "id": identity, "covered": ".venv"}
    (state / "written").write_text(json.dumps(line) + "\n")
    code = (
        "from cofferdam import _find\ntry:\n    print(_find.binary())\nexcept Exception as e:\n    print('refused:', e)"
    )
    said = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            '$1 && exec "$2" -c "$3"',
            "sh",
            f"mount --bind {project}/.venv {project}/again" if bound else "true",
            sys.executable,
            code,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COFFERDAM_STATE": str(state), "COFFERDAM_BINARY": str(script)},
    )
    if bound:
        assert said.stdout.startswith("refused:") and "an agent could have put it there" in said.stdout, said
    else:
        assert said.stdout.strip() == str(script), said
