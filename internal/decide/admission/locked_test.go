package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// lockOf pins releases; each line is "name version" and what it requires,
// "name range", after a colon.
func lockOf(tb testing.TB, lines ...string) *lockfile.Set {
	tb.Helper()
	var entries []string
	for _, line := range lines {
		release, requires, _ := strings.Cut(line, ":")
		name, version, _ := strings.Cut(strings.TrimSpace(release), " ")
		var deps []string
		for req := range strings.SplitSeq(requires, ",") {
			if child, specifier, ok := strings.Cut(strings.TrimSpace(req), " "); ok {
				deps = append(deps, `"`+child+`": "`+specifier+`"`)
			}
		}
		entries = append(entries, `"node_modules/`+name+`": { "version": "`+version+`", "integrity": "sha512-`+integrity+`", "dependencies": {`+strings.Join(deps, ",")+`} }`)
	}
	file, err := lockfile.Parse("package-lock.json", []byte(`{ "lockfileVersion": 3, "packages": { "": {}, `+strings.Join(entries, ",\n")+` } }`))
	must(tb, err)
	set, err := lockfile.NewSet(policy.LockRules{Given: true}, []*lockfile.Lockfile{file})
	must(tb, err)
	return set
}

// TestALockfileBringsItsEdges: a client that installs from a lockfile asks for
// files in any order and for no page, so what an allowed package requires must
// be known before its first request.
func TestALockfileBringsItsEdges(t *testing.T) {
	for name, c := range map[string]struct {
		policy   string
		lock     []string
		pkg      string
		admitted bool
	}{
		"a dependency":            {treeDocument, []string{"root 1.0.0: child ^2.0.0", "child 2.1.0"}, "child 2.1.0", true},
		"of a dependency":         {treeDocument, []string{"root 1.0.0: child ^2.0.0", "child 2.1.0: leaf >=1", "leaf 1.0.0"}, "leaf 1.0.0", true},
		"whatever stands first":   {treeDocument, []string{"leaf 1.0.0", "child 2.1.0: leaf >=1", "root 1.0.0: child ^2.0.0"}, "leaf 1.0.0", true},
		"out of the range":        {treeDocument, []string{"root 1.0.0: child ^3.0.0", "child 2.1.0"}, "child 2.1.0", false},
		"of a package alone":      {treeDocument, []string{"alone 1.0.0: child ^2.0.0", "child 2.1.0"}, "child 2.1.0", false},
		"of a refused release":    {treeDocument, []string{"root 9.0.0: child ^2.0.0", "child 2.1.0"}, "child 2.1.0", false},
		"wanted by nobody":        {treeDocument, []string{"root 1.0.0", "child 2.1.0"}, "child 2.1.0", false},
		"of a package not on it":  {treeDocument, []string{"other 1.0.0: child ^2.0.0", "child 2.1.0"}, "child 2.1.0", false},
		"and not in the lockfile": {treeDocument, []string{"root 1.0.0: child ^2.0.0"}, "child 2.1.0", false},
		"blocked all the same": {
			treeDocument + "blocked_packages: { node: [ { name: child } ] }\n",
			[]string{"root 1.0.0: child ^2.0.0", "child 2.1.0"},
			"child 2.1.0", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrove(t, c.policy, Limits{})
			g.Unregister("sb1")
			run := g.run()
			run.Lock = lockOf(t, c.lock...)
			must(t, g.Register(run))
			pkg, version, _ := strings.Cut(c.pkg, " ")
			file := archive(node(pkg, version))
			file.Digest = "sha512:" + strings.Repeat("2a", 64)
			a, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: node(pkg, version), File: file}})
			must(t, err)
			if a.Decision.Allowed() != c.admitted {
				t.Errorf("%s: %+v; want admitted %v", c.pkg, a.Decision, c.admitted)
			}
		})
	}
}

// TestALockfileLeadsToItsPinsOnly: in the mode prefer other names are left to the
// policy, and what a lockfile writes beside a release is no reason to let them in.
func TestALockfileLeadsToItsPinsOnly(t *testing.T) {
	set := lockOf(t, "root 1.0.0: child ^2.0.0, stranger *", "child 2.1.0")
	set, err := lockfile.NewSet(policy.LockRules{Given: true, Mode: policy.LockPrefer}, set.Files())
	must(t, err)
	g := newGrove(t, treeDocument, Limits{})
	g.Unregister("sb1")
	run := g.run()
	run.Lock = set
	must(t, g.Register(run))
	for name, admitted := range map[string]bool{"child": true, "stranger": false} {
		file := archive(node(name, "2.1.0"))
		file.Digest = "sha512:" + strings.Repeat("2a", 64)
		a, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: node(name, "2.1.0"), File: file}})
		must(t, err)
		if a.Decision.Allowed() != admitted {
			t.Errorf("%s: %+v", name, a.Decision)
		}
	}
}

// TestALargeLockfile: its releases may require more in all than a run may have
// edges, since most require the same.
func TestALargeLockfile(t *testing.T) {
	const releases, each = 200, 10
	var lines []string
	for i := range releases {
		line := fmt.Sprintf("p%d 1.0.0:", i)
		for k := range each {
			line += fmt.Sprintf("p%d ^1.0.0,", (i*7+k*13+1)%releases)
		}
		lines = append(lines, line)
	}
	g := newGrove(t, "allowed_packages: { node: [ { name: p0, with_dependencies: true } ] }", Limits{Edges: releases * each / 2})
	g.Unregister("sb1")
	run := g.run()
	run.Lock = lockOf(t, lines...)
	must(t, g.Register(run))
	file := archive(node("p77", "1.0.0"))
	file.Digest = "sha512:" + strings.Repeat("2a", 64)
	a, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: node("p77", "1.0.0"), File: file}})
	if err != nil || !a.Decision.Allowed() {
		t.Errorf("%+v, %v", a.Decision, err)
	}
}
