package httpapi

import (
	"net/http"
	"sync"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/plan"
)

// maxKeptPlans bounds the plans that GET gives again; maxBecause the bytes of a
// reason.
const (
	maxKeptPlans = 64
	maxBecause   = 4 << 10
)

// plans are the last plans that were made, the oldest leaving first. They are
// gone with the daemon; the log keeps the verdicts.
type plans struct {
	mu    sync.Mutex // guards both
	byRun map[string]api.Plan
	order []string
}

func (p *plans) keep(made api.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byRun == nil {
		p.byRun = map[string]api.Plan{}
	}
	if _, known := p.byRun[made.Run]; !known {
		p.order = append(p.order, made.Run)
	}
	p.byRun[made.Run] = made
	for len(p.order) > maxKeptPlans {
		delete(p.byRun, p.order[0])
		p.order = p.order[1:]
	}
}

func (p *plans) get(run string) (api.Plan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made, known := p.byRun[run]
	return made, known
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
	made := viewPlan(run, weighed, body.Notes)
	s.plans.keep(made)
	return writeJSON(w, r, http.StatusOK, made)
}

// showPlan gives a run's last plan again.
func (s runRoutes) showPlan(w http.ResponseWriter, r *http.Request) error {
	if err := s.ownRun(r, r.PathValue("run")); err != nil {
		return err
	}
	made, known := s.plans.get(r.PathValue("run"))
	if !known {
		return fault.New(fault.ErrNotFound, "no plan of run %q is kept; cofferdam audit list --run has its verdicts", r.PathValue("run"))
	}
	return writeJSON(w, r, http.StatusOK, made)
}
