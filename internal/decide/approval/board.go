package approval

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// board is what waits, in memory, as the store had it last: pending requests are few. Safe
// for concurrent use.
type board struct {
	mu      sync.Mutex               // guards what follows; never held over I/O
	pending map[string]waiting       // every pending request, by its id
	about   map[matter][]string      // the ids of those that are about one thing: one for each owner
	trees   map[string]pendingTree   // every pending tree
	bursts  map[holder]burst         // by run
	capped  map[holder]bool          // runs whose excess is on record
	waiters map[string]chan struct{} // by request; closed when it is not pending any more
	runs    func() map[string]bool   // those that live; nil: all
}

// holder is a run with its owner: others can give a run of theirs the same id.
type holder struct{ run, owner string }

func (a Asker) holder() holder { return holder{a.Run, a.Owner()} }

// burst is what one run asks for in one go. Its requests share a group, so that they are read and
// answered together.
type burst struct {
	group string
	last  time.Time
}

// waiting is a pending request, as the caps count it.
type waiting struct {
	id      string
	run     string // that began it
	began   holder // the same, with its owner
	token   string // whose run that was
	key     matter // what it is about
	owners  []string
	born    uint64
	runs    []string // that want it; nil: too many to tell
	seen    bool     // a person has looked at it
	orphan  bool     // when the runs were last looked at, none of them lived
	orphand time.Time
}

func waitingOf(e Entry) waiting {
	w := waiting{id: e.ID, key: e.matter().matterKey(), owners: e.Owners(), born: e.Born, seen: e.Seen != nil}
	if len(e.Runs) > 0 {
		w.run = e.Runs[0].Run
	}
	if len(e.Asks) > 0 {
		w.token, w.began = e.Asks[0].Token, e.Asks[0].holder()
	}
	if len(e.Runs) <= MaxAsks {
		for _, asking := range e.Runs {
			w.runs = append(w.runs, asking.Run)
		}
	}
	return w
}

// forsaken tells whether nobody waits for a request any more, and no person has
// looked at it.
func (w waiting) forsaken(lives func(run string) bool) bool {
	return !w.seen && len(w.runs) > 0 && !slices.ContainsFunc(w.runs, lives)
}

// pendingTree is a tree that nobody has answered as a whole.
type pendingTree struct {
	run, token string
	born       uint64
	group      string
	seen       bool
	members    map[string]bool
}

func pendingTreeOf(e Entry) pendingTree {
	t := pendingTree{born: e.Born, group: e.Group, seen: e.Seen != nil, members: map[string]bool{}}
	if len(e.Asks) > 0 {
		t.run, t.token = e.Asks[0].Run, e.Asks[0].Token
	}
	for _, m := range e.Members {
		t.members[m.ID] = true
	}
	return t
}

// count is how many requests wait.
type count struct{ all, token, run int }

func (n *count) addCounts(in, token, run bool) {
	if !in {
		return
	}
	n.all++
	if token {
		n.token++
	}
	if run {
		n.run++
	}
}

func newBoard() *board {
	return &board{
		pending: map[string]waiting{}, about: map[matter][]string{}, trees: map[string]pendingTree{}, bursts: map[holder]burst{}, capped: map[holder]bool{},
		waiters: map[string]chan struct{}{},
	}
}

// takeEntries notes the state of entries that the store has taken.
func (b *board) takeEntries(entries []Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		b.noteEntry(e)
	}
}

// noteEntry needs mu.
func (b *board) noteEntry(e Entry) {
	if e.State != Pending {
		delete(b.trees, e.ID)
		b.dropRequest(e.ID)
		if ch := b.waiters[e.ID]; ch != nil {
			close(ch)
			delete(b.waiters, e.ID)
		}
		return
	}
	if e.IsTree() {
		b.trees[e.ID] = pendingTreeOf(e)
		return
	}
	w := waitingOf(e)
	if known, is := b.pending[e.ID]; is {
		w.orphan, w.orphand = known.orphan, known.orphand
	} else {
		b.about[w.key] = append(b.about[w.key], e.ID)
	}
	b.pending[e.ID] = w
	if now := b.bursts[w.began]; e.Created.After(now.last) {
		b.bursts[w.began] = burst{group: e.Group, last: e.Created}
	}
}

// dropRequest forgets a pending request. It needs mu.
func (b *board) dropRequest(id string) {
	w, is := b.pending[id]
	if !is {
		return
	}
	delete(b.pending, id)
	b.about[w.key] = slices.DeleteFunc(b.about[w.key], func(other string) bool { return other == id })
	if len(b.about[w.key]) == 0 {
		delete(b.about, w.key)
	}
}

// waitingFor is the pending request that an ask joins: for the same thing, by the same
// owner. Another owner's is never joined: a person may be looking at it.
func (b *board) waitingFor(ask Ask) (id string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	asker := ask.askerOf()
	for _, id := range b.about[ask.matter().matterKey()] {
		if slices.ContainsFunc(b.pending[id].owners, asker.isOwner) {
			return id, true
		}
	}
	return "", false
}

// settled is closed when the request is not pending any more. Of a request that
// is not pending it may never be.
func (b *board) settled(id string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.pending[id]; !waits {
		return nil
	}
	if b.waiters[id] == nil {
		b.waiters[id] = make(chan struct{})
	}
	return b.waiters[id]
}

