package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// ownRegistry is a project that names a registry of its own. File is beside a pyproject.toml or a package.json that asks for one name, which
// is written into file itself where that is the manifest.
type ownRegistry struct{ file, text string }

const ownIndex = "https://own.example/simple"

// pythonRegistries are forms in which projects have Python's clients ask other registries.
func pythonRegistries() map[string]ownRegistry {
	const project = "[project]\nname='p'\ndependencies=['six']\n[build-system]\nrequires=[]\n"
	return map[string]ownRegistry{
		"PDM's settings":             {"pdm.toml", "[pypi]\nurl = \"" + ownIndex + "\"\n"},
		"PDM's settings, another":    {"pdm.toml", "[pypi.corp]\nurl = \"" + ownIndex + "\"\n"},
		"Poetry's mirror":            {"poetry.toml", "[plugins.pypi_mirror]\nurl = \"" + ownIndex + "\"\n"},
		"Hatch's variables":          {"pyproject.toml", project + "[tool.hatch.envs.default.env-vars]\nPIP_INDEX_URL = \"" + ownIndex + "\"\n"},
		"Hatch's overrides":          {"pyproject.toml", project + "[tool.hatch.envs.default.overrides]\nplatform.linux.env-vars = [\"UV_DEFAULT_INDEX=" + ownIndex + "\"]\n"},
		"Hatch's own file":           {"hatch.toml", "[envs.default.env-vars]\nUV_INDEX = \"" + ownIndex + "\"\n"},
		"uv's, explicit and default": {"pyproject.toml", project + "[[tool.uv.index]]\nname='x'\nurl='" + ownIndex + "'\nexplicit=true\ndefault=true\n"},
		"uv's, in a line":            {"pyproject.toml", project + "[tool]\nuv = {index = [{url='" + ownIndex + "'}]}\n"},
		"a table of pixi's":          {"pyproject.toml", project + "[tool.pixi.pypi-options]\nindex-url='" + ownIndex + "'\n"},
		"a table of rye's":           {"pyproject.toml", project + "[[tool.rye.sources]]\nname='x'\nurl='" + ownIndex + "'\n"},
		"setuptools', with -":        {"setup.cfg", "[easy_install]\nindex-url = " + ownIndex + "\n"},
		"setuptools' links, with -":  {"setup.cfg", "[easy_install]\nfind-links = " + ownIndex + "\n"},
		"setuptools, behind a CR":    {"setup.cfg", "# x\r[easy_install]\rindex_url = " + ownIndex + "\n"},
		"quotes in an option":        {"requirements.txt", "six\n--extra-index\"-url\" " + ownIndex + "\n"},
		"quotes before one":          {"requirements.txt", "six\n--pre ''--extra-index-url " + ownIndex + "\n"},
		"a backslash before one":     {"requirements.txt", "six\n--pre \\--extra-index-url " + ownIndex + "\n"},
		"a variable":                 {"requirements.txt", "six\n--pre ${MORE}\n"},
		"an option of tomorrow":      {"requirements.txt", "six\n--packages-from " + ownIndex + "\n"},
		"behind a CR":                {"requirements.txt", "six\n# x\r--extra-index-url " + ownIndex + "\n"},
		"behind a form feed":         {"requirements.txt", "six\n# x\f--extra-index-url " + ownIndex + "\n"},
		"behind a line separator":    {"requirements.txt", "six\n# x\u2028--extra-index-url " + ownIndex + "\n"},
		"a file outside":             {"requirements.txt", "six\n-r ../base.txt\n"},
		"constraints outside":        {"requirements.txt", "six\n-c ../base.txt\n"},
		"a file that is not there":   {"requirements.txt", "six\n-r base.txt\n"},
		"a file at an address":       {"requirements.txt", "six\n-r https://own.example/base.txt\n"},
		"pip's settings":             {"pip.conf", "[global]\nindex-url = " + ownIndex + "\n"},
		"pip's, of an environment":   {".venv/pip.conf", "[install]\nextra_index_url =\n  " + ownIndex + "\n"},
		"variables":                  {".env", "PIP_EXTRA_INDEX_URL=" + ownIndex + "\n"},
		"direnv's":                   {".envrc", "export UV_INDEX=" + ownIndex + "\n"},
		"an image's":                 {"Dockerfile", "FROM x\nENV PIP_INDEX_URL=" + ownIndex + "\n"},
		"an image's install":         {"Dockerfile", "FROM x\nRUN pip install -i " + ownIndex + " six\n"},
		"tox":                        {"tox.ini", "[testenv]\nsetenv =\n  PIP_INDEX_URL=" + ownIndex + "\n"},
		"tox' own":                   {"tox.ini", "[tox]\nindexserver =\n  default = " + ownIndex + "\n"},
		"nox":                        {"noxfile.py", "session.install('--extra-index-url', '" + ownIndex + "', 'six')\n"},
		"Pipenv's mirror":            {".env", "PIPENV_PYPI_MIRROR=" + ownIndex + "\n"},
		"in letters of its own":      {"Makefile", "# \xe9\nx:\n\tpip install --index-url " + ownIndex + " six\n"},
		"too large":                  {"Makefile", strings.Repeat("# x\n", 1<<18) + "x:\n"},
		"a command of pip's":         {"Dockerfile", "FROM x\nRUN pip config set global.index-url " + ownIndex + "\n"},
		"pip's settings, written":    {"Dockerfile", "FROM x\nRUN printf '[global]\\nindex-url = " + ownIndex + "' > /etc/pip.conf\n"},
		"-i with a variable":         {"Dockerfile", "FROM x\nRUN pip install \\\n  # why\n  -i ${CORP} six\n"},
		"-f with files":              {"GNUmakefile", "x:\n\tpip3 install -f wheels six\n"},
		"nox, -i with a variable":    {"noxfile.py", "session.install('-i', CORP, 'six')\n"},
		"a command of PDM's":         {"makefile", "x:\n\tpdm config pypi.url " + ownIndex + "\n"},
		"a command of Poetry's":      {"Taskfile.yml", "cmds: [poetry source add corp " + ownIndex + "]\n"},
		"another file of uv's":       {"justfile", "x:\n\tuv sync --config-file corp.toml\n"},
		"a login":                    {"Makefile", "x:\n\taws codeartifact login --tool pip\n"},
		"variables of one's own":     {".env.local", "PIP_INDEX_URL=" + ownIndex + "\n"},
		"what is compiled":           {"requirements.in", "-i " + ownIndex + "\nsix\n"},
		"pip-tools'":                 {".pip-tools.toml", "[tool.pip-tools]\nextra-index-url=['" + ownIndex + "']\n"},
		"PDM's older settings":       {".pdm.toml", "[pypi]\nurl = \"" + ownIndex + "\"\n"},
		"pixi's":                     {"pixi.toml", "[feature.x.pypi-options]\nextra-index-urls=['" + ownIndex + "']\n"},
		"PDM's with uv's word":       {"pyproject.toml", project + "[[tool.pdm.source]]\nname='x'\nurl='" + ownIndex + "'\nexplicit=true\n"},
		"make's":                     {"Makefile", "x:\n\tpip install --find-links wheels six\n"},
	}
}

