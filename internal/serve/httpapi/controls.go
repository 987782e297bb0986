package httpapi

import (
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// controls answers when all attempts were made, in a twin that counts against the quota of
// the sandbox's owner.
func (s sandboxRoutes) controls(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	report, err := s.cfg.Sandboxes.Prove(r.Context(), sb.Info().ID)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewControls(report))
}

func viewControls(r attest.Report) api.Controls {
	v := api.Controls{
		Sandbox: r.Sandbox, Run: r.Run, Twin: r.Twin, TwinRun: r.TwinRun, Template: r.Template, Engine: r.Engine, Policy: r.Policy,
		Holds: r.Holds(), Limits: viewLimits(r.Limits), TwinHas: viewLimits(r.Tried),
	}
	for _, c := range r.Controls {
		v.Controls = append(v.Controls, api.Control{Name: c.Name, Outcome: string(c.Outcome), Tried: c.Tried, Says: c.Says})
	}
	return v
}

func viewLimits(l engine.Limits) api.Limits {
	return api.Limits{MemoryBytes: l.MemoryBytes, DiskBytes: l.DiskBytes, Pids: l.Pids}
}
