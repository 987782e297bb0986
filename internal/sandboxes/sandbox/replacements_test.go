package sandbox_test

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// lawful makes a sandbox under a document of a source.
func (d *daemon) lawful(t *testing.T, source, text string) string {
	t.Helper()
	p, err := policy.Parse(source, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Create(t.Context(), sandbox.Request{Policy: p, PolicyText: []byte(text), PolicySource: source, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return s.Info().ID
}

// put puts a document under a source.
func (d *daemon) put(t *testing.T, source, text string, narrow bool) sandbox.Applied {
	t.Helper()
	p, err := policy.Parse(source, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	a, err := d.PolicyPut(t.Context(), p, source, []byte(text), narrow)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPolicyPut: a document that is put leaves the live sandboxes theirs, or
// narrows those of its source: also one that was being made meanwhile, and over a
// restart of the daemon. No later document opens what is closed.
func TestPolicyPut(t *testing.T) {
	t.Parallel()
	const (
		source = "/etc/policies/data.yaml"
		wide   = "name: wide\npackages: { default: deny }\n"
		narrow = "name: narrow\npackages: { default: deny }\nrules:\n  - { name: no-true, condition: { field: command, operator: contains, value: \"true\" }, action: deny, priority: 1 }\ndefaults: { action: allow }\n"
	)
	d := newWorld(t).daemon(t)
	live, other := d.lawful(t, source, wide), d.lawful(t, "/etc/policies/other.yaml", wide)
	runs := func(when, id string, want bool) {
		t.Helper()
		_, err := d.Start(t.Context(), id, sandbox.Command{Argv: []string{"/bin/true"}})
		if refused := errors.Is(err, fault.ErrForbidden); refused == want || err != nil && !refused {
			t.Errorf("%s: %v, want it to run: %v", when, err, want)
		}
	}
	if a := d.put(t, source, narrow, false); a != (sandbox.Applied{Live: 1}) {
		t.Errorf("put: %+v", a)
	}
	runs("beside a document that was put", live, true)
	if a := d.put(t, source, narrow, true); a != (sandbox.Applied{Live: 1, Narrowed: 1}) {
		t.Errorf("put to the live: %+v", a)
	}
	late := d.lawful(t, source, wide) // as one whose client had the old document
	for when, id := range map[string]string{"narrowed": live, "made meanwhile": late} {
		runs(when, id, false)
	}
	runs("of another source", other, true)
	if a := d.put(t, source, wide+"version: \"2\"\n", false); a.Narrowed != 0 {
		t.Errorf("put once more: %+v", a)
	}
	runs("after a wider one", live, false)
	d = d.next(t)
	runs("after a restart", live, false)
	runs("of another source, after a restart", other, true)
}
