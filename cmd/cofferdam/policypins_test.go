package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestPreReleasesOfAProject: the policy that init writes admits the pre-releases that the project names or pins, and no others of their
// names; and of npm the range of a root that its lockfile has in no version outside of it.
func TestPreReleasesOfAProject(t *testing.T) {
	t.Parallel()
	const sri = "sha512-PYAthTa2m2VKxuvSD3DPC/Gy+U+sOA1LAuT8mkmRuvw+NACSaeXEQ+NHcVF7rONl6qcaxV3Uuemwawk+7+SJLw=="
	npmLock := func(entries ...string) string {
		var b strings.Builder
		for _, e := range entries {
			place, version, _ := strings.Cut(e, " ")
			fmt.Fprintf(&b, `,"node_modules/%s":{"version":%q,"integrity":%q}`, place, version, sri)
		}
		return `{"lockfileVersion":3,"packages":{"":{}` + b.String() + `}}`
	}
	pnpmLock := "lockfileVersion: '9.0'\npackages:\n  next@2.0.0-canary.3:\n    resolution: {integrity: " + sri + "}\n"
	uvLock := func(entries ...string) string {
		text := "version = 1\n"
		for _, e := range entries {
			name, version, _ := strings.Cut(e, " ")
			text += fmt.Sprintf("[[package]]\nname = %q\nversion = %q\nsource = { registry = \"https://index.example/simple\" }\nwheels = [{ url = \"https://files.example/%s-%s-py3-none-any.whl\", hash = \"sha256:%s\" }]\n", name, version, name, version, strings.Repeat("ab", 32))
		}
		return text
	}
	go1 := "h1:" + "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for name, c := range map[string]struct {
		files   map[string]string
		admits  string // "NAME VERSION", with ", " between
		refuses string
	}{
		"npm, by a range":        {map[string]string{"package.json": `{"dependencies":{"vue":"^3.0.0-beta.2"}}`}, "vue 3.0.0-beta.2, vue 3.0.0-beta.9, vue 3.5.0, vue 2.0.0", "vue 3.1.0-beta.1, vue 3.0.0-beta.1"},
		"npm, one":               {map[string]string{"package.json": `{"devDependencies":{"ts":"7.0.0-dev.2026"}}`}, "ts 7.0.0-dev.2026, ts 6.0.0", "ts 7.0.0-dev.2027"},
		"npm, an alias":          {map[string]string{"package.json": `{"dependencies":{"a":"npm:@s/b@1.0.0-rc.1"}}`}, "@s/b 1.0.0-rc.1", "@s/b 1.0.0-rc.2, a 1.0.0-rc.1"},
		"npm, locked":            {map[string]string{"package.json": `{"dependencies":{"vue":"^3.0.0-beta.2"}}`, "package-lock.json": npmLock("vue 3.0.0-beta.4")}, "vue 3.0.0-beta.4", "vue 3.1.0-beta.1, vue 2.0.0, vue 4.0.0"},
		"npm, a tag":             {map[string]string{"package.json": `{"dependencies":{"ts":"next"}}`, "package-lock.json": npmLock("ts 7.0.0-dev.1")}, "ts 7.0.0-dev.1, ts 6.0.0", "ts 7.0.0-dev.2"},
		"npm, of another":        {map[string]string{"package.json": `{"dependencies":{"ts":"^6.0.0"}}`, "package-lock.json": npmLock("ts 6.0.3", "a/node_modules/ts 5.6.1-rc")}, "ts 6.0.3, ts 5.6.1-rc", "ts 5.6.2-rc, ts 7.0.0-dev.1"},
		"npm, the range":         {map[string]string{"package.json": `{"dependencies":{"debug":"^4.3.0"}}`, "package-lock.json": npmLock("debug 4.3.4")}, "debug 4.3.4, debug 4.9.0", "debug 2.6.9, debug 5.0.0, debug 4.4.0-rc.1"},
		"npm, two versions":      {map[string]string{"package.json": `{"dependencies":{"debug":"^4.3.0"}}`, "package-lock.json": npmLock("debug 4.3.4", "express/node_modules/debug 2.6.9")}, "debug 4.3.4, debug 2.6.9, debug 5.0.0", ""},
		"npm, two ranges":        {map[string]string{"package.json": `{"dependencies":{"debug":"^4.3.0"},"devDependencies":{"debug":"*"}}`, "package-lock.json": npmLock("debug 4.3.4")}, "debug 5.0.0", ""},
		"npm, an override":       {map[string]string{"package.json": `{"dependencies":{"express":"4"},"overrides":{"qs":"6.0.0-rc.1"}}`}, "qs 6.0.0-rc.1", "qs 6.0.0-rc.2"},
		"pnpm, a catalog":        {map[string]string{"package.json": `{"dependencies":{"next":"catalog:"}}`, "pnpm-workspace.yaml": "packages: []\ncatalog:\n  next: ^2.0.0-canary.1\n"}, "next 2.0.0-canary.3", "next 2.1.0-canary.1"},
		"pnpm, locked":           {map[string]string{"package.json": `{"dependencies":{"next":"canary"}}`, "pnpm-lock.yaml": pnpmLock}, "next 2.0.0-canary.3, next 1.0.0", "next 2.0.0-canary.4"},
		"a kept name":            {map[string]string{"package.json": `{"name":"next","dependencies":{"x":"1"}}`, "pnpm-lock.yaml": pnpmLock}, "x 1.0.0", "next 2.0.0-canary.3, next 2.0.0"},
		"python, ==":             {map[string]string{"requirements.txt": "black==26.1b1\nsix>=1\n"}, "black 26.1b1, six 1.0", "black 26.1b2, black 26.1a1"},
		"python, a condition":    {map[string]string{"requirements.txt": "black==26.1b1 ; python_version > '3'\n"}, "black 26.1b1, black 25.0", "black 26.1b2"},
		"python, a range":        {map[string]string{"requirements.txt": "black>=26.1b1\n"}, "black 26.1", "black 26.2b1"},
		"python, locked":         {map[string]string{"pyproject.toml": "[project]\nname='p'\ndependencies=['black>=20']\n", "uv.lock": uvLock("black 26.1b1", "semconv 0.65b0", "forked 1.0", "forked 2.0rc1")}, "black 26.1b1, black 26.1, semconv 0.65b0, forked 1.0, forked 2.0rc1", "black 26.1b2, semconv 0.66b0, semconv 0.65, forked 3.0"},
		"go, a commit":           {map[string]string{"go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v0.0.0-20200101000000-abcdefabcdef\n"}, "a.example/a v0.0.0-20200101000000-abcdefabcdef, a.example/a v1.0.0", "a.example/a v0.0.0-20210101000000-abcdefabcdef"},
		"go, of go.sum":          {map[string]string{"go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v1.2.0\n", "go.sum": "a.example/a v1.2.0-rc.1 " + go1 + "\na.example/a v1.2.0-rc.1/go.mod " + go1 + "\nb.example/b v0.0.0-20200101000000-abcdefabcdef " + go1 + "\n"}, "a.example/a v1.2.0-rc.1", "a.example/a v1.2.0-rc.2, b.example/b v0.0.0-20200101000000-abcdefabcdef"},
		"go, replaced":           {map[string]string{"go.mod": "module m.example/m\ngo 1.26\nrequire a.example/a v1.0.0\nreplace a.example/a => b.example/b v1.0.0-beta.1\n"}, "b.example/b v1.0.0-beta.1", "b.example/b v1.0.0-beta.2"},
		"a lockfile of nonsense": {map[string]string{"package.json": `{"dependencies":{"debug":"^4.3.0"}}`, "package-lock.json": "{"}, "debug 5.0.0", "debug 5.0.0-rc.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p, err := wantsOf(dir, asksHere, true)
			if err != nil {
				t.Fatal(err)
			}
			document := starterPolicy(p)
			written, err := policy.Parse("policy.yaml", []byte(document))
			if err != nil {
				t.Fatalf("%v\n%s", err, document)
			}
			ecosystem := pkgref.Node
			for file, of := range map[string]pkgref.Ecosystem{"requirements.txt": pkgref.Python, "pyproject.toml": pkgref.Python, "go.mod": pkgref.Go} {
				if c.files[file] != "" {
					ecosystem = of
				}
			}
			judged := func(list string, want bool) {
				for one := range strings.SplitSeq(list, ", ") {
					name, version, is := strings.Cut(one, " ")
					if !is {
						continue
					}
					d := written.Judge(time.Now(), policy.Subject{Package: pkgref.Ref{Ecosystem: ecosystem, Name: name}, Assessed: true}).Release(version)
					if (d.Effect == policy.Allow) != want {
						t.Errorf("%s: %s, %s\n%s", one, d.Effect, d.Reason, document[strings.Index(document, "\nallowed_packages"):])
					}
				}
			}
			judged(c.admits, true)
			judged(c.refuses, false)
		})
	}
}
