package approval

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Get is one request as it is now, by its id or by ID@REVISION, whatever the revision;
// fault.ErrNotFound if there is none. A tree comes with
// the requests of its members.
func (q *Queue) Get(ctx context.Context, id string) (Request, error) {
	if err := q.checkCurrent(ctx); err != nil {
		return Request{}, err
	}
	return q.reader.wholeRequest(ctx, bareID(id))
}

// MaxPage is how many requests one List returns at most.
const MaxPage = 500

// List is what the filter selects, newest first, at most MaxPage or the
// filter's limit; next is the Filter.Before of the page after it, 0 if there is
// none. Pending requests are told of near names in their group.
func (q *Queue) List(ctx context.Context, f Filter) (page []Request, next uint64, err error) {
	if err := q.checkCurrent(ctx); err != nil {
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
	near, err := q.reader.nearNames(ctx, entries)
	if err != nil {
		return nil, 0, err
	}
	page = make([]Request, 0, len(entries))
	lives := q.board.living()
	for _, e := range entries {
		r := q.reader.placed(e.asOf(now), f.Run)
		if len(states) > 0 && !slices.Contains(states, r.State) {
			continue
		}
		if r, _, err = q.reader.revised(ctx, r); err != nil {
			return nil, 0, err
		}
		if r.State == Pending {
			r.Near, r.RunsEnded = near[r.ID], r.runsEnded(lives)
		}
		page = append(page, r)
	}
	return page, next, nil
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
		settled := q.board.settled(bareID(id)) // before the look, so that no change is missed
		if err := q.checkCurrent(ctx); err != nil {
			return Request{}, err
		}
		r, err := q.reader.getRequest(ctx, bareID(id))
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
	if err := q.checkCurrent(ctx); err != nil {
		return nil, err
	}
	events, err := q.cfg.Store.Events(ctx, after, eventsAtOnce)
	if err != nil {
		return nil, err
	}
	for i := range events {
		if events[i].Request, err = q.reader.getRequest(ctx, events[i].ID); err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "event %d is about a request that is not there", events[i].Number)
		}
	}
	return events, nil
}

// Waiting is how many requests nobody has answered, a tree with all of its releases being
// one. It asks nothing of the store, so one whose time has just run out may still be counted.
func (q *Queue) Waiting() int {
	requests, _ := q.board.countWaiting(Ask{})
	return requests.all
}
