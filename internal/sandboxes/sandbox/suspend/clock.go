package suspend

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// WithTimeout returns a context that ends, with the cause
// context.DeadlineExceeded, when the sandbox has been active for d: time in which
// it waits for a person, frozen or not, does not count.
func (l *List) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	safego.Go(func() {
		if l.spendTime(ctx, d) {
			cancel(context.DeadlineExceeded)
		}
	})
	return ctx, func() { cancel(nil) }
}

// spendTime returns true when d of active time is over, false when ctx is.
func (l *List) spendTime(ctx context.Context, left time.Duration) bool {
	for left > 0 {
		v := l.View()
		if len(v.Holds) > 0 || v.State != Running {
			if !awaitClosed(ctx, v.Changed, 0) {
				return false
			}
			continue
		}
		began := time.Now()
		if !awaitClosed(ctx, v.Changed, left) {
			return false
		}
		left -= time.Since(began)
	}
	return ctx.Err() == nil
}
