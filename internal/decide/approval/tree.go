package approval

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of a tree.
const (
	MaxMembers  = 500     // releases of one tree
	maxTreeData = 400_000 // bytes of its members, as JSON within JSON
	maxNotes    = 20
)

// Member is a release of a tree. Its own request says what it is, who wants it and with which evidence.
type Member struct {
	ID      string     `json:"id"` // of its own request
	Package pkgref.Ref `json:"package"`
	Depth   int        `json:"depth"` // in the tree; 0: the install names it, or nothing in the tree requires it
	// Digests are of its files as they were when the tree was asked for. An answer to
	// the tree that does not say what was shown is bound to these.
	Digests []string `json:"digests"`
	// State and Request are as they are when the tree is read. List gives no Request,
	// and Get those of a very large tree's last members not.
	State   State    `json:"state,omitempty"`
	Request *Request `json:"request,omitempty"`
}

// TreeAsk is one install's ask for everything that it brings and that waits.
type TreeAsk struct {
	Root    pkgref.Ref // the release that stands for the tree
	Members []TreeMember
	Reason  string   // why it is asked for; "": that its releases wait
	Notes   []string // what a person should know of the tree beside its members, a sentence each
}

// TreeMember is one release of it. All members are asked for by one run.
type TreeMember struct {
	Ask
	Depth int
}

// IsTree tells a request that stands for a tree: its members are requests of their
// own, which can be answered one by one, and an answer to it is one to all of
// them that wait.
func (r Request) IsTree() bool { return len(r.Members) > 0 }

// AskTree files all that an install brings as one request: all of it, or on an error
// nothing. A member that waits already is joined, one that was answered is left out.
// Where only one is left that is the request. Past the limits, and for what no
// answer could be bound to, it is fault.ErrForbidden.
func (q *Queue) AskTree(ctx context.Context, tree TreeAsk) (Request, error) {
	tree = mask(q.cfg.Mask).ofTree(tree)
	asks, err := cleanTree(&tree)
	if err != nil {
		return Request{}, err
	}
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return Request{}, err
	}
	f := &filing{Queue: q, tree: tree, now: q.now()}
	switch err := f.weighMembers(ctx, asks); {
	case err != nil:
		return Request{}, err
	case len(f.waiting) == 0:
		return f.last, nil
	}
	return f.fileTree(ctx)
}

// cleanTree checks the members and bounds them, each release once.
func cleanTree(tree *TreeAsk) ([]TreeMember, error) {
	switch {
	case len(tree.Members) == 0:
		return nil, fault.Invalid("a tree without a release can't be asked for")
	case len(tree.Members) > MaxMembers:
		return nil, fault.New(fault.ErrForbidden, "%d releases are more than a person can be asked about at once (%d)", len(tree.Members), MaxMembers)
	}
	var asks []TreeMember
	seen := map[matter]bool{}
	first, err := cleanAsk(tree.Members[0].Ask)
	if err != nil {
		return nil, err
	}
	for _, m := range tree.Members {
		ask, err := cleanAsk(m.Ask)
		if err != nil {
			return nil, err
		}
		switch key := ask.matter().matterKey(); {
		case !ask.matter().ofRelease():
			return nil, fault.Invalid("a tree has releases, and %s is none", boundText(ask.matter().String(), maxShort))
		case ask.Run != first.Run || ask.Group != first.Group || ask.askerOf().Owner() != first.askerOf().Owner():
			return nil, fault.Invalid("the releases of a tree are asked for by one run of one owner")
		case len(strong(Digests(ask.Files))) == 0:
			return nil, fault.New(fault.ErrForbidden, "no digest of %s is known that an approval could be bound to", boundText(ask.Package.String(), maxShort))
		case !seen[key]:
			seen[key] = true
			asks = append(asks, TreeMember{Ask: ask, Depth: max(m.Depth, 0)})
		}
	}
	tree.Notes = clipList(tree.Notes, maxNotes, maxLong)
	return asks, nil
}

// filing is a tree on its way into the queue. Its holder holds Queue.write.
type filing struct {
	*Queue
	tree    TreeAsk
	now     time.Time
	waiting []waitingMember
	closing int     // pending requests that end with it
	fresh   int     // new ones
	last    Request // an answer that holds, where nothing is left to ask
}

// waitingMember is a release that no answer holds for.
type waitingMember struct {
	TreeMember
	step
}

// weighMembers finds out what becomes of each member.
func (f *filing) weighMembers(ctx context.Context, asks []TreeMember) error {
	for _, m := range asks {
		s, err := f.nextStep(ctx, m.Ask, f.now)
		if err != nil {
			return err
		}
		if s.answer != nil {
			f.last = *s.answer
			continue
		}
		if s.joins == nil {
			f.fresh++
		}
		f.closing += len(s.closing)
		f.waiting = append(f.waiting, waitingMember{m, s})
	}
	return nil
}

