package approval

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// room is what a new request takes: a tree is one, and its releases are counted
// apart. closing are pending requests that end with it.
type room struct{ requests, releases, closing int }

// admitRequest finds room for a new request, or refuses it past the limits and records that
// once for a run. Where a share or the queue is full, the oldest request that nobody
// waits for any more yields. The caller holds q.write; closing requests make room.
func (q *Queue) admitRequest(ctx context.Context, ask Ask, need room, now time.Time) (yielding []change, err error) {
	n, releases := q.board.countWaiting(ask)
	if need.requests == 0 {
		return nil, nil
	}
	n.all, n.token, n.run = n.all-need.closing, n.token-need.closing, n.run-need.closing
	l := q.cfg.Limits
	if err := q.admitReleases(releases, need, ask); err != nil {
		return nil, q.refuseMore(ctx, ask, err)
	}
	switch {
	case n.run >= l.PerRun:
		return nil, q.refuseMore(ctx, ask, fault.New(fault.ErrForbidden, "the run %s has %d requests that wait for a person, and may have no more; they must be answered first", ask.Run, n.run))
	case n.token >= l.PerToken:
		yielding, err = q.yieldRequest(ctx, func(w waiting) bool { return w.token == ask.Token }, now)
	case n.all >= l.Pending:
		yielding, err = q.yieldRequest(ctx, func(waiting) bool { return true }, now)
	case n.all >= l.Pending-l.Pending/4 && n.token >= l.Sure:
		// The last quarter is for those who have little in the queue.
		yielding, err = q.yieldRequest(ctx, func(w waiting) bool { return w.token == ask.Token }, now)
	default:
		return nil, nil
	}
	if err != nil || len(yielding) > 0 {
		return yielding, err
	}
	if n.all >= l.Pending {
		err = fault.New(fault.ErrForbidden, "as many requests wait for a person as may (%d, of all runs); some must be answered first", l.Pending)
	} else {
		err = fault.New(fault.ErrForbidden, "%s has %d requests that wait for a person, and may have no more; they must be answered first", holderOf(ask.Token), n.token)
	}
	return nil, q.refuseMore(ctx, ask, err)
}

func holderOf(token string) string {
	if token == "" {
		return "this host"
	}
	return "the token " + token
}

// admitReleases bounds the releases that wait, which members of trees are, too.
func (q *Queue) admitReleases(n count, need room, ask Ask) error {
	l := q.cfg.Limits
	more := need.releases - need.closing
	for _, of := range []struct {
		who  string
		have int
		most int
	}{
		{"the run " + ask.Run, n.run, l.PerRun}, {holderOf(ask.Token), n.token, l.PerToken}, {"", n.all, l.Pending},
	} {
		if most := of.most * l.Releases; of.have+more > most {
			if of.who == "" { // a run is not told how many others wait
				return fault.New(fault.ErrForbidden, "the queue has room for %d releases that wait for a person, and not for as many more; some must be answered first", most)
			}
			return fault.New(fault.ErrForbidden, "%s has %d releases that wait for a person, and may have no more than %d; they must be answered first", of.who, of.have, most)
		}
	}
	return nil
}

// yieldRequest ends the oldest forsaken request of those that are meant; nothing if there is none.
func (q *Queue) yieldRequest(ctx context.Context, meant func(waiting) bool, now time.Time) (ends []change, err error) {
	for _, id := range q.board.idlest(meant) {
		more, err := q.ending(ctx, id, "its run has ended, nobody had looked at it, and another request needed the room", now)
		if err != nil {
			return nil, err
		}
		ends = append(ends, more...)
	}
	return ends, nil
}

// ending is the change that ends a pending request early; none if it has ended.
func (q *Queue) ending(ctx context.Context, id, why string, now time.Time) ([]change, error) {
	e, err := q.cfg.Store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	r := e.asOf(now)
	if e.State != Pending {
		return nil, nil
	}
	if r.State == Pending {
		r.Ended = why
	}
	return []change{expired(e, r)}, nil
}

// refuseMore records once for a run that it asked for too much, and returns why.
func (q *Queue) refuseMore(ctx context.Context, ask Ask, reason error) error {
	if q.board.isCapped(ask.askerOf().holder()) {
		return reason
	}
	_, err := q.cfg.Log.Append(ctx, audit.Record{
		Kind: audit.KindApproval, Outcome: audit.Exceeded, Run: ask.Run, Sandbox: ask.Sandbox, Policy: ask.Policy, User: ask.User, Token: ask.Token, Task: ask.Task,
		Ecosystem: string(ask.Package.Ecosystem), Package: ask.Package.Name, InstalledVersion: ask.Package.Version,
		Reason: reason.Error() + ". Nothing that this run asks for beyond that is put before a person.", Detail: ask.matter().putDetails(map[string]string{detailEvent: eventCapped}),
	})
	if err != nil {
		return unrecorded(err)
	}
	q.board.setCapped(ask.askerOf().holder())
	return reason
}
