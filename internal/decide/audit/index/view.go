package index

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// View is the index as of one moment; it is for one goroutine, and ends with the
// function that it was given to. Schema says what can be asked with Query.
type View struct {
	// Next is the number of the first record that the view does not have.
	Next uint64

	tx  *sql.Tx
	log Log
}

// View runs ask over the index once it has every record that the log has now. If
// the index turns out to be damaged it is made anew, and ask is run once more.
func (x *Index) View(ctx context.Context, ask func(*View) error) error {
	for attempt := 0; ; attempt++ {
		if err := x.CatchUp(ctx); err != nil {
			return err
		}
		err := x.viewIndex(ctx, ask)
		if attempt > 0 || !mustBeMadeAnew(err) {
			return err
		}
		if err := x.beginFeed(ctx); err != nil {
			return err
		}
		err = x.discard()
		x.endFeed()
		if err != nil {
			return err
		}
	}
}

func (x *Index) viewIndex(ctx context.Context, ask func(*View) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.files == nil {
		return fault.New(fault.ErrUnavailable, "the index over the audit log is closed")
	}
	tx, err := x.files.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	v := &View{tx: tx, log: x.log}
	var next int64
	if err := tx.QueryRowContext(ctx, "SELECT next FROM state").Scan(&next); err != nil {
		return err
	}
	v.Next = uint64(next)
	return ask(v)
}

// Query reads rows of the tables that Schema tells about.
func (v *View) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return v.tx.QueryContext(ctx, query, args...)
}

// Scan reads the one row of a query; false: there is none.
func (v *View) Scan(ctx context.Context, query string, args []any, to ...any) (bool, error) {
	err := v.tx.QueryRowContext(ctx, query, args...).Scan(to...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// ID returns a text's number; -1, which no text has, if no record has it.
func (v *View) ID(ctx context.Context, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	id := int64(-1)
	_, err := v.Scan(ctx, findText, []any{hashText(text), text}, &id)
	return id, err
}

// Text returns the text that has a number.
func (v *View) Text(ctx context.Context, id int64) (string, error) {
	var text string
	_, err := v.Scan(ctx, "SELECT text FROM texts WHERE id = ?", []any{id}, &text)
	return text, err
}

// TokensIn returns whose the sandboxes and calls of a run are, by their ids: the token's id, "" where it is
// the host's or erased. Those are in it whose records are elsewhere by now, too.
func (v *View) TokensIn(ctx context.Context, run string) (map[string]string, error) {
	id, err := v.ID(ctx, run)
	if err != nil {
		return nil, err
	}
	rows, err := v.Query(ctx, `SELECT box.text, coalesce(token.text, '')
		FROM sandboxes JOIN texts AS box ON box.id = sandbox LEFT JOIN texts AS token ON token.id = sandboxes.token WHERE run = ?`, id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has what was wrong
	tokens := map[string]string{}
	for rows.Next() {
		var sandbox, token string
		if err := rows.Scan(&sandbox, &token); err != nil {
			return nil, err
		}
		tokens[sandbox] = token
	}
	return tokens, rows.Err()
}

// Between returns the first record at or after since and the first one at or
// after until; a zero time does not bound. Times never fall with the numbers, so
// this needs no index.
func (v *View) Between(ctx context.Context, since, until time.Time) (from, to uint64, err error) {
	from, to = 0, v.Next
	if !since.IsZero() {
		if from, err = v.firstAt(ctx, since); err != nil {
			return 0, 0, err
		}
	}
	if !until.IsZero() {
		if to, err = v.firstAt(ctx, until); err != nil {
			return 0, 0, err
		}
	}
	return from, max(from, to), nil
}

func (v *View) firstAt(ctx context.Context, at time.Time) (uint64, error) {
	low, high := uint64(0), v.Next
	for low < high {
		middle := low + (high-low)/2
		var then int64
		there, err := v.Scan(ctx, "SELECT at FROM records WHERE seq >= ? ORDER BY seq LIMIT 1", []any{int64(middle)}, &then)
		if err != nil {
			return 0, err
		}
		if there && time.Unix(0, then).Before(at) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

// Records reads records by their numbers, which ascend, from the log itself.
// Those that were sealed and moved away since are passed over.
func (v *View) Records(ctx context.Context, seqs []uint64) iter.Seq2[audit.Record, error] {
	if seqs == nil {
		seqs = []uint64{} // none, rather than all
	}
	return v.log.Records(ctx, audit.Filter{Seqs: seqs})
}
