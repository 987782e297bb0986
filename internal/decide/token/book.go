package token

import (
	"cmp"
	"context"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Book is the tokens of a daemon: a Store, and all of it in memory, so that
// checking a secret costs no disk. The daemon is the store's one user. Safe for
// concurrent use.
type Book struct {
	store Store
	clock clock.Source

	writing sync.Mutex // held over a change of the store and of what follows

	mu     sync.RWMutex // guards what follows
	tokens []Token      // the oldest first; its elements never change

	uses uses
}

// Open reads a store. From nil is the host's clock, which is believed; after a jump a
// token is over that is over by either time.
func Open(ctx context.Context, s Store, from clock.Source) (*Book, error) {
	if from == nil {
		from = clock.Plain(time.Now)
	}
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	return &Book{store: s, clock: from, tokens: all}, nil
}

// Issue makes a token and keeps it. The secret is told this once. One that lasts for some
// time lasts no longer, whichever time is right after a jump of the clock.
func (b *Book) Issue(ctx context.Context, g Grant) (Token, string, error) {
	r := b.clock.Read()
	if g.Lasts > 0 {
		g.Expires = r.Earliest().Add(g.Lasts).UTC()
	}
	if r.Jumped() && !g.Expires.IsZero() && !r.Latest().Before(g.Expires) {
		return Token{}, "", fault.New(fault.ErrConflict, "the token would have expired already: %s; let it last longer, or say which time is right (cofferdam clock)", r.Why())
	}
	t, secret, err := Issue(r.Now, g)
	if err != nil {
		return Token{}, "", err
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := b.store.Put(ctx, t); err != nil {
		return Token{}, "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = append(slices.Clip(b.tokens), t)
	return t, secret, nil
}

// Check finds the live token of a secret. How long it takes does not depend on
// how much of the secret is right: digests are compared, each to its end.
func (b *Book) Check(secret string) (Token, bool) {
	given := []byte(digest(secret))
	b.mu.RLock()
	tokens := b.tokens
	b.mu.RUnlock()
	found := -1
	for i := range tokens {
		if subtle.ConstantTimeCompare(given, []byte(tokens[i].SecretSHA256)) == 1 {
			found = i
		}
	}
	if found < 0 || !b.isLive(tokens[found]) {
		return Token{}, false
	}
	return tokens[found], true
}

// Now is the time by which what was signed to end has ended.
func (b *Book) Now() time.Time { return b.clock.Read().Latest() }

// isLive reports whether a token may be used now. One that is seen to have expired stays so.
func (b *Book) isLive(t Token) bool {
	now := b.Now()
	if t.Live(now) {
		return true
	}
	if t.Revoked.IsZero() && t.Over.IsZero() {
		b.expireToken(t.ID, now)
	}
	return false
}

// expireToken notes that a token has expired. Where that can't be written, it holds for this
// daemon.
func (b *Book) expireToken(id string, now time.Time) {
	b.writing.Lock()
	defer b.writing.Unlock()
	t, err := b.Get(id)
	if err != nil || !t.Over.IsZero() {
		return
	}
	t.Over = now.UTC()
	b.replace(t)
	b.uses.endUses(id, ErrOver)
	_ = b.store.Put(context.Background(), t) // the next daemon has the expiry, and its own clock
}

// Get returns a token by its id, or the one with a name that is not revoked.
func (b *Book) Get(ref string) (Token, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, t := range b.tokens {
		if t.ID == ref || t.Name == ref && t.Revoked.IsZero() {
			return t, nil
		}
	}
	return Token{}, fault.New(fault.ErrNotFound, "there is no token %q", ref)
}

// Live reports whether there is a token with the id that is neither revoked nor
// expired.
func (b *Book) Live(id string) bool {
	t, known := b.tokenByID(id)
	return known && b.isLive(t)
}

func (b *Book) tokenByID(id string) (t Token, known bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	at := slices.IndexFunc(b.tokens, func(t Token) bool { return t.ID == id })
	if at < 0 {
		return t, false
	}
	return b.tokens[at], true
}

// List returns all tokens, the oldest first, revoked ones included.
func (b *Book) List() []Token {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.tokens)
}

// Revoke ends a token for ever, by id or name: from its return on no request is
// taken with its secret, nor one to a sandbox that it made, and the contexts of During
// have ended. Commands that run in its sandboxes go on to their own end. Of one that is revoked already this is only written again.
func (b *Book) Revoke(ctx context.Context, ref string) (Token, error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	t, err := b.Get(ref)
	if err != nil {
		return Token{}, err
	}
	if t.Revoked.IsZero() {
		t.Revoked = b.clock.Read().Now.UTC()
	}
	// It is refused from here on, also if the disk fails now: the error says so,
	// and that the next daemon would take it again.
	b.replace(t)
	b.uses.endUses(t.ID, ErrOver)
	if err := b.store.Put(ctx, t); err != nil {
		return t, fault.Wrap(fault.ErrUnavailable, err, "the token %s is refused now, but that could not be written: after a restart it would be taken again; revoke it once more", t.Name)
	}
	return t, nil
}

func (b *Book) replace(t Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = slices.Clone(b.tokens) // Check reads the former slice without the lock
	for i := range b.tokens {
		if b.tokens[i].ID == t.ID {
			b.tokens[i] = t
		}
	}
}

// Users names the tokens that are not revoked and may use a named policy, in
// the order of their names.
func (b *Book) Users(policy string) []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var names []string
	for _, t := range b.tokens {
		if t.Revoked.IsZero() && t.May(policy) {
			names = append(names, t.Name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}
