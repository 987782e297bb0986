package approval

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// reader tells requests as they are now: what the store has of them, what the clock has
// ended since, and in which tree they wait.
type reader struct {
	store Store
	board *board
	now   func() time.Time
	group int // of how many requests of a group names are compared
}

// get is a request as nobody in particular sees it, without what it is told with.
func (d reader) get(ctx context.Context, id string) (Request, error) { return d.getFor(ctx, id, "") }

// getFor is a request as the run sees it that asks.
func (d reader) getFor(ctx context.Context, id, run string) (Request, error) {
	e, err := d.store.Get(ctx, id)
	if err != nil {
		return Request{}, err
	}
	return d.placed(e.asOf(d.now()), run), nil
}

// whole is a request with near names, and of a tree with the requests of its members.
func (d reader) whole(ctx context.Context, id string) (Request, error) {
	e, err := d.store.Get(ctx, id)
	if err != nil {
		return Request{}, err
	}
	near, err := d.nearNames(ctx, []Entry{e})
	if err != nil {
		return Request{}, err
	}
	r := d.placed(e.asOf(d.now()), "")
	r.Near = near[e.ID]
	return d.withMembers(ctx, r, near)
}

// placed says which tree a pending request is in: of a run's own, if it has one.
func (d reader) placed(r Request, run string) Request {
	if r.State != Pending || r.IsTree() {
		return r
	}
	if tree := d.board.tree(r.ID, run); tree != "" {
		r.Tree = tree
	}
	return r
}

// maxMembersSize bounds the members' requests that come with a tree, in bytes of JSON.
const maxMembersSize = 4 << 20

// withMembers tells a tree's members as they are now. It changes nothing that r shares.
func (d reader) withMembers(ctx context.Context, r Request, near map[string][]string) (Request, error) {
	r.Members = slices.Clone(r.Members)
	size := 0
	for i, m := range r.Members {
		e, err := d.store.Get(ctx, m.ID)
		if errors.Is(err, fault.ErrNotFound) {
			continue // it was erased
		}
		if err != nil {
			return Request{}, err
		}
		own := e.asOf(d.now())
		own.Tree, own.Near = r.ID, near[m.ID]
		r.Members[i].State = own.State
		if size += encodedSize(own); size <= maxMembersSize {
			r.Members[i].Request = &own
		}
	}
	return r, nil
}

// states tells how a tree's members stand.
func (d reader) states(ctx context.Context, members []Member) ([]Member, error) {
	if len(members) == 0 {
		return nil, nil
	}
	members = slices.Clone(members)
	for i, m := range members {
		e, err := d.store.Get(ctx, m.ID)
		if err != nil && !errors.Is(err, fault.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			members[i].State = e.asOf(d.now()).State
		}
	}
	return members, nil
}
