package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
)

const lockedRoots = `
packages: { default: deny }
allowed_packages:
  node: [ { name: root, version: "^1.0.0", with_dependencies: true } ]
  python: [ { name: root, with_dependencies: true } ]
  go: [ { name: corp.example/root, with_dependencies: true } ]
blocked_packages: { node: [ { name: blocked } ] }
`

// nodeTree publishes one release for each "name@version" with what it requires.
func (b *bench) nodeTree(tree map[string]map[string]any) (paths map[string]string) {
	b.t.Helper()
	paths = map[string]string{}
	byName := map[string][]npmtest.Release{}
	for at, requires := range tree {
		name, version, _ := strings.Cut(at, "@")
		var members map[string]any
		if requires != nil {
			members = map[string]any{"dependencies": requires}
		}
		r := npmtest.Pack(b.t, name, version, members)
		byName[name], paths[at] = append(byName[name], r), r.Path()
	}
	for _, releases := range byName {
		b.nodePublish(indexHost, nil, releases...)
	}
	return paths
}

// TestALockedInstallOfManyPackages: all files of a lockfile are asked for at once, the
// deepest first, and no page; more names than a run may ask for that lead to nothing.
// A name to which only another version, a blocked package or nothing leads is refused.
func TestALockedInstallOfManyPackages(t *testing.T) {
	b := newNodeBench(t, nil)
	tree := map[string]map[string]any{
		"root@1.0.0": {"chain0": "^1.0.0", "blocked": "*"}, "root@2.0.0": {"outside": "*"}, "blocked@1.0.0": {"below": "*"}, "below@1.0.0": nil,
		"outside@1.0.0": nil, "nobody@1.0.0": nil, "chain0@2.0.0": nil,
	}
	var locked []string
	for i := range 60 { // a chain, with a cycle at its end
		tree[fmt.Sprintf("chain%d@1.0.0", i)] = map[string]any{fmt.Sprintf("chain%d", (i+1)%60): "^1.0.0", fmt.Sprintf("leaf%d", i): "1.0.0"}
		tree[fmt.Sprintf("leaf%d@1.0.0", i)] = nil
		locked = append([]string{fmt.Sprintf("leaf%d@1.0.0", i), fmt.Sprintf("chain%d@1.0.0", i)}, locked...)
	}
	paths := b.nodeTree(tree)
	log, _ := b.judges(lockedRoots)
	var all sync.WaitGroup
	for _, at := range append(locked, "root@1.0.0") {
		all.Go(func() {
			if a := b.get(paths[at]); a.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", at, status(a))
			}
		})
	}
	all.Wait()
	for _, at := range []string{"chain0@2.0.0", "outside@1.0.0", "blocked@1.0.0", "below@1.0.0", "nobody@1.0.0"} {
		if a := b.get(paths[at]); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", at, status(a))
		}
	}
	for _, r := range recorded(t, log) {
		if r.Outcome != audit.Served && r.Outcome != audit.Blocked {
			t.Errorf("nobody was shown anything, and this is on record: %s %s", r.Outcome, r.Package)
		}
	}
	if n := b.registry.Count(nodePage(indexHost, "leaf0")); n > 2 {
		t.Errorf("a page is asked for %d times", n)
	}
}

// TestAWayThatCannotBeRead: a parent whose page lies, or is not there, admits nothing,
// and the request is answered.
func TestAWayThatCannotBeRead(t *testing.T) {
	b := newNodeBench(t, nil)
	paths := b.nodeTree(map[string]map[string]any{"root@1.0.0": {"liar": "*", "honest": "*", "gone": "*"}, "liar@1.0.0": {"below": "*"}, "honest@1.0.0": nil, "below@1.0.0": nil})
	b.nodePublish(indexHost, func(page string) string { return strings.Replace(page, `"name":"liar"`, `"name":"other"`, 1) }, npmtest.Pack(t, "liar", "1.0.0", map[string]any{"dependencies": map[string]any{"below": "*"}}))
	b.judges(lockedRoots)
	if a := b.get(paths["below@1.0.0"]); a.StatusCode != http.StatusForbidden {
		t.Errorf("below a page that lies: %s", status(a))
	}
	if a := b.get(paths["honest@1.0.0"]); a.StatusCode != http.StatusOK {
		t.Errorf("beside it: %s", status(a))
	}
}

// TestAPinnedWheel: a wheel that only an older release of its parent requires is found by
// that release's metadata; what an extra alone requires is not followed, and the page of
// a name that is asked for first has the older releases.
func TestAPinnedWheel(t *testing.T) {
	b := newBench(t, nil)
	old, young := pypitest.Wheel(t, "root", "1.0", "child (<2)"), pypitest.Wheel(t, "root", "3.0", "child (>=2)", "extra ; extra == 'more'")
	one, two, other := pypitest.Wheel(t, "child", "1.5", "grandchild"), pypitest.Wheel(t, "child", "2.0"), pypitest.Wheel(t, "child", "0.1")
	grand, extra, below := pypitest.Wheel(t, "grandchild", "7.0"), pypitest.Wheel(t, "extra", "1.0", "below"), pypitest.Wheel(t, "below", "1.0")
	b.publish(old, young)
	b.publish(other, one, two)
	b.publish(grand)
	b.publish(extra)
	b.publish(below)
	b.judges(lockedRoots)
	if a := b.get("/simple/child/"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, one.File) || !strings.Contains(a.body, two.File) {
		t.Errorf("the page of what is asked for first: %s", status(a))
	}
	for _, d := range []pypitest.Dist{grand, one} {
		if a := b.get("/p/" + d.File); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", d.File, status(a))
		}
	}
	for _, d := range []pypitest.Dist{below, extra} {
		if a := b.get("/p/" + d.File); a.StatusCode != http.StatusForbidden {
			t.Errorf("what only an extra leads to that nothing asks for: %s", status(a))
		}
	}
	if n := b.registry.Count(indexHost + "/simple/extra/"); n > 1 { // for its own file
		t.Errorf("an extra's page was read %d times", n)
	}
}

