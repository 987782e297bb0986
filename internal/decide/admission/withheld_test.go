package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestAVersionWithAnAllowedFileIsNotWithheld: a source distribution beside an
// allowed wheel is a withheld file, not a withheld version.
func TestAVersionWithAnAllowedFileIsNotWithheld(t *testing.T) {
	files := []door.File{{Version: "1.0"}, {Version: "1.0"}, {Version: "2.0"}}
	v := &indexVerdict{
		verdicts: []policy.Decision{
			{Effect: policy.Allow, Rule: "list"},
			{Effect: policy.Deny, Rule: "packages.sdist", Reason: "only wheels"},
			{Effect: policy.Deny, Rule: "list.version", Reason: "too new"},
		},
		ofFile: []int{0, 1, 2},
	}
	ranges, last := withheldRanges(pkgref.Python, files, v)
	if len(ranges) != 2 || last.Rule != "list.version" {
		t.Fatalf("ranges %+v, decided by %q", ranges, last.Rule)
	}
	if sdist := ranges[0]; sdist.Rule != "packages.sdist" || sdist.Versions != 0 || sdist.Files != 1 || sdist.From != "1.0" {
		t.Errorf("the source distribution: %+v", sdist)
	}
	if newer := ranges[1]; newer.Versions != 1 || newer.Files != 1 || newer.To != "2.0" {
		t.Errorf("the version: %+v", newer)
	}
}

// TestWhatIsRequiredSaysMost: of a project's withheld versions the one that an
// allowed package requires is what a refusal is about, though there are newer.
func TestWhatIsRequiredSaysMost(t *testing.T) {
	wanted := []policy.Edge{{Parent: pkgref.Ref{Ecosystem: pkgref.Node, Name: "parent", Version: "1.0.0"}, Name: "child", Specifier: "^1.0.0"}}
	v := &indexVerdict{
		verdicts: []policy.Decision{
			{Effect: policy.Deny, Rule: "packages.default", Reason: "on no list"},
			{Effect: policy.Deny, Rule: "packages.default", Reason: "on no list; parent requires it", WantedBy: wanted},
		},
		ofFile: []int{0, 1, 1, 0, 0},
	}
	files := []door.File{{Version: "0.9.0"}, {Version: "1.0.0"}, {Version: "1.1.0"}, {Version: "3.0.0"}, {Version: "4.0.0-rc.1"}}
	ranges, refusal := withheldRanges(pkgref.Node, files, v)
	if len(ranges) != 1 || ranges[0].From != "0.9.0" || ranges[0].To != "4.0.0-rc.1" || ranges[0].Reason != "on no list; parent requires it" {
		t.Errorf("ranges %+v", ranges)
	}
	if len(refusal.WantedBy) != 1 {
		t.Errorf("the refusal is %+v", refusal)
	}
}

// TestAWithheldPageIsToldAgain: once a release of a project was served nobody
// misses the others, until the page is asked for again: the client that then
// finds no version it wants may not say why.
func TestAWithheldPageIsToldAgain(t *testing.T) {
	g := newGrove(t, treeDocument, Limits{})
	shown := func() int {
		list, err := g.Refusals(t.Context(), "sb1", "", 0)
		must(t, err)
		return len(list)
	}
	g.page(t, "root", nil, "1.0.0", "2.0.0")
	if shown() != 1 {
		t.Fatalf("%d refusals are shown, want what the page withholds", shown())
	}
	root := node("root", "1.0.0")
	if a, err := g.Serve(t.Context(), door.ServeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: root, File: archive(root), SourceURL: "https://npm.example/f"}, Bytes: door.Bytes{SHA256: hexOf("x")}}); err != nil || !a.Decision.Allowed() {
		t.Fatalf("%+v, %v", a, err)
	}
	if shown() != 0 {
		t.Errorf("%d refusals are shown after a file was served, want none", shown())
	}
	g.page(t, "root", nil, "1.0.0", "2.0.0")
	g.page(t, "root", nil, "1.0.0", "2.0.0")
	if shown() != 1 || len(g.records(t, "withheld")) != 1 {
		t.Errorf("%d refusals are shown and %d recorded after the page was asked for again, want one", shown(), len(g.records(t, "withheld")))
	}
}
