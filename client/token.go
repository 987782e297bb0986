package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// MakeToken makes a token; its secret is told this once.
func (c *Client) MakeToken(ctx context.Context, req api.MakeToken) (api.NewToken, error) {
	return fetchResult[api.NewToken](ctx, c, http.MethodPost, "/v1/tokens", req)
}

// Tokens lists all, the oldest first, revoked ones included.
func (c *Client) Tokens(ctx context.Context) ([]api.Token, error) {
	return fetchResult[[]api.Token](ctx, c, http.MethodGet, "/v1/tokens", nil)
}

// RevokeToken ends a token for ever, by id or name. Sandboxes and commands that run for it go on to their own end.
func (c *Client) RevokeToken(ctx context.Context, ref string) (api.Token, error) {
	return fetchResult[api.Token](ctx, c, http.MethodDelete, "/v1/tokens/"+url.PathEscape(ref), nil)
}

// Secrets lists those that the daemon's configuration declares, without what they are.
func Secrets(ctx context.Context, c *Client) ([]api.Secret, error) {
	return fetchResult[[]api.Secret](ctx, c, http.MethodGet, "/v1/secrets", nil)
}

// Policies lists the named policies that the caller may use, without documents.
func (c *Client) Policies(ctx context.Context) ([]api.NamedPolicy, error) {
	return fetchResult[[]api.NamedPolicy](ctx, c, http.MethodGet, "/v1/policies", nil)
}

// Policy returns a named policy with its document.
func (c *Client) Policy(ctx context.Context, name string) (api.NamedPolicy, error) {
	return fetchResult[api.NamedPolicy](ctx, c, http.MethodGet, "/v1/policies/"+url.PathEscape(name), nil)
}

// PutPolicy sets a named policy. Status 400: the document is wrong, and the old
// one stays in force.
func (c *Client) PutPolicy(ctx context.Context, name string, req api.PutPolicy) (api.NamedPolicy, error) {
	return fetchResult[api.NamedPolicy](ctx, c, http.MethodPut, "/v1/policies/"+url.PathEscape(name), req)
}

// RemovePolicy removes a named policy; status 409 while a token may use it.
func (c *Client) RemovePolicy(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/v1/policies/"+url.PathEscape(name), nil, nil)
}

// InstallFilter selects records about packages; its zero value selects all that the
// caller sees. Several values of one field mean any of them.
type InstallFilter struct {
	Runs       []string
	Sandboxes  []string
	Ecosystems []string
	Packages   []string
	Outcomes   []string
	Policies   []string // digests
	Since      time.Time
	Until      time.Time // not included
	Limit      int       // of one page; 0: the daemon's
	After      string    // the Next of the page before
}

func (f InstallFilter) query() string {
	q := url.Values{}
	for key, values := range map[string][]string{
		"run": f.Runs, "sandbox": f.Sandboxes, "ecosystem": f.Ecosystems, "package": f.Packages, "outcome": f.Outcomes, "policy": f.Policies,
	} {
		for _, value := range values {
			q.Add(key, value)
		}
	}
	for key, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			q.Set(key, at.Format(time.RFC3339Nano))
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.After != "" {
		q.Set("after", f.After)
	}
	return encoded(q)
}

// Installs returns a page of the records about packages, oldest first.
func (c *Client) Installs(ctx context.Context, f InstallFilter) (api.InstallPage, error) {
	return fetchResult[api.InstallPage](ctx, c, http.MethodGet, "/v1/installs"+f.query(), nil)
}
