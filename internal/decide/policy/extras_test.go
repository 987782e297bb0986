package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestAnExtraNobodyAsksFor: an edge of such an extra admits nothing, and the refusal says
// what would ask for it, in the versions in which its parent is admitted.
func TestAnExtraNobodyAsksFor(t *testing.T) {
	t.Parallel()
	p := mustParse(t, "allowed_packages: { python: [ { name: rich, max_version: \"13.x\", with_dependencies: true } ] }")
	unasked := edge("rich", "rich", "ipywidgets", ">=7")
	if d := p.Decide(clock(), wheel(python("ipywidgets", "8.1.0"), unasked)); !d.Allowed() { // positive control
		t.Fatalf("%+v", d)
	}
	unasked.Unasked = "jupyter,all"
	d := p.Decide(clock(), wheel(python("ipywidgets", "8.1.0"), unasked))
	const reason = "ipywidgets is not on the allowlist; rich requires it for its extra jupyter or others, which nothing asks for"
	const suggest = "allowed_packages:\n  python:\n    - name: \"rich[jupyter]\"\n      max_version: \"13.x\"\n      with_dependencies: true\n"
	if d.Effect != policy.Deny || d.Reason != reason || d.Suggest != suggest {
		t.Errorf("%+v", d)
	}
	name := p.Judge(clock(), wheel(python("ipywidgets", ""), unasked).Subject).Name()
	if name.Effect != policy.Deny || name.Reason != reason || name.Suggest != suggest {
		t.Errorf("%+v", name)
	}
	far := edge("markdown-it-py", "rich", "linkify-it-py", "") // of what is on no list itself
	far.Unasked = "linkify"
	if d := p.Decide(clock(), wheel(python("linkify-it-py", "2.0"), far)); !strings.Contains(d.Suggest, "\"markdown-it-py[linkify]\"\n      max_version: \"1.x\"\n") {
		t.Errorf("%+v", d)
	}
	if d := p.Decide(clock(), wheel(python("ipywidgets", "8.1.0"), unasked, edge("rich", "rich", "ipywidgets", ""))); !d.Allowed() {
		t.Errorf("what something requires besides: %+v", d)
	}
}

// TestEntriesWithExtras: how they are written, and what is refused.
func TestEntriesWithExtras(t *testing.T) {
	t.Parallel()
	p := mustParse(t, "allowed_packages: { python: [ { name: rich, with_dependencies: true }, { name: \"Rich[ Jupyter, a_b ]\", with_dependencies: true } ] }")
	for extras, want := range map[string]bool{"jupyter": true, "x,a-b": true, "a_b": false, "x": false, "": false} {
		if got := p.AsksExtra(python("rich", ""), extras); got != want {
			t.Errorf("%q: %v", extras, got)
		}
	}
	if p.AsksExtra(python("other", ""), "jupyter") {
		t.Error("another package's extra")
	}
	for by, want := range map[string]bool{
		"{ name: rich, with_dependencies: true }": false, "{ name: other }": true, "{ name: \"rich[jupyter]\", with_dependencies: true }": true,
	} {
		n, ok := p.NarrowedBy(mustParse(t, "allowed_packages: { python: [ "+by+" ] }"))
		if !ok || n.AsksExtra(python("rich", ""), "jupyter") != want {
			t.Errorf("narrowed by %s: %v", by, !want)
		}
	}
	for document, want := range map[string]string{
		"allowed_packages: { python: [ { name: \"rich[jupyter]\" } ] }":                                                                  "which it lacks; write with_dependencies: true",
		"allowed_packages: { python: [ { name: \"rich[\", with_dependencies: true } ] }":                                                 "is not a python package name",
		"allowed_packages: { node: [ { name: \"rich[jupyter]\", with_dependencies: true } ] }":                                           "is not a node package name",
		"blocked_packages: { python: [ { name: \"rich[jupyter]\" } ] }":                                                                  "name the package that it brings",
		"allowed_packages: { python: [ { name: \"a[b,c]\", with_dependencies: true }, { name: \"a[c,b]\", with_dependencies: true } ] }": "is already on line 1",
	} {
		if _, err := policy.Parse("policy", []byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", document, err)
		}
	}
}

func TestSuggestExtras(t *testing.T) {
	t.Parallel()
	wanted := []policy.Wanted{
		{Package: python("ipywidgets", "8.1.0"), Through: []pkgref.Ref{python("rich", "")}},
		{Package: python("rich", "13.7.1"), WithDependencies: true, Extras: []string{"jupyter"}},
	}
	const list = "allowed_packages:\n  python:\n"
	const entry = "    - name: \"rich[jupyter]\"\n      max_version: \"13.x\"\n      with_dependencies: true\n"
	for document, want := range map[string]string{
		"name: x\n": "name: x\n" + list + entry,
		list + "    - name: rich\n      max_version: \"13.x\"\n":                                list + "    - name: rich\n      max_version: \"13.x\"\n" + entry,
		list + "    - name: rich\n      max_version: \"13.x\"\n      with_dependencies: true\n": list + "    - name: rich\n      max_version: \"13.x\"\n      with_dependencies: true\n" + entry,
	} {
		got, _, err := policy.SuggestWanted([]byte(document), wanted)
		if err != nil || string(got) != want {
			t.Errorf("%s\nbecomes\n%s, %v", document, got, err)
		}
	}
	asked := list + entry
	if got, _, err := policy.SuggestWanted([]byte(asked), wanted[1:]); err != nil || string(got) != asked {
		t.Errorf("what is asked for already: %s, %v", got, err)
	}
}
