package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// walkTo does what the gateway does: it reads what it is told to, from pages that say
// what all their releases require, until the package is reached or nothing is left.
func (g *grove) walkTo(tb testing.TB, ask door.ReachAsk, pages map[string]map[string][]string) (read []string) {
	tb.Helper()
	ask.Sandbox, ask.Pages = "sb1", true
	for range 1000 {
		a, err := g.door.Reach(tb.Context(), ask)
		must(tb, err)
		if a.Reached || len(a.Next) == 0 {
			return read
		}
		for _, next := range a.Next {
			read = append(read, next.Project.Name)
			g.readPage(tb, next.Project.Name, pages[next.Project.Name])
		}
	}
	tb.Fatal("the walk does not end")
	return nil
}

// readPage reads a page as a walk does.
func (g *grove) readPage(tb testing.TB, name string, releases map[string][]string) {
	tb.Helper()
	ask := door.IndexAsk{Sandbox: "sb1", Package: node(name, ""), SourceURL: "https://npm.example/" + name, IndexDigest: "of " + name, Files: []door.File{}, Walk: true}
	for v := range releases {
		ask.Files = append(ask.Files, archive(node(name, v)))
	}
	a, err := g.door.Index(tb.Context(), ask)
	must(tb, err)
	if !a.WantEdges {
		return
	}
	var reqs []door.IndexRequirement
	for i, f := range ask.Files {
		for _, r := range releases[f.Version] {
			if child, specifier, _ := strings.Cut(r, " "); a.Verdicts[a.OfFile[i]].Shown() {
				reqs = append(reqs, door.IndexRequirement{Name: child, Specifier: specifier, Versions: []string{f.Version}})
			}
		}
	}
	must(tb, g.door.EdgesOfIndex(tb.Context(), "sb1", node(name, ""), ask.IndexDigest, reqs))
}

// lockedTree is what root requires, and beside it what nothing admits.
func lockedTree() map[string]map[string][]string {
	return map[string]map[string][]string{
		"root":  {"1.0.0": {"a ^1.0.0", "loop *"}, "1.1.0": {"a ^2.0.0", "loop *"}, "2.0.0": {"outside *"}},
		"a":     {"1.2.0": {"old ^1.0.0"}, "2.1.0": {"b ^1.0.0"}, "3.0.0": {"never *"}},
		"b":     {"1.0.0": {"deep 1.0.0"}},
		"deep":  {"1.0.0": nil, "1.0.1": nil},
		"old":   {"1.0.0": nil},
		"loop":  {"1.0.0": {"root *", "loop *", "b ^1.0.0"}},
		"alone": {"1.0.0": {"stranger *"}},
	}
}

// TestTheWayToALockedRelease: what a client asks for first is reached from the entries,
// in just the versions that admitted releases require, whatever the client has read.
func TestTheWayToALockedRelease(t *testing.T) {
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote %v", remote), func(t *testing.T) {
			g := newGrove(t, treeDocument, Limits{})
			if remote {
				g.door, _ = serve(t, g.Controller)
			}
			g.expect(t, false, node("deep", "1.0.0")) // before anything is read
			for _, c := range []struct {
				ref     pkgref.Ref
				allowed bool
			}{
				{node("deep", "1.0.0"), true},
				{node("old", "1.0.0"), true},
				{node("a", "1.2.0"), true},
				{node("loop", "1.0.0"), true},
				{node("deep", "1.0.1"), false},
				{node("a", "3.0.0"), false},
				{node("never", "1.0.0"), false},
				{node("outside", "1.0.0"), false},
				{node("stranger", "1.0.0"), false},
				{node("nobody", "1.0.0"), false},
			} {
				g.walkTo(t, door.ReachAsk{Package: c.ref, Deep: true}, lockedTree())
				g.expect(t, c.allowed, c.ref)
			}
			if read := g.walkTo(t, door.ReachAsk{Package: node("nobody", "2.0.0"), Deep: true}, lockedTree()); len(read) != 0 {
				t.Errorf("what was read is read again: %v", read)
			}
			for _, r := range g.records(t, audit.Shown, audit.Withheld, audit.Served) {
				t.Errorf("what nobody was shown is on record as %s: %s", r.Outcome, r.Package)
			}
		})
	}
}

