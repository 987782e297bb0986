// Package store keeps what the domain packages want kept in SQLite files, one
// for each: it implements their Store interfaces and knows nothing of why.
//
// Migrations of a schema are numbered from 1; a file says by PRAGMA user_version which were done. A
// file of a newer version is refused.
//
// Every file is in WAL mode with synchronous=FULL, unless its type says another:
// what a call wrote has survived a loss of power when it returns. One connection
// writes at a time; readers do not wait for it.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite" // also registers the driver
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// readers bounds the connections to one file, and cacheKiB what each remembers of it:
// little is read again, and a daemon has several files.
const (
	readers  = 8
	cacheKiB = 512
)

// openDatabase opens a file, making it if need be, and migrates it. A deleted row is overwritten:
// it may be somebody's data that were to go.
func openDatabase(ctx context.Context, path string, migrations []string) (*sql.DB, error) {
	return openWith(ctx, path, migrations, "synchronous(FULL)")
}

// openWith opens a file that is synced in its own way, a pragma.
func openWith(ctx context.Context, path string, migrations []string, synchronous string) (*sql.DB, error) {
	if err := private(path); err != nil {
		return nil, err
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", synchronous, "foreign_keys(ON)", "secure_delete(ON)", fmt.Sprintf("cache_size(-%d)", cacheKiB)}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, unavailable(err, path)
	}
	db.SetMaxOpenConns(readers)
	if err := migrate(ctx, db, path, migrations); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// private makes the file so that only its owner reads it, and takes no link for one; SQLite
// gives the files beside it the same mode.
func private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unavailable(err, path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return unavailable(err, path)
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// migrate does the steps that the file lacks, each in a transaction with its
// number.
func migrate(ctx context.Context, db *sql.DB, path string, migrations []string) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return unavailable(err, path)
	}
	if version > len(migrations) {
		return fault.New(fault.ErrConflict, "the file %s was written by a newer Cofferdam (its schema is %d, this one knows up to %d); use that version, or move the file away", path, version, len(migrations))
	}
	for n := version; n < len(migrations); n++ {
		err := inTransaction(ctx, db, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, migrations[n]); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", n+1))
			return err
		})
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the schema of %s can't be brought to version %d", path, n+1)
		}
	}
	return nil
}

func inTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func unavailable(err error, path string) error {
	return fault.Wrap(fault.ErrUnavailable, err, "the file %s can't be used", path)
}

// IsDamage tells whether an error says that a file is damaged, or no database at
// all: opening it again will not help.
func IsDamage(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	const primary = 0xff // the code without its detail
	return ok && (e.Code()&primary == sqlite3.SQLITE_NOTADB || e.Code()&primary == sqlite3.SQLITE_CORRUPT)
}