// nodeRegistries are the same of Node's clients.
func nodeRegistries() map[string]ownRegistry {
	return map[string]ownRegistry{
		"yarn 1's option":          {".yarnrc", "--registry \"" + ownIndex + "\"\n"},
		"yarn 1's install option":  {".yarnrc", "--install.registry \"" + ownIndex + "\"\n"},
		"yarn 1's other file":      {".yarnrc", "--use-yarnrc \"./other\"\n"},
		"npm's other file":         {".npmrc", "userconfig=./private.rc\n"},
		"npm's other global file":  {".npmrc", "globalconfig = ./private.rc\n"},
		"npm's prefix":             {".npmrc", "prefix=./own\n"},
		"npm's, behind a CR":       {".npmrc", "# x\rregistry=" + ownIndex + "\n"},
		"npm's, as a list":         {".npmrc", "registry[]=" + ownIndex + "\n"},
		"yarn 1's, behind a CR":    {".yarnrc", "# x\rregistry \"" + ownIndex + "\"\n"},
		"yarn's, of tomorrow":      {".yarnrc.yml", "npmRegistryServers: [\"" + ownIndex + "\"]\n"},
		"yarn's, with a variable":  {".yarnrc.yml", "npmRegistryServer: \"${R:-" + ownIndex + "}\"\n"},
		"bun's, in a table":        {"bunfig.toml", "[install]\nregistry = {url = \"" + ownIndex + "\"}\n"},
		"pnpm's other file":        {"pnpm-workspace.yaml", "npmrcAuthFile: x\n"},
		"pnpm's named registries":  {"pnpm-workspace.yaml", "namedRegistries: {x: \"" + ownIndex + "\"}\n"},
		"variables":                {".env", "npm_config_registry=" + ownIndex + "\n"},
		"yarn's variable":          {".envrc", "export YARN_NPM_REGISTRY_SERVER=" + ownIndex + "\n"},
		"bun's variable":           {".env", "BUN_CONFIG_REGISTRY=" + ownIndex + "\n"},
		"an image's":               {"Dockerfile", "FROM x\nRUN npm config set registry " + ownIndex + "\n"},
		"an alias of npm's":        {"Dockerfile", "FROM x\nRUN npm set registry " + ownIndex + "\n"},
		"an option before":         {"Dockerfile", "FROM x\nRUN npm config -g set \\\n registry " + ownIndex + "\n"},
		"npm's, written":           {"Dockerfile", "FROM x\nRUN echo \"registry=" + ownIndex + "\" > .npmrc\n"},
		"npm's scope, written":     {"Makefile", "x:\n\techo '@s:registry=$(R)' > ~/.npmrc\n"},
		"npm's short option":       {"Dockerfile", "FROM x\nRUN npm ci --reg " + ownIndex + "\n"},
		"lerna's":                  {"lerna.json", "{\"npmClientArgs\":[\"--registry=" + ownIndex + "\"]}\n"},
		"npm's, in JSON's letters": {".npmrc", "\"reg\\u0069stry\"=" + ownIndex + "\n"},
		"an image's install":       {"Containerfile", "FROM x\nRUN npm ci --registry=" + ownIndex + "\n"},
		"an image's, with a scope": {"Dockerfile", "FROM x\nRUN npm ci --@s:registry=" + ownIndex + "\n"},
	}
}

