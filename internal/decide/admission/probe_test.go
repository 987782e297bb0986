package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestProbesAreNoRefusals: what a resolver asked for above the module that it
// wanted is on record, and neither in why nor in the summary.
func TestProbesAreNoRefusals(t *testing.T) {
	g := newGrove(t, "allowed_packages: { go: [ { name: example.com/other } ] }", Limits{})
	for _, name := range []string{"example.com/a/b", "example.com/a", "example.com"} {
		ask := door.FileAsk{Sandbox: "sb1", Package: module(name, "v1.0.0"), File: door.File{Name: "v1.0.0.info", Version: "v1.0.0", Kind: policy.KindMetadata}}
		if a, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: ask}); err != nil || a.Decision.Allowed() {
			t.Fatalf("%s: %+v, %v", name, a, err)
		}
	}
	if r := g.records(t); len(r) < 3 {
		t.Errorf("%d records, want all refusals: %+v", len(r), r)
	}
	sum, err := g.Summary(t.Context(), "run1")
	if err != nil || len(sum.Refused) != 1 || sum.Refused[0].Name != "example.com/a/b" {
		t.Errorf("summary: %+v, %v; want example.com/a/b alone", sum.Refused, err)
	}
	list, err := g.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || len(list) != 1 || list[0].Package.Name != "example.com/a/b" {
		t.Errorf("why: %+v, %v; want example.com/a/b alone", list, err)
	}
	file := door.FileAsk{Sandbox: "sb1", Package: module("example.com/a", "v1.0.0"), File: door.File{Name: "v1.0.0.zip", Version: "v1.0.0", Kind: policy.KindPackage}}
	if a, err := g.Judge(t.Context(), door.JudgeAsk{FileAsk: file}); err != nil || a.Decision.Allowed() {
		t.Fatalf("%+v, %v", a, err)
	}
	if list, err := g.Refusals(t.Context(), "sb1", "", 0); err != nil || len(list) != 2 {
		t.Errorf("why, after a file of a prefix was refused: %+v, %v; want both", list, err)
	}
}