// TestNothingPassesARefusal: below what waits, is too young, denied or capped nothing is
// admitted, and nothing is read.
func TestNothingPassesARefusal(t *testing.T) {
	const roots = "allowed_packages: { node: [ { name: root, with_dependencies: true }, { name: capped, version: \"^1.0.0\" } ] }\n"
	pages := func() map[string]map[string][]string {
		return map[string]map[string][]string{
			"root": {"1.0.0": {"middle *", "capped *", "open *"}}, "middle": {"1.0.0": {"below *"}}, "below": {"1.0.0": {"bottom *"}},
			"capped": {"2.0.0": {"below *"}}, "open": {"1.0.0": nil}, "bottom": {"1.0.0": nil},
		}
	}
	for name, document := range map[string]string{
		"blocked":         roots + "blocked_packages: { node: [ { name: middle } ] }\n",
		"blocked release": roots + "blocked_packages: { node: [ { name: middle, version: \"<2\" } ] }\n",
		"too young":       roots + "packages: { min_release_age: 3650d }\n",
		"root too young":  roots + "packages: { min_release_age: 3650d, default: hold }\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrove(t, document, Limits{})
			read := g.walkTo(t, door.ReachAsk{Package: node("bottom", "1.0.0"), Deep: true}, pages())
			g.expect(t, false, node("middle", "1.0.0"), node("below", "1.0.0"), node("bottom", "1.0.0"), node("capped", "2.0.0"))
			if slices.Contains(read, "below") {
				t.Errorf("read: %v", read)
			}
		})
	}
	g := newGrove(t, roots, Limits{}) // positive control
	g.walkTo(t, door.ReachAsk{Package: node("bottom", "1.0.0"), Deep: true}, pages())
	g.expect(t, true, node("bottom", "1.0.0"), node("middle", "1.0.0"))
}

// TestWhatRequiresItIsReadFirst: what clients asked for and what the newest releases
// require comes before what only old releases do; and a page is not worth those.
func TestWhatRequiresItIsReadFirst(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	pages := map[string]map[string][]string{"root": {"1.9.0": {"new *"}, "1.0.0": {"aged *", "asked *"}}, "new": {"1.0.0": nil}, "aged": {"1.0.0": {"x 1.0.0"}}, "asked": {"1.0.0": nil}}
	_, err := g.door.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: node("asked", ""), Version: "1.0.0"})
	must(t, err)
	light := g.walkTo(t, door.ReachAsk{Package: node("x", "")}, pages)
	if diff := cmp.Diff([]string{"alone", "root", "asked", "new"}, light); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"aged"}, g.walkTo(t, door.ReachAsk{Package: node("x", "1.0.0"), Deep: true}, pages)); diff != "" {
		t.Error(diff)
	}
	g.expect(t, true, node("x", "1.0.0"))
}

// TestAWalkIsBounded: however much is required, so many projects are read and no more,
// and what clients read themselves has room after that.
func TestAWalkIsBounded(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	pages := map[string]map[string][]string{"root": {"1.0.0": nil, "1.9.0": {"alone *"}}}
	for i := range 500 {
		pages["root"]["1.0.0"] = append(pages["root"]["1.0.0"], fmt.Sprintf("old%d *", i))
	}
	if read := g.walkTo(t, door.ReachAsk{Package: node("nobody", "1.0.0"), Deep: true}, pages); len(read) != 2+ledger.MaxWalkedBy {
		t.Errorf("%d projects are read for what nothing requires", len(read))
	}
	chain := newGrove(t, treeDocument, Limits{})
	pages = map[string]map[string][]string{"root": {"1.0.0": {"c0 *"}}}
	for i := range 200 {
		pages[fmt.Sprint("c", i)] = map[string][]string{"1.0.0": {fmt.Sprintf("c%d *", i+1)}}
	}
	if read := chain.walkTo(t, door.ReachAsk{Package: node("nobody", "1.0.0"), Deep: true}, pages); len(read) != 2+ledger.MaxDepth {
		t.Errorf("a chain is followed for %d projects", len(read))
	}
}

