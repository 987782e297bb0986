package copies

import (
	"encoding/json"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
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
	Owner    journal.Owner   `json:"owner,omitzero"`
	// Of is the sandbox that it was made of: its template, policy, lockfiles,
	// ledger and limits are the snapshot's.
	Of journal.Info `json:"of"`
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
	// System are the packages of the distribution that this build and those below it
	// brought, beyond the template's own.
	System []SystemPackage `json:"system,omitempty"`
}

// SystemPackage is a package of the distribution that a build brought.
type SystemPackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	SHA256       string `json:"sha256"` // of its file, hexadecimal
}

// Keep says what a snapshot is to be.
type Keep struct {
	Names    []string // the first is its own; see snapshots.Store
	Contents engine.Contents
	Built    *Built
}

// snapshotOf reads what the manager has of a stored one.
func snapshotOf(k snapshots.Snapshot) (Snapshot, error) {
	var b Body
	if err := json.Unmarshal(k.Body, &b); err != nil {
		return Snapshot{}, fault.Wrap(fault.ErrConflict, err, "the snapshot %s can't be read", k.ID)
	}
	return Snapshot{
		ID: k.ID, Name: k.Name, Digest: k.Digest, Contents: k.Contents, Created: k.Created, Bytes: k.Bytes,
		Owner: b.Owner, Of: b.Of, Compressed: k.Cold, Also: k.Also, Built: b.Built,
	}, nil
}
