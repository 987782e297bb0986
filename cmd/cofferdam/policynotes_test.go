package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNotesOfAProject: policy init says of a root that something runs when it is installed, where a lockfile or a setting of pnpm's
// tells, and that go.mod lacks what the sources import. No note where neither is so.
func TestNotesOfAProject(t *testing.T) {
	t.Parallel()
	const hash = "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
	npmLock := func(more string) string {
		return "{\"lockfileVersion\": 3, \"packages\": {\"\": {},\n\"node_modules/esbuild\": {\"version\": \"0.25.0\", \"integrity\": \"" + hash + "\"" + more + "},\n\"node_modules/deep\": {\"version\": \"1.0.0\", \"integrity\": \"" + hash + "\", \"hasInstallScript\": true}}}"
	}
	const asks, mod, source = `{"dependencies":{"esbuild":"^0.25.0","ms":"2"}}`, "module m.example/m\ngo 1.26\n", "package main\n\nimport (\n\t\"fmt\"\n\n\t\"m.example/m/sub\"\n\t\"a.example/a/b\"\n)\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string // the beginning of each note
	}{
		"npm's lockfile":          {map[string]string{"package.json": asks, "package-lock.json": npmLock(`, "hasInstallScript": true`)}, []string{"package-lock.json:2: esbuild runs something"}},
		"npm's, without":          {map[string]string{"package.json": asks, "package-lock.json": npmLock("")}, nil},
		"npm's, another value":    {map[string]string{"package.json": asks, "package-lock.json": npmLock(`, "hasInstallScript": false`)}, nil},
		"pnpm's lockfile":         {map[string]string{"package.json": asks, "pnpm-lock.yaml": "lockfileVersion: '6.0'\npackages:\n  /esbuild@0.25.0:\n    resolution: {integrity: " + hash + "}\n    requiresBuild: true\n"}, []string{"pnpm-lock.yaml:3: esbuild runs"}},
		"pnpm's in package.json":  {map[string]string{"package.json": `{"dependencies":{"esbuild":"1","ms":"2"},"pnpm":{"onlyBuiltDependencies":["esbuild","deep"]}}`}, []string{"package.json:1: esbuild may run"}},
		"pnpm's in its workspace": {map[string]string{"package.json": asks, "pnpm-workspace.yaml": "onlyBuiltDependencies:\n  - esbuild\n"}, []string{"pnpm-workspace.yaml:2: esbuild may run"}},
		"pnpm's newest":           {map[string]string{"package.json": asks, "pnpm-workspace.yaml": "allowBuilds:\n  esbuild@0.25.0: true\n  ms: false\n"}, []string{"pnpm-workspace.yaml:2: esbuild may run"}},
		"no lockfile":             {map[string]string{"package.json": asks}, nil},
		"go, before tidy":         {map[string]string{"go.mod": mod, "main.go": source}, []string{"main.go:7: no go.mod has a module for a.example/a/b"}},
		"go, a directory below":   {map[string]string{"go.mod": mod, "cmd/x/x.go": source, "main.go": "package main\n"}, []string{"cmd/x/x.go:7: no go.mod has a module for a.example/a/b"}},
		"go, tidy":                {map[string]string{"go.mod": mod + "require a.example/a v1.0.0\n", "main.go": source}, nil},
		"go, indirect":            {map[string]string{"go.mod": mod + "require a.example/a v1.0.0 // indirect\n", "main.go": source}, nil},
		"go, replaced":            {map[string]string{"go.mod": mod + "replace a.example/a => ./a\n", "main.go": source}, nil},
		"go, only the beginning":  {map[string]string{"go.mod": mod + "require a.example/a v1.0.0\n", "main.go": strings.ReplaceAll(source, "a.example/a/b", "a.example/ab")}, []string{"main.go:7: no go.mod has a module for a.example/ab"}},
		"go, a workspace":         {map[string]string{"go.work": "go 1.26\nuse ./m\nuse ./a\n", "m/go.mod": mod, "m/main.go": source, "a/go.mod": "module a.example/a\n"}, nil},
		"go, not of the project":  {map[string]string{"go.mod": mod, "vendor/x.go": source, "testdata/x.go": source, ".x/x.go": source, "_x/x.go": source}, nil},
		"go, never built":         {map[string]string{"go.mod": mod, "gen.go": "//go:build ignore\n\n" + source, "old.go": "// +build ignore\n\n" + source, "both.go": "//go:build linux && ignore\n\n" + source}, nil},
		"go, built somewhere":     {map[string]string{"go.mod": mod, "x.go": "//go:build windows && !ignore || ignore\n\n" + source}, []string{"x.go:9: no go.mod has a module for a.example/a/b"}},
		"go, files passed over":   {map[string]string{"go.mod": mod, "_x.go": source, ".x.go": source}, nil},
		"go, directories ignored": {map[string]string{"go.mod": mod + "ignore ./x\n", "x/x.go": source}, nil},
		"go, a path of its own":   {map[string]string{"go.mod": mod, "main.go": "package main\n\nimport (\n\t\"./sub\"\n\t\"../sub\"\n)\n"}, nil},
		"go, another line":        {map[string]string{"go.mod": mod, "main.go": "package main\n//line other.go:4711\nimport \"a.example/a\"\n"}, []string{"main.go:3: no go.mod"}},
		"pnpm's, odd settings":    {map[string]string{"package.json": `{"dependencies":{"esbuild":"1"},"pnpm":{"onlyBuiltDependencies":{"esbuild":true}}}`, "pnpm-workspace.yaml": "onlyBuiltDependencies: esbuild\nallowBuilds: [esbuild]\n"}, nil},
		"go, no source at all":    {map[string]string{"go.mod": mod, "main.go": "no go\n"}, nil},
		"sources without go.mod":  {map[string]string{"main.go": source}, nil},
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
			if !slices.EqualFunc(p.notes, c.want, strings.HasPrefix) {
				t.Errorf("the notes are %q, want %q", p.notes, c.want)
			}
		})
	}
}
