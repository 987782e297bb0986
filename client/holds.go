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
	return fetch[[]api.Hold](ctx, c, http.MethodGet, sandboxPath(sandbox)+"/holds", nil)
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
