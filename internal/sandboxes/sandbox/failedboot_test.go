package sandbox_test

import (
	"context"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// parting is an instance that tells when it is gone.
type parting struct {
	*fake.Instance
	gone func()
}

func (p parting) Destroy(ctx context.Context) error {
	defer p.gone()
	return p.Instance.Destroy(ctx)
}

// TestTheEndOfOneThatDidNotComeUpIsOnRecordWhenItIsGone, and not before: until then its programs, if it is a copy, could ask for something
// that would be on record behind its end.
func TestTheEndOfOneThatDidNotComeUpIsOnRecordWhenItIsGone(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	ends := func() (n int) {
		for r, err := range d.log.Records(context.WithoutCancel(t.Context()), audit.Filter{Kinds: []audit.Kind{audit.KindSandbox}}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Outcome == audit.Finished {
				n++
			}
		}
		return n
	}
	gone := 0
	d.engine.Wrap = func(i *fake.Instance) engine.Instance {
		return parting{i, func() {
			if gone++; ends() != 0 {
				t.Error("its end is on record while it lives")
			}
		}}
	}
	d.world.Init = []string{"/bin/false"}
	if _, err := d.Create(t.Context(), ask(t, sandbox.Request{})); err == nil {
		t.Error("created without an agent")
	}
	if gone != 1 || ends() != 1 {
		t.Errorf("taken away %d times, and %d ends are on record", gone, ends())
	}
}
