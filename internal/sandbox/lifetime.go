package sandbox

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
)

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
