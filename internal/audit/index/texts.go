package index

import (
	"context"
	"database/sql"
	"errors"
)

// mostTexts bounds the texts that are remembered between questions to the table.
const mostTexts = 100_000

// dictionary gives texts their numbers. It is used by who feeds.
type dictionary struct {
	known map[string]int64
	last  int64 // the highest number; -1: not asked for yet
}

func newDictionary() *dictionary { return &dictionary{known: map[string]int64{}, last: -1} }

// hash is FNV-1a, as a number that SQLite can hold: a short key for long texts.
func hash(text string) int64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return int64(h)
}

// findText finds a text's number.
const findText = "SELECT id FROM texts WHERE hash = ? AND text = ?"

// id returns a text's number, and gives it one if it has none.
func (d *dictionary) id(ctx context.Context, tx *statements, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if id, ok := d.known[text]; ok {
		return id, nil
	}
	if d.last < 0 {
		if err := tx.tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM texts").Scan(&d.last); err != nil {
			return 0, err
		}
	}
	h := hash(text)
	var id int64
	err := sql.ErrNoRows
	if d.last > int64(len(d.known)) { // else all that there are, are known
		err = tx.find.QueryRowContext(ctx, h, text).Scan(&id)
	}
	if errors.Is(err, sql.ErrNoRows) {
		id = d.last + 1
		if _, err = tx.text.ExecContext(ctx, id, h, text); err == nil {
			d.last = id
		}
	}
	if err != nil {
		return 0, err
	}
	if len(d.known) >= mostTexts {
		d.known = map[string]int64{}
	}
	d.known[text] = id
	return id, nil
}
