package docker

import (
	"context"
	"log/slog"
	"sync"
)

// complaint is something that is tried again and again: that it fails is told once, until it
// goes well.
type complaint struct {
	mu   sync.Mutex // guards told
	told bool
}

// tellFailure tells of a try that failed. One that its caller gave up says nothing.
func (c *complaint) tellFailure(ctx context.Context, log *slog.Logger, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.told {
		log.Warn(what, "err", err)
	}
	c.told = err != nil
}
