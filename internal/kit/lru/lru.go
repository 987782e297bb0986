// Package lru remembers values in memory up to a total weight. Weights are bytes, or 1
// where values are counted.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps values up to a weight; the least recently used go first.
// It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	most int64

	mu    sync.Mutex // guards all below
	total int64
	order *list.List // of *item[K, V], most recent first
	byKey map[K]*list.Element
}

type item[K comparable, V any] struct {
	key    K
	value  V
	weight int64
}

// New makes one for so much weight.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, order: list.New(), byKey: map[K]*list.Element{}}
}

// Get gives a value, which is now the most recently used.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*item[K, V]).value, true
}

// Put keeps a value unless it alone weighs too much.
func (c *Cache[K, V]) Put(key K, value V, weight int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(key)
	if weight > c.most {
		return
	}
	c.byKey[key] = c.order.PushFront(&item[K, V]{key, value, weight})
	c.total += weight
	for c.total > c.most {
		c.removeLocked(c.order.Back().Value.(*item[K, V]).key)
	}
}

// Remove forgets a value.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(key)
}

// Clear removes all values.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Init()
	clear(c.byKey)
	c.total = 0
}

func (c *Cache[K, V]) removeLocked(key K) {
	if e, ok := c.byKey[key]; ok {
		c.total -= e.Value.(*item[K, V]).weight
		c.order.Remove(e)
		delete(c.byKey, key)
	}
}
