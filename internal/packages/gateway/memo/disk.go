package memo

import (
	"encoding/json"
	"log/slog"

	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
)

// Key names a value on the disk. Its text is part of what is kept: a value that is
// written under another is as good as lost.
type Key interface {
	comparable
	String() string
}

// Format is how values are written.
type Format[K Key, V any] struct {
	Encode func(V) ([]byte, error)
	// Decode refuses what is no value of this key's.
	Decode func(K, []byte) (V, error)
}

// JSON writes values as JSON.
func JSON[K Key, V any]() Format[K, V] {
	return Format[K, V]{
		Encode: func(v V) ([]byte, error) { return json.Marshal(v) },
		Decode: func(_ K, data []byte) (v V, err error) {
			err = json.Unmarshal(data, &v)
			return v, err
		},
	}
}

// Bytes writes values as they are.
func Bytes[K Key]() Format[K, []byte] {
	return Format[K, []byte]{
		Encode: func(v []byte) ([]byte, error) { return v, nil },
		Decode: func(_ K, data []byte) ([]byte, error) { return data, nil },
	}
}

// Disk keeps values over a restart, up to a number of them.
type Disk[K Key, V any] struct {
	shelf  *cache.Shelf
	format Format[K, V]
	log    *slog.Logger
	what   string
}

// NewDisk opens the values under a name (see cache.Store.Shelf); most 0 keeps all.
// what they are is said in the log.
func NewDisk[K Key, V any](store *cache.Store, name string, most int, format Format[K, V], log *slog.Logger, what string) (*Disk[K, V], error) {
	shelf, err := store.Shelf(name, most)
	if err != nil {
		return nil, err
	}
	return &Disk[K, V]{shelf: shelf, format: format, log: log, what: what}, nil
}

// Get gives a value. A damaged file is as good as lost.
func (d *Disk[K, V]) Get(key K) (v V, ok bool) {
	data, err := d.shelf.Get(key.String())
	if err != nil {
		return v, false
	}
	v, err = d.format.Decode(key, data)
	if err != nil {
		var none V
		return none, false
	}
	return v, true
}

// Put keeps a value. One that can't be kept, since the disk is full, is found out
// again.
func (d *Disk[K, V]) Put(key K, v V) {
	data, err := d.format.Encode(v)
	if err == nil {
		err = d.shelf.Put(key.String(), data)
	}
	if err != nil {
		d.log.Warn("something that was found out could not be kept", "what", d.what, "key", key.String(), "error", err)
	}
}
