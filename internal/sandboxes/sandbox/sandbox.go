// Package sandbox makes sandboxes, runs commands in them and takes them away.
//
// A restarted daemon takes over the sandboxes that the keeper held meanwhile, which it knows by the
// journal (package journal), and takes away what is nobody's (package recovery). Package commands
// starts commands in them and follows these to their ends. Package suspend has what a sandbox waits
// for, and how it is frozen meanwhile; package expiry, when it ends; package quota, how much each
// owner may have.
package sandbox

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/baseline"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/expiry"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// Sandbox is one sandbox of a running daemon: an engine's instance plus what the daemon knows about
// it (run, policy, template, owner).
type Sandbox struct {
	info      Info // never changes after creation
	policy    *policy.Policy
	instance  engine.Instance
	waits     *suspend.List // what it waits for; has a lock of its own
	inventory *baseline.Taker
	clients   *commands.Clients
	absence   absence // of its clients; has a lock of its own
	commands  *commands.Table
	usage     meter // what Usage found last; has a lock of its own
	ends      *expiry.Schedule
	anew      chan struct{} // a slot for the ResumeFiles that is under way
	guarding  atomic.Bool   // the journal is about to hear of the time limits of its commands

	// Of its idempotency key, and its first record; as the journal has them.
	key, request string
	first        uint64

	turn    sync.Mutex // one change of state at a time, held while it is journaled; before mu
	entered State      // guarded by turn: the last change
	written State      // guarded by turn: the last one that is in the journal

	mu       sync.Mutex // guards what follows
	state    State      // never Freezing, Frozen, Paused or Thawing: those are the list's
	lifetime Lifetime   // as it was set last
	extended time.Time  // when a change of that was recorded
	exit     *engine.Exit
	gone     chan struct{} // closed when the instance has been destroyed
	removal  removal
	pretends suspend.View // of a stand-in: Files and Silent
}

// Info returns what does not change.
func (s *Sandbox) Info() Info { return s.info }

// State returns where the sandbox stands, and how it ended if it has.
func (s *Sandbox) State() (State, *engine.Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == Running:
		return State(s.waits.View().State), s.exit
	case s.state == Destroyed && s.exit != nil:
		return Failed, s.exit
	}
	return s.state, s.exit
}

func (s *Sandbox) setState(to State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = to
}

// newSandbox makes one without a manager: no list of holds, inventory or commands.
func newSandbox(info Info, p *policy.Policy, inst engine.Instance, schedule *expiry.Schedule) *Sandbox {
	return &Sandbox{
		info: info, policy: p, instance: inst, state: Creating, entered: Creating, written: Creating, lifetime: info.Lifetime,
		ends: schedule, clients: commands.NewClients(info.Created, func() { schedule.Touch(info.ID) }), gone: make(chan struct{}), anew: make(chan struct{}, 1),
	}
}

// Gone is closed when the sandbox has been taken away.
func (s *Sandbox) Gone() <-chan struct{} { return s.gone }

// Waits is what the sandbox waits for now, and a channel that tells when that
// changes.
func (s *Sandbox) Waits() suspend.View { return s.waits.View() }

// Publishes reports whether the policy lets clients connect to a port inside.
func (s *Sandbox) Publishes(port int) bool { return s.policy != nil && s.policy.Publishes(port) }

// PolicyName is what the policy calls itself, or else the last part of what it came from; "": it has no name.
func (s *Sandbox) PolicyName() string {
	if s.policy != nil && s.policy.Name() != "" {
		return s.policy.Name()
	}
	if s.info.PolicySource == "" {
		return ""
	}
	return filepath.Base(s.info.PolicySource)
}

// isOver reports whether the sandbox is being taken away, or has been.
func (s *Sandbox) isOver() bool {
	state, _ := s.State()
	return state.Ends()
}

// Stuck tells whether the sandbox could not be taken away.
func (s *Sandbox) Stuck() Stuck {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removal.failed
}

// extensionRecords is how often at most an extension is recorded: a client may keep
// its sandbox alive by one every few seconds.
const extensionRecords = time.Minute

// toRecord tells whether an extension is to be recorded now.
func (s *Sandbox) toRecord(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.extended.IsZero() && now.Sub(s.extended) < extensionRecords {
		return false
	}
	s.extended = now
	return true
}

// Ends is when the sandbox ends if nobody uses it and nothing changes, and as if it
// went on now if its time stands still; zero: never.
func (s *Sandbox) Ends() time.Time {
	v, _ := s.ends.View(s.info.ID)
	return v.Ends
}

// Lifetime is what was set last.
func (s *Sandbox) Lifetime() Lifetime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lifetime
}

// FilesAlone tells that the sandbox is paused and its memory was not kept: only a
// Resume that somebody asked for starts it, anew.
func (s *Sandbox) FilesAlone() bool {
	s.mu.Lock()
	pretends := s.pretends
	s.mu.Unlock()
	return pretends.Files || s.waits.View().Files
}

// SilentAtPause tells that the sandbox is paused with the memory of a guest that did not
// answer just before: Resume brings that guest back, and ResumeFiles starts another one.
func (s *Sandbox) SilentAtPause() bool {
	s.mu.Lock()
	pretends := s.pretends
	s.mu.Unlock()
	return pretends.Silent || s.waits.View().Silent
}

// AwaitPause returns when no pause is under way, so that what is known of the last one is what is so.
func (s *Sandbox) AwaitPause(ctx context.Context) error {
	_, err := s.awaitPaused(ctx)
	return err
}

// awaitPaused returns the view when no pause is under way.
func (s *Sandbox) awaitPaused(ctx context.Context) (suspend.View, error) {
	for {
		v := s.waits.View()
		if !v.Pausing {
			return v, nil
		}
		select {
		case <-v.Changed:
		case <-s.gone:
			return v, fault.New(fault.ErrConflict, "the sandbox %s has ended", s.info.ID)
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}
