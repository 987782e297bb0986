package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// clientGone is why a sandbox ends whose lease is over.
const clientGone = "its client is gone"

// How long a sandbox with a lease lasts without a client.
const (
	// betweenCommands is how long a lease is at least while no command runs: a client is
	// attached to none then, and may be asking for the summary of its run.
	betweenCommands = 5 * time.Minute
	// keptLease is the least that a sandbox has from then on whose lease was over while it
	// waited: a person who answers may come back to it. It ends at last, because what runs
	// inside can ask for something that has to wait whenever it likes.
	keptLease = 24 * time.Hour
	// longestWait is for how long at most a wait in which commands run on suspends the lease: twice as
	// long as a request waits by default. A sandbox on disk runs nothing, and may wait for ever.
	longestWait = 14 * 24 * time.Hour
)

// absence counts the time that a sandbox spends without a client and does not wait in. Safe
// for concurrent use.
type absence struct {
	mu      sync.Mutex
	looked  time.Time     // at it last; zero: never
	waited  time.Duration // of this absence, and so left out
	running time.Duration // of that, with commands that ran
	ending  bool          // somebody looks whether it has to end
}

// counts returns what counts of an absence that is as long as this by now. It has to be asked
// again and again: the time since the last look was one in which the sandbox waited, or not.
func (a *absence) counts(now time.Time, absent time.Duration, waits, onDisk bool) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	passed := time.Duration(0)
	if !a.looked.IsZero() {
		passed = min(now.Sub(a.looked), absent)
	}
	a.looked = now
	switch {
	case onDisk:
		a.waited += passed
	case waits && a.running < longestWait:
		a.waited += passed
		a.running += passed
	}
	a.waited, a.running = min(a.waited, absent), min(a.running, absent) // a client was there meanwhile
	return absent - a.waited
}

// beginEnd tells whether nobody else is about to end the sandbox; then done must be called.
func (a *absence) beginEnd() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending {
		return false
	}
	a.ending = true
	return true
}

func (a *absence) endDone() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ending = false
}

// EndLeases ends sandboxes that no client has been attached to for as long as their leases
// are. Time in which one waits for a person, or is on disk, does not count; one whose lease
// would be over while it waits has a day from then on. It is to be called every few seconds,
// and returns at once: it waits for no sandbox.
func (m *Manager) EndLeases() {
	for _, s := range m.List() {
		lease, absent := s.Lifetime().Lease, s.clients.Absent()
		if lease == 0 || s.isOver() {
			continue
		}
		view := s.waits.View()
		onDisk := view.State != suspend.Running
		waits := onDisk || len(view.Holds) > 0
		counts := s.absence.counts(time.Now(), absent, waits, onDisk)
		keeps := waits && absent >= lease && lease < keptLease
		if !keeps && counts < lease || !s.absence.beginEnd() {
			continue
		}
		m.background.doInBackground(func() {
			defer s.absence.endDone()
			if keeps {
				m.cfg.Log.Info("a sandbox that waits is kept though its client is gone", "sandbox", s.info.ID, "run", s.info.Run, "lease", keptLease)
				m.tracker.prolongLease(m.background.ctx, s, lease)
				return
			}
			m.endLease(m.background.ctx, s, lease, counts)
		})
	}
}

// Stay counts in a client that is there between its commands, too, so that the sandbox's lease
// goes on; it is no use of the sandbox, which may be idle. The function that it returns counts it out, once.
func (s *Sandbox) Stay() (over func()) { return s.clients.Stay() }

// endLease ends a sandbox whose lease is over, unless it is between commands or a client came.
func (m *Manager) endLease(ctx context.Context, s *Sandbox, lease, counts time.Duration) {
	if counts < betweenCommands && !m.runsCommand(ctx, s.info.ID) || s.clients.Absent() < lease {
		return
	}
	m.cfg.Log.Info("a sandbox is ended, because its client is gone", "sandbox", s.info.ID, "run", s.info.Run, "lease", lease)
	if err := m.remover.endSandbox(ctx, s, clientGone); err != nil && !errors.Is(err, context.Canceled) {
		m.cfg.Log.Error("a sandbox whose client is gone can't be destroyed", "sandbox", s.info.ID, "err", err)
	}
}

// prolongLease has a sandbox last longer without a client, unless its lease is another one by
// now; the journal knows of it.
func (t *tracker) prolongLease(ctx context.Context, s *Sandbox, was time.Duration) {
	s.mu.Lock()
	same := s.lifetime.Lease == was
	if same {
		s.lifetime.Lease = keptLease
	}
	s.mu.Unlock()
	if same {
		t.rewrite(ctx, s)
	}
}