// goRegistries are go's.
func goRegistries() map[string]ownRegistry {
	return map[string]ownRegistry{
		"a proxy":         {".envrc", "export GOPROXY=" + ownIndex + "\n"},
		"go's file":       {"go.env", "GOPRIVATE=own.example\n"},
		"an image's file": {"Dockerfile", "FROM x\nENV GOENV=/go.env\n"},
	}
}

// TestAnOwnRegistryWithholdsAllNames: whoever registers a name publicly that only this registry has would be asked for it.
func TestAnOwnRegistryWithholdsAllNames(t *testing.T) {
	t.Parallel()
	for manifest, c := range map[string]struct {
		text, name string
		forms      map[string]ownRegistry
	}{
		"pyproject.toml": {"[project]\nname='p'\ndependencies=['six']\n[build-system]\nrequires=['six']\n", "six", pythonRegistries()},
		"package.json":   {`{"dependencies":{"ms":"2"}}`, "ms", nodeRegistries()},
		"go.mod":         {"module m.example/m\ngo 1.26\nrequire x.example/x v1.0.0\n", "x.example/x", goRegistries()},
	} {
		checkProject(t, mixed{map[string]string{manifest: c.text}, nil, c.name, nil}) // the control
		for name, own := range c.forms {
			t.Run(manifest+" "+name, func(t *testing.T) {
				t.Parallel()
				files := map[string]string{manifest: c.text}
				files[own.file] = own.text
				checkProject(t, mixed{files, nil, "", []string{c.name + ": whether it comes from", own.file}})
			})
		}
	}
}

