package index

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
)

// mostShapes bounds the shapes that are remembered between questions to the table.
const mostShapes = 50_000

// shape is what records of files have in common, as numbers of texts.
type shape struct {
	outcome, ecosystem, project, requested, version, host, sha256, resolvedBy, approval, locks int64

	flags int
}

// shapes gives shapes their numbers. It is used by who feeds.
type shapes struct {
	known map[shape]int64
	last  int64         // the highest number; -1: not asked for yet
	more  map[int64]int // records of this batch
}

func newShapes() *shapes { return &shapes{known: map[shape]int64{}, last: -1, more: map[int64]int{}} }

// shapeOf returns the shape of one more record; it begins with it if it is the first.
func (d *shapes) shapeOf(ctx context.Context, tx *statements, s shape, seq uint64) (int64, error) {
	id, err := d.shapeID(ctx, tx, s, seq)
	d.more[id]++
	return id, err
}

// flushCounts adds the batch's records to the shapes' counts.
func (d *shapes) flushCounts(ctx context.Context, tx *statements) error {
	for _, id := range slices.Sorted(maps.Keys(d.more)) {
		if _, err := tx.count.ExecContext(ctx, d.more[id], id); err != nil {
			return err
		}
	}
	clear(d.more)
	return nil
}

const findShape = `SELECT shape FROM shapes WHERE package = ? AND version = ? AND sha256 = ? AND outcome = ? AND ecosystem = ? AND
	requested = ? AND host = ? AND resolved_by = ? AND approval = ? AND locks = ? AND flags = ?`

// shapeID returns a shape's number, and gives it one, with its first record, if it
// has none.
func (d *shapes) shapeID(ctx context.Context, tx *statements, s shape, first uint64) (int64, error) {
	if id, ok := d.known[s]; ok {
		return id, nil
	}
	if d.last < 0 {
		if err := tx.tx.QueryRowContext(ctx, "SELECT coalesce(max(shape), 0) FROM shapes").Scan(&d.last); err != nil {
			return 0, err
		}
	}
	var id int64
	err := sql.ErrNoRows
	if d.last > int64(len(d.known)) { // else all that there are, are known
		err = tx.findShape.QueryRowContext(ctx, s.project, s.version, s.sha256, s.outcome, s.ecosystem,
			s.requested, s.host, s.resolvedBy, s.approval, s.locks, s.flags).Scan(&id)
	}
	if errors.Is(err, sql.ErrNoRows) {
		id = d.last + 1
		if _, err = tx.shape.ExecContext(ctx, id, int64(first), s.outcome, s.ecosystem, s.project, s.requested, s.version, s.host, s.sha256,
			s.resolvedBy, s.approval, s.locks, s.flags); err == nil {
			d.last = id
		}
	}
	if err != nil {
		return 0, err
	}
	if len(d.known) >= mostShapes {
		d.known = map[shape]int64{}
	}
	d.known[s] = id
	return id, nil
}
