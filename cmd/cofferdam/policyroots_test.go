package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// utf16LE is a text as PowerShell's > writes it.
func utf16LE(text string) string {
	b := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		b = append(b, byte(unit), byte(unit>>8))
	}
	return string(b)
}

// wanted are the roots of a project, "NAME" for each, and lines of what was left out that have these words.
type wanted struct {
	files   map[string]string
	roots   string
	leftOut []string
}

// TestRootsOfAProject: each name that a project asks for from a registry is a root, no other is, and what is left out is named
// with its place.
func TestRootsOfAProject(t *testing.T) {
	t.Parallel()
	one := func(name, text, roots string, leftOut ...string) wanted {
		return wanted{map[string]string{name: text}, roots, leftOut}
	}
	for name, c := range map[string]wanted{
		"blanks before operators": one("requirements.txt", "Django >= 4.2, < 5\nidna ; python_version > \"3\"\nsix\n", "django idna six"),
		"blanks in pyproject": one("pyproject.toml", `[project]
name = "p"
dependencies = ["click >= 8.1","rich>=13","attrs (>=20)","httpx [http2] >= 0.27","tomli ; python_version<'3.11'","idna !=3.0"]
[build-system]
requires = ["setuptools >= 61.0","wheel"]
`, "attrs click httpx[http2] idna rich setuptools tomli wheel"),
		"a byte order mark":            one("requirements.txt", "\ufeffsix>=1\nidna\n", "idna six"),
		"UTF-16":                       one("requirements.txt", utf16LE("six>=1\r\nidna\r\n"), "idna six"),
		"a mark in package.json":       one("package.json", "\ufeff{\"dependencies\":{\"six\":\"1\"}}", "six"),
		"a mark in pyproject":          one("pyproject.toml", "\ufeff[project]\nname=\"p\"\ndependencies=[\"six\"]\n[build-system]\nrequires=[]\n", "setuptools six wheel"),
		"no build system":              one("pyproject.toml", "[project]\nname=\"p\"\ndependencies=[\"six\"]\n", "setuptools six wheel"),
		"settings of tools alone":      one("pyproject.toml", "[tool.ruff]\nline-length = 100\n", ""),
		"overrides of npm":             one("package.json", `{"dependencies":{"express":"4"},"overrides":{"debug":"npm:is-number@7.0.0","a":{".":"1","b":"npm:ms@2"},"c":"$express"}}`, "express is-number ms"),
		"peers of the root":            one("package.json", `{"peerDependencies":{"react":"18","vue":"3"},"peerDependenciesMeta":{"vue":{"optional":true}}}`, "react"),
		"peers of pnpm's root":         one("package.json", `{"packageManager":"pnpm@10.1.0","peerDependencies":{"react":"18","vue":"3"},"peerDependenciesMeta":{"vue":{"optional":true}}}`, "react vue"),
		"a manager that is no text":    one("package.json", `{"packageManager":{"pnpm":1},"dependencies":{"react":"18"}}`, "react"),
		"a section twice":              one("package.json", `{"dependencies":{"vue":"3"},"dependencies":{"react":"18"}}`, "react"),
		"an override of a pre-release": one("package.json", `{"dependencies":{"express":"4"},"overrides":{"debug":"4.0.0-beta.1","a":"next-14","b":"1.0 - 2.0"}}`, "debug express"),
		"an override under an alias's name": {map[string]string{
			"package.json": `{"workspaces":["a"],"overrides":{"lib":"1.0.0-beta.1"}}`, "a/package.json": `{"name":"a","dependencies":{"lib":"npm:@corp/lib@1"}}`,
		}, "@corp/lib", []string{"package.json:1: lib 1.0.0-beta.1: a manifest has this name for another package"}},
		"go, replaced by another":     one("go.mod", "module m.example/m\ngo 1.26\nrequire a.example/a v1.0.0\nreplace a.example/a => b.example/b v4.0.0+incompatible\n", "b.example/b"),
		"go, replaced by a directory": one("go.mod", "module m.example/m\ngo 1.26\nrequire example.com/y v0.0.0\nreplace example.com/y => ../y\n", "", "go.mod:4: example.com/y => ../y: it is a directory of your own"),
		"go, one version replaced":    one("go.mod", "module m.example/m\ngo 1.26\nrequire a.example/a v1.0.0\nreplace a.example/a v1.2.0 => b.example/b v1.0.0\n", "a.example/a b.example/b"),
		"go, modules below": {map[string]string{
			"go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v1.0.0\n", "tools/go.mod": "module m.example/m/tools\ngo 1.26\nrequire (\n\tb.example/b v1.0.0\n\tm.example/m v1.0.0\n)\n",
			"x/testdata/y/go.mod": "module y.example/y\nrequire c.example/c v1.0.0\n", "_old/go.mod": "module o.example/o\nrequire d.example/d v1.0.0\n", "tmpl/go.mod": "module {{.Name}}\n",
		}, "a.example/a b.example/b", []string{"tmpl/go.mod: it can't be read", "tools/go.mod:5: m.example/m: the project has this name itself"}},
		"go, a workspace says which": {map[string]string{
			"go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v1.0.0\n", "go.work": "go 1.26\nuse .\n", "tools/go.mod": "module m.example/m/tools\ngo 1.26\nrequire b.example/b v1.0.0\n",
		}, "a.example/a", nil},
		"hatchling's editable build": one("pyproject.toml", "[project]\nname=\"p\"\n[build-system]\nrequires=[\"hatchling\"]\nbuild-backend=\"hatchling.build\"\n", "editables hatchling"),
		"pdm's editable build":       one("pyproject.toml", "[project]\nname=\"p\"\n[build-system]\nrequires=[\"pdm-backend\"]\nbuild-backend=\"pdm.backend\"\n[tool.pdm.build]\neditable-backend=\"editables\"\n", "editables pdm-backend"),
		"pdm's own editable build":   one("pyproject.toml", "[project]\nname=\"p\"\n[build-system]\nrequires=[\"pdm-backend\"]\nbuild-backend=\"pdm.backend\"\n", "pdm-backend"),
		"flit's editable build":      one("pyproject.toml", "[project]\nname=\"p\"\n[build-system]\nrequires=[\"flit_core\"]\nbuild-backend=\"flit_core.buildapi\"\n", "flit-core"),
		"an old setuptools":          one("pyproject.toml", "[project]\nname=\"p\"\n[build-system]\nrequires=[\"setuptools>=61,<70\"]\nbuild-backend=\"setuptools.build_meta\"\n", "setuptools wheel"),
		"a new setuptools":           one("pyproject.toml", "[project]\nname=\"p\"\n[build-system]\nrequires=[\"setuptools>=77\"]\nbuild-backend=\"setuptools.build_meta\"\n", "setuptools"),
		"tox and nox":                {map[string]string{"tox.ini": "[testenv]\ndeps =\n    pytest\n", "noxfile.py": "import nox\n", "requirements.txt": "six\n"}, "six", []string{"tox.ini: deps are not read here", "noxfile.py: it is a program"}},
		"go, replaced by another member": {map[string]string{
			"go.work": "go 1.26\nuse (\n.\n./two\n)\n", "go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v1.0.0\nrequire c.example/c v1.2.0\n",
			"two/go.mod": "module m.example/two\ngo 1.26\nreplace a.example/a => b.example/b v1.0.0\nreplace c.example/c v1.0.0 => d.example/d v1.0.0\n",
		}, "b.example/b c.example/c d.example/d", nil},
		"go, replaced by the workspace and by members": {map[string]string{
			"go.work": "go 1.26\nuse (\n./one\n./two\n)\nreplace a.example/a => b.example/b v1.0.0\nreplace c.example/c v1.0.0 => d.example/d v1.0.0\n", "one/go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v1.2.0\nrequire c.example/c v1.2.0\nreplace a.example/a => not.example/x v1.0.0\nreplace c.example/c => c.example/x v1.0.0\nreplace e.example/e => e.example/f v1.0.0\n",
			"two/go.mod": "module m.example/two\ngo 1.26\nreplace e.example/e => e.example/g v1.0.0\n",
		}, "b.example/b c.example/x d.example/d e.example/f", []string{"two/go.mod:3: e.example/e => e.example/g: another module"}},
		"go, excluded": {map[string]string{
			"go.work": "go 1.26\nuse (\n./one\n./two\n)\n", "one/go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v1.0.0\nrequire b.example/b v1.0.0\n", "two/go.mod": "module m.example/two\ngo 1.26\nexclude a.example/a v1.0.0\nexclude b.example/b v1.1.0\n",
		}, "b.example/b", []string{"one/go.mod:3: a.example/a@v1.0.0: this version is excluded"}},
		"poetry":                        one("pyproject.toml", "[tool.poetry]\nname = \"p\"\n[tool.poetry.dependencies]\npython = \"^3.11\"\nrequests = \"^2\"\nown = { path = \"../own\" }\nother = {version = \"1\", extras = [\"x\"]}\n[tool.poetry.group.dev.dependencies]\npytest = \"*\"\n[build-system]\nrequires = [\"poetry-core\"]\n", "other[x] poetry-core pytest requests", "pyproject.toml:6: own: it is a directory or file of your own"),
		"a requirement that is an url":  one("requirements.txt", "six\nown @ https://x.example/own.whl\nown[dev]>=1\n", "six", "requirements.txt:2: own @ https://x.example/own.whl: it comes from an address"),
		"sources of uv":                 one("pyproject.toml", "[project]\nname=\"p\"\ndependencies=[\"internal-utils\",\"gitdep\",\"pathdep\",\"indexed\",\"six\",\"everywhere\"]\n[build-system]\nrequires=[\"hatchling\"]\n[tool.uv.sources]\ninternal-utils = { workspace = true }\ngitdep = { git = \"https://x.example/g\" }\npathdep = { path = \"../p\" }\nindexed = { index = \"own\" }\neverywhere = [{ git = \"https://x.example/e\", marker = \"sys_platform == 'linux'\" }]\n", "hatchling six", "pyproject.toml:7: internal-utils: it is a member", "gitdep: it comes from a repository", "pathdep: it is a directory", "indexed: it comes from a registry of its own", "everywhere: it comes from a repository"),
		"extras of the project itself":  one("pyproject.toml", "[project]\nname=\"P\"\ndependencies=[\"six\"]\n[project.optional-dependencies]\nall=[\"p[dev]\"]\ndev=[\"pytest\"]\n[build-system]\nrequires=[\"hatchling\"]\n", "hatchling pytest six", "pyproject.toml:5: p[dev]: the project has this name itself"),
		"npm, not from the registry":    one("package.json", `{"dependencies":{"lib":"acme/lib","lib2":"github:acme/lib2#v1","lib3":"git@host.test:acme/lib3.git","lib4":"./vendor/lib4","lib5":"../lib5","lib6":"~/lib6","lib7":"file:x","lib8":"link:x","lib9":"workspace:*","l10":"https://x.example/l.tgz","l11":"git+ssh://git@x.example/l.git","l12":"x.tgz","l13":"C:\\x","l14":"jsr:@a/b","l15":"bitbucket:a/b","l16":"portal:../x"}}`, "", "package.json:1: lib acme/lib: it comes from a repository", "lib4 ./vendor/lib4: it is a file or directory", "lib9 workspace:*: it is a member", "l14 jsr:@a/b: it comes from another registry"),
		"npm, from the registry":        one("package.json", `{"dependencies":{"a":"^1","b":">=1 <2 || 3","c":"latest","d":"","e":"*","@s/f":"1.x","g":"npm:@s/real@^2","h":"1.0.0 - 2.0.0","i":"npm:left-pad"}}`, "@s/f @s/real a b c d e h left-pad"),
		"a spec of a repository and it": one("package.json", `{"dependencies":{"lib":"acme/lib"},"devDependencies":{"lib":"^1"}}`, ""),
		"workspaces of npm": {map[string]string{
			"package.json": `{"name":"root","workspaces":["packages/*","!packages/old"],"dependencies":{"web":"*"}}`, "packages/web/package.json": `{"name":"web","dependencies":{"react":"18","ui":"*"}}`,
			"packages/ui/package.json": `{"name":"ui","dependencies":{"clsx":"2"}}`, "packages/old/package.json": `{"name":"old","dependencies":{"bad":"1"}}`, "packages/node_modules/x/package.json": `{"dependencies":{"bad":"1"}}`,
		}, "clsx react", []string{"package.json:1: web: the project has this name itself"}},
		"workspaces of yarn": {map[string]string{"package.json": `{"workspaces":{"packages":["apps/**"]}}`, "apps/a/b/package.json": `{"dependencies":{"deep":"1"}}`, "yarn.lock": ""}, "deep", []string{"yarn.lock: it is not read"}},
		"a workspace of pnpm": {map[string]string{
			"pnpm-workspace.yaml": "packages:\n  - 'packages/*'\ncatalog:\n  react: ^18\n  own: link:../own\ncatalogs:\n  old:\n    vue: ^2\noverrides:\n  x: npm:y@1\n", "package.json": `{"private":true}`,
			"packages/a/package.json": `{"name":"a","dependencies":{"react":"catalog:","vue":"catalog:old","own":"catalog:","b":"workspace:*","ms":"2"}}`,
		}, "ms react vue y", []string{"pnpm-workspace.yaml:5: own link:../own"}},
		"a catalog that isn't there": {map[string]string{
			"pnpm-workspace.yaml": "packages: [a]\ncatalog:\n  react: ^18\n  local: link:x\ncatalogs:\n  old: {vue: ^2}\npackageExtensions:\n  p:\n    peerDependencies: {asked: '1', maybe: '1'}\n    peerDependenciesMeta: {maybe: {optional: true}}\n",
			"package.json":        `{"dependencies":{"react":"catalog:","vue":"catalog:old","local":"catalog:default"},"devDependencies":{"ms":"catalog:","vite":"catalog:new"}}`,
			"a/package.json":      `{"dependencies":{"zod":"catalog: "}}`,
		}, "asked react vue", []string{"package.json:1: ms catalog:: no catalog of the project's", "package.json:1: vite catalog:new: no catalog", "a/package.json:1: zod catalog: : no catalog"}},
		"a workspace of uv": {map[string]string{
			"pyproject.toml":            "[project]\nname=\"root\"\ndependencies=[\"six\",\"lib-a\"]\n[build-system]\nrequires=[\"hatchling\"]\n[tool.uv.workspace]\nmembers=[\"libs/*\"]\nexclude=[\"libs/b\"]\n",
			"libs/a/pyproject.toml":     "[project]\nname=\"lib_a\"\ndependencies=[\"idna\"]\n[build-system]\nrequires=[\"hatchling\"]\n",
			"libs/b/pyproject.toml":     "[project]\nname=\"lib_b\"\ndependencies=[\"bad\"]\n",
			"libs/.hidden/package.json": "{}",
		}, "hatchling idna six", []string{"pyproject.toml:3: lib-a: the project has this name itself"}},
		"a workspace of two go modules": {map[string]string{
			"go.work": "go 1.26\nuse (\n\t./a\n\t./b\n)\n", "a/go.mod": "module m.example/a\ngo 1.26\nrequire x.example/x v1.0.0\n", "b/go.mod": "module m.example/b\ngo 1.26\nrequire y.example/y v1.0.0\n",
		}, "x.example/x y.example/y", nil},
		"a workspace of go": {map[string]string{
			"go.work": "go 1.26\nuse (\n\t./a\n\t./b\n\t../c\n)\n", "a/go.mod": "module m.example/a\ngo 1.26\nrequire (\n\tx.example/x v1.0.0\n\tm.example/b v0.0.0\n)\n", "b/go.mod": "module m.example/b\ngo 1.26\nrequire y.example/y v1.0.0\n",
		}, "", []string{"go.work:5: ../c: it is not in this directory", "x.example/x: whether it comes from the public registry is not known: see go.work:5"}},
		"setup.cfg":             {map[string]string{"setup.cfg": "[options]\ninstall_requires =\n  Django >= 4\n  six\n", "setup.py": ""}, "django setuptools six wheel", []string{"setup.py: it is a program"}},
		"dynamic, from a file":  {map[string]string{"pyproject.toml": "[project]\nname=\"p\"\ndynamic=[\"dependencies\",\"version\"]\n[build-system]\nrequires=[\"setuptools\"]\n[tool.setuptools.dynamic]\ndependencies={file=[\"reqs.in\"]}\n", "reqs.in": "six\n"}, "setuptools six", nil},
		"dynamic, by a program": one("pyproject.toml", "[project]\nname=\"p\"\ndynamic=[\"dependencies\"]\n[build-system]\nrequires=[\"x\"]\n", "x", "pyproject.toml:3: dependencies: the project's build makes them up"),
		"files of parts": {map[string]string{
			"requirements.txt": "six>=1\n", "requirements-dev.txt": "-r requirements.txt\npytest<8\n", "dev.requirements.txt": "ruff\n", "requirements_test.txt": "mock\n", "requirements/docs.txt": "-c constraints.txt\nfuro\n",
			"requirements/constraints.txt": "bad==1\n", "tests/requirements.txt": "idna\n", "tests/data.txt": "bad\n", "notes.txt": "bad\n", "other/requirements.txt": "bad\n",
		}, "furo idna mock pytest ruff six", nil},
		"a directory in a part": {map[string]string{"requirements/dev.txt": "-e .\n-e ./lib\nown\nthe-lib\nsix\n", "setup.cfg": "[metadata]\nname = own\n", "lib/setup.cfg": "[metadata]\nname = the-lib\n[options]\ninstall_requires = idna\n"}, "idna six", []string{"requirements/dev.txt:3: own: the project has"}},
		"constraints' registry": {map[string]string{"requirements/base.txt": "acme\n", "requirements/constraints.txt": "--extra-index-url https://x.example\n"}, "", []string{"requirements/constraints.txt:1: --extra-index-url"}},
		"constraints' address":  {map[string]string{"requirements-dev.txt": "acme\nsix\n", "constraints.txt": "acme @ git+https://x.example/acme\n"}, "six", []string{"constraints.txt:1: acme @ git"}},
		"a source's registry":   {map[string]string{"requirements/base.txt": "acme\n", "requirements/base.in": "-i $INDEX\n-e .\nacme\n"}, "", []string{"requirements/base.in:1: -i"}},
		"a part's own source":   {map[string]string{"dev-requirements.txt": "acme\n", "dev-requirements.in": "--find-links wheels\nacme\n"}, "", []string{"dev-requirements.in:1: --find-links"}},
		"a part that is prose":  {map[string]string{"requirements/base.txt": "six\n", "requirements/README.txt": "Requirements\n\nThese are all that we need.\n"}, "six", []string{"requirements/README.txt:3: These are all that we need.: it is no requirement"}},
		"prose with a slash":    {map[string]string{"requirements/base.txt": "six\n", "requirements/README.txt": "Requirements\n\nSee docs/install.md.\n"}, "six", []string{"requirements/README.txt:3: See docs/install.md.: it is no requirement"}},
		"places in an odd part": {
			map[string]string{"requirements.txt": "own-a\nown-b\nown-c\nown-d\nsix\n", "lib/setup.cfg": "[metadata]\nname = own-c\n", "requirements-dev.txt": "-e git+https://x.example/a#egg=own-a\ngit+https://x.example/b#egg=own-b\n-e ./lib\nown-d @ https://x.example/d.whl\nx=1.0=py_0\n"},
			"six",
			[]string{"requirements-dev.txt:5: x=1.0=py_0: it is no requirement"},
		},
		"places in a source":      {map[string]string{"requirements.txt": "own-a\nown-b\nsix\n", "requirements-dev.in": "-e git+https://x.example/a#egg=own-a\ngit+https://x.example/b#egg=own-b\n"}, "six", []string{"requirements-dev.in:1: -e git+https", "requirements-dev.in:2: git+https", "requirements.txt:1: own-a: the project has", "requirements.txt:2: own-b: the project has"}},
		"constraints of a source": {map[string]string{"requirements.txt": "six\n", "constraints.in": "-i https://x.example\n"}, "", []string{"constraints.in:1: -i: the project names another registry"}},
		"a list in prose":         {map[string]string{"requirements.txt": "six\n", "docs/requirements.txt": "Requirements\n-----\n- a compiler\n", "docs/constraints.txt": "- none\n"}, "six", []string{"docs/requirements.txt:2: -----: it is no requirement"}},
		"prose with a registry":   {map[string]string{"requirements.txt": "six\n", "docs/requirements.txt": "- see below\n-i $INDEX\n"}, "", []string{"docs/requirements.txt:2: -i"}},
		"either directory":        {map[string]string{"requirements/dev.txt": "-e ./lib\nown-a\nown-b\nsix\n", "lib/setup.cfg": "[metadata]\nname = own-a\n", "requirements/lib/setup.cfg": "[metadata]\nname = own-b\n"}, "six", []string{"3: own-b: the project has"}},
		"a registry in a part":    {map[string]string{"requirements.txt": "six\n", "dev-requirements.txt": "-i https://x.example\n"}, "", []string{"dev-requirements.txt:1: -i: the project names another registry"}},
		"a part that is no text":  {map[string]string{"requirements.txt": "six\n", "requirements-dev.txt": "\xff"}, "", []string{"requirements-dev.txt: it can't be read, and may name a registry"}},
		"a part that is a folder": {map[string]string{"requirements.txt": "six\n", "requirements-dev.txt/x.txt": "bad"}, "six", nil},
		"includes":                {map[string]string{"requirements.txt": "-r base/a.txt\n-e ./sub\n-e .\n", "base/a.txt": "-r b.txt\nsix\n", "base/b.txt": "idna\n", "sub/pyproject.toml": "[project]\nname=\"sub\"\ndependencies=[\"rich\"]\n[build-system]\nrequires=[\"hatchling\"]\n"}, "hatchling idna rich six", []string{"requirements.txt:3: -e .: it has no pyproject.toml"}},
		"an include out of it":    one("requirements.txt", "six\n-r missing.txt\n-r https://x.example/r.txt\n--odd\n", "", "requirements.txt:2: -r missing.txt: there is no such file", "requirements.txt:3: -r https://x.example/r.txt: it is not a file of the project", "requirements.txt:4: --odd: this option is not known"),
		"an override by a directory": {map[string]string{
			"package.json": `{"workspaces":["a"],"overrides":{"own":"file:./own","p":{".":"link:./p"},"some@^1":"file:./some"}}`, "a/package.json": `{"dependencies":{"own":"1","p":"1","some":"1","ms":"2"}}`,
		}, "ms", []string{"package.json:1: own file:./own: it is a file or directory"}},
		"resolutions by directories": {map[string]string{
			"package.json": `{"workspaces":["a"],"resolutions":{"own":"link:./own","x/**/@s/deep@^1":"link:./d"},"pnpm":{"overrides":{"x@1>below":"link:./b"}}}`, "a/package.json": `{"dependencies":{"own":"1","@s/deep":"1","below":"1","ms":"2"}}`,
		}, "ms", []string{"own link:./own: it is a file or directory"}},
		"files of npm in capitals":    one("package.json", `{"dependencies":{"own":"own.TGZ","two":".own","ms":"2"}}`, "ms", "own own.TGZ: it is a file", "two .own: it is a file"),
		"go, one version a directory": one("go.mod", "module m.example/m\ngo 1.26\nrequire own.example/a v0.0.0\nreplace own.example/a v0.0.0 => ./a\n", "", "go.mod:4: own.example/a v0.0.0 => ./a: it is a directory of your own"),
		"go, its version replaced":    one("go.mod", "module m.example/m\ngo 1.26\nrequire own.example/a v0.0.0\nreplace own.example/a v0.0.0 => b.example/b v1.0.0\n", "b.example/b"),
		"names of repositories": {map[string]string{
			"requirements.txt": "-e git+https://x.example/own.git#egg=Own.One\ngit+https://x.example/two.git@v1#subdirectory=a&egg=two[x]\n./dist/own_three-1.0-py3-none-any.whl\nhttps://x.example/own-four-1.0.tar.gz\n-e ./sub\n",
			"sub/setup.cfg":    "[metadata]\nname = sub\n[options]\ninstall_requires =\n  own-one\n  two>=1\n  own-three\n  own_four\n  six\n",
		}, "six", []string{"requirements.txt:1: -e git+"}},
		"a directory that is not editable": {map[string]string{
			"requirements.txt": "./libs/own[x]\nsub/two\nown>=1\ntwo\n", "libs/own/pyproject.toml": "[project]\nname=\"own\"\ndependencies=[\"idna\"]\n[build-system]\nrequires=[\"hatchling\"]\n", "sub/two/setup.cfg": "[metadata]\nname = two\n[options]\ninstall_requires = six\n",
		}, "hatchling idna six", []string{"requirements.txt:3: own: the project has this name itself, or takes it from elsewhere"}},
		"a constraint that is an address": {map[string]string{
			"requirements.txt": "-c c.txt\nown\nsix\nlater\n", "c.txt": "own @ https://x.example/own.whl\nsix<2\nbad==1\n-c d.txt\n", "d.txt": "later @ git+https://x.example/later\n",
		}, "six", []string{"c.txt:1: own @ https://x.example/own.whl: it comes from an address"}},
		"constraints of uv":           one("pyproject.toml", "[project]\nname=\"p\"\ndependencies=[\"own\",\"six\"]\n[build-system]\nrequires=[\"hatchling\"]\n[tool.uv]\nconstraint-dependencies=[\"own @ git+https://x.example/own\",\"bad<2\"]\n", "hatchling six", "own @ git+https://x.example/own: it comes from an address"),
		"sources of uv, as tables":    one("pyproject.toml", "[project]\nname=\"p\"\ndependencies=[\"own\"]\n[build-system]\nrequires=[\"hatchling\"]\n[[tool.uv.sources.Own]]\ngit=\"https://x.example/own\"\n", "hatchling", "Own: it comes from a repository"),
		"files outside of it":         one("requirements.txt", "-r ../r.txt\n-c ../c.txt\n-e ../lib\n../own\nsix\n", "", "requirements.txt:1: -r ../r.txt: it lies outside", "requirements.txt:2: -c ../c.txt: it lies outside", "requirements.txt:3: -e ../lib: it lies outside", "requirements.txt:4: ../own: it lies outside"),
		"registries of a project":     one("pyproject.toml", "[project]\nname=\"p\"\ndependencies=[\"six\"]\n[build-system]\nrequires=[\"hatchling\"]\n[[tool.uv.index]]\nname=\"corp\"\nurl=\"https://x.example/simple\"\n", "", "pyproject.toml:6: tool.uv.index: the project names another registry or place", "pyproject.toml:3: six: whether it comes from the public registry is not known: see pyproject.toml:6"),
		"registries of yarn's scopes": {map[string]string{".yarnrc.yml": "npmScopes:\n  corp:\n    npmRegistryServer: https://npm.x.example\n  open:\n    npmAuthToken: x\n", "package.json": `{"dependencies":{"@corp/own":"1","@open/one":"1"}}`}, "@open/one", []string{".yarnrc.yml:2: @corp/*: another registry"}},
		"registries of scopes":        {map[string]string{".npmrc": "@corp:registry=https://npm.x.example\n", "package.json": `{"dependencies":{"@corp/own":"1","@other/one":"1"}}`}, "@other/one", []string{".npmrc:1: @corp/*: another registry"}},
		"a hidden member of uv's": {map[string]string{
			"pyproject.toml":      "[project]\nname=\"p\"\ndependencies=[\"own\",\"six\"]\n[build-system]\nrequires=[\"hatchling\"]\n[tool.uv.workspace]\nmembers=[\"m/*\"]\n",
			"m/.x/pyproject.toml": "[project]\nname=\"x\"\n[build-system]\nrequires=[\"hatchling\"]\n[tool.uv.sources]\nown={path=\"own\"}\n",
		}, "hatchling six", []string{"m/.x/pyproject.toml:6: own: it is a directory", "pyproject.toml:3: own: the project has this name itself"}},
		"a source of uv's that is a directory": {map[string]string{
			"pyproject.toml":     "[project]\nname=\"p\"\ndependencies=[\"own\"]\n[build-system]\nrequires=[\"hatchling\"]\n[tool.uv.sources]\nown=[{path=\"lib\"}]\n",
			"lib/pyproject.toml": "[project]\nname=\"own\"\ndependencies=[\"six\"]\n[build-system]\nrequires=[\"hatchling\"]\n",
		}, "hatchling six", []string{"pyproject.toml:7: own: it is a directory"}},
		"directories of npm's": {map[string]string{
			"package.json": `{"dependencies":{"a":"file:lib/a","b":"./lib/b","c":"link:lib/c","d":"file:d.tgz","own":"1"}}`, "lib/a/package.json": `{"name":"own","dependencies":{"ms":"2"}}`,
			"lib/b/package.json": `{"optionalDependencies":{"is-odd":"1"}}`, "lib/c/package.json": `{"dependencies":{"not":"1"}}`, "d.tgz": "x",
		}, "is-odd ms", []string{"package.json:1: a file:lib/a: it is a file or directory", "package.json:1: own: the project has this name itself"}},
		"two packages by one name": {map[string]string{
			"package.json": `{"dependencies":{"own":"1","ms":"2"},"devDependencies":{"own":"npm:is-odd@1","ms":"^2"}}`,
		}, "ms", []string{"package.json:1: own 1: its sections have different packages", "package.json:1: own npm:is-odd@1: its sections have different packages"}},
		"an override of another package's name": {map[string]string{
			"package.json": `{"workspaces":["a"],"overrides":{"own@^1":{"own":"latest"},"ms":"2","other":"1"}}`, "a/package.json": `{"dependencies":{"own":"npm:is-odd@1","ms":"2"}}`,
		}, "is-odd ms", []string{"package.json:1: own latest: a manifest has this name for another package"}},
		"an optional peer that another one has": {map[string]string{
			"package.json": `{"workspaces":["a"],"dependencies":{"own":"npm:is-odd@1"}}`, "a/package.json": `{"peerDependencies":{"own":"^1"},"peerDependenciesMeta":{"own":{"optional":true}}}`,
		}, "is-odd", []string{"a/package.json:1: own ^1: a manifest has this name for another package"}},
		"an override by another's spec": {map[string]string{
			"package.json": `{"workspaces":["a"],"dependencies":{"lib":"file:lib","ms":"2"},"overrides":{"own":"$lib","is-odd":"$ms","lost":"$nowhere"}}`, "a/package.json": `{"dependencies":{"own":"1","is-odd":"1","lost":"1"}}`,
		}, "is-odd ms", []string{"package.json:1: own file:lib: it is a file", "package.json:1: lost $nowhere: it is what another name is asked for by"}},
		"an override of pnpm's by another's spec": {map[string]string{
			"package.json": `{"dependencies":{"lib":"file:lib","own":"1","ms":"2"}}`, "pnpm-workspace.yaml": "overrides:\n  own: $lib\n  ms: $ms\n",
		}, "ms", []string{"pnpm-workspace.yaml:2: own file:lib: it is a file"}},
		"overrides of npm's that have another package": {map[string]string{
			"package.json": `{"workspaces":["a"],"overrides":{"own":"npm:is-even@1","x":{"ms":"npm:not@1"},"gone":{".":"npm:is-one@1","y":"1"}}}`, "a/package.json": `{"dependencies":{"own":"1","ms":"2","gone":"1"}}`,
		}, "is-even is-one ms not", []string{"a/package.json:1: own: an override has another package", "a/package.json:1: gone: an override has another package"}},
		"an override of pnpm's that has another package": {map[string]string{
			"package.json": `{"dependencies":{"own":"1","gone":"1","ms":"2","is-odd":"1"}}`, "pnpm-workspace.yaml": "overrides:\n  own: npm:is-even@1\n  gone: '-'\n  ms@1: npm:not@1\n  a>is-odd: '-'\n",
		}, "is-even is-odd ms not", []string{"package.json:1: own: an override has another package", "package.json:1: gone: an override has another package"}},
		"an override of pnpm's that is a directory": {map[string]string{
			"pnpm-workspace.yaml": "overrides:\n  own: file:lib\n", "lib/package.json": `{"dependencies":{"ms":"2"}}`,
		}, "ms", []string{"pnpm-workspace.yaml:2: own file:lib: it is a file"}},
		"an override that is a directory": {map[string]string{
			"package.json": `{"overrides":{"own":"file:lib"}}`, "lib/package.json": `{"dependencies":{"ms":"2"}}`,
		}, "ms", []string{"package.json:1: own file:lib: it is a file"}},
		"a peer that is another package": one("package.json", `{"devDependencies":{"own":"npm:is-odd@1"},"peerDependencies":{"own":"1"}}`, "is-odd", "package.json:1: own 1: another section has another package under this name"),
		"a peer in a directory that is another package": {map[string]string{
			"package.json": `{"dependencies":{"lib":"file:lib"}}`, "lib/package.json": `{"dependencies":{"own":"npm:is-odd@1","ms":"2"},"peerDependencies":{"own":"1","ms":"*"}}`,
		}, "is-odd ms", []string{"package.json:1: lib file:lib: it is a file", "lib/package.json:1: own 1: another section has another package under this name"}},
		"aliases of names like versions": one("package.json", `{"dependencies":{"own":"npm:x@1","two":"npm:1.x@^2"}}`, "1.x x"),
		"a name or a version": one("package.json", `{"dependencies":{"a":"npm:1.0.0","b":"npm:x","c":"npm:1.0.0-rc.1","d":"npm:~1.2","e":"npm:^1.0.0","f":"npm:latest","h":"npm:01.0.0","i":"npm:1.0.0rc","j":"npm:=01.0","k":"npm: x"},"overrides":{"g":"npm:1.0"}}`, "e k latest",
			"package.json:1: a npm:1.0.0: npm takes it for a package", "b npm:x: npm takes", "c npm:1.0.0-rc.1: npm takes", "d npm:~1.2: npm takes", "g npm:1.0: npm takes", "h npm:01.0.0: npm takes", "i npm:1.0.0rc: npm takes", "=01.0: it is no name"),
		"a plugin of pnpm's without a version": one("pnpm-workspace.yaml", "configDependencies:\n  ms: 1.0.0\n  own: ~\n", "ms", "pnpm-workspace.yaml:3: own: it has no version"),
		"what is written by escapes":           one("package.json", "{\n\"dependencies\":{\n\"\\u006fwn\":\"file:own\"}}", "", "package.json:3: own file:own: it is a file"),
		"other people's formats":               {map[string]string{"Cargo.toml": "[package]", "package.json": `{"dependencies":{"a":"1"}}`}, "a", []string{"Cargo.toml: crates are not served here"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range c.files {
				at := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p, err := wantsOf(dir, asksHere, false)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range pkgref.Ecosystems() {
				got = append(got, p.roots[e]...)
			}
			slices.Sort(got)
			if roots := strings.Join(got, " "); roots != c.roots {
				t.Errorf("the roots are %q, not %q", roots, c.roots)
			}
			var lines []string
			for _, l := range p.leftOut {
				lines = append(lines, l.String())
			}
			for _, want := range c.leftOut {
				if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
					t.Errorf("nothing says %q:\n%s", want, strings.Join(lines, "\n"))
				}
			}
			if len(c.leftOut) == 0 && len(c.roots) > 0 && len(lines) > 0 && !strings.Contains(name, "npm, from") && !strings.Contains(name, "repository") {
				t.Errorf("more is left out than should be:\n%s", strings.Join(lines, "\n"))
			}
		})
	}
}

