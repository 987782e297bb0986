package admission

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
)

// indexKey names the facts and rules that an index's verdicts follow from, time
// aside. No run is in it: equal facts give equal verdicts.
type indexKey struct {
	policy string
	pkg    pkgref.Ref
	index  string
	edges  string
	facts  string // see knowledge.generation
	// declared is policy.Subject's, of the run's own releases.
	declared bool
	// answers are people's, by what they say: those of two runs can differ.
	answers string
	loose   bool          // see policy.Subject.Below
	jump    time.Duration // of the host's clock, to about a second
	plan    string        // the sandbox of a plan, whose verdicts are its own; "": no plan
}

// clockStep is how finely a jump of the clock tells verdicts apart: two readings of one
// jump differ by less.
const clockStep = 4 * time.Second

// indexCache remembers verdicts, the least recently used leaving first.
type indexCache struct {
	kept  *lru.Cache[indexKey, *indexVerdict]
	least int64 // what a verdict counts for at least, so that there are not too many
}

func newIndexCache(most int, mostBytes int64) *indexCache {
	return &indexCache{kept: lru.New[indexKey, *indexVerdict](mostBytes), least: mostBytes / int64(most)}
}

// getVerdict returns what is remembered and still true.
func (c *indexCache) getVerdict(key indexKey, now time.Time) *indexVerdict {
	v, known := c.kept.Get(key)
	switch {
	case !known:
		return nil
	case now.Before(v.from) || !v.until.IsZero() && !now.Before(v.until):
		c.kept.Remove(key)
		return nil
	}
	return v
}

func (c *indexCache) putVerdict(v *indexVerdict) { c.kept.Put(v.key, v, max(v.bytes, c.least)) }

// nextChange is the next moment at which policy may judge a file otherwise than
// now: when the time from which its age counts is no longer in the future, and
// when it is old enough; after a jump of the clock, by either time. Zero if never.
func nextChange(p *policy.Policy, now clock.Reading, from time.Time) time.Time {
	next := changeAfter(p, now.Now, from)
	if other := changeAfter(p, now.Wall, from); !other.IsZero() {
		next = earlier(next, other.Add(-now.Jump()))
	}
	return next
}

func changeAfter(p *policy.Policy, now, from time.Time) time.Time {
	age := p.MinReleaseAge()
	switch {
	case age <= 0 || from.IsZero():
		return time.Time{}
	case from.After(now):
		return from
	case from.Add(age).After(now):
		return from.Add(age)
	}
	return time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
