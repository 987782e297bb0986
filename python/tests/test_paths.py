"""Paths of the host: one place opens them, and what an agent left there is not waited for or followed."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cofferdam import CofferdamError, _find, _hostfile, _mounttable, _policy
from cofferdam.agt import _mounts

#: Calls that resolve a path by its name, whatever object they are asked of.
_BY_NAME = frozenset(
    [
        "open",
        "fdopen",
        "stat",
        "lstat",
        "readlink",
        "access",
        "scandir",
        "listdir",
        "walk",
        "fwalk",
        "realpath",
        "exists",
        "lexists",
        "isfile",
        "isdir",
        "islink",
        "ismount",
        "getsize",
        "getmtime",
        "samefile",
        "is_file",
        "is_dir",
        "is_symlink",
        "is_fifo",
        "is_mount",
        "iterdir",
        "glob",
        "rglob",
        "resolve",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "expanduser",
        "touch",
        "mkdir",
        "makedirs",
        "unlink",
        "rename",
        "replace_file",
        "symlink",
        "symlink_to",
        "link",
        "chmod",
        "chown",
        "truncate",
        "copy",
        "copyfile",
        "copytree",
        "move",
        "rmtree",
        "which",
        "load_cert_chain",
        "load_verify_locations",
    ]
)

#: Functions that may do so all the same, by file, and why.
_ELSEWHERE = {
    ("_mounttable.py", "open"): "the kernel's table of mounts",
    ("_async/client.py", "open"): "a file in a temporary directory of its own",
    ("_sync/client.py", "open"): "a file in a temporary directory of its own",
    ("_find.py", "resolve"): "where this package lies",
    ("_async/files.py", "stat"): "files of a sandbox",
    ("_sync/files.py", "stat"): "files of a sandbox",
}


def _package() -> Path:
    return Path(_hostfile.__file__).resolve().parent


def _called(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node.func, ast.Attribute):
            yield node.func.attr
        # What is handed on to be called, as to map.
        for arg in node.args:
            if isinstance(arg, ast.Attribute) and isinstance(arg.value, (ast.Name, ast.Attribute)):
                yield arg.attr


def test_only_hostfile_opens_paths() -> None:
    used = set()
    for path in sorted(_package().rglob("*.py")):
        name = path.relative_to(_package()).as_posix()
        for called in _called(path):
            if called not in _BY_NAME or name == "_hostfile.py":
                continue
            assert (name, called) in _ELSEWHERE, (
                f"{name} calls {called}: use _hostfile, or say why no agent can have put a link there"
            )
            used.add((name, called))
    assert used == set(_ELSEWHERE), "nobody does these any more"
    assert {"open", "lstat", "readlink", "realpath"} <= set(_called(_package() / "_hostfile.py")), "the wrong names"


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory that a sandbox could write to, and one beside it of somebody else."""
    tmp_path = tmp_path.resolve()
    for name in ("state", "project", "secret"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "secret" / "policy.yaml").write_text("name: secret\n")
    monkeypatch.setenv("COFFERDAM_STATE", str(tmp_path / "state"))
    known = (tmp_path / "project").stat()
    line = {"path": str(tmp_path / "project"), "id": {"type": "dir", "inode": known.st_ino, "device": known.st_dev}}
    (tmp_path / "state" / "written").write_text(json.dumps(line) + "\n")
    return tmp_path / "project"


