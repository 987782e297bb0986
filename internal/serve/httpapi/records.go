package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// serveVersion tells a token nothing of where the installation is on its host, nor at which of its addresses it listens: a
// token gets the fields that are named here, so that a new one is not told by itself.
func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	v := s.cfg.Version
	if !by.seesAll() {
		v = api.Version{Version: v.Version, PID: v.PID, Started: v.Started, Background: v.Background, URL: v.URL, Domain: v.Domain}
	}
	return writeJSON(w, r, http.StatusOK, v)
}

func (s *Server) shutdown(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	var err error
	switch force := query.Get("force") == "1"; {
	case query.Get("handover") != "1":
		err = s.cfg.Stop(force)
	case force:
		err = fault.Invalid("force ends the sandboxes, handover leaves them to the next daemon: give one")
	case !s.cfg.Version.Background:
		err = fault.New(fault.ErrConflict, "the daemon was started to stay: end it where it was started, or with cofferdam stop")
	case s.busy.Load() > 1: // this one is there, too
		err = fault.New(fault.ErrConflict, "the daemon serves other commands now; try again when they have ended, or end it with cofferdam stop")
	default:
		s.cfg.HandOver()
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// runRoutes are about what runs asked for, got and were refused.
type runRoutes struct{ *desk }

// summary waits for the records of ended commands, so that a client that saw a
// command's exit sees what it installed.
func (s runRoutes) summary(w http.ResponseWriter, r *http.Request) error {
	run := r.PathValue("run")
	if err := s.ownRun(r, run); err != nil {
		return err
	}
	if err := s.cfg.Sandboxes.Settle(r.Context(), run); err != nil {
		return err
	}
	sum, err := s.cfg.Door.Summary(r.Context(), run)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewSummary(sum))
}

func viewSummary(s admission.RunSummary) api.RunSummary {
	out := api.RunSummary{
		Run: s.Run, Task: s.Task, Installed: viewLines(s.Installed), Served: viewLines(s.Served), Withheld: viewLines(s.Withheld),
		Refused: viewLines(s.Refused), Missing: viewLines(s.Missing), Failed: viewLines(s.Failed), Names: []api.Name{}, Ended: s.Ended, Unlisted: s.Unlisted, CopyOf: s.CopyOf,
		Observes: s.Observes,
	}
	if len(s.Would) > 0 {
		out.Would = viewLines(s.Would)
	}
	if len(s.Alarms) > 0 {
		out.Alarms = viewLines(s.Alarms)
	}
	for _, n := range s.WouldNames {
		out.WouldNames = append(out.WouldNames, api.Name(n))
	}
	for _, n := range s.Names {
		out.Names = append(out.Names, api.Name(n))
	}
	for _, f := range s.Findings {
		out.Findings = append(out.Findings, api.Finding(f))
	}
	for _, h := range s.Hosts {
		out.Hosts = append(out.Hosts, api.Host(h))
	}
	for _, t := range s.Tools {
		out.Tools = append(out.Tools, api.ToolUse(t))
	}
	return out
}

func viewLines(lines []admission.Line) []api.Package {
	out := []api.Package{}
	for _, l := range lines {
		out = append(out, api.Package(l))
	}
	return out
}

// records streams the log as JSON lines.
func (s auditRoutes) records(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	filter := audit.Filter{Run: q.Get("run"), Sandbox: q.Get("sandbox"), User: q.Get("user"), Token: q.Get("token"), Alarms: q.Get("alarms") == "1"}
	for _, k := range q["kind"] {
		filter.Kinds = append(filter.Kinds, audit.Kind(k))
	}
	for _, o := range q["outcome"] {
		filter.Outcomes = append(filter.Outcomes, audit.Outcome(o))
	}
	from, err := strconv.ParseUint("0"+q.Get("from"), 10, 64)
	if err != nil {
		return fault.Invalid("from=%q is not a record's number", q.Get("from"))
	}
	filter.FromSeq = from
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	for rec, err := range s.cfg.Log.Records(r.Context(), filter) {
		if err != nil {
			return s.cutAnswer(r, err)
		}
		if err := out.Encode(rec); err != nil {
			return errAnswered
		}
	}
	return nil
}

// cutAnswer ends an answer that has begun in a way that no client takes for whole.
func (s *desk) cutAnswer(r *http.Request, err error) error {
	s.cfg.Logger.ErrorContext(r.Context(), "an answer was cut short", "path", r.URL.Path, "err", err)
	panic(http.ErrAbortHandler)
}
