package approval

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Get is one request as it is now; fault.ErrNotFound if there is none. A tree comes with
// the requests of its members.
func (q *Queue) Get(ctx context.Context, id string) (Request, error) {
	if err := q.current(ctx); err != nil {
		return Request{}, err
	}
	return q.read(ctx, valid(id, maxShort))
}

func (q *Queue) read(ctx context.Context, id string) (Request, error) {
	e, err := q.cfg.Store.Get(ctx, id)
	if err != nil {
		return Request{}, err
	}
	near, err := q.nearNames(ctx, []Entry{e})
	if err != nil {
		return Request{}, err
	}
	r := q.placed(e.asOf(q.now()), "")
	r.Near = near[e.ID]
	return q.withMembers(ctx, r, near)
}

// maxTold bounds the members' requests that come with a tree, in bytes of JSON.
const maxTold = 4 << 20

// withMembers tells a tree's members as they are now. It changes nothing that r shares.
func (q *Queue) withMembers(ctx context.Context, r Request, near map[string][]string) (Request, error) {
	r.Members = slices.Clone(r.Members)
	told := 0
	for i, m := range r.Members {
		e, err := q.cfg.Store.Get(ctx, m.ID)
		if errors.Is(err, fault.ErrNotFound) {
			continue // it was erased
		}
		if err != nil {
			return Request{}, err
		}
		own := e.asOf(q.now())
		own.Tree, own.Near = r.ID, near[m.ID]
		r.Members[i].State = own.State
		if told += encodedSize(own); told <= maxTold {
			r.Members[i].Request = &own
		}
	}
	return r, nil
}

// placed says which tree a pending request is in: of a run's own, if it has one.
func (q *Queue) placed(r Request, run string) Request {
	if r.State != Pending || r.IsTree() {
		return r
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if tree := q.treeOf(r.ID, run); tree != "" {
		r.Tree = tree
	}
	return r
}

func (q *Queue) get(ctx context.Context, id string) (Request, error) { return q.getFor(ctx, id, "") }

// getFor is a request as the run sees it that asks.
func (q *Queue) getFor(ctx context.Context, id, run string) (Request, error) {
	e, err := q.cfg.Store.Get(ctx, id)
	if err != nil {
		return Request{}, err
	}
	return q.placed(e.asOf(q.now()), run), nil
}

// MaxPage is how many requests one List returns at most.
const MaxPage = 500

// List is what the filter selects, newest first, at most MaxPage or the
// filter's limit; next is the Filter.Before of the page after it, 0 if there is
// none. Pending requests are told of near names in their group.
func (q *Queue) List(ctx context.Context, f Filter) (page []Request, next uint64, err error) {
	if err := q.current(ctx); err != nil {
		return nil, 0, err
	}
	if f.Limit <= 0 || f.Limit > MaxPage {
		f.Limit = MaxPage
	}
	now := q.now()
	states := f.States
	f.States = reaching(states)
	entries, err := q.cfg.Store.List(ctx, f)
	if err != nil {
		return nil, 0, err
	}
	if len(entries) == f.Limit {
		next = entries[len(entries)-1].Born
	}
	near, err := q.nearNames(ctx, entries)
	if err != nil {
		return nil, 0, err
	}
	page = make([]Request, 0, len(entries))
	for _, e := range entries {
		r := q.placed(e.asOf(now), f.Run)
		if len(states) > 0 && !slices.Contains(states, r.State) {
			continue
		}
		if r.Members, err = q.states(ctx, r.Members); err != nil {
			return nil, 0, err
		}
		if r.State == Pending {
			r.Near = near[r.ID]
		}
		page = append(page, r)
	}
	return page, next, nil
}

// states tells how a tree's members stand.
func (q *Queue) states(ctx context.Context, members []Member) ([]Member, error) {
	if len(members) == 0 {
		return nil, nil
	}
	members = slices.Clone(members)
	for i, m := range members {
		e, err := q.cfg.Store.Get(ctx, m.ID)
		if err != nil && !errors.Is(err, fault.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			members[i].State = e.asOf(q.now()).State
		}
	}
	return members, nil
}

// reaching are the states on record that a wanted state by the clock can have:
// what has run out may not be on record yet.
func reaching(wanted []State) []State {
	if slices.Contains(wanted, Expired) {
		return append(slices.Clone(wanted), Pending, Approved, Denied)
	}
	return wanted
}

// Await returns the request once it is not pending any more.
func (q *Queue) Await(ctx context.Context, id string) (Request, error) {
	for {
		settled := q.settled(id) // before the look, so that no change is missed
		if err := q.current(ctx); err != nil {
			return Request{}, err
		}
		r, err := q.get(ctx, valid(id, maxShort))
		if err != nil {
			return Request{}, err
		}
		if r.State != Pending {
			return r, nil
		}
		timer := time.NewTimer(time.Until(r.Expires))
		select {
		case <-ctx.Done():
			timer.Stop()
			return Request{}, ctx.Err()
		case <-settled:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// settled is closed when the request is not pending any more. Of a request that
// is not pending it may never be.
func (q *Queue) settled(id string) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.pending {
		if w.id != id {
			continue
		}
		if q.waiters[id] == nil {
			q.waiters[id] = make(chan struct{})
		}
		return q.waiters[id]
	}
	return nil
}

// LastEvent is the number of the newest event; 0 if there is none.
func (q *Queue) LastEvent() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

// eventsAtOnce are read from the store in one go.
const eventsAtOnce = 100

// Watch yields the events after a number, then new ones as they happen, until
// ctx ends (which is no error) or one can't be read. A watcher that was away
// goes on where it stood; one that is slow misses nothing.
func (q *Queue) Watch(ctx context.Context, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for ctx.Err() == nil {
			q.mu.Lock()
			changed := q.changed
			q.mu.Unlock()
			events, err := q.events(ctx, after)
			if err != nil {
				if ctx.Err() == nil {
					yield(Event{}, err)
				}
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				after = e.Number
			}
			if len(events) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

func (q *Queue) events(ctx context.Context, after uint64) ([]Event, error) {
	if err := q.current(ctx); err != nil {
		return nil, err
	}
	events, err := q.cfg.Store.Events(ctx, after, eventsAtOnce)
	if err != nil {
		return nil, err
	}
	for i := range events {
		if events[i].Request, err = q.get(ctx, events[i].ID); err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "event %d is about a request that is not there", events[i].Number)
		}
	}
	return events, nil
}
