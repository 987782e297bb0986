package cache

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// evict removes the least recently used blobs until at most most bytes are
// left. What is open stays, so the total may remain above.
func (s *Store) evict(most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total <= most {
		return
	}
	var idle []string
	for h, e := range s.blobs {
		if e.open == 0 {
			idle = append(idle, h)
		}
	}
	slices.SortFunc(idle, func(a, b string) int { return s.blobs[a].used.Compare(s.blobs[b].used) })
	for _, h := range idle {
		if s.total <= most {
			return
		}
		// An open file keeps its bytes after the removal, so a reader of
		// another process is not torn.
		if err := os.Remove(s.blobPath(h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // counted still, and tried again at the next commit
		}
		s.total -= s.blobs[h].size
		delete(s.blobs, h)
	}
}

func (s *Store) release(h string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.blobs[h]; e != nil {
		e.open--
	}
}
