package gateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxBody bounds a request's body, which is thrown away.
const maxBody = 1 << 20

// subject is what is asked about: by which sandbox, at which source, and what.
type subject struct {
	sandbox string
	source  *source
	route   ecosystem.Route
}

// refOf is the subject's project, in a version or in none.
func (s subject) refOf(version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: s.source.Ecosystem(), Name: s.route.Project, Version: version}
}

// query is one request of a guest.
type query struct {
	subject
	w    http.ResponseWriter
	r    *http.Request // its context ends with the gateway: see Gateway.lasting
	came *http.Request // as the server has it: its context ends when the client leaves
	conn *guestConn
	held *heldAnswer
	// admitted tells that the policy, or what was read for the guest, names the project.
	admitted bool
}

// orLeave ends the request of a client that has gone, before anything is recorded as sent to it. All that is
// wrong with its subject was found by then. The connection is broken: an answer without bytes would be one.
func (q *query) orLeave() {
	if q.came.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// answerRefusal answers with what the source's protocol makes of a refusal.
func (q *query) answerRefusal(r ecosystem.Refusal) {
	if r.Route == "" {
		r.Route = q.route.Kind
	}
	if r.RequestID != "" {
		q.w.Header().Set("X-Cofferdam-Request", r.RequestID)
	}
	q.sendAnswer(q.source.Protocol.Refuse(r))
}

// refuseDecision answers with a decision that is not an allowance.
func (q *query) refuseDecision(what string, d policy.Decision, id string) {
	q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.ByPolicy, What: what, Reason: d.Reason, Rule: d.Rule, Suggest: d.Suggest, RequestID: id})
}

// refuseAnswer answers with a decision on a file, and with the request that a
// person may approve if it waits.
func (q *query) refuseAnswer(ref pkgref.Ref, answer door.Answer) {
	d := answer.Decision
	r := ecosystem.Refusal{
		Cause: ecosystem.ByPolicy, What: ref.String(), Reason: d.Reason, Rule: d.Rule, Suggest: d.Suggest,
		RequestID: answer.RequestID, Approval: answer.Approval,
	}
	if r.Approval != "" {
		r.Approve = door.ApproveCommand(r.Approval)
	}
	q.answerRefusal(r)
}

// sendAnswer writes an answer whole.
func (q *query) sendAnswer(a ecosystem.Answer) {
	if q.r.ProtoAtLeast(1, 1) && a.Phrase != "" {
		q.conn.phrase.setPhrase(a.Status, a.Phrase)
	}
	for name, value := range a.Header {
		q.w.Header().Set(name, value)
	}
	q.w.Header().Set("Content-Type", a.ContentType)
	q.w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	q.w.WriteHeader(a.Status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(a.Body) // a guest that went away needs no refusal
	}
}

// answerProtocol gives the protocol's own answer. The body that the client sent with its request is
// read so that the connection can be used again, and never looked at.
func (q *query) answerProtocol() {
	if q.route.Answer == nil {
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway has no such page"})
		return
	}
	if !q.drainBody() {
		q.w.Header().Set("Connection", "close") // the rest is not read
		q.sendAnswer(ecosystem.Problem(http.StatusRequestEntityTooLarge, ecosystem.Refusal{
			Route: q.route.Kind, Cause: ecosystem.Malformed, Reason: "the body of a request to the gateway has at most 1 MiB",
		}))
		return
	}
	q.sendAnswer(*q.route.Answer)
}

// drainBody reads the body to its end; false: it is too large, or has none.
func (q *query) drainBody() bool {
	if q.r.ContentLength > maxBody {
		return false // not even asked for, if the client waits for that
	}
	_, err := io.CopyN(io.Discard, q.r.Body, maxBody+1)
	return errors.Is(err, io.EOF)
}
