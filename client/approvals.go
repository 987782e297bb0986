package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
)

// ApprovalFilter selects requests of the approval queue; its zero value selects
// all. Several states mean any of them.
type ApprovalFilter struct {
	States    []string
	Run       string
	Group     string
	Ecosystem string
	Package   string
	Limit     int    // of one page; 0: the daemon's
	Before    string // the Next of the page before
}

func (f ApprovalFilter) query() string {
	q := url.Values{}
	for key, value := range map[string]string{
		"run": f.Run, "group": f.Group, "ecosystem": f.Ecosystem, "package": f.Package, "before": f.Before,
	} {
		if value != "" {
			q.Set(key, value)
		}
	}
	for _, state := range f.States {
		q.Add("state", state)
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Approvals returns one page of the queue, newest first.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter) (api.ApprovalPage, error) {
	return fetchResult[api.ApprovalPage](ctx, c, http.MethodGet, "/v1/approvals"+f.query(), nil)
}

// Approval returns one request; status 404 if there is none.
func (c *Client) Approval(ctx context.Context, id string) (api.Approval, error) {
	return fetchResult[api.Approval](ctx, c, http.MethodGet, "/v1/approvals/"+url.PathEscape(id), nil)
}

// DiffApproval tells how a release that was asked for differs from the one that was approved before; with a
// path it shows that file. file is the one of the release's that is meant, "" for the first. Status 404: there
// is no such request or file, or the bytes are not here.
func DiffApproval(ctx context.Context, c *Client, id, path, file string) (api.ApprovalDiff, error) {
	q := url.Values{}
	for key, value := range map[string]string{"path": path, "file": file} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return fetchResult[api.ApprovalDiff](ctx, c, http.MethodGet, "/v1/approvals/"+url.PathEscape(id)+"/diff?"+q.Encode(), nil)
}

// AnswerApprovals answers several requests, all or none, and returns them as
// they are now. Status 409 means that one of them is answered already, or has
// other files than those that were shown.
func (c *Client) AnswerApprovals(ctx context.Context, answer api.AnswerApprovals) ([]api.Approval, error) {
	page, err := fetchResult[api.ApprovalPage](ctx, c, http.MethodPost, "/v1/approvals/answer", answer)
	return page.Approvals, err
}

// RevokeApproval ends an answer that holds.
func (c *Client) RevokeApproval(ctx context.Context, id, reason string) (api.Approval, error) {
	return fetchResult[api.Approval](ctx, c, http.MethodPost, "/v1/approvals/"+url.PathEscape(id)+"/revoke", api.RevokeApproval{Reason: reason})
}

// WatchApprovals yields what happens in the queue until ctx ends: after event
// number *since, or with nil from now on. When the daemon ends it yields
// ErrLost; watch again from the last event's number.
func (c *Client) WatchApprovals(ctx context.Context, since *uint64) iter.Seq2[api.ApprovalEvent, error] {
	return func(yield func(api.ApprovalEvent, error) bool) {
		path := "/v1/approvals/watch"
		if since != nil {
			path += "?since=" + strconv.FormatUint(*since, 10)
		}
		resp, err := c.send(ctx, http.MethodGet, path, nil)
		if err != nil {
			yield(api.ApprovalEvent{}, err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		dec := json.NewDecoder(resp.Body)
		for {
			var event api.ApprovalEvent
			err := dec.Decode(&event)
			switch {
			case ctx.Err() != nil:
				yield(api.ApprovalEvent{}, ctx.Err())
				return
			case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
				yield(api.ApprovalEvent{}, fmt.Errorf("watch the approvals: %w", ErrLost))
				return
			case err != nil:
				yield(api.ApprovalEvent{}, fmt.Errorf("watch the approvals: %w", plainTransport(err)))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}
