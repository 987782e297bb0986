package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// advisoryRoutes are about imported facts about packages.
type advisoryRoutes struct{ *desk }

func (s advisoryRoutes) advisories(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	status := s.cfg.Advisories.Status()
	if by.token != nil {
		for i := range status.Sources {
			status.Sources[i] = withoutPath(status.Sources[i])
		}
		status.Damage = damageFor(by, status.Damage)
	}
	return writeJSON(w, r, http.StatusOK, status)
}

// withoutPath is a source for callers over the network, who need not know the host's
// files.
func withoutPath(source api.AdvisorySource) api.AdvisorySource {
	source.Path = ""
	return source
}

// damageFor is what a caller hears of damage, whose sentence has files of the host.
func damageFor(by caller, damage string) string {
	if by.token == nil || damage == "" {
		return damage
	}
	return "the advisory database is damaged, so every package is refused; cofferdam advisory status, on the daemon's host, says more"
}

// importAdvisories imports from a path of the host. It is for people only: the daemon
// reads every file of the host, and says of one that can't be imported what is in it.
func (s advisoryRoutes) importAdvisories(w http.ResponseWriter, r *http.Request) error {
	var req api.ImportAdvisories
	if err := readJSON(r, &req); err != nil {
		return err
	}
	job := advisory.Job{Path: req.Path, Label: req.Label, Popular: pkgref.Ecosystem(req.Popular), KeepGoing: req.KeepGoing}
	return s.tellImport(w, r, job, s.cfg.Advisories.Import)
}

// uploadAdvisories imports the request's body.
func (s advisoryRoutes) uploadAdvisories(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := checkQueryKeys(q, "popular", "keep_going"); err != nil {
		return err
	}
	job := advisory.Job{Label: r.PathValue("label"), Popular: pkgref.Ecosystem(q.Get("popular")), KeepGoing: q.Get("keep_going") == "1"}
	return s.tellImport(w, r, job, func(ctx context.Context, job advisory.Job, progress func(advisory.Progress)) (api.AdvisoryImport, error) {
		return s.cfg.Advisories.Upload(ctx, job, r.Body, progress)
	})
}

// importing is an import by a path or of an upload.
type importing func(context.Context, advisory.Job, func(advisory.Progress)) (api.AdvisoryImport, error)

// tellImport streams the import's progress as JSON lines; the last one has Done or
// Error.
func (s advisoryRoutes) tellImport(w http.ResponseWriter, r *http.Request, job advisory.Job, take importing) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	send := func(e api.AdvisoryEvent) {
		//nolint:errcheck,errchkjson // a client that went away cancels the request's context
		out.Encode(e)
		flush.Flush() //nolint:errcheck // as above
	}
	report, err := s.importAndReview(r.Context(), job, who, take, func(p advisory.Progress) {
		send(api.AdvisoryEvent{Step: p.Step, Detail: p.Detail, Percent: p.Percent})
	})
	if who.token != nil {
		report.Source, report.Damage = withoutPath(report.Source), damageFor(who, report.Damage)
		if report.Replaced != nil {
			report.Replaced = new(withoutPath(*report.Replaced))
		}
	}
	event := api.AdvisoryEvent{Done: &report}
	if err != nil {
		event.Status = statusOf(err)
		event.Error = s.errorInside(r, err, event.Status, &who)
	}
	send(event)
	return errAnswered
}

// errorInside is what a caller hears of an error in the middle of an answer; what caused it is
// told to the daemon's log.
func (s *desk) errorInside(r *http.Request, err error, status int, by *caller) string {
	if status >= http.StatusInternalServerError {
		s.cfg.Logger.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "err", err)
	}
	return problemOf(err, status, by).Detail
}

// importAndReview records who imports what before anything is replaced, and
// looks for what was let in that is known to be malicious now. A client that
// goes away ends the import, not the review.
func (s advisoryRoutes) importAndReview(ctx context.Context, job advisory.Job, who caller, take importing, progress func(advisory.Progress)) (api.AdvisoryImport, error) {
	var undo func(error) error
	job.Before = func(source api.AdvisorySource) (err error) {
		undo, err = s.announce(ctx, who, fmt.Sprintf("Facts about packages are imported as %q.", source.Label), map[string]string{
			"event": "advisories_import", "label": source.Label, "kind": source.Kind, "path": source.Path, "sha256": source.SHA256,
		})
		if err != nil {
			undo = nil // nothing was announced
		}
		return err
	}
	report, err := take(ctx, job, progress)
	if err != nil && undo != nil {
		err = undo(err)
	}
	if err != nil || report.Source.Kind != string(advisory.KindMalware) || report.Damage != "" {
		return report, err
	}
	progress(advisory.Progress{Step: "review the log"})
	alarms, err := s.cfg.Advisories.Review(context.WithoutCancel(ctx), s.cfg.Log)
	if err != nil {
		return report, fmt.Errorf("the import is done, but what was let in before could not be looked through; import again: %w", err)
	}
	report.Alarms = alarms
	return report, nil
}

func (s advisoryRoutes) removeAdvisories(w http.ResponseWriter, r *http.Request) error {
	label := r.PathValue("label")
	return s.forgetRecorded(w, r, label, func() error { return s.cfg.Advisories.Remove(label) })
}

func (s advisoryRoutes) removeAllAdvisories(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Get("all") != "1" {
		return fault.Invalid("all=1 forgets everything that was imported; a label forgets one import")
	}
	return s.forgetRecorded(w, r, "", s.cfg.Advisories.RemoveAll)
}

// forgetRecorded records who makes the daemon forget what, then does it; label "" is
// everything.
func (s advisoryRoutes) forgetRecorded(w http.ResponseWriter, r *http.Request, label string, remove func() error) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("The facts about packages that were imported as %.64q are forgotten.", label)
	if label == "" {
		reason = "All imported facts about packages are forgotten."
	}
	undo, err := s.announce(r.Context(), who, reason, map[string]string{"event": "advisories_remove", "label": label})
	if err != nil {
		return err
	}
	if err := remove(); err != nil {
		return undo(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s advisoryRoutes) checkPackage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	ecosystem, err := pkgref.EcosystemCalled(q.Get("ecosystem"))
	if err != nil {
		return err
	}
	pkg, err := pkgref.New(ecosystem, q.Get("name"), q.Get("version"))
	if err != nil {
		return err
	}
	facts, err := s.cfg.Advisories.Check(pkg)
	if err != nil {
		by, cerr := callerOf(r.Context())
		if cerr == nil && by.token != nil && s.cfg.Advisories.Damage() != nil {
			return fault.New(fault.ErrUnavailable, "%s", damageFor(by, err.Error()))
		}
		return err
	}
	return writeJSON(w, r, http.StatusOK, facts)
}