def test_sources_of_mounts(project: Path) -> None:
    """What a session mounts is what it was given, and the daemon sees the path as it was written."""
    data, secret = project / "data", project.parent / "secret"
    data.mkdir()
    assert _mounts.mounts(str(data), None)[0]["source"] == str(data)
    outside = project.parent / "way"
    outside.symlink_to(data)
    assert _mounts.mounts(str(outside), None)[0]["source"] == str(outside), "the daemon knows more directories"
    data.rename(project / "old")
    data.symlink_to(secret)
    for path in (data, data / ".", f"{project}/../project/data", outside):
        for given in ((str(path), None), (None, str(path))):
            with pytest.raises(ValueError, match=r"a link under .* which some sandbox was given to write to"):
                _mounts.mounts(*given)
    for path in ("/etc", "/bin", str(project.parent / "none"), ""):
        with pytest.raises(ValueError, match="mount"):
            _mounts.mounts(path, None)
    (project.parent / "etc").symlink_to("/etc")
    with pytest.raises(ValueError, match="protected system directory"):
        _mounts.mounts(str(project.parent / "etc"), None)


def _fifo(at: Path) -> None:
    os.mkfifo(at)


def _device(at: Path) -> None:
    at.symlink_to("/dev/zero")


def _huge(at: Path) -> None:
    with at.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("made", [_fifo, _device, _huge, Path.mkdir])
@pytest.mark.parametrize("recorded", [True, False])
def test_no_documents(project: Path, made: Callable[[Path], None], recorded: bool) -> None:
    """What is no document is refused: it is neither waited for nor read without an end."""
    beside = project.parent / "policy.yaml"
    made(beside)
    if not recorded:
        (project.parent / "state" / "written").unlink()
    ways = {
        "a policy": f"_policy.text_of({str(beside)!r})",
        "a CA": f"_find.address('https://x.example', 't', {str(beside)!r})",
        "the record": f"_policy.text_of({str(project.parent / 'way')!r})",
    }
    (project.parent / "way").symlink_to(project.parent / "secret" / "policy.yaml")
    if recorded:  # the record itself, as well
        (project.parent / "state" / "written").unlink()
        made(project.parent / "state" / "written")
    else:
        del ways["the record"]
    for what, way in ways.items():
        code = f"from cofferdam import CofferdamError, _find, _policy\ntry:\n    print({way})\nexcept CofferdamError as e:\n    print('refused:', e)"
        # In a process of its own: one that waits is ended.
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert said.stdout.startswith("refused:"), (what, said)


