package upstream

import (
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// breaker leaves an upstream alone for a while after it failed often in a row,
// so that a thousand clients don't wait for a thousand timeouts.
type breaker struct {
	after int
	pause time.Duration

	mu     sync.Mutex
	failed int
	until  time.Time
}

// allow refuses while the breaker is open. After the pause it lets one request
// try; the others are refused until that one is answered or a pause is over.
func (b *breaker) allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed < b.after {
		return nil
	}
	now := time.Now()
	if now.Before(b.until) {
		return fault.New(fault.ErrUnavailable, "the upstream has failed several times in a row and is left alone for a moment")
	}
	b.until = now.Add(b.pause)
	return nil
}

// report tells how a request ended: reachable or not.
func (b *breaker) report(ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		b.failed = 0
		return
	}
	b.failed++
	if b.failed >= b.after {
		b.until = time.Now().Add(b.pause)
	}
}
