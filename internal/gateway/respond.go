package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/door"
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
	q.send(q.source.Protocol.Refuse(r))
}

// refuseDecision answers with a decision that is not an allowance.
func (q *query) refuseDecision(what string, d policy.Decision, id string) {
	q.refuse(ecosystem.Refusal{Cause: ecosystem.ByPolicy, What: what, Reason: d.Reason, Rule: d.Rule, Suggest: d.Suggest, RequestID: id})
}

// refuseAnswer answers with a decision on a file, and with the request that a
// person may approve if it waits.
func (a *asked) refuseAnswer(answer door.Answer) {
	d := answer.Decision
	r := ecosystem.Refusal{
		Cause: ecosystem.ByPolicy, What: a.ref.String(), Reason: d.Reason, Rule: d.Rule, Suggest: d.Suggest,
		RequestID: answer.RequestID, Approval: answer.Approval,
	}
	if r.Approval != "" {
		r.Approve = door.ApproveCommand(r.Approval)
	}
	a.refuse(r)
}

// send writes an answer whole.
func (q *query) send(a ecosystem.Answer) {
	if q.r.ProtoAtLeast(1, 1) && a.Phrase != "" {
		q.conn.phrase.set(a.Status, a.Phrase)
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

// sendRecorded sends what was recorded as served, and tells the door whether all
// of it has left.
func (g *Gateway) sendRecorded(a *asked, blob *cache.Blob, answer door.Answer) {
	out := &counted{ResponseWriter: a.w}
	a.w = out
	content := &standing{ReadSeeker: blob.Reader(), check: func() bool { return g.stands(a) }, step: allowedBytes, left: allowedBytes}
	if answer.Decision.ResolvedBy == policy.ByApproval {
		content.step, content.left = approvedBytes, 0 // the first question is before the first byte
	}
	a.sendContent(blob.Digest(), content)
	announced, err := strconv.ParseInt(a.w.Header().Get("Content-Length"), 10, 64)
	whole := err != nil || out.sent >= announced
	if http.NewResponseController(out.ResponseWriter).Flush() != nil {
		whole = false // what was still kept here could not be sent
	}
	ctx := context.WithoutCancel(a.r.Context())
	if whole {
		err = g.door.Sent(ctx, a.sandbox, answer.Seq)
	} else {
		err = g.door.Aborted(ctx, a.sandbox, answer.Seq, out.sent)
	}
	if err != nil {
		g.log.Error("how a download ended is not on record", "sandbox", a.sandbox, "file", a.file.Name, "error", err)
	}
}

// part tells what of a file the answer to the request has, for the record; "" is
// all of it.
func (a *asked) part(blob *cache.Blob) string {
	said := &unsent{header: http.Header{}}
	as := *a.query
	as.w, as.r = said, a.r.Clone(a.r.Context())
	as.r.Method = http.MethodHead // what it would be, and no bytes
	(&asked{query: &as}).sendContent(blob.Digest(), blob.Reader())
	switch said.status {
	case http.StatusOK:
		return ""
	case http.StatusPartialContent:
		return said.header.Get("Content-Range")
	case http.StatusNotModified:
		return "nothing, the client has it"
	}
	return "nothing, the answer has status " + strconv.Itoa(said.status)
}

// unsent is an answer that is not sent.
type unsent struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (u *unsent) Header() http.Header { return u.header }

// WriteHeader implements http.ResponseWriter.
func (u *unsent) WriteHeader(status int) { u.status = status }

// Write implements http.ResponseWriter.
func (u *unsent) Write(p []byte) (int, error) { return len(p), nil }

// sendContent answers GET and HEAD, whole or one range.
func (a *asked) sendContent(digest string, content io.ReadSeeker) {
	if strings.Contains(a.r.Header.Get("Range"), ",") {
		a.r.Header.Del("Range") // many ranges in one answer are of use to nobody here
	}
	a.w.Header().Set("ETag", `"`+digest+`"`)
	a.w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(a.w, a.r, "", time.Time{}, content)
}

// counted counts the body's bytes.
type counted struct {
	http.ResponseWriter
	sent int64
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent += int64(n)
	return n, err
}

// ReadFrom keeps the server's large copies; the count is the same.
func (c *counted) ReadFrom(r io.Reader) (int64, error) {
	to, ok := c.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return 0, errors.New("the server's answer takes no reader")
	}
	n, err := to.ReadFrom(r)
	c.sent += n
	return n, err
}
