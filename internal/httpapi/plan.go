package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/plan"
)

// What is kept of one owner's plans, which GET gives again; maxBecause bounds the bytes of a reason.
const (
	maxKeptPlans = 64
	maxPlanBytes = 4 << 20 // of all of them
	maxBecause   = 4 << 10
)

// plans are the last plans of each owner, the oldest leaving first: no owner's make another's leave. They
// are gone with the daemon; the log keeps the verdicts.
type plans struct {
	mu sync.Mutex           // guards of
	of map[string]*ownPlans // by token; "" is the host's
}

// ownPlans are one owner's, as they are answered.
type ownPlans struct {
	byRun map[string][]byte
	order []string // of the runs, the oldest first
	bytes int
}

// keep keeps a plan in place of its run's last one. One that is larger than what may be kept is not kept.
func (p *plans) keep(owner, run string, answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.of[owner]
	if own == nil {
		own = &ownPlans{byRun: map[string][]byte{}}
	}
	own.drop(run)
	if len(answer) <= maxPlanBytes {
		own.byRun[run], own.order, own.bytes = answer, append(own.order, run), own.bytes+len(answer)
	}
	for len(own.order) > maxKeptPlans || own.bytes > maxPlanBytes {
		own.drop(own.order[0])
	}
	if p.of == nil {
		p.of = map[string]*ownPlans{}
	}
	if p.of[owner] = own; len(own.order) == 0 {
		delete(p.of, owner)
	}
}

func (o *ownPlans) drop(run string) {
	o.bytes -= len(o.byRun[run])
	delete(o.byRun, run)
	o.order = slices.DeleteFunc(o.order, func(kept string) bool { return kept == run })
}

// get is the last plan of a run, which is a token's or, for who may see all, anybody's; nil: none is kept.
func (p *plans) get(by caller, run string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own := p.of[by.owner().Token]; own != nil && own.byRun[run] != nil {
		return own.byRun[run]
	}
	if by.all() {
		for _, owner := range slices.Sorted(maps.Keys(p.of)) {
			if answer := p.of[owner].byRun[run]; answer != nil {
				return answer
			}
		}
	}
	return nil
}

// makePlan weighs what a resolver chose.
func (s runRoutes) makePlan(w http.ResponseWriter, r *http.Request) error {
	var body api.ResolvedPlan
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if len(body.Because) > maxBecause {
		return fault.Invalid("the reason has %d bytes; it may have %d", len(body.Because), maxBecause)
	}
	var chosen []installer.Choice
	for _, c := range body.Releases {
		chosen = append(chosen, installer.Choice(c))
	}
	choices, err := plan.Choices(pkgref.Ecosystem(body.Ecosystem), chosen)
	if err != nil {
		return err
	}
	run := r.PathValue("run")
	if err := s.ownRun(r, run); err != nil {
		return err
	}
	weighed, err := s.cfg.Door.Plan(r.Context(), run, choices)
	if err != nil {
		return err
	}
	if body.Request {
		if err := s.cfg.Door.RequestPlan(r.Context(), run, body.Because, &weighed); err != nil {
			return err
		}
	}
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	answer, err := json.Marshal(viewPlan(run, weighed, body.Notes))
	if err != nil {
		return err
	}
	s.plans.keep(by.owner().Token, run, answer)
	return writeJSON(w, r, http.StatusOK, json.RawMessage(answer))
}

// showPlan gives a run's last plan again.
func (s runRoutes) showPlan(w http.ResponseWriter, r *http.Request) error {
	if err := s.ownRun(r, r.PathValue("run")); err != nil {
		return err
	}
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	answer := s.plans.get(by, r.PathValue("run"))
	if answer == nil {
		return fault.New(fault.ErrNotFound, "no plan of run %q is kept; cofferdam audit list --run has its verdicts", r.PathValue("run"))
	}
	return writeJSON(w, r, http.StatusOK, json.RawMessage(answer))
}