// TestAProjectThatMakesWorkIsRefused: whoever writes a project's files does not keep policy init busy. The control is a smaller one.
func TestAProjectThatMakesWorkIsRefused(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return `{"overrides":` + strings.Repeat(`{"a":`, n) + `{"b":"1"}` + strings.Repeat("}", n) + `,"x":"` + strings.Repeat("x", 900_000) + `"}`
	}
	var anchors strings.Builder
	anchors.WriteString("packages: []\nconfigDependencies:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		n, last := strconv.Itoa(i+1), "*a"+strconv.Itoa(i)
		anchors.WriteString("  a" + n + ": &a" + n + " [" + strings.Join(slices.Repeat([]string{last}, 10), ", ") + "]\n")
	}
	var absent strings.Builder
	for i := range 30_000 {
		fmt.Fprintln(&absent, "-c", i)
	}
	for name, c := range map[string]struct {
		file, text string
		refused    bool
	}{
		"the control":        {"package.json", nested(50), false},
		"overrides":          {"package.json", nested(9_000), true},
		"files that are not": {"requirements.txt", absent.String(), true},
		"one that is not":    {"requirements.txt", strings.Repeat("-c x\n", 9_000), false},
		"more than is told":  {"requirements.txt", strings.Repeat("-c x\n", 100_000), true},
		"tables in tables":   {"pyproject.toml", "[tool.uv]\n" + strings.Repeat("a.", 9_000) + "a = 1\n", true},
		"some in each other": {"pyproject.toml", "[tool.uv]\n" + strings.Repeat("a.", 90) + "a = 1\n", false},
		"anchors":            {"pnpm-workspace.yaml", anchors.String(), true},
		"itself":             {"requirements.txt", strings.Repeat("-r requirements.txt\n-c requirements.txt\n", 20_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if p, err := wantsOf(dir, asksHere, false); (err != nil) != c.refused {
				t.Errorf("%d roots, %v", p.countRoots(), err)
			}
		})
	}
}

