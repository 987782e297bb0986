// Package approvaltest has a store of requests in memory, which is also the
// reference of what a store does, and the suite that every store must pass.
package approvaltest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Memory is a store that a crash of the program forgets. It is safe for
// concurrent use. It never shares what it is given and gives out.
type Memory struct {
	mu       sync.Mutex // guards all
	position approval.Position
	entries  map[string][]byte // JSON, so that nothing is shared
	events   []approval.Event
	cursors  map[string]uint64
	broken   error
}

var _ approval.Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{entries: map[string][]byte{}, cursors: map[string]uint64{}} }

// Break makes every change fail with err, until it is called with nil: a full
// disk.
func (m *Memory) Break(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}

// Position implements approval.Store.
func (m *Memory) Position(context.Context) (approval.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position, nil
}

// Apply implements approval.Store.
func (m *Memory) Apply(_ context.Context, b approval.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return fault.Wrap(fault.ErrUnavailable, m.broken, "the store can't be written")
	}
	for _, e := range b.Entries {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		m.entries[e.ID] = text
	}
	for _, e := range b.Events {
		e.Request = approval.Request{}
		m.events = slices.DeleteFunc(m.events, func(k approval.Event) bool { return k.Number == e.Number })
		m.events = append(m.events, e)
	}
	m.position = b.Position
	return nil
}

// Reset implements approval.Store.
func (m *Memory) Reset(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return fault.Wrap(fault.ErrUnavailable, m.broken, "the store can't be written")
	}
	m.position, m.events = approval.Position{}, nil
	clear(m.entries)
	return nil
}

// Get implements approval.Store.
func (m *Memory) Get(_ context.Context, id string) (approval.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.entries[id]
	if !ok {
		return approval.Entry{}, fault.New(fault.ErrNotFound, "there is no request %q", id)
	}
	return decode(text)
}

func decode(text []byte) (e approval.Entry, err error) {
	err = json.Unmarshal(text, &e)
	return e, err
}

// listEntries lists the wanted entries, oldest first.
func (m *Memory) listEntries(want func(approval.Entry) bool) ([]approval.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []approval.Entry
	for _, text := range m.entries {
		e, err := decode(text)
		if err != nil {
			return nil, err
		}
		if want(e) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b approval.Entry) int { return cmp.Compare(a.Born, b.Born) })
	return found, nil
}

// List implements approval.Store.
func (m *Memory) List(_ context.Context, f approval.Filter) ([]approval.Entry, error) {
	found, err := m.listEntries(func(e approval.Entry) bool {
		return (len(f.States) == 0 || slices.Contains(f.States, e.State)) &&
			(f.Run == "" || slices.ContainsFunc(e.Runs, func(w approval.AskingRun) bool { return w.Run == f.Run })) &&
			(f.Group == "" || f.Group == e.Group) &&
			(f.Ecosystem == "" || f.Ecosystem == e.Project().Ecosystem) &&
			(f.Package == "" || f.Package == e.Project().Name) &&
			(f.Before == 0 || e.Born < f.Before)
	})
	slices.Reverse(found)
	if f.Limit > 0 && len(found) > f.Limit {
		found = found[:f.Limit]
	}
	return found, err
}

// Answers implements approval.Store.
func (m *Memory) Answers(_ context.Context, project pkgref.Ref, run, policy string) ([]approval.Entry, error) {
	return m.listEntries(func(e approval.Entry) bool {
		if p := e.Project(); p.Ecosystem != project.Ecosystem || p.Name != project.Name || len(e.Subjects()) == 0 {
			return false
		}
		subject := map[approval.Scope]string{approval.ScopeRun: run, approval.ScopeOnce: run, approval.ScopePolicy: policy}[e.Answer.Scope]
		return slices.Contains(e.Subjects(), subject)
	})
}

// Due implements approval.Store.
func (m *Memory) Due(_ context.Context, now time.Time, limit int) (due []approval.Entry, next time.Time, err error) {
	found, err := m.listEntries(func(e approval.Entry) bool { return !e.Ends().IsZero() })
	slices.SortFunc(found, func(a, b approval.Entry) int { return a.Ends().Compare(b.Ends()) })
	for _, e := range found {
		switch {
		case len(due) < limit && !now.Before(e.Ends()):
			due = append(due, e)
		case next.IsZero():
			next = e.Ends()
		}
	}
	return due, next, err
}

// Events implements approval.Store.
func (m *Memory) Events(_ context.Context, after uint64, limit int) ([]approval.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := slices.BinarySearchFunc(m.events, after+1, func(e approval.Event, n uint64) int { return cmp.Compare(e.Number, n) })
	rest := m.events[i:]
	return slices.Clone(rest[:min(len(rest), limit)]), nil
}

// Cursor is where a webhook stands; ok is false if it never stood anywhere.
func (m *Memory) Cursor(_ context.Context, hook string) (number uint64, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, ok = m.cursors[hook]
	return number, ok, nil
}

// SetCursor remembers it.
func (m *Memory) SetCursor(_ context.Context, hook string, number uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return fault.Wrap(fault.ErrUnavailable, m.broken, "the store can't be written")
	}
	m.cursors[hook] = number
	return nil
}
