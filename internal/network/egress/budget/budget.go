// Package budget counts what one sandbox has of the gateway's memory. Code that keeps something
// for a sandbox takes its size first, in bytes, and gives it back when it is gone: connections,
// requests under way with their fields, bodies that are read whole, answers that nobody has read
// yet, buffers in which something is looked for, ends that wait to be put on record. Where each
// of these had a bound of its own alone, a sandbox could have all of them at once.
package budget

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ErrFull is that a sandbox has as much as it may.
var ErrFull = errors.New("the budget is used up")

// Budget is one sandbox's. A nil one has no bound. Safe for concurrent use.
type Budget struct {
	most     int64
	patience time.Duration

	mu      sync.Mutex // guards both
	used    int64
	waiting []*waiter // in Await, in the order in which they came
}

// waiter waits for bytes.
type waiter struct {
	bytes int64
	given chan struct{}
}

// New makes a budget of so many bytes. patience is how long Await waits.
func New(most int64, patience time.Duration) *Budget {
	return &Budget{most: most, patience: patience}
}

// Take takes bytes; false: there are not as many left, and nothing was taken.
func (b *Budget) Take(bytes int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+bytes > b.most {
		return false
	}
	b.used += bytes
	return true
}

// Owe takes bytes although there may not be as many left: what can't be thrown away counts, so
// that nothing else is taken until it is gone.
func (b *Budget) Owe(bytes int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += bytes
}

// Await takes bytes once there are as many and some to spare, for those who wait in the order in
// which they came. A Take, which does not wait, passes them: it is small, and would be refused.
// The error is ErrFull if there are not in time, or never will be, and ctx's if that ends before.
func (b *Budget) Await(ctx context.Context, bytes int64) error {
	if b == nil {
		return ctx.Err()
	}
	if bytes > b.most {
		return ErrFull
	}
	w := &waiter{bytes: bytes, given: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.serveWaiting()
	b.mu.Unlock()
	late := time.NewTimer(b.patience)
	defer late.Stop()
	err := ErrFull
	select {
	case <-w.given:
		return nil
	case <-late.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.waiting, w)
	if at < 0 { // it was given in the same moment
		b.used -= w.bytes
	} else {
		b.waiting = slices.Delete(b.waiting, at, at+1)
	}
	b.serveWaiting() // who stood behind it may go on
	return err
}

// spareShare of the whole is left by those who wait to those who take without waiting: the heads
// and connections of requests whose bodies stand in line would be refused otherwise.
const spareShare = 8

// fitsBytes tells whether who waits for bytes may have them. One that leaves nothing in any case may have
// them once there is room for it. Needs mu.
func (b *Budget) fitsBytes(bytes int64) bool {
	most := b.most - b.most/spareShare
	if bytes > most {
		most = b.most
	}
	return b.used+bytes <= most
}

// serveWaiting gives to those who wait, as long as there is enough for the first. Needs mu.
func (b *Budget) serveWaiting() {
	for len(b.waiting) > 0 && b.fitsBytes(b.waiting[0].bytes) {
		b.used += b.waiting[0].bytes
		close(b.waiting[0].given)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// Give gives bytes back.
func (b *Budget) Give(bytes int64) {
	if b == nil || bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
	b.serveWaiting()
}

// Used is how much is taken.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Sentence is what a client is told when it is used up.
func (b *Budget) Sentence() string {
	return "the run has as much in the gateway's memory as it may (" + strconv.FormatInt(b.most>>20, 10) + " MiB, of connections, requests and bodies under way); let some end first"
}
