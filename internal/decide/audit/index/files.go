package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite" // also registers the driver
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// files are the open database: a connection that feeds and some that read.
type files struct {
	path   string
	writer *sql.DB
	reader *sql.DB
	texts  *dictionary
	shapes *shapes
	next   uint64 // number of the first record that was not taken
	ready  bool   // the secondary indexes are there
}

// errAnew: the index is of no use; the log has all that it had.
var errAnew = errors.New("the index has to be made anew")

// mustBeMadeAnew reports whether an error means that the files are damaged.
func mustBeMadeAnew(err error) bool {
	if errors.Is(err, errAnew) {
		return true
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR:
			// ERROR is "no such table" and the like: our statements are constant.
			return true
		}
	}
	return false
}

// openFiles opens the index, or makes an empty one where there is none. errAnew:
// what is there is damaged, of another version, or of another log.
func openFiles(ctx context.Context, path string, log Log) (*files, error) {
	path, err := filepath.Abs(path) // an URL is made of it
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the directory of the audit log's index can't be made")
	}
	fresh, closed, err := inspect(path)
	if err != nil {
		return nil, err
	}
	f := &files{path: path, texts: newDictionary(), shapes: newShapes()}
	if f.writer, err = sql.Open("sqlite", sourceURL(path, writing)); err != nil {
		return nil, err
	}
	f.writer.SetMaxOpenConns(1)
	if f.reader, err = sql.Open("sqlite", sourceURL(path, reading)); err == nil {
		f.reader.SetMaxOpenConns(4)
		err = f.checkTables(ctx, log, fresh, closed)
	}
	if err != nil {
		f.abandon()
		return nil, err
	}
	return f, nil
}

// inspect makes the file if it is not there, closed to others, and tells whether
// it was closed in order; a file that changed since is refused.
func inspect(path string) (fresh, closed bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return true, false, file.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return false, false, fault.Wrap(fault.ErrUnavailable, err, "the audit log's index can't be made")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return false, false, err
	}
	want, err := os.ReadFile(path + sumSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	got, err := sumFile(path)
	if err != nil {
		return false, false, err
	}
	if _, err := os.Stat(path + walSuffix); err == nil || string(want) != got {
		return false, false, errAnew
	}
	return false, true, os.Remove(path + sumSuffix) // from now on it changes
}

const (
	sumSuffix = ".sha256" // of the closed file: hexadecimal
	walSuffix = "-wal"
	shmSuffix = "-shm"
)

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// removeIndex removes all files of the index.
func removeIndex(path string) error {
	for _, suffix := range []string{sumSuffix, walSuffix, shmSuffix, ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.ErrUnavailable, err, "the audit log's damaged index can't be removed")
		}
	}
	return nil
}

// The purposes for which connections are opened.
const (
	writing = iota
	reading
)

func sourceURL(path string, use int) string {
	pragmas := []string{"busy_timeout(10000)", "temp_store(memory)", "trusted_schema(0)"}
	if use == writing {
		// After a crash the last transactions may be missing, never a half one;
		// the log has what they had.
		pragmas = append(pragmas, "journal_mode(wal)", "synchronous(normal)", "cache_size(-2000)")
	} else {
		pragmas = append(pragmas, "query_only(1)", "cache_size(-1000)")
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return u.String()
}

// checkTables makes a fresh index's tables, or looks whether an old one can be used.
func (f *files) checkTables(ctx context.Context, log Log, fresh, closed bool) error {
	if fresh {
		return f.createTables(ctx)
	}
	var app, version int
	err := f.writer.QueryRowContext(ctx, "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version)").Scan(&app, &version)
	if err != nil {
		return err
	}
	if app != applicationID || version != schemaVersion {
		return errAnew
	}
	if !closed { // a crash; SQLite repairs what it knows of
		var verdict string
		if err := f.writer.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			return errAnew
		}
	}
	return f.checkFitsLog(ctx, log)
}

// checkFitsLog refuses a log that does not have the last record that was taken.
func (f *files) checkFitsLog(ctx context.Context, log Log) error {
	var next int64
	var last sql.NullInt64
	var fingerprint []byte
	if err := f.writer.QueryRowContext(ctx, "SELECT next, last, fingerprint FROM state").Scan(&next, &last, &fingerprint); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return errAnew
		}
		return err
	}
	f.next = uint64(next)
	if end, _ := log.End(); next < 0 || end < f.next {
		return errAnew
	}
	if !last.Valid {
		if next > 0 {
			return errAnew // all was elsewhere; it may be back
		}
		return nil
	}
	for r, err := range log.Records(ctx, audit.Filter{Seqs: []uint64{uint64(last.Int64)}}) {
		if err != nil {
			return err
		}
		if got := audit.Fingerprint(r); string(got[:]) != string(fingerprint) {
			break
		}
		return nil
	}
	return errAnew
}

func (f *files) createTables(ctx context.Context) error {
	for _, statement := range schema() {
		if _, err := f.writer.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// abandon closes files that are of no more use.
func (f *files) abandon() {
	if f.reader != nil {
		_ = f.reader.Close() // they are removed, or were never opened
	}
	_ = f.writer.Close()
}

// closeTables closes the files and notes what they are like now.
func (f *files) closeTables() error {
	err := f.reader.Close()
	_, folded := f.writer.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := errors.Join(err, folded, f.writer.Close()); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's index did not close well")
	}
	if _, err := os.Stat(f.path + walSuffix); err == nil {
		return nil // somebody else has it open: it counts as not closed
	}
	digest, err := sumFile(f.path)
	if err == nil {
		err = os.WriteFile(f.path+sumSuffix, []byte(digest), 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's index did not close well")
	}
	return nil
}

// forgetTables drops what is remembered of the tables.
func (f *files) forgetTables() { f.texts, f.shapes = newDictionary(), newShapes() }
