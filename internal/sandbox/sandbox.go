// Package sandbox makes sandboxes, runs commands in them and takes them away.
//
// Vocabulary: a *sandbox* is an engine's instance plus what the daemon knows
// about it (run, policy, template, owner); a *command* is a process that was
// started through the API; a command is *settled* when its end and what it
// installed are on record; *recover* is what a restarted daemon does with the
// sandboxes that the keeper held meanwhile. What a sandbox waits for, and how it
// is frozen meanwhile, is package waiting.
package sandbox

import (
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
)

// State is where a sandbox stands.
type State string

// The states. A running sandbox may be on its way to disk, there, or on its way
// back while it waits for a person.
const (
	Creating   State = "creating"
	Running    State = "running"
	Freezing   State = "freezing"
	Frozen     State = "frozen"
	Paused     State = "paused" // frozen because somebody asked for that; only a resume ends it
	Thawing    State = "thawing"
	Destroying State = "destroying"
	Destroyed  State = "destroyed"
	Failed     State = "failed" // its processes ended without being asked
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
	Mounts  []Mount
	Env     map[string]string
	Workdir string
	Linger  bool
	Plan    bool // installs are only weighed: see admission.Run
	// Snapshot, an id or name, is what the sandbox is made from; "": the template.
	// Template, Engine and Mounts are the snapshot's then, and must be empty.
	Snapshot string
	Lifetime Lifetime
	Owner    Owner
	Account  Account
	Labels   map[string]string
	// Narrowing is what the client gives up of the network; see Manager.Narrow.
	Narrowing policy.Narrowing
	// IdempotencyKey makes a second request of the same owner with the same key
	// get the first one's sandbox; "": none.
	IdempotencyKey string
	// User is who asked, for the record; HostUID and HostGID own the files
	// that the sandbox makes on read-write mounts.
	User             string
	HostUID, HostGID int
}

// Info is what the daemon knows about a sandbox, and what the keeper hands back
// as meta after a restart of the daemon.
type Info struct {
	ID           string            `json:"id"`
	Run          string            `json:"run"`
	Task         string            `json:"task,omitempty"`
	Template     string            `json:"template"`
	Digest       string            `json:"template_digest"`
	Engine       string            `json:"engine"`
	PolicyDigest string            `json:"policy_digest"`
	PolicySource string            `json:"policy_source,omitempty"`
	LockDigest   string            `json:"lock_digest,omitempty"` // of the lockfiles; "": there are none
	User         string            `json:"user,omitempty"`
	Workdir      string            `json:"workdir,omitempty"`
	Linger       bool              `json:"linger,omitempty"`
	Lifetime     Lifetime          `json:"lifetime,omitzero"` // as it was asked for; Sandbox.Ends tells how it stands
	Owner        Owner             `json:"owner,omitzero"`
	Account      Account           `json:"account,omitzero"`
	Limits       engine.Limits     `json:"limits,omitzero"`
	Snapshot     string            `json:"snapshot,omitempty"` // that it was made from
	Parent       string            `json:"parent,omitempty"`   // the sandbox that it is a fork of
	Labels       map[string]string `json:"labels,omitempty"`
	Plan         bool              `json:"plan,omitempty"`
	Created      time.Time         `json:"created"`
	Notes        []string          `json:"notes,omitempty"`
	Missing      []string          `json:"missing,omitempty"`
	Handle       engine.Handle     `json:"handle"`
	// The directories of the sandbox on which the host's lie.
	WritableMounts []string `json:"writable_mounts,omitempty"`
	ReadOnlyMounts []string `json:"read_only_mounts,omitempty"`
}

// Sandbox is one sandbox of a running daemon.
type Sandbox struct {
	info     Info // never changes after creation
	policy   *policy.Policy
	instance engine.Instance
	waits    *waiting.List // what it waits for; has a lock of its own
	stock    sync.Mutex    // one inventory at a time
	usage    meter         // what Usage found last; has a lock of its own

	mu       sync.Mutex // guards what follows
	state    State      // never Freezing, Frozen or Thawing: those are the list's
	exit     *engine.Exit
	commands map[string]*command
	lastUsed time.Time
	attached int           // clients attached to a command's output now
	unseen   bool          // a command has ended and nobody was attached since
	gone     chan struct{} // closed when the instance has been destroyed
	stuck    bool          // it could not be taken away; the next Destroy tries again
}

// Info returns what does not change.
func (s *Sandbox) Info() Info { return s.info }

// State returns where the sandbox stands, and how it ended if it has.
func (s *Sandbox) State() (State, *engine.Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Running {
		return State(s.waits.View().State), s.exit
	}
	return s.state, s.exit
}

// ending reports whether somebody is taking the sandbox away, or has. Needs mu.
func (s *Sandbox) ending() bool {
	return s.state == Destroying || s.state == Destroyed || s.state == Failed
}

func (s *Sandbox) setState(to State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = to
}

// command is one started process; settled is closed when its end is on record.
type command struct {
	id      string
	settled chan struct{}
}
