package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// mixed is a project with names that come from elsewhere than the public registry.
type mixed struct {
	files map[string]string
	links map[string]string
	roots string // all of them
	lines []string
}

// packages is a project of npm with such members, which asks for acme-ui by a version, and for ms.
func packages(patterns, member string, more ...string) map[string]string {
	files := map[string]string{"package.json": `{"workspaces":[` + patterns + `],"dependencies":{"acme-ui":"^1.0.0","ms":"2"}}`}
	if member != "" {
		files[member+"/package.json"] = `{"name":"acme-ui","version":"1.0.0"}`
	}
	for i := 0; i+1 < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// python is a project that asks for acme-lib and six, and has more in its pyproject.toml.
func python(more string, others ...string) map[string]string {
	files := map[string]string{"pyproject.toml": "[project]\nname='p'\ndependencies=['acme-lib','six']\n[build-system]\nrequires=['six']\nbuild-backend='x'\n" + more}
	for i := 0; i+1 < len(others); i += 2 {
		files[others[i]] = others[i+1]
	}
	return files
}

// indexHere and npmHere are the registries that names are asked of.
const (
	indexHere = "https://index.example/simple"
	npmHere   = "https://npm.example/"
)

// asksHere has two ecosystems whose registries are known.
func asksHere(ecosystem pkgref.Ecosystem) (string, error) {
	known := map[pkgref.Ecosystem]string{pkgref.Python: indexHere + "/", pkgref.Node: npmHere}
	if index, is := known[ecosystem]; is {
		return index, nil
	}
	return "", errors.New("there is no client")
}

func namesFromElsewhere() map[string]mixed {
	const own, unknown = "acme-ui: the project has this name itself", "ms: whether it comes from the public registry is not known"
	return map[string]mixed{
		"the control":                {packages(`"packages/*"`, "packages/ui"), nil, "ms", []string{"package.json:1: " + own}},
		"a brace with a slash":       {packages(`"{apps,packages/shared}/*"`, "packages/shared/ui"), nil, "ms", []string{own}},
		"braces in braces":           {packages(`"{apps,{libs,packages}}/*"`, "packages/ui"), nil, "ms", []string{own}},
		"a class that is not":        {packages(`"packages/[!_]*"`, "packages/ui"), nil, "ms", []string{own}},
		"not not":                    {packages(`"!!packages/*"`, "packages/ui"), nil, "ms", []string{own}},
		"a member that is a link":    {packages(`"packages/*"`, "src/ui", "packages/x/package.json", "{}"), map[string]string{"packages/ui": "../src/ui"}, "ms", []string{own}},
		"a link behind two stars":    {packages(`"packages/**"`, "src/ui", "packages/x/package.json", "{}"), map[string]string{"packages/ui": "../src/ui", "packages/x/up": ".."}, "ms", []string{own}},
		"a member without a name":    {packages(`"packages/*"`, "", "packages/acme-ui/package.json", "{}"), nil, "ms", []string{own}},
		"taken away and back":        {packages(`"packages/*","!packages/*","packages/x"`, "packages/ui", "packages/x/package.json", "{}"), nil, "ms", []string{own}},
		"back by not not":            {packages(`"packages/*","!packages/*","!!packages/x"`, "packages/ui", "packages/x/package.json", "{}"), nil, "ms", []string{own}},
		"one alternative is back":    {packages(`"packages/*","!packages/{ui,x}","packages/x"`, "packages/ui", "packages/x/package.json", "{}"), nil, "ms", []string{own}},
		"a space in front of !":      {packages(`"packages/*"," !packages/ui"`, "packages/ui"), nil, "", []string{" !packages/ui: this pattern can't be read surely", unknown}},
		"a hidden member":            {packages(`".pkgs/.u*"`, ".pkgs/.ui"), nil, "ms", []string{own}},
		"alternatives of npm's":      {packages(`"@(packages|libs)/*"`, "packages/ui"), nil, "", []string{"package.json:1: @(packages|libs)/*: this pattern can't be read surely", unknown}},
		"a range":                    {packages(`"packages/v{1..3}/*"`, "packages/v2/ui"), nil, "", []string{"{1..3}/*: this pattern can't be read surely", unknown}},
		"half a brace":               {packages(`"{packages/*"`, "packages/ui"), nil, "", []string{"{packages/*: this pattern can't be read surely", unknown}},
		"a class by a name":          {packages(`"packages/[[:alpha:]]*"`, "packages/ui"), nil, "", []string{"this pattern can't be read surely", unknown}},
		"what is taken away, oddly":  {packages(`"packages/*","!packages/+(a)"`, "packages/ui"), nil, "", []string{"!packages/+(a): this pattern can't be read surely", unknown}},
		"a member outside":           {packages(`"../shared"`, ""), nil, "", []string{"../shared: it leads out of the project", unknown}},
		"a member outside of pnpm's": {packages("", "", "pnpm-workspace.yaml", "packages:\n- ../shared\n"), nil, "", []string{"pnpm-workspace.yaml:2: ../shared: it leads out of the project", unknown}},
		"a hidden one of pnpm's":     {packages("", "", "pnpm-workspace.yaml", "packages: ['packages/.*', '!packages/*']\n", "packages/.ui/package.json", `{"name":"acme-ui"}`), nil, "ms", []string{own}},
		"from the root, by pnpm":     {packages("", "", "pnpm-workspace.yaml", "packages:\n- packages/*\n- '!/packages/ui'\n", "packages/ui/package.json", `{"name":"acme-ui"}`), nil, "", []string{"pnpm-workspace.yaml:3: !/packages/ui: this pattern can't be read surely", unknown}},
		"a member in YAML":           {packages("", "", "pnpm-workspace.yaml", "packages: ['packages/*']\n", "packages/ui/package.yaml", "name: acme-ui\ndependencies: {clsx: '1'}\n"), nil, "clsx ms", []string{own}},
		"a member in JSON5":          {packages("", "", "pnpm-workspace.yaml", "packages: ['packages/*']\n", "packages/ui/package.json5", "{name: 'acme-ui'}\n"), nil, "", []string{"packages/ui/package.json5: it is a member of the workspace", unknown}},
		"a root in YAML":             {map[string]string{"package.yaml": "name: root\ndependencies: {clsx: '1', x: 'file:../x'}\n"}, nil, "clsx", []string{"package.yaml:2: x file:../x: it is a file"}},
		"a key in capitals":          {map[string]string{"package.json": `{"dependencies":{"x":"file:../x"},"Dependencies":{"x":"1","y":"1"}}`}, nil, "", []string{"x file:../x"}},

		"a scope of yarn 1's":        {map[string]string{".yarnrc": "# c\n\"@acme:registry\" \"https://x.example\"\n", "package.json": `{"dependencies":{"@acme/ui":"1","ms":"1"}}`}, nil, "ms", []string{".yarnrc:2: @acme/*: another registry", "@acme/ui: the project has"}},
		"yarn 1's registry":          {packages("", "", ".yarnrc", "registry \"https://x.example\"\n"), nil, "", []string{".yarnrc:1: registry: the project names another registry", unknown}},
		"yarn's registry":            {packages("", "", ".yarnrc.yml", "npmRegistryServer: https://x.example\n"), nil, "", []string{".yarnrc.yml:1: npmRegistryServer: the project names another registry", unknown}},
		"npm's registry":             {packages("", "", ".npmrc", "; c\nregistry=https://x.example\n"), nil, "", []string{".npmrc:2: registry: the project names", unknown}},
		"npm's credentials":          {packages("", "", ".npmrc", "#registry=x\n//${HOST}/:_authToken=${TOKEN}\n"), nil, "acme-ui ms", nil},
		"a scope that is a variable": {packages("", "", ".npmrc", "@${SCOPE}:registry=https://x.example\n"), nil, "", []string{".npmrc:1: @${SCOPE}:registry: it has a variable", unknown}},
		"bun's registries":           {map[string]string{"bunfig.toml": "[install.scopes]\nacme = 'https://x.example'\n", "package.json": `{"dependencies":{"@acme/ui":"1","ms":"1"}}`}, nil, "ms", []string{"bunfig.toml:2: @acme/*"}},
		"bun's registry":             {packages("", "", "bunfig.toml", "[install]\nregistry = 'https://x.example'\n"), nil, "", []string{"bunfig.toml:2: registry", unknown}},
		"pnpm's registries":          {map[string]string{"pnpm-workspace.yaml": "registries:\n  https://x.example/:\n    scopes: ['@acme']\n  '@own': https://y.example\n", "package.json": `{"dependencies":{"@acme/ui":"1","@own/x":"1","ms":"1"}}`}, nil, "ms", []string{"@acme/*: another registry", "pnpm-workspace.yaml:4: @own/*"}},
		"pnpm's registry":            {packages("", "", "pnpm-workspace.yaml", "registries:\n  default: https://x.example\n"), nil, "", []string{"pnpm-workspace.yaml:2: default: the project names", unknown}},
		"pnpm's archives":            {map[string]string{"pnpm-workspace.yaml": "configDependencies:\n  acme:\n    integrity: x\n    tarball: https://x.example/x.tgz\n  other: 1.0.0+x\n"}, nil, "other", []string{"pnpm-workspace.yaml:2: acme: it comes from an address"}},

		"requirements, another index":  {map[string]string{"requirements.txt": "six\n--extra-index-url https://x.example/simple\n"}, nil, "", []string{"requirements.txt:2: --extra-index-url: the project names another registry", "requirements.txt:1: six: whether it comes from the public registry is not known: see requirements.txt:2"}},
		"requirements, the public one": {map[string]string{"requirements.txt": "-i " + indexHere + "\nsix\n"}, nil, "six", nil},
		"requirements, files":          {map[string]string{"requirements.txt": "six\n--find-links=wheels\n"}, nil, "", []string{"requirements.txt:2: --find-links"}},
		"a name at an address":         {map[string]string{"requirements.txt": "-e acme-lib @ git+https://x.example/acme.git\nacme-lib\nsix\n"}, nil, "six", []string{"requirements.txt:1: acme-lib @ git", "requirements.txt:2: acme-lib: the project has"}},
		"a directory with its name":    {map[string]string{"requirements.txt": "-e file:./lib#egg=acme-lib\nacme-lib\nsix\n", "lib/setup.py": "setup(name='acme-lib')"}, nil, "six", []string{"requirements.txt:1: -e file:./lib", "requirements.txt:2: acme-lib: the project has"}},
		"a directory outside, named":   {map[string]string{"requirements.txt": "-e file:../lib#egg=acme-lib\nacme-lib\nsix\n"}, nil, "six", []string{"requirements.txt:1: -e file:../lib#egg=acme-lib: it lies outside"}},
		"a directory outside":          {map[string]string{"requirements.txt": "-e ../lib\nacme-lib\n"}, nil, "", []string{"requirements.txt:1: -e ../lib: it lies outside of the project, and its name is not known", "requirements.txt:2: acme-lib: whether"}},
		"an address without a name":    {map[string]string{"requirements.txt": "git+https://x.example/lib\nacme-lib\n"}, nil, "", []string{"requirements.txt:1: git+https://x.example/lib: it is an address, and nothing is allowed by one, and its name is not known, so that any name here may be its; NAME @ ADDRESS says it", "requirements.txt:2: acme-lib: whether"}},
		"a wheel with a marker":        {map[string]string{"requirements.txt": "acme_lib-1.0-py3-none-any.whl ; python_version > '3'\nacme-lib\nsix\n"}, nil, "six", []string{"requirements.txt:1: acme_lib-1.0-py3-none-any.whl ;", "acme-lib: the project has"}},
		"a build system alone":         {map[string]string{"requirements.txt": "-e ./lib\nacme-lib\nsix\n", "lib/pyproject.toml": "[build-system]\nrequires=['wheel']\n", "lib/setup.py": "from setuptools import setup\nsetup(version='1', name='acme-lib', ext='x')\n"}, nil, "six wheel", []string{"requirements.txt:2: acme-lib: the project has"}},
		"a name that is made up":       {map[string]string{"requirements.txt": "-e ./lib\nacme-lib\n", "lib/pyproject.toml": "[build-system]\nrequires=['wheel']\n", "lib/setup.py": "setup(name=NAME, x=E(name='other'), y=E(name='others'))\n"}, nil, "", []string{"requirements.txt:1: -e ./lib: no file says its name", "acme-lib: whether"}},
		"overrides of PDM":             {python("[tool.pdm.resolution.overrides]\nacme-lib='https://x.example/a.tar.gz'\nsix='1.0'\n"), nil, "six", []string{"pyproject.toml:8: acme-lib: it comes from an address"}},
		"a table in capitals":          {python("[Tool.uv]\ndev-dependencies=['bad']\n[tool.UV.sources]\nsix={path='.'}\n"), nil, "acme-lib six", nil},
		"Pipenv's own index":           {map[string]string{"Pipfile": "[[source]]\nurl='https://x.example/simple'\nname='acme'\n[packages]\nacme-lib='*'\n"}, nil, "", []string{"Pipfile:1: source: the project names another registry", "Pipfile:5: acme-lib: whether"}},
		"Pipenv's public index":        {map[string]string{"Pipfile": "[[source]]\nurl='" + indexHere + "'\nverify_ssl=true\nname='x'\n[packages]\nsix='*'\nacme={bzr='https://x.example/y'}\n"}, nil, "six", []string{"Pipfile:7: acme: it comes from a repository"}},
		"uv's files":                   {python("[tool.uv]\nfind-links=['./wheels']\n"), nil, "", []string{"pyproject.toml:8: tool.uv.find-links: the project names", "six: whether"}},
		"uv's settings":                {python("", "uv.toml", "[[index]]\nurl='https://x.example/simple'\ndefault=true\n"), nil, "", []string{"uv.toml:1: index: the project names", "six: whether"}},
		"uv's settings of pip":         {python("[tool.uv.pip]\nextra-index-url=['https://x.example/simple']\n"), nil, "", []string{"pyproject.toml:8: tool.uv.pip.extra-index-url", "six: whether"}},
		"uv's index for some":          {python("[[tool.uv.index]]\nname='own'\nurl='https://x.example/simple'\nexplicit=true\n[tool.uv.sources]\nacme-lib={index='own'}\n"), nil, "six", []string{"pyproject.toml:7: tool.uv.index: it is a registry of the project's own"}},
		"uv's members outside":         {python("[tool.uv.workspace]\nmembers=['../libs/*']\n"), nil, "", []string{"pyproject.toml:8: ../libs/*: it leads out of the project", "acme-lib: whether"}},
		"uv's members in a class":      {python("[tool.uv.workspace]\nmembers=['libs/[!_]*']\n", "libs/a/pyproject.toml", "[project]\nname='acme-lib'\n[build-system]\nrequires=['wheel']\n"), nil, "six wheel", []string{"acme-lib: the project has"}},
		"uv's members behind !":        {python("[tool.uv.workspace]\nmembers=['libs/*','!libs/a']\n", "libs/a/pyproject.toml", "[project]\nname='acme-lib'\n[build-system]\nrequires=['wheel']\n"), nil, "", []string{"pyproject.toml:8: !libs/a: uv takes nothing away by !", "acme-lib: the project has"}},
		"Poetry's own index":           {python("[[tool.poetry.source]]\nname='acme'\nurl='https://x.example/simple'\npriority='supplemental'\n"), nil, "", []string{"pyproject.toml:7: tool.poetry.source: the project names"}},
		"Poetry's index for some":      {python("[[tool.poetry.source]]\nname='acme'\nurl='https://x.example/simple'\npriority='explicit'\n"), nil, "acme-lib six", []string{"pyproject.toml:7: tool.poetry.source: it is a registry"}},
	}
}

// TestNamesFromElsewhereAreNoRoots: whoever registers such a name publicly does not get into a run. Each is told, with its line.
func TestNamesFromElsewhereAreNoRoots(t *testing.T) {
	t.Parallel()
	for name, c := range namesFromElsewhere() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkProject(t, c)
			if c.roots != "" {
				return
			}
			if all, _ := rootsAndLines(t, laidProject(t, c), true); all == "" && name != "a key in capitals" {
				t.Errorf("a person said that all names are public, and there are none")
			}
		})
	}
}

