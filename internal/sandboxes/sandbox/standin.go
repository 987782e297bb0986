package sandbox

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/expiry"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// StandIn is a sandbox without a manager and an engine: what speaks to a
// Manager's interface is tested with it (internal/serve/httpapi/backend/backendtest).
type StandIn struct{ *Sandbox }

// NewStandIn makes a running one. waits may be a list whose sandbox is frozen
// for real requests.
func NewStandIn(info Info, p *policy.Policy, waits *suspend.List) StandIn {
	s := newSandbox(info, p, nil, expiry.New(func(string, expiry.Cause) {}))
	s.waits, s.state = waits, Running
	return StandIn{s}
}

// Become changes its state; Destroyed closes Gone, once.
func (s StandIn) Become(to State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to == Destroyed && s.state != Destroyed {
		close(s.gone)
	}
	s.state = to
}

// KeepsFiles has it be one that is paused without its memory, or not.
func (s StandIn) KeepsFiles(alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pretends.Files = alone
}

// WasSilent has it be one whose guest did not answer when it was paused, or not.
func (s StandIn) WasSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pretends.Silent = silent
}

// Sticks has it be one that could not be taken away.
func (s StandIn) Sticks(how Stuck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removal.failed = how
}

// Lives sets when it would end, from now on. Nothing ends it.
func (s StandIn) Lives(l Lifetime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifetime = l
	s.ends.Start(s.info.ID, expiry.Terms{TTL: l.TTL, Idle: l.Idle}, l.TTL)
}