// TestAWalkLeavesRoom: however many projects one entry leads to, so many are read, and
// not more than a part of the run's memory is taken; clients read on.
func TestAWalkLeavesRoom(t *testing.T) {
	many := newGrove(t, treeDocument, Limits{})
	pages := map[string]map[string][]string{"root": {"1.0.0": nil}}
	for i := range ledger.MaxWalked + 200 {
		pages["root"]["1.0.0"] = append(pages["root"]["1.0.0"], fmt.Sprintf("c%d *", i))
	}
	if read := many.walkTo(t, door.ReachAsk{Package: node("nobody", "1.0.0"), Deep: true}, pages); len(read) != ledger.MaxWalked {
		t.Errorf("%d projects are read", len(read))
	}
	many.saysWhy(t, node("nobody", "1.0.0"), "since 3000 projects were read, which is the most")

	g := newGrove(t, treeDocument, Limits{Remembered: 1 << 20})
	pages = map[string]map[string][]string{"root": {"1.0.0": nil}, "alone": {"1.0.0": nil}}
	for i := range 400 {
		name := fmt.Sprint("c", i)
		pages["root"]["1.0.0"] = append(pages["root"]["1.0.0"], name+" *")
		pages[name] = map[string][]string{}
		for v := range 20 {
			pages[name][fmt.Sprintf("1.%d.0", v)] = []string{"leaf ^1.0.0"}
		}
	}
	read := g.walkTo(t, door.ReachAsk{Package: node("nobody", "1.0.0"), Deep: true}, pages)
	if len(read) < 50 || len(read) > 350 {
		t.Errorf("%d projects are read in a megabyte", len(read))
	}
	g.saysWhy(t, node("nobody", "1.0.0"), "takes the memory that a run has for it")
	g.page(t, "alone", map[string][]string{"1.0.0": nil}, "1.0.0")
	g.expect(t, true, node("alone", "1.0.0"))
}

// saysWhy expects a refusal that says which bound the walk met.
func (g *grove) saysWhy(tb testing.TB, ref pkgref.Ref, bound string) {
	tb.Helper()
	a, err := g.door.Judge(tb.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: ref, File: archive(ref), SourceURL: "https://npm.example/f"}})
	must(tb, err)
	if a.Decision.Allowed() || !strings.Contains(a.Decision.Reason, bound) || !strings.Contains(a.Decision.Reason, "--lockfile") {
		tb.Errorf("%+v", a.Decision)
	}
}

// TestWhatWaitsLeadsNowhere: the requirements of a held release, and of one whose entry
// has no with_dependencies, are known, and neither read nor admitted.
func TestWhatWaitsLeadsNowhere(t *testing.T) {
	g := newGrove(t, "packages: { default: hold }\nallowed_packages: { node: [ { name: root, with_dependencies: true }, { name: plain } ] }\n", Limits{})
	pages := map[string]map[string][]string{
		"root": {"1.0.0": {"open *"}}, "open": {"1.0.0": nil},
		"held": {"1.0.0": {"below *"}}, "below": {"1.0.0": {"bottom *"}},
		"plain": {"1.0.0": {"behind *"}}, "behind": {"1.0.0": {"bottom *"}},
	}
	g.readPage(t, "held", pages["held"])
	g.readPage(t, "plain", pages["plain"])
	g.expect(t, true, node("plain", "1.0.0"))
	read := g.walkTo(t, door.ReachAsk{Package: node("bottom", "1.0.0"), Deep: true, Pages: true}, pages)
	if slices.Contains(read, "below") || slices.Contains(read, "held") || slices.Contains(read, "behind") || !slices.Contains(read, "open") {
		t.Errorf("read: %v", read)
	}
	g.expect(t, false, node("below", "1.0.0"), node("behind", "1.0.0"), node("bottom", "1.0.0"))
	g.expect(t, true, node("open", "1.0.0"))
}

// TestAWalkIsOnNoRecord: what is asked for on the way is shown to nobody, let in or not.
func TestAWalkIsOnNoRecord(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	for ref, allowed := range map[pkgref.Ref]bool{node("root", "1.0.0"): true, node("deep", "1.0.0"): false} {
		ask := door.FileAsk{Sandbox: "sb1", Package: ref, File: archive(ref), SourceURL: "https://npm.example/f"}
		if a, err := g.door.Walk(t.Context(), door.WalkAsk{FileAsk: ask}); err != nil || a.Decision.Allowed() != allowed || len(g.records(t)) != 0 {
			t.Errorf("%s: %+v, %v, %d records", ref, a, err, len(g.records(t)))
		}
	}
	if a, err := g.door.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: node("deep", "1.0.0"), File: archive(node("deep", "1.0.0"))}}); err != nil || len(g.records(t, audit.Blocked)) != 1 {
		t.Errorf("the control: %+v, %v", a, err)
	}
	for _, ask := range []door.ReachAsk{{Package: node("Not Canonical", "")}, {Package: node("x", ""), Again: make([]pkgref.Ref, ledger.MaxBatch+1)}} {
		ask.Sandbox = "sb1"
		if _, err := g.door.Reach(t.Context(), ask); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", ask.Package, err)
		}
	}
}

