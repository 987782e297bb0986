package wasm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// grace is for how long code that does not hear of an interrupt may go on, before its
// module is closed.
const grace = 250 * time.Millisecond

// stopwatch counts for how long code computes, and ends that. The zero value counts
// nothing and never ends.
type stopwatch struct {
	ended atomic.Bool

	mu    sync.Mutex // guards all below
	left  time.Duration
	since time.Time
	timer *time.Timer
	close context.CancelFunc // the module
}

// startLimit gives code so much time; then it is interrupted, and its module closed a moment
// later.
func (s *stopwatch) startLimit(limit time.Duration, closing context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.since, s.close = limit, time.Now(), closing
	s.timer = safego.After(limit, s.endTime)
}

// endTime ends the time of the code.
func (s *stopwatch) endTime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil { // it stands still
		return
	}
	if s.ended.Swap(true) {
		s.close()
		return
	}
	s.timer = safego.After(grace, s.endTime)
}

// isOver tells that the time has ended.
func (s *stopwatch) isOver() bool { return s.ended.Load() }

// pauseTime has the time stand still until resume.
func (s *stopwatch) pauseTime() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil || s.ended.Load() {
		return func() {}
	}
	s.timer.Stop()
	s.timer = nil
	s.left -= time.Since(s.since)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.since = time.Now()
		s.timer = safego.After(max(0, s.left), s.endTime)
	}
}

// stopCounting ends the counting.
func (s *stopwatch) stopCounting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
