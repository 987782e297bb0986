package approval

import (
	"context"
	"time"
)

// Of the clock of expiries.
const (
	expireAtOnce = 100              // in one batch of work
	expireRetry  = 10 * time.Second // after the log or the store refused
	settleEvery  = time.Hour        // see settle
	lookEvery    = time.Minute      // at least, since clocks can be set
)

// expired is the change that says so; r is e as the clock has it.
func expired(e Entry, r Request) change {
	tree := ""
	if e.State == Pending {
		tree = e.Tree // which ends as well
	}
	return change{tree: tree, event: EventExpired, id: e.ID, matter: e.matter(), ended: r.Ended}
}

// runClock records what the clock ends, as soon as it does.
func (q *Queue) runClock(ctx context.Context) {
	settle := time.NewTicker(settleEvery)
	defer settle.Stop()
	for {
		next := q.expire(ctx)
		again, err := q.forsaken(ctx)
		if err != nil && ctx.Err() == nil {
			q.cfg.Logger.ErrorContext(ctx, "the end of a request whose run has ended could not be recorded", "err", err)
		}
		timer := time.NewTimer(min(next, again))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-settle.C:
			if err := q.settlePosition(ctx); err != nil && ctx.Err() == nil {
				q.cfg.Logger.WarnContext(ctx, "the approval queue could not follow the log", "err", err)
			}
		case <-q.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// expire ends what is due, and says when to come again.
func (q *Queue) expire(ctx context.Context) time.Duration {
	for {
		more, next, err := q.expireDue(ctx)
		switch {
		case ctx.Err() != nil:
			return settleEvery
		case err != nil:
			q.cfg.Logger.ErrorContext(ctx, "a request's end could not be recorded", "err", err)
			return expireRetry
		case more:
			continue
		case next.IsZero():
			return lookEvery
		}
		return min(max(next.Sub(q.now()), 0), lookEvery)
	}
}

// expireDue ends one batch; more tells that there may be others.
func (q *Queue) expireDue(ctx context.Context) (more bool, next time.Time, err error) {
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return false, time.Time{}, err
	}
	now := q.now()
	due, next, err := q.cfg.Store.Due(ctx, now, expireAtOnce)
	if err != nil {
		return false, time.Time{}, err
	}
	for _, e := range due {
		if err := q.commit(ctx, expired(e, e.asOf(now))); err != nil {
			return false, time.Time{}, err
		}
	}
	return len(due) == expireAtOnce, next, nil
}
