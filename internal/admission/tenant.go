package admission

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// tenant is what is known of one sandbox. A run that works in several sandboxes
// has one for each: they share no facts, since their policies may differ.
// Nothing holds mu while the log is written.
type tenant struct {
	run  Run   // whose Policy is the planning one if it is a plan
	plan *plan // nil: it is none

	narrowing narrowed // what its client gave up of the network; has a lock of its own
	law       law      // the run's policy, with what narrows it; has a lock of its own
	known     knowledge
	ledger    *ledger.Ledger

	mu          sync.Mutex      // guards all below
	used        int             // records that the guest caused
	begun       bool            // there is a record of it
	first, last uint64          // the numbers of its first and last record
	cut         bool            // used passed the quota; for ever
	cutTold     bool            // and the log says so
	ids         map[string]bool // request ids that are taken
	refusals    map[refusalKey]*refusal
	displayed   map[shownKey]*showing      // what was shown of metadata and pages; nil: it is on record
	shown       []*refusal                 // for `cofferdam why`, oldest first
	names       map[string]bool            // refused names that have a record of their own
	holding     int                        // requests that are kept waiting
	served      map[uint64]*servedFile     // by record
	files       map[pkgref.Ref]*servedFile // the last file of each release
	brought     map[pkgref.Ref]string      // releases inside of served files, by which release
	claims      map[pkgref.Ref]string      // specifiers in commands, by package
	running     map[string]audit.Record    // started commands, by id
	finished    map[string]bool            // commands whose end is on record
	accounts    accounts                   // of what was found on the disk
	rehearsals  map[string]*rehearsal      // of its installs, by their keys
	deferred    []approval.Ask             // wishes that a rehearsal may make part of a tree
	inside      map[pkgref.Ref][]string    // paths in what was served, by release; not known of what another daemon served
	insidePaths int                        // in inside, together

	life context.Context //nolint:containedctx // as long as it is registered: a rehearsal outlives the request that began it
	end  context.CancelFunc
}

func newTenant(r Run, config *Config, shared *ledger.Budget) *tenant {
	p := newPlan(&r)
	t := &tenant{
		run: r, plan: p, ids: map[string]bool{}, names: map[string]bool{}, displayed: map[shownKey]*showing{}, refusals: map[refusalKey]*refusal{},
		served: map[uint64]*servedFile{}, files: map[pkgref.Ref]*servedFile{}, brought: map[pkgref.Ref]string{},
		claims: map[pkgref.Ref]string{}, running: map[string]audit.Record{}, finished: map[string]bool{}, accounts: newAccounts(),
	}
	t.rehearsals, t.inside = map[string]*rehearsal{}, map[pkgref.Ref][]string{}
	t.life, t.end = context.WithCancel(context.Background())
	t.law.begin(r.Policy)
	t.known = knowledge{config: config, run: &t.run, law: &t.law}
	t.ledger = ledger.New(ledger.Limits{
		Edges: config.Limits.Edges, Requirements: config.Limits.Requirements, EdgesPerParent: config.Limits.EdgesPerParent, Remembered: config.Limits.Remembered,
	}, shared, r.Lock, t.known)
	return t
}

// forget gives back what a tenant takes that is no more.
func (t *tenant) forget() {
	t.end()
	t.ledger.Close()
}

func (t *tenant) isCut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cut
}

// counts reports whether a record is one that the guest caused. Commands and
// the sandbox's own life are the host's doing and never cut a run.
func counts(r audit.Record) bool {
	if r.Outcome == audit.Installed && r.SHA256 != "" {
		return false // there are at most as many as there are served files, which count
	}
	return (r.Kind == audit.KindPackage || r.Kind == audit.KindNetwork) && r.Outcome != audit.Exceeded && r.Detail["event"] != "repeats"
}

// record appends a record of this sandbox, with a request id of its own unless
// it has one. Past the quota it records that, once, and refuses.
func (c *Controller) record(ctx context.Context, t *tenant, r audit.Record) (audit.Record, error) {
	r.Run, r.Sandbox, r.Policy = t.run.Run, t.run.Sandbox, t.policy().Digest()
	counted := counts(r)
	t.mu.Lock()
	if r.RequestID == "" {
		r.RequestID = t.newID()
	}
	t.cut = t.cut || counted && t.used >= c.config.Limits.Records
	refused := counted && t.cut
	if counted && !refused {
		t.used++
	}
	t.mu.Unlock()
	if refused {
		return r, c.cutOff(ctx, t)
	}
	r, err := c.config.Log.Append(ctx, r)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.noted(r.Seq)
	case counted:
		t.used--
	}
	return r, err
}

// noted takes a record's number; t.mu is held.
func (t *tenant) noted(seq uint64) {
	if !t.begun {
		t.begun, t.first = true, seq
	}
	t.first, t.last = min(t.first, seq), max(t.last, seq)
}

// cutOff returns the refusal of a run that is cut, and sees to it that the log
// says so: a record that fails now is tried again with the next request.
func (c *Controller) cutOff(ctx context.Context, t *tenant) error {
	cut := fault.New(fault.ErrForbidden, "run %s has made more than %d records, so all its further requests are refused",
		clip(t.run.Run, 64), c.config.Limits.Records)
	t.mu.Lock()
	told := t.cutTold
	t.cutTold = true
	t.mu.Unlock()
	if told {
		return cut
	}
	_, err := c.record(ctx, t, audit.Record{Kind: audit.KindSandbox, Outcome: audit.Exceeded, Rule: "quota.records", Reason: cut.Error()})
	if err != nil {
		t.mu.Lock()
		t.cutTold = false
		t.mu.Unlock()
		return errors.Join(cut, err)
	}
	if c.config.OnExceeded != nil {
		errand.Go(func() { c.config.OnExceeded(t.run.Sandbox) })
	}
	return cut
}

// newID returns a short id, unique among those of this tenant, which holds mu.
func (t *tenant) newID() string {
	const alphabet = "abcdefghijkmnpqrstuvwxyz23456789" // no l, no o, no 0, no 1
	for {
		var b [5]byte
		_, _ = rand.Read(b[:]) // never fails
		id := base32.NewEncoding(alphabet).EncodeToString(b[:])
		if !t.ids[id] {
			t.ids[id] = true
			return id
		}
	}
}
