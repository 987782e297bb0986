package approval

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// reconcile applies what the log has and the store lacks: after a crash the last
// change, after a loss of the store everything. A store that is not of this log
// is made anew from it. The caller holds q.write.
func (q *Queue) reconcile(ctx context.Context) error {
	from, err := q.resume(ctx)
	if err != nil {
		return err
	}
	var position Position
	r := replay{}
	for rec, err := range q.cfg.Log.Records(ctx, audit.Filter{FromSeq: from}) {
		if err != nil {
			return err
		}
		if from > 0 && erases(rec) {
			return renewQueue(ctx, q)
		}
		changes, err := r.nextChanges(rec)
		if err != nil {
			return err
		}
		if len(changes) > 0 {
			if err := q.takeChanges(ctx, changes); err != nil {
				return err
			}
		}
		position = Position{Seq: rec.Seq, At: plainTime(rec.Time)}
	}
	r.abandon()
	q.orphans = append(q.orphans, r.orphans...)
	if position.At.IsZero() || len(q.orphans) > 0 {
		return nil // orphans are looked for again until the log tells of them
	}
	return q.cfg.Store.Apply(ctx, Batch{Position: position})
}

// erases reports whether a record says that personal data was erased: what the store took before
// may have it, if a crash, or the store, kept it from being made anew.
func erases(rec audit.Record) bool { return rec.Kind == audit.KindLog && rec.Outcome == audit.Erased }

// resume is the first record to look at. The store's last record must be in the log, or the store is of another log.
func (q *Queue) resume(ctx context.Context) (from uint64, err error) {
	pos, err := q.cfg.Store.Position(ctx)
	if err != nil || pos.At.IsZero() {
		return 0, err
	}
	q.last = pos.Seq + 1
	for rec, err := range q.cfg.Log.Records(ctx, audit.Filter{FromSeq: pos.Seq}) {
		if err != nil {
			return 0, err
		}
		if rec.Seq == pos.Seq && rec.Time.Equal(pos.At) {
			return pos.Seq + 1, nil
		}
		break
	}
	q.cfg.Logger.WarnContext(ctx, "the approval queue's store is not of this log; it is made anew from the log")
	q.last = 0
	return 0, q.cfg.Store.Reset(ctx)
}

// replay reads changes from records, and holds those of a batch back until it is
// whole.
type replay struct {
	open    []change
	orphans []change // of batches that were cut short, and nothing says so yet
}

// nextChanges gives what takes effect with a record.
func (r *replay) nextChanges(rec audit.Record) ([]change, error) {
	if rec.Kind == audit.KindApproval && rec.Detail[detailEvent] == eventUndone {
		r.abandon()
		r.forgetOrphan(rec)
		return nil, nil
	}
	c, ok, err := fromRecord(rec)
	if err != nil || !ok {
		return nil, err
	}
	if len(r.open) > 0 && (c.batch.id != r.open[0].batch.id || c.batch.n != len(r.open)+1) {
		r.abandon()
	}
	if c.batch.of <= 1 {
		return []change{c}, nil
	}
	r.open = append(r.open, c)
	if c.batch.n < c.batch.of {
		return nil, nil
	}
	whole := r.open
	r.open = nil
	if len(whole) != c.batch.of {
		r.orphans = append(r.orphans, whole...) // its beginning is not there
		return nil, nil
	}
	return whole, nil
}

// abandon gives an incomplete batch up.
func (r *replay) abandon() {
	r.orphans = append(r.orphans, r.open...)
	r.open = nil
}

// forgetOrphan takes an orphan off the list that the log tells of already.
func (r *replay) forgetOrphan(rec audit.Record) {
	i := slices.IndexFunc(r.orphans, func(c change) bool { return c.batch.id == rec.Detail[detailBatch] && c.id == rec.Approval })
	if i >= 0 {
		r.orphans = slices.Delete(r.orphans, i, i+1)
	}
}

// settlePosition moves the store's position past records that do not concern it, so that
// the next Open has little to read. It holds nothing up while it reads.
func (q *Queue) settlePosition(ctx context.Context) error {
	pos, err := q.cfg.Store.Position(ctx)
	if err != nil || pos.At.IsZero() {
		return err
	}
	end := pos
	for rec, err := range q.cfg.Log.Records(ctx, audit.Filter{FromSeq: pos.Seq + 1}) {
		if err != nil {
			return err
		}
		if erases(rec) {
			break // past it is the store only once it is made anew
		}
		end = Position{Seq: rec.Seq, At: plainTime(rec.Time)}
	}
	q.write.Lock()
	defer q.write.Unlock()
	// The writer of a record up to end has given q.write back, and with that the
	// store has it, or it is owed.
	if err := q.ready(ctx); err != nil {
		return err
	}
	if pos, err = q.cfg.Store.Position(ctx); err != nil || pos.Seq >= end.Seq {
		return err
	}
	return q.cfg.Store.Apply(ctx, Batch{Position: end})
}
