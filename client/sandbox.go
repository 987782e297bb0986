package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cofferdam-dev/cofferdam/api"
)

func sandboxPath(id string) string { return "/v1/sandboxes/" + url.PathEscape(id) }

func commandPath(sandbox, command string) string {
	return sandboxPath(sandbox) + "/commands/" + url.PathEscape(command)
}

// CreateSandbox makes a sandbox and returns when commands can be started in
// it. If ctx ends before, the daemon takes back what it has begun.
func (c *Client) CreateSandbox(ctx context.Context, req api.CreateSandbox) (api.Sandbox, error) {
	return fetch[api.Sandbox](ctx, c, http.MethodPost, "/v1/sandboxes", req)
}

// Sandboxes lists all of this installation.
func (c *Client) Sandboxes(ctx context.Context) ([]api.Sandbox, error) {
	return fetch[[]api.Sandbox](ctx, c, http.MethodGet, "/v1/sandboxes", nil)
}

// Sandbox returns one; status 404 if it is gone.
func (c *Client) Sandbox(ctx context.Context, id string) (api.Sandbox, error) {
	return fetch[api.Sandbox](ctx, c, http.MethodGet, sandboxPath(id), nil)
}

// DestroySandbox ends all that runs in a sandbox and removes it; it returns
// when nothing of it is left.
func (c *Client) DestroySandbox(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, sandboxPath(id), nil, nil)
}

// StartCommand starts a command; its output is kept until somebody attaches.
// Status 403: the policy's rules refuse it.
func (c *Client) StartCommand(ctx context.Context, sandbox string, req api.StartCommand) (api.Command, error) {
	return fetch[api.Command](ctx, c, http.MethodPost, sandboxPath(sandbox)+"/commands", req)
}

// Command returns the state of a command.
func (c *Client) Command(ctx context.Context, sandbox, command string) (api.Command, error) {
	return fetch[api.Command](ctx, c, http.MethodGet, commandPath(sandbox, command), nil)
}
