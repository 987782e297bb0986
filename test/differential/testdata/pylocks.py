"""Says what pip, packaging and uv find in a lockfile: a line of JSON for each, and one in
answer. Nothing is installed, and no index is asked."""

import json
import logging
import os
import re
import subprocess
import sys
import tomllib

from pip._internal.network.session import PipSession
from pip._internal.req.constructors import install_req_from_parsed_requirement
from pip._internal.req.req_file import parse_requirements
from pip._vendor.packaging.pylock import Pylock


def requirements(folder: str) -> list:
    entries = []
    for parsed in parse_requirements(os.path.join(folder, "requirements.txt"), session=PipSession()):
        asked = install_req_from_parsed_requirement(parsed)
        exact = [s.version for s in asked.req.specifier if s.operator in ("==", "===")] if asked.req else []
        hashes = [f"{name}:{digest}".lower() for name, digests in asked.hash_options.items() for digest in digests]
        local = asked.link is not None and (parsed.is_editable or asked.link.is_existing_dir())
        entries.append(
            {
                "name": asked.name or "",
                "version": exact[0] if len(exact) == 1 and len(asked.req.specifier) == 1 and "*" not in exact[0] else "",
                "hashes": hashes,
                "own": local,
                "elsewhere": asked.link is not None and not local,
            }
        )
    return entries


def locked(path: str) -> list:
    with open(path, "rb") as file:
        lock = Pylock.from_dict(tomllib.load(file))
    lock.validate()
    entries = []
    for package in lock.packages:
        files = ([package.sdist] if package.sdist else []) + list(package.wheels or [])
        entries.append(
            {
                "name": package.name,
                "version": str(package.version or ""),
                "hashes": [f"{name}:{digest}" for file in files for name, digest in file.hashes.items()],
                "own": package.directory is not None,
                "elsewhere": package.vcs is not None or package.archive is not None,
            }
        )
    return entries


def exported(uv: str, folder: str) -> list:
    """What uv has of its own lockfile, in the form that packaging reads."""
    out = os.path.join(folder, "pylock.exported.toml")
    argv = [uv, "export", "--frozen", "--offline", "--no-python-downloads", "--quiet", "--no-config", "--format=pylock.toml", "--output-file=" + out]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    return locked(out)


def main() -> None:
    logging.disable(logging.CRITICAL)
    sys.stderr = open(os.devnull, "w")  # pip shows its usage for an option that it does not know
    uv = sys.argv[1]
    readers = {
        "requirements": requirements,
        "pylock": lambda folder: locked(os.path.join(folder, "pylock.toml")),
        "uv": lambda folder: exported(uv, folder),
    }
    for line in sys.stdin:
        order = json.loads(line)
        os.chdir(order["file"])  # paths in a lockfile are looked for from there
        try:
            answer = {"entries": readers[order["tool"]](order["file"])}
        except BaseException as err:  # whatever it is, the client installs nothing
            answer = {"error": re.sub(r"\s+", " ", f"{type(err).__name__}: {err}")}
        print(json.dumps(answer), flush=True)


main()
