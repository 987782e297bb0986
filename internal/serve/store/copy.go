package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
)

// Copy writes what a file has at one moment to another file, which is not there yet, in a
// directory that is this user's alone. It reads only, and whoever writes the file meanwhile
// does not wait. Rows that were deleted from the file are not in the copy.
func Copy(ctx context.Context, from, to string) (err error) {
	made, err := os.OpenFile(filepath.Clean(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unavailable(err, to)
	}
	if err := made.Close(); err != nil {
		return unavailable(err, to)
	}
	query := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: from, RawQuery: query.Encode()}).String())
	if err != nil {
		return unavailable(err, from)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return unavailable(err, from)
	}
	return nil
}
