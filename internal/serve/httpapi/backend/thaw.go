package backend

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// thawTimeout is how long a request waits for a sandbox that comes back from disk.
const thawTimeout = 30 * time.Second

// AwaitThaw lets a request that works in a sandbox wait while that comes back from disk, as it does when a person has
// just answered. It returns when the sandbox does not thaw, when the request ends, and after thawTimeout at the latest;
// the caller asks for the state anew. It is called once the request is in its owner's room and bound to its token, and, where
// that can be, has been read: over HTTP/1 the server sees that a client has gone only when no more of its body is to come.
func AwaitThaw(ctx context.Context, box *sandbox.Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, thawTimeout)
	defer cancel()
	for {
		waits := box.Waits()
		if waits.State != suspend.Thawing {
			return
		}
		select {
		case <-waits.Changed:
		case <-ctx.Done():
			return
		}
	}
}
