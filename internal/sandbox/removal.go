package sandbox

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
)

// When what could not be taken away is tried again: soon at first, then each time
// after twice as long.
const (
	retryLeast = time.Second
	retryMost  = 5 * time.Minute
)

// removal is how far the taking away of a sandbox has come. The zero value is that
// nobody has begun.
type removal struct {
	reason string   // why it is taken away, as the first one said who began
	try    *attempt // under way, or the one that did it; nil: none
	failed Stuck
	tended bool // somebody tries again until it is done
}

// attempt is one try; err may be read when over is closed.
type attempt struct {
	over chan struct{}
	err  error
}

// Stuck tells of a sandbox that could not be taken away yet. It keeps its share of the
// quota: nobody knows what of it still runs.
type Stuck struct {
	Tries int       // so far; 0: it is not stuck
	Since time.Time // the first that failed
	Next  time.Time // when it is tried again at the latest
}

// Stuck tells whether the sandbox could not be taken away.
func (s *Sandbox) Stuck() Stuck {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removal.failed
}

// claimEnd makes the caller the one who takes a sandbox away: once, and again after
// that could not be done. Who is not gets the try that is under way. The exit is that
// of a sandbox that failed, else nil.
func (m *Manager) claimEnd(ctx context.Context, s *Sandbox, exit *engine.Exit, reason string) (try *attempt, mine bool) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	if s.removal.try != nil || s.ending() && exit != nil {
		defer s.mu.Unlock()
		return s.removal.try, false
	}
	try = &attempt{over: make(chan struct{})}
	s.removal.try = try
	if s.removal.reason == "" {
		s.removal.reason = reason
	}
	to := Destroying
	if exit != nil {
		s.exit, to = exit, Failed
	}
	s.mu.Unlock()
	if s.told != to {
		m.correct(ctx, s, to, reason)
	}
	return try, true
}

// end takes a sandbox away, or waits for whoever does. What can't be taken away is
// tried again in the background until it is.
func (m *Manager) end(ctx context.Context, s *Sandbox, reason string) error {
	try, mine := m.claimEnd(ctx, s, nil, reason)
	if mine {
		faultpoint.Hit(faultpoint.DestroyJournaled)
		return m.attempt(ctx, s, try)
	}
	select {
	case <-try.over:
		return try.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail takes a sandbox away that ended by itself.
func (m *Manager) fail(ctx context.Context, s *Sandbox, exit engine.Exit) {
	try, mine := m.claimEnd(ctx, s, &exit, exit.Reason)
	if !mine {
		return
	}
	m.cfg.Log.Warn("a sandbox ended by itself", "sandbox", s.info.ID, "run", s.info.Run, "reason", exit.Reason, "code", exit.Code, "words", exit.Words)
	_ = m.attempt(ctx, s, try) // the log has it, and it is tried again
}

// attempt is a try of the caller, who has claimed it.
func (m *Manager) attempt(ctx context.Context, s *Sandbox, try *attempt) error {
	s.mu.Lock()
	reason := s.removal.reason
	s.mu.Unlock()
	try.err = m.remove(context.WithoutCancel(ctx), s, reason)
	if try.err != nil {
		m.stuck(s, try.err)
	}
	close(try.over)
	return try.err
}

// stuck keeps in mind that a sandbox could not be taken away, and sees to it that it
// is tried again.
func (m *Manager) stuck(s *Sandbox, cause error) {
	now := time.Now()
	s.mu.Lock()
	r := &s.removal
	r.try = nil
	if r.failed.Tries++; r.failed.Tries == 1 {
		r.failed.Since = now
	}
	pause := retryAfter(m.cfg.EndRetry, r.failed.Tries)
	r.failed.Next = now.Add(pause)
	first := !r.tended
	r.tended = true
	s.mu.Unlock()
	m.cfg.Log.Error("a sandbox can't be taken away; it is tried again", "sandbox", s.info.ID, "run", s.info.Run, "again_in", pause, "err", cause)
	if first && m.ctx.Err() == nil {
		errand.In(&m.background, func() { m.tryAgain(s) })
	}
}

// tryAgain tries until the sandbox is gone, or this daemon ends: the next one takes
// away what is left.
func (m *Manager) tryAgain(s *Sandbox) {
	for {
		pause := time.NewTimer(time.Until(s.Stuck().Next))
		select {
		case <-pause.C:
		case <-s.gone:
			pause.Stop()
			return
		case <-m.ctx.Done():
			pause.Stop()
			return
		}
		_ = m.end(m.ctx, s, "destroyed") // the log has it
	}
}

// retryAfter is how long after so many failures the next try is.
func retryAfter(least time.Duration, failures int) time.Duration {
	if least <= 0 {
		least = retryLeast
	}
	pause := least
	for range failures - 1 {
		if pause *= 2; pause >= retryMost {
			return retryMost
		}
	}
	return pause
}
