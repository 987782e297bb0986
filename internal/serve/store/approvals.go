package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// approvalSchema are the migrations of the approval queue's file. Never change
// one that was released; add one.
func approvalSchema() []string {
	return []string{`
CREATE TABLE position (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, at TEXT NOT NULL);
CREATE TABLE requests (
	id TEXT PRIMARY KEY,
	born INTEGER NOT NULL UNIQUE, -- number of the record that it began with
	state TEXT NOT NULL,
	ecosystem TEXT NOT NULL,
	name TEXT NOT NULL,
	grp TEXT NOT NULL,
	ends INTEGER,                 -- unix nanoseconds; when the clock alone ends it
	body TEXT NOT NULL            -- approval.Request as JSON
) STRICT;
CREATE INDEX requests_state ON requests (state, born);
CREATE INDEX requests_package ON requests (ecosystem, name, born);
CREATE INDEX requests_group ON requests (grp, born);
CREATE INDEX requests_ends ON requests (ends) WHERE ends IS NOT NULL;
CREATE TABLE wishes (
	request TEXT NOT NULL REFERENCES requests (id) ON DELETE CASCADE,
	n INTEGER NOT NULL,
	run TEXT NOT NULL,
	policy TEXT NOT NULL,
	PRIMARY KEY (request, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX wishes_run ON wishes (run);
CREATE TABLE subjects (          -- whom answers hold for that have not ended
	request TEXT NOT NULL REFERENCES requests (id) ON DELETE CASCADE,
	ecosystem TEXT NOT NULL,
	name TEXT NOT NULL,
	scope TEXT NOT NULL,
	subject TEXT NOT NULL,
	PRIMARY KEY (ecosystem, name, scope, subject, request)
) STRICT, WITHOUT ROWID;
CREATE INDEX subjects_request ON subjects (request);
CREATE TABLE events (
	number INTEGER PRIMARY KEY,
	at TEXT NOT NULL,
	event TEXT NOT NULL,
	request TEXT NOT NULL
) STRICT;
CREATE TABLE cursors (hook TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;
`}
}

// Approvals keeps the approval queue.
type Approvals struct {
	db   *sql.DB
	path string
}

var _ approval.Store = (*Approvals)(nil)

// OpenApprovals opens the file at path, making it if there is none. A file of a
// newer version is fault.ErrConflict.
func OpenApprovals(ctx context.Context, path string) (*Approvals, error) {
	db, err := openDatabase(ctx, path, approvalSchema())
	if err != nil {
		return nil, err
	}
	return &Approvals{db: db, path: path}, nil
}

// Close closes the file.
func (s *Approvals) Close() error { return s.db.Close() }

func (s *Approvals) wrapError(err error) error {
	if err == nil || errors.Is(err, fault.ErrNotFound) {
		return err
	}
	return unavailable(err, s.path)
}

// Position implements approval.Store.
func (s *Approvals) Position(ctx context.Context) (approval.Position, error) {
	var p approval.Position
	var at string
	err := s.db.QueryRowContext(ctx, "SELECT seq, at FROM position").Scan(&p.Seq, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return approval.Position{}, nil
	}
	if err == nil {
		p.At, err = readTime(at)
	}
	return p, s.wrapError(err)
}

// Apply implements approval.Store.
func (s *Approvals) Apply(ctx context.Context, b approval.Batch) error {
	return s.wrapError(inTransaction(ctx, s.db, func(tx *sql.Tx) error {
		for _, e := range b.Entries {
			if err := putEntry(ctx, tx, e); err != nil {
				return err
			}
		}
		for _, e := range b.Events {
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO events (number, at, event, request) VALUES (?, ?, ?, ?)",
				e.Number, timeText(e.At), string(e.Name), e.ID)
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO position (one, seq, at) VALUES (1, ?, ?)", b.Position.Seq, timeText(b.Position.At))
		return err
	}))
}

