package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
)

// AuditReport asks a report about the audit log by its name.
func (c *Client) AuditReport(ctx context.Context, name string, q api.AuditQuestion) (api.AuditReport, error) {
	return fetchResult[api.AuditReport](ctx, c, http.MethodPost, "/v1/audit/reports/"+url.PathEscape(name), q)
}

// AuditQuery yields the records that a query selects, oldest first, each as the
// JSON object of one line. After an error nothing more comes.
func (c *Client) AuditQuery(ctx context.Context, q api.AuditQuery) iter.Seq2[json.RawMessage, error] {
	return c.recordLines(ctx, http.MethodPost, "/v1/audit/query", q)
}

// AuditStream yields all records from a number on. With follow it goes on with
// those that come, until ctx ends, or with an error when the daemon does.
func (c *Client) AuditStream(ctx context.Context, from uint64, follow bool) iter.Seq2[json.RawMessage, error] {
	path := "/v1/audit/stream?from=" + strconv.FormatUint(from, 10)
	if follow {
		path += "&follow=1"
	}
	return c.recordLines(ctx, http.MethodGet, path, nil)
}
