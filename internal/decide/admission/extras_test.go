package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// requirementTree has releases with what their metadata requires: "name specifier|under|asks".
type requirementTree map[string][]string

// reads tells what releases require, as clients read it: files first, each once.
func (g *grove) reads(tb testing.TB, tree requirementTree, order ...string) {
	tb.Helper()
	for _, at := range order {
		name, version, _ := strings.Cut(at, " ")
		if _, err := g.door.Judge(tb.Context(), judging(name, version)); err != nil {
			tb.Fatal(err)
		}
		var reqs []door.Requirement
		for _, text := range tree[at] {
			part := strings.Split(text+"||", "|")
			child, specifier, _ := strings.Cut(part[0], " ")
			reqs = append(reqs, door.Requirement{Name: child, Specifier: specifier, Under: part[1], Asks: part[2]})
		}
		if err := g.door.Edges(tb.Context(), "sb1", python(name, version), reqs); err != nil && g.allows(tb, name, version) {
			tb.Fatal(err)
		}
	}
}

func (g *grove) allows(tb testing.TB, name, version string) bool {
	tb.Helper()
	a, err := g.door.Judge(tb.Context(), judging(name, version))
	must(tb, err)
	return a.Decision.Allowed()
}

// TestExtrasAreFollowedWhereTheyAreAskedFor: by an entry of the policy, by a requirement
// of what is admitted, the package's own included, or by a lockfile that pins what they
// bring; and by nothing else.
func TestExtrasAreFollowedWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	tree := requirementTree{
		"root 1.0":   {"plain >=1", "widget >=1|jupyter", "own >=1|a,b", "root|all|a", "child >=1||fast", "alien >=1|jupyter,other"},
		"child 1.0":  {"speedup >=1|fast", "slowdown >=1|slow"},
		"widget 1.0": {"deep >=1"},
	}
	order := []string{"root 1.0", "child 1.0", "widget 1.0"}
	all := []string{"alien", "child", "deep", "own", "plain", "root", "slowdown", "speedup", "widget"}
	for name, c := range map[string]struct {
		root, lock string
		want       []string
	}{
		"nothing asks":       {"root", "", []string{"child", "plain", "root", "speedup"}},
		"the policy asks":    {"root[jupyter]", "", []string{"alien", "child", "deep", "plain", "root", "speedup", "widget"}},
		"an extra asks":      {"root[all]", "", []string{"child", "own", "plain", "root", "speedup"}},
		"an unknown extra":   {"root[fast]", "", []string{"child", "plain", "root", "speedup"}},
		"a lockfile pins it": {"root", "own root plain", []string{"own", "plain", "root"}},
	} {
		g := newGrove(t, "allowed_packages: { python: [ { name: \""+c.root+"\", with_dependencies: true } ] }", Limits{})
		if c.lock != "" {
			g.Unregister("sb1")
			run := g.run()
			run.Lock = pythonLock(t, strings.Fields(c.lock)...)
			must(t, g.Register(run))
		}
		for _, turn := range [][]string{order, {"widget 1.0", "child 1.0", "root 1.0", "child 1.0", "widget 1.0"}} {
			g.reads(t, tree, turn...)
			var got []string
			for _, p := range all {
				if g.allows(t, p, "1.0") {
					got = append(got, p)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, read as %v: %s", name, turn, diff)
			}
		}
	}
}

func pythonLock(tb testing.TB, names ...string) *lockfile.Set {
	tb.Helper()
	var text strings.Builder
	for _, name := range names {
		text.WriteString(name + "==1.0 --hash=" + "sha256:" + hexOf(name+"1.0") + "\n")
	}
	file, err := lockfile.Parse("requirements.txt", []byte(text.String()))
	must(tb, err)
	set, err := lockfile.NewSet(policy.LockRules{Given: true}, []*lockfile.Lockfile{file})
	must(tb, err)
	return set
}

