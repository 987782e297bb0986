package pages

import (
	"io"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
)

// history gives the index that was kept before, with the files on all hosts;
// nil if there is none.
func (ps *Pages) history(s Source, project string, have *Page) *ecosystem.Index {
	var before *ecosystem.Index
	_, err := ps.cfg.Store.GetPage(storeKey(s, project), func(from io.Reader) (err error) {
		before, err = readKept(from)
		return err
	})
	switch {
	case err == nil:
		return before
	case have != nil: // it could not be kept
		return have.Index
	}
	return nil
}

// carryOver gives each file the time at which it was first listed here, and the
// time of publication that it had then: a registry that changes a time later
// changes nothing. A file that comes back with other bytes is a new one.
func (ps *Pages) carryOver(s Source, project string, ix, before *ecosystem.Index, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	known := map[string]ecosystem.File{}
	if before != nil {
		for _, f := range before.Files {
			known[f.Name] = f
		}
	}
	moved, replaced := 0, 0
	for i := range ix.Files {
		f := &ix.Files[i]
		f.Published = f.Published.UTC()
		f.FirstSeen = now
		old, ok := known[f.Name]
		switch {
		case !ok:
		case otherBytes(old.Digest, f.Digest):
			replaced++
		default:
			f.FirstSeen = old.FirstSeen
			if !old.Published.IsZero() && !f.Published.Equal(old.Published) {
				f.Published = old.Published
				moved++
			}
		}
	}
	if moved+replaced > 0 {
		ps.cfg.Log.Warn("the index changed what was: times of publication are kept as they were, files with another digest count as new",
			"index", s.Index, "project", project, "times", moved, "digests", replaced)
	}
}

// otherBytes tells that two digests can't be of the same bytes. An index may
// give another kind of digest later.
func otherBytes(a, b string) bool {
	algorithm, _, _ := strings.Cut(a, ":")
	return a != b && algorithm != "" && strings.HasPrefix(b, algorithm+":")
}
