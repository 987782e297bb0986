package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const treeDocument = `
allowed_packages:
  node: [ { name: root, version: "^1.0.0", with_dependencies: true }, { name: alone } ]
  go: [ { name: example.com/root, with_dependencies: true }, { name: example.com/alone } ]
`

// grove is a house whose policy lets trees grow, and a registry of one file for
// each release.
type grove struct {
	*house
	door door.Door
}

func newGrove(tb testing.TB, document string, limits Limits) *grove {
	tb.Helper()
	h := newHouse(tb, limits)
	h.policy = parse(tb, document)
	h.Unregister("sb1")
	must(tb, h.Register(h.run()))
	return &grove{house: h, door: h.Controller}
}

func node(name, version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Node, Name: name, Version: version}
}

func module(path, version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Go, Name: path, Version: version}
}

func archive(ref pkgref.Ref) door.File {
	return door.File{
		Name: ref.Name + "-" + ref.Version + ".tgz", Version: ref.Version, Kind: policy.KindPackage,
		Digest: "sha512:" + hexOf(ref.String()), Published: noon().AddDate(-1, 0, 0),
	}
}

// page shows a project's page with these releases and, if they are wanted,
// tells their requirements: "name specifier" by version. It gives the versions
// that the page shows.
func (g *grove) page(tb testing.TB, name string, releases map[string][]string, versions ...string) string {
	tb.Helper()
	ask := door.IndexAsk{Sandbox: "sb1", Package: node(name, ""), SourceURL: "https://npm.example/" + name, IndexDigest: "of " + name}
	for _, v := range versions {
		ask.Files = append(ask.Files, archive(node(name, v)))
	}
	a, err := g.door.Index(tb.Context(), ask)
	must(tb, err)
	var shown []string
	var reqs []door.IndexRequirement
	for i, v := range versions {
		if !a.Verdicts[a.OfFile[i]].Allowed() {
			continue
		}
		shown = append(shown, v)
		for _, r := range releases[v] {
			child, specifier, _ := strings.Cut(r, " ")
			reqs = append(reqs, door.IndexRequirement{Name: child, Specifier: specifier, Versions: []string{v}})
		}
	}
	if a.WantEdges {
		must(tb, g.door.EdgesOfIndex(tb.Context(), "sb1", node(name, ""), ask.IndexDigest, reqs))
	}
	return strings.Join(shown, " ")
}

func (g *grove) fetch(tb testing.TB, ref pkgref.Ref) policy.Decision {
	tb.Helper()
	a, err := g.door.Judge(tb.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: ref, File: archive(ref), SourceURL: "https://npm.example/f"}})
	must(tb, err)
	return a.Decision
}

func (g *grove) expect(tb testing.TB, allowed bool, refs ...pkgref.Ref) {
	tb.Helper()
	for _, ref := range refs {
		if d := g.fetch(tb, ref); d.Allowed() != allowed {
			tb.Errorf("%s: %s (%s)", ref, d.Effect, d.Reason)
		}
	}
}

// TestATreeIsReadFromPages: as npm does it, which reads each page once and
// fetches the files after that.
func TestATreeIsReadFromPages(t *testing.T) {
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote %v", remote), func(t *testing.T) {
			g := newGrove(t, treeDocument, Limits{})
			if remote {
				g.door, _ = serve(t, g.Controller)
			}
			if shown := g.page(t, "ms", nil, "1.0.0", "2.0.0"); shown != "" {
				t.Fatalf("before anything requires it, ms shows %s", shown)
			}
			root := map[string][]string{"1.0.0": {"a ^1.0.0", "b ^1.0.0", "root *"}, "2.0.0": {"evil *"}}
			if shown := g.page(t, "root", root, "1.0.0", "2.0.0"); shown != "1.0.0" {
				t.Fatalf("root shows %s", shown)
			}
			// a's page comes before b's, which requires another version of it.
			a := map[string][]string{"1.2.0": {"ms ^1.0.0"}, "2.1.0": {"late ~2.0.0"}, "3.0.0": {"never *"}}
			if shown := g.page(t, "a", a, "1.2.0", "2.1.0", "3.0.0", "3.0.0-rc.1"); shown != "1.2.0 2.1.0 3.0.0" {
				t.Errorf("a shows %s", shown)
			}
			g.expect(t, false, node("a", "2.1.0"), node("late", "2.0.3"), node("evil", "1.0.0"))
			g.page(t, "b", map[string][]string{"1.0.0": {"a ^2.0.0", "late =2.0.3"}}, "1.0.0")
			g.page(t, "ms", nil, "1.0.0", "2.0.0")
			g.expect(t, true, node("root", "1.0.0"), node("a", "1.2.0"), node("a", "2.1.0"), node("b", "1.0.0"), node("ms", "1.0.0"), node("late", "2.0.9"))
			g.expect(t, false, node("a", "3.0.0"), node("ms", "2.0.0"), node("never", "1.0.0"), node("late", "2.1.0"), node("evil", "1.0.0"))
			if d := g.fetch(t, node("a", "3.0.0")); !strings.Contains(d.Reason, "outside what is required: b requires ^2.0.0, root requires ^1.0.0") {
				t.Errorf("the reason is %q", d.Reason)
			}
			if shown := g.page(t, "a", nil, "1.2.0", "2.1.0", "3.0.0", "3.0.0-rc.1"); shown != "1.2.0 2.1.0 3.0.0" {
				t.Errorf("later, a shows %s", shown)
			}
		})
	}
}

