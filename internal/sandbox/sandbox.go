// Package sandbox makes sandboxes, runs commands in them and takes them away.
//
// Vocabulary: a *sandbox* is an engine's instance plus what the daemon knows
// about it (run, policy, template, owner); a *command* is a process that was
// started through the API; a command is *settled* when its end and what it
// installed are on record; *recover* is what a restarted daemon does with the
// sandboxes that the keeper held meanwhile; the *journal* is what it knows them by;
// to *reconcile* is to compare what there is with what is known, and take away what
// is nobody's. What a sandbox waits for, and how it is frozen meanwhile, is package
// waiting; when it ends, package ends; how much each owner may have, package quota.
package sandbox

import (
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/ends"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
)

// Request is what somebody wants a sandbox to be.
type Request struct {
	Run      string
	Task     string
	Template string
	Engine   string
	Policy   *policy.Policy
	// PolicySource is the document's path on the host, "" for the built-in one.
	PolicySource string
	PolicyText   []byte
	// Lock are the run's lockfiles, named by their paths on the host; nil: none.
	Lock    *lockfile.Given
	Mounts  []mounts.Mount
	Env     map[string]string
	Workdir string
	Linger  bool
	Plan    bool // installs are only weighed: see admission.Run
	// Rehearsal is a plan that nobody asked for: see admission.Run.
	Rehearsal bool
	// Snapshot, an id or name, is what the sandbox is made from; "": the template.
	// Template, Engine and Mounts are the snapshot's then, and must be empty.
	Snapshot string
	Lifetime Lifetime
	Owner    Owner
	Account  Account
	Labels   map[string]string
	// Narrowing is what the client gives up of the network; see Manager.Narrow.
	Narrowing policy.Narrowing
	// from is what Snapshot names, or the image of a fork.
	from *copies.Origin
	// IdempotencyKey makes a second request of the same owner with the same key
	// get the first one's sandbox; "": none.
	IdempotencyKey string
	// User is who asked, for the record; HostUID and HostGID own the files
	// that the sandbox makes on read-write mounts.
	User             string
	HostUID, HostGID int
}

// Sandbox is one sandbox of a running daemon.
type Sandbox struct {
	info      Info // never changes after creation
	policy    *policy.Policy
	instance  engine.Instance
	waits     *waiting.List // what it waits for; has a lock of its own
	inventory *inventory.Taker
	clients   *commands.Clients
	commands  *commands.Table
	usage     meter // what Usage found last; has a lock of its own
	ends      *ends.Schedule
	anew      chan struct{} // a slot for the ResumeFiles that is under way

	// Of its idempotency key, and its first record; as the journal has them.
	key, request string
	first        uint64

	turn    sync.Mutex // one change of state at a time, held while it is journaled; before mu
	told    State      // guarded by turn: the last change
	written State      // guarded by turn: the last one that is in the journal

	mu       sync.Mutex // guards what follows
	state    State      // never Freezing, Frozen, Paused or Thawing: those are the list's
	lifetime Lifetime   // as it was set last
	extended time.Time  // when a change of that was recorded
	exit     *engine.Exit
	gone     chan struct{} // closed when the instance has been destroyed
	removal  removal
	pretends bool // a stand-in of which only files are kept
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

// ending reports whether somebody is taking the sandbox away, or has. Needs mu.
func (s *Sandbox) ending() bool {
	return s.state.Ends()
}

func (s *Sandbox) setState(to State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = to
}

// newSandbox makes one without a manager: no list of holds, inventory or commands.
func newSandbox(info Info, p *policy.Policy, inst engine.Instance, schedule *ends.Schedule) *Sandbox {
	return &Sandbox{
		info: info, policy: p, instance: inst, state: Creating, told: Creating, written: Creating, lifetime: info.Lifetime,
		ends: schedule, clients: commands.NewClients(info.Created, func() { schedule.Touch(info.ID) }), gone: make(chan struct{}), anew: make(chan struct{}, 1),
	}
}

// Gone is closed when the sandbox has been taken away.
func (s *Sandbox) Gone() <-chan struct{} { return s.gone }

// Waits is what the sandbox waits for now, and a channel that tells when that
// changes.
func (s *Sandbox) Waits() waiting.View { return s.waits.View() }

// Publishes reports whether the policy lets clients connect to a port inside.
func (s *Sandbox) Publishes(port int) bool { return s.policy != nil && s.policy.Publishes(port) }
