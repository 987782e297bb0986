package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

// Shelf keeps small values of one owner, under keys of the owner's choice. It is safe for
// concurrent use, and for two processes on one directory.
type Shelf struct {
	store *Store
	dir   string
	most  int

	mu    sync.Mutex
	count int // of files, about: another process may add some

	pruning sync.Mutex // held by whoever removes old values
}

// shelved is the head line of a value's file.
type shelved struct {
	Key    string `json:"key"`
	Digest string `json:"digest"` // of the value
}

// Shelf gives the shelf of a name, words with slashes between them, and removes
// the oldest values beyond most (0: it keeps all).
func (s *Store) Shelf(name string, most int) (*Shelf, error) {
	if !fs.ValidPath(name) || name == "." {
		return nil, fault.Invalid("%q can't be the name of a shelf", name)
	}
	sh := &Shelf{store: s, dir: filepath.Join(s.dir, dirShelves, filepath.FromSlash(name)), most: most}
	if err := os.MkdirAll(sh.dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache directory can't be made")
	}
	return sh, sh.pruneValues()
}

func (sh *Shelf) pathOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(sh.dir, hex.EncodeToString(sum[:]))
}

// Get gives a value. fault.ErrNotFound: there is none; fault.ErrUnavailable: it
// can't be read or is damaged.
func (sh *Shelf) Get(key string) ([]byte, error) {
	data, err := os.ReadFile(sh.pathOf(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.ErrNotFound, "the value is not in the cache")
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be read")
	}
	head, value, ok := bytes.Cut(data, []byte{'\n'})
	var h shelved
	if !ok || json.Unmarshal(head, &h) != nil || h.Key != key || h.Digest != sumOfBytes(value) {
		return nil, fault.New(fault.ErrUnavailable, "a value in the cache is damaged")
	}
	return value, nil
}

func sumOfBytes(p []byte) string {
	sum := sha256.Sum256(p)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Put keeps a value, whole or not at all. It may be lost in a crash.
func (sh *Shelf) Put(key string, value []byte) error { return sh.putValue(key, value, false) }

// Replace puts a value durably in the place of old (empty: of none).
// fault.ErrConflict: the value is not old (any more), and nothing was changed.
func (sh *Shelf) Replace(key string, old, value []byte) error {
	unlock, err := sh.lockShelf()
	if err != nil {
		return err
	}
	defer unlock()
	now, err := sh.Get(key)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	if !bytes.Equal(now, old) {
		return fault.New(fault.ErrConflict, "the value was changed by somebody else")
	}
	return sh.putValue(key, value, true)
}

// lockShelf keeps other Replaces out, those of other processes too.
func (sh *Shelf) lockShelf() (unlock func(), err error) {
	d, err := os.Open(sh.dir)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be locked")
	}
	lock, err := filelock.WaitOf(d)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, errors.Join(err, d.Close()), "the cache can't be locked")
	}
	return func() { _ = lock.Release() }, nil
}

func (sh *Shelf) putValue(key string, value []byte, durable bool) error {
	if err := sh.store.checkSpace(int64(len(value))); err != nil {
		return err
	}
	head, err := json.Marshal(shelved{Key: key, Digest: sumOfBytes(value)})
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the value's key can't be written")
	}
	temp, err := sh.store.writeTemp("shelf-", durable, head, []byte{'\n'}, value)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, sh.pathOf(key)); err != nil {
		_ = os.Remove(temp) // Open clears what is left
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	if durable {
		if err := syncDir(sh.dir); err != nil {
			return err
		}
	}
	return sh.noteAdded()
}

// noteAdded prunes now and then, so that a long life does not outgrow the limit.
func (sh *Shelf) noteAdded() error {
	sh.mu.Lock()
	sh.count++ // a replaced value counts twice: it is pruned a little early
	full := sh.most > 0 && sh.count > sh.most+sh.most/8
	sh.mu.Unlock()
	if full {
		return sh.pruneValues()
	}
	return nil
}

// pruneValues removes the values that were written longest ago.
func (sh *Shelf) pruneValues() error {
	if !sh.pruning.TryLock() { // somebody else does
		return nil
	}
	defer sh.pruning.Unlock()
	values, err := os.ReadDir(sh.dir)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache directory can't be read")
	}
	if sh.most == 0 || len(values) <= sh.most {
		sh.recount(len(values))
		return nil
	}
	sh.recount(sh.most)
	when := make(map[string]time.Time, len(values))
	for _, v := range values {
		if info, err := v.Info(); err == nil {
			when[v.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(values, func(a, b fs.DirEntry) int { return when[a.Name()].Compare(when[b.Name()]) })
	for _, v := range values[:len(values)-sh.most] {
		if err := os.Remove(filepath.Join(sh.dir, v.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.ErrUnavailable, err, "an old value can't be removed from the cache")
		}
	}
	return nil
}

// recount notes how many values there are. Files that came while they were counted are missing, so that the next
// time is a little late.
func (sh *Shelf) recount(n int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.count = n
}