// TestAllTablesAreRead: each of these once was left out without a line.
func TestAllTablesAreRead(t *testing.T) {
	t.Parallel()
	one := func(file, text, roots string, lines ...string) mixed {
		return mixed{map[string]string{file: text}, nil, roots, lines}
	}
	for name, c := range map[string]mixed{
		"yarn's catalogs":       {map[string]string{".yarnrc.yml": "catalog:\n  react: ^18\ncatalogs:\n  old:\n    vue: ^2\n    own: file:../own\n", "package.json": `{"dependencies":{"react":"catalog:","vue":"catalog:old","own":"catalog:old"}}`}, nil, "react vue", []string{".yarnrc.yml:6: own file:../own"}},
		"bun's catalogs":        one("package.json", `{"workspaces":{"packages":[],"catalog":{"react":"^18"},"catalogs":{"old":{"vue":"2"}}},"catalog":{"ms":"2"},"dependencies":{"react":"catalog:"}}`, "ms react vue"),
		"pnpm's extensions":     one("package.json", `{"dependencies":{"a":"1"},"pnpm":{"packageExtensions":{"a@1":{"dependencies":{"clsx":"1","own":"link:../own"}}}}}`, "a clsx", "package.json:1: own link:../own"),
		"extensions of pnpm's":  one("pnpm-workspace.yaml", "packageExtensions:\n  a:\n    dependencies:\n      clsx: '1'\n", "clsx"),
		"setuptools, one line":  one("setup.cfg", "[options]\ninstall_requires = six; acme @ https://x.example/acme.whl; idna\n[options.extras_require]\nx = acme\n", "idna six", "setup.cfg:2: acme @ https", "setup.cfg:4: acme: the project has"),
		"setuptools, lines":     one("setup.cfg", "[options]\ninstall_requires =\n  six; python_version > '3'\n", "six"),
		"setuptools, a marker":  one("setup.cfg", "[options]\ninstall_requires = six; python_version > '3'\n", "six", "setup.cfg:2: python_version > '3': it is no requirement"),
		"setuptools, a comment": one("setup.cfg", "[options] # x\ninstall_requires =\n  idna\n", "idna"),
		"setuptools, indented":  {map[string]string{"setup.cfg": "[metadata]\n  name = acme\n[options]\n  install_requires =\n    idna\n    acme\n  zip_safe = no\n"}, nil, "idna", []string{"setup.cfg:6: acme: the project has"}},
		"setuptools, its links": one("setup.cfg", "[options]\ninstall_requires = idna\ndependency_links = https://x.example\n", "", "setup.cfg:3: dependency_links: the project names another registry", "idna: whether"),
		"Hatch's own file":      {python("", "hatch.toml", "[envs.default]\ndependencies=['idna']\n"), nil, "acme-lib idna six", nil},
		"Flit, before":          one("pyproject.toml", "[build-system]\nrequires=['flit_core']\n[tool.flit.metadata]\nmodule='acme'\nrequires=['idna','acme']\n[tool.flit.metadata.requires-extra]\ntest=['pytest']\n", "flit-core idna pytest", ": acme: the project has"),
		"uv's extra builds":     {python("[tool.uv.extra-build-dependencies]\nfoo=['idna',{requirement='wheel',match-runtime=true}]\n"), nil, "acme-lib idna six wheel", nil},
		"Poetry's plugins":      {python("[tool.poetry.requires-plugins]\nidna='*'\nown={path='../x'}\n"), nil, "acme-lib idna six", []string{"pyproject.toml:9: own: it is a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkProject(t, c)
		})
	}
}

// laidProject makes a project's directory, in another one of its own.
func laidProject(t *testing.T, c mixed) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "p")
	for file, text := range c.files {
		at := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range c.links {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func rootsAndLines(t *testing.T, dir string, assumePublic bool) (roots string, lines []string) {
	t.Helper()
	p, err := wantsOf(dir, asksHere, assumePublic)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range pkgref.Ecosystems() {
		all = append(all, p.roots[e]...)
	}
	for _, l := range p.leftOut {
		lines = append(lines, l.String())
	}
	slices.Sort(all)
	return strings.Join(all, " "), lines
}