def test_documents_are_read(project: Path) -> None:
    """The control of the above: whole files, also behind links that nobody else could make."""
    (project / "own.yaml").write_text("name: own\n")
    (project.parent / "link").symlink_to(project)
    assert _policy.text_of(str(project.parent / "link" / "own.yaml"))[1] == b"name: own\n"
    with pytest.raises(CofferdamError, match="it has more than"):
        _hostfile.read("policy", project / "own.yaml", most=3)
    ca = project.parent / "ca.pem"
    for text in ("", "no certificate\n"):
        ca.write_text(text)
        with pytest.raises(CofferdamError, match="has no certificates"):
            _find.trust(_find.address("https://x.example", "t", str(ca)))


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to make another user's links and files")
def test_links_and_files_of_another_user(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of another user's agents: their links are not followed, and their files decide nothing unseen."""
    place, ca = project.parent / "place", project.parent / "place" / "ca.pem"
    place.mkdir()
    link = place / "link"
    link.symlink_to(project.parent / "secret" / "policy.yaml")
    ca.write_text("no certificate\n")

    def trusted() -> None:
        assert _policy.text_of(str(link))[1] == b"name: secret\n"
        assert _hostfile.read_deciding("CA file", ca) == b"no certificate\n"

    def refused(why: str, *, deciding: bool = True) -> None:
        with pytest.raises(CofferdamError, match=why + ".*an agent could have put it there"):
            _policy.text_of(str(link))
        if deciding:
            with pytest.raises(CofferdamError, match=why + ".*nobody has seen what is in it"):
                _hostfile.read_deciding("CA file", ca)

    trusted()  # the control
    os.chown(link, 1000, 1000, follow_symlinks=False)
    refused("link belongs to user 1000", deciding=False)
    os.chown(link, 0, 0, follow_symlinks=False)
    os.chown(place, 1000, 1000)
    refused("place belongs to user 1000")
    os.chown(place, 0, 0)
    place.chmod(0o777)
    refused("others can write to .*place")
    place.chmod(0o1777)
    trusted()  # as in /tmp
    place.chmod(0o755)
    os.chown(ca, 1000, 1000)
    with pytest.raises(CofferdamError, match=r"ca\.pem belongs to user 1000.*nobody has seen"):
        _hostfile.read_deciding("CA file", ca)
    digest = "sha256:" + hashlib.sha256(ca.read_bytes()).hexdigest()
    (project.parent / "state" / "vouched.json").write_text(json.dumps({str(ca): {"digest": digest}}))
    trusted()  # a person has seen it
    ca.write_text("another\n")
    for state in ("state", "none"):  # also where no daemon has ever run
        monkeypatch.setenv("COFFERDAM_STATE", str(project.parent / state))
        with pytest.raises(CofferdamError, match="nobody has seen"):
            _hostfile.read_deciding("CA file", ca)


@pytest.mark.parametrize("change", [None, 0o777, 0o775])
def test_a_record_of_another_user(project: Path, change: int | None) -> None:
    """Who keeps the record is looked at as the command line does it: another user's is not believed."""
    state = project.parent / "state"
    (state / "written").write_text("")
    (project.parent / "link").symlink_to(project.parent / "secret" / "policy.yaml")
    if change is not None:
        if os.geteuid() == 0:
            os.chown(state, 0, 65534)
        elif change == 0o775:
            pytest.skip("takes root to give it to another group")
        state.chmod(change)
        with pytest.raises(CofferdamError, match="a link under /"):
            _policy.text_of(str(project.parent / "link"))
        return
    assert _policy.text_of(str(project.parent / "link"))[1] == b"name: secret\n"


def test_a_tree_that_is_mounted_elsewhere(project: Path) -> None:
    """A part of a directory is the same under another name, as the table of mounts has it."""
    text = (
        "20 1 8:1 / / rw - ext4 x rw\n"
        "21 20 8:2 / /home rw - ext4 x rw\n"
        "22 20 8:2 /me/project/data /srv/a\\040b rw - ext4 x rw\n"
        "23 21 8:3 / /home/me/hidden rw - ext4 x rw\n"
        "24 20 8:4 / /home rw - ext4 x rw\n"
    )
    table = _mounttable.parse(text)
    lower = _mounttable.parse(text[: text.index("24 ")])
    assert lower.names_under("/srv/a b/x", "/home/me/project") and lower.names_under("/srv/a b", "/home")
    assert not lower.names_under("/srv/a b/x", "/home/you") and not lower.names_under("/srv", "/home/me/project")
    assert not table.names_under("/srv/a b/x", "/home/me/project"), "what is mounted over it hides it"
    if os.geteuid() != 0:
        return
    (project / "data").mkdir()
    (project / "data" / "link").symlink_to(project.parent / "secret" / "policy.yaml")
    (project.parent / "other").mkdir()
    code = (
        "import sys\nfrom cofferdam import CofferdamError, _policy\n"
        "try:\n    print(_policy.text_of(sys.argv[1]))\nexcept CofferdamError as e:\n    print('refused:', e)"
    )
    script = 'mount --bind "$1/data" "$2" && exec "$3" -c "$4" "$2/link"'
    said = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", project, project.parent / "other", sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout.startswith("refused:") and "a link under" in said.stdout, said


@pytest.mark.parametrize("odd", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\udcff"])
def test_a_mount_with_an_odd_name(odd: str) -> None:
    """Only a line feed ends a line of the table, so that no name hides what is mounted under it."""
    text = f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:1 /project/sub /mnt/a{odd}b rw - ext4 /dev/a rw\n"
    assert _mounttable.parse(text).names_under(f"/mnt/a{odd}b/link", "/project")
    assert not _mounttable.parse(text).names_under(f"/mnt/a{odd}b/link", "/other")
