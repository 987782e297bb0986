package cache

import (
	"bytes"
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// ErrRowsGone means that a page's rows are not in the cache any more: it was
// evicted, replaced by a newer one, or damaged. The page has to be had again.
var ErrRowsGone = errors.New("the rows of an index page are not in the cache any more")

// Rows are a kept page's rows. They hold nothing open.
type Rows struct {
	store  *Store
	name   string
	size   int64
	digest string
	memory []byte // in place of a file
}

// Size is the number of bytes.
func (r *Rows) Size() int64 { return r.size }

// Memory is the number of bytes that they take in memory.
func (r *Rows) Memory() int64 { return int64(len(r.memory)) }

// OpenRows are rows to be read. Close them; until then a page that is evicted
// or replaced can still be read.
type OpenRows struct {
	io.ReaderAt
	io.Closer
}

// Open opens the rows. They are hashed at the first use in this process and
// whenever the file's stamp changed. ErrRowsGone: these rows can't be had.
func (r *Rows) Open() (OpenRows, error) {
	if r.size == int64(len(r.memory)) {
		return OpenRows{bytes.NewReader(r.memory), io.NopCloser(nil)}, nil
	}
	f, err := openPage(r.store.pagePath(r.name))
	if errors.Is(err, fault.ErrNotFound) {
		return OpenRows{}, ErrRowsGone
	}
	if err != nil {
		return OpenRows{}, err
	}
	now, ok := stampOf(f)
	if ok && r.store.knowsPage(r.name, r.digest, now) {
		return OpenRows{io.NewSectionReader(f, 0, r.size), f}, nil
	}
	digest, err := digestOf(io.NewSectionReader(f, 0, r.size))
	after, still := stampOf(f)
	if err != nil || digest != r.digest || !ok || !still || after != now {
		_ = f.Close() // read only: nothing to lose
		return OpenRows{}, ErrRowsGone
	}
	r.store.keepPage(r.name, r.digest, now)
	return OpenRows{io.NewSectionReader(f, 0, r.size), f}, nil
}
