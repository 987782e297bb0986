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

	"github.com/cofferdam-dev/cofferdam/api"
)

// Holds is what a sandbox waits for now.
func (c *Client) Holds(ctx context.Context, sandbox string) ([]api.Hold, error) {
	return fetchResult[[]api.Hold](ctx, c, http.MethodGet, sandboxPath(sandbox)+"/holds", nil)
}

// Stay tells that a client of the sandbox is there, so that its lease goes on, until ctx ends or the
// sandbox is gone; then there is no error. It is no use of the sandbox, which may be idle.
func Stay(ctx context.Context, c *Client, sandbox string) error {
	resp, err := c.send(ctx, http.MethodGet, sandboxPath(sandbox)+"/holds?watch=1&stay=1", nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil && ctx.Err() == nil {
		return fmt.Errorf("stay with the sandbox: %w", plainTransport(err))
	}
	return nil
}

// WatchHolds yields what a sandbox waits for: at once, and whenever that has
// changed, the whole list each time. It ends when the sandbox is gone; after an
// error nothing more comes.
func (c *Client) WatchHolds(ctx context.Context, sandbox string) iter.Seq2[[]api.Hold, error] {
	return func(yield func([]api.Hold, error) bool) {
		resp, err := c.send(ctx, http.MethodGet, sandboxPath(sandbox)+"/holds?watch=1", nil)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return
			}
			var holds []api.Hold
			if err == nil {
				err = json.Unmarshal(line, &holds)
			}
			if err != nil {
				yield(nil, fmt.Errorf("read what the sandbox waits for: %w", plainTransport(err)))
				return
			}
			if !yield(holds, nil) {
				return
			}
		}
	}
}
