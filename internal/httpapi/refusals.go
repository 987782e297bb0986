package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// maxLastRuns bounds how far back a token's last run is looked for.
const maxLastRuns = 1000

// tellRefusals answers with what a run was refused, as `cofferdam why` tells it.
func (s runRoutes) tellRefusals(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := known(q, "run", "sandbox", "request"); err != nil {
		return err
	}
	sought := admission.Sought{Run: q.Get("run"), Sandbox: q.Get("sandbox"), Request: q.Get("request")}
	run, err := s.soughtRun(r, &sought)
	if err != nil {
		return err
	}
	all, err := s.cfg.Door.RefusalsOf(r.Context(), sought)
	if err != nil {
		return err
	}
	answer := api.Refusals{Run: run, Refusals: []api.Refusal{}}
	for _, one := range all {
		answer.Refusals = append(answer.Refusals, api.Refusal(one))
	}
	return writeJSON(w, http.StatusOK, answer)
}

// soughtRun finds the run that is meant, which must be the caller's.
func (s runRoutes) soughtRun(r *http.Request, sought *admission.Sought) (run string, err error) {
	switch {
	case sought.Run != "":
	case sought.Sandbox != "":
		began, err := s.lastBegun(r, "sandbox", sought.Sandbox)
		if err != nil {
			return "", err
		}
		if began.Run == "" {
			return "", fault.New(fault.ErrNotFound, "there is no sandbox %.80q on record", sought.Sandbox)
		}
		return began.Run, s.ownRun(r, began.Run)
	case sought.Request != "":
		sought.Run, sought.Sandbox, err = s.runOfRequest(r, sought.Request)
	default:
		began, err := s.lastBegun(r, "", "")
		if err != nil {
			return "", err
		}
		if began.Run == "" {
			return "", fault.New(fault.ErrNotFound, "there is no run on record yet")
		}
		sought.Run = began.Run
		return sought.Run, nil
	}
	if err != nil {
		return "", err
	}
	return sought.Run, s.ownRun(r, sought.Run)
}

// runOfRequest finds the sandbox that was shown a request's id last, among those of
// the caller.
func (s runRoutes) runOfRequest(r *http.Request, request string) (run, sandbox string, err error) {
	for _, field := range []string{"request", "approval"} {
		found, err := s.newest(r, index.Filter{Where: map[string][]string{field: {request}}}, audit.Filter{}, func(rec audit.Record) bool {
			return rec.RequestID == request || rec.Approval == request
		})
		if err != nil || found.Run != "" {
			return found.Run, found.Sandbox, err
		}
	}
	return "", "", fault.New(fault.ErrNotFound, "nothing was refused under the id %.40q", request)
}

// lastBegun is the record with which the caller's last sandbox began that has a field
// ("sandbox", or none) with a value. Who made a plan since asks about the run before.
func (s runRoutes) lastBegun(r *http.Request, field, value string) (audit.Record, error) {
	outcomes := []audit.Outcome{audit.Started, audit.Restored}
	where := map[string][]string{"kind": {string(audit.KindSandbox)}, "outcome": {string(audit.Started), string(audit.Restored)}}
	if field != "" {
		where[field] = []string{value}
	}
	return s.newest(r, index.Filter{Where: where}, audit.Filter{Kinds: []audit.Kind{audit.KindSandbox}, Outcomes: outcomes}, func(rec audit.Record) bool {
		return rec.Detail["plan"] == "" && (field == "" || rec.Sandbox == value)
	})
}

// newest is the newest record of one of the caller's runs that meets; without an index
// the log is read through. A record without a run is none.
func (s runRoutes) newest(r *http.Request, indexed index.Filter, plain audit.Filter, meets func(audit.Record) bool) (audit.Record, error) {
	candidates, err := s.candidates(r.Context(), indexed, plain, meets)
	if err != nil {
		return audit.Record{}, err
	}
	who, err := callerOf(r.Context())
	if err != nil {
		return audit.Record{}, err
	}
	for i, rec := range candidates {
		if i == maxLastRuns {
			break
		}
		owns := who.all()
		if !owns {
			if owns, err = s.owns(r.Context(), who.token.ID, rec.Sandbox); err != nil {
				return audit.Record{}, err
			}
		}
		if owns {
			return rec, nil
		}
	}
	return audit.Record{}, nil
}

// candidates are the records that meet, the newest first, at most maxLastRuns.
func (s runRoutes) candidates(ctx context.Context, indexed index.Filter, plain audit.Filter, meets func(audit.Record) bool) ([]audit.Record, error) {
	if s.cfg.Audit.Index != nil {
		var seqs []uint64
		err := s.cfg.Audit.Index.View(ctx, func(v *index.View) (err error) {
			seqs, _, err = v.Select(ctx, indexed)
			return err
		})
		if err != nil || len(seqs) == 0 {
			return nil, err
		}
		plain = audit.Filter{Seqs: seqs[max(0, len(seqs)-maxLastRuns):]}
	}
	var found []audit.Record
	for rec, err := range s.cfg.Log.Records(ctx, plain) {
		if err != nil {
			return nil, err
		}
		if rec.Run == "" || !meets(rec) {
			continue
		}
		if found = append(found, rec); len(found) > 2*maxLastRuns {
			found = slices.Clone(found[maxLastRuns:])
		}
	}
	slices.Reverse(found)
	return found, nil
}
