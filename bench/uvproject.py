"""Runs once in a sandbox: locks a project, and keeps its lockfile, wheels and index pages under a
registry's name that is nobody's. Arguments: the directory, the name, the requirements as JSON."""
import json
import pathlib
import re
import subprocess
import sys
import tomllib

directory, base, requirements = pathlib.Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
project, pages = directory / "project", directory / "simple"
project.mkdir()
pages.mkdir()

head = '[project]\nname = "bench"\nversion = "1.0"\nrequires-python = ">=3.11"\n'
(project / "pyproject.toml").write_text(head + "dependencies = " + json.dumps(requirements) + "\n")
subprocess.run(["uv", "lock", "--quiet"], cwd=project, check=True)
exported = subprocess.run(
    ["uv", "export", "--quiet", "--frozen", "--no-emit-project"], cwd=project, check=True, stdout=subprocess.PIPE
)
(directory / "requirements.txt").write_bytes(exported.stdout)
fetch = ["pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--require-hashes", "--only-binary=:all:"]
subprocess.run([*fetch, "--dest", directory / "files", "-r", directory / "requirements.txt"], check=True)

text = (project / "uv.lock").read_text()
for package in tomllib.loads(text)["package"]:
    if "registry" not in package["source"]:
        continue
    files = []
    for wheel in package.get("wheels", []):
        name = wheel["url"].rsplit("/", 1)[1]
        algorithm, digest = wheel["hash"].split(":")
        known = {key: wheel[key] for key in ("size", "upload-time") if key in wheel}
        files.append({"filename": name, "url": f"{base}files/{name}", "hashes": {algorithm: digest}, **known})
    page = {"meta": {"api-version": "1.1"}, "name": package["name"], "files": files}
    (pages / (package["name"] + ".json")).write_text(json.dumps(page))
text = re.sub(r'registry = "[^"]*"', f'registry = "{base}simple"', text)
text = re.sub(r'url = "[^"]*/([^/"]*)"', rf'url = "{base}files/\1"', text)
(project / "uv.lock").write_text(text)
