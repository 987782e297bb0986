package sandbox

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/token"
)

// Lifetime says when a sandbox ends by itself. Time in which it is frozen,
// paused, or waits for a person does not count.
type Lifetime struct {
	TTL  time.Duration `json:"ttl,omitempty"`  // from when it was set; 0: no end
	Idle time.Duration `json:"idle,omitempty"` // without a command, a client or a file operation; 0: no end
	Then AtEnd         `json:"then,omitempty"`
}

// AtEnd is what becomes of a sandbox whose time is over.
type AtEnd string

// What may become of it.
const (
	ThenDestroy AtEnd = ""
	ThenPause   AtEnd = "pause"
	// ThenPauseFiles is a pause of which only the files are kept.
	ThenPauseFiles AtEnd = "pause-files"
)

// Pauses tells whether it is paused then, in one way or the other.
func (a AtEnd) Pauses() bool { return a == ThenPause || a == ThenPauseFiles }

// Owner is the token whose sandbox it is; the zero Owner is a caller on the Unix
// socket, who has no quota.
type Owner struct {
	Token string      `json:"token,omitempty"` // token.Token.ID
	Quota token.Quota `json:"quota,omitzero"`
}

// Account is the user inside who runs commands; the zero one is the template's.
type Account struct {
	Name string `json:"name,omitempty"`
	Home string `json:"home,omitempty"`
	// Default is who runs what names no user: "" for this one, or "root".
	Default string `json:"default,omitempty"`
}

// Snapshot is a copy of a sandbox that others can be made from. It never
// changes.
type Snapshot struct {
	ID       string          `json:"id"`             // "snap" and 16 hexadecimal digits
	Name     string          `json:"name,omitempty"` // a newer snapshot of the same owner and name takes it over
	Digest   string          `json:"digest"`         // of all of it: sha256:...
	Contents engine.Contents `json:"contents"`
	Created  time.Time       `json:"created"`
	Bytes    int64           `json:"bytes"`
	Owner    Owner           `json:"owner,omitzero"`
	// Of is the sandbox that it was made of: its template, policy, lockfiles,
	// ledger and limits are the snapshot's.
	Of Info `json:"of"`
	// Compressed tells that it lies cold and takes longer to start from.
	Compressed bool `json:"compressed,omitempty"`
	// Also are names that it was given beside Name.
	Also []string `json:"also,omitempty"`
	// Built is what it knows as a template's build; nil: it is none.
	Built *Built `json:"built,omitempty"`
}

// Names are all that lead to a snapshot, its maker's first.
func (s Snapshot) Names() []string {
	if s.Name == "" {
		return s.Also
	}
	return append([]string{s.Name}, s.Also...)
}

// Built is what a template's build settles for the sandboxes that are made of its
// result.
type Built struct {
	Build    string            `json:"build"`    // its id
	Template string            `json:"template"` // the template's, which all builds of one name share
	Env      map[string]string `json:"env,omitempty"`
	Workdir  string            `json:"workdir,omitempty"`
	User     string            `json:"user,omitempty"` // as Account.Default
	// Start and Ready are the commands that were run before it was written.
	Start string `json:"start,omitempty"`
	Ready string `json:"ready,omitempty"`
}

// Keep says what a snapshot is to be.
type Keep struct {
	Names    []string // the first is its own; see snapshots.Store
	Contents engine.Contents
	Built    *Built
}

// Event is a change of a sandbox's state.
type Event struct {
	Seq     int64     `json:"seq"` // grows by one, over restarts of the daemon too
	Time    time.Time `json:"time"`
	Sandbox string    `json:"sandbox"`
	Run     string    `json:"run"`
	Token   string    `json:"token,omitempty"`
	From    State     `json:"from,omitempty"`
	To      State     `json:"to"`
	Reason  string    `json:"reason,omitempty"`
}

// Usage is what a sandbox has and uses.
type Usage struct {
	Time        time.Time `json:"time"`
	CPUCount    float64   `json:"cpu_count"`
	CPUNanos    int64     `json:"cpu_nanos"`   // since it was started
	CPUPercent  float64   `json:"cpu_percent"` // of one core, since the last look; 0 at the first
	MemoryBytes int64     `json:"memory_bytes"`
	MemoryLimit int64     `json:"memory_limit"`
	DiskBytes   int64     `json:"disk_bytes"`
	DiskLimit   int64     `json:"disk_limit"`
	Processes   int       `json:"processes"`
	MemoryKills int64     `json:"memory_kills"` // processes that were killed because the memory was full
}

// Forked is one copy of a fork: a sandbox, or why there is none.
type Forked struct {
	Sandbox *Sandbox
	Err     error
}
