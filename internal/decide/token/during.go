package token

import (
	"context"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// uses are what goes on for tokens now. Safe for concurrent use; the zero value is
// ready.
type uses struct {
	mu sync.Mutex // guards of
	of map[string]map[*use]bool
}

// use is one thing that goes on.
type use struct{ end context.CancelCauseFunc }

func (u *uses) beginUse(id string, one *use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[string]map[*use]bool{}
	}
	if u.of[id] == nil {
		u.of[id] = map[*use]bool{}
	}
	u.of[id][one] = true
}

func (u *uses) useDone(id string, one *use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if delete(u.of[id], one); len(u.of[id]) == 0 {
		delete(u.of, id)
	}
}

// endUses ends all that goes on for a token.
func (u *uses) endUses(id string, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for one := range u.of[id] {
		one.end(cause)
	}
}

// ErrOver is the cause with which the contexts of During end before their time; it is a
// fault.ErrForbidden.
var ErrOver = fault.New(fault.ErrForbidden, "the token is not valid any more: it was revoked, or it expired")

// During returns a context that ends with ctx and with the token's validity: at once
// when the token with this id is revoked, expires or is none, with the cause ErrOver. A
// request that is let in for a token is served in one, so that a stream does not outlive
// its token. stop must be called when what the context is for is done.
func (b *Book) During(ctx context.Context, id string) (during context.Context, stop func()) {
	during, end := context.WithCancelCause(ctx)
	one := &use{end: end}
	b.uses.beginUse(id, one) // before the look, so that no end comes between
	finish := func() {
		b.uses.useDone(id, one)
		end(nil)
	}
	t, known := b.tokenByID(id)
	if !known || !b.isLive(t) {
		end(ErrOver)
	} else if !t.Expires.IsZero() {
		timed, cancel := context.WithTimeoutCause(during, t.Expires.Sub(b.Now()), ErrOver)
		return timed, func() {
			cancel()
			finish()
		}
	}
	return during, finish
}