// TestARefusalMayNotBeTheLastWord: who would read what leads to a file is told so, once,
// and nothing is on record before that was read.
func TestARefusalMayNotBeTheLastWord(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	ask := door.JudgeAsk{MayWalk: true, FileAsk: door.FileAsk{Sandbox: "sb1", Package: node("deep", "1.0.0"), File: archive(node("deep", "1.0.0")), SourceURL: "https://npm.example/f"}}
	a, err := g.door.Judge(t.Context(), ask)
	must(t, err)
	if !a.Unreached || a.Decision.Allowed() || len(g.records(t, audit.Blocked)) != 0 {
		t.Errorf("%+v, %d records", a, len(g.records(t, audit.Blocked)))
	}
	ask.MayWalk = false
	if a, err = g.door.Judge(t.Context(), ask); err != nil || a.Unreached || a.Decision.Effect != policy.Deny || len(g.records(t, audit.Blocked)) != 1 {
		t.Errorf("%+v, %v, %d records", a, err, len(g.records(t, audit.Blocked)))
	}
	for name, more := range map[string]door.OwnerAsk{
		"no name of any entry": {Package: node("deep", ""), MayWalk: true},
		"nobody would read":    {Package: node("deep", "")},
		"a root":               {Package: node("root", ""), MayWalk: true},
		"another ecosystem":    {Package: python("deep", ""), MayWalk: true},
		"a module's beginning": {Package: module("example.com", ""), MayWalk: true},
	} {
		more.Sandbox = "sb1"
		o, err := g.door.Owner(t.Context(), more)
		if want := name == "no name of any entry"; err != nil || o.Unreached != want || o.Admitted != (name == "a root") {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
	allows := newGrove(t, "packages: { default: allow }", Limits{})
	if o, err := allows.door.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: node("anything", ""), MayWalk: true}); err != nil || o.Admitted || o.Unreached {
		t.Errorf("names that only the default allows are a way out: %+v, %v", o, err)
	}
}

// TestALookalikeIsReachedFromWhatIsAskedFor, beside what the policy's entries lead to, and
// each project is read once.
func TestALookalikeIsReachedFromWhatIsAskedFor(t *testing.T) {
	pages := map[string]map[string][]string{"root": {"1.0.0": {"popular2 ^1.0.0"}}, "listed": {"1.0.0": {"more *"}}}
	for document, want := range map[string]string{
		"packages: { default: allow }": "root",
		"packages: { default: allow }\nallowed_packages: { node: [ { name: listed, with_dependencies: true }, { name: root, with_dependencies: true } ] }": "listed more root",
		"packages: { default: allow }\nallowed_packages: { node: [ { name: listed, with_dependencies: true } ] }":                                          "listed more root",
	} {
		g := newGrove(t, document, Limits{})
		g.config.Advisories = lookalikes("popular2")
		g.expect(t, false, node("popular2", "1.0.0"))
		_, err := g.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: node("root", ""), Version: "1.0.0"})
		must(t, err)
		read := g.walkTo(t, door.ReachAsk{Package: node("popular2", "1.0.0"), Deep: true}, pages)
		slices.Sort(read)
		if got := strings.Join(read, " "); got != want && got != strings.Replace(want, "more ", "", 1) { // it need not go on once it is reached
			t.Errorf("%s: read %q, want %q", document, got, want)
		}
		g.expect(t, true, node("popular2", "1.0.0"))
	}
}

// TestMetadataOfALookalikeReadsNoFurtherReleases: only of the policy's entries are older
// releases read before metadata is refused, not of whatever a client asked for.
func TestMetadataOfALookalikeReadsNoFurtherReleases(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]int{
		"packages: { default: allow }": 1,
		"packages: { default: allow }\nallowed_packages: { python: [ { name: root, with_dependencies: true } ] }": 2,
	} {
		g := newGrove(t, document, Limits{})
		g.config.Advisories = lookalikes("popular2")
		_, err := g.Owner(t.Context(), door.OwnerAsk{Sandbox: "sb1", Package: python("root", ""), Version: "1.0"})
		must(t, err)
		read := 0
		for range 8 {
			a, err := g.door.Reach(t.Context(), door.ReachAsk{Sandbox: "sb1", Package: python("popular2", ""), Metadata: true})
			must(t, err)
			read += len(a.Next)
		}
		if read != want {
			t.Errorf("%s: the walk reads of root %d times, want %d", document, read, want)
		}
	}
}