// putEntry writes one entry. Its runs are only ever added to, so those that are there
// stay.
func putEntry(ctx context.Context, tx *sql.Tx, e approval.Entry) error {
	body, err := json.Marshal(e.Request)
	if err != nil {
		return err
	}
	project := e.Project()
	var ends any
	if at := e.Ends(); !at.IsZero() {
		ends = at.UnixNano()
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO requests (id, born, state, ecosystem, name, grp, ends, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, ends = excluded.ends, body = excluded.body`,
		e.ID, e.Born, string(e.State), string(project.Ecosystem), project.Name, e.Group, ends, string(body))
	if err != nil {
		return err
	}
	var known int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM wishes WHERE request = ?", e.ID).Scan(&known); err != nil {
		return err
	}
	for n := known; n < len(e.Runs); n++ {
		if _, err := tx.ExecContext(ctx, "INSERT INTO wishes (request, n, run, policy) VALUES (?, ?, ?, ?)", e.ID, n, e.Runs[n].Run, e.Runs[n].Policy); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM subjects WHERE request = ?", e.ID); err != nil {
		return err
	}
	for _, subject := range e.Subjects() {
		_, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO subjects (request, ecosystem, name, scope, subject) VALUES (?, ?, ?, ?, ?)",
			e.ID, string(project.Ecosystem), project.Name, string(e.Answer.Scope), subject)
		if err != nil {
			return err
		}
	}
	return nil
}

// Reset implements approval.Store. Where webhooks stand is kept: events have the
// same numbers when the log tells them again.
func (s *Approvals) Reset(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "DELETE FROM events; DELETE FROM subjects; DELETE FROM wishes; DELETE FROM requests; DELETE FROM position")
	if err != nil {
		return s.wrapError(err)
	}
	// The file beside it still has what was there.
	_, err = s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return s.wrapError(err)
}

// Get implements approval.Store.
func (s *Approvals) Get(ctx context.Context, id string) (approval.Entry, error) {
	found, err := s.entries(ctx, "id = ?", "", id)
	if err != nil {
		return approval.Entry{}, err
	}
	if len(found) == 0 {
		return approval.Entry{}, fault.New(fault.ErrNotFound, "there is no request %q", id)
	}
	return found[0], nil
}

// List implements approval.Store.
func (s *Approvals) List(ctx context.Context, f approval.Filter) ([]approval.Entry, error) {
	var where []string
	var args []any
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}
	if len(f.States) > 0 {
		states := make([]any, 0, len(f.States))
		for _, state := range f.States {
			states = append(states, string(state))
		}
		and("state IN (?"+strings.Repeat(", ?", len(f.States)-1)+")", states...)
	}
	if f.Run != "" {
		and("id IN (SELECT request FROM wishes WHERE run = ?)", f.Run)
	}
	if f.Group != "" {
		and("grp = ?", f.Group)
	}
	if f.Ecosystem != "" {
		and("ecosystem = ?", string(f.Ecosystem))
	}
	if f.Package != "" {
		and("name = ?", f.Package)
	}
	if f.Before > 0 {
		and("born < ?", f.Before)
	}
	if len(where) == 0 {
		and("1")
	}
	limit := f.Limit
	if limit <= 0 {
		limit = math.MaxInt32
	}
	return s.entries(ctx, strings.Join(where, " AND "), "ORDER BY born DESC LIMIT ?", append(args, limit)...)
}

// Answers implements approval.Store.
func (s *Approvals) Answers(ctx context.Context, project pkgref.Ref, run, policy string) ([]approval.Entry, error) {
	const holding = `id IN (SELECT request FROM subjects WHERE ecosystem = ? AND name = ? AND
		((scope IN (?, ?) AND subject = ?) OR (scope = ? AND subject = ?) OR (scope = ? AND subject = '')))`
	return s.entries(ctx, holding, "ORDER BY born", string(project.Ecosystem), project.Name,
		string(approval.ScopeRun), string(approval.ScopeOnce), run, string(approval.ScopePolicy), policy, string(approval.ScopeEverywhere))
}

// Due implements approval.Store.
func (s *Approvals) Due(ctx context.Context, now time.Time, limit int) (due []approval.Entry, next time.Time, err error) {
	due, err = s.entries(ctx, "ends <= ?", "ORDER BY ends LIMIT ?", now.UnixNano(), limit)
	if err != nil {
		return nil, time.Time{}, err
	}
	condition, args := "ends > ?", []any{now.UnixNano()}
	if len(due) == limit {
		condition, args = "ends IS NOT NULL ORDER BY ends LIMIT 1 OFFSET ?", []any{limit}
	}
	var ends sql.NullInt64
	err = s.db.QueryRowContext(ctx, "SELECT min(ends) FROM (SELECT ends FROM requests WHERE "+condition+")", args...).Scan(&ends)
	if err == nil && ends.Valid {
		next = time.Unix(0, ends.Int64).UTC()
	}
	return due, next, s.wrapError(err)
}

// entries reads the requests for which a condition holds, and who asked for
// them. The condition is this package's own text; values go in as arguments.
func (s *Approvals) entries(ctx context.Context, condition, order string, args ...any) ([]approval.Entry, error) {
	found, err := s.bodies(ctx, condition, order, args...)
	if err != nil {
		return nil, s.wrapError(err)
	}
	for i := range found {
		if found[i].Runs, err = s.askingRuns(ctx, found[i].ID); err != nil {
			return nil, s.wrapError(err)
		}
	}
	return found, nil
}

func (s *Approvals) bodies(ctx context.Context, condition, order string, args ...any) (found []approval.Entry, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT born, body FROM requests WHERE "+condition+" "+order, args...) // #nosec G202 -- see entries
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e approval.Entry
		var body []byte
		if err := rows.Scan(&e.Born, &body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &e.Request); err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, rows.Err()
}

func (s *Approvals) askingRuns(ctx context.Context, id string) (runs []approval.AskingRun, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT run, policy FROM wishes WHERE request = ? ORDER BY n", id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var w approval.AskingRun
		if err := rows.Scan(&w.Run, &w.Policy); err != nil {
			return nil, err
		}
		runs = append(runs, w)
	}
	return runs, rows.Err()
}

// Events implements approval.Store.
func (s *Approvals) Events(ctx context.Context, after uint64, limit int) (events []approval.Event, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT number, at, event, request FROM events WHERE number > ? ORDER BY number LIMIT ?", after, limit)
	if err != nil {
		return nil, s.wrapError(err)
	}
	defer func() { err = s.wrapError(errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var e approval.Event
		var at, name string
		if err := rows.Scan(&e.Number, &at, &name, &e.ID); err != nil {
			return nil, err
		}
		if e.At, err = readTime(at); err != nil {
			return nil, err
		}
		e.Name = approval.EventName(name)
		events = append(events, e)
	}
	return events, rows.Err()
}

// Cursor is the number of the last event that a webhook is done with; ok is
// false if it never was done with any.
func (s *Approvals) Cursor(ctx context.Context, hook string) (number uint64, ok bool, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT number FROM cursors WHERE hook = ?", hook).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return number, err == nil, s.wrapError(err)
}

// SetCursor remembers it.
func (s *Approvals) SetCursor(ctx context.Context, hook string, number uint64) error {
	_, err := s.db.ExecContext(ctx, "INSERT OR REPLACE INTO cursors (hook, number) VALUES (?, ?)", hook, number)
	return s.wrapError(err)
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func readTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UTC(), err
}
