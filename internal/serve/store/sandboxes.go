package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// sandboxSchema are the migrations of the sandboxes' file. Never change one that
// was released; add one.
func sandboxSchema() []string {
	return []string{`
CREATE TABLE sandboxes (
	id TEXT PRIMARY KEY,
	body TEXT NOT NULL            -- sandbox.Entry as JSON
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
	seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, though the oldest go
	at INTEGER NOT NULL,          -- unix nanoseconds
	sandbox TEXT NOT NULL,
	run TEXT NOT NULL,
	token TEXT NOT NULL,
	was TEXT NOT NULL,
	state TEXT NOT NULL,
	reason TEXT NOT NULL
) STRICT;
`}
}

// pruneEvery is after how many events the oldest are thrown away.
const pruneEvery = sandbox.KeptEvents / 100

// Sandboxes is the journal of sandboxes.
//
// Its file is written without a sync for each transaction (synchronous=NORMAL;
// with the WAL that can lose the last ones with the power, but never tears): it
// has to outlive the daemon, and what a dead process wrote is the kernel's and
// safe. After a loss of power no sandbox lives, and what their ends leave is found
// by the engines. So a create costs no sync here; the audit log has its own.
type Sandboxes struct {
	db   *sql.DB
	path string
}

var _ sandbox.Journal = (*Sandboxes)(nil)

// OpenSandboxes opens the file at path, making it if there is none. A file of a
// newer version is fault.ErrConflict.
func OpenSandboxes(ctx context.Context, path string) (*Sandboxes, error) {
	db, err := openWith(ctx, path, sandboxSchema(), "synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	return &Sandboxes{db: db, path: path}, nil
}

// Close closes the file.
func (s *Sandboxes) Close() error { return s.db.Close() }

func (s *Sandboxes) wrapError(err error) error {
	if err == nil {
		return nil
	}
	return unavailable(err, s.path)
}

// Move implements sandbox.Journal.
func (s *Sandboxes) Move(ctx context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return ev, err
	}
	err = inTransaction(ctx, s.db, func(tx *sql.Tx) error {
		if err := putSandbox(ctx, tx, e.Info.ID, body, ev.To == sandbox.Destroyed); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, "INSERT INTO events (at, sandbox, run, token, was, state, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
			ev.Time.UnixNano(), ev.Sandbox, ev.Run, ev.Token, string(ev.From), string(ev.To), ev.Reason)
		if err != nil {
			return err
		}
		if ev.Seq, err = done.LastInsertId(); err != nil || ev.Seq%pruneEvery != 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM events WHERE seq <= ?", ev.Seq-sandbox.KeptEvents)
		return err
	})
	return ev, s.wrapError(err)
}

func putSandbox(ctx context.Context, tx *sql.Tx, id string, body []byte, gone bool) error {
	if gone {
		_, err := tx.ExecContext(ctx, "DELETE FROM sandboxes WHERE id = ?", id)
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO sandboxes (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body", id, string(body))
	return err
}

// Put implements sandbox.Journal.
func (s *Sandboxes) Put(ctx context.Context, e sandbox.Entry) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, "UPDATE sandboxes SET body = ? WHERE id = ?", string(body), e.Info.ID)
	return s.wrapError(err)
}

// Entries implements sandbox.Journal. One that can't be read is no reason to lose
// the others: it is left out, and what is left of its sandbox is nobody's.
func (s *Sandboxes) Entries(ctx context.Context) (found []sandbox.Entry, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT body FROM sandboxes ORDER BY id")
	if err != nil {
		return nil, s.wrapError(err)
	}
	defer func() { err = s.wrapError(errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		var e sandbox.Entry
		if json.Unmarshal(body, &e) == nil {
			found = append(found, e)
		}
	}
	return found, rows.Err()
}

// Events implements sandbox.Journal.
func (s *Sandboxes) Events(ctx context.Context, after int64, limit int) (events []sandbox.Event, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT seq, at, sandbox, run, token, was, state, reason FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, max(limit, 0))
	if err != nil {
		return nil, s.wrapError(err)
	}
	defer func() { err = s.wrapError(errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var e sandbox.Event
		var at int64
		if err := rows.Scan(&e.Seq, &at, &e.Sandbox, &e.Run, &e.Token, &e.From, &e.To, &e.Reason); err != nil {
			return nil, err
		}
		e.Time = time.Unix(0, at).UTC()
		events = append(events, e)
	}
	return events, rows.Err()
}

// Last implements sandbox.Journal.
func (s *Sandboxes) Last(ctx context.Context) (int64, error) {
	var last int64
	err := s.db.QueryRowContext(ctx, "SELECT seq FROM sqlite_sequence WHERE name = 'events'").Scan(&last)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return last, s.wrapError(err)
}
