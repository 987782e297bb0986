package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Client talks to one daemon. It is safe for concurrent use.
type Client struct {
	base   string // of URLs
	where  string // for people
	token  string
	direct func(ctx context.Context) (net.Conn, error) // a connection on which HTTP is spoken
	http   *http.Client
}

// New makes a client of the daemon that listens on the Unix socket at path.
// Nothing is dialled before the first call.
func New(path string) *Client {
	return newClient("http://daemon", path, "", func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	})
}

func newClient(base, where, token string, dial func(context.Context) (net.Conn, error)) *Client {
	c := &Client{base: base, where: where, token: token, direct: dial}
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) }
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: connect, DialTLSContext: connect,
			// One connection a call: a kept one would outlive a killed daemon and
			// fail the call after it.
			DisableKeepAlives: true,
		},
		// The daemon redirects nowhere; the token is for nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := c.direct(ctx)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoDaemon, c.where, err)
	}
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("the daemon at %s can't be reached: %w", c.where, err)
	}
	return conn, err
}

// Where is the daemon's address, for people.
func (c *Client) Where() string { return c.where }

// Remote reports whether the daemon is on the network, and takes a token: it is asked
// for nothing by a path of its host.
func (c *Client) Remote() bool { return c.token != "" }

// Version asks who the daemon is; it also serves as a ping.
func (c *Client) Version(ctx context.Context) (api.Version, error) {
	return fetchResult[api.Version](ctx, c, http.MethodGet, "/v1/version", nil)
}

// Shutdown asks the daemon to end. With sandboxes alive it refuses (status
// 409) unless force is set, which destroys them. It returns when the daemon
// has agreed, not when it has ended.
func (c *Client) Shutdown(ctx context.Context, force bool) error {
	path := "/v1/shutdown"
	if force {
		path += "?force=1"
	}
	return c.call(ctx, http.MethodPost, path, nil, nil)
}

// HandOver asks a daemon in the background that has nothing to do to end, and to leave
// its sandboxes to the next one. Any other refuses (status 409). It returns when the
// daemon has agreed, not when it has ended.
func (c *Client) HandOver(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/shutdown?handover=1", nil, nil)
}

// RunSummary tells what became of a run's packages.
func (c *Client) RunSummary(ctx context.Context, run string) (api.RunSummary, error) {
	return fetchResult[api.RunSummary](ctx, c, http.MethodGet, "/v1/runs/"+url.PathEscape(run)+"/summary", nil)
}

// RefusalFilter says which refusals are meant: of a run, of one of its sandboxes, or
// under the id that a client was shown; Causes marks those that may be why something failed.
// Its zero value is the last run.
type RefusalFilter struct {
	Run, Sandbox, Request string
	Causes                bool
}

// Refusals tells what a run was refused, and why.
func (c *Client) Refusals(ctx context.Context, f RefusalFilter) (api.Refusals, error) {
	q := url.Values{}
	for key, value := range map[string]string{"run": f.Run, "sandbox": f.Sandbox, "request": f.Request} {
		if value != "" {
			q.Set(key, value)
		}
	}
	if f.Causes {
		q.Set("causes", "true")
	}
	path := "/v1/refusals"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return fetchResult[api.Refusals](ctx, c, http.MethodGet, path, nil)
}

// Suggest returns the run's policy and what it would be if it let in what the run
// asked for, as far as the plans of these runs tell what that is.
func (c *Client) Suggest(ctx context.Context, run string, plans ...string) (api.Suggestion, error) {
	path := "/v1/runs/" + url.PathEscape(run) + "/suggest"
	if len(plans) > 0 {
		path += "?" + url.Values{"plan": plans}.Encode()
	}
	return fetchResult[api.Suggestion](ctx, c, http.MethodGet, path, nil)
}

// call sends body as JSON (nil: none) and decodes the answer into out (nil:
// it is dropped).
func (c *Client) call(ctx context.Context, method, path string, body, out any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if out == nil {
		return nil // the status said it; a daemon that ends may not say more
	}
	if err := plainTransport(json.NewDecoder(resp.Body).Decode(out)); err != nil {
		return fmt.Errorf("the daemon's answer to %s %s is not what was expected: %w", method, path, err)
	}
	return nil
}

// fetchResult makes a call and returns the answer.
func fetchResult[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var answer T
	err := c.call(ctx, method, path, body, &answer)
	return answer, err
}

// send returns the response of a success; any other status is an *Error. The
// caller closes the body.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	req, err := c.newRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return c.doRequest(req)
}

func (c *Client) doRequest(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, plainTransport(err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer func() { _ = resp.Body.Close() }()
		return nil, problem(resp)
	}
	return resp, nil
}

func (c *Client) newRequest(ctx context.Context, method, path string, body any) (*http.Request, error) {
	if body == nil {
		return c.rawRequest(ctx, method, path, nil)
	}
	if err := CheckText(body); err != nil {
		return nil, err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	req, err := c.rawRequest(ctx, method, path, bytes.NewReader(data))
	if err == nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// rawRequest is a request with a body as it is.
func (c *Client) rawRequest(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}
