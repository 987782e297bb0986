package guest

import (
	"context"
	"sync"
	"time"
)

// A clock looks at the time at least so often while somebody waits for it, and
// counts at most so much between two looks. A kernel that starves the agent for
// longer makes the clock slow, never fast.
const (
	clockLook = 250 * time.Millisecond
	clockMost = time.Second
)

// clock counts the time in which the sandbox runs. The monotonic clock does
// not: when a frozen sandbox goes on it has jumped, by days perhaps, and every
// timer and deadline that was set by it is over at once. So nothing in the
// agent that bounds what a command or the host may take is set by the time of
// day or a plain timer.
//
// A jump counts as clockMost. A clock can also be stopped.
type clock struct {
	now func() time.Time // time.Now; tests have another

	mu      sync.Mutex // guards the rest
	counted time.Duration
	looked  time.Time
	stopped bool
}

func newClock() *clock { return &clock{now: time.Now, looked: time.Now()} }

// readTime returns the time counted so far.
func (c *clock) readTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countPassed()
	return c.counted
}

// countPassed counts what has passed since the last look. Needs mu.
func (c *clock) countPassed() {
	now := c.now()
	if passed := now.Sub(c.looked); passed > 0 && !c.stopped {
		c.counted += min(passed, clockMost)
	}
	c.looked = now
}

// setStopped stops the clock, or lets it go on.
func (c *clock) setStopped(stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countPassed()
	c.stopped = stopped
}

// waitCounted returns nil when d has been counted, or ctx's error when that ends first.
func (c *clock) waitCounted(ctx context.Context, d time.Duration) error {
	until := c.readTime() + d
	for {
		left := until - c.readTime()
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(min(left, clockLook))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// withTimeout is context.WithTimeout by this clock.
func (c *clock) withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		if c.waitCounted(ctx, d) == nil {
			cancel(context.DeadlineExceeded)
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// expiring is what has deadlines: a connection, a stream.
type expiring interface{ SetDeadline(t time.Time) error }

// limitIO makes all reads and writes of conn fail once ctx has ended. The
// function that it returns takes the limit off, and tells whether it was in
// time; after it nothing touches conn's deadlines any more.
func limitIO(ctx context.Context, conn expiring) (lift func() bool) {
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	return sync.OnceValue(func() bool {
		if stop() {
			return true
		}
		<-expired
		return false
	})
}
