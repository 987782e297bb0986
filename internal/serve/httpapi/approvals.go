package httpapi

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// approvalRoutes are about the queue of requests that wait.
type approvalRoutes struct{ *desk }

func (s approvalRoutes) listApprovals(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := approval.Filter{Run: q.Get("run"), Group: q.Get("group")}
	for _, state := range q["state"] {
		switch state := approval.State(state); state {
		case approval.Pending, approval.Approved, approval.Denied, approval.Expired, approval.Superseded:
			f.States = append(f.States, state)
		default:
			return fault.Invalid("unknown state %.40q; known states: pending, approved, denied, expired, superseded", state)
		}
	}
	var err error
	if text := q.Get("ecosystem"); text != "" {
		if f.Ecosystem, err = pkgref.EcosystemCalled(text); err != nil {
			return err
		}
	}
	if f.Package = q.Get("package"); f.Package != "" && f.Ecosystem != "" {
		if f.Package, err = pkgref.CanonicalName(f.Ecosystem, f.Package); err != nil {
			return err
		}
	}
	if f.Before, err = parseNumber(q.Get("before")); err != nil {
		return err
	}
	limit, err := parseNumber(q.Get("limit"))
	if err != nil {
		return err
	}
	f.Limit = int(min(limit, approval.MaxPage))
	requests, next, err := s.cfg.Approvals.List(r.Context(), f)
	if err != nil {
		return err
	}
	page, err := pageOf(requests)
	if err != nil {
		return err
	}
	if next > 0 {
		page.Next = strconv.FormatUint(next, 10)
	}
	return writeJSON(w, r, http.StatusOK, page)
}

// parseNumber reads a whole number of a query; "" is 0.
func parseNumber(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fault.Invalid("%.40q is not a whole number", text)
	}
	return n, nil
}

func pageOf(requests []approval.Request) (api.ApprovalPage, error) {
	page := api.ApprovalPage{Approvals: make([]api.Approval, 0, len(requests))}
	for _, request := range requests {
		text, err := json.Marshal(request)
		if err != nil {
			return api.ApprovalPage{}, err
		}
		page.Approvals = append(page.Approvals, text)
	}
	return page, nil
}

func (s approvalRoutes) getApproval(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	var request approval.Request
	if who.token == nil { // of a token nobody knows whether it is a person's
		request, err = s.cfg.Approvals.Look(r.Context(), who.name, r.PathValue("id"))
	} else {
		request, err = s.cfg.Approvals.Get(r.Context(), r.PathValue("id"))
	}
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, request)
}

func (s approvalRoutes) answerApprovals(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	var req api.AnswerApprovals
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if req.ExpiresSeconds < 0 || req.ExpiresSeconds > math.MaxInt64/int64(time.Second) {
		return fault.Invalid("expires_seconds is %d; an answer lasts up to ten years, or with 0 for ever", req.ExpiresSeconds)
	}
	if err := backend.Promise(r.Context(), 1, req); err != nil {
		return err
	}
	answered, err := s.cfg.Approvals.Answer(r.Context(), who.name, approval.Verdict{
		IDs: req.IDs, State: approval.State(req.State), Scope: approval.Scope(req.Scope), Reason: req.Reason,
		Lasts: time.Duration(req.ExpiresSeconds) * time.Second, Digests: req.Digests, Revisions: req.Revisions,
	})
	if err != nil {
		return err
	}
	page, err := pageOf(answered)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, page)
}

func (s approvalRoutes) revokeApproval(w http.ResponseWriter, r *http.Request) error {
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	var req api.RevokeApproval
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := backend.Promise(r.Context(), 1, req); err != nil {
		return err
	}
	request, err := s.cfg.Approvals.Revoke(r.Context(), who.name, r.PathValue("id"), req.Reason)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, request)
}

// watchApprovals streams events as JSON lines until the client goes away.
// Without since it begins with what happens from now on.
func (s approvalRoutes) watchApprovals(w http.ResponseWriter, r *http.Request) error {
	since := s.cfg.Approvals.LastEvent()
	if r.URL.Query().Has("since") {
		var err error
		if since, err = parseNumber(r.URL.Query().Get("since")); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	if err := flush.Flush(); err != nil { // the client knows now that it is heard
		return errAnswered
	}
	for event, err := range s.cfg.Approvals.Watch(r.Context(), since) {
		if err != nil {
			return s.cutAnswer(r, err)
		}
		request, err := json.Marshal(event.Request)
		if err != nil {
			return s.cutAnswer(r, err)
		}
		if err := out.Encode(api.ApprovalEvent{Number: event.Number, At: event.At, Event: string(event.Name), Request: request}); err != nil {
			return errAnswered
		}
		if err := flush.Flush(); err != nil {
			return errAnswered
		}
	}
	return nil
}
