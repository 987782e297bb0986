package journal

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
)

// Info is what the daemon knows about a sandbox, and what the keeper hands back
// as meta after a restart of the daemon.
type Info struct {
	ID           string        `json:"id"`
	Run          string        `json:"run"`
	Task         string        `json:"task,omitempty"`
	Template     string        `json:"template"`
	Digest       string        `json:"template_digest"`
	Engine       string        `json:"engine"`
	PolicyDigest string        `json:"policy_digest"`
	PolicySource string        `json:"policy_source,omitempty"`
	LockDigest   string        `json:"lock_digest,omitempty"` // of the lockfiles; "": there are none
	LockBytes    int64         `json:"lock_bytes,omitempty"`  // that the daemon keeps of the lockfiles
	User         string        `json:"user,omitempty"`
	Workdir      string        `json:"workdir,omitempty"`
	Linger       bool          `json:"linger,omitempty"`
	Lifetime     Lifetime      `json:"lifetime,omitzero"` // as it was asked for; Sandbox.Ends tells how it stands
	Owner        Owner         `json:"owner,omitzero"`
	Account      Account       `json:"account,omitzero"`
	Limits       engine.Limits `json:"limits,omitzero"`
	Snapshot     string        `json:"snapshot,omitempty"` // that it was made from
	Parent       string        `json:"parent,omitempty"`   // the sandbox that it is a fork of
	// Ancestors are those whose ledgers are a copy's, see admission.Run.
	Ancestors []admission.Ancestor `json:"ancestors,omitempty"`
	Labels    map[string]string    `json:"labels,omitempty"`
	// Placeholders are what it holds in place of secrets, by their names.
	Placeholders map[string]string `json:"placeholders,omitempty"`
	Plan         bool              `json:"plan,omitempty"`
	Rehearsal    bool              `json:"rehearsal,omitempty"`
	Workshop     bool              `json:"workshop,omitempty"` // it is for the build of a source distribution
	Proof        bool              `json:"proof,omitempty"`    // it is the twin in which controls are tried
	Created      time.Time         `json:"created"`
	Notes        []string          `json:"notes,omitempty"`
	Missing      []string          `json:"missing,omitempty"`
	Handle       engine.Handle     `json:"handle"`
	// The directories of the sandbox on which the host's lie.
	WritableMounts []string `json:"writable_mounts,omitempty"`
	ReadOnlyMounts []string `json:"read_only_mounts,omitempty"`
	// Home is what of its home directory outlives it; the zero one is nothing.
	Home agenthome.Home `json:"home,omitzero"`
	// TemplateMounts are those on which its template shows the host's own, read-only.
	TemplateMounts []string `json:"template_mounts,omitempty"`
}

// BuildLabel is the label of the sandbox in which a template is built: its value is the
// build's id. It is one of the names that no client may give.
const BuildLabel = "cofferdam.build"

// StandsIn names what a sandbox is made for that the daemon made for itself: "rehearsal",
// "workshop", "proof" or "build". It is "" for one that somebody asked for. The owner of what
// it stands in for pays for it, and no token is told of it or uses it: others get what is
// built there, and what is proved there must be as the daemon left it.
func (i Info) StandsIn() string {
	switch {
	case i.Rehearsal:
		return "rehearsal"
	case i.Workshop:
		return "workshop"
	case i.Proof:
		return "proof"
	case i.Labels[BuildLabel] != "":
		return "build"
	default:
		return ""
	}
}

// ShownTo is the one token without further rights that is told of the sandbox and may use
// it; "": there is none.
func (i Info) ShownTo() string {
	if i.StandsIn() != "" {
		return ""
	}
	return i.Owner.Token
}

// IsCopy tells whether it was made from a snapshot or is a fork.
func (i Info) IsCopy() bool { return i.Snapshot != "" || i.Parent != "" }

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

// User is who does what names no user.
func (a Account) User(asked string) string { return cmp.Or(asked, a.Default) }

// Lifetime says when a sandbox ends by itself. Time in which it is frozen,
// paused, or waits for a person does not count.
type Lifetime struct {
	TTL  time.Duration `json:"ttl,omitempty"`  // from when it was set; 0: no end
	Idle time.Duration `json:"idle,omitempty"` // without a command, a client or a file operation; 0: no end
	Then AtEnd         `json:"then,omitempty"`
	// Lease is how long it may be without any client, whatever runs in it; 0: no end.
	Lease time.Duration `json:"lease,omitempty"`
}

// NoLease asks for no lease where 0 would leave the one that there is.
const NoLease time.Duration = -1

// AtEnd is what becomes of a sandbox whose time is over.
type AtEnd string

// The ends that it may come to.
const (
	ThenDestroy AtEnd = ""
	ThenPause   AtEnd = "pause"
	// ThenPauseFiles is a pause of which only the files are kept.
	ThenPauseFiles AtEnd = "pause-files"
)

// Pauses tells whether it is paused then, in one way or the other.
func (a AtEnd) Pauses() bool { return a == ThenPause || a == ThenPauseFiles }

// HasEnd reports whether a lifetime has an end.
func (l Lifetime) HasEnd() bool { return l.TTL > 0 || l.Idle > 0 }

// NewID makes an id that nobody has: twice so many random hexadecimal digits behind a
// prefix.
func NewID(prefix string, random int) string {
	b := make([]byte, random)
	rand.Read(b) // never fails: it ends the process instead
	return prefix + hex.EncodeToString(b)
}