// groupOf is the group of what a run asks for now: what it asks for within pause is one.
func (b *board) groupOf(ask Ask, now time.Time, pause time.Duration) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.bursts) > maxCached {
		for run, other := range b.bursts {
			if now.Sub(other.last) > pause {
				delete(b.bursts, run)
			}
		}
	}
	holder := ask.askerOf().holder()
	own, known := b.bursts[holder]
	switch {
	case ask.Group != "":
		own.group = ask.Group
	case !known || own.group == "" || now.Sub(own.last) > pause:
		own.group = newID(groupPrefix)
	}
	own.last = now
	b.bursts[holder] = own
	return own.group
}

// countWaiting counts the requests that wait, trees as one, and the releases.
func (b *board) countWaiting(ask Ask) (requests, releases count) {
	b.mu.Lock()
	defer b.mu.Unlock()
	members := map[string]bool{}
	for _, t := range b.trees {
		token := t.token == ask.Token
		requests.addCounts(true, token, token && t.run == ask.Run)
		for id := range t.members {
			members[id] = true
		}
	}
	for _, w := range b.pending {
		token := w.token == ask.Token
		run := token && w.run == ask.Run // another token's of the same id takes none of its share
		releases.addCounts(true, token, run)
		requests.addCounts(!members[w.id], token, run)
	}
	return requests, releases
}

// isCapped tells whether a run's excess is on record, and setCapped that it is now.
func (b *board) isCapped(run holder) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.capped[run]
}

func (b *board) setCapped(run holder) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.capped) > maxCached {
		clear(b.capped)
	}
	b.capped[run] = true
}

// followRuns takes the way to find out which runs live, and living asks.
func (b *board) followRuns(runs func() map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs = runs
}

func (b *board) living() func(run string) bool {
	b.mu.Lock()
	ask := b.runs
	b.mu.Unlock()
	if ask == nil {
		return func(string) bool { return true }
	}
	alive := ask()
	return func(run string) bool { return alive[run] }
}

// overdue are the requests that have been forsaken for so long.
func (b *board) overdue(now time.Time, after time.Duration) (ids []string) {
	lives := b.living()
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, w := range b.pending {
		switch is := w.forsaken(lives) && !b.seenInTree(w.id); {
		case !is:
			w.orphan = false
		case !w.orphan:
			w.orphan, w.orphand = true, now
		case now.Sub(w.orphand) >= after:
			ids = append(ids, id)
		}
		b.pending[id] = w
	}
	return ids
}

// forsaken tells whether a request waits and nobody for it, by itself or in a tree.
func (b *board) forsaken(id string) bool {
	lives := b.living()
	b.mu.Lock()
	defer b.mu.Unlock()
	w, waits := b.pending[id]
	return waits && w.forsaken(lives) && !b.seenInTree(id)
}

// idlest is the oldest forsaken request of those that are meant, of the token with the most
// of them; with it come the others of its tree, since one alone makes no room.
func (b *board) idlest(meant func(waiting) bool) (ids []string) {
	lives := b.living()
	b.mu.Lock()
	defer b.mu.Unlock()
	var idle []waiting
	of := map[string]int{}
	for _, w := range b.pending {
		if meant(w) && w.forsaken(lives) && !b.seenInTree(w.id) {
			idle = append(idle, w)
			of[w.token]++
		}
	}
	if len(idle) == 0 {
		return nil
	}
	first := slices.MinFunc(idle, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(of[b.token], of[a.token]), cmp.Compare(a.born, b.born))
	})
	tree := b.treeOf(first.id, first.run)
	if tree == "" {
		return []string{first.id}
	}
	for _, w := range idle {
		if b.trees[tree].members[w.id] {
			ids = append(ids, w.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// oldestTree is the oldest pending tree that a request is in, one of the run's own first;
// "" if it is in none.
func (b *board) oldestTree(id, run string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.treeOf(id, run)
}

// treeOf is tree; it needs mu.
func (b *board) treeOf(id, run string) (tree string) {
	var best pendingTree
	for name, t := range b.trees {
		if !t.members[id] {
			continue
		}
		own, known := t.run == run, best.run == run
		if tree == "" || own && !known || own == known && t.born < best.born {
			tree, best = name, t
		}
	}
	return tree
}

// seenInTree tells that a person has looked at a tree that a request is in. It needs mu.
func (b *board) seenInTree(id string) bool {
	for _, t := range b.trees {
		if t.seen && t.members[id] {
			return true
		}
	}
	return false
}

// treesOver are the pending trees none of whose members waits once some requests have ended.
func (b *board) treesOver(ended map[string]change) (over []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	open := map[string]bool{}
	for _, w := range b.pending {
		if _, ends := ended[w.id]; !ends {
			open[w.id] = true
		}
	}
	for id, t := range b.trees {
		touched, waits := false, false
		for member := range t.members {
			_, ends := ended[member]
			touched, waits = touched || ends, waits || open[member]
		}
		if _, ends := ended[id]; touched && !waits && !ends {
			over = append(over, id)
		}
	}
	slices.Sort(over)
	return over
}
