package backend

import (
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Policies are the named policies; *namedpolicy.Store is one.
type Policies interface {
	Get(name string) (*namedpolicy.Named, error)
}

// TokenPolicy finds the named policy under which a token makes something. One that the
// token may not use is a fault.ErrForbidden, whether there is one or not.
func TokenPolicy(from Policies, t token.Token, name string) (*namedpolicy.Named, error) {
	if !t.May(name) {
		return nil, fault.New(fault.ErrForbidden, "the token %q may not use the policy %q; it may choose: %s", t.Name, text.Shorten(name, 64), strings.Join(t.Choices(), ", "))
	}
	return from.Get(name)
}

// OwnLabels begins the names of the labels that the daemon keeps for itself: under which
// named policy a sandbox was made, say. No client gives one.
const OwnLabels = "cofferdam."

// OwnerOf is whose a token's sandboxes are.
func OwnerOf(t token.Token) sandbox.Owner { return sandbox.Owner{Token: t.ID, Quota: t.Quota} }

// nobody is the host's user and group of sandboxes that tokens make: they own nothing.
const nobody = 65534

// GuestIDs are the host's user and group of sandboxes that tokens make: nobody, or for a
// daemon that could give files to no other, its own.
func GuestIDs() (uid, gid int) {
	if uid = os.Geteuid(); uid != 0 {
		return uid, os.Getegid()
	}
	return nobody, nobody
}

// Secret is the token that a request shows; "": none. A header that says that it is an API key
// counts before what an Authorization has, which may be meant for somebody else.
func Secret(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	if scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	return ""
}

// maxKey bounds an idempotency key, in bytes.
const maxKey = 255

// IdempotencyKey is the key under which a repeated request finds what the first one made;
// "": it has none.
func IdempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get(api.IdempotencyHeader)
	notPlain := func(c rune) bool { return c < 0x21 || c > 0x7e }
	if len(key) > maxKey || strings.ContainsFunc(key, notPlain) {
		return "", fault.Invalid("the %s has up to %d visible ASCII characters", api.IdempotencyHeader, maxKey)
	}
	return key, nil
}

// RetrySeconds returns how many seconds a caller is told to wait before it tries again; 0: the
// error does not say.
func RetrySeconds(err error) int {
	return int((fault.RetryAfter(err) + time.Second - 1) / time.Second)
}
