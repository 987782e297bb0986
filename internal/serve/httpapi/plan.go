package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
)

// The bounds of the plans that are kept, which GET gives again; maxBecause bounds the bytes of a reason.
const (
	maxKeptPlans     = 64        // of one owner
	maxPlanBytes     = 4 << 20   // of one owner's
	maxAllPlansBytes = 256 << 20 // of all: tokens come and go, and their plans stay
	planCost         = 4 << 10   // that each counts for at least
	maxBecause       = 4 << 10
)

// plans are the last plans that were made, each in place of its run's last one; no owner's make another's
// leave, unless all are too many: then the one leaves who has most. They are gone with the daemon; the log
// keeps the verdicts.
type plans struct {
	mu   sync.Mutex // guards kept
	kept []keptPlan // the oldest first
}

// keptPlan is a run's plan, as it is answered. Only whoever may see the run may make one or be given it.
type keptPlan struct {
	owner, run string // by whom it was made: a token; "" is the host
	answer     []byte
}

func (k keptPlan) planCost() int { return planCost + len(k.answer) }

// keepPlan keeps a plan. One that is larger than what may be kept is not kept.
func (p *plans) keepPlan(owner, run string, answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = slices.DeleteFunc(p.kept, func(k keptPlan) bool { return k.run == run })
	made := keptPlan{owner, run, answer}
	if made.planCost() > maxPlanBytes {
		return
	}
	p.kept = append(p.kept, made)
	costs, count, all := map[string]int{}, 0, 0
	for _, k := range p.kept {
		costs[k.owner] += k.planCost()
		all += k.planCost()
		if k.owner == owner {
			count++
		}
	}
	for count > maxKeptPlans || costs[owner] > maxPlanBytes {
		gone := p.dropOldest(owner)
		costs[owner], all, count = costs[owner]-gone, all-gone, count-1
	}
	for all > maxAllPlansBytes {
		most := p.kept[0].owner
		for _, k := range p.kept { // of those that have as much, the one whose oldest is older
			if costs[k.owner] > costs[most] {
				most = k.owner
			}
		}
		gone := p.dropOldest(most)
		costs[most], all = costs[most]-gone, all-gone
	}
}

// dropOldest drops an owner's oldest plan and returns its cost. Needs the lock, and that there is one.
func (p *plans) dropOldest(owner string) (cost int) {
	i := slices.IndexFunc(p.kept, func(k keptPlan) bool { return k.owner == owner })
	cost = p.kept[i].planCost()
	p.kept = slices.Delete(p.kept, i, i+1)
	return cost
}

// lastPlan is the last plan of a run; nil: none is kept.
func (p *plans) lastPlan(run string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if k.run == run {
			return k.answer
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
	s.plans.keepPlan(by.ownerOf().Token, run, answer)
	return writeJSON(w, r, http.StatusOK, json.RawMessage(answer))
}

// showPlan gives a run's last plan again.
func (s runRoutes) showPlan(w http.ResponseWriter, r *http.Request) error {
	if err := s.ownRun(r, r.PathValue("run")); err != nil {
		return err
	}
	answer := s.plans.lastPlan(r.PathValue("run"))
	if answer == nil {
		return fault.New(fault.ErrNotFound, "no plan of run %q is kept; cofferdam audit list --run has its verdicts", r.PathValue("run"))
	}
	return writeJSON(w, r, http.StatusOK, json.RawMessage(answer))
}