// TestAnExtraIsGivenUp: with a policy that narrows the run and asks for no extra, what the
// extra alone brought is refused again; the walk reads nothing below what nobody asks for.
func TestAnExtraIsGivenUp(t *testing.T) {
	t.Parallel()
	g := newGrove(t, "allowed_packages: { python: [ { name: \"root[more]\", with_dependencies: true } ] }", Limits{})
	tree := requirementTree{"root 1.0": {"root|more|deeper", "widget >=1|deeper", "plain"}}
	g.reads(t, tree, "root 1.0")
	if !g.allows(t, "widget", "1.0") || !g.allows(t, "plain", "1.0") {
		t.Fatal("the extra does not bring it")
	}
	must(t, g.NarrowPolicy(t.Context(), "sb1", parse(t, "allowed_packages: { python: [ { name: root, with_dependencies: true } ] }")))
	if g.allows(t, "widget", "1.0") || !g.allows(t, "plain", "1.0") {
		t.Error("what only an extra brings outlives it")
	}
	a, err := g.door.Reach(t.Context(), door.ReachAsk{Sandbox: "sb1", Package: python("below", "1.0"), Deep: true})
	must(t, err)
	if slices.ContainsFunc(a.Next, func(n door.ToRead) bool { return n.Project.Name == "widget" }) {
		t.Errorf("%+v", a.Next)
	}
}

// TestTheRootOfAnExtra: what a command asked for has the extras of its word; where no
// command said so, the package whose extra it is. A package that a command named is a root, though another's
// extra has it, too.
func TestTheRootOfAnExtra(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]Roots{
		"pip install -q rich[jupyter]": {
			Roots:    []Root{{Package: python("rich", ""), Asked: "rich[jupyter]", Extras: []string{"jupyter"}}},
			Required: []policy.Wanted{{Package: python("ipywidgets", "1.0"), Through: []pkgref.Ref{python("rich", "")}}},
		},
		"pip install -r requirements.txt": {
			Roots:    []Root{{Package: python("rich", "")}},
			Required: []policy.Wanted{{Package: python("ipywidgets", "1.0"), Through: []pkgref.Ref{python("rich", ""), python("rich", "")}}},
			Asking:   []policy.Wanted{{Package: python("rich", ""), WithDependencies: true, Extras: []string{"jupyter"}}},
		},
		"uv add ipywidgets":              {Roots: []Root{{Package: python("ipywidgets", "1.0"), Asked: "ipywidgets"}}},
		"pip install rich ipywidgets>=1": {Roots: []Root{{Package: python("ipywidgets", "1.0"), Asked: "ipywidgets>=1"}}},
	} {
		g := newGrove(t, "allowed_packages: { python: [ { name: rich, with_dependencies: true } ] }", Limits{})
		_, err := g.Command(t.Context(), "sb1", "c1", strings.Fields(command))
		must(t, err)
		g.reads(t, requirementTree{"rich 13.7": {"ipywidgets|jupyter"}}, "rich 13.7")
		if g.allows(t, "ipywidgets", "1.0") {
			t.Fatal("it is admitted")
		}
		got, err := g.Roots(t.Context(), "run1")
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}

// TestALockfileOfAnotherEcosystem pins nothing of this one, and is no obstacle to what
// metadata requires or to what is read for it.
func TestALockfileOfAnotherEcosystem(t *testing.T) {
	t.Parallel()
	g := newGrove(t, "allowed_packages: { python: [ { name: root, with_dependencies: true } ] }", Limits{})
	g.Unregister("sb1")
	run := g.run()
	run.Lock = lockOf(t, "left-pad 1.0.0")
	must(t, g.Register(run))
	g.reads(t, requirementTree{"root 1.0": {"plain >=1", "widget >=1|jupyter"}}, "root 1.0")
	if !g.allows(t, "plain", "1.0") || g.allows(t, "widget", "1.0") {
		t.Error("the requirements of root count otherwise than without a lockfile")
	}
	_, err := g.door.Reach(t.Context(), door.ReachAsk{Sandbox: "sb1", Package: python("deep", "1.0"), Deep: true})
	must(t, err)
}
