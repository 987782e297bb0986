package golang

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// database is the log as sumdb.Client wants it, for one lookup.
type database struct {
	log      ecosystem.Log
	verifier string // whole
	remote   func(path string) ([]byte, error)
	lookup   string // the path of the record, without a leading slash
	fresh    bool   // the cache is not read

	// Set by the client's calls. answer is what the record was read from; if it
	// is set before, the client gets it instead of the log's.
	answer []byte
	grew   bool        // the record's head was newer than the kept one
	cached atomic.Bool // something came from the cache

	mu     sync.Mutex // guards what follows
	failed error      // the first failure to ask or to keep
	lie    string     // what the client says of a log that forks
	missed bool       // failed is of the record itself
}

func newDatabase(ctx context.Context, log ecosystem.Log, verifier, lookup string) *database {
	return &database{
		log: log, verifier: verifier, lookup: lookup,
		remote: func(path string) ([]byte, error) { return log.Remote(ctx, path) },
	}
}

// withAnswer returns the same lookup with an answer given, nil for the log's own.
func (d *database) withAnswer(answer []byte, fresh bool) *database {
	return &database{log: d.log, verifier: d.verifier, lookup: d.lookup, remote: d.remote, fresh: fresh, answer: answer}
}

// ReadRemote implements sumdb.ClientOps.
func (d *database) ReadRemote(path string) ([]byte, error) {
	path = strings.TrimPrefix(path, "/")
	data, err := d.remote(path)
	if path != d.lookup {
		if err == nil {
			err = checkTile(path, data)
		}
		return data, d.noteFailure(err, false)
	}
	if err == nil {
		err = checkRecord(data)
		d.answer = data
	}
	return data, d.noteFailure(err, true)
}

// checkTile tells what is no tile from one that lies: whoever relays the log
// may be broken, or may want a login.
func checkTile(path string, data []byte) error {
	tile, err := tlog.ParseTilePath(path)
	if err == nil && len(data) != tile.W*tlog.HashSize {
		return fault.New(fault.ErrUnavailable, "the answer for a tile of the checksum database is not a tile")
	}
	return nil
}

// checkRecord tells what is no record from one that lies. It refuses a number
// that the client would take for another: of all negative ones it checks the
// log's first record.
func checkRecord(data []byte) error {
	number, _, _ := strings.Cut(string(data[:min(len(data), 32)]), "\n")
	n, _, head, err := tlog.ParseRecord(data)
	if err != nil || len(head) == 0 {
		return fault.New(fault.ErrUnavailable, "the answer for a record of the checksum database is not a record")
	}
	if n < 0 || strconv.FormatInt(n, 10) != number {
		return fault.Invalid("the record of the checksum database has an invalid number")
	}
	return nil
}

// ReadConfig implements sumdb.ClientOps.
func (d *database) ReadConfig(file string) ([]byte, error) {
	if file == "key" {
		return []byte(d.verifier), nil
	}
	data, err := d.log.Config(file)
	return data, d.noteFailure(err, false)
}

// WriteConfig implements sumdb.ClientOps.
func (d *database) WriteConfig(file string, old, changed []byte) error {
	err := d.log.Replace(file, old, changed)
	if errors.Is(err, fault.ErrConflict) {
		return sumdb.ErrWriteConflict // compared with ==
	}
	d.grew = d.grew || err == nil // the client writes only what is newer
	return d.noteFailure(err, false)
}

// ReadCache implements sumdb.ClientOps.
func (d *database) ReadCache(file string) ([]byte, error) {
	record := strings.HasSuffix(file, "/"+d.lookup)
	if record && d.answer != nil {
		return d.answer, nil
	}
	if d.fresh {
		return nil, fault.New(fault.ErrNotFound, "the cache is not read")
	}
	data, err := d.log.Cached(file)
	if err == nil && record {
		if err = checkRecord(data); err == nil {
			d.answer = data
		}
	}
	if err == nil {
		d.cached.Store(true)
	}
	return data, err
}

// WriteCache implements sumdb.ClientOps.
func (d *database) WriteCache(file string, data []byte) { d.log.Cache(file, data) }

// Log implements sumdb.ClientOps.
func (d *database) Log(string) {}

// SecurityError implements sumdb.ClientOps.
func (d *database) SecurityError(msg string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lie = msg
}

// noteFailure remembers the first failure, since the client drops its category.
func (d *database) noteFailure(err error, record bool) error {
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil || record {
		d.failed, d.missed = err, record
	}
	return err
}

// categoriseError gives the client's error its category. A piece that could not be had is not the
// log's lie, not even one of its own tiles.
func (d *database) categoriseError(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.lie != "":
		return fault.Wrap(fault.ErrInvalid, errors.New(d.lie), "the checksum database shows two histories of itself")
	case d.missed, d.failed != nil && !errors.Is(d.failed, fault.ErrNotFound):
		return d.failed
	case d.failed != nil:
		return fault.Wrap(fault.ErrUnavailable, err, "the checksum database lacks a piece of itself, so its answer can't be verified")
	}
	return fault.Wrap(fault.ErrInvalid, err, "the checksum database's answer does not verify")
}
