// Package turns lets a bounded number of things be done at one time, and keeps one
// owner's many from standing in the way of another's few.
//
// Vocabulary: a *turn* is the right to do one thing now; an *owner* is whose thing it
// is, a token or "" for the callers on the Unix socket; owners *wait* each in a line
// of their own, in the order in which they came.
package turns

import (
	"context"
	"sync"
)

// Table gives turns. A turn that becomes free goes to the owner who has the fewest,
// and among these to the one who was given one the longest ago. No owner has all of
// them, where there is more than one. Safe for concurrent use.
type Table struct {
	most    int // at one time
	each    int // of them, one owner
	waiting int // that one owner may have in line

	mu    sync.Mutex // guards what follows
	taken int
	given uint64 // how many turns there have been
	lines map[string]*line
}

// line is one owner's.
type line struct {
	has   int
	last  uint64 // which turn was given to it last
	queue []*ticket
}

// ticket is one who waits; given is closed with the turn. Its state is guarded by
// the table's lock.
type ticket struct {
	given chan struct{}
	taken bool
}

// New makes a table of so many turns, of which a quarter (at least one, if there are
// two) is out of any one owner's reach. waiting bounds each owner's line.
func New(most, waiting int) *Table {
	most = max(most, 1)
	each := most - (most+3)/4
	return &Table{most: most, each: max(each, 1), waiting: waiting, lines: map[string]*line{}}
}

// Each is how many turns one owner can have at one time.
func (t *Table) Each() int { return t.each }

// Most is how many turns there are.
func (t *Table) Most() int { return t.most }

// Take waits for a turn of an owner; leave gives it back and may be called again.
// crowded tells that the owner's line was full, and nobody waited. The error is ctx's.
func (t *Table) Take(ctx context.Context, owner string) (leave func(), crowded bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	mine, crowded := t.join(owner)
	if crowded {
		return nil, true, nil
	}
	select {
	case <-mine.given:
	case <-ctx.Done():
		if t.abandon(owner, mine) {
			return nil, false, ctx.Err()
		}
		// It was given at that very moment.
	}
	return sync.OnceFunc(func() { t.giveBack(owner) }), false, nil
}

func (t *Table) join(owner string) (mine *ticket, crowded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[owner]
	if l == nil {
		l = &line{}
		t.lines[owner] = l
	}
	if len(l.queue) >= t.waiting {
		return nil, true
	}
	mine = &ticket{given: make(chan struct{})}
	l.queue = append(l.queue, mine)
	t.deal()
	return mine, false
}

// abandon takes a ticket out of its line; false: it has its turn.
func (t *Table) abandon(owner string, mine *ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.taken {
		return false
	}
	l := t.lines[owner]
	for i, other := range l.queue {
		if other == mine {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			break
		}
	}
	t.tidy(owner)
	return true
}

func (t *Table) giveBack(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.lines[owner].has--
	t.tidy(owner)
	t.deal()
}

// tidy forgets an owner who has nothing and waits for nothing. Needs mu.
func (t *Table) tidy(owner string) {
	if l := t.lines[owner]; l.has == 0 && len(l.queue) == 0 {
		delete(t.lines, owner)
	}
}

// deal gives the free turns away. Needs mu.
func (t *Table) deal() {
	for t.taken < t.most {
		next := t.next()
		if next == nil {
			return
		}
		first := next.queue[0]
		next.queue = next.queue[1:]
		t.taken++
		t.given++
		next.has++
		next.last = t.given
		first.taken = true
		close(first.given)
	}
}

// next is the line whose owner is to have the next turn; nil: there is none. Needs
// mu.
func (t *Table) next() *line {
	var best *line
	for _, l := range t.lines {
		if len(l.queue) == 0 || l.has >= t.each {
			continue
		}
		if best == nil || l.has < best.has || l.has == best.has && l.last < best.last {
			best = l
		}
	}
	return best
}
