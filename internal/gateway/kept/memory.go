// Package kept remembers what was found out: Memory for as long as there is room,
// Disk over a restart, and Findings in both, each found out once. Keys have types
// of their own, so that no value is found under another's key.
package kept

import (
	"container/list"
	"sync"
)

// Memory keeps values up to a number of bytes; the least recently used go first.
// It is safe for concurrent use.
type Memory[K comparable, V any] struct {
	most int64

	mu    sync.Mutex // guards all below
	total int64
	order *list.List // of *remembered[K, V], most recent first
	byKey map[K]*list.Element
}

type remembered[K comparable, V any] struct {
	key   K
	value V
	size  int64
}

// NewMemory makes one of so many bytes.
func NewMemory[K comparable, V any](most int64) *Memory[K, V] {
	return &Memory[K, V]{most: most, order: list.New(), byKey: map[K]*list.Element{}}
}

// Get gives a value, which is now the most recently used.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byKey[key]
	if !ok {
		var none V
		return none, false
	}
	m.order.MoveToFront(e)
	return e.Value.(*remembered[K, V]).value, true
}

// Put keeps a value unless it alone is too large.
func (m *Memory[K, V]) Put(key K, value V, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	if size > m.most {
		return
	}
	m.byKey[key] = m.order.PushFront(&remembered[K, V]{key, value, size})
	m.total += size
	for m.total > m.most {
		m.remove(m.order.Back().Value.(*remembered[K, V]).key)
	}
}

// Clear removes all values.
func (m *Memory[K, V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order.Init()
	clear(m.byKey)
	m.total = 0
}

func (m *Memory[K, V]) remove(key K) {
	if e, ok := m.byKey[key]; ok {
		m.total -= e.Value.(*remembered[K, V]).size
		m.order.Remove(e)
		delete(m.byKey, key)
	}
}
