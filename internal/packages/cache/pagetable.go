package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxPages bounds how many pages are kept.
const maxPages = 20_000

// pageTable is what this process knows of the kept pages.
type pageTable struct {
	mu     sync.Mutex // guards all below
	byName map[string]*pageEntry
	total  int64 // bytes
}

type pageEntry struct {
	size  int64
	used  time.Time
	stamp stamp  // with which the rows were verified; zero: not in this process
	rows  string // their digest
}

// scanPages counts the pages that there are, and removes the oldest if they
// are too many.
func (s *Store) scanPages() error {
	pages, err := os.ReadDir(filepath.Join(s.dir, dirPages))
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache directory can't be read")
	}
	s.pages.byName = make(map[string]*pageEntry, len(pages))
	for _, p := range pages {
		if info, err := p.Info(); err == nil {
			s.pages.byName[p.Name()] = &pageEntry{size: info.Size(), used: info.ModTime()}
			s.pages.total += info.Size()
		}
	}
	s.evictPages("")
	return nil
}

// usePage notes that a page is in use; size 0 is as before.
func (s *Store) usePage(name string, size int64) {
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	e := s.pages.byName[name]
	if e == nil {
		if size == 0 {
			return
		}
		e = &pageEntry{}
		s.pages.byName[name] = e
	}
	if size > 0 {
		s.pages.total += size - e.size
		e.size = size
	}
	e.used = time.Now()
}

// keepPage notes a page whose rows are verified, and makes room for it.
func (s *Store) keepPage(name, rows string, now stamp) {
	s.usePage(name, now.size)
	s.pages.mu.Lock()
	if e := s.pages.byName[name]; e != nil {
		e.stamp, e.rows = now, rows
	}
	s.pages.mu.Unlock()
	s.evictPages(name)
}

// knowsPage tells whether these rows were verified with this very stamp.
func (s *Store) knowsPage(name, rows string, now stamp) bool {
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	e := s.pages.byName[name]
	if e == nil || e.stamp != now || e.rows != rows {
		return false
	}
	e.used = time.Now()
	return true
}

// evictPages removes the least recently used pages when there are too many or
// they have too many bytes, down to nine tenths, so that it is done seldom. The
// one that was just written stays, and an open one keeps its bytes for whoever
// reads it. Nobody waits while they are removed: under the lock they only get another name.
func (s *Store) evictPages(written string) {
	for _, aside := range s.takeOldPages(written) {
		_ = os.RemoveAll(aside) // Open clears what is left
	}
}

// takeOldPages forgets the pages that are too many, and moves them aside.
func (s *Store) takeOldPages(written string) (aside []string) {
	t := &s.pages
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byName) <= maxPages && t.total <= s.limits.MaxPageBytes {
		return nil
	}
	names := make([]string, 0, len(t.byName))
	for name := range t.byName {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return t.byName[a].used.Compare(t.byName[b].used) })
	for _, name := range names {
		if len(t.byName) <= maxPages/10*9 && t.total <= s.limits.MaxPageBytes/10*9 {
			break
		}
		if name == written {
			continue
		}
		path := s.asidePath()
		if err := os.Rename(s.pagePath(name), path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // counted still
		}
		aside = append(aside, path)
		t.total -= t.byName[name].size
		delete(t.byName, name)
	}
	return aside
}
