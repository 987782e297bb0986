package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const stricterDocument = `
packages: { default: allow }
blocked_packages: { python: [ { name: requests } ] }
rules:
  - { name: no-make, condition: { field: command, operator: contains, value: "make" }, action: deny, priority: 1 }
defaults: { action: allow }
`

// allowed asks for all that the tests below are about: a file, a page and two commands.
func (h *house) allowed(t *testing.T) (allowed map[string]bool) {
	t.Helper()
	allowed = map[string]bool{}
	for _, name := range []string{"requests", "numpy"} {
		version := map[string]string{"requests": "2.31.0", "numpy": "1.26.0"}[name]
		a, err := h.Judge(t.Context(), judging(name, version))
		must(t, err)
		allowed[name] = a.Decision.Allowed()
		page, err := h.Index(t.Context(), indexOf(name, "d-"+name, wheel(name, version)))
		must(t, err)
		if shown := page.Verdicts[page.OfFile[0]].Allowed(); shown != allowed[name] {
			t.Errorf("%s: the page says %v, the file %v", name, shown, allowed[name])
		}
	}
	for _, command := range []string{"make", "ls"} {
		a, err := h.Command(t.Context(), "sb1", command, []string{command})
		must(t, err)
		allowed[command] = a.Decision.Allowed()
	}
	return allowed
}

// TestNarrowPolicy: a run is narrowed by a second policy, which opens nothing;
// also over a restart, and in a run whose second policy is lost everything is
// closed. Another run under the first policy is not touched.
func TestNarrowPolicy(t *testing.T) {
	h := newHouse(t, Limits{})
	before := h.allowed(t)
	for what, want := range map[string]bool{"requests": true, "numpy": true, "make": true, "ls": true} {
		if before[what] != want {
			t.Fatalf("before, %s is allowed: %v", what, before[what])
		}
	}
	by := parse(t, stricterDocument)
	must(t, h.NarrowPolicy(t.Context(), "sb1", by))
	must(t, h.NarrowPolicy(t.Context(), "sb1", by))
	if got := h.records(t, audit.Narrowed); len(got) != 1 || got[0].Detail[detailLaw] != by.Digest() || got[0].Policy != h.policy.Digest() {
		t.Errorf("records: %+v", got)
	}
	want := map[string]bool{"requests": false, "numpy": true, "make": false, "ls": true}
	check := func(when string, want map[string]bool) {
		t.Helper()
		got := h.allowed(t)
		for what := range want {
			if got[what] != want[what] {
				t.Errorf("%s, %s is allowed: %v", when, what, got[what])
			}
		}
	}
	check("narrowed", want)
	a, err := h.Judge(t.Context(), judging("idna", "3.0"))
	must(t, err)
	if a.Decision.Allowed() {
		t.Error("what only the second policy allows is allowed")
	}
	h.Unregister("sb1")
	run := h.run()
	run.Kept = func(digest string) (*policy.Policy, error) {
		if digest != by.Digest() {
			return nil, fault.New(fault.ErrNotFound, "no such policy")
		}
		return by, nil
	}
	must(t, h.Restore(t.Context(), run))
	check("after a restart", want)
	h.Unregister("sb1")
	must(t, h.Restore(t.Context(), h.run()))
	check("with the second policy lost", map[string]bool{"requests": false, "numpy": false, "make": false, "ls": false})
	h.Unregister("sb1")
	must(t, h.Register(h.run()))
	check("in another run", before)
}

// TestACopyIsNarrowedAsItsSource: the log alone tells it of the policy.
func TestACopyIsNarrowedAsItsSource(t *testing.T) {
	h := newHouse(t, Limits{})
	h.start(t)
	by := parse(t, stricterDocument)
	must(t, h.NarrowPolicy(t.Context(), "sb1", by))
	must(t, h.copyAs(t, "sb2", func(r *Run) { r.Kept = func(string) (*policy.Policy, error) { return by, nil } }))
	copied, err := h.tenants.getTenant("sb2")
	must(t, err)
	if got := copied.policy().Narrowings(); len(got) != 1 || got[0] != by.Digest() {
		t.Errorf("it is narrowed by %q, want %s", got, by.Digest())
	}
}
