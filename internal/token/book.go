package token

import (
	"cmp"
	"context"
	"crypto/subtle"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Book is the tokens of a daemon: a Store, and all of it in memory, so that
// checking a secret costs no disk. The daemon is the store's one user. Safe for
// concurrent use.
type Book struct {
	store Store
	clock func() time.Time

	writing sync.Mutex // held over a change of the store and of what follows

	mu     sync.RWMutex // guards what follows
	tokens []Token      // the oldest first; its elements never change

	uses uses
}

// Open reads a store. clock nil is time.Now.
func Open(ctx context.Context, s Store, clock func() time.Time) (*Book, error) {
	if clock == nil {
		clock = time.Now
	}
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	return &Book{store: s, clock: clock, tokens: all}, nil
}

// Issue makes a token and keeps it. The secret is told this once.
func (b *Book) Issue(ctx context.Context, g Grant) (Token, string, error) {
	t, secret, err := Issue(b.clock(), g)
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
	if found < 0 || !tokens[found].Live(b.clock()) {
		return Token{}, false
	}
	return tokens[found], true
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
	b.mu.RLock()
	defer b.mu.RUnlock()
	at := slices.IndexFunc(b.tokens, func(t Token) bool { return t.ID == id })
	return at >= 0 && b.tokens[at].Live(b.clock())
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
		t.Revoked = b.clock().UTC()
	}
	// It is refused from here on, also if the disk fails now: the error says so,
	// and that the next daemon would take it again.
	b.replace(t)
	b.uses.end(t.ID, ErrOver)
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
