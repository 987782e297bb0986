package approval

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// requestReader tells requests as they are now: what the store has of them, what the clock has
// ended since, and in which tree they wait.
type requestReader struct {
	store Store
	board *board
	now   func() time.Time
	group int // of how many requests of a group names are compared
}

// getRequest returns a request as nobody in particular sees it, without what it is told with.
func (d requestReader) getRequest(ctx context.Context, id string) (Request, error) {
	return d.getFor(ctx, id, "")
}

// getFor returns a request as the run sees it that asks.
func (d requestReader) getFor(ctx context.Context, id, run string) (Request, error) {
	e, err := d.store.Get(ctx, id)
	if err != nil {
		return Request{}, err
	}
	r, _, err := d.revised(ctx, d.placed(e.asOf(d.now()), run))
	return r, err
}

// wholeRequest is a request with near names, and of a tree with the requests of its members.
func (d requestReader) wholeRequest(ctx context.Context, id string) (Request, error) {
	e, err := d.store.Get(ctx, id)
	if err != nil {
		return Request{}, err
	}
	near, err := d.nearNames(ctx, []Entry{e})
	if err != nil {
		return Request{}, err
	}
	r := d.placed(e.asOf(d.now()), "")
	r.Near, r.RunsEnded = near[e.ID], r.runsEnded(d.board.living())
	return d.withMembers(ctx, r, near)
}

// placed says which tree a pending request is in: of a run's own, if it has one.
func (d requestReader) placed(r Request, run string) Request {
	if r.State != Pending || r.IsTree() {
		return r
	}
	if tree := d.board.oldestTree(r.ID, run); tree != "" {
		r.Tree = tree
	}
	return r
}

// runsEnded is RunsEnded. Where there may be more askers than are named, nobody says that of them.
func (r Request) runsEnded(lives func(run string) bool) bool {
	return r.State == Pending && len(r.Asks) > 0 && len(r.Asks) < MaxAsks && !slices.ContainsFunc(r.Asks, func(a Asker) bool { return lives(a.Run) })
}

// maxMembersSize bounds the members' requests that come with a tree, in bytes of JSON.
const maxMembersSize = 4 << 20

// withMembers tells a tree's members as they are now. It changes nothing that r shares.
func (d requestReader) withMembers(ctx context.Context, r Request, near map[string][]string) (Request, error) {
	r, members, err := d.revised(ctx, r)
	if err != nil {
		return Request{}, err
	}
	size, lives := 0, d.board.living()
	for i, e := range members {
		if e.ID == "" {
			continue // it was erased
		}
		own := e.asOf(d.now())
		own.Tree, own.Near, own.AnswerID = r.ID, near[e.ID], AnswerID(e.ID, own.Revision)
		own.RunsEnded = own.runsEnded(lives)
		if size += encodedSize(own); size <= maxMembersSize {
			r.Members[i].Request = &own
		}
	}
	return r, nil
}

// revised is a request with the revision that an answer names; of a tree it counts its
// members, which come with it (the zero Entry is one that was erased) and whose states it
// tells. It changes nothing that r shares.
func (d requestReader) revised(ctx context.Context, r Request) (Request, []Entry, error) {
	r.Members = slices.Clone(r.Members)
	members := make([]Entry, len(r.Members))
	for i, m := range r.Members {
		e, err := d.store.Get(ctx, m.ID)
		if errors.Is(err, fault.ErrNotFound) {
			continue
		}
		if err != nil {
			return Request{}, nil, err
		}
		members[i] = e
		r.Members[i].State = e.asOf(d.now()).State
	}
	if r.IsTree() {
		r = r.withRevisionsOf(members)
	}
	r.AnswerID = AnswerID(r.ID, r.Revision)
	return r, members, nil
}