// TestPagesAreAskedForOnce: what is known is not asked for, and an edge that
// changes nothing gives a page no new epoch.
func TestPagesAreAskedForOnce(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	ask := door.IndexAsk{Sandbox: "sb1", Package: node("root", ""), IndexDigest: "d", Files: []door.File{archive(node("root", "1.0.0"))}}
	first, err := g.Index(t.Context(), ask)
	must(t, err)
	if !first.WantEdges {
		t.Fatalf("what root requires is not asked for: %+v", first)
	}
	must(t, g.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "d", nil))
	again, err := g.Index(t.Context(), ask)
	must(t, err)
	if again.WantEdges || again.Epoch != first.Epoch {
		t.Errorf("asked again: %+v", again)
	}
	if err := g.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "another", nil); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("the requirements of a page that was not shown: %v", err)
	}
	if err := g.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "d", []door.IndexRequirement{{Name: "Not A Name"}}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a requirement of no package: %v", err)
	}
	must(t, g.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "d", []door.IndexRequirement{{Name: "x", Specifier: strings.Repeat("1||", 400), Versions: []string{"1.0.0"}}}))
	g.expect(t, false, node("x", "1.0.0"))
	must(t, g.Register(Run{Sandbox: "sb2", Run: "run2", Policy: parse(t, "packages: { default: allow }")}))
	ask.Sandbox, ask.Package = "sb2", python("root", "")
	if a, err := g.Index(t.Context(), ask); err != nil || a.WantEdges {
		t.Errorf("a policy to which requirements do not matter: %+v, %v", a, err)
	}
}

// TestARefusalNamesWhoWantedIt also if that one's entry admits nothing.
func TestARefusalNamesWhoWantedIt(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	g.page(t, "alone", map[string][]string{"1.0.0": {"ms ^1.0.0"}}, "1.0.0")
	if shown := g.page(t, "ms", nil, "1.0.0"); shown != "" {
		t.Errorf("ms shows %s", shown)
	}
	r := g.records(t, audit.Withheld)
	if len(r) != 1 || !strings.Contains(r[0].Detail["wanted_by"], "alone 1.0.0 (ms ^1.0.0)") {
		t.Errorf("withheld: %+v", r)
	}
}

func TestTreeLimits(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{Edges: 4, Requirements: 6})
	requires := func(n int, kind string) map[string][]string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%s%d *", kind, i))
		}
		return map[string][]string{"1.0.0": all}
	}
	g.page(t, "alone", requires(4, "x"), "1.0.0") // they only explain: two are kept
	g.page(t, "root", requires(2, "y"), "1.0.0")  // they admit, and fit
	g.expect(t, true, node("y1", "1.0.0"))
	tenant, err := g.tenants.getTenant("sb1")
	must(t, err)
	if edges, requirements := tenant.ledger.Counts(); edges != 4 || requirements != 6 {
		t.Errorf("%d edges, %d requirements", edges, requirements)
	}
	for name, q := range map[string]door.IndexRequirement{
		"edges":        {Name: "z", Versions: []string{"1.0.0"}},
		"requirements": {Name: "z", Versions: []string{"9.0.0"}},
	} {
		all := []door.IndexRequirement{{Name: "y0", Specifier: "*", Versions: []string{"1.0.0"}}, q}
		if name == "requirements" {
			all = append(all, q)
		}
		if err := g.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "of root", all); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("too many %s: %v", name, err)
		}
	}
	g.expect(t, false, node("z", "1.0.0"))
}

