"""Takes the manifests and lockfiles out of released packages: source distributions, npm's tarballs and Go's modules. The
first argument is the directory that each package gets one in. The registries are those that pip, npm and go ask."""

import concurrent.futures
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request
import zipfile

PYTHON = """aiohttp alembic anyio arrow attrs black boltons build celery certifi click cryptography dateparser django fastapi filelock flask
gunicorn h11 hatch hatchling httpcore httpx hypothesis idna importlib-metadata iniconfig installer itsdangerous jinja2 jsonschema marshmallow
more-itertools mypy nox packaging pdm pip-tools pipenv pluggy poetry poetry-core psutil pydantic pygments pytest python-dateutil pyyaml redis
requests rich scrapy setuptools simplejson six sqlalchemy starlette structlog tomli tox typer urllib3 uvicorn virtualenv werkzeug wheel""".split()
NODE = """@babel/core @types/node ajv axios body-parser chalk cheerio commander cross-env debug eslint execa express fastify glob got jest koa
lerna lodash mocha nodemon npm npm-check-updates nyc pino pnpm postcss prettier react react-dom rollup rxjs semver serverless sinon supertest ts-node
tsx typescript vite vitest vue webpack webpack-cli yargs yarn zod""".split()
GO = """github.com/spf13/cobra github.com/spf13/viper github.com/gin-gonic/gin github.com/go-chi/chi/v5 github.com/labstack/echo/v4 github.com/stretchr/testify
github.com/urfave/cli/v2 github.com/prometheus/client_golang github.com/sirupsen/logrus go.uber.org/zap github.com/google/uuid github.com/gorilla/mux
github.com/hashicorp/go-multierror github.com/hashicorp/vault/api github.com/redis/go-redis/v9 github.com/jackc/pgx/v5 github.com/BurntSushi/toml
golang.org/x/tools golang.org/x/crypto google.golang.org/grpc google.golang.org/protobuf gopkg.in/yaml.v3 k8s.io/client-go k8s.io/api
github.com/docker/cli github.com/moby/buildkit github.com/aws/aws-sdk-go-v2 github.com/grpc-ecosystem/grpc-gateway/v2 go.etcd.io/etcd/client/v3
github.com/nats-io/nats.go github.com/gofiber/fiber/v2 github.com/charmbracelet/bubbletea github.com/rs/zerolog github.com/golang-jwt/jwt/v5""".split()

WANTED = re.compile(
    r"^(pyproject\.toml|setup\.(cfg|py)|Pipfile(\.lock)?|.*requirements.*\.(txt|in)|(uv|poetry|pdm)\.lock|pylock.*\.toml|package\.json"
    r"|package-lock\.json|npm-shrinkwrap\.json|pnpm-(lock|workspace)\.yaml|go\.(mod|sum|work)|go\.work\.sum)$"
)
MOST = 60  # files of one package: some carry hundreds of examples


def index() -> str:
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False).stdout.strip()
    if not asked:
        asked = os.environ.get("PIP_INDEX_URL") or subprocess.run([sys.executable, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"], capture_output=True, text=True, check=True).stdout.strip()
    return asked.rstrip("/") + "/"


def keep(top: str, package: str, members) -> None:
    kept = 0
    for name, read in members:
        base = name.rsplit("/", 1)[-1]
        inside = (base if "requirements/" not in name else "requirements.txt") if name.endswith(".txt") else base
        if kept == MOST or not WANTED.match(inside) or "node_modules" in name or ".." in name or name.startswith("/"):
            continue
        at = os.path.join(top, re.sub(r"[^A-Za-z0-9.]+", "-", package), *name.split("/")[1:])
        os.makedirs(os.path.dirname(at), exist_ok=True)
        with open(at, "wb") as file:
            file.write(read())
        kept += 1


def tar(top: str, package: str, data: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        keep(top, package, [(m.name, lambda m=m: archive.extractfile(m).read()) for m in archive.getmembers() if m.isfile()])


def sdist(top: str, base: str, name: str) -> None:
    page = urllib.parse.urljoin(base, name + "/")
    ask = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(ask, timeout=120) as answer:
        files = [f for f in json.load(answer)["files"] if f["filename"].endswith(".tar.gz")]
    if files:
        with urllib.request.urlopen(urllib.parse.urljoin(page, files[-1]["url"]), timeout=300) as answer:
            tar(top, name, answer.read())


def packed(top: str, _: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(["npm", "pack", "--json", "--ignore-scripts", "--loglevel=error", name], cwd=folder, capture_output=True, check=True).stdout
        with open(os.path.join(folder, json.loads(out)[0]["filename"]), "rb") as file:
            tar(top, name, file.read())


def module(top: str, _: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(["go", "mod", "download", "-json", name + "@latest"], cwd=folder, capture_output=True, check=True).stdout
        with zipfile.ZipFile(json.loads(out)["Zip"]) as archive:
            keep(top, name, [("x/" + n.split("@", 1)[1].split("/", 1)[1], lambda n=n: archive.read(n)) for n in archive.namelist() if not n.endswith("/")])


def main() -> None:
    top, base = sys.argv[1], index()
    missed = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = {pool.submit(take, top, base, name): name for take, names in ((sdist, PYTHON), (packed, NODE), (module, GO)) for name in names}
        for job in concurrent.futures.as_completed(jobs):
            if job.exception() is not None:
                missed.append(f"{jobs[job]}: {job.exception()}")
    if len(missed) > 20:
        sys.exit("too few packages could be had: " + "; ".join(missed[:5]))


main()
