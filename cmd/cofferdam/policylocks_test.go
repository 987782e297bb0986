package main

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestNamesThatALockfileHasFromElsewhere are no roots: whoever has such a name in the registry that is asked here would be asked for it. Those
// that it has from there, or of which it says nothing, are.
func TestNamesThatALockfileHasFromElsewhere(t *testing.T) {
	t.Parallel()
	const node = `{"dependencies":{"own":"1","six":"1","@s/own":"1","alias":"npm:real@1"}}`
	const python = "[project]\nname='p'\ndependencies=['own','six','Git_Own']\n[build-system]\nrequires=[]\n"
	for name, c := range map[string]struct{ file, lock, roots, place string }{
		"npm": {"package-lock.json", `{"lockfileVersion":3,"packages":{"":{},
"node_modules/six":{"version":"1.0.0","resolved":"https://here.example/npm/six/-/six-1.0.0.tgz"},
"node_modules/own":{"version":"1.0.0","resolved":"https://own.example/own/-/own-1.0.0.tgz"},
"node_modules/alias":{"name":"real","version":"1.0.0","resolved":"https://own.example/real/-/real-1.0.0.tgz"},
"node_modules/x/node_modules/@s/own":{"version":"1.0.0","resolved":"https://own.example/@s%2fown/-/own-1.0.0.tgz"}}}`, "six", "package-lock.json:3: https://own.example: 4"},
		"npm's first": {"package-lock.json", `{"lockfileVersion":1,"dependencies":{"own":{"version":"1.0.0","resolved":"git+ssh://git@x.example/own.git"},"six":{"version":"1.0.0","dependencies":{"@s/own":{"version":"1","resolved":"https://here.example/npm/download/@s/own/1"}}}}}`, "real six", "package-lock.json:1: https://here.example/npm/download/@s/own/1: 1 of its names"},
		"shrinkwrap":  {"npm-shrinkwrap.json", `{"lockfileVersion":2,"packages":{"node_modules/own":{"resolved":"https://own.example/own/-/own-1.0.0.tgz"}}}`, "@s/own real six", "npm-shrinkwrap.json:1: https://own.example: 1"},
		"pnpm":        {"pnpm-lock.yaml", "lockfileVersion: '9.0'\npackages:\n  own@1.0.0:\n    resolution: {integrity: x, tarball: 'https://user:hunter2@own.example/own/-/own-1.0.0.tgz'}\n  six@1.0.0:\n    resolution: {integrity: x}\n  '@s/own@1.0.0':\n    resolution: {integrity: x, tarball: 'https://here.example/npm/@s/own/-/own-1.0.0.tgz'}\n", "@s/own real six", "pnpm-lock.yaml:3: https://own.example: 1"},
		"uv":          {"uv.lock", "version = 9\n[[package]]\nname = 'own'\nsource = { registry = 'https://own.example/simple' }\n[[package]]\nname = 'git-own'\nsource = { git = 'https://x.example/g' }\n[[package]]\nname = 'six'\nsource = { registry = 'https://here.example/simple/' }\n", "setuptools six wheel", "uv.lock:2: https://own.example/simple: 1"},
		"poetry":      {"poetry.lock", "[[package]]\nname = 'own'\n[package.source]\ntype = 'legacy'\nurl = 'https://own.example/simple'\nreference = 'own'\n[[package]]\nname = 'six'\n[[package]]\nname = 'git-own'\n[package.source]\ntype = 'git'\nurl = 'https://x.example/g'\n", "setuptools six wheel", "poetry.lock:1: https://own.example/simple: 1"},
		"pdm":         {"pdm.lock", "[[package]]\nname = 'git-own'\ngit = 'https://x.example/g'\n", "own setuptools six wheel", ""},
		"Pipenv":      {"Pipfile.lock", `{"_meta":{"sources":[{"name":"o","url":"https://own.example/simple"},{"name":"h","url":"https://here.example/simple"}]},"default":{"own":{"index":"o"},"six":{"index":"h"},"git-own":{"git":"https://x.example/g"}}}`, "setuptools six wheel", "Pipfile.lock:1: https://own.example/simple: 1"},
		"pylock":      {"pylock.toml", "lock-version = '1.0'\n[[packages]]\nname = 'own'\nindex = 'https://own.example/simple'\n[[packages]]\nname = 'six'\nindex = 'https://here.example/simple'\n[[packages]]\nname = 'git-own'\n[packages.vcs]\ntype = 'git'\n", "setuptools six wheel", "pylock.toml:2: https://own.example/simple: 1"},
		"unreadable":  {"uv.lock", "version = ]\n", "", "uv.lock: it can't be read"},
	} {
		ecosystem, files := pkgref.Python, map[string]string{"pyproject.toml": python, c.file: c.lock}
		if strings.Contains(c.file, "package") || strings.Contains(c.file, "pnpm") || strings.Contains(c.file, "shrink") {
			ecosystem, files = pkgref.Node, map[string]string{"package.json": node, c.file: c.lock}
		}
		asked := func(e pkgref.Ecosystem) (string, error) {
			return map[pkgref.Ecosystem]string{pkgref.Node: "https://here.example/npm/", pkgref.Python: "https://here.example/simple"}[e], nil
		}
		dir := laidProject(t, mixed{files: files})
		p, err := wantsOf(dir, asked, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var told []string
		for _, l := range p.leftOut {
			told = append(told, l.String())
		}
		said := strings.Join(told, "\n")
		if got := strings.Join(p.roots[ecosystem], " "); got != c.roots || !strings.Contains(said, c.place) || strings.Contains(said, "hunter2") || p.doubted != (c.place != "") {
			t.Errorf("%s: %q, want %q; said:\n%s\nwant %q", name, got, c.roots, said, c.place)
		}
		if public, err := wantsOf(dir, asked, true); err != nil || public.countRoots() < p.countRoots() || public.doubted && c.file != "uv.lock" {
			t.Errorf("%s: a person who says that all is public gets %v, %v", name, public.roots, err)
		}
	}
}