// TestHarmlessSettingsWithholdNothing: these look like naming a registry, and name none that packages come from.
func TestHarmlessSettingsWithholdNothing(t *testing.T) {
	t.Parallel()
	python := "[project]\nname='p'\ndependencies=['six']\n[project.urls]\nsource='https://x.example'\n[build-system]\nrequires=['six']\n" +
		"[tool.poetry.urls]\nindex='https://x.example'\n[tool.hatch.version]\nsource='vcs'\n[tool.hatch.publish.index]\nrepos.x.url='https://x.example'\n[tool.pdm.version]\nsource='scm'\n" +
		"[tool.coverage.run]\nsource=['p']\n[tool.uv]\nindex-strategy='first-index'\npublish-url='https://x.example'\nno-index=false\n[[tool.uv.index]]\nurl='" + indexHere + "/'\n" +
		"[tool.uv.pip]\nemit-index-url=true\n[tool.uv.sources]\nindex={workspace=true}\n[tool.uv.build-backend]\nsource-include=['x']\n[[tool.pdm.source]]\nname='pypi'\nverify_ssl=true\n"
	checkProject(t, mixed{map[string]string{
		"pyproject.toml": python, "pdm.toml": "[pypi]\nurl='" + indexHere + "'\nignore_stored_index=true\n[repository.own]\nurl='https://x.example'\n", "pip.conf": "[global]\nindex-url=" + indexHere + "\ntimeout=3\n",
		".env": "# PIP_INDEX_URL=x\nPIP_NO_CACHE_DIR=1\nUV_LINK_MODE=copy\n", "tox.ini": "[testenv]\ndeps = -r requirements.txt\n",
		"Dockerfile": "FROM x\nENV PIP_DISABLE_PIP_VERSION_CHECK=1 NPM_CONFIG_LOGLEVEL=warn\nRUN pip install -r requirements.txt && npm ci\n",
	}, nil, "six", nil})
	checkProject(t, mixed{map[string]string{
		"package.json": `{"dependencies":{"ms":"2"},"publishConfig":{"registry":"https://x.example"}}`, ".npmrc": "registry=" + npmHere + "\ninstall-links=true\nelectron_mirror=https://x.example\nsave-exact=true\n",
		".yarnrc": "registry \"" + npmHere + "\"\nyarn-path \"x\"\n", ".yarnrc.yml": "npmPublishRegistry: https://x.example\nnodeLinker: node-modules\n", "bunfig.toml": "[install]\nregistry='" + npmHere + "'\nexact=true\n",
		"pnpm-workspace.yaml": "packages: []\nexcludeLinksFromLockfile: true\nregistrySupportsTimeField: true\nlinkWorkspacePackages: true\nonlyBuiltDependencies: [esbuild]\nregistries: {default: '" + npmHere + "'}\n",
	}, nil, "ms", nil})
}

// TestScriptsOfAPackageAreSearched, and pixi's names that come from elsewhere are kept.
func TestScriptsOfAPackageAreSearched(t *testing.T) {
	t.Parallel()
	checkProject(t, mixed{map[string]string{"package.json": `{"scripts":{"x":"npm i --registry=` + ownIndex + `"},"dependencies":{"ms":"2"}}`}, nil, "", []string{"package.json:1: --registry"}})
	project := "[project]\nname='p'\ndependencies=['acme-lib','own','six']\n[build-system]\nrequires=[]\n[tool.pixi.pypi-dependencies]\n"
	checkProject(t, mixed{map[string]string{"pyproject.toml": project + "own={path='own'}\nsix='*'\nacme-lib={version='*',index='" + ownIndex + "'}\n[tool.pixi.pypi-options]\nindex-strategy='first-index'\n"}, nil, "setuptools six wheel", []string{"pyproject.toml:9: acme-lib: it comes from a registry", "own: it is a directory"}})
}

