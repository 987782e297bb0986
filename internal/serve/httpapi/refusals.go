package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// lookedAt is how many records are read at a time when the newest of the caller's is looked for.
const lookedAt = 1000

// tellRefusals answers with what a run was refused, as `cofferdam why` tells it.
func (s runRoutes) tellRefusals(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := checkQueryKeys(q, "run", "sandbox", "request", "causes"); err != nil {
		return err
	}
	sought := admission.Sought{Run: q.Get("run"), Sandbox: q.Get("sandbox"), Request: q.Get("request"), Causes: q.Get("causes") == "true"}
	run, err := s.soughtRun(r, &sought)
	if err != nil {
		return err
	}
	all, err := s.cfg.Door.RefusalsOf(r.Context(), sought)
	if err != nil {
		return err
	}
	ended := ""
	if sought.Causes {
		if ended, err = s.endedBadly(r.Context(), run); err != nil {
			return err
		}
	}
	answer := api.Refusals{Ended: ended, Run: run, Refusals: []api.Refusal{}}
	for _, one := range all {
		answer.Refusals = append(answer.Refusals, viewRefusal(one))
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

func viewRefusal(r door.Refusal) api.Refusal {
	return api.Refusal{
		Time: r.Time, Run: r.Run, Sandbox: r.Sandbox, Package: viewRef(r.Package), File: r.File, What: r.What, Name: r.Name,
		Outcome: r.Outcome, Rule: r.Rule, Reason: r.Reason, Suggest: r.Suggest, RequestID: r.RequestID, Count: r.Count,
		Alarm: r.Alarm, Approval: r.Approval, Cause: r.Cause,
	}
}

func viewRef(r pkgref.Ref) api.Ref {
	return api.Ref{Ecosystem: string(r.Ecosystem), Name: r.Name, Version: r.Version}
}

// endedBadly is the last command of a run that did not end well, with its code; "": there is none.
func (s runRoutes) endedBadly(ctx context.Context, run string) (ended string, err error) {
	for rec, err := range s.cfg.Log.Records(ctx, audit.Filter{Run: run, Kinds: []audit.Kind{audit.KindCommand}, Outcomes: []audit.Outcome{audit.Finished}}) {
		if err != nil {
			return "", err
		}
		if rec.Exit != nil && *rec.Exit != 0 {
			ended = fmt.Sprintf("%s ended with code %d", text.Shorten(strings.Join(rec.Command, " "), maxEnded), *rec.Exit)
		}
	}
	return ended, nil
}

// maxEnded bounds what is told of a command's words, in bytes.
const maxEnded = 200

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
// ("sandbox", or none) with a value. Where none is named, one of a plan is passed over: whoever made a plan since
// asks about the run before.
func (s runRoutes) lastBegun(r *http.Request, field, value string) (audit.Record, error) {
	outcomes := []audit.Outcome{audit.Started, audit.Restored}
	where := map[string][]string{"kind": {string(audit.KindSandbox)}, "outcome": {string(audit.Started), string(audit.Restored)}}
	if field != "" {
		where[field] = []string{value}
	}
	return s.newest(r, index.Filter{Where: where}, audit.Filter{Kinds: []audit.Kind{audit.KindSandbox}, Outcomes: outcomes}, func(rec audit.Record) bool {
		if field == "" {
			return rec.Detail["plan"] == ""
		}
		return rec.Sandbox == value
	})
}

// newest is the newest record of one of the caller's runs that meets; without an index
// the log is read through. A record without a run is none. The requests of others bound nothing: they
// would hide the caller's.
func (s runRoutes) newest(r *http.Request, indexed index.Filter, plain audit.Filter, meets func(audit.Record) bool) (newest audit.Record, err error) {
	who, err := callerOf(r.Context())
	if err != nil {
		return audit.Record{}, err
	}
	last := func(of audit.Filter) error {
		for rec, err := range s.cfg.Log.Records(r.Context(), of) {
			if err != nil {
				return err
			}
			if rec.Run == "" || !meets(rec) {
				continue
			}
			owns, err := s.ownsRecord(r.Context(), who, rec)
			if err != nil {
				return err
			}
			if owns {
				newest = rec
			}
		}
		return nil
	}
	if s.cfg.Audit.Index == nil {
		return newest, last(plain)
	}
	var seqs []uint64
	err = s.cfg.Audit.Index.View(r.Context(), func(v *index.View) (err error) {
		seqs, _, err = v.Select(r.Context(), indexed)
		return err
	})
	for err == nil && len(seqs) > 0 && newest.Run == "" {
		before := max(0, len(seqs)-lookedAt)
		err, seqs = last(audit.Filter{Seqs: seqs[before:]}), seqs[:before]
	}
	return newest, err
}

// ownsRecord tells whether a record is about a sandbox of the caller's.
func (s runRoutes) ownsRecord(ctx context.Context, who caller, rec audit.Record) (bool, error) {
	switch {
	case who.seesAll():
		return true, nil
	case rec.Kind == audit.KindSandbox && (rec.Outcome == audit.Started || rec.Outcome == audit.Restored):
		return s.ownsBegan(rec, who.token.ID), nil
	}
	return s.ownsSandbox(ctx, who.token.ID, rec.Sandbox)
}
