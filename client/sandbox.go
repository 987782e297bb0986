package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/api"
)

func sandboxPath(id string) string { return "/v1/sandboxes/" + url.PathEscape(id) }

func commandPath(sandbox, command string) string {
	return sandboxPath(sandbox) + "/commands/" + url.PathEscape(command)
}

// CreateSandbox makes a sandbox and returns when commands can be started in
// it. If ctx ends before, the daemon takes back what it has begun.
func (c *Client) CreateSandbox(ctx context.Context, req api.CreateSandbox) (api.Sandbox, error) {
	return fetchResult[api.Sandbox](ctx, c, http.MethodPost, "/v1/sandboxes", req)
}

// CreateOnce creates a sandbox, and does no harm if it is asked again with the same key: it gets
// the first one's sandbox, as long as that lives.
func (c *Client) CreateOnce(ctx context.Context, key string, req api.CreateSandbox) (api.Sandbox, error) {
	r, err := c.newRequest(ctx, http.MethodPost, "/v1/sandboxes", req)
	if err != nil {
		return api.Sandbox{}, err
	}
	r.Header.Set(api.IdempotencyHeader, key)
	return sendAndDecode[api.Sandbox](c, r)
}

// SandboxFilter selects sandboxes; its zero value selects all that the caller
// sees. Several values of one field mean any of them, labels all of them.
type SandboxFilter struct {
	States    []string
	Runs      []string
	Templates []string
	Snapshots []string
	Labels    map[string]string
	Limit     int    // of one page; 0: the daemon's
	After     string // the Next of the page before
}

func (f SandboxFilter) query() string {
	q := url.Values{}
	for key, values := range map[string][]string{"state": f.States, "run": f.Runs, "template": f.Templates, "snapshot": f.Snapshots} {
		for _, value := range values {
			q.Add(key, value)
		}
	}
	for name, value := range f.Labels {
		q.Add("label", name+"="+value)
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.After != "" {
		q.Set("after", f.After)
	}
	return encoded(q)
}

// encoded is a query with its question mark; "" for none.
func encoded(q url.Values) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// SandboxPage lists one page of sandboxes, oldest first.
func (c *Client) SandboxPage(ctx context.Context, f SandboxFilter) (api.SandboxPage, error) {
	return fetchResult[api.SandboxPage](ctx, c, http.MethodGet, "/v1/sandboxes"+f.query(), nil)
}

// Sandboxes lists all that the caller sees, oldest first, page by page.
func (c *Client) Sandboxes(ctx context.Context) ([]api.Sandbox, error) {
	return c.FindSandboxes(ctx, SandboxFilter{})
}

// FindSandboxes lists all that a filter selects, page by page.
func (c *Client) FindSandboxes(ctx context.Context, f SandboxFilter) ([]api.Sandbox, error) {
	all := []api.Sandbox{}
	for {
		page, err := c.SandboxPage(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Sandboxes...)
		if page.Next == "" {
			return all, nil
		}
		f.After = page.Next
	}
}

// Sandbox returns one; status 404 if it is gone.
func (c *Client) Sandbox(ctx context.Context, id string) (api.Sandbox, error) {
	return fetchResult[api.Sandbox](ctx, c, http.MethodGet, sandboxPath(id), nil)
}

// DestroySandbox ends all that runs in a sandbox and removes it; it returns
// when nothing of it is left.
func (c *Client) DestroySandbox(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, sandboxPath(id), nil, nil)
}

// StartCommand starts a command; its output is kept until somebody attaches.
// Status 403: the policy's rules refuse it.
func (c *Client) StartCommand(ctx context.Context, sandbox string, req api.StartCommand) (api.Command, error) {
	return fetchResult[api.Command](ctx, c, http.MethodPost, sandboxPath(sandbox)+"/commands", req)
}

// Command returns the state of a command.
func (c *Client) Command(ctx context.Context, sandbox, command string) (api.Command, error) {
	return fetchResult[api.Command](ctx, c, http.MethodGet, commandPath(sandbox, command), nil)
}

// SignalCommand signals a command (name KILL, TERM, ...); with tree also what has left its
// process group. It waits behind no input that the command does not read, as a signal by an
// Attachment does, and returns when the sandbox says that it is done: of KILL, that the
// command is gone. Status 409: it has ended, or its sandbox is paused or frozen; a KILL of one
// that has ended is no error. Status 503: it was not confirmed, and the command may run on.
func SignalCommand(ctx context.Context, c *Client, sandbox, command, name string, tree bool) error {
	return c.call(ctx, http.MethodPost, commandPath(sandbox, command)+"/signal", api.SignalCommand{Name: name, Tree: tree}, nil)
}
