// Package token is about who may speak to the daemon over the network, and for
// how much.
//
// Callers on the Unix socket have no token: the kernel says who they are.
package token

import (
	"context"
	"slices"
	"time"
)

// Token is a name for one client, with a secret that only the client has (the daemon keeps its
// digest), the policies that it may choose and its quota: all that its sandboxes together may use.
type Token struct {
	ID      string    `json:"id"`   // "tok-" and 12 hexadecimal digits
	Name    string    `json:"name"` // unique among those that are not revoked
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Revoked time.Time `json:"revoked,omitzero"` // zero: it is not
	// Over is when it was first seen to have expired: it stays so, whatever the clock says
	// later. Zero: nobody has looked since, or it has not.
	Over time.Time `json:"over,omitzero"`
	// Policy is the named policy of a sandbox whose request names none; Policies
	// are others that a request may choose.
	Policy   string   `json:"policy"`
	Policies []string `json:"policies,omitempty"`
	Quota    Quota    `json:"quota"`
	// Admin may do all that the Unix socket may, approvals excepted.
	Admin bool `json:"admin,omitempty"`
	// SecretSHA256 is what is kept of the secret, in hexadecimal.
	SecretSHA256 string `json:"-"`
}

// Quota bounds what the sandboxes of a token have together. A zero field is no
// bound; one that is less than any sandbox has is refused when a token is made.
type Quota struct {
	Sandboxes        int     `json:"sandboxes,omitempty"`
	CPU              float64 `json:"cpu,omitempty"` // cores
	MemoryBytes      int64   `json:"memory_bytes,omitempty"`
	DiskBytes        int64   `json:"disk_bytes,omitempty"`
	CreatesPerMinute int     `json:"creates_per_minute,omitempty"`
}

// May reports whether the token may use a named policy.
func (t Token) May(policy string) bool {
	return policy == t.Policy || slices.Contains(t.Policies, policy)
}

// Choices are the named policies that the token may use, sorted.
func (t Token) Choices() []string {
	all := slices.DeleteFunc(append([]string{t.Policy}, t.Policies...), func(name string) bool { return name == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// Live reports whether the token may be used at a time.
func (t Token) Live(now time.Time) bool {
	return t.Revoked.IsZero() && t.Over.IsZero() && (t.Expires.IsZero() || now.Before(t.Expires))
}

// Store keeps tokens. Safe for concurrent use; what a call wrote has survived a
// loss of power when it returns.
type Store interface {
	// Put adds a token, or replaces the one with its ID. Another live token with
	// its name is a fault.ErrConflict.
	Put(ctx context.Context, t Token) error
	// List returns all tokens, the oldest first, revoked ones included.
	List(ctx context.Context) ([]Token, error)
}
