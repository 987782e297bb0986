// Package tokentest has a store of tokens in memory, which is also the
// reference of what a store does, and the suite that every store must pass.
package tokentest

import (
	"context"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Memory is a store that a crash of the program forgets. Safe for concurrent
// use.
type Memory struct {
	mu     sync.Mutex // guards all
	tokens []token.Token
	broken error
	lists  int
}

var _ token.Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{} }

// Break makes every change fail with err, until it is called with nil: a full
// disk.
func (m *Memory) Break(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}

// Lists is how often List was called.
func (m *Memory) Lists() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lists
}

// Put implements token.Store.
func (m *Memory) Put(_ context.Context, t token.Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return fault.Wrap(fault.ErrUnavailable, m.broken, "the token can't be written")
	}
	at := -1
	for i, other := range m.tokens {
		if other.ID == t.ID {
			at = i
		} else if other.Name == t.Name && other.Revoked.IsZero() && t.Revoked.IsZero() {
			return fault.New(fault.ErrConflict, "there is a token with the name %q", t.Name)
		}
	}
	t.Policies = slices.Clone(t.Policies)
	if at >= 0 {
		m.tokens[at] = t
		return nil
	}
	m.tokens = append(m.tokens, t)
	slices.SortStableFunc(m.tokens, func(a, b token.Token) int { return a.Created.Compare(b.Created) })
	return nil
}

// List implements token.Store.
func (m *Memory) List(context.Context) ([]token.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lists++
	all := slices.Clone(m.tokens)
	for i := range all {
		all[i].Policies = slices.Clone(all[i].Policies)
	}
	return all, nil
}
