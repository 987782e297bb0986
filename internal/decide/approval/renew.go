package approval

import "context"

// Renew makes the store anew from the log, so that what was erased there is
// erased here. Answers hold as before; while it reads the log, changes wait and
// questions may find less than there is, which holds what would be let in.
func (q *Queue) Renew(ctx context.Context) error {
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.ready(ctx); err != nil {
		return err
	}
	return renewQueue(ctx, q)
}

// renewQueue does what Queue.Renew does; the caller holds q.write.
func renewQueue(ctx context.Context, q *Queue) error {
	if err := q.cfg.Store.Reset(ctx); err != nil {
		return err
	}
	q.grants.forgetAll()
	return q.reconcile(ctx)
}
