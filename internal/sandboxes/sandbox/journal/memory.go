package journal

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Memory is a Journal that ends with its process: for tests, and for whoever
// wants nothing to outlive the daemon.
type Memory struct {
	mu      sync.Mutex // guards what follows
	entries map[string]Entry
	events  []Event
	last    int64
}

var _ Journal = (*Memory)(nil)

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{entries: map[string]Entry{}} }

// Move implements Journal.
func (m *Memory) Move(_ context.Context, e Entry, ev Event) (Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	ev.Seq = m.last
	if m.events = append(m.events, ev); len(m.events) > KeptEvents+KeptEvents/10 {
		m.events = slices.Clone(m.events[len(m.events)-KeptEvents:])
	}
	if ev.To == Destroyed {
		delete(m.entries, e.Info.ID)
	} else {
		m.entries[e.Info.ID] = e
	}
	return ev, nil
}

// Put implements Journal.
func (m *Memory) Put(_ context.Context, e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.entries[e.Info.ID]; there {
		m.entries[e.Info.ID] = e
	}
	return nil
}

// Entries implements Journal.
func (m *Memory) Entries(context.Context) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.entries), func(a, b Entry) int { return strings.Compare(a.Info.ID, b.Info.ID) }), nil
}

// Events implements Journal.
func (m *Memory) Events(_ context.Context, after int64, limit int) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, _ := slices.BinarySearchFunc(m.events, after+1, func(e Event, seq int64) int { return int(e.Seq - seq) })
	return slices.Clone(m.events[from:min(len(m.events), from+max(limit, 0))]), nil
}

// Last implements Journal.
func (m *Memory) Last(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, nil
}