// TestRootsKeepTheProjectsOwnRange: the versions that all of a project's files allow of a name
// are those of its entry. Where a file allows others, or asks only under a condition, or for a
// build or a part that not everybody installs, the entry has none: it would refuse a version
// that the project takes. Of npm, TestPreReleasesOfAProject has the ranges that an
// entry has: an installation may have several versions of a name, and an entry is for all of them.
func TestRootsKeepTheProjectsOwnRange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  map[string]string
		ranges string
	}{
		"requirements":     {map[string]string{"requirements.txt": "requests>=2.31,<3\nclick ~= 8.1 # cli\nrich\nattrs (==23.1.0)\nidna[x]>=3 --hash=sha256:00\n"}, "attrs==23.1.0 click~= 8.1 idna[x]>=3 requests>=2.31,<3"},
		"pyproject":        {map[string]string{"pyproject.toml": "[project]\nname='p'\ndependencies=['requests>=2','rich']\n"}, "requests>=2"},
		"a marker":         {map[string]string{"requirements.txt": "requests<2; python_version<'3'\n"}, ""},
		"two ranges":       {map[string]string{"requirements.txt": "requests>=2\n-r b.txt\n", "b.txt": "Requests<3\n"}, ""},
		"one twice":        {map[string]string{"requirements.txt": "requests>=2\n-r b.txt\n", "b.txt": "Requests>=2\n"}, "requests>=2"},
		"with and without": {map[string]string{"requirements.txt": "requests>=2\n-r b.txt\n", "b.txt": "requests\n"}, ""},
		"a build":          {map[string]string{"pyproject.toml": "[build-system]\nrequires=['hatchling>=1']\n[project]\nname='p'\ndependencies=['setuptools>=60']\n[project.optional-dependencies]\nx=['six<1']\n[dependency-groups]\ndev=['pytest<8']\n"}, "setuptools>=60"},
		"built too":        {map[string]string{"pyproject.toml": "[build-system]\nrequires=['setuptools>=61']\n[project]\nname='p'\ndependencies=['setuptools>=60']\n"}, ""},
		"a part's file":    {map[string]string{"pyproject.toml": "[project]\nname='p'\ndynamic=['dependencies', 'optional-dependencies']\n[tool.setuptools.dynamic]\ndependencies={file=['a.txt']}\noptional-dependencies={x={file=['x.txt']}}\n", "a.txt": "requests>=2\n", "x.txt": "-r y.txt\n", "y.txt": "six<1\n"}, "requests>=2"},
		"a part in setup":  {map[string]string{"setup.cfg": "[options.extras_require]\nx = file: x.txt\n", "x.txt": "six<1\n"}, ""},
		"PDM's override":   {map[string]string{"pyproject.toml": "[project]\nname='p'\ndependencies=['Requests>=2', 'rich>1']\n[tool.pdm.resolution.overrides]\nrequests='1.9'\n"}, "rich>1"},
		"uv's override":    {map[string]string{"pyproject.toml": "[project]\nname='p'\ndependencies=['requests>=2', 'rich>1']\n[tool.uv]\noverride-dependencies=['requests==1.9']\n"}, "rich>1"},
		"another's lock":   {map[string]string{"requirements.txt": "-r b.txt\n", "b.txt": "urllib3==1.26.5\n", "pyproject.toml": "[project]\nname='p'\ndependencies=['requests>=2']\n", "uv.lock": "version = 1\n"}, "requests>=2"},
		"no range":         {map[string]string{"requirements.txt": "requests>=nothing\n"}, ""},
		"npm":              {map[string]string{"package.json": `{"dependencies":{"express":"^4.19.2"}}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p, err := wantsOf(dir, asksHere, false)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ranges := range p.ranges {
				for name, among := range ranges {
					got = append(got, name+among)
				}
			}
			slices.Sort(got)
			if ranges := strings.Join(got, " "); ranges != c.ranges {
				t.Errorf("the ranges are %q, not %q", ranges, c.ranges)
			}
			document := starterPolicy(p)
			if _, err := policy.Parse("policy.yaml", []byte(document)); err != nil || strings.Count(document, " version: ") != len(got) {
				t.Errorf("%v\n%s", err, document)
			}
		})
	}
}