// TestOrdinaryCommandsWithholdNothing: they look like those that set a registry.
func TestOrdinaryCommandsWithholdNothing(t *testing.T) {
	t.Parallel()
	checkProject(t, mixed{map[string]string{
		"requirements.txt": "six\n", "package.json": `{"scripts":{"test":"jest -i","b":"npm run set && npm publish"},"publishConfig":{"registry":"https://x.example"},"dependencies":{"ms":"2"}}`,
		"go.mod": "module m.example/m\ngo 1.26\nrequire x.example/x v1.0.0\n", "compose.yaml": "services:\n  registry:\n    image: registry:2\n",
		"Dockerfile": "FROM x\nARG REGISTRY=r.example\nRUN pip install --no-cache-dir -r requirements.txt && rm -f x\nRUN npm config set fund false && sed -i s/a/b/ registry\nRUN go mod download && go build ./...\n",
		"Makefile":   "REGISTRY = r.example\nx:\n\tuv sync && uv run mypy --config-file m.ini\n\tkubectl set image x=registry.example/x --region=x\n\tdocker compose -f c.yml up\n\trm -f $(OBJS)\n",
	}, nil, "ms six x.example/x", nil})
}

// TestDirectoriesAreNoSettings: some people have environments in directories of such names, or a file in the place of one.
func TestDirectoriesAreNoSettings(t *testing.T) {
	t.Parallel()
	checkProject(t, mixed{map[string]string{"requirements.txt": "six\n", ".env/pyvenv.cfg": "home = /usr\n", ".venv": "a-name\n", "env": "x", "pip.conf/x": ""}, map[string]string{"venv": ".env"}, "six", nil})
}

// TestARegistryIsComparedWithTheOneThatIsAsked, whole but for its spelling; where none is known, each one is another.
func TestARegistryIsComparedWithTheOneThatIsAsked(t *testing.T) {
	t.Parallel()
	lines := func(address string, asked askedHere, assumePublic bool) (string, string) {
		dir := laidProject(t, mixed{files: map[string]string{"requirements.txt": "-i " + address + "\nsix\n"}})
		p, err := wantsOf(dir, asked, assumePublic)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, l := range p.leftOut {
			said = append(said, l.String())
		}
		return strings.Join(p.roots[pkgref.Python], " "), strings.Join(said, "\n")
	}
	for _, address := range []string{indexHere, indexHere + "/", "HTTPS://Index.Example:443/simple//"} {
		if roots, said := lines(address, asksHere, false); roots != "six" || said != "" {
			t.Errorf("%s: %q, %s", address, roots, said)
		}
	}
	for _, address := range []string{
		"https://index.example", "https://index.example/simple/x", "https://index.example/Simple", "https://index.example:8443/simple", "http://index.example/simple", "https://u:p@index.example/simple",
		"https://index.example.own.example/simple", "https://index.example@own.example/simple", indexHere + "?x", indexHere + "#x", "//index.example/simple", "index.example/simple", "https://index.example%2esimple",
	} {
		if roots, said := lines(address, asksHere, false); roots != "" || !strings.Contains(said, "the project names another registry") {
			t.Errorf("%s: %q, %s", address, roots, said)
		}
	}
	unknown := func(pkgref.Ecosystem) (string, error) { return "", errors.New("there is no pip here") }
	if roots, said := lines(indexHere, unknown, false); roots != "" || !strings.Contains(said, "is not known: there is no pip here") {
		t.Errorf("%q, %s", roots, said)
	}
	if roots, said := lines(ownIndex, asksHere, true); roots != "six" || strings.Contains(said, "none is allowed") {
		t.Errorf("%q, %s", roots, said)
	}
}

// TestNoClientIsAskedWithoutNeed: most projects name no registry.
func TestNoClientIsAskedWithoutNeed(t *testing.T) {
	t.Parallel()
	dir := laidProject(t, mixed{files: map[string]string{"requirements.txt": "six\n", "package.json": `{"dependencies":{"ms":"2"}}`, ".npmrc": "save-exact=true\n"}})
	p, err := wantsOf(dir, func(e pkgref.Ecosystem) (string, error) { t.Errorf("%s was asked", e); return "", nil }, false)
	if err != nil || p.countRoots() != 2 {
		t.Errorf("%v, %v", p.roots, err)
	}
}
