package lockfile_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestRequires: what each format says of its releases' requirements, with
// aliases under the names of what they stand for.
func TestRequires(t *testing.T) {
	const sri = "sha512-KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKg=="
	hash := "sha256:" + strings.Repeat("2a", 32)
	for name, c := range map[string]struct {
		ecosystem pkgref.Ecosystem
		text      string
		want      []lockfile.Requirement
	}{
		"package-lock.json": {
			pkgref.Node, `{ "lockfileVersion": 3, "packages": { "node_modules/a": { "version": "1.0.0", "integrity": "` + sri + `",
			"dependencies": { "b": "^2.0.0", "c": "NPM: @s/real@~3.1 ", "bad name": "1" }, "optionalDependencies": { "d": "*" }, "peerDependencies": { "e": ">=4" }, "devDependencies": { "f": "1" } } } }`,
			[]lockfile.Requirement{{"b", "^2.0.0"}, {"@s/real", "~3.1"}, {"d", "*"}, {"e", ">=4"}},
		},
		"pnpm-lock.yaml": {
			pkgref.Node, "lockfileVersion: '9.0'\npackages:\n  a@1.0.0:\n    resolution: {integrity: " + sri + "}\nsnapshots:\n" +
				"  a@1.0.0(e@4.0.0):\n    dependencies:\n      b: 2.0.1(e@4.0.0)\n      c: '@s/real@3.1.0'\n      local: link:../x\n    optionalDependencies:\n      d: 5.0.0\n",
			[]lockfile.Requirement{{"b", "2.0.1"}, {"@s/real", "3.1.0"}, {"d", "5.0.0"}},
		},
		"v6/pnpm-lock.yaml": {
			pkgref.Node, "lockfileVersion: '6.0'\npackages:\n  /a@1.0.0:\n    resolution: {integrity: " + sri + "}\n    dependencies:\n      b: 2.0.1(e@4.0.0)\n      c: /@s/real@3.1.0\n",
			[]lockfile.Requirement{{"b", "2.0.1"}, {"@s/real", "3.1.0"}},
		},
		"uv.lock": {
			pkgref.Python, "version = 1\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = { registry = \"https://index.example/simple\" }\n" +
				"dependencies = [ { name = \"B\" }, { name = \"c\", version = \"2.0\", marker = \"x\" } ]\n" +
				"wheels = [ { url = \"https://files.example/a-1.0.0-py3-none-any.whl\", hash = \"" + hash + "\" } ]\n[package.optional-dependencies]\nextra = [ { name = \"d\" } ]\n",
			[]lockfile.Requirement{{"b", ""}, {"c", "==2.0"}, {"d", ""}},
		},
	} {
		f, err := lockfile.Parse(name, []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		set, err := lockfile.NewSet(policy.LockRules{Given: true}, []*lockfile.Lockfile{f})
		if err != nil {
			t.Fatal(err)
		}
		got := maps.Collect(set.Requires())
		want := map[pkgref.Ref][]lockfile.Requirement{{Ecosystem: c.ecosystem, Name: "a", Version: "1.0.0"}: c.want}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
