package admission

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// tenant is what is known of one sandbox. A run that works in several sandboxes
// has one for each: they share no facts, since their policies may differ.
// Nothing holds mu while the log is written.
type tenant struct {
	run      Run             // whose Policy is the planning one if it is a plan
	shown    *planning.Shown // what a plan's run was shown; nil: it is none
	verdicts *policy.Policy  // of a plan, the run's own, by which it is weighed

	clients claims.Clients // whose commands ask for packages

	narrowing narrowed      // what its client gave up of the network; has a lock of its own
	weighed   weighing      // what its refusals were weighed by; has a lock of its own
	unlisted  unlisted      // the names that wait for a person; has a lock of its own
	lookups   lookups       // the names that led nowhere; has a lock of its own
	requests  requests      // to hosts, that have a record; has a lock of its own
	trusts    trusts        // the authority that it was told of later; has a lock of its own
	secrets   *secret.Lease // those that it uses
	former    *former       // those of before; has a lock of its own
	reached   reached       // those of the hosts that it has connected to; has a lock of its own
	ownerKey  string        // see audit.OwnerKeys; "": the run is the host's
	law       runPolicies   // the run's policy, with what narrows it; has a lock of its own
	known     knowledge
	judging   *judgement
	ledger    *ledger.Ledger

	book       *records.Book        // what is on record of it
	served     *records.Deliveries  // the files that it was served
	hosts      *records.Connections // its connections that go on
	disk       *provenance.Accounts // what was found on its disk
	system     system               // what it was brought of the distribution; has a lock of its own
	calls      calls                // of tools; has a lock of its own
	built      attempts             // to build source distributions; has a lock of its own
	rehearsals *planning.Rehearsals // of its installs; nil: what they bring is not found out

	mu       sync.Mutex              // guards all below
	holding  int                     // requests that are kept waiting
	claims   map[pkgref.Ref]string   // specifiers in commands, by package
	running  map[string]audit.Record // started commands, by id
	finished map[string]bool         // commands whose end is on record

	life context.Context //nolint:containedctx // as long as it is registered: a rehearsal outlives the request that began it
	end  context.CancelFunc
}

// payerOf is whose share what is done for the sandbox takes: its token's, or its own.
func (r Run) payerOf() string { return cmp.Or(r.Token, r.Sandbox) }

func newTenant(r Run, config *Config, shared *ledger.Budget, earlier *provenance.Earlier, desk *planning.Desk) *tenant {
	t := &tenant{
		run: r, clients: config.Clients, served: records.NewDeliveries(), hosts: records.NewConnections(),
		claims: map[pkgref.Ref]string{}, running: map[string]audit.Record{}, finished: map[string]bool{},
	}
	t.judging = config.judging
	t.ownerKey = config.owners.Of(r.Run, r.Token)
	t.calls.owner = r.payerOf()
	t.life, t.end = context.WithCancel(context.Background())
	if r.Plan {
		t.shown, t.verdicts, t.run.Policy = planning.NewShown(), r.Policy, r.Policy.Planning()
	}
	t.secrets, t.former = config.Secrets.Lease(), newFormer(config.FindingsKey)
	t.law.beginPolicy(t.run.Policy)
	t.known = knowledge{config: config, run: &t.run, law: &t.law}
	t.ledger = ledger.New(ledger.Limits{
		Edges: config.Limits.Edges, Requirements: config.Limits.Requirements, EdgesPerParent: config.Limits.EdgesPerParent, Remembered: config.Limits.Remembered,
	}, shared, r.Lock, t.known)
	t.book = records.NewBook(records.Config{
		Log: config.Log, Run: r.Run, Sandbox: r.Sandbox, User: r.User, Token: r.Token, Policy: func() string { return digestOfPolicy(t.policy()) }, OnExceeded: config.OnExceeded, OnOwed: config.owed,
		Limits: records.Limits{Records: config.Limits.Records, Names: config.Limits.Names, Refusals: config.Limits.Refusals},
	})
	disk := provenance.Config{Book: t.book, Served: t.served, Policy: t.policy, Most: config.Limits.Inventory, Sandbox: r.Sandbox, Logger: config.Logger}
	if r.Token == "" { // a token is told nothing of what others were served
		disk.Earlier = func(ctx context.Context, release pkgref.Ref) ([]audit.Record, error) {
			return t.usableRecords(ctx, earlier, release)
		}
	}
	t.disk = provenance.New(disk)
	if desk != nil && !r.Plan {
		t.rehearsals = desk.For(t.life, r.Sandbox, r.Token, t.memberAsk)
	}
	return t
}

// forgetTenant gives back what a tenant takes that is no more.
func (t *tenant) forgetTenant() {
	t.end()
	t.secrets.End()
	t.ledger.Close()
}

// tenants are the sandboxes that are registered. Safe for concurrent use.
type tenants struct {
	// left is given the book of one that is forgotten with something that is not on record.
	left func(*records.Book)

	mu sync.RWMutex // guards by
	by map[string]*tenant
}

// getTenant returns what is known of a sandbox.
func (s *tenants) getTenant(sandbox string) (*tenant, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.by[sandbox]; t != nil {
		return t, nil
	}
	return nil, fault.New(fault.ErrForbidden, "sandbox %q is not known here, so everything is refused", redact.Cut(sandbox, 64))
}

// admitTenant returns a sandbox that may still ask.
func (s *tenants) admitTenant(ctx context.Context, sandbox string) (*tenant, error) {
	t, err := s.getTenant(sandbox)
	if err != nil {
		return nil, err
	}
	return t, t.book.Open(ctx)
}

// addTenant takes a tenant, or forgets it if its sandbox is registered already.
func (s *tenants) addTenant(t *tenant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.by[t.run.Sandbox]; known {
		t.forgetTenant()
		return fault.New(fault.ErrConflict, "sandbox %s is registered already", t.run.Sandbox)
	}
	s.by[t.run.Sandbox] = t
	return nil
}

func (s *tenants) removeTenant(sandbox string) {
	s.mu.Lock()
	gone := s.by[sandbox]
	delete(s.by, sandbox)
	s.mu.Unlock()
	if gone == nil {
		return
	}
	gone.forgetTenant()
	if gone.book.Unsummarised() {
		s.left(gone.book)
	}
}

// tenantsOfRun are a sandbox and those that work for the same run beside it.
func (s *tenants) tenantsOfRun(t *tenant) []*tenant {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := []*tenant{t}
	for _, other := range s.by {
		if other != t && other.run.Run == t.run.Run {
			all = append(all, other)
		}
	}
	return all
}

func (s *tenants) listTenants() []*tenant {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.by))
}
