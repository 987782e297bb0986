// Package cache keeps what the gateway has verified: artifacts by digest, what
// each file was when it was first seen, the last page of each index, and small
// values. It is files in one directory, each put there whole by a rename; there
// is no database and nothing to repair.
//
// The bytes of an artifact lie under their digest, "sha256:<hex>". A blob that is not what its name
// says is quarantined: moved aside, kept for the operator, never served. The rows of an index page
// can be read in pieces, and an index says where they are.
//
// A program that may write in the directory as this user can replace blobs between
// two reads; what is guaranteed is that a change is found before it is served.
package cache

import (
	"container/list"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Limits bound what the cache takes. Zero fields take the default.
type Limits struct {
	MaxBytes     int64 // of all blobs, past which the least recently used go; default 20 GiB
	MaxArtifact  int64 // of one blob; default 8 GiB
	MaxPageBytes int64 // of all index pages, past which the least recently used go; default 4 GiB
	Reserve      int64 // bytes that stay free on the file system; default 512 MiB
}

func (l Limits) withDefaults() Limits {
	if l.MaxBytes == 0 {
		l.MaxBytes = 20 << 30
	}
	if l.MaxArtifact == 0 {
		l.MaxArtifact = 8 << 30
	}
	if l.MaxPageBytes == 0 {
		l.MaxPageBytes = 4 << 30
	}
	if l.Reserve == 0 {
		l.Reserve = 512 << 20
	}
	return l
}

// The directories of a store.
const (
	dirBlobs      = "blobs"
	dirSeen       = "seen"
	dirPages      = "pages"
	dirShelves    = "shelves"
	dirTemp       = "tmp"
	dirQuarantine = "quarantine"
)

// Store is a cache directory. It is safe for concurrent use; two processes may
// share a directory, and each then counts only what it saw itself.
type Store struct {
	dir    string
	limits Limits
	pages  pageTable

	mu    sync.Mutex
	blobs map[string]*blobEntry // by hex digest
	order *list.List            // of the digests, the one that was used the longest ago first
	total int64

	evicting sync.Mutex    // held by whoever makes room
	evicted  atomic.Uint64 // names what it takes out
}

// blobEntry is a blob that this process knows. Guarded by Store.mu.
type blobEntry struct {
	size  int64
	at    *list.Element // in Store.order
	open  int           // handles; never evicted while there is one
	stamp stamp         // zero: not verified in this process
}

// addBlob takes a blob in as the one that was used last. Needs mu.
func (s *Store) addBlob(h string) *blobEntry {
	e := &blobEntry{at: s.order.PushBack(h)}
	s.blobs[h] = e
	return e
}

// dropBlob forgets a blob. Needs mu.
func (s *Store) dropBlob(h string, e *blobEntry) {
	s.total -= e.size
	s.order.Remove(e.at)
	delete(s.blobs, h)
}

// Open makes the directories that are missing, removes what a crash left
// half-written, and counts the blobs.
func Open(dir string, limits Limits) (*Store, error) {
	s := &Store{dir: dir, limits: limits.withDefaults(), blobs: map[string]*blobEntry{}, order: list.New()}
	for _, sub := range []string{dirBlobs, dirSeen, dirPages, dirTemp, dirQuarantine} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache directory can't be made")
		}
	}
	if err := s.clearTemp(); err != nil {
		return nil, err
	}
	if err := s.scanBlobs(); err != nil {
		return nil, err
	}
	return s, s.scanPages()
}

func (s *Store) clearTemp() error {
	left, err := os.ReadDir(filepath.Join(s.dir, dirTemp))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache directory can't be read")
	}
	for _, e := range left {
		if err := os.RemoveAll(filepath.Join(s.dir, dirTemp, e.Name())); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "a half-written file in the cache can't be removed")
		}
	}
	return nil
}

func (s *Store) scanBlobs() error {
	shards, err := os.ReadDir(filepath.Join(s.dir, dirBlobs))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache directory can't be read")
	}
	type found struct {
		hex  string
		size int64
		used time.Time
	}
	var all []found
	for _, shard := range shards {
		blobs, err := os.ReadDir(filepath.Join(s.dir, dirBlobs, shard.Name()))
		if err != nil {
			continue // not a directory of ours: Get quarantines what is asked for
		}
		for _, b := range blobs {
			if !isHexDigest(b.Name()) {
				continue
			}
			info, err := b.Info()
			if err != nil {
				continue
			}
			all = append(all, found{b.Name(), info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return a.used.Compare(b.used) })
	for _, f := range all {
		if s.blobs[f.hex] == nil {
			s.addBlob(f.hex).size = f.size
			s.total += f.size
		}
	}
	return nil
}

// parseDigest gives the hex of "sha256:<hex>".
func parseDigest(digest string) (string, error) {
	h, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || !isHexDigest(h) {
		return "", fault.Invalid("a digest that is not sha256 in lower-case hex")
	}
	return h, nil
}

func isHexDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && strings.ToLower(s) == s
}

func (s *Store) blobPath(hexDigest string) string {
	return filepath.Join(s.dir, blobName(hexDigest))
}

func blobName(hexDigest string) string { return filepath.Join(dirBlobs, hexDigest[:2], hexDigest) }

// BlobName is where in a cache's directory the bytes with a sha256 (hex) are, for who only reads them and
// verifies them itself; fault.ErrInvalid for what is no sha256.
func BlobName(hexDigest string) (string, error) {
	if !isHexDigest(hexDigest) {
		return "", fault.Invalid("%.80q is not a sha256", hexDigest)
	}
	return blobName(hexDigest), nil
}
