package admission

import (
	"context"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// lookups are the names of hosts that were looked up for a sandbox and have led nowhere yet. A
// part of such a name may be the guest's own, which a name server then hears.
type lookups struct {
	mu      sync.Mutex // guards nowhere
	nowhere map[string]bool
}

// takeName takes a name in that is about to be looked up; false: there are too many others.
func (l *lookups) takeName(name string, most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.nowhere[name] && len(l.nowhere) >= most {
		return false
	}
	if l.nowhere == nil {
		l.nowhere = map[string]bool{}
	}
	l.nowhere[name] = true
	return true
}

// noteLed takes that a name leads to a host: it names what exists, and counts no more.
func (l *lookups) noteLed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.nowhere, name)
}

// replayRecord takes a record of the network.
func (l *lookups) replayRecord(r audit.Record, limits Limits) {
	switch name := r.Detail[records.DetailName]; r.Outcome { //nolint:exhaustive // the others are of no name that was looked up
	case audit.Asked:
		l.takeName(name, limits.orDefaults().Names)
	case audit.Started:
		l.noteLed(name)
	}
}

// Resolving implements Door.
func (q *Requests) Resolving(ctx context.Context, ask door.ResolveAsk) (door.Answer, error) {
	t, err := q.tenants.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	d, err := t.judgeHost(ctx, ask.Name, ask.Port, "")
	if err != nil {
		return door.Answer{}, err
	}
	if d.Allowed() && d.Approval == "" && !policy.ListsHost(t.policy(), ask.Name) && !t.lookups.takeName(ask.Name, t.known.config.Limits.Names) {
		d = policy.Decision{
			Effect: policy.Deny, Rule: ruleNamesQuota, ResolvedBy: policy.ByNetwork,
			Reason: "more different names that lead nowhere were looked up than a sandbox may have looked up",
		}
	}
	if !d.Allowed() {
		r, err := t.refuseHost(ctx, d, audit.Blocked, ask.Name, ask.Port)
		return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
	}
	return door.Answer{Decision: d}, t.book.Ask(ctx, audit.Record{Kind: audit.KindNetwork, Outcome: audit.Asked, Detail: hostDetail(ask.Name, 0)})
}
