package admission

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// detailLaw has the digest of a policy that narrows a run's own from then on. The
// log is where that is kept, as with detailNarrowing.
const detailLaw = "narrowed_by_policy"

// nothingGoes is what a policy that can't be read any more narrows a run to.
const nothingGoes = "packages: { default: deny }\ndefaults: { action: deny }\n"

// runPolicies is what a run is judged by: the policy that it began with, for ever, and
// the policies that narrow it since.
type runPolicies struct {
	changing sync.Mutex // held over the record of a change and the change
	now      atomic.Pointer[policy.Policy]
}

func (l *runPolicies) beginPolicy(p *policy.Policy) { l.now.Store(p) }

// policy is what the tenant is judged by now. A question of several steps may meet two: each is
// judged by all that was in force when it was asked.
func (t *tenant) policy() *policy.Policy { return t.known.Policy() }

// digestOfPolicy is a policy's digest; "" for the tenant that is made of records alone, which has none.
func digestOfPolicy(p *policy.Policy) string {
	if p == nil {
		return ""
	}
	return p.Digest()
}

// NarrowPolicy has a sandbox judged by a second policy beside its own, from now
// on and in its copies, and records that first: what either refuses is refused.
// It can't be taken back.
func (c *Controller) NarrowPolicy(ctx context.Context, sandbox string, by *policy.Policy) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	t.law.changing.Lock()
	defer t.law.changing.Unlock()
	next, ok := t.policy().NarrowedBy(t.asPlanned(by))
	if !ok {
		return fault.New(fault.ErrConflict, "the sandbox %s is narrowed by too many policies already; end it instead", sandbox)
	}
	if next == t.policy() {
		return nil
	}
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Narrowed, User: t.run.User, Detail: map[string]string{detailLaw: by.Digest()},
		Reason: "the policy that was put under its policy's name narrows the run",
	})
	if err != nil {
		return err
	}
	t.law.now.Store(next)
	if err := t.ledger.Anew(); err != nil { // what can't be reached anew is refused, and says so
		return fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s is narrowed, but what its packages require could not be weighed anew", sandbox)
	}
	return nil
}

func (t *tenant) asPlanned(p *policy.Policy) *policy.Policy {
	if t.run.Plan {
		return p.Planning()
	}
	return p
}

// replayLaw takes a record of the sandbox, or of one that it is a copy of. A
// policy that can't be read any more closes everything.
func (t *tenant) replayLaw(r audit.Record) {
	digest, named := r.Detail[detailLaw]
	if r.Outcome != audit.Narrowed || !named {
		return
	}
	by, err := t.policyOf(digest)
	if err == nil {
		if next, ok := t.policy().NarrowedBy(t.asPlanned(by)); ok {
			t.law.now.Store(next)
			return
		}
	}
	closed, err := policy.Parse("a policy that is not kept any more", []byte(nothingGoes))
	if err != nil {
		return // not reached: it is a constant
	}
	if next, ok := t.policy().NarrowedBy(closed); ok {
		closed = next
	}
	t.law.now.Store(closed)
}

// lawKey names a policy with all that narrows it.
func lawKey(p *policy.Policy) string {
	return strings.Join(append([]string{p.Digest()}, p.Narrowings()...), "+")
}

func (t *tenant) policyOf(digest string) (*policy.Policy, error) {
	if t.run.Kept == nil {
		return nil, fault.New(fault.ErrNotFound, "no policies are kept")
	}
	return t.run.Kept(digest)
}
