package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// custodian is what a log can do besides taking and giving records.
type custodian interface {
	Seal(ctx context.Context, before audit.SealBefore, by string) (audit.SealReport, error)
	Erase(ctx context.Context, ask audit.EraseAsk) (audit.EraseReport, error)
	RotateKey(by, reason string) (public string, err error)
}

// custody is who asks, and the log if it can do more than take records.
func (s auditRoutes) custody(r *http.Request) (caller, custodian, error) {
	who, err := callerOf(r.Context())
	if err != nil {
		return who, nil, err
	}
	log, ok := s.cfg.Log.(custodian)
	if !ok {
		return who, nil, fault.New(fault.ErrUnavailable, "this daemon's log can't do that")
	}
	return who, log, nil
}

func (s auditRoutes) sealAudit(w http.ResponseWriter, r *http.Request) error {
	who, log, err := s.custody(r)
	if err != nil {
		return err
	}
	var req api.SealAudit
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if req.BeforeTime.IsZero() == (req.BeforeRecord == 0) {
		return fault.Invalid("say either a time or a record before which the log is to be sealed")
	}
	report, err := log.Seal(r.Context(), audit.SealBefore{Time: req.BeforeTime, Record: req.BeforeRecord}, who.name)
	if err != nil {
		return err
	}
	answer := api.SealedAudit{Segments: []api.SealedSegment{}}
	for _, s := range report.Segments {
		answer.Segments = append(answer.Segments, api.SealedSegment(s))
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

func (s auditRoutes) eraseAudit(w http.ResponseWriter, r *http.Request) error {
	who, log, err := s.custody(r)
	if err != nil {
		return err
	}
	var req api.EraseAudit
	if err := readJSON(r, &req); err != nil {
		return err
	}
	report, err := log.Erase(r.Context(), audit.EraseAsk{Run: req.Run, Record: req.Record, Reason: req.Reason, By: who.name})
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	nothing := err // in the log; where an earlier ask failed in between, the queue still has it
	if s.cfg.Approvals != nil {
		if err := s.cfg.Approvals.Renew(r.Context()); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the data are erased from the log, and the approval queue could not be made anew from it yet; erase once more")
		}
	}
	if nothing != nil {
		return nothing
	}
	return writeJSON(w, r, http.StatusOK, api.ErasedAudit{Records: report.Records})
}

func (s auditRoutes) rotateAuditKey(w http.ResponseWriter, r *http.Request) error {
	who, log, err := s.custody(r)
	if err != nil {
		return err
	}
	var req api.RotateAuditKey
	if err := readJSON(r, &req); err != nil {
		return err
	}
	public, err := log.RotateKey(who.name, req.Reason)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, api.RotatedAuditKey{PublicKey: public})
}
