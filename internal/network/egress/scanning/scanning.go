// Package scanning looks for secrets and personal data in the requests of sandboxes, as
// they leave, and reports, redacts or blocks them as the policy says. It sees them before
// any credential is put in, and passes placeholders over: where those may not go is
// package credentials' to say.
package scanning

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// fresh is how long an answer about what is looked for holds.
const fresh = time.Second

// maxTold is how many findings of one connection are remembered as told.
const maxTold = 1_000

// Exchanges have requests scanned as the door says.
type Exchanges struct {
	Door door.Secrets
	Set  func() *dlp.Set
	// Then sees to what was scanned; nil: nothing does.
	Then requests.Exchanges
}

// Exchange implements requests.Exchanges.
func (e Exchanges) Exchange(ctx context.Context, of requests.Connection) (requests.Exchange, error) {
	v := &scannedVisit{
		door: e.Door, set: e.Set, at: door.HostPort{Sandbox: of.Sandbox, Name: of.Name, Port: of.Port}, searches: of.Searches,
		told: map[told]bool{},
	}
	if e.Then != nil {
		then, err := e.Then.Exchange(ctx, of)
		if err != nil {
			return nil, err
		}
		v.then = then
	}
	return v, nil
}

// scannedVisit is what sees to the requests of one connection.
type scannedVisit struct {
	door     door.Secrets
	set      func() *dlp.Set
	at       door.HostPort
	searches chan struct{} // a place for each body that is kept to be looked through; nil: any number
	then     requests.Exchange

	mu     sync.Mutex // guards all below
	asked  time.Time  // when plan and known were; zero: never
	plan   dlp.Plan
	known  []string      // placeholders, in the forms that they may have
	told   map[told]bool // findings that are on record
	enough bool          // the sandbox has as many on record as it may
}

// told is a finding that is on record: its repeats need not be told.
type told struct {
	where, rule string
	outcome     dlp.Outcome
	sum         [32]byte
}

// Outgoing implements requests.Exchange.
func (v *scannedVisit) Outgoing(r *http.Request) error {
	plan, known, err := v.currentTerms(r.Context())
	if err != nil {
		return err
	}
	if !plan.Off() {
		l := &look{scannedVisit: v, plan: plan, known: known, request: r}
		if err := l.through(); err != nil {
			return err
		}
	}
	if v.then == nil {
		return nil
	}
	return v.then.Outgoing(r)
}

// Incoming implements requests.Exchange.
func (v *scannedVisit) Incoming(a *http.Response) error {
	if v.then == nil {
		return nil
	}
	return v.then.Incoming(a)
}

// currentTerms are what is looked for now, and what is known to be no secret.
func (v *scannedVisit) currentTerms(ctx context.Context) (dlp.Plan, []string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.asked.IsZero() && time.Since(v.asked) < fresh {
		return v.plan, v.known, nil
	}
	a, err := v.door.Scans(ctx, door.ScansAsk{Sandbox: v.at.Sandbox})
	if err != nil {
		return dlp.Plan{}, nil, &requests.Refusal{Rule: door.RuleScanning, Reason: "nobody can say what is to be looked for in a request", Status: http.StatusServiceUnavailable}
	}
	var known []string
	for _, p := range a.Placeholders {
		known = append(known, exchange.Forms(p)...)
	}
	v.asked, v.plan, v.known = time.Now(), a.Plan, known
	return v.plan, v.known, nil
}

// selectNews selects those findings that have to be told: what is on record need not be again, but
// for what is blocked, whose client is told the record's id.
func (v *scannedVisit) selectNews(where string, found []dlp.Finding) []dlp.Finding {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(found), func(f dlp.Finding) bool {
		return f.Outcome != dlp.Block && (v.enough || v.told[told{where, f.Rule, f.Outcome, f.Sum}])
	})
}

// noteFindings remembers what is on record.
func (v *scannedVisit) noteFindings(where string, found []dlp.Finding, enough bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.enough = v.enough || enough
	for _, f := range found {
		if len(v.told) < maxTold {
			v.told[told{where, f.Rule, f.Outcome, f.Sum}] = true
		}
	}
}
