package api

import "time"

// Token is a client that may speak to the daemon over the network: GET
// /v1/tokens, and DELETE /v1/tokens/{id}, which revokes it.
type Token struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"` // not there: never
	Revoked  time.Time `json:"revoked,omitzero"` // not there: it is not
	Policy   string    `json:"policy"`           // of a sandbox whose request names none
	Policies []string  `json:"policies,omitempty"`
	Quota    Quota     `json:"quota,omitzero"`
	Admin    bool      `json:"admin,omitempty"` // may do all but answer approvals
}

// Quota bounds what the sandboxes of a token have together. A field that is not
// there is no bound.
type Quota struct {
	Sandboxes        int     `json:"sandboxes,omitempty"`
	CPU              float64 `json:"cpu,omitempty"` // cores
	MemoryBytes      int64   `json:"memory_bytes,omitempty"`
	DiskBytes        int64   `json:"disk_bytes,omitempty"`
	CreatesPerMinute int     `json:"creates_per_minute,omitempty"`
}

// MakeToken is the body of POST /v1/tokens.
type MakeToken struct {
	Name     string   `json:"name"`
	Policy   string   `json:"policy,omitempty"` // "" is default
	Policies []string `json:"policies,omitempty"`
	// ExpiresSeconds from now; 0: never.
	ExpiresSeconds int64 `json:"expires_seconds,omitempty"`
	Quota          Quota `json:"quota,omitzero"`
	Admin          bool  `json:"admin,omitempty"`
}

// NewToken is its answer, and the only time that the secret is told.
type NewToken struct {
	Token

	Secret string `json:"secret"`
}

// NamedPolicy is a policy that tokens are bound to: GET /v1/policies (without the
// documents), GET /v1/policies/{name}, and the answer of PUT.
type NamedPolicy struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"` // of the document
	Source   string    `json:"source,omitempty"`
	Changed  time.Time `json:"changed,omitzero"` // not there: it comes with the daemon
	Document []byte    `json:"document,omitempty"`
	// Live are, in the answer of PUT, the sandboxes that began under another
	// document of this name. They keep that.
	Live int `json:"live,omitempty"`
	// Narrowed are those of them that are judged by the new document, too.
	Narrowed int `json:"narrowed,omitempty"`
}

// PutPolicy is the body of PUT /v1/policies/{name}. A wrong document is status 400
// with its lines and columns, and leaves the old one in force.
type PutPolicy struct {
	Source   string `json:"source,omitempty"` // for messages
	Document []byte `json:"document"`
	// ApplyToLive narrows the live sandboxes that began under another document of
	// the name, and their copies: what either document refuses of packages and
	// commands is refused from now on. It opens nothing, and can't be taken back.
	ApplyToLive bool `json:"apply_to_live,omitempty"`
}

// InstallPage is GET /v1/installs (query: run, sandbox, user, token, ecosystem, package,
// outcome, policy, each any number of times; since and until, RFC 3339; limit, at
// most 1000; after, the Next of the page before): the log's records about
// packages, oldest first, as package internal/decide/audit has them. Without an outcome
// those of what was only shown (pages, metadata) are left out.
type InstallPage struct {
	Installs []Record `json:"installs"`
	Next     string   `json:"next,omitempty"` // "": this is the last page
}
