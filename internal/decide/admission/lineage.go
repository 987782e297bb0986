package admission

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Ancestor is a sandbox of which another is a copy, with its records up to the
// moment of the copy.
type Ancestor struct {
	Sandbox string `json:"sandbox"`
	From    uint64 `json:"from"` // the first of its records
	Upto    uint64 `json:"upto"` // the last one that counts
}

// maxAncestors bounds how often copies of copies can be made: all their records
// are read again when a daemon starts.
const maxAncestors = 64

// Lineage is what the door knows of a sandbox at one moment, for a copy of it.
type Lineage struct {
	// Ancestors are those whose records are the copy's ledger, the oldest first,
	// the sandbox itself last.
	Ancestors []Ancestor
	Facts     *ledger.Facts
}

// Lineage returns what a copy of the sandbox that is made now begins with. Packages that are served
// while the copy is being written count for it, too, if this is asked for afterwards; asked for
// before, packages may be missing.
func (c *Controller) Lineage(_ context.Context, sandbox string) (Lineage, error) {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return Lineage{}, err
	}
	if t.run.Plan {
		return Lineage{}, fault.New(fault.ErrConflict, "the sandbox %s only weighs installs for a plan; there are no copies of it", sandbox)
	}
	if len(t.run.Ancestors) >= maxAncestors {
		return Lineage{}, fault.New(fault.ErrConflict, "the sandbox %s is a copy of a copy, %d times over; make a template, or install again", sandbox, maxAncestors)
	}
	facts := t.ledger.Facts() // before the records: none of what they tell is missing there
	first, last, begun := t.book.Range()
	if !begun {
		return Lineage{}, fault.New(fault.ErrConflict, "nothing of the sandbox %s is on record", sandbox)
	}
	own := Ancestor{Sandbox: t.run.Sandbox, From: first, Upto: last}
	return Lineage{Ancestors: append(slices.Clone(t.run.Ancestors), own), Facts: facts}, nil
}

// RegisterCopy makes a sandbox known that is a copy of others (Run.Ancestors):
// what was served to them, found on their disks and refused to them is known of
// it as well, and is judged again by its own policy where it is asked for again.
// facts may be nil. fault.ErrUnavailable if the log has not all of their records.
func (c *Controller) RegisterCopy(ctx context.Context, r Run, facts *ledger.Facts) error {
	if r.Sandbox == "" || r.Run == "" || r.Policy == nil || len(r.Ancestors) == 0 {
		return fault.Invalid("a copy is registered with its id, its run, its policy and its ancestors; one is missing")
	}
	t := newTenant(r, &c.config, c.remembered, &c.earlier, c.desk)
	if err := fillCopy(ctx, c, t, facts); err != nil {
		t.forgetTenant()
		return err
	}
	return c.addTenant(t)
}

// fillCopy has a copy know what its ancestors' records and its source's facts tell.
func fillCopy(ctx context.Context, c *Controller, t *tenant, facts *ledger.Facts) error {
	if err := c.inherit(ctx, t); err != nil {
		return err
	}
	if own := t.run.Narrowing; !own.IsZero() { // it counts, and not what its ancestors' records say
		t.narrowing.setNarrowing(own)
	}
	if err := t.ledger.FollowLock(); err != nil || facts == nil {
		return err
	}
	return t.ledger.Inherit(facts)
}

// inherit takes the records of a tenant's ancestors. Nobody else knows it yet.
func (c *Controller) inherit(ctx context.Context, t *tenant) error {
	for _, a := range t.run.Ancestors {
		list, err := c.ledgers.readAncestor(ctx, c.config.Log, a)
		if err != nil {
			return err
		}
		for _, r := range list {
			t.inherit(r, c.config.Limits)
		}
		if of, err := c.tenants.getTenant(a.Sandbox); err == nil { // of one that has ended its records tell: see former
			t.secrets.Inherit(of.secrets)
		}
	}
	return nil
}

// inherit takes one record of an ancestor. Its refusals are only shown: the first
// of the copy itself is on record again. It counts against no quota, but a run
// that was cut stays so.
func (t *tenant) inherit(r audit.Record, limits Limits) {
	switch r.Kind {
	case audit.KindPackage, audit.KindNetwork:
		t.inheritAsk(r)
		t.former.replayRecord(r)
	case audit.KindCommand:
		switch r.Outcome { //nolint:exhaustive // how it ended is its sandbox's own
		case audit.Started:
			t.takeClaims(r.Command, limits)
		case audit.Blocked:
			t.book.Inherit(r)
		}
	case audit.KindSandbox:
		t.replayLife(r)
	case audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild, audit.KindTool, audit.KindFinding, audit.KindFile:
	}
}

func (t *tenant) inheritAsk(r audit.Record) {
	if r.Ecosystem == SystemEcosystem {
		t.system.takeRecord(t.served, r)
		return
	}
	switch r.Outcome { //nolint:exhaustive // the others are of no ask that a copy has to know
	case audit.Served:
		t.replayServed(r)
	case audit.Installed, audit.Alarm:
		t.disk.Take(r)
	case audit.Blocked, audit.Withheld, audit.Failed, audit.Exceeded, audit.Pending, audit.WouldDeny, audit.WouldHold:
		t.disk.Take(r) // of the disk's, too many packages
		if r.Detail[records.DetailEvent] != records.EventRepeats {
			t.book.Inherit(r)
		}
	}
}