// TestAnExtraThatIsAskedFor: by the policy's own spelling, and by a requirement on the way;
// what another extra brings is refused in a sentence that leads on.
func TestAnExtraThatIsAskedFor(t *testing.T) {
	b := newBench(t, nil)
	root := pypitest.Wheel(t, "root", "1.0", "widget ; extra == 'more'", "child[fast]>=1", "other ; extra == 'rest'")
	child := pypitest.Wheel(t, "child", "1.0", "speedup ; extra == 'fast'", "slow ; extra == 'slow'")
	widget, speedup := pypitest.Wheel(t, "widget", "1.0", "deep"), pypitest.Wheel(t, "speedup", "1.0")
	deep, other, slow := pypitest.Wheel(t, "deep", "1.0"), pypitest.Wheel(t, "other", "1.0"), pypitest.Wheel(t, "slow", "1.0")
	for _, d := range []pypitest.Dist{root, child, widget, speedup, deep, other, slow} {
		b.publish(d)
	}
	b.judges("allowed_packages: { python: [ { name: \"root[more]\", with_dependencies: true } ] }")
	for _, d := range []pypitest.Dist{deep, speedup, widget, child, root} {
		if a := b.get("/p/" + d.File); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", d.File, status(a))
		}
	}
	for name, d := range map[string]pypitest.Dist{"root requires it for its extra rest, which nothing asks for": other, "child requires it for its extra slow, which nothing asks for": slow} {
		if a := b.get("/p/" + d.File); a.StatusCode != http.StatusForbidden || !strings.Contains(a.Status, name) {
			t.Errorf("%s: %s", d.File, status(a))
		}
	}
}

// TestAParentOfManyReleases: so many of them are read and no more; the refusal says so. One
// that the client asked for is read whatever was read before.
func TestAParentOfManyReleases(t *testing.T) {
	b := newBench(t, nil)
	var roots, children []pypitest.Dist
	for i := range 70 {
		version := fmt.Sprintf("%d.0", i+1)
		roots = append(roots, pypitest.Wheel(t, "root", version, "child (=="+version+")"))
		children = append(children, pypitest.Wheel(t, "child", version))
	}
	b.publish(roots...)
	b.publish(children...)
	b.judges(lockedRoots)
	first := func() answer { return b.get("/p/" + children[0].File) }
	if a := first(); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "since of root only 4") || !strings.Contains(a.body, "--lockfile is read first") {
		t.Errorf("past the bound: %s", status(a))
	}
	read := 0
	for _, d := range roots {
		read += min(1, b.registry.Count(filesHost+"/p/"+d.File+".metadata"))
	}
	if read > 51 {
		t.Errorf("%d releases are read", read)
	}
	if a := b.get("/p/" + roots[0].File); a.StatusCode != http.StatusOK {
		t.Errorf("the release that requires it: %s", status(a))
	}
	if a := first(); a.StatusCode != http.StatusOK {
		t.Errorf("and then: %s", status(a))
	}
}

// TestAModuleThatTheNewestParentHasDropped: a project pins an older release of a root, and
// go may ask for the .mod of what that requires before it asks for the root's.
func TestAModuleThatTheNewestParentHasDropped(t *testing.T) {
	child := golangtest.New(t, "corp.example/child", "v1.0.0")
	stranger := golangtest.New(t, "corp.example/stranger", "v1.0.0")
	modules := []golangtest.Module{child, stranger}
	for version, requires := range map[string]string{"v1.0.0": "", "v1.1.0": "\nrequire corp.example/child v1.0.0\n", "v1.2.0": "", "v1.3.0": ""} {
		modules = append(modules, golangtest.Pack(t, "corp.example/root", version,
			[2]string{"go.mod", "module corp.example/root\n" + requires}, [2]string{"p.go", "package p\n"}))
	}
	b, _ := newGoBench(t, modules...)
	b.judges(lockedRoots)
	mod := goFiles(t, child)[1]
	if a := b.get(strings.Replace(mod, "child", "stranger", 1)); a.StatusCode != http.StatusForbidden {
		t.Errorf("what nothing requires: %s", status(a))
	}
	if a := b.get(mod); a.StatusCode != http.StatusOK {
		t.Errorf("what an older release of the root requires: %s", status(a))
	}
}

// TestAModuleBeforeItsParent: a .mod or a zip that is asked for before anything of what
// requires it was read.
func TestAModuleBeforeItsParent(t *testing.T) {
	child := golangtest.New(t, "corp.example/child", "v1.0.0")
	stranger := golangtest.New(t, "corp.example/stranger", "v1.0.0")
	root := golangtest.Pack(t, "corp.example/root", "v1.0.0",
		[2]string{"go.mod", "module corp.example/root\n\nrequire corp.example/child v1.0.0\n"}, [2]string{"p.go", "package p\n"})
	b, _ := newGoBench(t, root, child, stranger)
	b.judges(lockedRoots)
	for _, file := range []string{goFiles(t, child)[1], goFiles(t, child)[0]} {
		if a := b.get(file); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", file, status(a))
		}
		if a := b.get(strings.Replace(file, "child", "stranger", 1)); a.StatusCode != http.StatusForbidden {
			t.Errorf("what nothing requires: %s", status(a))
		}
	}
}
