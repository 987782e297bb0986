package gateway

import (
	"net/http"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// refuse answers with what the source's protocol makes of a refusal.
func (q *query) refuse(r ecosystem.Refusal) {
	if r.Route == "" {
		r.Route = q.route.Kind
	}
	if r.RequestID != "" {
		q.w.Header().Set("X-Cofferdam-Request", r.RequestID)
	}
	q.send(q.source.protocol.Refuse(r))
}

// refuseDecision answers with a decision that is not an allowance.
func (q *query) refuseDecision(what string, d policy.Decision, id string) {
	q.refuse(ecosystem.Refusal{Cause: ecosystem.ByPolicy, What: what, Reason: d.Reason, Rule: d.Rule, Suggest: d.Suggest, RequestID: id})
}

// send writes an answer whole.
func (q *query) send(a ecosystem.Answer) {
	if q.r.ProtoAtLeast(1, 1) {
		q.conn.phrase.set(a.Status, a.Phrase)
	}
	q.w.Header().Set("Content-Type", a.ContentType)
	q.w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	q.w.WriteHeader(a.Status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(a.Body) // a guest that went away needs no refusal
	}
}
