package sandbox_test

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestTheEndOfOneThatDidNotComeUp: a sandbox that could not be made, while the log could not be written, has
// its end on record when the next daemon writes, as one that ended has.
func TestTheEndOfOneThatDidNotComeUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.daemon(t)
	ends := func() (begun, ended int) {
		for r, err := range d.log.Records(t.Context(), audit.Filter{Kinds: []audit.Kind{audit.KindSandbox}}) {
			switch {
			case err != nil:
				t.Fatal(err)
			case r.Outcome == audit.Started:
				begun++
			case r.Outcome == audit.Finished:
				ended++
			}
		}
		return begun, ended
	}
	d.engine.Fails = func() error { return errors.New("no memory is left") }
	if _, err := d.Create(t.Context(), ask(t, sandbox.Request{})); err == nil {
		t.Fatal("INCONCLUSIVE: it was made")
	}
	if begun, ended := ends(); begun != 1 || ended != 1 {
		t.Fatalf("INCONCLUSIVE: %d began, %d ended", begun, ended)
	}
	d.engine.Fails = func() error { // the log is away from now on
		return errors.Join(errors.New("no memory is left"), d.log.Close())
	}
	if _, err := d.Create(t.Context(), ask(t, sandbox.Request{})); err == nil {
		t.Fatal("INCONCLUSIVE: it was made")
	}
	d.Close()
	if err := d.file.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := w.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	*d = *n
	if begun, ended := ends(); begun != 2 || ended != 2 {
		t.Errorf("%d sandboxes began, %d have an end on record", begun, ended)
	}
}
