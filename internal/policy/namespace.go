package policy

import "github.com/cofferdam-dev/cofferdam/internal/pkgref"

// Namespace gives names to an upstream: a name that Pattern matches is asked of
// that upstream and of no other, whatever policies say.
type Namespace struct {
	Ecosystem pkgref.Ecosystem
	// Pattern is a canonical name, or a prefix of one followed by "*"
	// ("@acme/*", "acme-*", "git.acme.example/*").
	Pattern string
	// Upstream is the index's URL as upstreams: has it.
	Upstream string
}
