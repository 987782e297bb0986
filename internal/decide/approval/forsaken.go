package approval

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// FollowRuns tells the queue how to find out which runs live; before, all do. A
// request whose runs have all ended, and that no person has looked at, ends some time
// after them (Config.AfterRun), and at once where its room is needed.
func (q *Queue) FollowRuns(living func() map[string]bool) {
	q.board.followRuns(living)
	q.lookForExpired()
}

// looks is how many times in the time after a run its end is looked for.
const looks = 24

// forsaken ends the requests that nobody has waited for long enough, and says when to
// look again.
func (q *Queue) forsaken(ctx context.Context) (again time.Duration, err error) {
	again = min(max(q.cfg.AfterRun/looks, time.Second), settleEvery)
	for _, id := range q.board.overdue(time.Now(), q.cfg.AfterRun) { // by the monotonic clock: no jump of the host's ends a request
		if err := q.endForsaken(ctx, id, q.now()); err != nil {
			return again, err
		}
	}
	return again, nil
}

func (q *Queue) endForsaken(ctx context.Context, id string, now time.Time) error {
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return err
	}
	if !q.board.forsaken(id) { // it may have been asked for again meanwhile
		return nil
	}
	changes, err := q.ending(ctx, id, "its run has ended, and nobody had looked at it", now)
	if err != nil || len(changes) == 0 {
		return err
	}
	return q.commit(ctx, changes...)
}

// Look is Get by a person. The first look at a pending request is on record, and from
// then on it does not end with its run; where that can't be recorded it is shown all
// the same.
func (q *Queue) Look(ctx context.Context, who, id string) (Request, error) {
	r, err := q.Get(ctx, id)
	if err != nil || r.State != Pending || r.Seen != nil {
		return r, err
	}
	if err := q.markSeen(ctx, who, r.ID); err != nil {
		q.cfg.Logger.WarnContext(ctx, "that a request was looked at is not on record, so it may end with its run", "request", r.ID, "err", err)
		return r, nil
	}
	return q.Get(ctx, id)
}

func (q *Queue) markSeen(ctx context.Context, who, id string) error {
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return err
	}
	e, err := q.cfg.Store.Get(ctx, id)
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil || e.Seen != nil || e.asOf(q.now()).State != Pending {
		return err
	}
	return q.commit(ctx, change{event: eventSeen, id: e.ID, matter: e.matter(), by: boundText(who, maxShort)})
}
