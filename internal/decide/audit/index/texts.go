package index

import (
	"context"
	"database/sql"
	"errors"
)

// How many texts are remembered at most, so that the table need not be asked: while
// records come one by one, and while an index is made of a whole log. Twice as many
// are in memory.
const (
	mostTexts = 8_192
	bulkTexts = 65_536
)

// dictionary gives texts their numbers. It is used by who feeds.
type dictionary struct {
	recent, old map[string]int64 // no text is in both
	last        int64            // the highest number; -1: not asked for yet
}

func newDictionary() *dictionary {
	return &dictionary{recent: map[string]int64{}, old: map[string]int64{}, last: -1}
}

// knownID is the number of a text that is remembered. Texts that are asked for stay.
func (d *dictionary) knownID(text string) (int64, bool) {
	if id, ok := d.recent[text]; ok {
		return id, true
	}
	id, ok := d.old[text]
	if ok {
		delete(d.old, text)
		d.recent[text] = id
	}
	return id, ok
}

func (d *dictionary) sizeInMemory() int { return len(d.recent) + len(d.old) }

// shedUnused lets go what was not asked for since the last time, once there is much.
func (d *dictionary) shedUnused(most int) {
	if len(d.recent) >= most {
		d.recent, d.old = map[string]int64{}, d.recent
	}
}

// hashText hashes by FNV-1a, to a number that SQLite can hold: a short key for long texts.
func hashText(text string) int64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return int64(h)
}

// findText finds a text's number.
const findText = "SELECT id FROM texts WHERE hash = ? AND text = ?"

// textID returns a text's number, and gives it one if it has none.
func (d *dictionary) textID(ctx context.Context, tx *statements, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if id, ok := d.knownID(text); ok {
		return id, nil
	}
	if d.last < 0 {
		if err := tx.tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM texts").Scan(&d.last); err != nil {
			return 0, err
		}
	}
	h := hashText(text)
	var id int64
	err := sql.ErrNoRows
	if d.last > int64(d.sizeInMemory()) { // else all that there are, are known
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
	d.recent[text] = id
	return id, nil
}
