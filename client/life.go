package client

import (
	"bufio"
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

// maxLine bounds one line of an answer of JSON lines.
const maxLine = 8 << 20

// Pause writes a sandbox to disk and frees its memory; it returns when that is
// done. Status 409: it is paused already, or waits for a person.
func (c *Client) Pause(ctx context.Context, id string) (api.Sandbox, error) {
	return fetchResult[api.Sandbox](ctx, c, http.MethodPost, sandboxPath(id)+"/pause", nil)
}

// Resume lets a paused sandbox go on; one that runs is left alone. Status 403: its
// policy or what is known of its packages would refuse it today, and it stays
// paused.
func (c *Client) Resume(ctx context.Context, id string) (api.Sandbox, error) {
	return fetchResult[api.Sandbox](ctx, c, http.MethodPost, sandboxPath(id)+"/resume", nil)
}

// SetLifetime replaces when a sandbox ends by itself, from now on.
func (c *Client) SetLifetime(ctx context.Context, id string, l api.Lifetime) (api.Sandbox, error) {
	return fetchResult[api.Sandbox](ctx, c, http.MethodPut, sandboxPath(id)+"/lifetime", l)
}

// Controls has a probe try to get past each control of a sandbox, in a twin that is made for
// it and taken away. It takes some seconds.
func Controls(ctx context.Context, c *Client, id string) (api.Controls, error) {
	return fetchResult[api.Controls](ctx, c, http.MethodGet, sandboxPath(id)+"/controls", nil)
}

// Usage tells what a sandbox has and uses.
func (c *Client) Usage(ctx context.Context, id string) (api.Usage, error) {
	return fetchResult[api.Usage](ctx, c, http.MethodGet, sandboxPath(id)+"/usage", nil)
}

// Fork makes running copies of a sandbox. Each is a sandbox or an error of its own.
func (c *Client) Fork(ctx context.Context, id string, req api.ForkSandbox) ([]api.Fork, error) {
	answer, err := fetchResult[api.Forks](ctx, c, http.MethodPost, sandboxPath(id)+"/fork", req)
	return answer.Forks, err
}

// MakeSnapshot copies a running sandbox; it goes on meanwhile, but for a moment.
func (c *Client) MakeSnapshot(ctx context.Context, id string, req api.MakeSnapshot) (api.Snapshot, error) {
	return fetchResult[api.Snapshot](ctx, c, http.MethodPost, sandboxPath(id)+"/snapshots", req)
}

// Snapshots lists those that the caller sees.
func (c *Client) Snapshots(ctx context.Context) ([]api.Snapshot, error) {
	return fetchResult[[]api.Snapshot](ctx, c, http.MethodGet, "/v1/snapshots", nil)
}

// Snapshot returns one by id or name.
func (c *Client) Snapshot(ctx context.Context, ref string) (api.Snapshot, error) {
	return fetchResult[api.Snapshot](ctx, c, http.MethodGet, "/v1/snapshots/"+url.PathEscape(ref), nil)
}

// RemoveSnapshot removes one by id or name.
func (c *Client) RemoveSnapshot(ctx context.Context, ref string) error {
	return c.call(ctx, http.MethodDelete, "/v1/snapshots/"+url.PathEscape(ref), nil, nil)
}

// Events yields what happens to the sandboxes that the caller sees, from after an
// event's number on, until ctx ends; sandbox "" is all of them. When the daemon
// ends, or this reader was too slow, it yields ErrLost; ask again from the last
// event's number.
func (c *Client) Events(ctx context.Context, sandbox string, after int64) iter.Seq2[api.Event, error] {
	q := url.Values{"after": {strconv.FormatInt(after, 10)}}
	if sandbox != "" {
		q.Set("sandbox", sandbox)
	}
	return func(yield func(api.Event, error) bool) {
		for event, err := range readLines[api.Event](ctx, c, "/v1/events"+encoded(q)) {
			if !yield(event, err) || err != nil {
				return
			}
		}
		if ctx.Err() == nil {
			yield(api.Event{}, fmt.Errorf("watch the events: %w", ErrLost))
		}
	}
}

// readLines yields the lines of an answer. After an error nothing more comes.
func readLines[T any](ctx context.Context, c *Client, path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		resp, err := c.send(ctx, http.MethodGet, path, nil)
		if err != nil {
			yield(none, err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			var one T
			if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
				yield(none, fmt.Errorf("the daemon's answer has a line that can't be read: %w", err))
				return
			}
			if !yield(one, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil && ctx.Err() == nil {
			yield(none, plainTransport(err))
		}
	}
}

// sendAndDecode does a request and reads its answer.
func sendAndDecode[T any](c *Client, req *http.Request) (T, error) {
	var answer T
	resp, err := c.doRequest(req)
	if err != nil {
		return answer, err
	}
	defer func() { _ = resp.Body.Close() }()
	err = json.NewDecoder(resp.Body).Decode(&answer)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err = plainTransport(err); err != nil {
		return answer, fmt.Errorf("the daemon's answer is not what was expected: %w", err)
	}
	return answer, nil
}
