package gateway

import (
	"container/list"
	"sync"
)

// lru keeps values up to a number of bytes; the least recently used go first.
type lru[V any] struct {
	most int64

	mu    sync.Mutex
	total int64
	order *list.List // of *kept[V], most recent first
	byKey map[string]*list.Element
}

type kept[V any] struct {
	key   string
	value V
	size  int64
}

func newLRU[V any](most int64) *lru[V] {
	return &lru[V]{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

func (l *lru[V]) get(key string) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.byKey[key]
	if !ok {
		var none V
		return none, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*kept[V]).value, true
}

// put keeps a value unless it alone is too large.
func (l *lru[V]) put(key string, value V, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
	if size > l.most {
		return
	}
	l.byKey[key] = l.order.PushFront(&kept[V]{key, value, size})
	l.total += size
	for l.total > l.most {
		l.remove(l.order.Back().Value.(*kept[V]).key)
	}
}

// clear removes all values.
func (l *lru[V]) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order.Init()
	clear(l.byKey)
	l.total = 0
}

func (l *lru[V]) remove(key string) {
	if e, ok := l.byKey[key]; ok {
		l.total -= e.Value.(*kept[V]).size
		l.order.Remove(e)
		delete(l.byKey, key)
	}
}
