package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// tokenSchema are the migrations of the tokens' file. Never change one that was
// released; add one.
func tokenSchema() []string {
	return []string{`
CREATE TABLE tokens (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	created INTEGER NOT NULL,     -- unix nanoseconds
	revoked INTEGER NOT NULL,     -- 1: it is
	secret_sha256 TEXT NOT NULL,
	body TEXT NOT NULL            -- token.Token as JSON, which lacks the digest
) STRICT;
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked = 0;
CREATE INDEX tokens_created ON tokens (created);
`}
}

// Tokens keeps tokens.
type Tokens struct {
	db   *sql.DB
	path string
}

var _ token.Store = (*Tokens)(nil)

// OpenTokens opens the file at path, making it if there is none. A file of a
// newer version is fault.ErrConflict.
func OpenTokens(ctx context.Context, path string) (*Tokens, error) {
	db, err := openDatabase(ctx, path, tokenSchema())
	if err != nil {
		return nil, err
	}
	return &Tokens{db: db, path: path}, nil
}

// Close closes the file.
func (s *Tokens) Close() error { return s.db.Close() }

// Put implements token.Store.
func (s *Tokens) Put(ctx context.Context, t token.Token) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO tokens (id, name, created, revoked, secret_sha256, body) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, created = excluded.created, revoked = excluded.revoked,
			secret_sha256 = excluded.secret_sha256, body = excluded.body`,
		t.ID, t.Name, t.Created.UnixNano(), !t.Revoked.IsZero(), t.SecretSHA256, string(body))
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
		return fault.New(fault.ErrConflict, "there is a token with the name %q; revoke it first, or take another name", t.Name)
	}
	if err != nil {
		return unavailable(err, s.path)
	}
	return nil
}

// List implements token.Store.
func (s *Tokens) List(ctx context.Context) (all []token.Token, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT body, secret_sha256 FROM tokens ORDER BY created, id")
	if err != nil {
		return nil, unavailable(err, s.path)
	}
	defer func() {
		if cerr := rows.Close(); err == nil && cerr != nil {
			err = unavailable(cerr, s.path)
		}
	}()
	for rows.Next() {
		var body []byte
		var t token.Token
		if err := rows.Scan(&body, &t.SecretSHA256); err != nil {
			return nil, unavailable(err, s.path)
		}
		if err := json.Unmarshal(body, &t); err != nil {
			return nil, unavailable(err, s.path)
		}
		all = append(all, t)
	}
	if err := rows.Err(); err != nil {
		return nil, unavailable(err, s.path)
	}
	return all, nil
}
