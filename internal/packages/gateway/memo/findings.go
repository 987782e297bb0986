// Package memo remembers what was found out over a restart: Disk keeps it, and Findings
// also in memory, each found out once. Keys have types of their own, so that no value is
// found under another's key.
package memo

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
)

// Findings are values that take long to find out and never change: they are
// looked up in memory, then on the disk, and found out once however many want
// them.
type Findings[K Key, V any] struct {
	memory  *lru.Cache[K, V]
	disk    *Disk[K, V]
	flights *coalesce.Group
	size    func(K, V) int64
}

// NewFindings joins memory and disk. size is about what a value takes in memory.
func NewFindings[K Key, V any](memory *lru.Cache[K, V], disk *Disk[K, V], flights *coalesce.Group, size func(K, V) int64) *Findings[K, V] {
	return &Findings[K, V]{memory: memory, disk: disk, flights: flights, size: size}
}

// finding is the key of a flight: others may have the same keys.
type finding[K Key, V any] struct {
	of  *Findings[K, V]
	key K
}

// String says which, for the log.
func (f finding[K, V]) String() string { return f.key.String() }

// Get gives a value, found out with find if it has to be. An error is not kept.
func (f *Findings[K, V]) Get(ctx context.Context, key K, find func(context.Context) (V, error)) (V, error) {
	if v, ok := f.memory.Get(key); ok {
		return v, nil
	}
	return coalesce.Once(ctx, f.flights, finding[K, V]{f, key}, func(ctx context.Context) (V, error) {
		if v, ok := f.disk.Get(key); ok {
			f.memory.Put(key, v, f.size(key, v))
			return v, nil
		}
		v, err := find(ctx)
		if err != nil {
			return v, err
		}
		f.memory.Put(key, v, f.size(key, v))
		f.disk.Put(key, v)
		return v, nil
	})
}