// mod asks for a go.mod, and tells what it requires if it may be read.
func (g *grove) mod(tb testing.TB, ref pkgref.Ref, requires ...string) bool {
	tb.Helper()
	return g.modOf(tb, ref, archive(ref), requires...)
}

// modOf is mod for a release whose own file is release.
func (g *grove) modOf(tb testing.TB, ref pkgref.Ref, release door.File, requires ...string) bool {
	tb.Helper()
	f := door.File{Name: "v.mod", Version: ref.Version, Kind: policy.KindMetadata}
	a, err := g.door.Judge(tb.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: ref, File: f, Release: &release}})
	must(tb, err)
	if !a.Decision.Allowed() {
		return false
	}
	var reqs []door.Requirement
	for _, r := range requires {
		path, version, _ := strings.Cut(r, " ")
		reqs = append(reqs, door.Requirement{Name: path, Specifier: ">=" + version})
	}
	must(tb, g.door.Edges(tb.Context(), "sb1", ref, reqs))
	return true
}

// TestGoReadsMetadata: a go.mod passes on the admission that its own module
// would have, and else only that a name is wanted.
func TestGoReadsMetadata(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	if g.mod(t, module("example.com/a", "v1.0.0")) {
		t.Error("a go.mod that nothing requires")
	}
	// alone's path to a comes first: a may be read, and what it requires too.
	if !g.mod(t, module("example.com/alone", "v1.0.0"), "example.com/a v1.0.0") || !g.mod(t, module("example.com/a", "v1.0.0"), "example.com/b v1.0.0") ||
		!g.mod(t, module("example.com/b", "v1.0.0"), "example.com/c v0.0.0-20240101000000-abcdefabcdef") {
		t.Error("a go.mod that is wanted can't be read")
	}
	g.expect(t, true, module("example.com/alone", "v1.0.0"))
	g.expect(t, false, module("example.com/a", "v1.0.0"), module("example.com/b", "v1.0.0"))
	// root admits a; what a and b require was read before.
	if !g.mod(t, module("example.com/root", "v1.0.0"), "example.com/a v1.0.0") {
		t.Error("root's go.mod can't be read")
	}
	g.expect(t, true, module("example.com/root", "v1.0.0"), module("example.com/a", "v1.0.0"), module("example.com/b", "v1.4.0"),
		module("example.com/c", "v0.0.0-20240101000000-abcdefabcdef"))
	g.expect(t, false, module("example.com/c", "v0.0.0-20250101000000-abcdefabcdef"), module("example.com/d", "v1.0.0"))
	if n := len(g.records(t, audit.Served)); n != 0 {
		t.Errorf("%d records of files that were not served", n)
	}
	_, err := g.Serve(t.Context(), door.ServeAsk{FileAsk: door.FileAsk{
		Sandbox: "sb1", Package: module("example.com/a", "v1.0.0"), File: door.File{Name: "v.mod", Version: "v1.0.0", Kind: policy.KindMetadata},
	}, Bytes: door.Bytes{SHA256: hexOf("x")}})
	if !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("metadata is served as a file: %v", err)
	}
}

// TestEdgesOfAReleaseAreReplaced: a run can't grow the daemon by asking again.
func TestEdgesOfAReleaseAreReplaced(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{Requirements: 4})
	g.mod(t, module("example.com/alone", "v1.0.0"))
	for i := range 20 {
		must(t, g.Edges(t.Context(), "sb1", module("example.com/alone", "v1.0.0"), []door.Requirement{{Name: "example.com/x", Specifier: ">=v1.0.0"}, {Name: fmt.Sprintf("example.com/x%d", i%2), Specifier: ">=v1.0.0"}}))
	}
	tenant, err := g.tenants.getTenant("sb1")
	must(t, err)
	if _, n := tenant.ledger.Counts(); n != 2 {
		t.Errorf("%d requirements are kept", n)
	}
}