// fileTree makes the changes of the tree and its members.
func (f *filing) fileTree(ctx context.Context) (Request, error) {
	alone := len(f.waiting) == 1
	need := room{requests: 1, releases: f.fresh, closing: f.closing}
	if alone {
		need.requests = f.fresh
	}
	changes, err := f.admitRequest(ctx, f.waiting[0].Ask, need, f.now)
	if err != nil {
		return Request{}, err
	}
	id := ""
	if !alone {
		if id, err = f.freshID(ctx); err != nil {
			return Request{}, err
		}
	}
	var members []Member
	for _, m := range f.waiting {
		own, more, err := f.fileMember(ctx, id, m)
		if err != nil {
			return Request{}, err
		}
		changes = append(changes, more...)
		members = append(members, own)
	}
	if alone {
		if len(changes) > 0 {
			err = f.commit(ctx, changes...)
		}
		if err != nil {
			return Request{}, err
		}
		return f.reader.getRequest(ctx, members[0].ID)
	}
	whole, err := f.changes(id, members)
	if err != nil {
		return Request{}, err
	}
	if err := f.commit(ctx, slices.Concat(changes, whole)...); err != nil {
		return Request{}, err
	}
	return f.reader.wholeRequest(ctx, id)
}

// fileMember joins or begins the request of one release of the tree.
func (f *filing) fileMember(ctx context.Context, tree string, m waitingMember) (Member, []change, error) {
	var id string
	var changes []change
	var err error
	digests := Digests(m.Files)
	if m.joins != nil {
		id = m.joins.ID
		digests = Digests(mergeFiles(m.joins.Files, m.Files))
		changes, err = f.joining(ctx, *m.joins, m.Ask, f.now)
	} else {
		id, changes, err = f.beginning(ctx, m.closing, m.Ask, f.now)
	}
	for i := range changes {
		if changes[i].id == id {
			changes[i].tree = tree
		}
	}
	return Member{ID: id, Package: m.Package, Depth: m.Depth, Digests: digests}, changes, err
}

// changes are the records of the tree itself, small enough each.
func (f *filing) changes(id string, members []Member) ([]change, error) {
	first := f.waiting[0].Ask
	root := first.Package
	for _, m := range members {
		if m.Package == f.tree.Root {
			root = f.tree.Root
		}
	}
	asker := first.askerOf()
	asker.WantedBy = nil
	reason := boundText(f.tree.Reason, maxLong)
	if reason == "" {
		reason = "it and what it brings wait for approval: " + strconv.Itoa(len(members)) + " releases"
	}
	whole := []change{{
		event: EventAsked, id: id, matter: matter{pkg: root, upstream: first.Upstream}, asker: asker, rule: first.Rule,
		reason: reason,
		group:  f.board.groupOf(first, f.now, f.cfg.Limits.Burst), expires: f.now.Add(f.cfg.PendingExpires), byPerson: first.ByPerson, notes: f.tree.Notes,
	}}
	size, total := 0, 0
	for _, m := range members {
		n := encodedSize(m) + 1
		if total += n; total > maxTreeData {
			return nil, fault.New(fault.ErrForbidden, "the %d releases have more files than a person can be asked about at once", len(members))
		}
		last := &whole[len(whole)-1]
		if len(last.members) > 0 && size+n > maxFileData {
			whole = append(whole, change{event: EventJoined, id: id, matter: whole[0].matter, tree: id})
			last, size = &whole[len(whole)-1], 0
		}
		last.members = append(last.members, m)
		size += n
	}
	return whole, nil
}

// withTrees adds the ends of trees none of whose members waits after the changes. The
// caller holds q.write.
func (q *Queue) withTrees(ctx context.Context, changes []change) ([]change, error) {
	ended := map[string]change{}
	for _, c := range changes {
		if c.newState() != Pending {
			ended[c.id] = c
		}
	}
	ends := treeEnds{store: q.cfg.Store, ended: ended}
	for _, id := range q.board.treesOver(ended) {
		c, err := ends.endOfTree(ctx, id)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// treeEnds tells how trees end of which the last members end now.
type treeEnds struct {
	store Store
	ended map[string]change // requests that end now
}

// endOfTree is the end of a tree: denied if one of its members is, else approved if one is.
func (t treeEnds) endOfTree(ctx context.Context, id string) (change, error) {
	e, err := t.store.Get(ctx, id)
	if err != nil {
		return change{}, err
	}
	counts := map[State]int{}
	c := change{event: EventExpired, id: id, matter: e.matter()}
	var last Answer
	for _, m := range e.Members {
		end, now := t.ended[m.ID]
		state := end.newState()
		if !now {
			member, err := t.store.Get(ctx, m.ID)
			if err != nil && !errors.Is(err, fault.ErrNotFound) {
				return change{}, err
			}
			state = member.State
			if a := member.Answer; a != nil && a.At.After(last.At) && last.At.Before(a.At) && c.by == "" {
				last = *a
			}
		} else if end.by != "" {
			c.by, c.scope, c.reason, c.expires = end.by, end.scope, end.reason, end.expires
		}
		counts[state]++
	}
	if c.by == "" {
		c.by, c.scope, c.reason, c.expires = last.By, last.Scope, last.Reason, last.Expires
	}
	switch {
	case counts[Denied] > 0:
		c.event = EventDenied
	case counts[Approved] > 0:
		c.event = EventApproved
	default:
		c.by, c.scope, c.reason, c.expires = "", "", "", time.Time{}
		c.ended = "its releases have ended: " + countsText(counts)
	}
	return c, nil
}

// countsText is "3 approved, 1 expired".
func countsText(counts map[State]int) string {
	var parts []string
	for _, s := range []State{Pending, Approved, Denied, Expired, Superseded} {
		if counts[s] > 0 {
			parts = append(parts, strconv.Itoa(counts[s])+" "+string(s))
		}
	}
	return strings.Join(parts, ", ")
}
