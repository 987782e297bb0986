package admission

import (
	"container/list"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/clock"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// indexKey names the facts and rules that an index's verdicts follow from, time
// aside. No run is in it: equal facts give equal verdicts.
type indexKey struct {
	policy string
	pkg    pkgref.Ref
	index  string
	edges  string
	facts  string // of Controller.generation
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
	most      int
	mostBytes int64

	mu    sync.Mutex // guards all below
	items map[indexKey]*list.Element
	used  *list.List // of *indexVerdict, the last used first
	bytes int64
}

func newIndexCache(most int, mostBytes int64) *indexCache {
	return &indexCache{most: most, mostBytes: mostBytes, items: map[indexKey]*list.Element{}, used: list.New()}
}

// get returns what is remembered and still true.
func (c *indexCache) get(key indexKey, now time.Time) *indexVerdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[key]
	if e == nil {
		return nil
	}
	v := verdictIn(e)
	if now.Before(v.from) || !v.until.IsZero() && !now.Before(v.until) {
		c.drop(e)
		return nil
	}
	c.used.MoveToFront(e)
	return v
}

func (c *indexCache) put(v *indexVerdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[v.key]; e != nil {
		c.drop(e)
	}
	c.items[v.key] = c.used.PushFront(v)
	c.bytes += v.bytes
	for c.used.Len() > 1 && (c.used.Len() > c.most || c.bytes > c.mostBytes) {
		c.drop(c.used.Back())
	}
}

// drop forgets an entry; mu is held.
func (c *indexCache) drop(e *list.Element) {
	v := verdictIn(e)
	c.used.Remove(e)
	delete(c.items, v.key)
	c.bytes -= v.bytes
}

func verdictIn(e *list.Element) *indexVerdict {
	v, _ := e.Value.(*indexVerdict) // nothing else is put in
	return v
}

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
