# What is no alarm: everything here is served, or comes with what was, or is
# written here, or was there before.
set -e
cd /workspace
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install -q -e .
/tmp/venv/bin/pip install -q --no-deps --force-reinstall .
python3 -m venv /tmp/seeds
/tmp/seeds/bin/pip install -q virtualenv==20.26.2
VIRTUALENV_NO_PERIODIC_UPDATE=1 /tmp/seeds/bin/virtualenv -q /tmp/seeded
npm install --no-audit --no-fund --loglevel=error >/dev/null
mkdir /tmp/dep /tmp/node
echo '{"name":"dep","version":"1.0.0"}' >/tmp/dep/package.json
cd /tmp/node
echo '{"name":"node","version":"1.0.0","dependencies":{"dep":"file:../dep","color-convert":"2.0.1"}}' >package.json
pnpm install --silent
mkdir -p /tmp/new/newpkg
cd /tmp/new
touch newpkg/__init__.py
printf '[project]\nname = "newpkg"\nversion = "0.0.2"\nrequires-python = ">=3.9"\ndependencies = ["idna==3.4"]\n[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n' >pyproject.toml
uv sync -q
mkdir /tmp/module /tmp/lib
printf 'module example.com/lib\n' >/tmp/lib/go.mod
echo 'package lib' >/tmp/lib/lib.go
cd /tmp/module
go mod init example.com/module 2>/dev/null
go mod edit -require example.com/lib@v1.0.0 -replace example.com/lib=/tmp/lib
printf 'package main\n\nimport (\n\t_ "example.com/lib"\n\t_ "github.com/google/uuid"\n)\n\nfunc main() {}\n' >main.go
go get github.com/google/uuid@v1.5.0 2>/dev/null
go run .
echo done
